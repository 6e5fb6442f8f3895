"""Blocks of rows: what links join, and in which of them two sets of components differ."""

import numpy as np
import pytest

from sklearn_bnp.engine.matching_components import (
    _blocks,
    blocks_that_differ,
    members,
    similarities,
)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_what_links_join(seed):
    similarity = np.random.default_rng(seed).random((6, 8)) ** 8
    linked = similarity > 0.1
    linked |= similarity == similarity.max(axis=1, keepdims=True)
    linked |= similarity == similarity.max(axis=0)
    reach = linked @ linked.T
    for _ in range(6):
        reach = reach @ reach
    blocks = list(_blocks(similarity, 0.1))
    assert members(blocks) == (list(range(6)), list(range(8)))
    assert sum(len(one) for one, _ in blocks) == 6 and sum(len(two) for _, two in blocks) == 8
    for one, two in blocks:
        assert one and two  # each has some of either set
        np.testing.assert_array_equal(np.flatnonzero(reach[one[0]]), one)
        np.testing.assert_array_equal(np.flatnonzero(linked[list(one)].any(axis=0)), two)


def test_blocks_of_the_same_components_do_not_differ():
    similarity = np.eye(6)[:, [2, 0, 3, 1, 5, 4]]
    assert blocks_that_differ(similarity, (0.1, 0.5)) == []
    similarity[1, 1] = 0.9  # near something else, but the same as before
    assert blocks_that_differ(similarity, (0.1, 0.5)) == []
    similarity[4:] *= 0.99
    assert blocks_that_differ(similarity, (0.1, 0.5)) == [((4,), (5,)), ((5,), (4,))]
    similarity[5] = 0.0
    similarity[5, 4] = 1.0  # what differs is in one block
    assert blocks_that_differ(similarity, (0.1, 0.5)) == []


def test_each_level_has_its_own_blocks():
    similarity = np.eye(6)
    similarity[0, 1] = similarity[2, 3] = similarity[4, 5] = 0.3
    coarse = [((0, 1), (0, 1)), ((2, 3), (2, 3)), ((4, 5), (4, 5))]
    fine = [((k,), (k,)) for k in range(6)]
    similarity[np.arange(6), np.arange(6)] = 0.9
    assert blocks_that_differ(similarity, (0.1,)) == coarse
    assert blocks_that_differ(similarity, (0.5,)) == fine
    assert blocks_that_differ(similarity, (0.1, 0.5, 0.6)) == coarse + fine


@pytest.mark.parametrize("weighted", [False, True])
def test_similarities_are_cosines(weighted):
    rng = np.random.default_rng(0)
    resp, other = rng.random((20, 3)), rng.random((20, 4))
    mass = rng.integers(1, 4, size=20) if weighted else None
    times = np.ones(20, dtype=int) if mass is None else mass
    found = similarities(resp, other, mass)
    one, two = np.repeat(resp, times, axis=0), np.repeat(other, times, axis=0)
    for k in range(3):
        for j in range(4):
            cosine = one[:, k] @ two[:, j] / np.linalg.norm(one[:, k]) / np.linalg.norm(two[:, j])
            assert found[k, j] == pytest.approx(cosine)
