"""Forward and backward against all paths, recursions in logarithms, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._chain_entropies import coarse_entropies
from sklearn_bnp._kernels._forward_backward import backward, forward, log_sums
from tests.reference import chains
from tests.reference.chains import Chain

from .chain_problems import (
    assert_step,
    chain,
    expected_posteriors,
    log,
    run,
    run_entropies,
    run_viterbi,
)

SMALL = [([3], 2), ([1], 3), ([5, 1, 4], 3), ([2, 5, 3, 1, 1, 4, 5, 2, 2, 3], 2), ([4, 4], 1)]
ODDITIES = [(0.0, 0.0), (0.4, 0.0), (0.0, 0.4), (0.3, 0.3)]


@pytest.mark.parametrize(("lengths", "K"), SMALL)
@pytest.mark.parametrize(("zeros", "tiny"), ODDITIES)
def test_against_all_paths(lengths, K, zeros, tiny):
    for seed in range(10):
        p = chain(seed, lengths, K, zeros=zeros, tiny=tiny)
        posteriors = expected_posteriors(p, chains.by_paths)
        step = run(p)
        assert_step(p, step, posteriors)
        assert_step(p, step, expected_posteriors(p, chains.by_recursion))
        maps = [np.arange(K), np.zeros(K), np.arange(K) % 2, 5 - np.arange(K) // 2]
        got = run_entropies(p, step, maps)
        each = [chains.path_entropy(*q, p.log_trans) for q in p.sequences()]
        assert_allclose(got[0], sum(each), rtol=0, atol=1e-10)
        for value, names in zip(got, maps, strict=True):
            twin = sum(chains.coarse_entropy(q, names) for q in posteriors)
            # states with r < 1e-13 are left out: 3e-12 each
            assert_allclose(value, twin, rtol=0, atol=1e-10)
        path, score = run_viterbi(p)
        for d, q in enumerate(p.sequences()):
            best, weight = chains.best_path(*q, p.log_trans)
            assert_array_equal(path[p.indptr[d] : p.indptr[d + 1]], best)
            assert_allclose(score[d], weight, rtol=1e-14)


@pytest.mark.parametrize("K", [1, 3, 4, 5, 8, 13, 24, 33, 50, 56, 64, 120, 130])
@pytest.mark.parametrize("lengths", [[150], [40, 1, 90, 64, 65, 3], [7] * 40], ids=str)
def test_sizes(lengths, K):
    """Panels, padded rows, blocks of rows and lanes, with their rests."""
    p = chain(K, lengths, K, zeros=0.2 if K > 3 else 0.0, tiny=0.02)
    assert_step(p, run(p), expected_posteriors(p, chains.by_recursion))


@pytest.mark.extended
def test_many_tasks():
    lengths = np.random.default_rng(0).integers(1, 300, size=60)
    p = chain(1, lengths, 6)
    step, posteriors = run(p), expected_posteriors(p, chains.by_recursion)
    assert_step(p, step, posteriors)
    maps = np.array([range(6), [0, 0, 1, 2, 3, 4], [1, 2, 3, 1, 2, 1], [9, 8, 7, 6, 5, 5]])
    twins = [sum(chains.coarse_entropy(q, names) for q in posteriors) for names in maps]
    assert_allclose(run_entropies(p, step, maps), twins, rtol=1e-9)


@pytest.mark.quarter
@pytest.mark.parametrize("lengths", [[9000], [2500] * 9, [50] * 200, [1] * 3000], ids=len)
@pytest.mark.parametrize("K", [5, 40])
def test_threads_change_no_bit(lengths, K):
    p = chain(2, lengths, K, spread=1.0)
    maps = [np.arange(K), np.arange(K) // 2, np.zeros(K)]
    outs = []
    for n_threads in (1, 2, 3, 7):
        step = run(p, n_threads=n_threads)
        outs.append([
            *step, run_entropies(p, step, maps, n_threads), *run_viterbi(p, n_threads)
        ])  # fmt: skip
    for out in outs[1:]:
        for a, b in zip(out, outs[0], strict=True):
            assert_array_equal(a, b)


def test_two_calls_are_one():
    """Sequences are independent."""
    p = chain(3, [60, 5, 900, 1, 33, 8, 400, 9, 9, 9], 9)
    step = run(p)
    cut, row = 4, p.indptr[4]
    a = run(Chain(p.log_table[:row], p.indptr[: cut + 1], p.log_first[:cut], p.log_trans))
    b = run(Chain(p.log_table[row:], p.indptr[cut:] - row, p.log_first[cut:], p.log_trans))
    assert_allclose(step.counts, a.counts + b.counts, rtol=1e-12)
    for name in ("alpha", "scale", "log_z", "resp", "start", "before", "data"):
        both = np.concatenate([getattr(a, name), getattr(b, name)])
        assert_allclose(getattr(step, name), both, rtol=1e-11, atol=1e-300)


@pytest.mark.quarter
@pytest.mark.parametrize("K", [1, 3, 9, 40])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_transitions_count_as_often_as_their_sequence_weighs(K, n_threads):
    """Short sequences, many to a block, and long ones of several blocks; all else is as without."""
    lengths = [1, 60, 5, 400, 1, 1, 33, 8, 300, 9, 9, 1100, 9]
    p, rng = chain(17, lengths, K), np.random.default_rng(17)
    weight = rng.exponential(size=len(lengths))
    weight[[2, 6]] = 0.0
    plain, step = run(p), run(p, weight=weight, n_threads=n_threads)
    twins = expected_posteriors(p, chains.by_recursion)
    counts = sum(w * q.pairs.sum(axis=0) for w, q in zip(weight, twins, strict=True))
    assert_allclose(step.counts, counts, rtol=1e-9, atol=1e-11 * sum(lengths))
    for name in ("alpha", "scale", "log_z", "resp", "start", "before", "data"):
        assert_array_equal(getattr(step, name), getattr(plain, name))


def test_counts_are_added():
    p = chain(4, [30, 20], 4)
    once = run(p)
    counts, table = np.ones((4, 4)), once.alpha.copy()
    first, trans = np.exp(p.log_first), np.exp(p.log_trans)
    backward(
        table, p.indptr, first, trans, once.scale, None, counts, None, None, np.empty(2), 1
    )  # fmt: skip
    assert_array_equal(counts, 1 + once.counts)
    assert_array_equal(table, once.resp)


@pytest.mark.parametrize("chunk", [1, 7, 64, 100, 999])
@pytest.mark.parametrize("K", [3, 20])
def test_chunks_are_the_whole(K, chunk):
    """Chunks of two sequences; alpha of their last rows is all that is kept between the passes."""
    lengths = [700, 450]
    p = chain(5, lengths, K, zeros=0.1, tiny=0.05)
    whole = run(p)
    trans, counts = np.exp(p.log_trans), np.zeros((K, K))
    for d, (log_table, log_first) in enumerate(p.sequences()):
        starts = range(0, len(log_table), chunk)
        firsts, log_z, data, after = [np.exp(log_first)], 0.0, 0.0, np.zeros((1, K))
        for lo in starts:
            table = np.exp(log_table[lo : lo + chunk])
            scale, indptr = np.empty(len(table)), np.array([0, len(table)])
            forward(table, indptr, firsts[-1][np.newaxis], trans, scale, 1)
            firsts.append(table[-1] @ trans)
            log_z += np.log(scale).sum()
        for lo, first in reversed(list(zip(starts, firsts[:-1], strict=True))):
            table = np.exp(log_table[lo : lo + chunk])
            scale, indptr = np.empty(len(table)), np.array([0, len(table)])
            first = first[np.newaxis]
            start, before, term = np.empty((1, K)), np.empty((1, K)), np.empty(1)
            forward(table, indptr, first, trans, scale, 1)
            backward(
                table, indptr, first, trans, scale, after, counts, start, before, term, 1
            )  # fmt: skip
            after = before
            data += term[0]
            rows = slice(p.indptr[d] + lo, p.indptr[d] + lo + len(table))
            assert_allclose(table, whole.resp[rows], rtol=0, atol=1e-12)
        assert_allclose(start[0], whole.start[d], rtol=0, atol=1e-12)
        assert_allclose([log_z, data], [whole.log_z[d], whole.data[d]], rtol=1e-12)
    assert_allclose(counts, whole.counts, rtol=1e-11, atol=1e-12 * sum(lengths))


def test_one_row_filters():
    """A step of a filter is `forward` on one row."""
    p = chain(6, [50], 7)
    whole, trans, scale = run(p), np.exp(p.log_trans), np.empty(1)
    first = np.exp(p.log_first)
    for t in range(50):
        row = np.exp(p.log_table[t : t + 1])
        forward(row, np.array([0, 1]), first, trans, scale, 1)
        assert_allclose(row[0], whole.alpha[t], rtol=1e-12)
        assert_allclose(scale[0], whole.scale[t], rtol=1e-12)
        first = row @ trans


@pytest.mark.parametrize("K", [4, 11])
def test_time_reversal(K):
    """A chain that is symmetric in time, backwards: rows in reverse, counts transposed."""
    rng = np.random.default_rng(7)
    trans = sum(np.eye(K)[rng.permutation(K)] for _ in range(3)) + 0.3
    trans = (trans + trans.T) / (trans + trans.T).sum(axis=0)  # doubly stochastic
    log_table = 2.0 * rng.standard_normal((200, K))
    log_first = np.full((1, K), -np.log(K))
    p = Chain(log_table, np.array([0, 200]), log_first, np.log(trans))
    step, reverse = run(p), run(p._replace(log_table=np.ascontiguousarray(log_table[::-1])))
    assert_allclose(reverse.resp, step.resp[::-1], rtol=0, atol=1e-13)
    assert_allclose(reverse.counts, step.counts.T, rtol=1e-12)
    assert_allclose(reverse.log_z, step.log_z, rtol=1e-13)
    assert_allclose(run_viterbi(p)[1], step.log_z - log_posterior_of_best(p, step), rtol=1e-12)


def log_posterior_of_best(p, step):
    """log Z less the score of the best path, by the twin's weight of that path."""
    path, _ = run_viterbi(p)
    steps = p.log_trans[path[:-1], path[1:]].sum()
    weight = p.log_first[0, path[0]] + p.log_table[np.arange(len(path)), path].sum() + steps
    return step.log_z - weight


def test_marginals_agree():
    """Counts have the sums that responsibilities have."""
    p = chain(8, [500, 1, 40], 15, tiny=0.1)
    step = run(p)
    last, first = p.indptr[1:] - 1, p.indptr[:-1]
    assert_allclose(step.resp.sum(axis=1), 1.0, rtol=1e-12)
    everything = step.resp.sum(axis=0)
    outgoing = everything - step.resp[last].sum(axis=0)
    assert_allclose(step.counts.sum(axis=1), outgoing, rtol=1e-11, atol=1e-11)
    incoming = everything - step.resp[first].sum(axis=0)
    assert_allclose(step.counts.sum(axis=0), incoming, rtol=1e-11, atol=1e-11)


def test_states_out_of_use():
    """No weight to and from a state: it keeps no mass, and the others are as without it."""
    p = chain(9, [90, 30, 1], 6)
    out = np.array([1, 4])
    p.log_trans[out] = p.log_trans[:, out] = p.log_first[:, out] = -np.inf
    p.log_table[:, out] = 0.0  # however well they would do
    step = run(p)
    for a in (step.alpha, step.resp, step.start, step.counts, step.counts.T, step.before):
        assert_array_equal(a[:, out], 0.0)
    rest = np.array([0, 2, 3, 5])
    few = run(Chain(
        np.ascontiguousarray(p.log_table[:, rest]), p.indptr,
        np.ascontiguousarray(p.log_first[:, rest]),
        np.ascontiguousarray(p.log_trans[np.ix_(rest, rest)]),
    ))  # fmt: skip
    assert_allclose(step.resp[:, rest], few.resp, rtol=1e-12)
    assert_allclose(step.counts[np.ix_(rest, rest)], few.counts, rtol=1e-12)
    assert_allclose(step.data, few.data, rtol=1e-12)
    assert not np.isin(run_viterbi(p)[0], out).any()


def test_impossible_rows_have_no_mass():
    """Two states that nothing joins, and a row that only the other one allows."""
    log_table = np.array([[0.0, -np.inf], [0.0, -1.0], [-np.inf, 0.0], [0.0, 0.0]])
    p = Chain(log_table, np.array([0, 4]), np.zeros((1, 2)), log(np.eye(2)))
    step = run(p)
    assert_array_equal(step.scale, [1.0, 1.0, 0.0, 0.0])
    assert_array_equal(step.alpha, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assert step.log_z[0] == -np.inf
    assert_array_equal(step.resp, 0.0)
    assert run_viterbi(p)[1][0] == -np.inf


def test_read_only_and_optional():
    p = chain(10, [40, 9], 5)
    expected = run(p)
    first, trans = np.exp(p.log_first), np.exp(p.log_trans)
    table, scale = np.exp(p.log_table), np.empty(49)
    after = np.zeros((2, 5))
    for a in (*p, first, trans, after):
        a.setflags(write=False)
    forward(table, p.indptr, first, trans, scale, 1)
    assert_array_equal(table, expected.alpha)
    scale.setflags(write=False)
    data = np.empty(2)
    backward(
        table, p.indptr, first, trans, scale, after, np.zeros((5, 5)), None, None, data, 1
    )  # fmt: skip
    assert_array_equal(table, expected.resp)
    assert_array_equal(data, expected.data)
    for a in expected:
        a.setflags(write=False)
    maps, out = np.arange(5)[np.newaxis], np.empty(1)
    maps.setflags(write=False)
    coarse_entropies(expected.alpha, expected.resp, p.indptr, trans, maps, out, 1)
    assert np.isfinite(out[0])
    assert np.all(run_viterbi(p)[0] >= 0)


def test_nothing_to_do():
    p = Chain(np.empty((0, 3)), np.zeros(1, dtype=np.int64), np.empty((0, 3)), np.zeros((3, 3)))
    step = run(p, n_threads=2)
    assert_array_equal(step.counts, 0.0)
    assert_array_equal(run_entropies(p, step, [np.arange(3)]), 0.0)
    assert run_viterbi(p)[0].shape == (0,)


@pytest.mark.parametrize("K", [2, 9])
def test_long_and_extreme(K):
    """A hundred thousand rows with likelihood ratios and transitions of e^-200."""
    rng = np.random.default_rng(11)
    T = 100_000
    log_table = np.where(rng.uniform(size=(T, K)) < 0.5, 0.0, -200.0)
    log_table[np.arange(T), rng.integers(K, size=T)] = 0.0
    log_trans = np.full((K, K), -200.0)
    p = Chain(log_table, np.array([0, T]), np.full((1, K), -200.0), log_trans)
    step = run(p)
    for a in step:
        assert np.isfinite(a).all()
    assert_allclose(step.resp.sum(axis=1), 1.0, rtol=1e-11)
    # constant transitions make the rows independent
    share = np.exp(log_table)
    assert_allclose(step.resp, share / share.sum(axis=1, keepdims=True), rtol=0, atol=1e-12)
    log_z = -200.0 * T + np.log(share.sum(axis=1)).sum()
    assert_allclose(step.log_z[0], log_z, rtol=1e-12)
    assert_allclose(step.counts.sum(), T - 1, rtol=1e-11)


def test_switching_against_the_grain():
    """Likelihoods force a switch that transitions make e^-200, row after row."""
    T = 1000
    log_table = np.where((np.arange(T)[:, np.newaxis] + np.arange(2)) % 2 == 0, 0.0, -200.0)
    p = Chain(log_table, np.array([0, T]), np.full((1, 2), np.log(0.5)),
              np.array([[-1e-3, -200.0], [-200.0, -1e-3]]))  # fmt: skip
    posteriors = expected_posteriors(p, chains.by_recursion)
    step = run(p)
    assert_allclose(step.log_z[0], posteriors[0].log_z, rtol=1e-12)
    assert_allclose(step.resp, posteriors[0].resp, rtol=0, atol=1e-9)  # log Z of 2e5 in the twin
    counts = posteriors[0].pairs.sum(axis=0)
    assert_allclose(step.counts, counts, rtol=0, atol=1e-9 * T)


def test_log_sums():
    rng = np.random.default_rng(14)
    scale = np.exp(rng.uniform(-400, 3, size=3000))
    scale[7] = 1e-308
    scale[2000] = 1e300
    indptr = np.array([0, 0, 1, 8, 1500, 3000])
    out = np.full(5, np.nan)
    log_sums(scale, indptr, out)
    expected = [part.sum() for part in np.split(np.log(scale), indptr[1:-1])]
    assert_allclose(out, expected, rtol=1e-13)
