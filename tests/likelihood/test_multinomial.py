"""Mixtures of documents: what is particular to counts; the laws test the rest."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, MultinomialObservation


def documents(seed=0, n=300, n_tokens=80, V=40):
    """Four kinds of documents over V types."""
    rng = np.random.default_rng(seed)
    phi, labels = rng.dirichlet(np.full(V, 0.1), size=4), rng.integers(4, size=n)
    return rng.multinomial(n_tokens, phi[labels]), labels


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_kinds_of_documents_are_found(dtype):
    X, truth = documents()
    model = DPMixtureVB(observation="multinomial", random_state=0).fit(X.astype(dtype))
    assert model.n_components_ == 4
    assert adjusted_rand_score(truth, model.predict(X.astype(dtype))) == 1.0


def test_fitted_attributes():
    """Pseudo-counts are those of the prior and the tokens; their means sum to 1, (2.49) below them."""
    X, _ = documents()
    model = DPMixtureVB(observation=MultinomialObservation(prior=0.5), random_state=0).fit(X)
    assert_allclose(model.components_.sum(), X.sum() + 0.5 * model.components_.size)
    assert_allclose(model.components_.sum(axis=0), X.sum(axis=0) + 0.5 * model.n_components_)
    assert_allclose(
        model.means_, model.components_ / model.components_.sum(axis=1, keepdims=True), rtol=1e-14
    )
    assert np.all(model.exp_dirichlet_component_ < model.means_)
    assert_allclose(model.exp_dirichlet_component_, model.means_, atol=1e-2)


def test_masses_of_all_bags_sum_to_one():
    """The multinomial coefficient is in `score_samples`: it is a density over counts."""
    X, _ = documents(V=4, n_tokens=12)
    model = DPMixtureVB(observation="multinomial", max_iter=0, random_state=0).fit(X)
    for total in (0, 1, 7):
        bags = [b for b in itertools.product(range(total + 1), repeat=4) if sum(b) == total]
        assert_allclose(np.exp(model.score_samples(np.array(bags))).sum(), 1.0, rtol=1e-10)


def test_rows_of_zeros_change_no_component():
    X, _ = documents()
    model = DPMixtureVB(observation="multinomial", random_state=0).fit(np.vstack([X, 0 * X[:20]]))
    assert model.n_components_ == 4
    assert_allclose(model.components_.sum(), X.sum() + 0.2 * model.components_.size)
    assert_allclose(model.score_samples(0 * X[:1]), 0.0, atol=1e-12)


def test_sparse_and_dense_statistics_agree():
    """Zeros are skipped where they are many: the same numbers come out of either way."""
    rng = np.random.default_rng(1)
    X, _ = documents()
    model = DPMixtureVB(observation="multinomial", max_iter=0).fit(X)
    likelihood = model._learner_.model.likelihood
    s = rng.gamma(1.0, size=(5, 41)) * (rng.random((5, 41)) < 0.2)
    almost = np.where(s[:, :-1] == 0, 1e-300, s[:, :-1])  # no zeros, but not more tokens
    dense = np.hstack([almost, s[:, -1:]])
    prior = likelihood.prior
    assert_allclose(likelihood.evidence(prior, s), likelihood.evidence(prior, dense), rtol=1e-13)
    assert_allclose(
        likelihood.coefficients(prior, s), likelihood.coefficients(prior, dense), rtol=1e-13
    )
    stacked = np.stack([s, 2 * s])
    assert_array_equal(likelihood.evidence(prior, stacked)[0], likelihood.evidence(prior, s))


def test_prior_of_each_type():
    X, _ = documents()
    lam = np.linspace(0.1, 1.0, 40)
    model = DPMixtureVB(observation=MultinomialObservation(prior=lam), random_state=0).fit(X)
    assert np.all(model.components_ >= lam)


@pytest.mark.parametrize("prior", [0, -1.0, np.nan, np.inf, "flat", None, [0.1, 0.2], [0.0] * 40])
def test_prior_is_refused_by_name(prior):
    X, _ = documents()
    with pytest.raises(ValueError, match=r"prior"):
        DPMixtureVB(observation=MultinomialObservation(prior=prior)).fit(X)


@pytest.mark.parametrize("value, words", [(-3.0, "-3"), (0.25, "0.25")])
def test_counts_are_whole_numbers(value, words):
    X, _ = documents()
    bad = X.astype(float)
    bad[7, 3] = value
    model = DPMixtureVB(observation="multinomial", random_state=0)
    with pytest.raises(ValueError, match=rf"X holds {words}, but observation='multinomial'"):
        model.fit(bad)
    model.fit(X)
    with pytest.raises(ValueError, match=rf"X holds {words}, but observation='multinomial'"):
        model.predict(bad)
    # a stream is left as it was
    stream = DPMixtureVB(observation="multinomial", random_state=0).partial_fit(X)
    before = stream.lower_bound_
    with pytest.raises(ValueError, match=r"look for errors|CountVectorizer"):
        stream.partial_fit(bad)
    assert stream.lower_bound_ == before


def test_means_init_as_counts_or_proportions():
    X, truth = documents()
    means = np.array([X[truth == k].mean(axis=0) for k in range(4)])
    fits = [
        DPMixtureVB(4, observation="multinomial", means_init=m, max_iter=0, proposals=None).fit(X)
        for m in (means, means / 80)
    ]
    assert_allclose(fits[0].means_, fits[1].means_, rtol=1e-9)
    assert adjusted_rand_score(truth, fits[0].predict(X)) == 1.0
    with pytest.raises(ValueError, match="means_init"):
        DPMixtureVB(4, observation="multinomial", means_init=0 * means).fit(X)


def test_samples_are_bags_of_mean_size():
    X, _ = documents()
    model = DPMixtureVB(observation="multinomial", random_state=0).fit(X)
    rows, labels = model.sample(500, random_state=0)
    assert_array_equal(rows.sum(axis=1), 80)
    # of such documents as were learned from, each is told
    assert_array_equal(model.predict(rows), labels)
