"""Births from pairs of states: two states are replaced by several, created from the rows of both.

If two states share the rows of two true states in the wrong way, then a split of either is of no use, and a
merge is worse still. A model nested in both that starts from windows of all their rows is free of
how the two states share them.
"""

from __future__ import annotations

import numpy as np

from ..engine.affinity import union_evidence
from .creation import StateCreation, create_states, window_lengths
from .nested_chain import Chain, NestedModel
from .nested_links import Links
from .sampling import EDGE

# Two states with at least this many transitions between them are neighbours.
_NEIGHBOURS = 0.5
# Lengths of windows that are tried, and numbers of seeds: more cost time, and most pairs gain nothing.
_N_LENGTHS, _SEEDS = 2, (10,)
# Most passes of the two states over their own rows, and the gain per row at which they stop.
_STEPS, _TOL = 8, 1e-4
# New states have to be better than the two by this many nats, and nats per row.
_LEAST_GAIN, _LEAST_GAIN_A_ROW = 1.0, 0.05


def likely_pairs(model, totals):
    """All pairs of states (rows of ``totals``) as a list, the most promising first.

    Pairs that follow each other in sequences come before the others. Both sorts are ordered by the cost
    of the union for each row of the smaller state.
    """
    i, j = np.triu_indices(len(totals.n), 1)
    own = model.likelihood.evidence(model.prior, totals.s)
    loss = own[i] + own[j] - union_evidence(model.likelihood, model.prior, totals.s, i, j)
    loss /= np.maximum(np.minimum(totals.n[i], totals.n[j]), 1e-12)
    counts = totals.extra.listed(totals.uids.tolist())[1:]
    apart = counts[i, j] + counts[j, i] < _NEIGHBOURS
    order = np.lexsort((loss, apart))
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def create_from_pair(model, totals, pair, sample, n_most, rng, n_threads=1):
    """Successors of two states by a hidden Markov model nested in both.

    Parameters
    ----------
    model : SequenceModel
    totals : StatBag
    pair : list of int
        Rows of ``totals``.
    sample : StateSample
        Runs of the rows of both.
    n_most : int
        The most successors.
    rng : numpy.random.RandomState
    n_threads : int

    Returns
    -------
    StateCreation or None
        The gain is the change from the two states. None if there is no good one.
    """
    nested = NestedModel.in_place_of(pair, model, totals, sample, n_threads)
    two = nested.pass_over(as_they_are(totals, pair, sample, nested.around))
    gain = nested.gain(two, model.prior)
    least = gain + _LEAST_GAIN + _LEAST_GAIN_A_ROW * sample.total
    lengths = _window_lengths(totals, pair, sample)
    creation = create_states(nested, n_most, rng, lengths=lengths, seeds=_SEEDS, least_gain=least)
    made = [] if creation is None else [creation]
    # alone with their rows, without all other states, the two may improve by mere passes
    two = nested.iterate(two, _STEPS, _TOL * sample.total)
    if len(two.s) > 1:
        made.append(StateCreation.of(nested, two, model.prior))
    best = max(made, key=lambda one: one.gain, default=None)
    if best is None or best.gain < least:
        return None
    return best._replace(gain=best.gain - gain)


def as_they_are(totals, rows, sample, around):
    """The `Chain` of some states (``rows`` of the totals) in the whole data, scaled to a sample of these."""
    scale = sample.total / totals.n[rows].sum()
    uids = totals.uids[rows].tolist()
    J, counts = len(uids), totals.extra.listed([*uids, *around.after])[1:]
    into = np.maximum(totals.n[rows] - counts[:J, :J].sum(axis=0), 0.0)
    entries = np.tile(into, (len(around.before), 1))
    known = totals.extra.listed([*uids, *(uid for uid in around.before if uid >= 0)])
    entries[[uid >= 0 for uid in around.before]] = known[J + 1 :, :J]
    entries[[uid == EDGE for uid in around.before]] = known[0, :J]
    links = Links(counts[:J, :J], entries, counts[:J, J:])
    return Chain(scale * totals.s[rows], links.scaled(scale))


def _window_lengths(totals, pair, sample):
    """Lengths of windows nearest to the mean length of visits to the two states, the shortest first.

    Rows that the wrong state has among its own may be few in a row, and no long window is of these alone.
    """
    counts = totals.extra.listed(totals.uids[pair].tolist())[1:]
    row = 1.0 if sample.weight is None else min(1.0, totals.n[pair].sum() / sample.n_rows)
    visits = np.maximum(totals.n[pair] - np.diagonal(counts), row)
    mean = totals.n[pair].sum() / visits.sum()
    lengths = sorted(window_lengths(sample), key=lambda L: abs(np.log(L / mean)))
    return sorted(lengths[:_N_LENGTHS])
