"""Batches that arrive one at a time: what `partial_fit` does.

A batch that was seen before is part of a lap over all batches in memory, and proposals work as in
`fit`. A new batch is in hand once and may never be seen again, so proposals are planned on it,
observe it and are judged there and then: other batches keep what they have, and entropies that
cannot be known are bounded from below. Either way only exact rises of the objective (of its lower
bound) are accepted.

A split of the rows in hand cannot tell that all of them are unlike those gone by, as when data come
sorted. So before any proposal, a new batch may take what it gave to a component along to a new one.
"""

from __future__ import annotations

import numpy as np

from .edits import SplitEdit
from .scheduler import resolution

# Rows that a component of a batch's own needs, and must leave behind: a mass, which is scaled with the
# mean weight where that is less than 1.
_LEAST_ROWS = 4.0
# Laps that a never-ending stream remembers.
_KEPT_LAPS = 1000


def stream_batch(learner, batch, *, memoize=True):
    """Learn from one batch.

    Parameters
    ----------
    learner : Learner
        Changed on the way, and in an undefined state if the call fails: hand over a copy.
    batch : Batch
    memoize : bool
        Keep the batch's statistics so that a later visit can replace them.
    """
    if learner.n_steps and len(learner.memo) == 0:
        learner.forget_batches()  # what stochastic steps have seen is the past
    if batch.batch_id in learner.memo:
        _revisit(learner, batch)
    else:
        _new(learner, batch)
    if not memoize:
        learner.forget_batches()
        del learner.history[:-_KEPT_LAPS]


def _revisit(learner, batch):
    """Part of a lap over the batches in memory."""
    learner.scheduler.heed_weights(batch)
    if not learner.lap_under_way:
        learner.begin_lap()
    learner.visit(batch)
    if learner.lap_is_complete:
        learner.end_lap()
        learner.scheduler.collector = None  # a model at rest holds no rows


def _new(learner, batch):
    """Rounds of visits to a batch in hand, with proposals of its own."""
    first = len(learner.memo) == 0
    if learner.lap_under_way:
        learner.end_lap(propose=False)
    learner.scheduler.drop_trials()
    learner.scheduler.new_data()
    model = learner.model
    values_per_row = batch.values_per_row or model.likelihood.n_features
    learner.scheduler.fit_samples_to(batch.n_entries, values_per_row)
    learner.scheduler.heed_weights(batch)
    for i in range(model.stream_rounds):
        learner.begin_lap(batch.total_weight if first and i == 0 else None)
        learner.visit(batch)
        batch = batch._replace(resp=None)
        n_own = 0
        if model.new_batches_stay_together and i == 0 and not first:
            n_own = _own_components(learner, batch.batch_id)
        if n_own:  # observers know the components from before
            learner.begin_lap()
            learner.visit(batch)
        last = i + 1 == model.stream_rounds
        lap = learner.end_lap(propose=not last, first=first and i == 0)
        if n_own:
            learner.history[-1] = lap._replace(
                tried=_with_births(lap.tried, n_own), accepted=_with_births(lap.accepted, n_own)
            )
        if last or (i > 0 and not lap.accepted and not learner.scheduler.trials):
            break
    learner.scheduler.new_data()  # what failed on these rows may succeed on all
    learner.scheduler.drop_trials()  # there are none, but for the rows collected for them


def _own_components(learner, batch_id):
    """Give the batch components of its own where the objective rises, and return their number.

    What the batch gave to component k stays together, so that all statistics are known.
    """
    scheduler, model = learner.scheduler, learner.model
    if all(proposal.kind != "birth" for proposal in scheduler.proposals):
        return 0
    bag = learner.memo.get(batch_id, learner.totals.uids)
    rest = learner.totals.add(bag, -1.0)
    own, others, both = (
        model.likelihood.evidence(model.prior, b.s) for b in (bag, rest, learner.totals)
    )
    gain = own + others - both
    least_mass = _LEAST_ROWS * min(1.0, scheduler.mean_weight or 1.0)
    gain[(bag.n < least_mass) | (rest.n < least_mass)] = -np.inf
    before, least = len(learner.totals.uids), resolution(model, learner.totals)
    for k in np.argsort(-gain, kind="stable"):
        created = learner.new_uids(1)
        row = bag.take([k])._replace(uids=np.array(created, dtype=np.int64))
        removed = (int(bag.uids[k]),)
        totals = learner.totals.replaced(removed, rest.take([k]).concatenated(row))
        change = model.allocation_term(totals) - model.allocation_term(learner.totals)
        if len(totals.uids) > scheduler.max_components or not gain[k] + change > least:
            break
        learner.totals = totals
        learner.memo.record(SplitEdit(removed, created, {batch_id: row}))
    learner.coef = model.coefficients(learner.totals)
    return len(learner.totals.uids) - before


def _with_births(counts, n):
    return {**counts, "birth": counts.get("birth", 0) + n}
