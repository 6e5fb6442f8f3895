"""Sequences in chunks that lie elsewhere: each chunk has whole sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.random_keys import keys
from ..estimator.chunks import ChunkReader
from ..estimator.observations import resolve_observation
from ..estimator.validation import checked
from ..inputs.batches import Batch
from ..inputs.increments import Increments
from ..likelihood.autoregressive_gaps import blanked
from .seeding import PIECE, pieces
from .sequences import check_sequences, modelled


class SequenceReader(ChunkReader):
    """Checks the sequences of a chunk where they lie."""

    names = ("X", "lengths", "groups", "sample_weight")
    unit = "sequence"

    def batch(self, estimator, X, lengths=None, groups=None, sample_weight=None):
        """`SequenceBatch` of the sequences."""
        observation = checked(resolve_observation(estimator.observation))
        return check_sequences(
            estimator, X, lengths, groups, observation, reset=False, sample_weight=sample_weight,
            of_chunk=True,
        ).batch  # fmt: skip

    def info(self, batch):
        """`ChunkInfo` of a batch; what is more are the edges and the weights of its sequences."""
        n, weight = len(batch.indptr) - 1, batch.weight
        info = self.rows_info(Batch(None, batch.x), n, weight)
        return info._replace(
            n_entries=batch.n_entries,
            total_weight=batch.total_weight,
            more=_Edges(batch.indptr, weight),
        )


class _Edges(NamedTuple):
    """Where the sequences of a chunk begin (n + 1,), and their weights (n,) or None."""

    indptr: np.ndarray
    weight: np.ndarray | None


class RowsOfSequences(NamedTuple):
    """The rows of a `SequenceBatch` that are modelled, as a `Batch`; it can be pickled.

    Attributes
    ----------
    without_gaps : bool
        Whether lagged rows are all NaN where an entry is missing.
    """

    without_gaps: bool

    def __call__(self, batch):
        rows, _ = modelled(batch)
        weight = None if batch.weight is None else np.repeat(batch.weight, batch.lengths)
        return Batch(None, blanked(rows) if self.without_gaps else rows, weight)


def increments_of(source, magnitude):
    """`Increments` of all chunks of a `ChunkSource`."""
    found = source.each(_Increments(magnitude))
    return Increments.joined([part for part in found if part is not None])


class _Increments(NamedTuple):
    """`Increments` of a batch as a function that can be pickled."""

    magnitude: np.ndarray

    def __call__(self, batch):
        return Increments.of(modelled(batch)[0], batch.indptr, batch.weight, self.magnitude)


def sampled_sequences(source, n_rows, lags, rng):
    """A `SequenceBatch` of pieces of sequences from all over, with about ``n_rows`` rows at the most."""
    edges, chunk, weights = [], [], []
    for j, info in enumerate(source.infos):
        if info is None:
            continue
        indptr, weight = info.more
        own = pieces(indptr, lags, PIECE)
        edges.append(own)
        chunk.append(np.full(len(own), j))
        of_piece = np.searchsorted(indptr, own[:, 0], side="right") - 1
        weights.append(np.ones(len(own)) if weight is None else weight[of_piece])
    edges, chunk, weights = map(np.concatenate, (edges, chunk, weights))
    weighted = source.mean_weight is not None
    key = keys(len(edges), weights if weighted else None, source.mean_weight, rng)
    order = np.argsort(key, kind="stable")
    enough = np.searchsorted(np.cumsum(np.diff(edges[order])), n_rows) + 1
    chosen = np.sort(order[:enough])
    chosen = [chosen[chunk[chosen] == j] for j in range(len(source.infos))]
    found = source.each(_gathered, [edges[some] for some in chosen])
    parts = [
        part._replace(weight=weights[some] if weighted else None)
        for part, some in zip(found, chosen, strict=True)
        if part is not None and len(some)
    ]
    return parts[0].joined(parts[1:])


def _gathered(batch, edges):
    return batch.gathered(edges) if len(edges) else None
