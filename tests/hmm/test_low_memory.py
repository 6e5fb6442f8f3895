"""`HDPHMMVB(low_memory=True)`: the same results, and no table of all rows and states."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation
from sklearn_bnp.hmm import local, predictor, sampling
from sklearn_bnp.likelihood import row_kernels
from tests.estimators import assert_same_state, chains, one_hot, peak_memory, public_state

X, STATES = chains(n_sequences=4, n_rows=200)
LENGTHS = [len(x) for x in X]


@pytest.fixture
def short_parts(monkeypatch):
    """Parts so short that each sequence has many; the longest is cut into its square root."""
    monkeypatch.setattr(local, "LOW_MEMORY_ROWS", 8)
    monkeypatch.setattr(local, "PART_ROWS", 64)
    monkeypatch.setattr(predictor, "LOW_MEMORY_ROWS", 8)


def pair(**kwargs):
    """Two estimators, without and with low memory."""
    return [HDPHMMVB(low_memory=low, **{"random_state": 0, **kwargs}) for low in (False, True)]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("observation", "n_components"),
    [
        ("gaussian", 1),
        pytest.param("gaussian", 7, marks=pytest.mark.slow),
        pytest.param(AutoregressiveObservation(order=2), 1, marks=pytest.mark.slow),
        (AutoregressiveObservation(order=2), 7),
    ],
)
def test_fits_are_the_same(short_parts, observation, n_components):
    """All proposals are made and judged alike.

    Rounding decides in which order a birth makes two states that are alike. With this seed there are none.
    """
    usual, low = pair(observation=observation, n_components=n_components, random_state=1)
    usual.fit(X)
    low.fit(X)
    kinds = {kind for lap in usual.history_ for kind in lap.accepted}
    assert kinds & ({"birth"} if n_components == 1 else {"merge", "delete"})
    for ours, theirs in zip(low.history_, usual.history_, strict=True):
        assert (ours.tried, ours.accepted) == (theirs.tried, theirs.accepted)
        assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-9)
    assert_allclose(low.transmat_, usual.transmat_, atol=1e-7)
    assert_allclose(low.weights_, usual.weights_, atol=1e-7)
    assert_array_equal(np.concatenate(low.predict(X)), np.concatenate(usual.predict(X)))


@pytest.mark.quarter
@pytest.mark.parametrize("observation", ["gaussian", AutoregressiveObservation(order=2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_methods_are_the_same(short_parts, observation, dtype):
    rows = [x.astype(dtype) for x in X]
    model = HDPHMMVB(3, observation=observation, proposals=None, random_state=0).fit(rows)
    other = HDPHMMVB(low_memory=True)
    vars(other).update({name: value for name, value in vars(model).items() if name != "low_memory"})
    other.low_memory = True
    tol = 1e-10 if dtype == np.float64 else 1e-4
    for name in ("predict_proba", "score_samples"):
        usual, low = (np.concatenate(getattr(m, name)(rows)) for m in (model, other))
        assert_allclose(low, usual, rtol=tol, atol=tol)
    assert_array_equal(np.concatenate(other.predict(rows)), np.concatenate(model.predict(rows)))
    assert other.score(rows) == pytest.approx(model.score(rows), rel=tol)
    (ours, path), (theirs, expected) = other.decode(rows), model.decode(rows)
    assert ours == pytest.approx(theirs, rel=tol)
    assert_array_equal(np.concatenate(path), np.concatenate(expected))


def test_given_responsibilities(short_parts):
    """Transitions between parts count."""
    resp = 0.9 * one_hot(np.concatenate(STATES)) + 0.1 / 3
    for model in pair(n_components=3, init_params=resp, max_iter=0):
        model.fit(X)
        totals = model._learner_.totals
        counts = totals.extra.listed(sorted(totals.uids.tolist()))
        pieces = np.split(resp, np.cumsum(LENGTHS)[:-1])
        assert_allclose(counts[0], sum(part[0] for part in pieces))
        assert_allclose(counts[1:], sum(part[:-1].T @ part[1:] for part in pieces))
        assert_allclose(np.sort(totals.n), np.sort(resp.sum(axis=0)))


@pytest.mark.extended
def test_threads_change_nothing(short_parts):
    one, two = (HDPHMMVB(low_memory=True, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    assert_same_state(public_state(two), public_state(one))


def test_it_may_be_set_between_batches(short_parts):
    usual, low = pair(n_components=3, proposals=None)
    low.set_params(low_memory=False)
    for x in (X[:2], X[2:], X[:2]):
        usual.partial_fit(x)
        low.partial_fit(x).set_params(low_memory=True)
    assert low._model.low_memory
    assert low.lower_bound_ == pytest.approx(usual.lower_bound_, rel=1e-10)
    assert_allclose(low.transmat_, usual.transmat_, rtol=1e-8)


@pytest.mark.quarter
@pytest.mark.filterwarnings("ignore:HDPHMMVB did not converge")
@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("delete", np.float64),
        pytest.param("merge", np.float32, marks=pytest.mark.slow),
        pytest.param("merge", np.float64, marks=pytest.mark.slow),
        pytest.param("delete", np.float32, marks=pytest.mark.slow),
    ],
)
def test_memory(low_memory, kind, dtype, monkeypatch):
    """One table of rows and states at the most, whoever watches; with low memory a fraction of it."""
    monkeypatch.setattr(local, "PART_ROWS", 2**12)
    monkeypatch.setattr(row_kernels, "_CONVERTED_ROWS", 2**12)
    monkeypatch.setattr(local, "LOW_MEMORY_ROWS", 2**10)
    monkeypatch.setattr(predictor, "LOW_MEMORY_ROWS", 2**10)
    monkeypatch.setattr(sampling, "_STEPS", 250)
    monkeypatch.setattr(sampling, "_MOST_STEPS", 250)
    n_rows, n_states, rng = 40_000, 20, np.random.default_rng(0)
    x = 6.0 * rng.normal(size=(n_states, 1))[rng.integers(n_states, size=n_rows // 50)]
    x = (np.repeat(x, 50, axis=0) + rng.normal(size=(n_rows, 1))).astype(dtype)
    model = HDPHMMVB(
        n_states, proposals=(kind,), low_memory=low_memory, max_iter=4, tol=100.0,
        random_state=0,
    )  # fmt: skip
    model.fit(x[:2000])  # what is made once for all is there
    table = 8.0 * n_rows * n_states
    peaks = {"fit": peak_memory(lambda: model.fit(x)) / table}
    assert sum(lap.tried.get(kind, 0) for lap in model.history_) > 0
    table = 8.0 * n_rows * model.n_components_
    peaks["predict"] = peak_memory(lambda: model.predict(x)) / table
    # prepared rows, scales and labels: columns of rows, of which a table has twenty
    assert peaks["fit"] < (0.4 if low_memory else 1.4)
    assert peaks["predict"] < (0.4 if low_memory else 1.4)
