"""Documents whose tokens are rows: short ones, columns of no block, and what is expected of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_bnp import (
    ColumnObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    PoissonObservation,
)

CENTERS = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])


@pytest.mark.quarter
@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("observation", [GaussianObservation(), PoissonObservation()])
def test_topics_of_documents_of_few_rows(observation, n_rows):
    """One row may tell its topic, as one word does not. Documents of one row had one topic."""
    rng = np.random.default_rng(0)
    X = CENTERS[rng.integers(3, size=300)] + rng.normal(size=(300, 2))
    if isinstance(observation, PoissonObservation):
        X = rng.poisson(10.0 * np.exp(0.2 * CENTERS[rng.integers(3, size=300)]))
    groups = np.arange(300) // n_rows
    model = HDPTopicVB(observation=observation, random_state=0).fit(X, groups=groups)
    start = HDPTopicVB(3, init_params="k-means++", observation=observation, random_state=0)
    assert model.n_components_ == 3
    assert model.lower_bound_ > start.fit(X, groups=groups).lower_bound_ - 1.0


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, 1])
def test_documents_that_all_mix_many_topics(seed):
    """No document tells topics apart, but rows do: a grid of clusters had 1 to 10 topics of 40."""
    rng = np.random.default_rng(seed)
    centers = 8.0 * np.array([(i, j) for i in range(8) for j in range(5)])
    labels = rng.integers(40, size=2400)
    X, groups = centers[labels] + rng.normal(size=(2400, 2)), np.arange(2400) // 6
    model = HDPTopicVB(observation="gaussian", random_state=0).fit(X, groups=groups)
    truth = HDPTopicVB(40, init_params=np.eye(40)[labels], observation="gaussian", random_state=0)
    assert model.n_components_ == 40
    assert model.lower_bound_ > truth.fit(X, groups=groups).lower_bound_ - 1.0


@pytest.mark.extended
@pytest.mark.parametrize("n_components", [2, 6, 10])
def test_blends_of_clusters_are_no_end(n_components):
    """The prior of topics as wide as blends suits no narrow ones: these fits ended with 4 and 16 topics."""
    rng = np.random.default_rng(1)
    centers = 8.0 * np.array([(i, j) for i in range(4) for j in range(5)])
    labels = rng.integers(20, size=600)
    X, groups = centers[labels] + rng.normal(size=(600, 2)), np.arange(600) // 5
    how = {"observation": "gaussian", "random_state": 0}
    model = HDPTopicVB(n_components, init_params="k-means++", **how).fit(X, groups=groups)
    truth = HDPTopicVB(20, init_params=np.eye(20)[labels], **how).fit(X, groups=groups)
    assert model.n_components_ == 20
    assert model.lower_bound_ > truth.lower_bound_ - 1.0


@pytest.mark.parametrize("estimator", [HDPTopicVB, MemoryBoundedTopicVB])
def test_columns_of_no_block_change_nothing(estimator):
    """Not even rows of which all other columns are missing, or rows of zeros."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(8, np.ones(4) / 4, size=200).astype(float)
    counts[rng.random(200) < 0.4] = 0.0
    observation = ColumnObservation([("words", "multinomial", [0, 1, 2, 3])])
    groups = np.arange(200) // 20
    model, alone = estimator(observation=observation), estimator(observation=observation)
    if estimator is HDPTopicVB:
        model.set_params(random_state=0)
        alone.set_params(random_state=0)
    alone.fit(counts, groups=groups)
    for names in (np.arange(200.0), 7.0 * np.arange(200.0) + 1.0):
        X = np.column_stack([counts, names])
        model.fit(X, groups=groups)
        assert_allclose(model.lower_bound_, alone.lower_bound_, rtol=1e-12)
        assert_allclose(
            model.score(X, groups=groups), alone.score(counts, groups=groups), rtol=1e-12
        )


def test_missing_rows_beside_columns_of_no_block():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [CENTERS[rng.integers(3, size=200)] + rng.normal(size=(200, 2)), np.arange(200)]
    )
    X[rng.random(200) < 0.4, :2] = np.nan
    observation, groups = ColumnObservation([("a", "gaussian", [0, 1])]), np.arange(200) // 20
    model, alone = (
        HDPTopicVB(observation=observation, random_state=0).fit(x, groups=groups)
        for x in (X, X[:, :2])
    )
    assert_allclose(model.lower_bound_, alone.lower_bound_, rtol=1e-12)
    assert_allclose(model.score(X, groups=groups), alone.score(X[:, :2], groups=groups), rtol=1e-12)


def test_rows_of_counts_are_expected_to_be_as_long_as_others():
    rng = np.random.default_rng(0)
    words = np.repeat([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], 60, axis=0)
    X, groups = np.array([rng.multinomial(12, p) for p in words]), np.arange(120) // 10
    model = HDPTopicVB(observation="multinomial", random_state=0).fit(X, groups=groups)
    expected = model.inverse_transform(model.transform(X, groups=groups))
    assert_allclose(expected.sum(axis=1), 12.0)


def test_an_epoch_of_documents_without_rows():
    X = np.random.default_rng(0).multinomial(12, np.ones(6) / 6, size=60)
    groups = np.repeat(np.arange(6), 10)
    X[groups < 2] = 0
    model = MemoryBoundedTopicVB(observation="multinomial", documents_per_epoch=2)
    assert model.fit(X, groups=groups).n_components_ == 1


# ---------------------------------------------------------------------- words


@pytest.mark.extended
def test_empty_documents_do_not_make_others_short():
    rng = np.random.default_rng(1)
    topics, shares = rng.dirichlet(np.full(20, 0.5), 4), rng.dirichlet(np.full(4, 0.5), 40)
    X = np.array([rng.multinomial(20_000, share @ topics) for share in shares])
    model, alone = HDPTopicVB(random_state=0), HDPTopicVB(random_state=0).fit(X)
    model.fit(np.concatenate([X, np.zeros((5000, 20), dtype=int)]))
    assert model.n_components_ == alone.n_components_ == 4


def test_responsibilities_follow_entries_that_are_not_sorted():
    X = sparse.csr_matrix(np.random.default_rng(0).poisson(1.5, (30, 6)))[:, ::-1]
    X.has_sorted_indices = False
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    )
    unsorted = sparse.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    ones = {"proposals": None, "max_iter": 0, "topic_word_prior": 0.1}
    found = [
        HDPTopicVB(
            2, init_params=(x.indices[:, np.newaxis] // 3 == np.arange(2)).astype(float), **ones
        )
        .fit(x)
        .components_
        for x in (unsorted, unsorted.sorted_indices())
    ]
    assert_allclose(found[0], found[1])


def test_topics_and_responsibilities_of_the_same_shape():
    rng = np.random.default_rng(0)
    X, resp = rng.integers(1, 9, (40, 3)), rng.dirichlet(np.ones(3), 120)
    fixed = {"init_params": resp, "proposals": None, "max_iter": 0}
    assert HDPTopicVB(3, **fixed).fit(X).n_components_ == 3
    assert HDPTopicVB(120, **fixed).fit(X).n_components_ == 120
    with pytest.raises(ValueError, match=r"init_params has shape \(120, 3\).*set n_components"):
        HDPTopicVB(**fixed).fit(X)
