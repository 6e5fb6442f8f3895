"""A trial with a probe of its own, as "Add a proposal" explains it: it pickles and adds up."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import DPMixtureVB, Proposal, Trial
from sklearn_bnp.engine import Each, Observer, Outcome, Probe, SplitEdit, StatBag


@dataclass(frozen=True, eq=False)
class CutProbe(Probe):
    """Rows of a component go to one of two others, by the sign of a column of prepared rows."""

    removed: int
    created: tuple
    column: int

    @classmethod
    def observer(cls, probes, task):
        return Each(CutObserver(probe, task.model.likelihood) for probe in probes)

    def added(self, first, second):
        return first.add(second)  # findings are `StatBag`


class CutObserver(Observer):
    """Sums up the two sides of one cut."""

    def __init__(self, probe, likelihood):
        self.probe, self.likelihood = probe, likelihood
        self.s, self.entropy = np.zeros((2, likelihood.n_statistics)), np.zeros(2)

    def observe(self, block):
        resp = block.resp[:, block.uids == self.probe.removed]
        above = block.z[:, [self.probe.column]] > 0
        shares = np.where(np.hstack([above, ~above]), resp, 0.0)
        weight = 1.0 if block.weight is None else block.weight[:, np.newaxis]
        s = np.empty_like(self.s)
        self.likelihood.summarise(block.z, weight * shares, s)
        self.s += s
        self.entropy -= np.sum(weight * shares * np.log(np.where(shares > 0, shares, 1.0)), axis=0)

    def finding(self, statistics):
        return StatBag(np.array(self.probe.created), self.s, self.entropy)


class CutTrial(Trial):
    """Cut a component in two."""

    kind = "cut"

    def __init__(self, removed, created, column):
        self.removed, self.created = (removed,), tuple(created)
        self.probe = CutProbe(removed, self.created, column)

    def outcome(self, totals, findings, rest=None):
        if rest is not None and rest.n.sum() > 0:
            return None  # rows that were not observed cannot be cut
        successors, *others = findings.values()
        for finding in others:
            successors = successors.add(finding)
        return Outcome(successors, SplitEdit(self.removed, self.created, findings))


class Cut(Proposal):
    """Cut the only component at the mean of each column."""

    kind = "cut"
    suits = ("mixture",)

    def reset(self):
        self.verdicts = []

    def plan(self, context):
        uids = context.totals.uids.tolist()
        if len(uids) > 1 or self.verdicts:
            return []
        columns = range(context.model.likelihood.n_features)
        return [CutTrial(uids[0], context.new_uids(2), column) for column in columns]

    def judged(self, trial, accepted, mass, gain):
        self.verdicts.append((trial.probe.column, accepted, mass, gain))


@pytest.fixture
def rows():
    rng, labels = np.random.default_rng(0), np.arange(600) % 2
    return rng.standard_normal((600, 3)) + np.outer(labels, [0.0, 9.0, 0.0])


@pytest.mark.parametrize("weights", [None, 2.0])
@pytest.mark.parametrize("n_batches", [1, 5])
def test_the_best_cut_is_carried_out(rows, weights, n_batches):
    model = DPMixtureVB(proposals=(Cut(),), n_components=1, n_batches=n_batches, random_state=0)
    model.fit(rows, sample_weight=None if weights is None else np.full(len(rows), weights))
    assert model.n_components_ == 2
    assert sum(lap.tried.get("cut", 0) for lap in model.history_) == 3
    assert sum(lap.accepted.get("cut", 0) for lap in model.history_) == 1
    assert np.all(np.diff(model.lower_bounds_) > -1e-9 * np.abs(model.lower_bound_))
    cut = next(i for i, lap in enumerate(model.history_) if lap.accepted)
    given = DPMixtureVB(proposals=None, init_params=np.eye(2)[(rows[:, 1] > rows[:, 1].mean()) * 1])
    assert model.lower_bounds_[cut] > model.lower_bounds_[cut - 1]
    if weights is None:  # the two sides are those that a user could have given
        assert_allclose(model.lower_bound_, given.fit(rows).lower_bound_, rtol=1e-6)


def test_a_stream_takes_it(rows):
    model = DPMixtureVB(proposals=(Cut(),), n_components=1, random_state=0)
    for part in np.array_split(rows, 3):
        model.partial_fit(part)
    assert model.n_components_ == 2


def test_probe_and_finding_can_be_pickled():
    probe = pickle.loads(pickle.dumps(CutProbe(3, (8, 9), 1)))
    assert (probe.removed, probe.created, probe.column) == (3, (8, 9), 1)
    bag = StatBag(np.array([8, 9]), np.ones((2, 4)), np.zeros(2))
    both = probe.added(bag, pickle.loads(pickle.dumps(bag)))
    assert_array_equal(both.s, np.full((2, 4), 2.0))
