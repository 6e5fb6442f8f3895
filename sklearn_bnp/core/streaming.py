"""Batches that arrive one at a time: what `partial_fit` does.

A batch that was seen before is part of a lap over all batches in memory, and proposals work as in
`fit`. A new batch is in hand once and may never be seen again, so proposals are planned on it,
observe it and are judged there and then: other batches keep what they have, and entropies that
cannot be known are bounded from below. Either way only exact rises of the objective (of its lower
bound) are accepted.
"""

from __future__ import annotations

# Rounds of proposals on a new batch: each may split what the one before has found.
_ROUNDS = 3
# Laps that a never-ending stream remembers.
_KEPT_LAPS = 1000


def stream_batch(learner, batch, *, memoize=True):
    """Learn from one batch.

    Parameters
    ----------
    learner : Learner
    batch : Batch
    memoize : bool
        Keep the batch's statistics so that a later visit can replace them.
    """
    try:
        if batch.batch_id in learner.memo:
            _revisit(learner, batch)
        else:
            _new(learner, batch)
    except BaseException:
        # totals change only when a batch was seen to its end, but trials have watched a part of it
        learner.scheduler.drop_trials()
        learner.begin_lap()
        raise
    if not memoize:
        learner.forget_batches()
        del learner.history[:-_KEPT_LAPS]


def _revisit(learner, batch):
    """Part of a lap over the batches in memory."""
    if not learner.lap_under_way:
        learner.begin_lap()
    learner.visit(batch)
    if learner.lap_is_complete:
        learner.end_lap()
        learner.scheduler.collector = None  # a model at rest holds no rows


def _new(learner, batch):
    """Rounds of visits to a batch in hand, with proposals of its own."""
    first = len(learner.memo) == 0
    learner.scheduler.drop_trials()
    learner.scheduler.new_data()
    for i in range(_ROUNDS):
        learner.begin_lap(batch.total_weight if first and i == 0 else None)
        learner.visit(batch)
        batch = batch._replace(resp=None)
        last = i + 1 == _ROUNDS
        lap = learner.end_lap(propose=not last, first=first and i == 0)
        if last or (i > 0 and not lap.accepted and not learner.scheduler.trials):
            break
    learner.scheduler.drop_trials()  # there are none, but for the rows collected for them
