"""States of few rows in many columns: noise is one state, and states that are far apart are found.

Full covariances of D columns have D + 2 prior degrees of freedom. Where the prior expects just the noise and
cannot learn otherwise, states of fewer rows are narrower than their noise: 200 rows of noise in 60 columns
were 30 states, and two of four clear ones were found in 400 rows of 20 columns.
"""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation, GaussianObservation


def visits(seed, n_rows, n_features, n_states, *, length=10, distance=3.0):
    """Rows, and their states; without means there is noise alone."""
    rng = np.random.default_rng(seed)
    means = distance * rng.standard_normal((n_states, n_features)) * (n_states > 1)
    states = np.repeat(rng.permutation(np.arange(n_rows // length) % n_states), length)
    return means[states] + rng.standard_normal((len(states), n_features)), states


LEARNED = AutoregressiveObservation(coef_precision_prior="auto")


@pytest.mark.parametrize(
    ("n_rows", "n_features", "observation"),
    [
        (100, 20, "gaussian"),
        (200, 60, "gaussian"),
        (100, 20, "autoregressive"),
        (100, 20, LEARNED),
        pytest.param(400, 60, "gaussian", marks=pytest.mark.extended),
        pytest.param(200, 60, "autoregressive", marks=pytest.mark.extended),
    ],
)
def test_noise_is_one_state(n_rows, n_features, observation):
    """A regression on 60 columns needs a precision of its coefficients that is learned, as by default."""
    rows, _ = visits(0, n_rows, n_features, 1)
    model = HDPHMMVB(observation=observation, random_state=0).fit([rows])
    assert model.n_components_ == 1


@pytest.mark.parametrize(
    ("n_rows", "n_features"),
    [(100, 20), (400, 20), pytest.param(400, 60, marks=pytest.mark.extended)],
)
def test_clear_states_are_found(n_rows, n_features):
    rows, states = visits(1, n_rows, n_features, 4)
    model = HDPHMMVB(random_state=0).fit([rows])
    assert model.n_components_ == 4
    assert adjusted_rand_score(states, np.concatenate(model.labels_)) == 1.0


@pytest.mark.extended
def test_slow_states_of_many_columns_are_found():
    """Coefficients are near those of rows that stay: with a precision of 1, fewer are found."""
    rng = np.random.default_rng(1)
    memory, drift = rng.uniform(0.8, 1.0, (4, 20)), 0.2 * rng.standard_normal((4, 20))
    scale = np.exp(0.3 * rng.standard_normal((4, 20)))
    states = np.repeat(rng.permutation(np.arange(36) % 4), 40)
    rows = np.zeros((len(states), 20))
    for t in range(1, len(states)):
        k = states[t]
        rows[t] = memory[k] * rows[t - 1] + drift[k] + scale[k] * rng.standard_normal(20)
    fixed = AutoregressiveObservation(coef_precision_prior=1.0)
    assert HDPHMMVB(observation=fixed, random_state=0).fit([rows]).n_components_ < 4
    model = HDPHMMVB(observation="autoregressive", random_state=0).fit([rows])
    assert model.n_components_ == 4
    assert adjusted_rand_score(states, np.concatenate(model.labels_)) > 0.95


def test_the_scale_of_the_user_stays():
    """A prior that is given, or one of all rows, is not learned."""
    rows, _ = visits(2, 100, 3, 2)
    for given in ("data", np.eye(3)):
        observation = GaussianObservation(covariance_prior=given)
        model = HDPHMMVB(observation=observation, random_state=0).fit([rows])
        learner = model._learner_
        np.testing.assert_array_equal(learner.model.prior.b, learner.model.likelihood.prior.b)


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_learned_scale_only_rises(kind):
    """It goes to the maximum of the evidence among scales that are no less than the first, in any column."""
    rows, states = visits(3, 200, 3, 4)
    fit = HDPHMMVB(observation=GaussianObservation(kind), random_state=0).fit([rows])
    likelihood = fit._learner_.model.likelihood
    shape = likelihood.shape
    first = shape.diagonal(shape.own(likelihood.prior.b))[0]
    noise = np.random.default_rng(4).standard_normal(rows.shape)
    # much wider than at first in the last column, and much narrower in the others
    uneven = np.sqrt(first) * (9.0 if kind == "spherical" else [1e-3, 1e-3, 9.0])
    for spread, rises in ((uneven, True), (1e-3 * np.sqrt(first), False)):
        s = np.empty((4, likelihood.n_statistics))
        likelihood.summarise(spread * noise, np.eye(4)[states], s)
        prior, values = likelihood.prior, []
        for _ in range(30):
            values.append(likelihood.evidence(prior, s).sum())
            prior = likelihood.update_prior(prior, s, 1)
        assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))
        learned = np.atleast_1d(shape.diagonal(shape.own(prior.b))[0])
        assert np.all(learned >= first)
        assert (learned[-1] > 20 * np.atleast_1d(first)[-1]) == rises
        np.testing.assert_array_equal(learned[:-1], np.atleast_1d(first)[:-1])
