"""Splits of many components of many rows: searched on a sample, and judged after passes over all rows."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, Oversplit
from sklearn_bnp.mixture import oversplit
from sklearn_bnp.mixture.soundness import check_mixture
from tests.benchmarks.one_start_mixtures import many
from tests.variants import variants

from .harness import learner_for, quiet_fit, random_resp

N_ROWS = 120


def overlapping(n, seed=0):
    """Four clusters, of which two overlap, and a wrong start in which three components have each of these."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=n)
    means, spreads = np.array([[20, 10], [35, 30], [50, 25], [70, 12]]), np.array([3, 5, 6, 7])
    X = means[labels] + rng.standard_normal((n, 2)) * spreads[labels, np.newaxis] * [1.0, 1.2]
    parts = np.where((labels == 1) | (labels == 2), (X @ [1.0, 0.6]) // 6 % 3, 0)
    _, wrong = np.unique(labels + 4 * parts, return_inverse=True)
    return X, labels, wrong


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    variants(
        ["plain", "batches", "weights", "finite", "sparse", "float32"],
        quick=("batches", "weights", "sparse"),
    ),
)
def test_a_small_sample_is_enough(kind):
    """Eight components for four clusters: a sample shows the better ones, and passes fit them to all rows."""
    X, labels, wrong = overlapping(12_000)
    params = {
        "batches": {"n_batches": 5},
        "finite": {"allocation": "dirichlet"},
        "sparse": {"n_nonzero_resp": 2},
    }.get(kind, {})
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 12_000) if kind == "weights" else None
    more = {} if weight is None else {"sample_weight": weight}
    X = X.astype(np.float32) if kind == "float32" else X
    params = {"random_state": 0, "tol": 1e-4, **params}
    starts = {"truth": np.eye(4)[labels], "stuck": np.eye(8)[wrong]}
    found = {
        name: quiet_fit(DPMixtureVB(init_params=start, proposals=None, **params), X, **more)
        for name, start in starts.items()
    }
    proposals = (Oversplit(max_rows=2000),)
    model = quiet_fit(
        DPMixtureVB(init_params=starts["stuck"], proposals=proposals, **params), X, **more
    )
    assert model.n_components_ == 4
    assert model.lower_bound_ > found["truth"].lower_bound_ - 3.0
    assert found["stuck"].lower_bound_ < found["truth"].lower_bound_ - 20.0
    bounds = np.array([lap.lower_bound for lap in model.history_])
    assert np.diff(bounds[1:]).min() >= -1e-9 * np.abs(bounds).max()


def test_what_promises_little_on_a_sample_is_not_tried(monkeypatch):
    X, _, wrong = overlapping(12_000)
    monkeypatch.setattr(oversplit, "_LEAST_GAIN", np.inf)
    model = DPMixtureVB(init_params=np.eye(8)[wrong], proposals=(Oversplit(max_rows=2000),))
    quiet_fit(model.set_params(random_state=0), X)
    assert not any(trial.kind == "oversplit" for lap in model.history_ for trial in lap.trials)


@pytest.mark.extended
@pytest.mark.parametrize("n_most", [8, pytest.param(9, marks=pytest.mark.slow)])
def test_no_more_components_than_allowed(n_most):
    """Of all together, and of pools that share a lap."""
    X, _, wrong = overlapping(12_000)
    for max_rows in (300, 2000):
        model = DPMixtureVB(
            init_params=np.eye(8)[wrong % 8], proposals=(Oversplit(max_rows=max_rows),),
            max_components=n_most, random_state=0,
        )  # fmt: skip
        quiet_fit(model, X)
        assert max(lap.n_components for lap in model.history_) <= n_most


def test_retired_components_get_no_rows(leading_family):
    """Nor do they have a part in the weights of the others. A global step forgets that they are retired."""
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, N_ROWS, spread=1.5)
    learner, source = learner_for(leading_family, X, resp=random_resp(rng, N_ROWS, 4))
    learner.run_lap(source)
    model, totals = learner.model, learner.totals
    gone = totals.uids[[0, 2]].tolist()
    there = model.adopting(totals, dict.fromkeys(gone, (7, 8)))
    z = model.likelihood.prepare(X)
    resp = model.likelihood.local_step(there.coefficients(totals), z, None, None, None, None)
    np.testing.assert_array_equal(resp[:, [0, 2]], 0.0)
    n = totals.n.copy()
    n[[0, 2]] = 0.0
    expected = model.likelihood.coefficients(model.prior, totals.s)
    expected[:, -1] += model.allocation.expected_log_weights(n)
    np.testing.assert_allclose(there.coefficients(totals)[[1, 3]], expected[[1, 3]])
    assert there.updated(totals).retired == () and there.in_order(totals)[1].retired == ()
    np.testing.assert_array_equal(
        there.updated(totals).coefficients(totals), model.coefficients(totals)
    )


@pytest.mark.parametrize("retired", [(99,), (0, 0), [0], ("a",), (-1,)])
def test_what_retires_in_a_saved_model_is_there(retired):
    model = DPMixtureVB(2, random_state=0)
    model.partial_fit(np.random.default_rng(0).normal(size=(60, 2)), batch_id=0)
    model = pickle.loads(pickle.dumps(model))
    check_mixture(model)
    state = model._learner_
    model._learner_ = replace(state, model=state.model._replace(retired=retired))
    with pytest.raises(ValueError, match="retire"):
        check_mixture(model)


@pytest.mark.slow
@pytest.mark.parametrize("problem", range(4))
def test_many_rows_from_one_component(problem):
    """30,000 rows and more end no lower than a start from the truth."""
    data = many(problem)
    truth = DPMixtureVB(init_params=np.eye(data.y.max() + 1)[data.y], random_state=0)
    best = quiet_fit(truth, data.X).lower_bound_
    assert quiet_fit(DPMixtureVB(random_state=0), data.X).lower_bound_ > best - 10.0
