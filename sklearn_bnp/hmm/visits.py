"""Groups of visits to a state by the states before and after and by their lengths, without a look at rows.

Two states may have the same emissions and differ in where sequences come from, how long they stay, and where
they go. The visits to what looks like one state are then of several kinds, and what comes before a visit says
something of what comes after it.

The model is a mixture. A visit from neighbour e belongs to group j with a probability of this neighbour, and
each group has a distribution of the neighbours after, and one of lengths. All have Dirichlet priors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, xlogy

from ..engine.agglomeration import agglomerate
from ..engine.unions import GrowingUnions
from .weights import TINY, log_rising_factorial

# Steps of variational EM of each start, and of the best one after these.
_FIRST_STEPS, _STEPS = 10, 20
# Lengths are told apart up to a factor of two, and not beyond this number of factors.
_LENGTHS = 6


def visit_groups(around, lengths, weight, n_most, cost=0.0):
    """The group (n_runs,) of each run; all are 0 if one group is best.

    Parameters
    ----------
    around : Surroundings
    lengths : ndarray of int, shape (n_runs,)
        Rows of runs.
    weight : ndarray, shape (n_runs,), or None
        How many equal runs each stands for.
    n_most : int
        The most groups.
    cost : float
        Nats that two groups have to gain at the least. No search is made where not even a model of all kinds
        of visits for itself would gain so much over independent neighbours and lengths.
    """
    n_before, n_after = len(around.before), len(around.after)
    none = np.zeros(len(lengths), dtype=np.intp)
    if min(n_before, n_after, n_most) < 2:
        return none
    classes = np.minimum(np.log2(lengths).astype(np.intp), _LENGTHS - 1)
    codes = np.column_stack([around.enters, around.leaves, classes])
    kinds, place = np.unique(codes, axis=0, return_inverse=True)
    place = place.ravel()
    number = np.bincount(place, weight, minlength=len(kinds)).astype(float)
    if _dependence(kinds, number) <= cost:
        return none
    # a kind whose neighbour after is unknown has 0 in all columns
    marks = [
        np.equal.outer(kinds[:, i], np.arange(n)).astype(float)
        for i, n in enumerate((n_before, n_after, _LENGTHS))
    ]
    mixture = _Mixture(number, marks, around.rows, around.exits, np.ones(_LENGTHS))
    starts = [resp for side in range(len(marks)) for resp in mixture.starts(side, n_most)]
    best = max((mixture.after(resp, _FIRST_STEPS) for resp in starts), key=mixture.bound)
    best = mixture.after(best, _STEPS)
    one = mixture.bound(np.ones((len(kinds), 1)))
    return best.argmax(axis=1)[place] if mixture.bound(best) > one else none


def _dependence(kinds, number):
    """Nats by which kinds (M, 3) of visits are more probable than if their marks were independent.

    This is the total correlation of the marks times the number (M,) of visits, the most that any mixture's
    likelihood can gain.
    """
    margins = [np.bincount(place, number) for place in (_places(column) for column in kinds.T)]
    return sum(_surprise(margin) for margin in margins) - _surprise(number)


def _places(values):
    """Values renamed 0, 1, ..."""
    return np.unique(values, return_inverse=True)[1].ravel()


def _surprise(number):
    """Entropy of shares in proportion to numbers, times their sum."""
    return -np.sum(xlogy(number, number / number.sum()))


class _Mixture(NamedTuple):
    """Kinds of visits, and the priors of their groups.

    Attributes
    ----------
    number : ndarray, shape (M,)
        Visits of each kind.
    marks : list of ndarray
        Whether a kind comes from a neighbour (M, E), goes to one (M, X), and has a length (M, L).
    rows : ndarray, shape (E,)
        Sums of the Dirichlet parameters of the groups of visits from a neighbour.
    exits, lengths : ndarray, shape (X,) and (L,)
        Dirichlet parameters of groups.
    """

    number: np.ndarray
    marks: list
    rows: np.ndarray
    exits: np.ndarray
    lengths: np.ndarray

    def starts(self, side, n_most):
        """Responsibilities (M, J) of groups of the values of one of the marks: of two, and of the best cut.

        Values are joined one after the other, by what it costs that visits have one distribution of
        each of the other marks.
        """
        own = self.marks[side]
        others = [mark for i, mark in enumerate(self.marks) if i != side]
        flat = np.full(len(self.rows), self.rows.mean() / len(self.rows))  # of neighbours before
        priors = [p for i, p in enumerate((flat, self.exits, self.lengths)) if i != side]
        counts = [(own * self.number[:, np.newaxis]).T @ other for other in others]
        ends = np.cumsum([0] + [count.shape[1] for count in counts])

        def evidence(s):
            return sum(
                _evidence(s[:, a:b], prior)
                for a, b, prior in zip(ends[:-1], ends[1:], priors, strict=True)
            )

        tree = agglomerate(
            np.hstack([*counts, (self.number @ own)[:, np.newaxis]]), np.zeros(own.shape[1]),
            GrowingUnions(lambda unions: np.zeros(len(unions)), own.shape[1]), evidence,
            lambda n: 0.0 if len(n) <= n_most else -np.inf,
        )  # fmt: skip
        two = tree._replace(cut=[tuple(range(own.shape[1]))]).groups(2)
        return [self._grouped(own, groups) for groups in [two] + [tree.cut] * (len(tree.cut) > 2)]

    @staticmethod
    def _grouped(own, groups):
        """Responsibilities (M, J) of groups of values; kinds of which the value is unknown belong to all."""
        member = np.zeros((own.shape[1], len(groups)))
        for j, group in enumerate(groups):
            member[list(group), j] = 1.0
        unknown = 1.0 - own.sum(axis=1, keepdims=True)
        return own @ member + unknown / len(groups)

    def _counts(self, resp):
        """Counts (E, J), (X, J) and (L, J) of marks in groups."""
        shares = self.number[:, np.newaxis] * resp
        return [mark.T @ shares for mark in self.marks]

    def step(self, resp):
        """Responsibilities after a variational step."""
        entries, exits, lengths = self._counts(resp)
        rows = self.rows[:, np.newaxis] / resp.shape[1]
        log_resp = self.marks[0] @ digamma(rows + entries)
        for mark, prior, count in zip(
            self.marks[1:], (self.exits, self.lengths), (exits, lengths), strict=True
        ):
            theta = np.maximum(prior[:, np.newaxis] + count, TINY)
            log_resp += mark @ (digamma(theta) - digamma(theta.sum(axis=0)))
        resp = np.exp(log_resp - log_resp.max(axis=1, keepdims=True))
        return resp / resp.sum(axis=1, keepdims=True)

    def after(self, resp, n_steps):
        """Responsibilities after some steps."""
        for _ in range(n_steps):
            resp = self.step(resp)
        return resp

    def bound(self, resp):
        """Lower bound of the log evidence under responsibilities (M, J)."""
        entries, exits, lengths = self._counts(resp)
        shares = self.rows[:, np.newaxis] / resp.shape[1]
        value = log_rising_factorial(entries, shares).sum()
        value -= log_rising_factorial(entries.sum(axis=1), self.rows).sum()
        value += _evidence(exits.T, self.exits).sum() + _evidence(lengths.T, self.lengths).sum()
        log_resp = np.log(np.where(resp > 0, resp, 1.0))
        return value - np.vdot(self.number[:, np.newaxis] * resp, log_resp)


def _evidence(counts, prior):
    """Log evidence (M,) of counts (M, X) under a Dirichlet prior (X,)."""
    each = log_rising_factorial(counts, prior).sum(axis=1)
    return each - log_rising_factorial(counts.sum(axis=1), prior.sum())
