"""`document_step` against documents solved one by one; its special functions against exact sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln, xlogy

from sklearn_bnp._kernels._topics import count_terms, document_step
from tests.reference import documents


class Corpus(NamedTuple):
    """Documents in CSR form over a table of likelihoods."""

    table: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray | None
    counts: np.ndarray
    prior: np.ndarray

    def rows(self):
        return np.arange(len(self.counts)) if self.indices is None else self.indices

    def documents(self):
        return [slice(a, b) for a, b in zip(self.indptr[:-1], self.indptr[1:], strict=True)]


def corpus(seed, n_docs=20, K=7, M=60, tokens=80, dtype=np.float64, words=True, zeros=0.0):
    """Documents of a few topics each; among the first are an empty one and one of a single word."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(M, 0.15), size=K)
    shares = rng.dirichlet(np.full(K, 0.3), size=n_docs)
    x = np.array([rng.multinomial(tokens, row @ topics) for row in shares])
    if n_docs > 2:
        x[1] = 0
        x[2] = 3 * (np.arange(M) == 5)
    d, items = np.nonzero(x)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(d, minlength=n_docs))]).astype(np.int64)
    table = topics.T + 1e-4
    table[rng.uniform(size=table.shape) < zeros] = 0.0
    table[5] = topics[:, 5] + 0.01
    counts = x[d, items].astype(float)
    indices = items.astype(np.int32)
    if not words:  # every entry an item of its own
        table, indices = table[items] * rng.uniform(0.5, 2.0, size=(len(items), 1)), None
    table = np.ascontiguousarray(table / np.maximum(table.max(axis=1, keepdims=True), 1e-300))
    prior = 0.5 * rng.dirichlet(np.full(K, 2.0))
    return Corpus(table.astype(dtype), indptr, indices, counts, prior)


class Step(NamedTuple):
    """What the kernel writes."""

    doc_counts: np.ndarray
    resp: np.ndarray
    s: np.ndarray
    entropy: np.ndarray
    score: np.ndarray


def run(p, mass=None, start=None, cold=True, max_iter=300, tol=None, n_restarts=0, n_nonzero=None,
        n_threads=1, weight=None, places=None):  # fmt: skip
    (M, K), n_docs = p.table.shape, len(p.indptr) - 1
    if tol is None:  # single precision cannot see less
        tol = 1e-9 if p.table.dtype == np.float64 else 1e-3
    out = Step(
        np.full((n_docs, K), np.nan), np.full((len(p.counts), K), np.nan, dtype=p.table.dtype),
        np.zeros((M, K)), np.zeros(K), np.full(n_docs, np.nan),
    )  # fmt: skip
    L = K if n_nonzero is None else n_nonzero
    document_step(
        p.table, p.indptr, p.indices, p.counts, mass, p.prior, start, out.doc_counts, cold, max_iter,
        tol, n_restarts, L, out.resp, out.s, out.entropy, out.score, n_threads, weight, places,
    )  # fmt: skip
    return out


def run_twin(p, mass=None, start=None, cold=True, max_iter=300, tol=None, n_restarts=0,
             n_nonzero=None, places=None):  # fmt: skip
    if tol is None:
        tol = 1e-9 if p.table.dtype == np.float64 else 1e-3
    out = []
    m = np.ones(len(p.counts)) if mass is None else mass
    for d, rows in enumerate(p.documents()):
        c = p.counts[rows] * m[rows]
        if c.sum() == 0:
            out.append(None)
            continue
        with np.errstate(divide="ignore"):
            log_table = np.log(p.table[p.rows()[rows]].astype(float))
        L = n_nonzero if places is None else places[rows]
        document = documents.Document(log_table, c, p.prior, L, max_iter, tol)
        out.append(document.solve(None if start is None else start[d], cold, n_restarts))
    return out


def assert_sums(p, step, mass=None, n_nonzero=None):
    """All outputs follow from the responsibilities."""
    K = p.table.shape[1]
    m = np.ones(len(p.counts)) if mass is None else mass
    r = step.resp.astype(float)
    eps = np.finfo(p.table.dtype).eps
    tokens = p.counts @ m
    assert np.all(r >= 0)
    assert_allclose(r.sum(axis=1), m, rtol=4 * eps * K)
    assert np.all(np.sum(r > 0, axis=1) <= (K if n_nonzero is None else n_nonzero))
    cr = p.counts[:, np.newaxis] * r
    for d, rows in enumerate(p.documents()):
        assert_allclose(step.doc_counts[d], cr[rows].sum(axis=0), rtol=0, atol=4 * eps * tokens)
        with np.errstate(divide="ignore"):
            log_table = np.log(p.table[p.rows()[rows]].astype(float))
        c = p.counts[rows] * m[rows]
        share = r[rows] / np.where(m[rows] > 0, m[rows], 1.0)[:, np.newaxis]
        expected = documents.score(log_table, c, p.prior, share) if c.sum() > 0 else 0.0
        assert_allclose(step.score[d], expected, rtol=1e-12, atol=50 * eps * (1 + c.sum()))
    s = np.zeros(p.table.shape)
    np.add.at(s, p.rows(), cr)
    assert_allclose(step.s, s, rtol=0, atol=4 * eps * tokens)
    entropy = -np.sum(p.counts[:, np.newaxis] * xlogy(r, r), axis=0)
    assert_allclose(step.entropy, entropy, rtol=0, atol=50 * eps * tokens)


def assert_twin(p, step, twin):
    single = p.table.dtype == np.float32
    for d, local in enumerate(twin):
        if local is None:
            assert_array_equal(step.doc_counts[d], 0.0)
            assert step.score[d] == 0
        else:
            # float32 may stop a step sooner or later, at changes of 1e-3 tokens
            assert_allclose(step.doc_counts[d], local.counts, rtol=0, atol=2e-2 if single else 1e-6)
            assert_allclose(step.score[d], local.score, rtol=1e-12, atol=2e-3 if single else 1e-8)


@pytest.mark.parametrize("words", [True, False], ids=["words", "observations"])
@pytest.mark.parametrize("n_nonzero", [None, 1, 3, 6], ids=["dense", "1", "3", "6"])
@pytest.mark.parametrize("zeros", [0.0, 0.3], ids=["", "zeros"])
def test_against_twin(zeros, n_nonzero, words, dtype):
    p = corpus(1, dtype=dtype, words=words, zeros=zeros)
    step = run(p, n_nonzero=n_nonzero)
    assert_sums(p, step, n_nonzero=n_nonzero)
    assert_twin(p, step, run_twin(p, n_nonzero=n_nonzero))


@pytest.mark.parametrize("K", [1, 2, 3, 4, 5, 8, 33, 100])
@pytest.mark.parametrize("tokens", [1, 8, 300])
def test_sizes(tokens, K, dtype):
    """Blocks of four topics, vectors of entries and their rests."""
    p = corpus(K, n_docs=6, K=K, M=max(20, tokens), tokens=tokens, dtype=dtype)
    for L in {None, min(K, 2), min(K, 20)}:
        step = run(p, n_nonzero=L, max_iter=9, tol=0.0)
        assert_sums(p, step, n_nonzero=L)
        assert_twin(p, step, run_twin(p, n_nonzero=L, max_iter=9, tol=0.0))


def test_long_documents(dtype):
    """More entries than a block."""
    p = corpus(2, n_docs=4, K=5, M=3000, tokens=9000, dtype=dtype)
    assert p.indptr[1] > 1000
    step = run(p, max_iter=20, tol=0.0)
    assert_sums(p, step)
    assert_twin(p, step, run_twin(p, max_iter=20, tol=0.0))


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5, 6, 17])
@pytest.mark.parametrize("n_nonzero", [None, 3], ids=["dense", "3"])
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_few_iterations(warm, n_nonzero, max_iter, dtype):
    p = corpus(3, dtype=dtype)
    start = np.random.default_rng(0).gamma(0.3, 20.0, size=(20, 7)) if warm else None
    kwargs = {"start": start, "cold": not warm, "max_iter": max_iter, "tol": 0.0}
    kwargs["n_nonzero"] = n_nonzero
    step = run(p, **kwargs)
    assert_sums(p, step, n_nonzero=n_nonzero)
    assert_twin(p, step, run_twin(p, **kwargs))


@pytest.mark.quarter
@pytest.mark.parametrize("n_nonzero", [None, 3], ids=["dense", "3"])
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "both"])
@pytest.mark.parametrize("n_restarts", [0, 4])
def test_starts_and_restarts_against_twin(n_restarts, cold, n_nonzero, dtype):
    p = corpus(4, n_docs=30, dtype=dtype)
    start = np.random.default_rng(1).gamma(0.2, 30.0, size=(30, 7))
    start[::4, 2:5] = 0.0
    start[3] = 0.0  # nothing to begin from: cold
    kwargs = {"start": start, "cold": cold, "n_restarts": n_restarts, "n_nonzero": n_nonzero}
    step, twin = run(p, **kwargs), run_twin(p, **kwargs)
    assert_sums(p, step, n_nonzero=n_nonzero)
    if dtype == "float64":
        assert_twin(p, step, twin)


@pytest.mark.parametrize("n_nonzero", [None, 2], ids=["dense", "2"])
def test_mass(n_nonzero, dtype):
    rng = np.random.default_rng(5)
    p = corpus(5, dtype=dtype)
    mass = rng.uniform(size=len(p.counts)) ** 3
    mass[::7] = 0.0
    mass[p.documents()[4]] = 0.0  # a document without anything to share out
    mass[p.documents()[6]] *= 1e-5
    p.counts[3::11] = 0.0
    step = run(p, mass, n_nonzero=n_nonzero, n_restarts=3)
    assert_sums(p, step, mass, n_nonzero)
    assert_twin(p, step, run_twin(p, mass, n_nonzero=n_nonzero, n_restarts=3))


@pytest.mark.quarter
@pytest.mark.parametrize("K, most", [(7, 3), (25, 20)])
@pytest.mark.parametrize("n_restarts", [0, 4])
def test_entries_with_places_of_their_own(n_restarts, K, most, dtype):
    """Each entry has as many topics as it may; beyond 16, the largest are found in another way."""
    rng = np.random.default_rng(7)
    p = corpus(7, n_docs=30, K=K, dtype=dtype)
    mass = rng.uniform(size=len(p.counts))
    places = rng.integers(1, most + 1, size=len(p.counts), dtype=np.int32)
    places[: p.indptr[1]] = 1
    kwargs = {"n_nonzero": most, "places": places, "n_restarts": n_restarts}
    step = run(p, mass, **kwargs)
    assert_sums(p, step, mass, places)
    if dtype == "float64":
        assert_twin(p, step, run_twin(p, mass, **kwargs))
    every = np.full(len(p.counts), 3, dtype=np.int32)
    for a, b in zip(
        run(p, mass, n_nonzero=3, places=every), run(p, mass, n_nonzero=3), strict=True
    ):
        assert_array_equal(a, b)


@pytest.mark.parametrize("n_nonzero", [None, 3], ids=["dense", "3"])
def test_threads_change_no_bit(n_nonzero, dtype):
    p = corpus(6, n_docs=150, K=11, dtype=dtype)
    mass = np.random.default_rng(6).uniform(size=len(p.counts))
    expected = run(p, mass, n_restarts=2, n_nonzero=n_nonzero)
    for n_threads in (2, 3, 5):
        step = run(p, mass, n_restarts=2, n_nonzero=n_nonzero, n_threads=n_threads)
        for a, b in zip(step, expected, strict=True):
            assert_array_equal(a, b)


def test_read_only_and_optional_outputs(dtype):
    p = corpus(7, dtype=dtype)
    expected = run(p)
    for a in p:
        a.setflags(write=False)
    doc_counts = np.full_like(expected.doc_counts, np.nan)
    document_step(p.table, p.indptr, p.indices, p.counts, None, p.prior, None, doc_counts, True, 300,
                  1e-9 if dtype == "float64" else 1e-3, 0, 7, None, None, None, None, 1)  # fmt: skip
    assert_array_equal(doc_counts, expected.doc_counts)


def test_sums_are_added(dtype):
    p = corpus(8, dtype=dtype)
    once, s, entropy = run(p), np.ones(p.table.shape), np.ones(7)
    for _ in range(2):
        document_step(p.table, p.indptr, p.indices, p.counts, None, p.prior, None,
                      once.doc_counts.copy(), True, 300, 1e-9 if dtype == "float64" else 1e-3, 0, 7,
                      None, s, entropy, None, 1)  # fmt: skip
    assert_allclose(s, 1 + 2 * once.s, rtol=1e-14)
    assert_allclose(entropy, 1 + 2 * once.entropy, rtol=1e-14)


@pytest.mark.parametrize("n_docs", [0, 3])
def test_no_entries(n_docs, dtype):
    p = Corpus(np.ones((4, 3), dtype=dtype), np.zeros(n_docs + 1, dtype=np.int64),
               np.zeros(0, dtype=np.int32), np.zeros(0), np.full(3, 0.1))  # fmt: skip
    step = run(p, n_threads=2)
    assert_array_equal(step.doc_counts, 0.0)
    assert_array_equal(step.s, 0.0)


@pytest.mark.parametrize("n_nonzero", [None, 2], ids=["dense", "2"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_documents_count_as_often_as_they_weigh(n_threads, n_nonzero, dtype):
    """In sums alone; with entries that go to one topic, and such of any mass."""
    rng = np.random.default_rng(15)
    p = corpus(15, n_docs=50, dtype=dtype)
    p.table[::6] = 0.0
    mass, weight = rng.uniform(size=len(p.counts)), rng.exponential(size=50)
    weight[[3, 20]] = 0.0
    plain = run(p, mass, n_nonzero=n_nonzero, n_restarts=2)
    step = run(
        p, mass, n_nonzero=n_nonzero, n_restarts=2, n_threads=n_threads, weight=weight
    )  # fmt: skip
    for name in ("doc_counts", "resp", "score"):
        assert_array_equal(getattr(step, name), getattr(plain, name))
    r = step.resp.astype(float)
    cr = (p.counts * np.repeat(weight, np.diff(p.indptr)))[:, np.newaxis] * r
    s = np.zeros(p.table.shape)
    np.add.at(s, p.rows(), cr)
    eps = np.finfo(p.table.dtype).eps
    assert_allclose(step.s, s, rtol=50 * eps, atol=50 * eps * cr.max())
    entropy = -np.sum(cr * np.log(np.where(r > 0, r, 1.0)), axis=0)
    assert_allclose(step.entropy, entropy, rtol=1e4 * eps, atol=1e4 * eps)


@pytest.mark.parametrize("n_nonzero", [None, 2], ids=["dense", "2"])
def test_no_digits_no_nan(n_nonzero, dtype):
    """Rows of zeros, priors and likelihoods near the smallest numbers, and tiny documents."""
    rng = np.random.default_rng(9)
    smallest = 1e-300 if dtype == "float64" else 1e-38
    p = corpus(9, dtype=dtype)
    p.table[rng.uniform(size=p.table.shape) < 0.5] = smallest
    p.table[rng.uniform(size=p.table.shape) < 0.3] = 0.0
    p.table[::6] = 0.0
    p.prior[:3] = 1e-10
    p.counts[::5] *= 1e-6
    start = np.zeros((20, 7))
    start[:, 0] = 1.0
    for options in ({}, {"n_restarts": 3}, {"start": start}, {"start": start, "cold": False}):
        step = run(p, n_nonzero=n_nonzero, max_iter=20, **options)
        r = step.resp.astype(float)
        assert all(np.isfinite(a).all() for a in step)
        assert_allclose(r.sum(axis=1), 1.0, rtol=1e-6)
        assert_allclose(step.s.sum(), p.counts.sum())
        assert_allclose(step.doc_counts.sum(), p.counts.sum())
        if n_nonzero:
            assert np.sum(r > 0, axis=1).max() <= n_nonzero


@pytest.mark.parametrize("n_nonzero", [None, 1, 2], ids=["dense", "1", "2"])
@pytest.mark.parametrize("tol", [0.05, 1e-8])
@pytest.mark.parametrize("seed", range(4))
def test_warm_starts_never_lose(seed, tol, n_nonzero):
    """From its own result, alone or with the cold start, whatever was dropped on the way."""
    p = corpus(10 + seed, n_docs=60, K=15, tokens=200)
    p = p._replace(prior=p.prior * 10.0 ** (seed - 2))
    step = run(p, tol=tol, n_nonzero=n_nonzero)
    for cold, n_restarts in ((False, 0), (True, 5), (False, 5), (True, 0)):
        again = run(
            p, start=step.doc_counts, cold=cold, tol=tol, n_nonzero=n_nonzero, n_restarts=n_restarts
        )
        assert np.all(again.score >= step.score - 1e-11 * np.abs(step.score))
        step = again


@pytest.mark.parametrize("n_nonzero", [None, 2], ids=["dense", "2"])
@pytest.mark.parametrize("seed", range(4))
def test_both_starts_are_no_worse_than_warm(seed, n_nonzero):
    p = corpus(20 + seed, n_docs=60, K=15)
    start = np.random.default_rng(seed).gamma(0.1, 30.0, size=(60, 15))
    start[::2] = run(p, n_restarts=5).doc_counts[::2]  # hard to beat
    kwargs = {"start": start, "n_nonzero": n_nonzero, "tol": 0.05}
    warm, cold = run(p, cold=False, **kwargs), run(p, n_nonzero=n_nonzero, tol=0.05)
    assert_array_equal(run(p, **kwargs).score, np.maximum(warm.score, cold.score))
    assert np.any(warm.score > cold.score) and np.any(warm.score < cold.score)


@pytest.mark.parametrize("n_nonzero", [None, 3], ids=["dense", "3"])
@pytest.mark.parametrize("seed", range(4))
def test_restarts_never_lose_and_often_win(seed, n_nonzero, dtype):
    p = corpus(30 + seed, n_docs=60, K=20, dtype=dtype)
    p.prior[:] = 0.02
    plain = run(p, tol=0.05, n_nonzero=n_nonzero)
    restarted = run(p, tol=0.05, n_nonzero=n_nonzero, n_restarts=5)
    gain = restarted.score - plain.score
    assert np.all(gain >= 0)
    assert np.sum(gain > 0.01) >= 5


def test_iterations_raise_the_score():
    """Coordinate ascent, as long as no topic is dropped (prior counts of 1 keep them all)."""
    p = corpus(40)._replace(prior=np.ones(7))
    # sparse shares are chosen in every tenth step from the sixth, and for the result
    for n_nonzero, steps in ((None, range(15)), (3, range(6, 50, 10))):
        scores = [run(p, max_iter=n, tol=0.0, n_nonzero=n_nonzero).score for n in steps]
        assert np.all(np.diff(scores, axis=0) >= -1e-10)


def test_sparse_with_all_topics_is_dense():
    p = corpus(41)
    for a, b in zip(run(p, n_nonzero=7), run(p, n_nonzero=1000), strict=True):
        assert_array_equal(a, b)


def exact_digamma(x):
    """psi in extended precision: 30 steps of the recurrence and the asymptotic series."""
    x = np.asarray(x, dtype=np.longdouble)
    y = x + 30
    z = 1 / (y * y)
    tail = z * (-1 / np.longdouble(12) + z * (1 / np.longdouble(120) - z * (
        1 / np.longdouble(252) - z * (1 / np.longdouble(240) - z / 132))))  # fmt: skip
    return np.log(y) - 1 / (2 * y) + tail - sum(1 / (x + i) for i in range(30))


def test_digamma_of_counts():
    """One count a topic, over the whole range: relative to psi, or to 1 about its zero."""
    x = np.logspace(-10, 8, 20_000)
    lgammas, digammas = np.full_like(x, np.nan), np.full_like(x, np.nan)
    count_terms(x, np.arange(len(x) + 1), np.zeros(len(x)), lgammas, digammas, 1)
    expected = exact_digamma(x)
    error = np.abs(digammas - expected) / np.maximum(np.abs(expected), 1.0)
    assert error.max() < 1e-14


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_count_terms(weighted):
    rng = np.random.default_rng(50)
    indptr = np.array([0, 0, 1, 8, 17, 4000, 6000], dtype=np.int64)
    values = 10.0 ** rng.uniform(-12, 7, size=6000)
    values[4000:] = 1.0 + rng.uniform(size=2000)  # between the zeros of log Gamma
    a = np.array([1.0, 0.0, 1e-10, 0.3, 2.0, 0.0])
    weight = rng.gamma(0.5, size=6000) if weighted else None
    values.setflags(write=False)
    outs = []
    for n_threads in (1, 2, 3):
        lgamma_sums, digamma_sums = np.full(6, np.nan), np.full(6, np.nan)
        count_terms(values, indptr, a, lgamma_sums, digamma_sums, n_threads, weight)
        outs.append((lgamma_sums, digamma_sums))
        assert_array_equal(outs[-1], outs[0])
    for k in range(6):
        v = values[indptr[k] : indptr[k + 1]]
        w = np.ones(len(v)) if weight is None else weight[indptr[k] : indptr[k + 1]]
        for out, f in ((lgamma_sums, gammaln), (digamma_sums, digamma)):
            # relative to the sum without cancellation, as log Gamma and psi change their signs
            size = np.sum(w * np.maximum(np.abs(f(v + a[k])), 10.0))
            assert abs(out[k] - np.sum(w * f(v + a[k]))) <= 1e-14 * size
