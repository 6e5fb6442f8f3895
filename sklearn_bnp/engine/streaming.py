"""Learning from batches that arrive one at a time, by `partial_fit`.

Design note
-----------
(a) A batch that was seen before is part of a lap over all batches in memory, and proposals work as in `fit`.
(b) A new batch may never be seen again. Trials are therefore planned on it, observe it and are judged at
    once. Other batches do not change, and for entropies that cannot be known lower bounds stand. Either way
    a trial is accepted only if the objective, or its lower bound, rises.
(c) A model may ask for a *pool*. A small batch, of a single sequence say, never pays for a new component by
    itself, and would leave all of them for ever in those that the first batches have found. New batches are
    therefore kept, with their rows, until they are many. Whenever their mass has grown by a quarter,
    laps go over all of them as those of a fit, with everything that it tries. What they change is
    judged on the pool exactly. When the pool is full, its rows are forgotten, and another begins.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from ..inputs.groups import GroupSource
from .learner import PAST

# Laps that a never-ending stream remembers.
_KEPT_LAPS = 1000
# Growth of the mass, as a share of what was learned from or of a full pool, with which laps are due.
_GROWTH = 0.25
# Numbers that a pool may hold.
_POOL_VALUES = 2_000_000
# Rows of the batches that a pool is cut into, and the most of them.
_PART_ROWS, _MOST_PARTS = 2000, 10
# Most laps over the pool at a time, and the gain per row, in nats, under which they have come to rest.
_LAPS, _TOL = 50, 1e-3


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
    if learner.model.pool_rows and not memoize:  # one that returns counts as new
        learner.n_batches += 1
        batch = batch._replace(batch_id=(*PAST, learner.n_batches))
    if batch.batch_id in learner.memo:
        learner.pool = ()  # epochs go over all batches, not these alone
        _revisit(learner, batch)
    elif learner.model.pool_rows:
        if hasattr(batch, "as_source"):  # rows that lie elsewhere are not kept, and are many
            learner.pool = ()
            _learn(learner, [batch], batch.as_source())
        else:
            _pooled(learner, batch)
    else:
        _new(learner, batch)
    if not memoize:
        learner.forget_batches(tuple(batch.batch_id for batch in learner.pool))
        del learner.history[:-_KEPT_LAPS]


class _Pool(GroupSource):
    """The batches of a pool as one, cut anew into fewer of about the same size.

    Parameters
    ----------
    batches : list of Batch
    """

    def __init__(self, batches):
        first, *others = batches
        everything = first.joined(others) if others else first
        super().__init__(
            everything, int(np.clip(everything.n_entries // _PART_ROWS, 1, _MOST_PARTS))
        )
        self._alone = None if others else first.batch_id

    def name(self, i):
        """Name of the i-th batch; a batch that is alone keeps its own."""
        return (*PAST, "pool", i) if self._alone is None else self._alone

    def batch(self, i):
        """Batch number i."""
        if self._alone is not None:
            return self.everything
        return super().batch(i)._replace(batch_id=self.name(i))

    def without_responsibilities(self):
        """A copy of the pool without given responsibilities: local steps will find them."""
        other = copy(self)
        other.everything = self.everything._replace(resp=None)
        return other


def _pooled(learner, batch):
    """Put a new batch into the pool; if this has grown enough, learn from all of it."""
    batches, model = [*learner.pool, batch], learner.model
    n_rows = sum(one.n_entries for one in batches)
    values = sum(
        one.n_entries * (one.values_per_row or model.likelihood.n_features) for one in batches
    )
    room = min(model.pool_rows, int(_POOL_VALUES * n_rows / max(values, 1)))
    mass = sum(one.total_weight for one in batches)
    seen = batch.total_weight + (learner.totals.n.sum() if len(learner.memo) else 0.0)
    least = min(learner.mass_learned, mass * room / max(n_rows, 1))
    if seen - learner.mass_learned >= _GROWTH * least:
        _learn(learner, batches)
    else:
        _new(learner, batch)
    learner.pool = (*learner.pool, batch.kept()) if n_rows <= room else ()


def _learn(learner, batches, source=None):
    """Laps over all batches of a pool, of which the last one is new, as in a fit; ``source`` has them."""
    learner.scheduler.new_data()
    _ready_for(learner, batches[-1])
    names, source = [batch.batch_id for batch in batches], source or _Pool(batches)
    parts = [source.batch(i) for i in range(len(source))]
    whole, converged = len(batches) == 1, learner.converged
    if not whole:
        learner.put_in_place(parts, names)
    learner.fit(source, _LAPS, _TOL)
    if not whole:
        learner.put_in_place(batches, [part.batch_id for part in parts])
        learner.end_lap(propose=False)
    learner.scheduler.drop_trials()
    learner.mass_learned, learner.converged = learner.totals.n.sum(), converged


def _ready_for(learner, batch):
    """End what is under way, and return whether the batch is the first."""
    scheduler = learner.scheduler
    if learner.lap_under_way:
        learner.end_lap(propose=False)
    scheduler.drop_trials()
    values_per_row = batch.values_per_row or learner.model.likelihood.n_features
    scheduler.fit_samples_to(batch.n_entries, values_per_row)
    scheduler.heed_weights(batch)
    return len(learner.memo) == 0


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
    scheduler, n_rounds = learner.scheduler, learner.model.stream_rounds
    scheduler.new_data()
    first = _ready_for(learner, batch)
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
