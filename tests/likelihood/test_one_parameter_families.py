"""Poisson counts and Gaussians of known or shared variances: what is particular; laws test the rest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import (
    HDPHMMVB,
    BernoulliObservation,
    ColumnObservation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    HDPTopicVB,
    PoissonObservation,
)
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments

RATES = np.array([[1.0, 20.0, 4.0], [9.0, 2.0, 30.0], [25.0, 6.0, 0.5]])
CENTERS = np.array([[0.0, 900.0, 0.2], [6.0, 900.0, 0.5], [0.0, 300.0, 0.5]])
VARIANCE = np.array([1.0, 2500.0, 0.0025])


def counts(labels, seed=0):
    return np.random.default_rng(seed).poisson(RATES[labels]).astype(float)


def clouds(labels, seed=0):
    noise = np.random.default_rng(seed).standard_normal((len(labels), 3))
    return CENTERS[labels] + noise * np.sqrt(VARIANCE)


CASES = pytest.mark.parametrize(
    ("observation", "rows"),
    [
        pytest.param("poisson", counts, id="poisson"),
        pytest.param("fixed_variance_gaussian", clouds, id="shared"),
        pytest.param(FixedVarianceGaussianObservation(VARIANCE), clouds, id="fixed"),
    ],
)
LABELS = np.repeat([0, 1, 2], [150, 100, 50])


# ---------------------------------------------------------------------- all three estimators


@pytest.mark.quarter
@CASES
def test_clusters_are_found(observation, rows):
    X = rows(LABELS)
    for data in (X, X.astype(np.float32)):
        model = DPMixtureVB(observation=observation, random_state=0).fit(data)
        assert model.n_components_ == 3
        assert adjusted_rand_score(LABELS, model.predict(data)) >= 0.99
    assert_allclose(model.score_samples(X), model.score_samples(data), rtol=1e-3)
    drawn, labels = model.sample(600, random_state=0)
    assert adjusted_rand_score(labels, model.predict(drawn)) >= 0.99


@CASES
def test_one_cluster_is_left_whole(observation, rows):
    X = rows(np.zeros(400, dtype=int))
    assert DPMixtureVB(observation=observation, random_state=0).fit(X).n_components_ == 1


@CASES
def test_topics_of_rows(observation, rows):
    """Forty documents that mix the clusters in shares of their own."""
    rng = np.random.default_rng(1)
    labels = np.concatenate([rng.choice(3, 25, p=p) for p in rng.dirichlet(np.ones(3), 40)])
    groups = np.repeat(np.arange(40), 25)
    X = rows(labels)
    model = HDPTopicVB(observation=observation, random_state=0).fit(X, groups=groups)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) >= 0.99


@pytest.mark.quarter
@CASES
def test_states_of_sequences(observation, rows):
    labels = np.repeat(np.tile([0, 1, 2, 1], 10), 15)
    X = rows(labels)
    model = HDPHMMVB(observation=observation, random_state=0).fit([X[:300], X[300:]])
    assert model.n_components_ == 3
    found = np.concatenate(model.predict([X[:300], X[300:]]))
    assert adjusted_rand_score(labels, found) >= 0.99


@pytest.mark.quarter
@CASES
def test_streams(observation, rows):
    order = np.random.default_rng(2).permutation(len(LABELS))
    X = rows(LABELS)
    model = DPMixtureVB(observation=observation, random_state=0)
    for _ in range(3):
        for part in np.array_split(order, 4):
            model.partial_fit(X[part])
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.99


# ---------------------------------------------------------------------- Poisson


def test_rates():
    """Posterior means under the user's prior, in the order of the weights."""
    X = counts(LABELS)
    model = DPMixtureVB(observation=PoissonObservation((2.0, 0.5)), random_state=0).fit(X)
    sums = np.array([X[k == LABELS].sum(axis=0) for k in range(3)])
    expected = (2.0 + sums) / (0.5 + np.array([[150], [100], [50]]))
    assert_allclose(model.means_, expected, rtol=1e-3)


def test_masses_of_all_counts_sum_to_one():
    """The factorials are in `score_samples`; beyond 150 events there is nothing left of the tails."""
    X = counts(LABELS)[:, :1]
    model = DPMixtureVB(observation="poisson", random_state=0).fit(X)
    every = np.arange(150.0)[:, np.newaxis]
    assert_allclose(np.exp(model.score_samples(every)).sum(), 1.0, rtol=1e-9)


def test_columns_of_zeros_change_nothing():
    """Empirical Bayes ends at rates that are next to nothing."""
    X = counts(LABELS)
    a = DPMixtureVB(observation="poisson", random_state=0).fit(X)
    b = DPMixtureVB(observation="poisson", random_state=0).fit(np.hstack([X, 0 * X]))
    assert_array_equal(a.predict(X), b.predict(np.hstack([X, 0 * X])))
    assert np.all(b.means_[:, 3:] < 1e-3)


@pytest.mark.parametrize("value, words", [(-3.0, "-3"), (0.25, "0.25")])
def test_counts_are_whole_numbers(value, words):
    bad = counts(LABELS)
    bad[7, 1] = value
    model = DPMixtureVB(observation="poisson", random_state=0)
    with pytest.raises(ValueError, match=rf"X holds {words}, but observation='poisson'"):
        model.fit(bad)
    model.partial_fit(counts(LABELS))
    before = model.lower_bound_
    with pytest.raises(ValueError, match=rf"X holds {words}, but observation='poisson'"):
        model.partial_fit(bad)
    assert model.lower_bound_ == before


def test_means_init_of_rates():
    X = counts(LABELS)
    given = {"max_iter": 0, "proposals": None, "observation": "poisson"}
    model = DPMixtureVB(3, means_init=RATES + 0.25, **given).fit(X)
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.99


@pytest.mark.parametrize(
    ("observation", "value", "words"),
    [
        ("poisson", -2.0, "means_init holds -2, but must hold rates"),
        ("bernoulli", -2.0, "means_init holds -2, but must hold probabilities"),
        ("bernoulli", 1.5, "means_init holds 1.5, but must hold probabilities"),
        ("multinomial", -2.0, "means_init must hold counts or proportions"),
        ("categorical", 0.5, "means_init must hold codes of categories"),
        ("categorical", 7.0, "means_init must hold codes of categories"),
    ],
)
@pytest.mark.parametrize("in_block", [False, True])
def test_means_init_that_cannot_be(observation, value, words, in_block):
    X = np.tile([[0, 1], [1, 0], [1, 1]], (20, 1))
    if in_block:
        observation = ColumnObservation([("both", observation, slice(None))])
        words = f"In block 'both'.*{words}"
    model = DPMixtureVB(2, observation=observation, means_init=[[1, 1], [1, value]])
    with pytest.raises(ValueError, match=words):
        model.fit(X)


# ---------------------------------------------------------------------- variances


def test_shared_variances_are_found():
    """300 rows tell a variance to 8 %; the same numbers stand for every component."""
    model = DPMixtureVB(observation="fixed_variance_gaussian", random_state=0).fit(clouds(LABELS))
    assert_allclose(model.covariances_, np.tile(VARIANCE, (3, 1)), rtol=0.25)
    assert np.all(model.covariances_ == model.covariances_[0])


def test_given_variance_decides_what_is_told_apart():
    """Four clusters in two pairs: the user's variance says which of them are meant."""
    rng = np.random.default_rng(3)
    centers = np.array([[-10.0], [-9.0], [9.0], [10.0]])
    X = np.repeat(centers, 100, axis=0) + 0.1 * rng.standard_normal((400, 1))
    for variance, K in ((0.01, 4), (1.0, 2), (400.0, 1)):
        observation = FixedVarianceGaussianObservation(variance)
        model = DPMixtureVB(observation=observation, random_state=0).fit(X)
        assert model.n_components_ == K
        assert_allclose(model.covariances_, variance, rtol=1e-12)


def test_means_shrink_towards_the_prior():
    X = clouds(LABELS)
    prior_mean, spread = np.array([1.0, 500.0, 0.3]), np.array([0.04, 900.0, 0.01])
    observation = FixedVarianceGaussianObservation(
        VARIANCE, mean_prior=prior_mean, mean_variance_prior=spread
    )
    model = DPMixtureVB(
        observation=observation, init_params=np.eye(3)[LABELS], max_iter=0, proposals=None
    ).fit(X)
    for k, mean in enumerate(model.means_):
        rows = X[k == LABELS]
        precision = 1.0 / spread + len(rows) / VARIANCE
        expected = (prior_mean / spread + rows.sum(axis=0) / VARIANCE) / precision
        assert_allclose(mean, expected, rtol=1e-10)


def test_density_in_units_of_the_data():
    """Of one component of many rows, whose mean is known: scipy's normal density."""
    X = clouds(np.zeros(20_000, dtype=int))
    observation = FixedVarianceGaussianObservation(VARIANCE)
    model = DPMixtureVB(observation=observation, proposals=None, random_state=0).fit(X)
    expected = stats.norm.logpdf(X[:50], X.mean(axis=0), np.sqrt(VARIANCE)).sum(axis=1)
    # what is not known of the mean blurs a row by 1 / 20000 of its variance
    assert_allclose(model.score_samples(X[:50]), expected, atol=2e-3)


@pytest.mark.parametrize("variance", [None, [*VARIANCE, 4.0]])
def test_constant_columns(variance):
    X = np.column_stack([clouds(LABELS), np.full(300, 7.0)])
    observation = FixedVarianceGaussianObservation(variance)
    model = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert model.n_components_ == 3
    assert_allclose(model.means_[:, 3], 7.0)
    assert np.all(np.isfinite(model.score_samples(X)))


def test_values_that_return_are_not_components():
    """Whole numbers: a variance shared by components of one value each would vanish."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(0.0, 1.5, size=(600, 2)))
    model = DPMixtureVB(observation="fixed_variance_gaussian", random_state=0).fit(X)
    assert model.n_components_ == 1


@pytest.mark.parametrize("observation", [PoissonObservation(), FixedVarianceGaussianObservation()])
def test_moves_of_priors_do_not_cancel(observation):
    """One column up and another down is a long way."""
    moments = column_moments([Batch(None, np.arange(20.0).reshape(10, 2))], covariance=False)
    likelihood = observation.bind(moments)
    field = "b" if isinstance(observation, PoissonObservation) else "variance"
    prior = likelihood.prior
    moved = prior._replace(**{field: getattr(prior, field) * [100.0, 0.01]})
    assert likelihood.prior_distance(prior, moved) == pytest.approx(np.log(100.0))


@pytest.mark.parametrize("least", [1e-100, 1e-20, 1e-3])
def test_a_column_of_ones_leaves_the_prior_of_zeros(least):
    """A prior that is tiny beside the counts is not lost in them: the density of a zero is tiny, not 0."""
    X = np.ones((50, 3))
    model = DPMixtureVB(observation=BernoulliObservation(prior=(1.0, least)), proposals=None).fit(X)
    log_density = model.score_samples(np.array([[1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(log_density, np.log(least) - np.log(51.0), rtol=1e-3)
