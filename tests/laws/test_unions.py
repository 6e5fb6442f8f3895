"""Entropies of unions are those of responsibilities that are added up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp.engine.unions import entropies_of_unions

GROUPS = [(0,), (3, 1), [4, 2, 0], range(5)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_entropies_of_unions(weighted, dtype):
    rng = np.random.default_rng(0)
    resp = rng.dirichlet(np.full(5, 0.3), 1500).astype(dtype)
    weight = rng.gamma(1.0, size=1500) if weighted else None
    found = entropies_of_unions(resp, weight, GROUPS)
    for entropy, group in zip(found, GROUPS, strict=True):
        union = resp[:, list(group)].sum(axis=1, dtype=float).clip(1e-300, 1.0)
        expected = -union * np.log(union)
        expected = expected.sum() if weight is None else weight @ expected
        assert_allclose(entropy, expected, rtol=1e-12, atol=1e-10)  # sums over 1500 rows
    assert_array_equal(entropies_of_unions(resp, weight, GROUPS, n_threads=3), found)


def test_no_groups_have_no_entropies():
    assert entropies_of_unions(np.full((3, 2), 0.5), None, []).shape == (0,)
