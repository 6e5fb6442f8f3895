"""Entropies of unions of components, from responsibilities."""

from __future__ import annotations

import numpy as np

from .._kernels._entropies import union_entropies


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
    indptr = np.cumsum([0] + [len(group) for group in groups], dtype=np.intp)
    members = np.array([k for group in groups for k in group], dtype=np.intp)
    out = np.empty(len(groups))
    union_entropies(resp, weight, indptr, members, out, n_threads)
    return out
