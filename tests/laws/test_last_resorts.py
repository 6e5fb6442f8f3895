"""Last resorts: whatever they try, and on whatever rows, the bound of the whole data never falls."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import Birth, DPMixtureVB, Oversplit, Regroup, Relocate
from sklearn_bnp.engine.trials import SplitTrial
from sklearn_bnp.mixture import regroup
from sklearn_bnp.splits import ways
from tests.benchmarks.one_start_mixtures import gaussian, nested

from .families import FAMILIES
from .harness import learner_for, one_hot, quiet_fit, random_resp, totals_under

RESORTS = [Regroup(), Relocate(), Oversplit(patience=2)]
N_ROWS = 150


def laps(learner, source, n_laps=6):
    """Bounds of laps, each of which begins with the last resort."""
    bounds = []
    for _ in range(n_laps):
        learner.scheduler.last_resort()
        learner.run_lap(source)
        bounds.append(learner.lower_bound)
        totals = totals_under(learner, learner.memo.copy())
        assert_allclose(totals.s, learner.totals.s, rtol=1e-9, atol=1e-9)
        assert_allclose(totals.entropy, learner.totals.entropy, rtol=1e-9, atol=1e-9)
    return np.array(bounds)


def assert_rises(bounds):
    assert np.diff(bounds[1:]).min() >= -1e-9 * np.abs(bounds).max()


@pytest.mark.quarter
@pytest.mark.parametrize(("n_batches", "weighted"), [(1, False), (3, True)])
def test_the_bound_never_falls(leading_family, n_batches, weighted):
    family = leading_family
    if family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = family.rows(rng, N_ROWS, spread=1.5)
    weight = rng.choice([0.1, 1.0, 7.0], size=N_ROWS) if weighted else None
    learner, source = learner_for(
        family, X, resp=random_resp(rng, N_ROWS, 5), weight=weight, n_batches=n_batches,
        proposals=(Regroup(), Relocate(), Oversplit(patience=1)),
    )  # fmt: skip
    assert_rises(laps(learner, source))


@pytest.mark.extended
@pytest.mark.parametrize("proposal", RESORTS, ids=lambda proposal: proposal.kind)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_leads_out_of_a_wrong_start(proposal, dtype):
    """Two pairs of clusters, each pair divided the wrong way; in three batches, and with a short cut."""
    rng, labels = np.random.default_rng(0), np.arange(600) % 4
    X = rng.standard_normal((600, 2)) * [3.0, 0.2] + np.stack(
        [labels // 2 * 30, labels % 2], axis=1
    )
    wrong = one_hot(labels // 2 * 2 + (X[:, 0] > labels // 2 * 30))
    start = {"init_params": wrong, "n_batches": 3, "random_state": 0}
    stuck = quiet_fit(DPMixtureVB(proposals=None, **start), X.astype(dtype))
    model = DPMixtureVB(proposals=(proposal,), **start)
    found = quiet_fit(model, X.astype(dtype))
    truth = quiet_fit(DPMixtureVB(proposals=None, init_params=one_hot(labels)), X.astype(dtype))
    if proposal.kind == "regroup":
        assert found.lower_bound_ == pytest.approx(truth.lower_bound_, abs=0.5)
    assert found.lower_bound_ >= stuck.lower_bound_ - 1e-6 * abs(stuck.lower_bound_)
    again = quiet_fit(pickle.loads(pickle.dumps(model)), X.astype(dtype))
    assert again.lower_bounds_ == found.lower_bounds_


def test_relocated_rows_leave_components_that_fit_them_too_closely():
    """A cluster of rows that are few for their columns is divided at random, and found again."""
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 40)
    X = rng.standard_normal((80, 12)) + 5.0 * labels[:, np.newaxis]
    halves = one_hot(np.where(labels == 0, 0, 1 + np.arange(80) % 2))
    start = {"init_params": halves, "random_state": 0}
    stuck = quiet_fit(DPMixtureVB(proposals=None, **start), X)
    found = quiet_fit(DPMixtureVB(proposals=(Relocate(),), **start), X)
    assert stuck.n_components_ == 3 and found.lower_bound_ > stuck.lower_bound_ + 5.0


@pytest.mark.quarter
@pytest.mark.parametrize("proposal", RESORTS, ids=lambda proposal: proposal.kind)
def test_trials_are_of_finite_parameters_and_present_components(proposal, leading_family):
    family = leading_family
    if family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, N_ROWS, spread=1.5)
    learner, source = learner_for(family, X, resp=random_resp(rng, N_ROWS, 4), proposals=[proposal])
    for _ in range(5):
        learner.scheduler.last_resort()
        learner.run_lap(source)
        n_trials = len(learner.scheduler.trials)
        # others replace all components
        assert n_trials <= (10 if proposal.kind == "regroup" else 1)
        for trial in learner.scheduler.trials:
            assert isinstance(trial, SplitTrial) and set(trial.removed) <= set(
                learner.totals.uids.tolist()
            )
            assert np.isfinite(trial.coef).all() and len(trial.coef) == len(trial.created) > 1


@pytest.mark.quarter
@pytest.mark.parametrize("max_components", [2, 3, 5])
def test_no_more_components_than_allowed(max_components):
    data = nested(9)
    model = DPMixtureVB(max_components=max_components, random_state=0).fit(data.X[:800])
    assert max(lap.n_components for lap in model.history_) <= max_components


class OtherBirth(Birth):
    """A second source of components, which knows nothing of the first."""

    kind = "other"


@pytest.mark.parametrize("n_most", [3, 5, 6])
@pytest.mark.parametrize(
    "proposals",
    [
        (Birth("adopt"), OtherBirth()),
        (Birth(), OtherBirth()),
        (OtherBirth("adopt"), Regroup()),
        (Birth("adopt"), OtherBirth(), "delete", Regroup()),
    ],
    ids=lambda proposals: "-".join(getattr(p, "kind", p) for p in proposals),
)
def test_proposals_share_the_room_that_there_is(proposals, n_most):
    """Each alone would respect the limit, but what several plan for one lap may be accepted together."""
    rng, labels = np.random.default_rng(0), np.arange(800) % 16
    X = rng.standard_normal((800, 2)) + 20.0 * np.stack([labels // 4, labels % 4], axis=1)
    start = {"init_params": one_hot(labels // 8), "n_batches": 2, "random_state": 0}
    model = quiet_fit(
        DPMixtureVB(max_components=n_most, proposals=proposals, max_iter=12, **start), X
    )
    assert max(lap.n_components for lap in model.history_) == n_most


@pytest.mark.extended
def test_rounds_are_limited():
    rows = np.random.default_rng(0).standard_normal((120, 6))
    proposals = Regroup(max_rounds=1), Relocate(max_rounds=1), Oversplit(max_rounds=1)
    resp = random_resp(np.random.default_rng(1), 120, 4)
    learner, source = learner_for(FAMILIES[0], rows[:, :3], resp=resp, proposals=proposals)
    planned = []
    for _ in range(4):
        learner.scheduler.last_resort()
        learner.run_lap(source)
        planned.append(len(learner.scheduler.trials))
    assert planned[1:] == [0, 0, 0]


@pytest.mark.parametrize("most_seeds", [1, 4])
def test_the_cost_of_regrouping_is_bounded(most_seeds, monkeypatch):
    """However wide rows are: seeds hold few numbers, and splits are few where each is costly."""
    n, P, settled, seeds_of = 90, 10, regroup._settled, []
    most_numbers = 3 * 6 * P * n  # three splits of all rows from six seeds

    def counted(small, seeds, n_seeds):
        seeds_of.append((small.sample.z.shape[0], len(seeds)))
        return settled(small, seeds, n_seeds)

    monkeypatch.setattr(regroup, "_settled", counted)
    monkeypatch.setattr(ways, "_MOST_NUMBERS", most_seeds * P)
    monkeypatch.setattr(regroup, "_MOST_NUMBERS", most_numbers)
    X, rng = np.random.default_rng(0).standard_normal((n, 3)), np.random.default_rng(1)
    learner, source = learner_for(
        FAMILIES[0], X, resp=random_resp(rng, n, 3), proposals=[Regroup()]
    )
    learner.scheduler.last_resort()
    learner.run_lap(source)
    assert bool(seeds_of) == (most_seeds > 1)
    assert sum(rows * n_seeds * P for rows, n_seeds in seeds_of) <= most_numbers
    assert all(n_seeds <= most_seeds for _, n_seeds in seeds_of)


@pytest.mark.parametrize(
    "proposal",
    [
        Regroup(max_pools=0),
        Regroup(max_rows=1),
        Relocate(n_steps=0),
        Relocate(max_rounds=0),
        Oversplit(n_seeds=1),
        Oversplit(patience=0),
    ],
)
def test_parameters_are_checked(proposal):
    with pytest.raises(ValueError, match="parameter of"):
        DPMixtureVB(proposals=(proposal,)).fit(np.eye(4))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("make", "problem", "seed"),
    [pytest.param(gaussian, 5, 2, marks=pytest.mark.slow), (gaussian, 14, 0), (nested, 1, 0)],
)
def test_one_start_is_as_good_as_the_truth(make, problem, seed):
    """Problems on which births, merges and deletes alone end tens of nats below a start from the truth."""
    data = make(problem)
    truth = DPMixtureVB(init_params=one_hot(data.y), random_state=0).fit(data.X)
    assert DPMixtureVB(random_state=seed).fit(data.X).lower_bound_ > truth.lower_bound_ - 5.0


@pytest.mark.slow
def test_few_starts_end_below_the_truth():
    """The same problems with five seeds each: seeds are drawn badly in a quarter of the fits at most."""
    below = 0
    for make, problem in [(gaussian, 5), (gaussian, 14), (nested, 1)]:
        data = make(problem)
        truth = DPMixtureVB(init_params=one_hot(data.y), random_state=0).fit(data.X).lower_bound_
        fits = (DPMixtureVB(random_state=seed).fit(data.X) for seed in range(5))
        below += sum(fit.lower_bound_ < truth - 5.0 for fit in fits)
    assert below <= 4
