"""Stochastic variational inference (Hughes 2016, Alg. 3.2), for a fixed number of components."""

from __future__ import annotations

import time
from functools import reduce

import numpy as np

from ..engine.extra import NO_EXTRA
from .state import Lap
from .statistics import StatBag
from .task import Purpose

# Steps of empirical Bayes on statistics of given responsibilities, as after the first lap of a fit.
_FIRST_ADAPT_STEPS = 20


def stochastic_step(learner, batch, total, decay, offset):
    """One natural-gradient step on the global parameters; (3.52), which is linear in statistics.

    In the first step the average begins with the statistics from which the learner was started; if the batch
    brings responsibilities, with its statistics under these. Transitions are averaged, too (Sec. 6.6).
    Counts of documents are not: the documents of the batch stand for all, and the model averages the weights
    of topics instead.

    Parameters
    ----------
    learner : Learner
    batch : Batch
    total : float or None
        Mass of all data; if None, the mass of the batches so far.
    decay, offset : float
        The learning rate is ``(offset + t) ** -decay`` at step t.
    """
    learner.leave_memory()
    if batch.resp is not None:
        start_from_responsibilities(learner, [batch])
        batch = batch._replace(resp=None)
    learner.n_steps += 1
    learner.mass_seen += batch.total_weight
    total = learner.mass_seen if total is None else float(total)
    bag = learner.worked_on(batch).statistics
    rate = (offset + learner.n_steps) ** -decay
    keep = (1.0 - rate) * total / learner.totals.n.sum()
    times = total / batch.total_weight
    learner.totals = learner.totals._replace(
        s=keep * learner.totals.s + rate * times * bag.s,
        entropy=keep * learner.totals.entropy + rate * times * bag.entropy,
        extra=bag.extra.averaged(learner.totals.extra, keep, rate, times),
    )
    _global_step(learner, 1, rate)


def start_from_responsibilities(learner, batches):
    """Let averages begin with the statistics of batches under their given responsibilities."""
    learner.totals = reduce(StatBag.add, (learner.worked_on(b).statistics for b in batches))
    _global_step(learner, _FIRST_ADAPT_STEPS, 1.0)


def _global_step(learner, n_adapt_steps, rate):
    """Parameters for the totals, with the prior moved towards its optimum."""
    if learner.totals.extra is not NO_EXTRA:  # sticks suit components by decreasing mass
        learner.totals = learner.totals.take(np.argsort(-learner.totals.n, kind="stable"))
    model = learner.model.with_adapted_prior(learner.totals, n_adapt_steps)
    learner.model = model.blended(learner.totals, rate)
    learner.coef = learner.model.coefficients(learner.totals)


def fit_stochastic(
    learner, source, max_iter, decay, offset, on_lap, *, done=0, keep=lambda learner: None
):
    """Laps of stochastic steps, on batches drawn without replacement, and one exact lap over all data.

    After the last lap, statistics and objective are those of the whole data. Laps of steps end sooner if
    ``on_lap`` returns true. Of the ``max_iter`` laps of steps, ``done`` were made before; after the last of
    them, from which a later fit may go on, ``keep(learner)`` is called.
    """
    if source.resp is not None and done == 0:
        start_from_responsibilities(learner, source.batches())
    source = source.without_responsibilities()
    for _ in range(max_iter - done):
        start = time.perf_counter()
        for batch in source.shuffled(learner.rng(Purpose.SHUFFLE)):
            if batch.total_weight > 0:
                stochastic_step(learner, batch, source.total_weight, decay, offset)
        lap = Lap(
            learner.n_laps + 1, len(learner.totals.uids), learner.lower_bound,
            time.perf_counter() - start, 0.0, {}, {}, (), {},
        )  # fmt: skip
        learner.history.append(lap)
        if on_lap(lap):
            break
    keep(learner)
    learner.model = learner.model.released()
    on_lap(learner.run_lap(source, propose=False))
