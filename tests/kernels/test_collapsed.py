"""`collapsed_shares` against documents solved one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._collapsed import collapsed_shares
from tests.reference import collapsed

from .test_topics import corpus


def run(p, max_iter=5000, tol=1e-10, n_threads=1):
    K = p.table.shape[1]
    counts, resp = np.full((len(p.indptr) - 1, K), np.nan), np.full((len(p.counts), K), np.nan)
    collapsed_shares(
        p.table, p.indptr, p.indices, p.counts, p.prior, counts, resp, max_iter, tol, n_threads
    )
    return counts, resp


def problem(rows, counts=None, prior=(0.3, 0.7)):
    """One document of entries with these likelihoods."""
    table = np.array(rows, dtype=float)
    counts = np.ones(len(table)) if counts is None else np.array(counts, dtype=float)
    whole = corpus(0, n_docs=1)
    return whole._replace(
        table=table, indptr=np.array([0, len(table)]), indices=None, counts=counts,
        prior=np.array(prior, dtype=float),
    )  # fmt: skip


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize(("K", "tokens"), [(1, 20), (2, 3), (7, 80), (40, 15)])
@pytest.mark.parametrize("max_iter", [0, 1, 7, 500])
def test_documents_are_solved_as_by_hand(words, K, tokens, max_iter):
    p = corpus(K + tokens, K=K, tokens=tokens, words=words, zeros=0.1)
    p.table[p.table.max(axis=1) == 0] = 1.0
    counts, resp = run(p, max_iter, 1e-6)
    for d, entries in enumerate(p.documents()):
        c = p.counts[entries]
        expected = collapsed.shares(p.table[p.rows()[entries]], c, p.prior, max_iter, 1e-6)
        if len(c):
            assert_allclose(resp[entries], expected, atol=1e-8)
        assert_allclose(counts[d], c @ resp[entries], atol=1e-9)


def test_the_end_is_a_fixed_point():
    """Tokens have the topics that follow from all others of their document."""
    p = corpus(3, n_docs=60, K=12, tokens=25)
    p.counts[::3] *= 0.4
    counts, resp = run(p)
    for d, entries in enumerate(p.documents()):
        own = np.minimum(p.counts[entries], 1.0)[:, np.newaxis] * resp[entries]
        weight = p.table[p.rows()[entries]] * (counts[d] - own + p.prior)
        assert_allclose(resp[entries], weight / weight.sum(axis=1, keepdims=True), atol=1e-8)


def test_one_token_is_exact():
    p = corpus(5, n_docs=30, tokens=1)
    counts, resp = run(p, tol=0.05)
    for d, entries in enumerate(p.documents()):
        if p.counts[entries].sum() == 1:
            exact = collapsed.exact_shares(p.table[p.rows()[entries]], p.prior)
            assert_allclose(resp[entries], exact, rtol=1e-12)
            assert_allclose(counts[d], exact[0], rtol=1e-12)


def test_few_tokens_are_near_the_truth():
    """Closer to the exact posterior than tokens that do not know of each other."""
    p = corpus(6, n_docs=60, K=4, tokens=4)
    counts, _ = run(p)
    error, alone = [], []
    for d, entries in enumerate(p.documents()):
        c = p.counts[entries].astype(int)
        if c.sum() == 4:
            table = np.repeat(p.table[p.rows()[entries]], c, axis=0)
            exact = collapsed.exact_shares(table, p.prior).sum(axis=0)
            error.append(np.abs(counts[d] - exact).sum())
            each = table * p.prior
            alone.append(np.abs((each.T / each.sum(axis=1)).sum(axis=1) - exact).sum())
    assert len(error) > 50
    assert np.mean(error) < 0.3 * np.mean(alone)


def test_tokens_do_not_swap_places():
    """Two tokens that prefer different topics, whole steps of which would alternate."""
    p = problem([[1.0, 0.05], [0.05, 1.0]], prior=(1e-6, 1e-6))
    _, resp = run(p, max_iter=40, tol=1e-6)
    others = resp[::-1] + p.prior
    weight = p.table * others
    assert_allclose(resp, weight / weight.sum(axis=1, keepdims=True), atol=1e-3)


def test_an_entry_that_counts_is_several():
    rows = np.random.default_rng(0).uniform(size=(3, 2))
    counts, resp = run(problem(rows, [1, 3, 2]))
    many, each = run(problem(rows[[0, 1, 1, 1, 2, 2]]))
    assert_allclose(counts, many, atol=1e-8)
    assert_allclose(resp, each[[0, 1, 4]], atol=1e-8)


def test_order_of_entries_does_not_matter():
    rng = np.random.default_rng(1)
    rows, order = rng.uniform(size=(30, 6)) ** 3, rng.permutation(30)
    prior = rng.uniform(0.01, 1.0, size=6)
    one, two = run(problem(rows, prior=prior)), run(problem(rows[order], prior=prior))
    assert_allclose(one[0], two[0], atol=1e-8)
    assert_allclose(one[1][order], two[1], atol=1e-8)


def test_documents_do_not_know_of_each_other():
    p = corpus(7, n_docs=50, K=20)
    counts, resp = run(p, tol=0.05)
    for d, entries in enumerate(p.documents()):
        alone = p._replace(
            indptr=np.array([0, entries.stop - entries.start]), indices=p.indices[entries],
            counts=p.counts[entries],
        )  # fmt: skip
        one, each = run(alone, tol=0.05)
        assert_array_equal(one[0], counts[d])
        assert_array_equal(each, resp[entries])


def test_threads_do_not_matter():
    p = corpus(8, n_docs=100, K=20)
    for one, two in zip(run(p), run(p, n_threads=3), strict=True):
        assert_array_equal(one, two)


def test_nothing_to_do():
    p = corpus(9, n_docs=1)
    empty = p._replace(indptr=np.array([0, 0, 0]), indices=p.indices[:0], counts=p.counts[:0])
    assert_array_equal(run(empty)[0], np.zeros((2, 7)))
    none = empty._replace(indptr=np.array([0]))
    assert run(none)[0].shape == (0, 7)


def test_extremes():
    """Priors of next to nothing, likelihoods that rule topics out, counts beyond single tokens."""
    p = problem([[1.0, 0.0], [1e-300, 1.0], [1.0, 1.0]], [1e6, 1e-6, 2.5], prior=(1e-290, 1e3))
    counts, resp = run(p)
    assert_allclose(resp.sum(axis=1), 1.0)
    assert_allclose(resp[0], [1.0, 0.0])
    assert counts.sum() == pytest.approx(p.counts.sum())
