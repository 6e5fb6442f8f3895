"""The autoregressive likelihood: lagged rows, data's units, samples, refusals; laws test the rest."""

import re
from itertools import chain, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from sklearn_bnp import AutoregressiveObservation, DPMixtureVB, HDPTopicVB
from sklearn_bnp._kernels._responsibilities import statistics
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood.autoregressive import autoregressive_prior
from sklearn_bnp.likelihood.lags import lagged
from tests.laws.harness import features_of, random_resp


def bound(observation, rows, **kwargs):
    """The likelihood of lagged rows."""
    return observation.bind(column_moments([Batch(0, rows)], covariance=True), **kwargs)


def summed(likelihood, rows, resp=None):
    """Statistics (K, P) of lagged rows."""
    features = features_of(likelihood, likelihood.prepare(rows))
    return (np.ones((len(rows), 1)) if resp is None else resp).T @ features


def oscillations(rng, n=300, order=1, n_columns=2):
    """One sequence that swings about a point far from the origin."""
    turn = 0.95 * np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    y = np.zeros((n, n_columns))
    for t in range(1, n):
        y[t] = turn @ y[t - 1] + rng.normal(size=2) * [0.5, 1.0]
    return lagged(y * [1.0, 30.0] + [5.0, -200.0], np.array([0, n]), order)[0]


# ---------------------------------------------------------------------- lagged rows


@pytest.mark.parametrize("lags", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_lagged_rows_one_by_one(lags, dtype):
    """Sequences of all lengths, even none; edges that begin later than 0."""
    x = np.random.default_rng(0).integers(0, 99, size=(30, 2)).astype(dtype)
    for indptr in ([0, 7, 7, 8, 10, 13, 30], [4, 4, 9, 11, 28]):
        rows, edges = lagged(x, np.array(indptr), lags)
        expected = [
            [np.concatenate([x[t - lag] for lag in range(lags + 1)]) for t in range(a + lags, b)]
            for a, b in pairwise(indptr)
        ]
        assert rows.dtype == dtype
        assert_array_equal(rows, np.array(list(chain.from_iterable(expected))))
        assert_array_equal(np.diff(edges), [len(e) for e in expected])
        assert edges[0] == 0


def test_rows_without_lags_are_not_copied():
    x, indptr = np.ones((5, 2)), np.array([0, 2, 5])
    rows, edges = lagged(x, indptr, 0)
    assert rows is x
    assert edges is indptr


def test_lags_are_declared():
    rows = oscillations(np.random.default_rng(1), order=3)
    observation = AutoregressiveObservation(order=3)
    assert observation.lags == bound(observation, rows).lags == 3


# ---------------------------------------------------------------------- units of the data


@pytest.mark.parametrize("order", [1, 2, 3])
def test_evidence_in_the_units_of_the_data(order):
    """One column, priors of the user: given the precision rows are Gaussian, and it is integrated out.

    The ridge is 0.02 of the variance of the steps. The prior's intercept is such that rows which came to
    the mean by mean steps make one more.
    """
    rng = np.random.default_rng(2)
    y = 40.0 + np.cumsum(rng.normal(0.3, 2.0, size=8 + order))
    rows = lagged(y[:, np.newaxis], np.array([0, len(y)]), order)[0]
    step, level = rows[:, 0] - rows[:, 1], rows[:, 0].mean()
    precision, kappa, nu, b, m = 0.4, 1.0, 3.5, 6.0, np.array([0.7, 0.2, -0.1])[:order]
    likelihood = bound(
        AutoregressiveObservation(
            order, coef_prior=[m], coef_precision_prior=precision, degrees_of_freedom_prior=nu,
            covariance_prior=[[b]], reg_covar=0.02,
        ), rows,
    )  # fmt: skip
    x = rows[:, 1:] - level + step.mean() * np.arange(order)
    mean = level + step.mean() + x @ m
    unit = step.var() * 1.02  # the prior's precision is for lags in deviations of the steps
    covariance = np.eye(8) + x @ x.T / (precision * unit) + 1.0 / kappa

    def integrand(z):
        scale = stats.gamma(0.5 * nu, scale=2.0 / b)
        density = stats.multivariate_normal(mean, covariance / z).pdf(rows[:, 0])
        return density * scale.pdf(z) * np.exp(-0.5 * 8 * z * 0.02 * step.var())

    expected = np.log(integrate.quad(integrand, 0, 20, epsabs=0, epsrel=1e-9, limit=200)[0])
    evidence = likelihood.evidence(likelihood.prior, summed(likelihood, rows))[0]
    assert_allclose(evidence, expected, rtol=1e-8)


@pytest.mark.parametrize("order", [1, 2])
def test_attributes_are_those_of_the_predictive_density(order):
    """It is symmetric about ``intercept_ + coef_ @ x``, and with many rows N(., covariances_)."""
    rng = np.random.default_rng(3)
    rows = oscillations(rng, 5000, order)
    likelihood = bound(AutoregressiveObservation(order), rows)
    s = summed(likelihood, rows, random_resp(rng, len(rows), 3))
    found = likelihood.attributes(likelihood.prior, s)
    past = rows[:7, 2:]
    for k in range(3):
        mean = found["intercept_"][k] + past @ found["coef_"][k].T
        for away in ([1.0, 0.0], [0.3, -20.0]):
            density = [
                likelihood.log_predictive(
                    likelihood.prior, s, likelihood.prepare(np.hstack([y, past]))
                )[:, k]
                for y in (mean + away, mean - away)
            ]
            assert_allclose(density[0], density[1], rtol=1e-9)
            normal = stats.multivariate_normal(np.zeros(2), found["covariances_"][k]).logpdf(away)
            assert_allclose(density[0], normal, atol=0.1)
        inverse = np.linalg.inv(found["covariances_"][k])
        assert_allclose(found["precisions_"][k], inverse, rtol=1e-9)


def test_coefficients_are_least_squares():
    """With weak priors and almost no ridge."""
    rows = oscillations(np.random.default_rng(4), 400, 2)
    observation = AutoregressiveObservation(2, coef_precision_prior=1e-9, reg_covar=1e-9)
    likelihood = bound(observation, rows)
    found = likelihood.attributes(likelihood.prior, summed(likelihood, rows))
    centred = rows - rows.mean(axis=0)
    expected = np.linalg.lstsq(centred[:, 2:], centred[:, :2], rcond=None)[0].T
    # the intercept has a prior of precision 1 beside 398 rows, about almost the same
    assert_allclose(found["coef_"][0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_default_prior_expects_rows_to_stay():
    """The mean is the last row and the mean step, the noise the variance of steps; for any order."""
    rng = np.random.default_rng(5)
    for order in (1, 3):
        rows = oscillations(rng, 200, order)
        likelihood = bound(AutoregressiveObservation(order), rows)
        found = likelihood.attributes(likelihood.prior, np.zeros((1, likelihood.n_statistics)))
        steps = rows[:, :2] - rows[:, 2:4]
        assert_allclose(found["coef_"][0], np.eye(2, 2 * order), atol=1e-12)
        assert_allclose(found["intercept_"][0], steps.mean(axis=0), rtol=1e-9)
        expected = np.diag(steps.var(axis=0)) * (1.0 + 1e-6) / (2 + 2)  # b / nu: E[Lambda] inverted
        assert_allclose(found["covariances_"][0], expected, rtol=1e-9, atol=1e-12)


def test_prior_of_coefficients_is_in_the_units_of_the_data():
    rng = np.random.default_rng(6)
    rows, coef = oscillations(rng, 200, 2), rng.normal(size=(2, 4)) * [[1.0], [30.0]]
    likelihood = bound(AutoregressiveObservation(2, coef_prior=coef), rows)
    found = likelihood.attributes(likelihood.prior, np.zeros((1, likelihood.n_statistics)))
    assert_allclose(found["coef_"][0], coef, rtol=1e-9)


# ---------------------------------------------------------------------- columns that say nothing


def with_column(rows, order, column):
    """Lagged rows with one more column of the sequence, given as a function of lagged rows."""
    blocks = rows.reshape(len(rows), order + 1, 2)
    return np.concatenate([blocks, column(blocks)[:, :, np.newaxis]], axis=2).reshape(len(rows), -1)


def _ramp(blocks):
    return 3.0 * np.arange(len(blocks))[:, np.newaxis] - 3.0 * np.arange(blocks.shape[1])


IDLE = {
    "constant": lambda blocks: np.full(blocks.shape[:2], -7.3),
    "multiple": lambda blocks: -4.0 * blocks[:, :, 1],
    "sum": lambda blocks: blocks[:, :, 0] + 0.01 * blocks[:, :, 1] + 2.0,
    "ramp": _ramp,
    "of-a-sequence": lambda blocks: np.where(
        np.arange(len(blocks))[:, np.newaxis] < 40, [[1.0] * blocks.shape[1]], 600.0
    ),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", IDLE)
def test_columns_whose_steps_say_nothing(name, order):
    """They move no row from one component to another, and cost each row the same.

    Along with copies, the directions that are left have other scales beside those of the prior: of
    2000 rows it is worth a few.
    """
    rng = np.random.default_rng(7)
    rows = oscillations(rng, 2000, order)
    wide = with_column(rows, order, IDLE[name])
    start, shares = random_resp(rng, len(rows), 3), []
    for x in (rows, wide):
        likelihood = bound(AutoregressiveObservation(order), x)
        assert likelihood.n_features == 2 * (order + 1)
        assert np.abs(likelihood.log_base(x)).max() < 1e-6
        coef = likelihood.coefficients(likelihood.prior, summed(likelihood, x, start))
        shares.append(likelihood.local_step(coef, likelihood.prepare(x), None, None, None, None))
    assert np.ptp(shares[0], axis=0).min() > 0.1
    copies = name in ("multiple", "sum")
    assert_allclose(shares[1], shares[0], atol=0.01 if copies else 1e-9)


@pytest.mark.parametrize("second", ["constant", "multiple", "other"])
def test_density_given_the_past_integrates_to_one(second):
    """Trapezoids of a tenth of a deviation, 12 either way, along the axes of the noise."""
    rng = np.random.default_rng(8)
    a, b = np.cumsum(rng.normal(size=(2, 500)), axis=1)
    y = np.column_stack(
        [a, {"constant": np.full(500, 3.0), "multiple": 5.0 * a, "other": b}[second]]
    )
    rows = lagged(y, np.array([0, 500]), 1)[0]
    likelihood = bound(AutoregressiveObservation(reg_covar=1e-4), rows)
    s = summed(likelihood, rows)
    found = likelihood.attributes(likelihood.prior, s)
    values, vectors = np.linalg.eigh(found["covariances_"][0])
    axis = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) * np.sqrt(values)
    past = np.tile(rows[100, 2:], (len(grid), 1))
    now = found["intercept_"][0] + past @ found["coef_"][0].T + grid @ vectors.T
    new = np.hstack([now, past])
    log_density = likelihood.log_predictive(likelihood.prior, s, likelihood.prepare(new))[:, 0]
    density = np.exp(log_density + likelihood.log_base(new))
    cell = (axis[1] - axis[0]) ** 2 * np.sqrt(values.prod())
    assert_allclose(density.sum() * cell, 1.0, rtol=1e-6)


@pytest.mark.parametrize("order", [1, 3])
def test_repeated_rows_do_no_harm(order):
    """All rows equal, or two values in turn: finite, and bounded by the ridge."""
    for y in (np.full((40, 2), 1e5), np.tile([[0.0, 1.0], [5.0, 1.0]], (20, 1))):
        rows = lagged(y, np.array([0, 40]), order)[0]
        likelihood = bound(AutoregressiveObservation(order), rows)
        s = summed(likelihood, rows)
        assert np.isfinite(likelihood.evidence(likelihood.prior, s)).all()
        assert np.isfinite(likelihood.coefficients(likelihood.prior, s)).all()
        for value in likelihood.attributes(likelihood.prior, s).values():
            assert np.isfinite(value).all()


def test_few_rows_of_a_stream_rule_nothing_out():
    rows = with_column(oscillations(np.random.default_rng(9), 12), 1, IDLE["constant"])
    observation = AutoregressiveObservation()
    assert bound(observation, rows).n_features == 4
    assert bound(observation, rows, streaming=True).n_features == 6


def test_single_precision_of_slow_sequences():
    """Steps are a thousandth of the values' spread: they are as exact as the rows."""
    rng = np.random.default_rng(10)
    y = np.cumsum(np.cumsum(rng.normal(size=(3000, 2)), axis=0), axis=0) + 1e4
    y = y.astype(np.float32)
    rows = lagged(y, np.array([0, 3000]), 1)[0]
    exact = rows.astype(np.float64)
    likelihood = bound(AutoregressiveObservation(), exact)
    steps = likelihood.prepare(exact)[:, -2:]
    assert likelihood.prepare(rows).dtype == np.float32
    assert_allclose(likelihood.prepare(rows)[:, -2:], steps, atol=1e-6 * np.abs(steps).max())


@pytest.mark.extended
def test_smooth_sequences_of_high_order():
    """Neighbours differ by 1e-4 and are all but collinear: in coordinates of the lags C had no factor."""
    t = 1e-4 * np.arange(200_000)
    y = np.column_stack([np.sin(t), np.cos(1.3 * t), np.sin(0.7 * t + 1.0)])
    y += 1e-9 * np.random.default_rng(15).normal(size=y.shape)
    evidence = []
    for order in (1, 5):
        rows = lagged(y, np.array([0, len(y)]), order)[0]
        likelihood = bound(AutoregressiveObservation(order), rows)
        z = likelihood.prepare(rows)
        features = np.empty((len(z), likelihood.n_statistics))
        statistics(z, likelihood.quadratic, likelihood.linear, features)
        s = features.sum(axis=0, keepdims=True)
        evidence.append(likelihood.evidence(likelihood.prior, s)[0] / rows.size * (order + 1))
        expected = features @ likelihood.coefficients(likelihood.prior, s)[0]
        density = likelihood.log_predictive(likelihood.prior, s, z)[:, 0]
        # the ridge takes up to half a nat of each number
        assert np.abs(expected - density).mean() < 0.75 * 3
    assert evidence[1] > evidence[0] + 3.0


# ---------------------------------------------------------------------- samples


def test_samples_follow_the_regressions():
    """Residuals of 20,000 rows have the covariance of the noise: 4 % is four deviations of it."""
    rng = np.random.default_rng(11)
    rows = oscillations(rng, 1000, 2)
    likelihood = bound(AutoregressiveObservation(2), rows)
    s = summed(likelihood, rows, random_resp(rng, len(rows), 2))
    found = likelihood.attributes(likelihood.prior, s)
    labels = np.repeat(np.tile([0, 1], 20), 500)
    y = likelihood.sample(found, labels, np.random.RandomState(0))
    assert y.shape == (20_000, 2)
    new = lagged(y, np.array([0, len(y)]), 2)[0]
    for k in (0, 1):
        rows = new[labels[2:] == k]
        residual = rows[:, :2] - found["intercept_"][k] - rows[:, 2:] @ found["coef_"][k].T
        root = np.linalg.cholesky(found["precisions_"][k])
        assert_allclose(np.cov((residual @ root).T), np.eye(2), atol=0.04 * np.sqrt(2))
        assert_allclose((residual @ root).mean(axis=0), 0.0, atol=0.04)


def test_samples_begin_at_rest():
    """At the fixed point of a stable regression, at the mean of the data before an unstable one."""
    rng = np.random.default_rng(12)
    rows = with_column(oscillations(rng, 300, 2), 2, IDLE["constant"])
    likelihood = bound(AutoregressiveObservation(2), rows)
    found = likelihood.attributes(likelihood.prior, summed(likelihood, rows))
    still = {**found, "covariances_": 1e-30 * found["covariances_"]}
    y = likelihood.sample(still, np.zeros(50, dtype=int), np.random.RandomState(0))
    assert_allclose(y, np.tile(y[0], (50, 1)), rtol=1e-9)
    assert_allclose(y[0, 2], -7.3)
    grows = {**still, "coef_": 1.2 * np.eye(3, 6)[np.newaxis], "intercept_": np.ones((1, 3))}
    y = likelihood.sample(grows, np.zeros(2, dtype=int), np.random.RandomState(0))
    assert_allclose(y[0], 1.2 * rows[:, :3].mean(axis=0) + 1.0, rtol=1e-9)
    assert likelihood.sample(found, np.zeros(0, dtype=int), rng).shape == (0, 3)


# ---------------------------------------------------------------------- learned precision


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_the_learned_precision_is_at_a_maximum(order, speed):
    """It is high where rows stay about where they are; without "auto" it stays as given."""
    rng = np.random.default_rng(14)
    rows = oscillations(rng, 300, order)
    if speed == 0.0:
        y = np.zeros((300, 3))
        for t in range(1, 300):
            y[t] = 0.9 * y[t - 1] + rng.normal(size=3)
        rows = lagged(y, np.array([0, 300]), order)[0]
    likelihood = bound(AutoregressiveObservation(order, coef_precision_prior="auto"), rows)
    s = summed(likelihood, rows, random_resp(rng, len(rows), 2))
    prior = likelihood.update_prior(likelihood.prior, s, 1000)
    best = likelihood.evidence(prior, s).sum()
    assert best > likelihood.evidence(likelihood.prior, s).sum()
    for factor in (0.8, 0.97, 1.03, 1.25):
        other = autoregressive_prior(prior.coef, factor * prior.gram, *prior[2:5])
        assert likelihood.evidence(other, s).sum() < best
    precision = prior.gram[-1, -1] / likelihood.prior.gram[-1, -1]
    assert precision > (10.0 if speed == 0.0 else 1e-2)
    assert likelihood.prior_distance(likelihood.prior, prior) >= 0.49 * abs(np.log(precision))
    fixed = bound(AutoregressiveObservation(order), rows)
    assert_array_equal(fixed.update_prior(fixed.prior, s, 5).gram, fixed.prior.gram)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("given", [None, "auto", 1.0])
def test_precisions_that_are_learned(order, given):
    """By default from 20 columns on; what the user gives stays, in any number of them."""
    rng, learned = np.random.default_rng(15), {}
    for n_columns in (19, 20):
        y = rng.standard_normal((80, n_columns))
        rows = lagged(y, np.array([0, 80]), order)[0]
        likelihood = bound(AutoregressiveObservation(order, coef_precision_prior=given), rows)
        s = summed(likelihood, rows, random_resp(rng, len(rows), 2))
        prior = likelihood.update_prior(likelihood.prior, s, 5)
        learned[n_columns] = not np.array_equal(prior.gram, likelihood.prior.gram)
    assert learned == {19: given == "auto", 20: given != 1.0}


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("observation", ["autoregressive", AutoregressiveObservation(2)])
def test_rows_without_order_are_refused(observation):
    X = oscillations(np.random.default_rng(13))[:, :2]
    groups = np.repeat(np.arange(13), 23)
    message = r"(?s)observation=AutoregressiveObservation\(.*sequences.*HDPHMMVB"
    for model, kwargs in (
        (DPMixtureVB(observation=observation), {}),
        (HDPTopicVB(observation=observation), {"groups": groups}),
    ):
        for call in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=message):
                call(X, **kwargs)
        assert not hasattr(model, "n_components_")


BAD = [
    ("order", [0, -1, 1.5, None, "two"]),
    ("coef_prior", [1.0, "eye", np.eye(2), np.full((2, 4), np.nan), np.zeros((4, 2))]),
    ("coef_precision_prior", [0, -1.0, np.nan, "weak", [1.0]]),
    ("degrees_of_freedom_prior", [0.5, 1, np.nan, "few"]),
    (
        "covariance_prior",
        [1.0, np.eye(3), -np.eye(2), np.diag([1.0, 0.0]), np.triu(np.ones((2, 2)))],
    ),
    ("reg_covar", [0, -1e-6, 2.0, np.nan, None]),
]


def test_every_parameter_is_tested():
    assert {name for name, _ in BAD} == set(AutoregressiveObservation().get_params())


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD for value in values]
)
def test_parameter_is_refused_by_name(name, value):
    rows = oscillations(np.random.default_rng(14), 60, 2)
    observation = AutoregressiveObservation(**{"order": 2, name: value})
    with pytest.raises(ValueError, match=re.escape(name)):
        bound(observation, rows)
