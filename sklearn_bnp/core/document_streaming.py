"""Batches of documents that arrive one at a time: what `partial_fit` of topic models does.

As for rows (`streaming`), but a new batch gets no components of its own before it has been looked at: births
of topics let its documents think again over all topics, and find what is new in it.
"""

from __future__ import annotations

from .streaming import stream_batch

# Rounds of proposals on a new batch. Births are tried in every other one: what they lead to is tidied
# up by merges in between.
_ROUNDS = 4


def stream_documents(learner, batch):
    """Learn from one batch.

    Parameters
    ----------
    learner : Learner
    batch : DocumentBatch
    """
    if batch.batch_id in learner.memo:
        stream_batch(learner, batch)
        return
    try:
        _new(learner, batch)
    except BaseException:
        if len(learner.memo):
            # trials that watch may have seen a part of the batch; those in the model must be judged
            learner.scheduler.trials = learner.scheduler.adoptions
            learner.end_lap(propose=False)
        raise


def _new(learner, batch):
    """Rounds of visits to a batch in hand, with proposals of its own."""
    first = len(learner.memo) == 0
    if learner.lap_under_way:
        learner.end_lap(propose=False)
    learner.scheduler.drop_trials()
    for i in range(_ROUNDS):
        learner.begin_lap(batch.total_weight if first and i == 0 else None)
        learner.visit(batch)
        batch = batch._replace(resp=None)
        last = i + 1 == _ROUNDS
        lap = learner.end_lap(propose=not last, first=first and i == 0)
        if i > 0 and not lap.accepted and not learner.scheduler.trials:
            break
    for proposal in learner.scheduler.proposals:
        proposal.reset()  # what failed on these documents may succeed on all
    learner.scheduler.drop_trials()
