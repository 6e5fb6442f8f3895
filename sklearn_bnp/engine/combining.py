"""Models of different rows become one, from their statistics alone.

Design note
-----------
(a) Each part, a model with its rows, is as a batch that will not be seen again. Its components have names
    that no other part knows. All of them together are a model of all rows, whose objective is known exactly.
(b) Unions follow. A component of one part takes no share of the rows of another. The entropy of a union of
    components of different parts is therefore the sum of their entropies, and the objective after it is
    exact too. Where a union has two components of one part, a lower bound stands for its entropy there.
"""

from __future__ import annotations

import numpy as np

from .edits import union_row
from .learner import PAST
from .merge import Merge
from .proposal import Context
from .samples import UniformSample
from .scheduler import Scheduler
from .state import ScheduleState
from .task import Purpose

# Steps of empirical Bayes on all statistics, and the most times that these and unions take turns.
_ADAPT_STEPS, _MOST_ROUNDS = 20, 10


def combine_parts(learner, bags):
    """Let a new learner have the components of several parts, joined where that raises the objective.

    Parameters
    ----------
    learner : Learner
        It has a model and no statistics.
    bags : list of StatBag
        The totals of each part.
    """
    for i, bag in enumerate(bags):
        uids = np.array(learner.new_uids(len(bag.s)), dtype=np.int64)
        learner.memo.put((*PAST, i), bag._replace(uids=uids))
    uids = np.arange(sum(len(bag.s) for bag in bags))
    learner.totals = learner.memo.total(uids, bags[0].s.shape[1])
    learner.model = learner.model.updated(learner.totals)
    n_unions = 0
    for _ in range(_MOST_ROUNDS):
        learner.model = learner.model.with_adapted_prior(learner.totals, _ADAPT_STEPS)
        n_more = _unite(learner)
        n_unions += n_more
        if not n_more:
            break
    lap = learner.end_lap(propose=False, resum=True)
    learner.history[-1] = lap._replace(accepted={"merge": n_unions} if n_unions else {})
    mass = learner.totals.n.sum()
    learner.stream = learner.stream._replace(came=mass, learned=mass)
    learner.forget_batches()


def _unite(learner):
    """Join components as long as a union raises the objective; the number of unions."""
    merge, n_unions = Merge(max_members=2), 0
    merge.reset()
    while True:
        learner.totals, learner.model = learner.model.in_order(learner.totals)
        trials = merge.plan(_context(learner))
        if not trials:
            return n_unions
        bags = {
            name: learner.memo.get(name, learner.totals.uids) for name in learner.memo.batch_ids
        }
        found = [{name: _entropy(bag, trial) for name, bag in bags.items()} for trial in trials]
        scheduler = Scheduler(
            ScheduleState((merge,), tuple(trials), tuple(found)), learner.new_uids,
            learner.settings, learner.model.sampling,
        )  # fmt: skip
        verdict = scheduler.judge(learner.model, learner.totals, learner.memo)
        [merge] = scheduler.proposals  # which remembers what has failed
        for change in verdict.accepted:
            learner.memo.record(change.outcome.edit)
        learner.model, learner.totals = verdict.model, verdict.totals
        n_unions += len(verdict.accepted)


def _entropy(bag, trial):
    """Entropy of the union on one part, or a lower bound of it."""
    if not np.any(bag.s[np.isin(bag.uids, trial.removed), -1]):
        return 0.0
    return float(union_row(bag, trial.removed, trial.created).entropy[0])


def _context(learner):
    K = len(learner.totals.uids)
    return Context(
        learner.model, learner.totals, {}, UniformSample.empty(K), learner.rng(Purpose.PLAN),
        learner.new_uids, learner.settings.max_components,
    )  # fmt: skip
