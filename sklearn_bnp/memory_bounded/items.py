"""The data of an epoch: clumps of forgotten rows, single rows, and groups of documents.

Design note
-----------
(a) An *item* is a clump or a single row. All rows of a clump share one q(z), so that the model needs only
    their summed statistics s(x), whose last entry is the number of rows, and how many of the rows
    belong to each document group.
(b) Items are numbered: first the clumps, then the rows kept from earlier epochs (*singlets*), then the
    rows of this epoch, document by document. Clumps and singlets form a table, which an update passes
    through with matrix products. Rows of this epoch pass through the kernels that mixtures use, one
    document at a time, because each document has its own topic weights.
(c) Between epochs only `Kept` remains, and (26) counts its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from ..inputs.rows import equal_rows


class Kept(NamedTuple):
    """The part of the data that is kept between epochs.

    Attributes
    ----------
    s : ndarray, shape (C, P)
        Summed statistics of clumps of more than one row.
    counts : ndarray, shape (C, S)
        Rows of each document group in each clump, N_cs.
    distinct : ndarray, shape (C,)
        Rows of each clump, if copies of a row count once.
    z : ndarray, shape (n, D)
        Prepared single rows.
    weight : ndarray, shape (n,)
        How often each single row counts: the weight of its document.
    owner : ndarray of int32, shape (n,)
        Document group of each single row.
    sizes : ndarray, shape (S,)
        Documents in each group, D_s, a document of weight w counting w times.
    group_of_document : ndarray of int32, shape (n_documents,)
        Group of each document seen so far, in the order of arrival.
    distinct_sizes : ndarray, shape (S,), or None
        Documents in each group, if copies of a document count once. None in models that were saved without
        it, in which no document is taken for a copy.
    """

    s: np.ndarray
    counts: np.ndarray
    distinct: np.ndarray
    z: np.ndarray
    weight: np.ndarray
    owner: np.ndarray
    sizes: np.ndarray
    group_of_document: np.ndarray
    distinct_sizes: np.ndarray | None = None

    @property
    def n_numbers(self):
        """Numbers kept, by (26). The rows of a clump are the sum of its counts, and take no number."""
        return memory_cost(len(self.s), self.z.size, self.s.shape[1], len(self.sizes))

    @property
    def n_bytes(self):
        return sum(array.nbytes for array in self if array is not None)


def memory_cost(n_clumps, single_numbers, n_statistics, n_groups):
    """Numbers to keep (26): statistics and counts of the clumps, and the values of single rows."""
    return n_clumps * (n_statistics - 1 + n_groups) + single_numbers


def nothing(likelihood, dtype):
    """`Kept` before the first epoch."""
    z = np.empty((0, likelihood.n_features), dtype=dtype)
    none = np.empty(0, dtype=np.int32)
    s, counts = np.empty((0, likelihood.n_statistics)), np.empty((0, 0))
    return Kept(s, counts, np.empty(0), z, np.empty(0), none, np.empty(0), none, np.empty(0))


class NewDocuments(NamedTuple):
    """The documents of an epoch.

    Attributes
    ----------
    z : ndarray, shape (n, D)
        Prepared rows, document by document.
    indptr : ndarray, shape (E + 1,)
        Document i has the rows ``indptr[i]:indptr[i + 1]``.
    weight : ndarray, shape (E,)
        How many equal documents each stands for.
    """

    z: np.ndarray
    indptr: np.ndarray
    weight: np.ndarray


def kept_items(likelihood, kept):
    """`Items` of the kept data alone."""
    none = NewDocuments(kept.z[:0], np.zeros(1, dtype=int), np.empty(0))
    return with_epoch(kept, likelihood, none)


class Items(NamedTuple):
    """All items of an epoch; see the module's note.

    Attributes
    ----------
    means : ndarray, shape (T, P)
        Statistics per row of the items in the table: clumps, then singlets.
    shares : csr_array, shape (T + n, S)
        Share of each document group in the rows of each item, N_cs / N_c.
    n : ndarray, shape (T + n,)
        Rows of each item, N_c; a row of a document of weight w counts as w rows.
    distinct : ndarray, shape (T + n,)
        The same if copies of a row count once, whether they come from weights or are in the data.
    z : ndarray, shape (n_singlets + n, D)
        Prepared rows: singlets, then the rows of this epoch.
    edges : ndarray, shape (E + 1,)
        Document i of this epoch is group ``S - E + i`` and has the rows ``edges[i]:edges[i + 1]`` of z.
    sizes : ndarray, shape (S,)
        Documents in each group, D_s.
    distinct_sizes : ndarray, shape (S,)
        The same if copies of a document count once.
    """

    means: np.ndarray
    shares: csr_array
    n: np.ndarray
    distinct: np.ndarray
    z: np.ndarray
    edges: np.ndarray
    sizes: np.ndarray
    distinct_sizes: np.ndarray

    @property
    def n_clumps(self):
        return len(self.means) - int(self.edges[0])

    @property
    def lengths(self):
        """Rows of each group, N_s."""
        return self.shares.T @ self.n


def with_epoch(kept, likelihood, new):
    """`Items` from the kept data and `NewDocuments`."""
    n_new, before = len(new.weight), len(kept.sizes)
    S, lengths = before + n_new, np.diff(new.indptr)
    rows = np.concatenate([kept.z, new.z])
    owner = np.concatenate([kept.owner, np.repeat(np.arange(before, S), lengths)])
    singlets = rows_of_statistics(likelihood, rows[: len(kept.z)])
    n = kept.s[:, -1]
    clumps = csr_array(kept.counts / n[:, np.newaxis])
    if not clumps.nnz:
        clumps = csr_array((len(n), before))
    clumps = hstack([clumps, csr_array((len(n), n_new))], format="csr")
    ones = csr_array(
        (np.ones(len(rows)), owner.astype(np.int32), np.arange(len(rows) + 1)), shape=(len(rows), S)
    )
    weight = np.concatenate([kept.weight, np.repeat(new.weight, lengths)])
    distinct_sizes = kept.sizes if kept.distinct_sizes is None else kept.distinct_sizes
    number = equal_rows(rows)[1]
    times, of_documents = _times(number), _times(_equal_documents(number[len(kept.z) :], lengths))
    if likelihood.copies_tell:
        times, of_documents = _times_of_all(times), _times_of_all(of_documents)
    return Items(
        np.concatenate([kept.s / n[:, np.newaxis], singlets]),
        csr_array(vstack([clumps, ones], format="csr")),
        np.concatenate([n, weight]),
        np.concatenate([kept.distinct, np.minimum(weight, 1.0) / times]),
        rows,
        len(kept.z) + np.asarray(new.indptr),
        np.concatenate([kept.sizes, new.weight]),
        np.concatenate([distinct_sizes, np.minimum(new.weight, 1.0) / of_documents]),
    )


def _times(number):
    """How many have the same ``number`` (n,) as each of them, an array (n,)."""
    return np.bincount(number)[number]


def _times_of_all(times):
    """The greatest number that divides all ``times`` (n,) that things are there, as an array (n,).

    Different rows on a grid may be equal by chance. They are copies only if all of them occur several times.
    """
    return np.full_like(times, np.gcd.reduce(times))


def _equal_documents(number, lengths):
    """Numbers (E,) of documents, which are the same for equal ones.

    Documents are equal if they have the same rows, in any order. Equal rows have the same ``number`` (n,),
    and ``lengths`` (E,) says how many rows each document has.
    """
    order = np.lexsort((number, np.repeat(np.arange(len(lengths)), lengths)))
    known = {}
    parts = np.split(number[order], np.cumsum(lengths)[:-1])
    return np.array([known.setdefault(part.tobytes(), len(known)) for part in parts], dtype=int)


def rows_of_statistics(likelihood, z):
    """Statistics s(x) (n, P) of prepared rows, in double precision."""
    return likelihood.features(np.ascontiguousarray(z, dtype=np.float64))


def items_by_topic(labels, n_topics):
    """Ascending numbers of the items of each topic, a list, from their topics ``labels`` (n_items,)."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, n_topics)))
