"""Stochastic variational inference (Hughes 2016, Alg. 3.2), for a fixed number of components."""

from __future__ import annotations

import time

import numpy as np

from .document_counts import NO_DOCUMENTS
from .learner import Lap
from .stats import StatBag


def stochastic_step(learner, batch, total, decay, offset):
    """One natural-gradient step on the global parameters; (3.52), which is linear in statistics.

    So are transitions (Sec. 6.6). Counts of documents are not: those of the batch stand for all, and
    sticks are at their best for these (Hughes 2016, Sec. 5.4).

    Parameters
    ----------
    total : float or None
        Mass of the population; what has been seen so far if None.
    decay, offset : float
        The learning rate is ``(offset + t) ** -decay`` at step t.
    """
    learner.n_steps += 1
    learner.mass_seen += batch.total_weight
    total = learner.mass_seen if total is None else float(total)
    bag = learner.model.local_pass(
        batch, learner.coef, learner.totals.uids,
        n_nonzero=learner.n_nonzero, n_threads=learner.n_threads,
    )  # fmt: skip
    rate = (offset + learner.n_steps) ** -decay
    before = learner.totals.n.sum()
    if before > 0:
        keep = (1.0 - rate) * total / before
    else:
        rate, keep = 1.0, 0.0
    times = total / batch.total_weight
    scale = rate * times
    learner.totals = learner.totals._replace(
        s=keep * learner.totals.s + scale * bag.s,
        entropy=keep * learner.totals.entropy + scale * bag.entropy,
        docs=bag.docs.averaged(learner.totals.docs, keep, rate, times),
    )
    if bag.docs is not NO_DOCUMENTS:  # sticks suit components by decreasing mass
        learner.totals = learner.totals.take(np.argsort(-learner.totals.n, kind="stable"))
    learner.model = learner.model.with_adapted_prior(learner.totals, 1).updated(learner.totals)
    learner.coef = learner.model.coefficients(learner.totals)


def fit_stochastic(learner, source, max_iter, decay, offset, on_lap):
    """Laps of steps on batches drawn without replacement, then one exact step on everything.

    The last lap makes statistics and objective those of the whole data.
    """
    for _ in range(max_iter):
        start = time.perf_counter()
        for batch in source.shuffled(learner.rng):
            if batch.total_weight > 0:
                stochastic_step(learner, batch, source.total_weight, decay, offset)
        source = source.without_responsibilities()
        lap = Lap(
            learner.n_laps + 1, len(learner.totals.uids), learner.lower_bound,
            time.perf_counter() - start, 0.0, {}, {},
        )  # fmt: skip
        learner.history.append(lap)
        on_lap(lap)
    learner.totals = StatBag.zeros(learner.totals.uids, learner.totals.s.shape[1])
    on_lap(learner.run_lap(source, propose=False))
