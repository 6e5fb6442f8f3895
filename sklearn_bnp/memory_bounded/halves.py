"""A set of items in two halves: along its principal component, refined by restricted updates.

Design note
-----------
(a) Splits of topics in model building (Alg. 3.1) and of clusters in compression (Alg. 3.2) are the
    same, but for how many times the data count (23)-(25).
(b) Each of the items belongs to one of the two halves and to nothing else. The updates of two
    assignments need one difference of log weights an item: a matrix-vector product.
(c) Halves are judged by the values of `objective.topic_values`, at a fixed cost of alpha.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, xlogy

from .._kernels._responsibilities import Quadratic
from .objective import Scale, raised_alpha, topic_values
from .state import rows_of_statistics

# Numbers of items' statistics that are held; beyond it they are made anew, block by block.
_HELD_NUMBERS = 4_000_000
# Columns up to which principal components come from the covariance matrix, and steps otherwise.
_FEW_COLUMNS, _POWER_STEPS = 64, 16
# Restricted updates end when less than this share of the rows moves, or after so many.
_MOVED, _MAX_ITER = 0.005, 20
# A half with less than this has gone.
_LEAST_ROWS = 0.5


class Rules(NamedTuple):
    """What all halves of one phase have in common.

    Attributes
    ----------
    likelihood : Likelihood
    prior : object
    sizes : ndarray, shape (S,)
        Documents in each group.
    shape, cost : float
        Of the gamma prior, and of alpha (`objective.price`).
    scale : Scale
    """

    likelihood: object
    prior: object
    sizes: np.ndarray
    shape: float
    cost: float
    scale: Scale = Scale()

    @property
    def documents_a_point(self):
        """Weight of documents in (21): the value is that of (30) only if they count as often as rows."""
        return self.scale.documents / self.scale.points

    def values(self, s, counts, entropy, alpha):
        return topic_values(
            self.likelihood, self.prior, s, counts, entropy, alpha, self.sizes, self.shape,
            self.cost, self.scale,
        )  # fmt: skip

    def raised_alpha(self, counts, alpha, n_iter):
        for _ in range(n_iter):
            alpha = raised_alpha(
                counts, alpha, self.sizes, self.shape, self.cost, self.scale.documents
            )
        return alpha


class Summary(NamedTuple):
    """Statistics (J, P), counts (J, S) and alpha (J,) of sets of items, and their values (J,)."""

    s: np.ndarray
    counts: np.ndarray
    alpha: np.ndarray
    value: np.ndarray


class Halves(NamedTuple):
    """Two halves of a set.

    Attributes
    ----------
    first : ndarray, shape (m,)
        Shares of the first half; 0 or 1 if ``hard``.
    summary : Summary
    """

    first: np.ndarray
    summary: Summary


class ItemSubset:
    """Some of the items, ready for restricted updates.

    Parameters
    ----------
    items : Items
    which : ndarray of int
        Their numbers, ascending.
    likelihood : Likelihood
    """

    def __init__(self, items, which, likelihood):
        self.likelihood = likelihood
        self.which = which
        self.n = items.n[which]
        n_clumps = np.searchsorted(which, items.n_clumps)
        shares = items.shares[which]
        self.clump_shares = shares[:n_clumps].toarray()
        self.owner = shares.indices[shares.indptr[n_clumps] :]
        self.clumps = items.means[which[:n_clumps]]
        self.z = items.z[which[n_clumps:] - items.n_clumps]
        small = len(which) * likelihood.n_statistics <= _HELD_NUMBERS
        self._held = [np.concatenate(list(self._made()))] if small else None

    def _made(self):
        if len(self.clumps):
            yield self.clumps
        size = max(1, _HELD_NUMBERS // self.likelihood.n_statistics)
        for lo in range(0, len(self.z), size):
            yield rows_of_statistics(self.likelihood, self.z[lo : lo + size])

    def blocks(self):
        """Statistics a row, block by block."""
        return self._made() if self._held is None else self._held

    def products(self, coef, psi):
        """Log weights (m,) for one row of coefficients (P,) and one of document weights (S,)."""
        out = np.concatenate([block @ coef for block in self.blocks()])
        n_clumps = len(self.clumps)
        out[:n_clumps] += self.clump_shares @ psi
        out[n_clumps:] += psi[self.owner]
        return out

    def sums(self, mass):
        """Statistics (J, P) and counts (J, S) of items with masses (J, m)."""
        s, lo = 0.0, 0
        for block in self.blocks():
            s = s + mass[:, lo : lo + len(block)] @ block
            lo += len(block)
        n_clumps, S = self.clump_shares.shape
        counts = mass[:, :n_clumps] @ self.clump_shares
        for own, rows in zip(counts, mass[:, n_clumps:], strict=True):
            own += np.bincount(self.owner, rows, minlength=S)
        return s, counts

    def points(self, prior, s):
        """Points (m, D) whose distances mean something, to draw a principal component through."""
        likelihood, D = self.likelihood, self.likelihood.n_features
        if not likelihood.linear:  # all that is known of a clump is its scatter
            return np.concatenate([block[:, :-1] for block in self.blocks()])
        means = np.concatenate([self.clumps[:, -1 - D : -1].astype(self.z.dtype), self.z])
        if likelihood.quadratic == Quadratic.NONE:
            means = likelihood.seeding_points(prior, s, np.ascontiguousarray(means))
        return means


def principal_side(points, mass):
    """Which points (m, D) are on the upper side of the mean along the principal component (bool)."""
    centred = points - (mass @ points / mass.sum()).astype(points.dtype)
    weighted = centred * mass[:, np.newaxis].astype(points.dtype)
    if points.shape[1] <= _FEW_COLUMNS:
        axis = np.linalg.eigh(np.asarray(weighted.T @ centred, dtype=float))[1][:, -1]
    else:
        axis = np.zeros(points.shape[1])
        axis[np.argmax(np.einsum("nd,nd->d", weighted, centred))] = 1.0
        for _ in range(_POWER_STEPS):
            axis = weighted.T @ (centred @ axis.astype(points.dtype))
            axis /= max(np.linalg.norm(axis), np.finfo(float).tiny)
    return centred @ axis.astype(points.dtype) > 0


def whole(part, rules, alpha, n_iter=3):
    """`Summary` of all items of a part as one."""
    s, counts = part.sums(part.n[np.newaxis])
    alpha = rules.raised_alpha(counts, np.array([alpha]), n_iter)
    return Summary(s, counts, alpha, rules.values(s, counts, np.zeros(1), alpha))


def _sums(part, first):
    """Statistics (2, P) and counts (2, S) of two halves with shares ``first`` (m,) and the rest."""
    mass = np.empty((2, len(first)))
    np.multiply(part.n, first, out=mass[0])
    np.subtract(part.n, mass[0], out=mass[1])
    return part.sums(mass)


def _entropies(part, first):
    other = 1.0 - first
    return -np.array([part.n @ xlogy(first, first), part.n @ xlogy(other, other)])


def refine(part, rules, first, alpha, trace=None):
    """Shares, statistics, counts and alpha of halves after restricted updates from shares ``first``.

    Parameters
    ----------
    trace : list or None
        The value after each update is appended to it.
    """
    total = part.n.sum()
    for _ in range(_MAX_ITER):
        s, counts = _sums(part, first)
        alpha = rules.raised_alpha(counts, alpha, 1)
        if trace is not None:
            trace.append(float(rules.values(s, counts, _entropies(part, first), alpha).sum()))
        coef = rules.likelihood.coefficients(rules.prior, rules.scale.points * s)
        psi = rules.documents_a_point * digamma(counts / rules.sizes + alpha[:, np.newaxis])
        moved = expit(part.products(coef[0] - coef[1], psi[0] - psi[1]))
        change = part.n @ np.abs(moved - first)
        first = moved
        if change < _MOVED * total:
            break
    return first, alpha


def halve(part, rules, one, *, hard=False):
    """`Halves` of a part whose `Summary` as a whole is ``one``; None if it stays in one piece.

    With ``hard`` each item ends up in the half that has the greater share of it.
    """
    if len(part.n) < 2:
        return None
    side = principal_side(part.points(rules.prior, one.s[0]), part.n)
    if side.all() or not side.any():
        return None
    begun = side.astype(float)
    share = float(part.n @ begun / part.n.sum())
    first, alpha = refine(part, rules, begun, one.alpha * np.array([share, 1.0 - share]))
    if hard:
        first = np.round(first)
        if first.all() or not first.any():
            first = begun
    s, counts = _sums(part, first)
    if not s[:, -1].min() >= _LEAST_ROWS:
        return None
    alpha = rules.raised_alpha(counts, alpha, 1)
    value = rules.values(s, counts, _entropies(part, first), alpha)
    return Halves(first, Summary(s, counts, alpha, value))
