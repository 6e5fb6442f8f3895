"""Parts of the rows of a state by their age: how many rows of the same visit came before, or are to come.

A hidden Markov model leaves a state with the same probability at any time, so that the lengths of visits are
geometric. A state whose visits all last about ten rows is therefore explained better by several states with
the same emissions, one after the other. The rows cannot tell them apart, nor can their neighbours in the
middle of a visit. Their ages can.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

# Ages are counted in bins of which each is twice as wide as the one before. Bins with fewer visits that may
# end there are joined to the one before; a chance below this that geometric visits look so uneven.
_LEAST_VISITS, _CHANCE = 10, 1e-3
# In turns, what rows are told apart by (`parts_by_age`), and whether states may have more than two parts.
AGES = (
    ("passed", False), ("before", True), ("length", False), ("passed", True), ("after", True),
    ("before", False),
)  # fmt: skip


def are_geometric(lengths, weight=None):
    """Whether visits of these lengths (m,) may end with the same probability at any age.

    Their numbers that end, by age, are compared with those that do not, by a likelihood-ratio test.

    Parameters
    ----------
    lengths : ndarray of int, shape (m,)
    weight : ndarray, shape (m,), or None
        How many visits each stands for.
    """
    weight = np.ones(len(lengths)) if weight is None else weight
    of = np.frexp(lengths)[1] - 1  # lengths 1, 2-3, 4-7, ...
    n_bins = int(of.max(initial=0)) + 1
    ends = np.bincount(of, weight, minlength=n_bins)
    first = 2 ** np.arange(n_bins)
    spent = np.clip(lengths[:, np.newaxis] - first + 1, 0, first)  # rows of each visit in each bin
    rows = weight @ spent
    reached = weight @ (spent > 0)
    many = reached >= _LEAST_VISITS
    if np.count_nonzero(many) < 2:
        return True
    last = np.flatnonzero(many)[-1]
    ends = np.append(ends[:last], ends[last:].sum())
    rows = np.append(rows[:last], rows[last:].sum())
    uneven = 2.0 * (_log_likelihood(ends, rows).sum() - _log_likelihood(ends.sum(), rows.sum()))
    return bool(chi2.sf(uneven, last) > _CHANCE)


def _log_likelihood(ends, rows):
    """Log probability that visits end ``ends`` times in ``rows`` rows, at the rate at which they do."""
    stay, rate = rows - ends, ends / rows
    return ends * np.log(np.maximum(rate, 1e-300)) + stay * np.log(np.maximum(1.0 - rate, 1e-300))


def parts_by_age(lengths, n_parts, way):
    """The part (n,) of each row of visits of these lengths, one visit after the other.

    Parameters
    ----------
    lengths : ndarray of int, shape (m,)
    n_parts : int
        The most parts.
    way : {"passed", "before", "after", "length"}
        How rows are told apart: by which part of their visit has passed, by how many of its rows came before
        or are to come, or by how long the visit is.
    """
    ends = np.cumsum(lengths)
    age = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    length = np.repeat(lengths, lengths)
    if way == "passed":
        part = age * n_parts // length
    elif way == "before":
        part = np.minimum(age, n_parts - 1)
    elif way == "after":
        part = np.minimum(length - 1 - age, n_parts - 1)
    else:
        edges = np.quantile(lengths, np.linspace(0.0, 1.0, n_parts + 1)[1:-1])
        part = np.searchsorted(edges, length)
    return np.unique(part, return_inverse=True)[1].ravel()
