"""Pairs of states made anew: two states give way to several, created from the rows of both.

Two states that share out the rows of two others in the wrong way are a dead end: to split one of them
is of no use, and as one they are worse still. A model nested in both, started from windows of all
their rows, does not know how they shared them.
"""

from __future__ import annotations

import numpy as np

from ..engine.affinity import union_evidence
from .creation import StateCreation, create_states, window_lengths
from .nested_chain import Chain, NestedChain, NestedModel

# Transitions between two states from which on they are neighbours.
_NEIGHBOURS = 0.5
# Lengths of windows that are tried, and seeds: where nothing is to be gained, more would only cost time.
_N_LENGTHS, _SEEDS = 2, (10,)
# Passes that the two states have to settle in their rows, until these gain less than this a row.
_STEPS, _TOL = 8, 1e-4
# Nats, and nats a row, by which new states have to be better than the two.
_LEAST_GAIN, _LEAST_GAIN_A_ROW = 1.0, 0.05


def likely_pairs(model, totals):
    """All pairs of states (rows of ``totals``) as a list, the most promising first.

    First come those that follow each other in sequences; among these, and among the others, those
    whose union costs the least for each row of the smaller one.
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
        Runs of rows of either.
    n_most : int
        The most successors.
    rng : numpy.random.RandomState
    n_threads : int

    Returns
    -------
    StateCreation or None
        Its gain is that over the two states. None if there is none.
    """
    settings = NestedChain(
        model.allocation.concentration, model.allocation.stickiness,
        np.delete(totals.s, pair, axis=0),
    )  # fmt: skip
    nested = NestedModel(model.likelihood, model.prior, sample, settings, n_threads)
    two = nested.pass_over(_as_they_are(totals, pair, sample))
    gain = nested.gain(two, model.prior)
    least = gain + _LEAST_GAIN + _LEAST_GAIN_A_ROW * sample.total
    creation = create_states(
        model.likelihood, model.prior, sample, settings, n_most, rng, n_threads,
        lengths=_window_lengths(totals, pair, sample), seeds=_SEEDS, least_gain=least,
    )  # fmt: skip
    made = [] if creation is None else [creation]
    # without the other states around, the two may leave where they are by themselves
    two = nested.iterate(two, _STEPS, _TOL * sample.total)
    if len(two.s) > 1:
        made.append(StateCreation(*two[:3], nested.gain(two, model.prior)))
    best = max(made, key=lambda one: one.gain, default=None)
    if best is None or best.gain < least:
        return None
    return best._replace(gain=best.gain - gain)


def _as_they_are(totals, pair, sample):
    """The `Chain` of two states as the whole data know them, on the scale of a sample of their rows."""
    scale = sample.total / totals.n[pair].sum()
    counts = totals.extra.listed(totals.uids[pair].tolist())[1:]
    into = np.maximum(totals.n[pair] - counts.sum(axis=0), 0.0)
    return Chain(scale * totals.s[pair], scale * counts, scale * into)


def _window_lengths(totals, pair, sample):
    """Those of windows that are nearest to the mean visit to the two states, the longest first."""
    counts = totals.extra.listed(totals.uids[pair].tolist())[1:]
    row = 1.0 if sample.weight is None else min(1.0, totals.n[pair].sum() / sample.n_rows)
    visits = np.maximum(totals.n[pair] - np.diagonal(counts), row)
    mean = totals.n[pair].sum() / visits.sum()
    lengths = sorted(window_lengths(sample), key=lambda L: abs(np.log(L / mean)))
    return sorted(lengths[:_N_LENGTHS], reverse=True)
