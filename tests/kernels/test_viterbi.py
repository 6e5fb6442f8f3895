"""`viterbi`: ties, many states, and paths that are not better."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.reference.chains import Chain

from .chain_problems import chain, run, run_viterbi


def test_viterbi_ties_go_to_the_lower_state():
    p = Chain(np.zeros((6, 5)), np.array([0, 2, 6]), np.zeros((2, 5)), np.zeros((5, 5)))
    path, score = run_viterbi(p)
    assert_array_equal(path, 0)
    assert_array_equal(score, 0.0)
    p.log_table[:, 0] = -1.0
    assert_array_equal(run_viterbi(p)[0], 1)


@pytest.mark.parametrize("seed", range(3))
def test_no_path_is_better(seed):
    p = chain(20 + seed, [120], 6, spread=1.0)
    step, (path, score) = run(p), run_viterbi(p)
    rng = np.random.default_rng(seed)
    near = [
        np.where(rng.uniform(size=120) < 0.05, rng.integers(6, size=120), path) for _ in range(300)
    ]
    drawn = [np.array([rng.choice(6, p=r / r.sum()) for r in step.resp]) for _ in range(30)]

    def weight(z):
        return (p.log_first[0, z[0]] + p.log_table[np.arange(120), z].sum()
                + p.log_trans[z[:-1], z[1:]].sum())  # fmt: skip

    assert_allclose(weight(path), score[0], rtol=1e-13)
    assert max(weight(z) for z in [*near, *drawn]) <= score[0] + 1e-10


@pytest.mark.parametrize("K", [256, 257, 300])
def test_viterbi_of_many_states(K):
    """Where states no longer fit in a byte: a cycle that can only be walked one way."""
    trans = np.full((K, K), -50.0)
    trans[np.arange(K), (np.arange(K) + 1) % K] = 0.0
    log_table = np.zeros((2 * K, K))
    log_table[-1, K - 1] = 10.0
    p = Chain(log_table, np.array([0, 2 * K]), np.zeros((1, K)), trans)
    path, score = run_viterbi(p)
    assert_array_equal(path, np.arange(2 * K) % K)
    assert score[0] == 10.0
