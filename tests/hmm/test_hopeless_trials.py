"""Merges and deletes of states that are given up before they have observed all batches."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, GaussianObservation
from sklearn_bnp.engine.scheduler import Scheduler

N_BATCHES = 6
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sequences(seed=0):
    """Sequences of four states, two for each batch."""
    rng = np.random.RandomState(seed)
    means = 3.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    out = []
    for _ in range(2 * N_BATCHES):
        z = np.repeat(rng.randint(4, size=12), rng.randint(3, 9, size=12))
        out.append(means[z] + rng.normal(size=(len(z), 2)))
    return out


@pytest.fixture
def verdicts(monkeypatch):
    """Kind of each trial that was looked at before the end of its lap, and whether it was given up."""
    out, looked = [], Scheduler._is_hopeless

    def is_hopeless(self, trial, *args):
        out.append((trial.kind, looked(self, trial, *args)))
        return out[-1][1]

    monkeypatch.setattr(Scheduler, "_is_hopeless", is_hopeless)
    return out


def fitted(X):
    return HDPHMMVB(8, n_batches=N_BATCHES, max_iter=6, random_state=0).fit(X)


@pytest.mark.extended
def test_giving_up_changes_no_fit(verdicts, monkeypatch):
    X = sequences()
    model = fitted(X)
    kinds = {kind for kind, hopeless in verdicts if hopeless}
    assert "delete" in kinds
    monkeypatch.setattr(Scheduler, "_is_hopeless", lambda *args: False)
    patient = fitted(X)
    assert model.lower_bounds_ == pytest.approx(patient.lower_bounds_, rel=1e-12)
    assert [lap.tried for lap in model.history_] == [lap.tried for lap in patient.history_]


@pytest.mark.extended
def test_units_of_columns_with_missing_values_do_not_matter(verdicts):
    """What lacks most values comes in the later batches, where the state that goes has few entries."""
    rng = np.random.RandomState(3)
    X = sequences()
    for i, x in enumerate(X):
        x[rng.random_sample(x.shape) < (0.6 if i >= N_BATCHES else 0.05)] = np.nan
    looked = []
    for unit in (1.0, 2.0**-20, 2.0**20):
        verdicts.clear()
        model = HDPHMMVB(
            8, observation=GaussianObservation("diag"), n_batches=N_BATCHES, random_state=0
        )
        model.set_params(max_iter=10).fit([unit * x for x in X])
        looked.append(list(verdicts))
    assert ("delete", True) in looked[0]
    assert looked[1] == looked[0] and looked[2] == looked[0]


@pytest.mark.parametrize("kind", ["merge", "delete"])
def test_expectation_of_all_batches_is_the_outcome(kind, monkeypatch):
    """With every batch observed, what is expected is what the trial would do."""
    compared, judge = [], Scheduler.judge

    def judged(self, model, totals, memo):
        for trial, found in zip(self.trials, self._findings, strict=True):
            present = set(totals.uids.tolist()).issuperset(trial.removed)
            if trial.kind == kind and present and len(found) == len(memo):
                expected = trial.expected(totals, totals, found)
                compared.append((expected, trial.outcome(totals, found).successors))
        return judge(self, model, totals, memo)

    monkeypatch.setattr(Scheduler, "judge", judged)
    monkeypatch.setattr(Scheduler, "_is_hopeless", lambda *args: False)
    fitted(sequences())
    assert compared
    for expected, real in compared:
        successors = expected.successors
        assert expected.allowance > 0
        assert np.array_equal(successors.uids, real.uids)
        np.testing.assert_allclose(successors.s, real.s, rtol=1e-9, atol=1e-8)
        if kind == "delete":
            uids = real.uids.tolist()
            counts = successors.extra.listed(uids), real.extra.listed(uids)
            np.testing.assert_allclose(*counts, rtol=1e-9, atol=1e-8)
            assert successors.extra.entropy == pytest.approx(real.extra.entropy)
        else:
            assert successors.extra.change == pytest.approx(real.extra.change)
