"""Entropies of unions of components, and what else of a union has to be found from the rows."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from .._kernels._entropies import join, lost_by_pairs, union_entropies
from .._kernels.threads import threads_for_unions

# Smaller shares of rows count as none where unions are compared: that is 3e-11 nats a row at the most.
_LEAST_SHARE = 1e-12
# Unions are found from columns of shares, and not row by row, if components are fewer than the first number,
# or are fewer than the second and half of the shares count.
_FEW, _MANY = 12, 50


class UnionFinding(NamedTuple):
    """Statistics of a union that are not sums over its members.

    Where the entropy is all, the number stands for it.

    Attributes
    ----------
    entropy : float
        In nats.
    more : object
        What the model's extra tells of the union, with a method ``added(other)``; None if nothing.
    """

    entropy: float
    more: Any = None

    @classmethod
    def of(cls, found):
        """A finding, of which a number is the entropy."""
        return found if isinstance(found, cls) else cls(found)

    def added(self, other):
        """Finding of two sets of rows together; nothing more is known if it is not known of both."""
        unknown = self.more is None or other.more is None
        more = None if unknown else self.more.added(other.more)
        return UnionFinding(self.entropy + other.entropy, more)


def entropies_of_unions(resp, weight, groups, n_threads=1):
    """Entropies of unions of components.

    The entropy is the only statistic of a union that is not the sum over its members (Hughes 2016, (4.3)).
    Equivalent to ``-sum_n weight_n w log w`` with ``w = resp[n, group].sum()``.

    Parameters
    ----------
    resp : ndarray, shape (n, K)
        Responsibilities, C-contiguous.
    weight : ndarray, shape (n,), or None
        Weights of the rows; one if None.
    groups : sequence of sequences of int
        Columns of ``resp`` in each union.
    n_threads : int
        No bit of the result depends on it.

    Returns
    -------
    ndarray, shape (n_groups,)
        In nats.
    """
    indptr = np.array([0, *accumulate(map(len, groups))], dtype=np.intp)
    members = np.array([*chain.from_iterable(groups)], dtype=np.intp)
    out = np.empty(len(groups))
    n_threads = threads_for_unions(len(resp), len(members), n_threads)
    union_entropies(resp, weight, indptr, members, out, n_threads)
    return out


class GrowingUnions:
    """Entropies of unions that grow: of any two of the unions so far, which are single components at first.

    Each is given by one of its members. This is what `agglomerate` asks for.

    Parameters
    ----------
    entropies : callable
        ``entropies(groups)`` returns the entropies (M,) of M unions, each given by a tuple of components.
    K : int
        Number of components.
    """

    def __init__(self, entropies, K):
        self._entropies, self._members = entropies, [(k,) for k in range(K)]

    def of_pairs(self, i, j):
        """Entropies (M,) of the unions of ``i[m]`` and ``j[m]``."""
        unions = (
            self._members[a] + self._members[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)
        )
        return self._entropies(list(unions))

    def join(self, a, b):
        """Union ``b`` becomes a part of ``a``."""
        self._members[a] += self._members[b]


class GrowingUnionsOfRows:
    """As `GrowingUnions`, of components with shares of rows, where few components share a row.

    A union loses entropy only in rows of which both have a share. What all pairs lose is found at once.

    Parameters
    ----------
    shares : ndarray, shape (n, K)
    weight : ndarray, shape (n,), or None
        Weights of the rows; one if None.
    """

    def __init__(self, shares, weight):
        K = shares.shape[1]
        there = shares > _LEAST_SHARE
        self._indptr = np.zeros(len(shares) + 1, dtype=np.intp)
        np.cumsum(np.count_nonzero(there, axis=1), out=self._indptr[1:])
        self._end = self._indptr[1:].copy()
        self._column = np.nonzero(there)[1].astype(np.intc)
        self._share = shares[there].astype(float, copy=False)
        self._own, self._weight = np.empty_like(self._share), weight
        self._lost = np.empty((K, K))
        lost_by_pairs(self._share, self._column, self._indptr, weight, self._own, self._lost)
        self._lost += self._lost.T
        own = self._own
        own = own if weight is None else own * np.repeat(weight, np.diff(self._indptr))
        self._entropy = -np.bincount(self._column, own, minlength=K)

    def of_pairs(self, i, j):
        """Entropies (M,) of the unions of ``i[m]`` and ``j[m]``."""
        return self._entropy[i] + self._entropy[j] - self._lost[i, j]

    def join(self, a, b):
        """Union ``b`` becomes a part of ``a``."""
        self._entropy[a] += self._entropy[b] - self._lost[a, b]
        join(
            self._share, self._column, self._own, self._indptr, self._end, self._weight, a, b, self._lost[a]
        )  # fmt: skip
        self._lost[:, a] = self._lost[a]


class UnionsOfRows:
    """Entropies of unions of components with shares of rows.

    Parameters
    ----------
    shares : ndarray, shape (n, K)
        C-contiguous.
    weight : ndarray, shape (n,), or None
        Weights of the rows; one if None.
    """

    def __init__(self, shares, weight):
        self._shares, self._weight = shares, weight

    def __call__(self, groups):
        """Entropies (M,) of M unions, each given by a tuple of components."""
        return entropies_of_unions(self._shares, self._weight, groups)

    def growing(self):
        """Unions that grow, for an agglomeration: in the way that takes less time."""
        n, K = self._shares.shape
        if K < _FEW or (K < _MANY and np.count_nonzero(self._shares > _LEAST_SHARE) > 0.5 * n * K):
            return GrowingUnions(self, K)
        return GrowingUnionsOfRows(self._shares, self._weight)
