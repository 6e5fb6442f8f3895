"""How firmly the prior holds means, learned by empirical Bayes: kappa of Gaussians, the spread of others."""

import io

import joblib
import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation, GaussianObservation
from sklearn_bnp.estimator.soundness.likelihoods import check_prior

SHAPES = ("full", "diag", "spherical")


def narrow(seed=0, width=0.003):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(size=(8, 2))
    return np.repeat(centers, 100, axis=0) + 0.3 * width * rng.standard_normal((800, 2))


@pytest.mark.quarter
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("scale", [None, "data"])
def test_steps_do_not_lower_the_evidence(shape, missing, scale):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.standard_normal((5, 3)), 40, axis=0) + 0.02 * rng.standard_normal((200, 3))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    observation = GaussianObservation(shape, covariance_prior=scale)
    model = DPMixtureVB(observation=observation, random_state=0).fit(X)
    own = model._model.likelihood
    prior, s = own.prior, model._statistics
    values = [own.evidence(prior, s).sum()]
    for _ in range(200):
        prior = own.update_prior(prior, s, 1)
        values.append(own.evidence(prior, s).sum())
    assert np.diff(values).min() > -1e-9 * abs(values[0])
    if prior.kappa < 0.01:  # a stationary point
        near = [own.evidence(prior._replace(kappa=prior.kappa * f), s).sum() for f in (0.99, 1.01)]
        assert max(near) < values[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_narrow_clusters_have_their_widths(shape):
    X = narrow()
    model = DPMixtureVB(observation=GaussianObservation(shape), random_state=0).fit(X)
    assert model.n_components_ == 8
    precision = np.asarray(model.precisions_)
    variance = 1.0 / (np.diagonal(precision, axis1=1, axis2=2) if shape == "full" else precision)
    assert np.sqrt(np.median(variance)) == pytest.approx(0.3 * 0.003, rel=0.15)
    assert np.all(np.diff(model.lower_bounds_) > -1e-6)


def test_one_component_keeps_the_default():
    X = np.random.default_rng(0).standard_normal((300, 2))
    model = DPMixtureVB(random_state=0).fit(X)
    assert model.n_components_ == 1
    assert model._model.prior.kappa == pytest.approx(0.01)


@pytest.mark.parametrize("given", [0.01, 0.2])
def test_a_number_is_kept(given):
    observation = GaussianObservation(mean_precision_prior=given)
    model = DPMixtureVB(observation=observation, random_state=0).fit(narrow())
    assert model._model.prior.kappa == given


def test_it_is_saved():
    model = DPMixtureVB(random_state=0).fit(narrow())
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    loaded = joblib.load(file)
    assert loaded._model.prior.kappa == model._model.prior.kappa < 1e-3


@pytest.mark.parametrize("variance", [None, 0.04])
@pytest.mark.parametrize("missing", [False, True])
def test_steps_of_the_spread_do_not_lower_the_evidence(variance, missing):
    """Of shared or known variances, far away from the first rows; and a component never shows a column."""
    rng = np.random.default_rng(2)
    first, X = rng.standard_normal((2, 300, 3))
    X = 0.2 * X + 30.0 * np.repeat(rng.standard_normal((3, 3)), 100, axis=0)
    if missing:
        first[0, 0] = np.nan
        X[:100, 1] = np.nan
    observation = FixedVarianceGaussianObservation(variance=variance)
    model = DPMixtureVB(observation=observation, proposals=None, random_state=0).fit(first)
    own = model._model.likelihood
    z = own.prepare(X)
    s = np.stack([own.features(z[i : i + 100]).sum(axis=0) for i in (0, 100, 200)])
    prior, values = own.prior, []
    for _ in range(100):
        values.append(own.evidence(prior, s).sum())
        prior = own.update_prior(prior, s, 1)
    assert np.diff(values).min() > -1e-9 * abs(values[-1])
    assert np.all(prior.spread > own.prior.spread)
    for factor in (0.97, 1.03):
        other = prior._replace(spread=factor * prior.spread)
        assert own.evidence(other, s).sum() < values[-1]
    assert own.update_prior(own.prior, s[:0], 5) is own.prior


def test_a_column_that_is_never_seen_keeps_its_variance():
    X = np.random.default_rng(3).standard_normal((50, 2))
    X[0, 1] = np.nan
    model = DPMixtureVB(observation="fixed_variance_gaussian", proposals=None).fit(X)
    own = model._model.likelihood
    rows = own.prepare(np.column_stack([X[:, 0], np.full(50, np.nan)]))
    prior = own.update_prior(own.prior, own.features(rows).sum(axis=0, keepdims=True), 3)
    assert prior.variance[1] == own.prior.variance[1]
    assert prior.variance[0] != own.prior.variance[0]


@pytest.mark.parametrize("observation", ["gaussian", "fixed_variance_gaussian"])
def test_priors_that_cannot_be_are_refused(observation):
    """By what checks a file, before any kernel meets them."""
    own = DPMixtureVB(observation=observation, proposals=None).fit(narrow())._model.likelihood
    check_prior(own, own.prior)
    for name in set(own.prior._fields) & {"kappa", "nu", "spread", "variance"}:
        for factor in (0.0, -1.0):
            with pytest.raises(ValueError, match=f"{name} is not positive"):
                check_prior(own, own.prior._replace(**{name: factor * getattr(own.prior, name)}))
