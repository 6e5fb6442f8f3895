"""First statistics of states, from which the first local step finds its parameters.

Rows next to each other mostly belong to one state, so that states start from windows of sequences:
a window says more of a state than a row does, and of a regression a single row says nothing.
"""

from __future__ import annotations

import numpy as np

from ..engine.random_keys import keys
from ..engine.samples import to_search
from ..inputs.groups import drawn
from ..likelihood.seeding import summaries
from .creation import windows
from .sampling import StateSample, even_pieces

# Rows of a block that a state starts from, and of the windows that seeds are chosen among.
_BLOCK, _WINDOW = 20, 10
# Rows that seeds are chosen among, and a state; in pieces of sequences no longer than this.
SEED_ROWS, SEED_ROWS_A_STATE, PIECE = 10_000, 100, 500


def seeded_states(likelihood, batch, n_states, rng, *, spread):
    """Statistics (K, P) of states; with ``spread`` fewer where fewer than K windows differ.

    Parameters
    ----------
    likelihood : Likelihood
    batch : SequenceBatch
        With at least K rows that are modelled.
    n_states : int
    rng : numpy.random.RandomState
    spread : bool
        Choose windows by Bregman k-means++ (Hughes 2016, Alg. 2.2) and take a few steps of Bregman
        k-means; else choose contiguous blocks uniformly.
    """
    if n_states == 1 or spread:
        n_rows = max(SEED_ROWS, SEED_ROWS_A_STATE * n_states)
        sample = _sample(likelihood, batch, n_rows, rng)
        if n_states == 1:
            weight = np.ones(sample.n_rows) if sample.weight is None else sample.row_weight
            return summaries(likelihood, sample.z, weight[:, np.newaxis])
        length = _length(_WINDOW, n_states, lambda L: len(pieces(sample.indptr, 0, L)))
        return windows(likelihood, likelihood.prior, sample, length).seeded(n_states, rng)[0]
    length = _length(_BLOCK, n_states, lambda L: len(pieces(batch.indptr, batch.lags, L)))
    edges = pieces(batch.indptr, batch.lags, length)
    weight = None if batch.weight is None else batch.weight[_sequence(batch, edges)]
    chosen = edges[drawn(len(edges), n_states, rng, weight)]
    blocks = [
        batch.gathered(edges).prepared(likelihood.prepare)[0] for edges in chosen[:, np.newaxis]
    ]
    return np.concatenate([summaries(likelihood, z, np.ones((z.shape[0], 1))) for z in blocks])


def _sequence(batch, edges):
    """The sequence of each piece."""
    return np.searchsorted(batch.indptr, edges[:, 0], side="right") - 1


def _length(most, n_states, count):
    """The greatest of ``most``, its half, ... with which there are enough pieces; 1 at the least."""
    while most > 1 and count(most) < n_states:
        most //= 2
    return most


def pieces(indptr, lags, length):
    """First row and row after the last (n_pieces, 2) of pieces of sequences of about ``length`` rows.

    Pieces have as equal lengths within a sequence as can be, and cover all rows that are modelled.
    """
    sizes = np.maximum(np.diff(indptr) - lags, 0)
    n = np.where(sizes > 0, np.maximum(1, sizes // length), 0)
    return np.column_stack(even_pieces(indptr[:-1] + lags, sizes, n))


def _sample(likelihood, batch, n_rows, rng):
    """`StateSample` of about ``n_rows`` rows at the most, in pieces of sequences from all over."""
    edges = pieces(batch.indptr, batch.lags, PIECE)
    if batch.weight is None:
        order = rng.permutation(len(edges))
    else:
        weight = batch.weight[_sequence(batch, edges)]
        order = np.argsort(keys(len(edges), weight, batch.mean_weight, rng), kind="stable")
        order = order[weight[order] > 0]
    enough = np.searchsorted(np.cumsum(np.diff(edges[order])), n_rows) + 1
    order = np.sort(order[:enough])
    z, indptr = batch.gathered(edges[order]).prepared(likelihood.prepare)
    weight = None if batch.weight is None else weight[order]
    sample = to_search(StateSample(z, indptr, weight), likelihood, likelihood.prior)
    return sample if batch.weight is None else sample.standing_for(batch.total_weight)
