"""Learning from batches that arrive one at a time, by `partial_fit`.

A batch that was seen before is part of a lap over all batches in memory, and proposals work as in `fit`.
A new batch may never be seen again. Trials are therefore planned on it, observe it and are judged at once.
Other batches do not change, and for entropies that cannot be known lower bounds stand. Either way a
trial is accepted only if the objective, or its lower bound, rises.
"""

from __future__ import annotations

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
    """Visit a batch in memory, as a part of a lap over all of these."""
    learner.scheduler.heed_weights(batch)
    if not learner.lap_under_way:
        learner.begin_lap()
    learner.visit(batch)
    if learner.lap_is_complete:
        learner.end_lap()
        learner.scheduler.drop_samples()  # a model at rest holds no rows


def _new(learner, batch):
    """Visit a new batch in several rounds, each with trials that are planned on it and judged on it."""
    first, scheduler, n_rounds = (
        len(learner.memo) == 0,
        learner.scheduler,
        learner.model.stream_rounds,
    )
    if learner.lap_under_way:
        learner.end_lap(propose=False)
    scheduler.drop_trials()
    scheduler.new_data()
    values_per_row = batch.values_per_row or learner.model.likelihood.n_features
    scheduler.fit_samples_to(batch.n_entries, values_per_row)
    scheduler.heed_weights(batch)
    for i in range(n_rounds):
        learner.begin_lap(batch.total_weight if first and i == 0 else None)
        learner.visit(batch)
        batch = batch._replace(resp=None)
        n_own = 0 if first or i > 0 else _own_components(learner, batch.batch_id)
        if n_own:  # probes know the components from before
            learner.begin_lap()
            learner.visit(batch)
        last = i + 1 == n_rounds
        lap = learner.end_lap(propose=not last, first=first and i == 0)
        if n_own:
            learner.history[-1] = lap._replace(
                tried=_with_births(lap.tried, n_own), accepted=_with_births(lap.accepted, n_own)
            )
        if last or (i > 0 and not lap.accepted and not scheduler.trials):
            break
    learner.model = learner.model.released()
    scheduler.new_data()  # what failed on these rows may succeed on all
    scheduler.drop_trials()  # there are none, but for the rows drawn for them


def _own_components(learner, batch_id):
    """Give the batch components of its own if the objective rises, and return their number."""
    model, totals = learner.model, learner.totals
    if all(proposal.kind != "birth" for proposal in learner.scheduler.proposals):
        return 0
    trials = model.own_components(
        totals, learner.memo.get(batch_id, totals.uids), batch_id, learner.new_uids,
        learner.settings.max_components - len(totals.uids), learner.scheduler.mean_weight,
    )  # fmt: skip
    return learner.try_at_once(trials)


def _with_births(counts, n):
    return {**counts, "birth": counts.get("birth", 0) + n}
