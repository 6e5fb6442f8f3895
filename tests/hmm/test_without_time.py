"""First states that are found among rows without regard to their order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, DPAllocation, StateBirth
from sklearn_bnp.hmm.sampling import StateSample
from sklearn_bnp.splits.stick_breaking import DirichletProcess

N_STATES, N_FEATURES, N_ROWS = 20, 9, 3000


def many_short_visits(seed=0):
    """Rows of many states that last a row or two, and the path; covariances tell states apart."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.uniform(-2.0, 2.0, (N_STATES, N_FEATURES)))
    axes = np.linalg.qr(rng.normal(size=(N_STATES, N_FEATURES, N_FEATURES)))[0]
    factors = axes * np.sqrt(scale)[:, np.newaxis]
    means = rng.normal(size=(N_STATES, N_FEATURES))
    visits = rng.integers(N_STATES, size=N_ROWS), rng.integers(1, 3, size=N_ROWS)
    path = np.repeat(*visits)[:N_ROWS]
    noise = rng.normal(size=(N_ROWS, N_FEATURES))
    return means[path] + np.einsum("nij,nj->ni", factors[path], noise), path


def fitted_states(X, n_laps, **more):
    """A model by births, merges and deletes alone."""
    model = HDPHMMVB(proposals=("birth", "merge", "delete"), max_iter=n_laps, random_state=0)
    return model.fit(X, **more)


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_states_of_short_visits_are_found():
    """Each window of rows is a blend of states. Windows alone lead to 9 to 13 blends, 1,000 nats lower."""
    X, path = many_short_visits()
    model = fitted_states(X, 12)
    of_path = HDPHMMVB(init_params=np.eye(N_STATES)[path], proposals=None, max_iter=12).fit(X)
    assert model.n_components_ >= 17
    assert model.lower_bound_ > of_path.lower_bound_ - 600.0


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("form", "between"), [("weights", -102_000.0), ("missing", -51_500.0)])
def test_many_states_are_found_at_once(form, between):
    """From windows alone, bounds are 450 to 4,000 nats lower than ``between``; else 500 or more higher."""
    X, _ = many_short_visits()
    if form == "weights":
        X = list(X.reshape(-1, 100, N_FEATURES))
        model = fitted_states(X, 3, sample_weight=np.full(len(X), 2.0))
    else:
        missing = np.random.default_rng(1).random(X.shape) < 0.01
        model = fitted_states(np.where(missing, np.nan, X), 3)
    assert model.lower_bound_ > between


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_more_states_at_a_time_than_were_asked_for():
    X, _ = many_short_visits()
    model = HDPHMMVB(proposals=(StateBirth(max_states=4),), max_iter=2, random_state=0).fit(X)
    assert 1 < model.n_components_ <= 4


@pytest.mark.parametrize("n_rows", [1, 25, 60, 1000])
def test_some_runs_of_a_sample(n_rows):
    lengths = np.array([10, 30, 20, 5, 35])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    z = np.column_stack([np.repeat(np.arange(5), lengths), np.arange(100)]).astype(float)
    sample = StateSample(z, indptr, weight=1.0 + np.arange(5))
    some = sample.within(n_rows, np.random.RandomState(0))
    runs = np.unique(some.z[:, 0]).astype(int)
    assert some.n_rows == lengths[runs].sum() and (some.n_rows <= n_rows or len(runs) == 1)
    assert_array_equal(np.diff(some.indptr), lengths[runs])
    assert_array_equal(some.weight, 1.0 + runs)
    assert_array_equal(some.z[:, 1], np.flatnonzero(np.isin(z[:, 0], runs)))


def test_the_prior_of_rows_is_that_of_mixtures():
    n = np.array([[3.0, np.nan, 40.0, 7.5], [1.0, 2.0, 3.0, 4.0]])
    assert_allclose(DirichletProcess.elbo(n), DPAllocation(1.0).elbo(n), rtol=1e-14)
