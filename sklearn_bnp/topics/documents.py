"""Documents as the local step takes them, its settings and its results. A leaf module."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# A document's counts have converged when none changes by more than this (Hughes 2016, Sec. 5.3.3).
COUNT_TOL = 0.05
MAX_ITER = 100
# Stands for all components where proposals ask for samples of one; no component has this uid.
EVERYTHING = -1


class Documents(NamedTuple):
    """Entries of some documents, document after document.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_docs + 1,)
        Document d has the entries ``indptr[d]:indptr[d + 1]``.
    counts : ndarray of float64, shape (n,)
        Number of times that each entry occurs.
    indices : ndarray of int32, shape (n,), or None
        Word types; None if entries are rows.
    z : ndarray, shape (n, D'), or None
        Prepared rows; None if entries are words.
    weight : ndarray of float64, shape (n_docs,), or None
        Number of equal documents that each stands for; one if None.
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
        """Number of documents that these stand for, together."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @property
    def entry_weight(self):
        """Weights (n,) of the entries in sums over documents."""
        return weighted_counts(self.counts, self.indptr, self.weight)

    def weighing(self, weight):
        """These documents with other weights (n_docs,); None lets each count once."""
        return Documents(self.indptr, self.counts, self.indices, self.z, weight)

    def renamed(self, indices):
        """The same documents with other numbers (n,) of the word types."""
        return Documents(self.indptr, self.counts, indices, self.z, self.weight)

    def chosen(self, keep):
        """Documents where ``keep`` (n_docs,) is true, and the positions of their entries."""
        sizes = np.diff(self.indptr)
        entries = np.flatnonzero(np.repeat(keep, sizes))
        return self.taken(entries, sizes[keep], keep), entries

    def taken(self, entries, sizes, docs):
        """The documents ``docs`` with the entries at some positions alone, ``sizes`` of each document."""
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        fields = (self.counts, self.indices, self.z)
        weight = None if self.weight is None else self.weight[docs]
        return Documents(indptr, *(None if f is None else f[entries] for f in fields), weight)


def weighted_counts(counts, indptr, weight):
    """Counts (n,) of entries times the weights (n_docs,) of their documents, if there are any."""
    return counts if weight is None else counts * np.repeat(weight, np.diff(indptr))


class DocumentStep(NamedTuple):
    """Result of a local step of documents.

    Attributes
    ----------
    s, entropy : ndarray, shapes (K, P) and (K,)
        Sums over all entries, as in `StatBag`.
    counts : ndarray, shape (n_docs, K)
        N_dk, the sums of the document's responsibilities; not multiplied by the document's weight.
    resp : ndarray, shape (n, K), or None
    """

    s: np.ndarray
    entropy: np.ndarray
    counts: np.ndarray
    resp: np.ndarray | None


class DocumentSettings(NamedTuple):
    """Settings of a local step of documents.

    Attributes
    ----------
    warm : bool
        Start from the counts of the last visit.
    cold : bool
        Start from the likelihoods. If ``warm`` too, the better of both results is kept.
    max_iter : int
        Most iterations of a document.
    tol : float
        Iterations end when no N_dk changes by more.
    n_restarts : int
        Number of topics that each document tries to do without (Hughes 2016, Alg. 5.2).
    n_nonzero : int or None
        Most topics of an entry, L; any number if None.
    n_threads : int
    """

    warm: bool = True
    cold: bool = True
    max_iter: int = MAX_ITER
    tol: float = COUNT_TOL
    n_restarts: int = 0
    n_nonzero: int | None = None
    n_threads: int = 1
