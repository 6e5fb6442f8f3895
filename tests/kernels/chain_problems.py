"""Random Markov chains for the kernels, and the kernels run on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from sklearn_bnp._kernels._chain_entropies import coarse_entropies
from sklearn_bnp._kernels._forward_backward import backward, forward, log_sums, viterbi
from tests.reference import chains
from tests.reference.chains import Chain


def log(x):
    """Logarithms of weights of which some are 0."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def chain(seed, lengths, K, spread=2.0, zeros=0.0, tiny=0.0, sticky=0.0):
    """Random sequences; some transitions are impossible or e^-200, and no state is left without any."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    log_table = spread * rng.standard_normal((indptr[-1], K))
    trans = rng.dirichlet(np.full(K, 0.7), size=K) + sticky * np.eye(K)
    trans[rng.uniform(size=(K, K)) < tiny] = np.exp(-200.0)
    trans[rng.uniform(size=(K, K)) < zeros] = 0.0
    trans[np.arange(K), rng.permutation(K)] = 0.3
    log_table[rng.uniform(size=log_table.shape) < tiny] = -190.0
    first = rng.dirichlet(np.full(K, 0.7), size=len(lengths)) + 0.01
    log_table -= log_table.max(axis=1, keepdims=True)
    return Chain(log_table, indptr, log(first), log(trans))


class Step(NamedTuple):
    """What forward and backward write."""

    alpha: np.ndarray
    scale: np.ndarray
    log_z: np.ndarray
    resp: np.ndarray
    counts: np.ndarray
    start: np.ndarray
    before: np.ndarray
    data: np.ndarray


def run(p, after=None, n_threads=1, weight=None):
    """Both kernels on a chain, into arrays that hold nan before."""
    n_seq, (T, K) = len(p.log_first), p.log_table.shape
    table, scale, log_z = np.exp(p.log_table), np.full(T, np.nan), np.full(n_seq, np.nan)
    first, trans = np.exp(p.log_first), np.exp(p.log_trans)
    start, before = np.full((n_seq, K), np.nan), np.full((n_seq, K), np.nan)
    counts, data = np.zeros((K, K)), np.full(n_seq, np.nan)
    forward(table, p.indptr, first, trans, scale, n_threads)
    log_sums(scale, p.indptr, log_z)
    alpha = table.copy()
    backward(
        table, p.indptr, first, trans, scale, after, counts, start, before, data, n_threads, weight
    )  # fmt: skip
    return Step(alpha, scale, log_z, table, counts, start, before, data)


def run_entropies(p, step, maps, n_threads=1, weight=None, changes=False):
    out = np.full(len(maps), np.nan)
    maps = np.array(maps, dtype=np.intp).reshape(len(maps), -1)
    trans = np.exp(p.log_trans)
    coarse_entropies(step.alpha, step.resp, p.indptr, trans, maps, out, n_threads, weight, changes)
    return out


def run_viterbi(p, n_threads=1):
    path, score = np.full(len(p.log_table), -1, dtype=np.intp), np.full(len(p.log_first), np.nan)
    viterbi(p.log_table, p.indptr, p.log_first, p.log_trans, path, score, n_threads)
    return path, score


def expected_posteriors(p, method):
    return [method(log_table, log_first, p.log_trans) for log_table, log_first in p.sequences()]


def assert_step(p, step, posteriors):
    """All outputs are those of the posteriors.

    Probabilities are rounded in every row, by a few eps each; errors of early rows are forgotten
    as the chain mixes. Logarithms of twins lose eps times their size.
    """
    size = np.abs(p.log_table).max(initial=1.0) * max(1, np.diff(p.indptr).max())
    tol = 1e-14 * (10 + size)
    assert_allclose(step.alpha, np.concatenate([q.alpha for q in posteriors]), rtol=0, atol=tol)
    assert_allclose(step.resp, np.concatenate([q.resp for q in posteriors]), rtol=0, atol=tol)
    assert_allclose(step.log_z, [q.log_z for q in posteriors], rtol=1e-13, atol=1e-13)
    counts = sum(q.pairs.sum(axis=0) for q in posteriors)
    assert_allclose(step.counts, counts, rtol=0, atol=tol * len(p.log_table))
    assert_allclose(step.start, step.resp[p.indptr[:-1]], rtol=0, atol=0)
    data = [
        chains.data_term(log_table, q.resp)
        for (log_table, _), q in zip(p.sequences(), posteriors, strict=True)
    ]
    lost = 1e-13 * len(p.log_table)  # r < 1e-16 with log B > -200
    assert_allclose(step.data, data, rtol=1e-12, atol=lost + tol * size)
    first = np.exp(p.log_first)
    assert_allclose(step.before * first, step.start, rtol=1e-13, atol=1e-300)
