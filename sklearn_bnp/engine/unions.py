"""Entropies of unions of components, and what else of a union has to be found from the rows."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from .._kernels._entropies import union_entropies
from .._kernels.threads import threads_for_unions


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
