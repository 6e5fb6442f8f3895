"""`coarse_entropies` against log Z and pair marginals, and its laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.reference import chains
from tests.reference.chains import Chain

from .chain_problems import chain, expected_posteriors, log, run, run_entropies


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0])
def test_entropy_is_what_log_z_leaves(spread, seed):
    """``H = log Z - E[log first] - E[log trans] - E[log B]`` for the exact posterior."""
    lengths = [300, 5, 1, 77, 1200]
    p = chain(seed, lengths, 12, spread=spread, tiny=0.1, sticky=3.0)
    step = run(p)
    rest = np.sum(step.counts * p.log_trans) + np.sum(step.start * p.log_first) + step.data.sum()
    (got,) = run_entropies(p, step, [np.arange(12)])
    # the difference keeps what rounding leaves of terms that are larger
    size = np.abs(step.log_z).sum() + np.abs(rest)
    assert_allclose(got, step.log_z.sum() - rest, rtol=1e-8, atol=1e-14 * size)


def test_coarse_entropies_of_merges():
    """Merging states that are the same loses the entropy of the choice between them, in every row."""
    p = chain(12, [80, 40], 4)
    double = np.array([0, 1, 2, 3, 3])
    log_trans = p.log_trans[np.ix_(double, double)]
    log_trans[:, 3:] -= np.log(2.0)
    log_first = p.log_first[:, double].copy()
    log_first[:, 3:] -= np.log(2.0)
    q = Chain(np.ascontiguousarray(p.log_table[:, double]), p.indptr, log_first, log_trans)
    step, twice = run(p), run(q)
    h = run_entropies(p, step, [np.arange(4)])[0]
    both = run_entropies(q, twice, [np.arange(5), double])
    assert_allclose(both[1], h, rtol=1e-9)
    assert_allclose(both[0] - both[1], twice.resp[:, 3:].sum() * np.log(2.0), rtol=1e-9)
    assert_allclose(twice.log_z, step.log_z, rtol=1e-12)


@pytest.mark.extended
def test_sequences_count_as_often_as_they_weigh():
    """Chunks of rows with several sequences, and sequences of several chunks."""
    p, rng = chain(14, [1, 300, 5, 1, 77, 2500, 1], 6, spread=1.0), np.random.default_rng(14)
    weight, maps = rng.exponential(size=7), rng.integers(0, 3, size=(20, 6))
    maps[0] = np.arange(6)
    got = run_entropies(p, run(p), maps, weight=weight)
    posteriors = expected_posteriors(p, chains.by_recursion)
    twins = [weight @ [chains.coarse_entropy(q, names) for q in posteriors] for names in maps]
    assert_allclose(got, twins, rtol=1e-9)


def test_entropies_of_many_maps():
    """Each map's is its own, whatever other maps merge."""
    p = chain(13, [400, 300], 7, spread=1.0)
    step, rng = run(p), np.random.default_rng(13)
    maps = rng.integers(-3, 4, size=(60, 7))
    maps[0] = np.arange(7)
    together = run_entropies(p, step, maps)
    alone = [run_entropies(p, step, [names])[0] for names in maps]
    assert_array_equal(together, alone)
    changes = run_entropies(p, step, maps, changes=True)
    assert_allclose(changes, together - together[0], rtol=1e-9, atol=1e-9)
    one = [run_entropies(p, step, [names], changes=True)[0] for names in maps]
    assert_array_equal(changes, one)
    posteriors = expected_posteriors(p, chains.by_recursion)
    twins = [sum(chains.coarse_entropy(q, names) for q in posteriors) for names in maps]
    assert_allclose(together, twins, rtol=1e-9)


def two_tracks(*visits):
    """a c e ... or b d f ..., each for sure: states 0 to 5, and log weights of the paths ``visits``."""
    step = np.zeros((6, 6))
    for track in (0, 1):
        for now, after in itertools.pairwise(visits):
            step[2 * now + track, 2 * after + track] = 1.0
    first = np.zeros((1, 6))
    first[0, 2 * visits[0] : 2 * visits[0] + 2] = 0.5
    log_table = np.full((len(visits), 6), -300.0)
    for t, place in enumerate(visits):
        log_table[t, 2 * place : 2 * place + 2] = 0.0
    return Chain(log_table, np.array([0, len(visits)]), log(first), log(step))


@pytest.mark.parametrize("visits", [(0, 1, 2), (0, 1, 2, 1, 0), (0, 1, 2, 1, 2, 1, 0)])
def test_entropy_rises_where_a_union_forgets_the_past(visits):
    """One bit tells which of two tracks a path is on. With c and d as one, each visit asks anew."""
    p = two_tracks(*visits)
    names = np.array([0, 1, 2, 2, 4, 5])
    got = run_entropies(p, run(p), [np.arange(6), names])
    assert_allclose(got, np.log(2.0) * np.array([1, 1 + visits[1:-1].count(1)]), rtol=1e-12)


@pytest.mark.parametrize("spread", [0.3, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_change_of_entropy_is_within_what_names_leave_open(spread, seed):
    """Of either sign: less than to say which state each name stood for, but for the ends if it rises.

    Paths with new names have no more entropy than the Markov chain that stands for them.
    """
    p, rng = chain(seed, [5], 4, spread=spread, zeros=0.3 * (seed % 2)), np.random.default_rng(seed)
    maps = [np.arange(4), *rng.integers(0, 3, size=(12, 4))]
    got = run_entropies(p, run(p), maps)
    [(log_table, log_first)] = p.sequences()
    [posterior] = expected_posteriors(p, chains.by_paths)
    for value, names in zip(got, maps, strict=True):
        assert value == pytest.approx(chains.markov_entropy(posterior, names), abs=1e-9)
        paths = chains.renamed_path_entropy(log_table, log_first, p.log_trans, names)
        open_ = chains.told_by_names(posterior, names)
        assert got[0] - open_.sum() <= paths + 1e-9
        assert paths <= value + 1e-9
        assert value <= got[0] + open_[1:-1].sum() + 1e-9
