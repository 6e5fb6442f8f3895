"""Plans for a lap: who is asked first, what proposals know of each other, and the room that they share."""

import numpy as np
import pytest

from sklearn_bnp import AdoptTrial, Proposal, SplitTrial, UnionTrial
from sklearn_bnp.engine.proposal import Context
from sklearn_bnp.engine.samples import UniformSample
from sklearn_bnp.engine.scheduler import Accepted, Scheduler
from sklearn_bnp.engine.state import LearnerSettings, ScheduleState
from sklearn_bnp.engine.statistics import StatBag, UidCounter
from sklearn_bnp.engine.trials import Outcome, Policy, UndoTrial


class NoRows:
    """Samples of a lap in which no row was drawn."""

    probe = None

    def copy(self):
        return self

    def samples(self):
        return {}

    def uniform(self):
        return UniformSample.empty()

    def samples_after(self, change, model, samples):
        pass

    def uniform_after(self, change, model, uniform, uids, after):
        return uniform


class Stub(Proposal):
    """Plans what a function of the context says, and keeps the contexts."""

    def __init__(self, kind, plans, pending=False, overdue=False, goes_last=False):
        self.kind, self.plans, self.is_pending, self.is_overdue = kind, plans, pending, overdue
        self.goes_last, self.contexts = goes_last, []

    pending = property(lambda self: self.is_pending)
    overdue = property(lambda self: self.is_overdue)

    def reset(self):
        pass

    def plan(self, context):
        self.contexts.append(context)
        return self.plans(context)


def nothing(context):
    return []


def room(context):
    return int(context.max_components) - len(context.totals.uids)


def adopts(kind, most=100, **arguments):
    """Births with the lap, of as many components as there is room for, up to ``most``."""

    def plan(context):
        n = min(room(context), most)
        target = int(context.totals.uids[0])
        return [AdoptTrial(kind, target, context.new_uids(n), np.zeros((n, 2)))] if n > 0 else []

    return Stub(kind, plan, **arguments)


def splits(kind, uid=0, **arguments):
    """One component becomes as many as there is room for."""

    def plan(context):
        n = room(context) + 1
        return [SplitTrial(kind, (uid,), context.new_uids(n), np.zeros((n, 2)))] if n > 1 else []

    return Stub(kind, plan, **arguments)


def planned(proposals, n, most, before=None, accepted=()):
    """The scheduler after its plans for a model of ``n`` components, and the contexts of the proposals."""
    uids = np.arange(n)
    settings, new_uids = LearnerSettings(max_components=most), UidCounter(1000)
    state = ScheduleState(tuple(proposals), sampling=NoRows())
    scheduler = Scheduler(state, new_uids, settings, NoRows)
    totals = StatBag(uids, np.ones((n, 2)), np.zeros(n))

    def context_of(samples, uniform):
        rng = np.random.RandomState(0)
        return Context(None, totals, samples, uniform, rng, new_uids, settings.max_components)

    before = uids if before is None else np.arange(before)
    scheduler.plan(context_of, before, list(accepted))
    return scheduler, {p.kind: p.contexts[0] for p in scheduler.proposals if p.contexts}


def n_on_trial(scheduler):
    return sum(len(t.created) for t in scheduler.trials if t.policy is Policy.WITH_LAP)


def kinds(scheduler):
    return [trial.kind for trial in scheduler.trials]


# ---------------------------------------------------------------------- room


def test_components_on_trial_take_room_from_later_proposals():
    """Once, and splits take none: there may be no room left when these are judged."""
    proposals = adopts("a", most=2), splits("b"), splits("c", uid=1)
    scheduler, contexts = planned(proposals, n=4, most=10)
    assert [contexts[kind].max_components for kind in "abc"] == [10, 8, 8]
    assert kinds(scheduler) == ["a", "b", "c"]


def test_components_that_left_in_the_lap_make_room_once():
    """Ten components were six at the end of the lap: a first proposal takes all four places."""
    _, contexts = planned([adopts("a"), splits("b")], n=6, most=10, before=10)
    assert contexts["a"].max_components == 10
    assert contexts["b"].max_components == 6


def test_what_was_accepted_in_the_lap_makes_room_once():
    """A union of two leaves one place, which is that of the first proposal."""
    union = UnionTrial("merge", (4, 5), (4,))
    outcome = Outcome(StatBag(np.array([4]), np.ones((1, 2)), np.zeros(1)), None)
    accepted = [Accepted(union, outcome)]
    _, contexts = planned([adopts("a"), splits("b")], n=5, most=6, before=6, accepted=accepted)
    assert contexts["a"].settling and contexts["b"].settling
    assert contexts["b"].max_components == 5


@pytest.mark.parametrize("n", [1, 5, 9, 10, 12])
@pytest.mark.parametrize("before", [0, 1, 7])
def test_the_limit_is_never_exceeded(n, before):
    """Nor does any proposal see less room than none, if a limit was lowered below what is there."""
    most = 10
    proposals = adopts("a", most=3), adopts("b"), splits("c"), adopts("d")
    scheduler, contexts = planned(proposals, n, most, n + before)
    on_trial = n_on_trial(scheduler)
    assert n + on_trial <= max(most, n)
    assert n + on_trial == most or n >= most or on_trial == 3
    assert all(room(context) >= 0 for context in contexts.values())
    for trial in scheduler.trials:
        if trial.policy is Policy.AT_ONCE:
            assert n + on_trial + len(trial.created) - len(trial.removed) <= max(most, n)


# ---------------------------------------------------------------------- turns


def test_what_is_overdue_comes_first_and_the_others_in_their_order():
    order = []

    def noted(kind):
        return lambda context: order.append(kind) or []

    proposals = [Stub(kind, noted(kind), overdue=kind in "ce") for kind in "abcde"]
    planned(proposals, 3, 10)
    assert "".join(order) == "ceabd"


@pytest.mark.parametrize("overdue", [False, True])
def test_what_was_overdue_is_tried_before_a_fit_ends(overdue):
    """A fit without patience makes the lap of its trials, and no further one."""

    class InTurn(Stub):
        def plan(self, context):
            self.is_overdue = False
            return super().plan(context)

    first = InTurn("a", splits("a").plans, overdue=overdue)
    scheduler, _ = planned([first, splits("b", uid=1)], n=2, most=3)
    assert kinds(scheduler) == ["a", "b"]
    assert scheduler.has_more(True)
    assert scheduler.has_more(False) is overdue
    scheduler.plan(lambda *found: None, np.arange(2), [])  # no lap has begun: there is no plan
    assert not scheduler.has_more(False)


@pytest.mark.parametrize("overdue", [False, True])
def test_a_lap_has_components_on_trial_of_one_proposal(overdue):
    """The first that has any; trials to take back those of others go with them."""

    def with_undo(kind, target):
        def plan(context):
            new = context.new_uids(1)
            trial = AdoptTrial(kind, target, new, np.zeros((1, 2)))
            return [trial, UndoTrial(kind, (target, *new), (target,))]

        return plan

    first, second = Stub("a", with_undo("a", 0)), Stub("b", with_undo("b", 1), overdue=overdue)
    scheduler, contexts = planned([first, second, splits("c", uid=2)], 4, 10)
    winner, loser = ("b", "a") if overdue else ("a", "b")
    assert kinds(scheduler) == [winner, winner, "c"]
    assert not contexts[winner].on_trial
    assert contexts[loser].on_trial and contexts["c"].on_trial


def test_trials_of_components_that_retire_are_dropped():
    """No row may go to a component that retires; what else was planned for it would be judged on nothing."""

    def plan(context):
        return [AdoptTrial("a", 1, context.new_uids(2), np.zeros((2, 2)), retires=True)]

    scheduler, _ = planned([Stub("a", plan), splits("b", uid=1), splits("c", uid=2)], 4, 10)
    assert kinds(scheduler) == ["a", "c"]
    assert scheduler.retired == {1: (1000, 1001)}


def test_proposals_are_told_what_others_do():
    """Idle are those before whom nothing is planned or pending, unless that goes last."""
    proposals = (
        Stub("a", nothing), Stub("b", nothing, pending=True, goes_last=True), splits("c"),
        Stub("d", nothing, pending=True), Stub("e", nothing),
    )  # fmt: skip
    _, contexts = planned(proposals, 3, 10)
    assert [contexts[kind].idle for kind in "abcde"] == [True, True, True, False, False]
    assert [contexts[kind].others_pending for kind in "abcde"] == [True, True, True, False, False]
    _, contexts = planned([Stub("a", nothing, pending=True), Stub("b", nothing)], 3, 10)
    assert [contexts[kind].idle for kind in "ab"] == [True, False]
