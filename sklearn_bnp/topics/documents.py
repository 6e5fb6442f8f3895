"""Documents as the local step sees them, and what it leaves behind. A leaf module."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# A document's counts have converged when none moves by more (5.3.3).
COUNT_TOL = 0.05
MAX_ITER = 100
# Stands for all components together where proposals ask for samples of some; no component is named so.
EVERYTHING = -1


class Documents(NamedTuple):
    """Entries of some documents.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_docs + 1,)
        Document d has the entries ``indptr[d]:indptr[d + 1]``.
    counts : ndarray of float64, shape (n,)
        How often each entry occurs.
    indices : ndarray of int32, shape (n,), or None
        Word types; None if entries are rows.
    z : ndarray, shape (n, D'), or None
        Prepared rows; None if entries are words.
    weight : ndarray of float64, shape (n_docs,), or None
        How many equal documents each stands for; one if None.
    """

    indptr: np.ndarray
    counts: np.ndarray
    indices: np.ndarray | None = None
    z: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self):
        return len(self.indptr) - 1

    @property
    def lengths(self):
        """Tokens of each document."""
        ends = np.concatenate([[0.0], np.cumsum(self.counts)])[self.indptr]
        return np.diff(ends)

    @property
    def total(self):
        """Documents that all of them stand for."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @property
    def entry_weight(self):
        """How often each entry (n,) counts in sums over documents."""
        return weighted_counts(self.counts, self.indptr, self.weight)

    def weighing(self, weight):
        """The same documents of weights (n_docs,), or None."""
        return Documents(self.indptr, self.counts, self.indices, self.z, weight)

    def chosen(self, keep):
        """The documents ``keep`` (boolean, one a document), and the positions of their entries."""
        sizes = np.diff(self.indptr)
        entries = np.flatnonzero(np.repeat(keep, sizes))
        return self.taken(entries, sizes[keep], keep), entries

    def taken(self, entries, sizes, docs):
        """The documents ``docs`` with only the entries at some positions, so many of each."""
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        fields = (self.counts, self.indices, self.z)
        return Documents(
            indptr, *(None if f is None else f[entries] for f in fields),
            None if self.weight is None else self.weight[docs],
        )  # fmt: skip


def weighted_counts(counts, indptr, weight):
    """Counts (n,) of entries times the weights (n_docs,) of their documents, if there are any."""
    return counts if weight is None else counts * np.repeat(weight, np.diff(indptr))


class DocumentStep(NamedTuple):
    """What a local step of documents leaves behind.

    Attributes
    ----------
    s, entropy : ndarray, shapes (K, P) and (K,)
        As in `StatBag`.
    counts : ndarray, shape (n_docs, K)
        N_dk, exactly the sums of the responsibilities, whatever the document's weight.
    resp : ndarray, shape (n, K), or None
    """

    s: np.ndarray
    entropy: np.ndarray
    counts: np.ndarray
    resp: np.ndarray | None


class DocumentSettings(NamedTuple):
    """How a local step of documents goes about it.

    Attributes
    ----------
    warm : bool
        Start from counts of an earlier visit.
    cold : bool
        Start from the likelihoods; with counts to start from as well, the better end is kept.
    max_iter, tol : int, float
        Iterations end when no N_dk moves by ``tol``.
    n_restarts : int
        Topics of each document that are tried at zero (Alg. 5.2).
    n_nonzero : int or None
        L of L-sparse responsibilities.
    n_threads : int
    """

    warm: bool = True
    cold: bool = True
    max_iter: int = MAX_ITER
    tol: float = COUNT_TOL
    n_restarts: int = 0
    n_nonzero: int | None = None
    n_threads: int = 1
