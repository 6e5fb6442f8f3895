"""Groups of visits to a state by the states before and after, without a look at rows.

Two states may have the same emissions and differ in where sequences come from and where they go. The visits
to what looks like one state are then of several kinds: those from some states go on to others than the rest.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from ..engine.agglomeration import agglomerate
from .weights import TINY, log_rising_factorial

# Steps of variational EM after the agglomeration.
_STEPS = 20


def visit_groups(around, weight, n_most):
    """The group (n_runs,) of each run by its neighbours; all are 0 if one group is best.

    A run that is entered from one neighbour belongs to group j with a probability of this neighbour, and each
    group has its own distribution of exits. Groups start from an agglomeration of the states that runs
    are entered from, by what it costs that runs from two of them have one distribution of exits.

    Parameters
    ----------
    around : Surroundings
    weight : ndarray, shape (n_runs,), or None
        How many equal runs each stands for.
    n_most : int
        The most groups.
    """
    n_before, n_after = len(around.before), len(around.after)
    if min(n_before, n_after, n_most) < 2:
        return np.zeros(len(around.enters), dtype=np.intp)
    cells = (n_after + 1) * around.enters + around.leaves % (
        n_after + 1
    )  # the last one is not known
    visits = np.bincount(cells, weight, minlength=n_before * (n_after + 1)).astype(float)
    visits = visits.reshape(n_before, n_after + 1)
    groups = _joined(around, visits, n_most)
    resp = np.zeros((n_before, n_after + 1, len(groups)))
    for j, group in enumerate(groups):
        resp[list(group), :, j] = 1.0
    for _ in range(_STEPS):
        resp = _step(around, visits[:, :, np.newaxis] * resp)
    if _bound(around, visits, resp) <= _bound(around, visits, np.ones_like(resp[:, :, :1])):
        return np.zeros(len(around.enters), dtype=np.intp)
    return resp.argmax(axis=2).ravel()[cells]


def _exit_evidence(around, counts):
    """Log evidence (M,) of exits (M, X) of groups."""
    each = log_rising_factorial(counts, around.exits).sum(axis=1)
    return each - log_rising_factorial(counts.sum(axis=1), around.exits.sum())


def _entry_evidence(around, counts):
    """Log evidence of groups by neighbour (E, J)."""
    each = log_rising_factorial(counts, around.rows[:, np.newaxis] / counts.shape[1])
    return each.sum() - log_rising_factorial(counts.sum(axis=1), around.rows).sum()


def _joined(around, visits, n_most):
    """Groups of positions in ``around.before``, two at the least, by an agglomeration of ``visits``."""
    mass = visits.sum(axis=1)

    def entries(n):  # it makes no difference which of the groups a neighbour belongs to
        alone = np.eye(len(n))[:1] * mass[:, np.newaxis]
        return _entry_evidence(around, alone) if len(n) <= n_most else -np.inf

    tree = agglomerate(
        np.column_stack([visits[:, :-1], mass]), np.zeros(len(visits)), lambda unions: np.zeros(len(unions)),
        lambda s: _exit_evidence(around, s[:, :-1]), entries,
    )  # fmt: skip
    return tree.groups(2)


def _step(around, shares):
    """Responsibilities (E, X + 1, J) of groups after a variational step from counts of the same shape."""
    entries, exits = shares.sum(axis=1), shares[:, :-1].sum(axis=0)
    log_entries = digamma(around.rows[:, np.newaxis] / shares.shape[2] + entries)
    exits = np.maximum(around.exits[:, np.newaxis] + exits, TINY)
    log_exits = digamma(exits) - digamma(exits.sum(axis=0))
    log_resp = log_entries[:, np.newaxis] + np.vstack([log_exits, np.zeros(shares.shape[2])])
    resp = np.exp(log_resp - log_resp.max(axis=2, keepdims=True))
    return resp / resp.sum(axis=2, keepdims=True)


def _bound(around, visits, resp):
    """Lower bound of the log evidence of visits (E, X + 1) under responsibilities (E, X + 1, J)."""
    shares = visits[:, :, np.newaxis] * resp
    entropy = -np.sum(shares * np.log(np.where(resp > 0, resp, 1.0)))
    exits = _exit_evidence(around, shares[:, :-1].sum(axis=0).T).sum()
    return _entry_evidence(around, shares.sum(axis=1)) + exits + entropy
