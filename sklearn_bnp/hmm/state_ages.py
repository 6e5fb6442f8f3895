"""Parts of the rows of a state by their age: how many rows of the same visit came before, or are to come.

A hidden Markov model leaves a state with the same probability at any time, so that the lengths of visits are
geometric. A state whose visits all last about ten rows is therefore explained better by several states with
the same emissions, one after the other. The rows cannot tell them apart, nor can their neighbours in the
middle of a visit. Their ages can.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, xlog1py, xlogy

# Ages are counted in bins of which each is twice as wide as the one before. Those that fewer visits reach are
# joined to the one before.
_LEAST_VISITS = 10
# Below this chance that geometric visits look so uneven, of all states together or of one of them times their
# number, some are not. Then these are the states of which the chance is below the second number.
_CHANCE, _CHANCE_OF_STATE = 0.01, 0.1
# In turns, what rows are told apart by (`parts_by_age`), and whether states may have more than two parts.
AGES = (
    ("passed", False), ("before", True), ("length", False), ("passed", True), ("after", True),
    ("before", False),
)  # fmt: skip


def uneven_states(lengths, state, n_states, ended=True, weight=None):
    """Whether visits to each of the states (J,) are not geometric.

    Few visits to each state may tell it for all of them together.

    Parameters
    ----------
    lengths, state : ndarray of int, shape (m,)
        Of the visits.
    n_states : int
        J.
    ended : ndarray of bool, shape (m,), or bool
        Whether they ended. Others go on after the rows that are there.
    weight : ndarray, shape (m,), or None
        How many visits each stands for.
    """
    weight = np.ones(len(lengths)) if weight is None else weight
    ended = weight * ended
    own = [
        unevenness(lengths[mine], ended[mine], weight[mine])
        for mine in (state == k for k in range(n_states))
    ]
    uneven, freedom = np.array(own).T
    chance = chdtrc(np.maximum(freedom, 1.0), uneven)
    of_all = chdtrc(max(freedom.sum(), 1.0), uneven.sum())
    if min(of_all, n_states * chance.min()) >= _CHANCE:
        return np.zeros(n_states, dtype=bool)
    return chance < _CHANCE_OF_STATE


def unevenness(lengths, ended, weight):
    """How much better visits are explained if they end more often at some ages, and its freedom.

    Parameters
    ----------
    lengths : ndarray of int, shape (m,)
    ended, weight : ndarray, shape (m,)
        How many visits each stands for: of those that ended, and of all.

    Returns
    -------
    uneven : float
        Twice the log likelihood ratio, which has about a chi-squared distribution if visits are geometric.
    freedom : int
        Its degrees of freedom; 0 if there are too few visits.
    """
    of = np.frexp(lengths)[1] - 1  # lengths 1, 2-3, 4-7, ...
    n_bins = int(of.max(initial=0)) + 1
    ends = np.bincount(of, ended, minlength=n_bins)
    first = 2 ** np.arange(n_bins)
    spent = np.clip(lengths[:, np.newaxis] - first + 1, 0, first)  # rows of each visit in each bin
    rows = weight @ spent
    last = np.count_nonzero(weight @ (spent > 0) >= _LEAST_VISITS) - 1
    if last < 1:
        return 0.0, 0
    ends = np.append(ends[:last], ends[last:].sum())
    rows = np.append(rows[:last], rows[last:].sum())
    ratio = _log_likelihood(ends, rows).sum() - _log_likelihood(ends.sum(), rows.sum())
    return max(0.0, 2.0 * float(ratio)), last


def _log_likelihood(ends, rows):
    """Log probability that visits end ``ends`` times in ``rows`` rows, at the rate at which they do."""
    rate = ends / rows
    return xlogy(ends, rate) + xlog1py(rows - ends, -rate)


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
