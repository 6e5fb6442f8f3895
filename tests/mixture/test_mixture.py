"""The public face of `DPMixtureVB`: parameters, fitted attributes, methods."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_bnp import BernoulliObservation, DPMixtureVB, GaussianObservation
from sklearn_bnp.likelihood.bernoulli import BernoulliLikelihood
from sklearn_bnp.likelihood.seeding import lloyd
from tests.estimators import CENTERS, SHARES, blobs

X, truth = blobs(300)
K, D = CENTERS.shape
COVARIANCE_TYPES = ("full", "diag", "spherical")
SHAPES = {"full": (K, D, D), "diag": (K, D), "spherical": (K,)}
ORDER = np.argsort(SHARES)[::-1]  # of the clusters by weight


@pytest.fixture(scope="module", params=COVARIANCE_TYPES)
def fitted(request):
    observation = GaussianObservation(request.param)
    return DPMixtureVB(observation=observation, random_state=0).fit(X)


def as_matrices(values, covariance_type):
    """Matrices (K, D, D) from what a covariance type keeps of them."""
    if covariance_type == "full":
        return values
    return np.reshape(values, (len(values), -1, 1)) * np.eye(D)


# ---------------------------------------------------------------------- attributes


def test_finds_the_clusters(fitted):
    assert fitted.n_components_ == K
    assert adjusted_rand_score(truth, fitted.predict(X)) == 1.0
    np.testing.assert_allclose(fitted.weights_, np.array(SHARES)[ORDER], atol=0.01)
    np.testing.assert_allclose(fitted.means_, CENTERS[ORDER], atol=0.5)


def test_attributes_have_the_promised_types(fitted):
    covariance_type = fitted.observation.covariance_type
    assert isinstance(fitted.n_components_, int)
    assert isinstance(fitted.n_iter_, int)
    assert isinstance(fitted.converged_, bool)
    assert isinstance(fitted.lower_bound_, float)
    assert isinstance(fitted.lower_bounds_, list)
    assert fitted.n_features_in_ == D
    assert fitted.weights_.shape == (K,)
    assert fitted.means_.shape == (K, D)
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(fitted, name).shape == SHAPES[covariance_type], name
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(fitted, name).dtype == np.float64, name


def test_components_are_sorted_by_weight(fitted):
    assert fitted.weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.diff(fitted.weights_) < 0)
    assert np.array_equal(np.bincount(fitted.predict(X)), np.bincount(truth)[ORDER])


def test_covariances_are_inverse_precisions(fitted):
    covariance_type = fitted.observation.covariance_type
    product = as_matrices(fitted.covariances_, covariance_type) @ as_matrices(
        fitted.precisions_, covariance_type
    )
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(D), (K, D, D)), atol=1e-12)


@pytest.mark.quarter
@pytest.mark.parametrize("constant", [False, True], ids=["", "constant column"])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_scikit_learn_reads_our_precisions_cholesky(covariance_type, constant):
    rows = np.column_stack([X, np.full(len(X), 7.0)]) if constant else X
    observation = GaussianObservation(covariance_type)
    ours = DPMixtureVB(observation=observation, random_state=0).fit(rows)
    peer = GaussianMixture(K, covariance_type=covariance_type)
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        setattr(peer, name, getattr(ours, name))
    peer.n_features_in_ = rows.shape[1]
    if covariance_type == "full":
        assert np.array_equal(ours.precisions_cholesky_, np.triu(ours.precisions_cholesky_))
    density = np.array([
        multivariate_normal(mean, np.eye(rows.shape[1]) * covariance).logpdf(rows)
        if covariance_type != "full" else multivariate_normal(mean, covariance).logpdf(rows)
        for mean, covariance in zip(ours.means_, ours.covariances_, strict=True)
    ])  # fmt: skip
    np.testing.assert_allclose(peer._estimate_log_prob(rows), density.T, rtol=1e-8, atol=1e-8)
    assert np.array_equal(peer.predict(rows), ours.predict(rows))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_zero_mean(covariance_type):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [200, 100])
    rows = rng.normal(size=(300, 2)) * np.array([1.0, 30.0])[labels, np.newaxis]
    observation = GaussianObservation(covariance_type, zero_mean=True)
    model = DPMixtureVB(observation=observation, random_state=0).fit(rows)
    assert model.n_components_ == 2
    assert not model.means_.any()
    scales = as_matrices_diagonal(model.covariances_, covariance_type)
    np.testing.assert_allclose(scales, [[1.0] * 2, [900.0] * 2], rtol=0.3)


def as_matrices_diagonal(values, covariance_type):
    """Variances (K, 2) from what a covariance type keeps."""
    if covariance_type == "full":
        return np.diagonal(values, axis1=1, axis2=2)
    return np.broadcast_to(np.reshape(values, (len(values), -1)), (len(values), 2))


def test_bernoulli():
    rng = np.random.default_rng(0)
    probabilities = np.array([[0.9] * 4 + [0.1] * 4, [0.1] * 4 + [0.9] * 4])
    labels = np.repeat([0, 1], [200, 100])
    rows = (rng.random((300, 8)) < probabilities[labels]).astype(float)
    model = DPMixtureVB(observation="bernoulli", random_state=0).fit(rows)
    assert adjusted_rand_score(labels, model.predict(rows)) > 0.95
    np.testing.assert_allclose(model.means_, probabilities, atol=0.1)
    assert not hasattr(model, "covariances_")
    drawn, _ = model.sample(50, random_state=0)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    every_row = ((np.arange(256)[:, np.newaxis] >> np.arange(8)) & 1).astype(float)
    assert np.exp(model.score_samples(every_row)).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.extended
def test_attributes_of_another_likelihood_do_not_stay():
    model = DPMixtureVB(random_state=0).fit(X)
    assert hasattr(model, "covariances_")
    model.set_params(observation="bernoulli").fit((X > 0).astype(float))
    assert not hasattr(model, "covariances_")
    assert hasattr(model.set_params(observation="gaussian").fit(X), "covariances_")


# ---------------------------------------------------------------------- objective and history


def test_lower_bound_is_the_sum_of_its_terms(fitted):
    assert set(fitted.elbo_terms_) == {"data", "entropy", "allocation"}
    assert fitted.lower_bound_ == pytest.approx(sum(fitted.elbo_terms_.values()), rel=1e-12)


def test_history_tells_what_each_lap_did(fitted):
    assert fitted.n_iter_ == len(fitted.history_) == len(fitted.lower_bounds_)
    assert [lap.lap for lap in fitted.history_] == list(range(1, fitted.n_iter_ + 1))
    assert [lap.lower_bound for lap in fitted.history_] == fitted.lower_bounds_
    assert fitted.lower_bounds_[-1] == fitted.lower_bound_
    assert fitted.history_[-1].n_components == fitted.n_components_
    assert fitted.converged_
    for lap in fitted.history_:
        assert lap.seconds >= lap.proposal_seconds >= 0
        assert (
            set(lap.accepted)
            <= set(lap.tried)
            <= {"birth", "merge", "delete", "regroup", "relocate"}
        )
        assert all(lap.tried[kind] >= n > 0 for kind, n in lap.accepted.items())
    assert sum(lap.accepted.get("birth", 0) for lap in fitted.history_) >= 1


def test_objective_never_falls_after_the_first_lap(fitted):
    bounds = np.array(fitted.lower_bounds_)
    assert np.all(np.diff(bounds) > -1e-9 * np.abs(bounds[1:]))


def test_warns_if_not_converged():
    model = DPMixtureVB(max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 laps") as record:
        model.fit(X)
    assert record[0].filename == __file__  # points at the user's line
    assert not model.converged_
    assert model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(max_iter=0).fit(X)
        model.set_params(max_iter=2, learning_method="stochastic", n_components=3).fit(X)


# ---------------------------------------------------------------------- methods


def test_predictions_agree(fitted):
    resp = fitted.predict_proba(X)
    assert resp.shape == (len(X), K)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, atol=1e-12)
    labels = fitted.predict(X)
    assert labels.dtype.kind == "i"
    assert np.array_equal(labels, resp.argmax(axis=1))
    assert np.array_equal(fitted.transform(X), resp)
    assert np.array_equal(fitted.predict(X[:7]), labels[:7])
    again = DPMixtureVB(observation=fitted.observation, random_state=0)
    assert np.array_equal(again.fit_predict(X), labels)


def test_feature_names_out(fitted):
    assert fitted.get_feature_names_out().tolist() == [f"dpmixturevb{k}" for k in range(K)]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_predictive_density_integrates_to_one(covariance_type):
    # One column, few rows: heavy tails, where a plug-in density would show.
    rows = 30.0 * np.random.default_rng(0).normal(size=(12, 1)) + 500.0
    model = DPMixtureVB(observation=GaussianObservation(covariance_type), random_state=0).fit(rows)
    # x = 500 + sinh(t) reaches far into the tails
    t = np.linspace(-25, 25, 20001)
    density = np.exp(model.score_samples(500.0 + np.sinh(t)[:, np.newaxis])) * np.cosh(t)
    assert np.sum(density) * (t[1] - t[0]) == pytest.approx(1.0, abs=1e-4)


def test_predictive_density_integrates_to_one_in_the_plane():
    rows = blobs(60)[0][:, :2]
    model = DPMixtureVB(random_state=0).fit(rows)
    t = np.linspace(-9, 9, 401)
    grid = np.sinh(np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2))
    density = np.exp(model.score_samples(grid)) * np.sqrt(1.0 + grid**2).prod(axis=1)
    assert np.sum(density) * (t[1] - t[0]) ** 2 == pytest.approx(1.0, abs=2e-3)


def test_score_is_the_mean_over_rows(fitted):
    scores = fitted.score_samples(X)
    assert scores.shape == (len(X),)
    assert fitted.score(X) == pytest.approx(scores.mean())
    assert isinstance(fitted.score(X), float)
    # uncertainty costs little near the data, and the score does not depend on the other rows
    peer = GaussianMixture(K, random_state=0).fit(X)
    assert fitted.score(X) == pytest.approx(peer.score(X), abs=0.1)
    assert fitted.score_samples(X[5:6])[0] == pytest.approx(scores[5])


def test_samples_look_like_the_data(fitted):
    rows, labels = fitted.sample(4000, random_state=1)
    assert rows.shape == (4000, D)
    assert labels.shape == (4000,)
    assert np.all(np.diff(labels) >= 0)
    np.testing.assert_allclose(np.bincount(labels) / 4000, fitted.weights_, atol=0.03)
    for k in range(K):
        np.testing.assert_allclose(rows[labels == k].mean(axis=0), fitted.means_[k], atol=0.15)
    spread = np.cov(rows[labels == 0].T)
    expected = as_matrices(fitted.covariances_, fitted.observation.covariance_type)[0]
    np.testing.assert_allclose(spread, expected, atol=0.15)


def test_samples_are_reproducible(fitted):
    first, second = fitted.sample(5, random_state=3), fitted.sample(5, random_state=3)
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(fitted.sample(5)[0], fitted.sample(5)[0])  # the seed of the estimator
    assert fitted.sample()[0].shape == (1, D)


class ProbabilitiesLikelihood(BernoulliLikelihood):
    """A likelihood whose attributes have names of their own."""

    def attributes(self, prior, s):
        return {"probabilities_": super().attributes(prior, s)["means_"]}

    def sample(self, attributes, labels, rng):
        return super().sample({"means_": attributes["probabilities_"]}, labels, rng)


class ProbabilitiesObservation(BernoulliObservation):
    def bind(self, moments, *, streaming=False):
        return ProbabilitiesLikelihood(super().bind(moments, streaming=streaming).prior)


@pytest.mark.extended
def test_any_attributes_will_do_to_sample():
    rows = (X > 0).astype(float)
    model = DPMixtureVB(observation=ProbabilitiesObservation(), random_state=0).fit(rows)
    plain = DPMixtureVB(observation="bernoulli", random_state=0).fit(rows)
    assert_array_equal(model.probabilities_, plain.means_)
    for found, expected in zip(model.sample(20), plain.sample(20), strict=True):
        assert_array_equal(found, expected)


def test_names_of_initialisations_that_scikit_learn_has():
    bounds = {
        name: DPMixtureVB(6, init_params=name, proposals=None, max_iter=0, random_state=0)
        .fit(X)
        .lower_bound_
        for name in ("k-means++", "kmeans", "random", "random_from_data")
    }
    assert bounds["random_from_data"] == bounds["random"]
    assert len(set(bounds.values())) == 3  # kmeans makes more steps than k-means++


def test_kmeans_goes_on_until_no_row_changes_its_component():
    points = np.random.default_rng(0).normal(size=(300, 2))
    mass = np.ones(300)
    resp = lloyd(points, mass, 5, np.random.RandomState(0), n_steps=100)
    centers = resp.T @ points / resp.sum(axis=0)[:, np.newaxis]
    nearest = ((points[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(resp.argmax(axis=1), nearest)
    first = lloyd(points, mass, 5, np.random.RandomState(0), n_steps=3)
    assert not np.array_equal(first, resp)
