"""How many observations the prior of a mean is worth, learned by empirical Bayes."""

import io

import joblib
import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, GaussianObservation

SHAPES = ("full", "diag", "spherical")


def narrow(seed=0, width=0.003):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(size=(8, 2))
    return np.repeat(centers, 100, axis=0) + 0.3 * width * rng.standard_normal((800, 2))


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
