"""The scores that topic models are compared by, against counting by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from tests.benchmarks import corpora


@pytest.fixture(scope="module")
def bars():
    return corpora.bars(1, n_docs=20, n_heldout=30)


def test_corpora_are_counts_and_repeat(bars):
    again = corpora.bars(1, n_docs=20, n_heldout=30)
    assert (bars.train != again.train).nnz == 0
    assert bars.train.shape == (20, 900) and bars.train.dtype == np.int64
    assert_array_equal(bars.train.sum(axis=1), 200)
    assert_allclose(bars.phi.sum(axis=1), 1.0)


@pytest.mark.parametrize("by", ["types", "tokens"])
def test_parts_of_a_document_make_it_up(bars, by):
    split = corpora.completion(bars.heldout, 0, by)
    seen, hidden = split.observed.toarray(), split.hidden.toarray()
    assert_array_equal(seen + hidden, bars.heldout.toarray())
    assert seen.min() >= 0 and hidden.min() >= 0
    if by == "types":
        assert not np.any((seen > 0) & (hidden > 0))
        share = (hidden > 0).sum(axis=1) / np.diff(bars.heldout.indptr)
        assert_allclose(share, 0.2, atol=0.01)
    else:
        assert_array_equal(hidden.sum(axis=1), 100)


@pytest.mark.parametrize("by", ["types", "tokens"])
def test_short_documents_are_shown_as_a_whole(by):
    X = sparse.csr_matrix([[0, 0, 0], [0, 1, 0]])
    split = corpora.completion(X, 0, by)
    assert split.hidden.nnz == 0
    assert_array_equal(split.observed.toarray(), X.toarray())


def test_completion_counted_by_hand(bars):
    """Token by token; topics need not be normalised."""
    split = corpora.completion(bars.heldout, 0)
    pi = np.random.default_rng(0).dirichlet(np.ones(10), size=30)
    hidden = split.hidden.tocoo()
    expected = sum(
        n * np.log(pi[d] @ bars.phi[:, v])
        for d, v, n in zip(hidden.row, hidden.col, hidden.data, strict=True)
    )
    actual = corpora.completion_score(split, 7.0 * bars.phi, lambda X: pi, block=8)
    assert_allclose(actual, expected / hidden.data.sum(), rtol=1e-12)
    with pytest.raises(ValueError, match="sum to 1"):
        corpora.completion_score(split, bars.phi, lambda X: 2.0 * pi)


def test_inference_is_that_of_scikit_learn(bars):
    """Under the same fixed topics; both stop a little short of the fixed point."""
    peer = LatentDirichletAllocation(
        10, doc_topic_prior=0.1, max_iter=1, max_doc_update_iter=5000, mean_change_tol=1e-7,
        random_state=0,
    ).fit(bars.train)  # fmt: skip
    peer.components_, peer.exp_dirichlet_component_ = bars.phi, bars.phi
    expected = peer.transform(bars.heldout)
    assert_allclose(corpora.fold_in(bars.phi, 0.1)(bars.heldout), expected, atol=1e-3)


def test_topics_are_matched_one_to_one(bars):
    junk = np.ones((3, 900)) / 900
    everything = corpora.match_topics(np.vstack([junk, bars.phi[::-1]]), bars.phi)
    assert everything.n_matched == 10
    assert_array_equal(everything.partner, 12 - np.arange(10))
    assert_allclose(everything.distance, 0.0, atol=1e-12)
    some = corpora.match_topics(np.vstack([bars.phi[:4], bars.phi[:4]]), bars.phi)
    assert some.n_matched == 4
    # a blend is its greater part, and not its lesser one
    blurred = 0.3 * bars.phi[:1] + 0.7 * bars.phi[1:2]
    assert corpora.match_topics(blurred, bars.phi).n_matched == 1
    assert corpora.match_topics(blurred, bars.phi[:1]).n_matched == 0
