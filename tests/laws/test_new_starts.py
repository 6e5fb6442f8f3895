"""Correlated rows that may start anew: a hidden variable of each row has a factor in the objective.

Statistics of a row depend on the component that explains it, so that the laws of the registry, which have
one s(x) a row, do not apply as they are. These are what they promise. The laws of chains run as well.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate
from scipy.special import logsumexp

from sklearn_bnp import CorrelatedGaussianObservation
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from tests.reference.autoregressive import CorrelatedNormalWishart

from .harness import random_resp
from .rows import swings
from .test_monotone import assert_rises

SHAPES = ["full", "diag", "spherical"]


def bound(rows, covariance_type="full", **parameters):
    """The likelihood of lagged rows (n, 2 D), and the prepared rows."""
    observation = CorrelatedGaussianObservation(covariance_type, **parameters)
    likelihood = observation.bind(column_moments([Batch(0, rows)], covariance=True))
    return likelihood, likelihood.prepare(rows)


def problem(seed, covariance_type="full", n=60, K=3, **parameters):
    """Likelihood, a prior with dynamics, prepared rows, shares, and coefficients of a few local steps."""
    rng = np.random.default_rng(seed)
    rows, _ = swings(1)(rng, n)
    likelihood, z = bound(rows, covariance_type, **parameters)
    prior = likelihood.prior._replace(phi=0.7, epsilon=0.2)
    shares = random_resp(rng, n, K)
    s = shares.T @ likelihood.features(z)
    for _ in range(3):
        coef = likelihood.coefficients(prior, s)
        s = np.empty_like(s)
        likelihood.summarise(z, shares, s, coef=coef)
    return likelihood, prior, z, shares, s, coef


def split_rows(likelihood, z, anew):
    """s(x) (n, P) of rows of which those in ``anew`` start anew for certain."""
    going = likelihood.continuing.features(z)
    P, out = going.shape[1], np.zeros((len(z), likelihood.n_statistics))
    out[~anew, :P], out[anew, P:-2], out[:, -1] = going[~anew], going[anew][:, likelihood.anew], 1.0
    return out


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_log_weights_are_sums_over_both_cases(covariance_type):
    likelihood, _, z, _, _, coef = problem(1, covariance_type)
    cases = [split_rows(likelihood, z, np.full(len(z), anew)) @ coef.T for anew in (False, True)]
    expected = logsumexp(cases, axis=0)
    assert_allclose(likelihood.log_table(coef, z), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_coefficients_times_statistics_are_log_weights(covariance_type):
    """The entropy of the hidden variable makes up for its expectation; no other share does better."""
    likelihood, _, z, _, _, coef = problem(2, covariance_type)
    best, one = likelihood.log_table(coef, z), np.empty((3, likelihood.n_statistics))
    for n in range(len(z)):
        likelihood.summarise(z[n : n + 1], np.ones((1, 3)), one, coef=coef)
        assert_allclose(np.einsum("kp,kp->k", one, coef), best[n], rtol=1e-10, atol=1e-10)
        likelihood.summarise(z[n : n + 1], np.ones((1, 3)), one, coef=0.8 * coef)
        assert np.all(np.einsum("kp,kp->k", one, coef) <= best[n] + 1e-9)


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_coefficients_are_the_gradient_of_the_evidence(covariance_type):
    likelihood, prior, _, _, s, _ = problem(3, covariance_type)
    coef = likelihood.coefficients(prior, s)
    for p in range(s.shape[1]):
        step = 1e-5 * max(1.0, abs(s[0, p]))
        ends = s[0] + step * np.outer([1.0, -1.0], np.eye(s.shape[1])[p])
        up, down = likelihood.evidence(prior, ends)
        assert_allclose((up - down) / (2.0 * step), coef[0, p], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_local_and_global_steps_never_lower_the_bound(covariance_type):
    """One component for all rows; prior, dynamics and hidden variables in turn."""
    likelihood, prior, z, _, _, _ = problem(4, covariance_type)
    s, values = likelihood.features(z).sum(axis=0, keepdims=True), []
    for _ in range(15):
        values.append(likelihood.evidence(prior, s).sum())
        coef = likelihood.coefficients(prior, s)
        s = np.empty_like(s)
        likelihood.summarise(z, np.ones((len(z), 1)), s, coef=coef)
        values.append(likelihood.evidence(prior, s).sum())
        prior = likelihood.update_prior(prior, s, 1)
    assert_rises(values)
    assert values[-1] > values[0] + 1.0


def test_bound_is_below_the_evidence_summed_over_all_cases():
    """Each row goes on or starts anew: a sum of 2^n evidences of the slow twin, without ridge."""
    rng = np.random.default_rng(5)
    rows, _ = swings(1)(rng, 9)
    likelihood, z = bound(rows, reg_covar=1e-9, resolution=None)
    prior, continuing = likelihood.prior._replace(phi=0.7, epsilon=0.2), likelihood.continuing
    D = z.shape[1] // 2
    volume = continuing.rows.scaling.log_density_constant
    terms = []
    for case in itertools.product([False, True], repeat=len(z)):
        anew = np.array(case)
        # a row that starts anew has no correlation with the row before
        twin = CorrelatedNormalWishart(*prior[:4], prior.phi, np.zeros(D), volume)
        other = CorrelatedNormalWishart(*prior[:4], 0.0, np.zeros(D), volume)
        shares, y = (
            np.concatenate([a, b])
            for a, b in zip(twin.split(z[~anew]), other.split(z[anew]), strict=True)
        )
        joint = CorrelatedNormalWishart(*prior[:4], 0.0, np.zeros(D), volume)
        joint.split = lambda rows, shares=shares, y=y: (shares, y)
        value = joint.evidence(y, np.ones(len(z)))
        value -= 0.5 * D * np.log(1.0 - prior.phi**2) * np.sum(~anew)
        terms.append(
            value + np.sum(anew) * np.log(prior.epsilon) + np.sum(~anew) * np.log1p(-prior.epsilon)
        )
        exact = likelihood.evidence(prior, split_rows(likelihood, z, anew).sum(axis=0))
        assert_allclose(exact, terms[-1], rtol=1e-6, atol=1e-6)  # of hard cases, there is no slack
    s = likelihood.features(z).sum(axis=0, keepdims=True)
    for _ in range(50):
        coef = likelihood.coefficients(prior, s)
        s = np.empty_like(s)
        likelihood.summarise(z, np.ones((len(z), 1)), s, coef=coef)
    found = likelihood.evidence(prior, s)[0]
    assert found <= logsumexp(terms)
    assert found > logsumexp(terms) - 3.0  # and not vacuous


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_predictive_densities_integrate_to_one(covariance_type):
    """Over the row, in the data's units, for any row before it."""
    rng = np.random.default_rng(6)
    rows = rng.normal(3.0, 2.0, size=(40, 2))
    likelihood, z = bound(rows, covariance_type)
    prior = likelihood.prior._replace(phi=0.8, epsilon=0.1)
    s = likelihood.features(z).sum(axis=0, keepdims=True)

    def density(x, before):
        row = likelihood.prepare(np.array([[x, before]]))
        return np.exp(likelihood.log_predictive(prior, s, row)[0, 0])

    for before in (-4.0, 3.0, 9.0):
        total = integrate.quad(density, -200, 200, args=(before,), points=[before, 3.0], limit=500)
        assert_allclose(total[0], 1.0, atol=1e-3)


def test_without_correlation_rows_are_gaussian():
    """Any share of new starts: the evidence is that of independent rows, if all go on."""
    rng = np.random.default_rng(7)
    rows, _ = swings(1)(rng, 50)
    likelihood, z = bound(rows, autocorrelation=0, restart_probability=0)
    gaussian = likelihood.rows
    x = np.ascontiguousarray(z[:, : z.shape[1] // 2])
    resp = random_resp(rng, 50, 3)
    found = likelihood.evidence(likelihood.prior, resp.T @ likelihood.features(z))
    expected = gaussian.evidence(gaussian.prior, resp.T @ gaussian.features(x))
    assert_allclose(found, expected, rtol=1e-10)


def test_dynamics_of_the_user_stay():
    likelihood, _, _, _, s, _ = problem(8, covariance_prior="data")
    assert likelihood.adapts_prior
    fixed, _ = bound(
        swings(1)(np.random.default_rng(8), 60)[0],
        autocorrelation=0.6, restart_probability=0.1, covariance_prior="data", mean_precision_prior=0.01,
    )  # fmt: skip
    assert not fixed.adapts_prior
    assert fixed.update_prior(fixed.prior, s, 5) is fixed.prior
    assert (fixed.prior.phi, fixed.prior.epsilon) == (0.6, 0.1)
