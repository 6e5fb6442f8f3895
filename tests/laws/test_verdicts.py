"""The scheduler's verdicts: nothing that comes to nothing, and nothing by rounding, is accepted."""

import numpy as np
import pytest

from sklearn_bnp import Birth, DPMixtureVB, Merge
from sklearn_bnp.engine.edits import SplitEdit
from sklearn_bnp.engine.proposal import Proposal
from sklearn_bnp.engine.scheduler import resolution
from sklearn_bnp.engine.trials import KnownTrial, Outcome, SplitTrial, Trial, UndoTrial, UnionTrial

from .harness import learner_for, random_resp


class Same(Trial):
    """Replaces a component by one of the same statistics, whose entropy is some nats higher."""

    kind = "birth"

    def __init__(self, bag, created, nats):
        self.removed, self.created = tuple(bag.uids.tolist()), created
        self.target = self.removed[0]
        self.bag = bag._replace(uids=np.array(created), entropy=bag.entropy + nats)

    def outcome(self, totals, findings, rest=None):
        return Outcome(self.bag, SplitEdit(self.removed, self.created, findings))


@pytest.fixture
def learner(family):
    """After a lap over a batch, with three components and proposals that planned nothing."""
    rng = np.random.default_rng(0)
    X, _ = family.rows(rng, 150)
    resp = random_resp(rng, 150, 3)
    learner, source = learner_for(family, X, resp=resp, proposals=(Birth(), Merge()))
    learner.run_lap(source, propose=False)
    assert len(learner.totals.uids) == 3
    return learner


def verdict(learner, totals, trial, finding):
    """On a trial whose probe has found something in the only batch."""
    learner.scheduler.trials, learner.scheduler._findings = [trial], [{0: finding}]
    return learner.scheduler.judge(learner.model, totals, learner.memo)


def test_unions_of_one_are_not_tried(learner):
    """The other component has gone: to give the one that is left another name is no merge."""
    gone, *left = learner.totals.uids.tolist()
    totals = learner.totals.take([1, 2])
    trial = UnionTrial("merge", (gone, left[0]), learner.new_uids(1))
    found = verdict(learner, totals, trial, totals.entropy[0] + 1.0)  # it would seem to pay
    assert found.accepted == [] and not found.records
    assert found.totals.uids.tolist() == left


def test_births_of_one_take_the_old_name(learner):
    """Of the created one is left: the birth has failed, and the failure goes by the target's name."""
    target, (created, gone) = 77, learner.totals.uids.tolist()[:2]
    totals = learner.totals.take([0, 2])
    trial = UndoTrial("birth", (target, created, gone), (target,))
    found = verdict(learner, totals, trial, totals.entropy[0])
    assert [change.trial for change in found.accepted] == [trial]
    assert found.targets_undone == {target} and not found.records
    assert set(found.totals.uids.tolist()) == {target, int(totals.uids[1])}
    assert found.model.elbo(found.totals) == pytest.approx(learner.model.elbo(totals), rel=1e-12)


def test_splits_of_what_has_gone_are_dropped(learner):
    gone = int(learner.totals.uids[0])
    totals = learner.totals.take([1, 2])
    created = learner.new_uids(2)
    trial = SplitTrial("birth", [gone], created, learner.coef[:2])
    halves = learner.totals.take([0, 0])
    halves = halves._replace(uids=np.array(created), s=0.5 * halves.s, entropy=halves.entropy + 9.0)
    found = verdict(learner, totals, trial, halves)  # it would seem to pay
    assert found.accepted == [] and not found.records


@pytest.mark.parametrize("times", [0.0, 0.1, 10.0])
def test_gains_are_above_rounding(learner, times):
    """A rise that the sums it comes from cannot resolve is none."""
    least = resolution(learner.model, learner.totals)
    assert 0 < least < 1e-6
    trial = Same(learner.totals.take([1]), learner.new_uids(1), times * least)
    gains = []
    learner.scheduler.proposals[0].judged = lambda *verdict: gains.append(verdict[-1])
    found = verdict(learner, learner.totals, trial, trial.bag)
    assert len(found.accepted) == (times > 1)
    assert [gain > 0 for gain in gains] == [times > 1]  # what proposals see agrees with the verdict


class Hasty(Proposal):
    """Plans a change whose outcome is known beforehand, or a trial under another name."""

    kind = "hasty"

    def __init__(self, other=False):
        self.other = other

    def reset(self):
        pass

    def plan(self, context):
        totals = context.totals
        if self.other:
            return [UnionTrial("merge", totals.uids.tolist(), context.new_uids(1))]
        created, removed = context.new_uids(1), (int(totals.uids[0]),)
        row = totals.take([0])._replace(uids=np.array(created, dtype=np.int64))
        outcome = Outcome(row, SplitEdit(removed, created, {0: row}))
        return [KnownTrial(self.kind, removed, created, outcome)]


@pytest.mark.parametrize(
    ("other", "said"), [(False, "without a probe"), (True, "has the kind of its proposal, 'hasty'")]
)
def test_trials_that_cannot_be_judged_are_refused(other, said):
    """After a lap, statistics from before it are no longer true; a verdict needs whom to tell."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=said):
        DPMixtureVB(proposals=(Hasty(other),), random_state=0).fit(rows)
