"""What the model holds: rows, clumps of rows that are gone, groups of documents, and topics.

Design note
-----------
(a) An *item* is a clump or a single row. All items of a clump share one q(z): the model needs of it
    only its summed statistics s(x), whose last entry is its number of rows, and how many of its
    rows each document group has.
(b) Items are numbered clumps first, then the rows that were kept from earlier epochs (*singlets*), then the
    rows of this epoch, document by document. Clumps and singlets are a table, which an update goes
    through by matrix products; rows of this epoch go through the kernels that mixtures use, a
    document at a time, because each document has weights of its own.
(c) Between epochs there is `Kept` alone, and its size is what (26) counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack


class Kept(NamedTuple):
    """All that is left of the data between epochs.

    Attributes
    ----------
    s : ndarray, shape (C, P)
        Statistics of clumps of more than one row.
    counts : ndarray, shape (C, S)
        Rows of each document group in each clump, N_cs.
    z : ndarray, shape (n, D)
        Prepared single rows.
    owner : ndarray of int32, shape (n,)
        Document group of each single row.
    sizes : ndarray, shape (S,)
        Documents in each group, D_s.
    group_of_document : ndarray of int32, shape (n_documents,)
        Group of each document that was seen, in the order in which they came.
    """

    s: np.ndarray
    counts: np.ndarray
    z: np.ndarray
    owner: np.ndarray
    sizes: np.ndarray
    group_of_document: np.ndarray

    @property
    def n_numbers(self):
        """What (26) counts; a count of rows is the sum of those of the groups, and not kept."""
        return memory_cost(len(self.s), self.z.size, self.s.shape[1], len(self.sizes))

    @property
    def n_bytes(self):
        return sum(array.nbytes for array in self)


def memory_cost(n_clumps, single_numbers, n_statistics, n_groups):
    """Numbers to be kept (26): statistics and counts of clumps, and single rows as they are."""
    return n_clumps * (n_statistics - 1 + n_groups) + single_numbers


def nothing(likelihood, dtype):
    """`Kept` before the first epoch."""
    return Kept(
        np.empty((0, likelihood.n_statistics)), np.empty((0, 0)),
        np.empty((0, likelihood.n_features), dtype=dtype), np.empty(0, dtype=np.int32),
        np.empty(0), np.empty(0, dtype=np.int32),
    )  # fmt: skip


class Items(NamedTuple):
    """What an epoch is learned from; see the module's note.

    Attributes
    ----------
    means : ndarray, shape (T, P)
        Statistics a row of the table's items: of clumps, then of singlets.
    shares : csr_array, shape (T + n, S)
        Shares of the document groups in the rows of each item, N_cs / N_c.
    n : ndarray, shape (T + n,)
        Rows of each item, N_c.
    z : ndarray, shape (n + n_singlets, D)
        Prepared rows: singlets, then those of this epoch.
    edges : ndarray, shape (E + 1,)
        Document i of this epoch, group ``S - E + i``, has the rows ``edges[i]:edges[i + 1]`` of z.
    sizes : ndarray, shape (S,)
        Documents in each group, D_s.
    """

    means: np.ndarray
    shares: csr_array
    n: np.ndarray
    z: np.ndarray
    edges: np.ndarray
    sizes: np.ndarray

    @property
    def n_clumps(self):
        return len(self.means) - int(self.edges[0])

    @property
    def lengths(self):
        """Rows of each group, N_s."""
        return self.shares.T @ self.n


def with_epoch(kept, likelihood, z, indptr):
    """`Items` of what was kept and of new documents, whose rows are ``z[indptr[i]:indptr[i + 1]]``."""
    n_new, before = len(indptr) - 1, len(kept.sizes)
    S = before + n_new
    rows = np.concatenate([kept.z, z])
    owner = np.concatenate([kept.owner, np.repeat(np.arange(before, S), np.diff(indptr))])
    singlets = rows_of_statistics(likelihood, rows[: len(kept.z)])
    n = kept.s[:, -1]
    clumps = csr_array(kept.counts / n[:, np.newaxis])
    if not clumps.nnz:
        clumps = csr_array((len(n), before))
    clumps = hstack([clumps, csr_array((len(n), n_new))], format="csr")
    ones = csr_array(
        (np.ones(len(rows)), owner.astype(np.int32), np.arange(len(rows) + 1)), shape=(len(rows), S)
    )
    return Items(
        np.concatenate([kept.s / n[:, np.newaxis], singlets]),
        csr_array(vstack([clumps, ones], format="csr")),
        np.concatenate([n, np.ones(len(rows))]),
        rows,
        len(kept.z) + np.asarray(indptr),
        np.concatenate([kept.sizes, np.ones(n_new)]),
    )


def rows_of_statistics(likelihood, z):
    """s(x) (n, P) of prepared rows, in double precision."""
    return likelihood.features(np.ascontiguousarray(z, dtype=np.float64))


class Topics(NamedTuple):
    """Topics, with q(pi) and q(eta) at their optimum given what is summed here (18)-(20).

    Attributes
    ----------
    s : ndarray, shape (K, P)
        ``sum_c q_ck Phi^c`` (17), its last column N_k (16).
    counts : ndarray, shape (K, S)
        N_ks (15).
    entropy : ndarray, shape (K,)
        ``-sum_c N_c q_ck log q_ck``.
    alpha : ndarray, shape (K,)
        Parameters of the documents' Dirichlet prior.
    prior : object
        Of the likelihood.
    bound : float
        The objective.
    """

    s: np.ndarray
    counts: np.ndarray
    entropy: np.ndarray
    alpha: np.ndarray
    prior: object
    bound: float

    def take(self, order):
        """The topics at these positions, or those for which a mask holds."""
        return self._replace(
            s=self.s[order], counts=self.counts[order], entropy=self.entropy[order],
            alpha=self.alpha[order],
        )  # fmt: skip


class EpochSettings(NamedTuple):
    """What the updates have to know.

    Attributes
    ----------
    likelihood : Likelihood
    shape, rate : float
        Of the gamma prior of each alpha_k (12).
    tol : float
        Relative change of the objective at which updates, and model building, end.
    max_iter : int
        Updates of all items in a row, at the most.
    max_topics : int
    n_threads : int
    """

    likelihood: object
    shape: float
    rate: float
    tol: float
    max_iter: int
    max_topics: int
    n_threads: int
