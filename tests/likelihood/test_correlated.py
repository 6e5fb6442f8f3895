"""Gaussian rows that are correlated with the row before: fits, units, samples, gaps, refusals."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import HDPHMMVB, CorrelatedGaussianObservation, DPMixtureVB
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood.lags import lagged
from tests.laws.harness import quiet_fit

SHORT = ("birth", "merge", "delete", "restart")
MEANS = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])


def visits(seed, phi, *, n=2000, n_visits=80, carried=False):
    """Rows (n, 2) of three states, and the states; noise goes on from visit to visit if ``carried``."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, 2))
    first = np.arange(0, n, n // n_visits)
    for t in range(1, n):
        if carried or t not in first:
            noise[t] = phi * noise[t - 1] + np.sqrt(1.0 - phi**2) * noise[t]
    z = np.repeat(rng.integers(3, size=n_visits), n // n_visits)
    return MEANS[z] + noise, z


def bound(rows, **parameters):
    observation = CorrelatedGaussianObservation(**parameters)
    return observation.bind(column_moments([Batch(0, rows)], covariance=True))


def fitted(X, **parameters):
    """Without `StateOversplit`: other proposals find these states sooner."""
    observation = CorrelatedGaussianObservation(**parameters)
    return HDPHMMVB(observation=observation, proposals=SHORT, random_state=0).fit(X)


def agreement(z, found):
    """Share of rows whose state is the one that most rows of their true state have."""
    table = np.zeros((z.max() + 1, found.max() + 1))
    np.add.at(table, (z, found), 1)
    return table.max(axis=1).sum() / len(z)


# ---------------------------------------------------------------------- what it is for


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("phi", "carried"),
    [(0.0, False), pytest.param(0.6, True, marks=pytest.mark.slow), (0.8, False)],
)
def test_states_of_correlated_rows(phi, carried):
    """Independent Gaussian states need more than three at .8."""
    X, z = visits(1, phi, carried=carried)
    model = fitted(X)
    assert model.n_components_ == 3
    assert agreement(z, model.predict(X)) > 0.97
    assert_allclose(model.autocorrelation_, phi, atol=0.06)
    order = np.argsort(model.means_ @ [1.0, 2.0])
    assert_allclose(model.means_[order], MEANS, atol=0.6)
    assert_allclose(model.covariances_, np.tile(np.eye(2), (3, 1, 1)), atol=0.45)
    if phi == 0.8:
        assert HDPHMMVB(proposals=SHORT, random_state=0).fit(X).n_components_ > 3


@pytest.mark.slow
def test_dynamics_are_learned_from_any_start():
    """Statistics of given states are those of rows of which some start anew."""
    X, z = visits(2, 0.8)
    given = HDPHMMVB(
        3, observation="correlated_gaussian", init_params=np.eye(3)[z], random_state=0
    ).fit(X)
    assert given.n_components_ == 3
    assert_allclose(given.lower_bound_, fitted(X).lower_bound_, atol=3.0)


# ---------------------------------------------------------------------- units, types, gaps


@pytest.mark.extended
def test_units_of_columns_do_not_matter():
    X, _ = visits(3, 0.6, n=800, n_visits=40)
    one, other = fitted(X), fitted(X * [1e-3, 200.0] + [5.0, -1e4])
    assert one.n_components_ == other.n_components_
    assert_allclose(one.autocorrelation_, other.autocorrelation_, atol=1e-4)
    assert_allclose(
        one.score(X) - other.score(X * [1e-3, 200.0] + [5.0, -1e4]), np.log(0.2), atol=1e-3
    )


@pytest.mark.extended
def test_single_precision():
    """Rows are prepared in double precision, so that little is lost."""
    X, _ = visits(4, 0.8, n=800, n_visits=40)
    exact, single = fitted(X), fitted(X.astype(np.float32))
    assert_allclose(single.lower_bound_, exact.lower_bound_, rtol=1e-4)


def test_constant_and_repeated_rows():
    """Finite, and the correlation stays below 1."""
    for X in (np.tile([[3.0, 7.0]], (60, 1)), np.repeat([[0.0, 1.0], [5.0, 2.0]], 60, axis=0)):
        model = quiet_fit(
            HDPHMMVB(2, observation="correlated_gaussian", max_iter=5, random_state=0), X
        )
        assert np.isfinite(model.lower_bound_)
        assert np.all(model.autocorrelation_ < 1.0)


@pytest.mark.extended
def test_gaps():
    """A row that lacks an entry and the row after it say nothing; states are those of the others."""
    X, z = visits(5, 0.8)
    X[100:110] = np.nan
    X[700, 1] = np.nan
    model = fitted(X)
    assert model.n_components_ == 3
    assert agreement(z, model.predict(X)) > 0.97


# ---------------------------------------------------------------------- samples and refusals


def test_samples_have_the_correlation_and_the_covariance():
    """Of 38,000 rows, without the 25 after each change of state: three deviations of their moments."""
    X, _ = visits(6, 0.8)
    rows = lagged(X, np.array([0, len(X)]), 1)[0]
    likelihood = bound(rows)
    found = {
        "means_": MEANS[:2],
        "covariances_": np.array([[[1.0, 0.5], [0.5, 2.0]], [[0.3, 0.0], [0.0, 0.1]]]),
        "autocorrelation_": np.full(2, 0.7),
        "restart_probability_": np.full(2, 0.02),
    }
    labels = np.repeat(np.tile([0, 1], 40), 500)
    y = likelihood.sample(found, labels, np.random.RandomState(0))
    deviation = y - MEANS[labels]
    for k in (0, 1):
        pairs = (labels[1:] == k) & (np.arange(1, len(y)) % 500 > 25)
        now, before = deviation[1:][pairs], deviation[:-1][pairs]
        scale = np.sqrt(np.diag(found["covariances_"][k]))
        lag = (now / scale).T @ (before / scale) / len(now)
        expected = 0.7 * 0.98 * found["covariances_"][k] / np.outer(scale, scale)
        assert_allclose(lag, expected, atol=0.08)
    assert likelihood.sample(found, np.zeros(0, dtype=int), np.random.RandomState(0)).shape == (
        0,
        2,
    )


def test_rows_without_order_are_refused():
    X, _ = visits(7, 0.5, n=400, n_visits=20)
    with pytest.raises(ValueError, match=r"(?s)CorrelatedGaussianObservation\(.*HDPHMMVB"):
        DPMixtureVB(observation="correlated_gaussian").fit(X)


BAD = [
    ("covariance_type", ["round", None]),
    ("autocorrelation", [-0.1, 1.0, np.nan, "much", None]),
    ("restart_probability", [-0.1, 0.9, np.nan, "often", None]),
    ("mean_prior", [[0.0], [np.nan, 0.0]]),
    ("mean_precision_prior", [0.0, -1.0, "weak"]),
    ("degrees_of_freedom_prior", [0.5, np.nan, "few"]),
    ("covariance_prior", [np.eye(3), -np.eye(2), "rows", "increments"]),
    ("reg_covar", [0, 2.0, None]),
    ("resolution", [-1.0, [1.0], "fine"]),
]


def test_every_parameter_is_tested():
    assert {name for name, _ in BAD} == set(CorrelatedGaussianObservation().get_params())


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD for value in values]
)
def test_parameter_is_refused_by_name(name, value):
    X, _ = visits(8, 0.5, n=400, n_visits=20)
    rows = lagged(X, np.array([0, len(X)]), 1)[0]
    with pytest.raises(ValueError, match=re.escape(name)):
        bound(rows, **{name: value})
    observation = CorrelatedGaussianObservation(**{name: value})
    with pytest.raises(ValueError, match=rf"(?s){re.escape(name)}((?!HDPHMMVB).)*$"):
        HDPHMMVB(observation=observation).fit(X)
