"""Halves of a set of items: a cut along an axis, refined by restricted updates.

Design note
-----------
(a) Topics are split in model building (Alg. 3.1) and clusters in compression (Alg. 3.2). Both do
    the same, but for the number of times that the data count (23)-(25).
(b) Each item belongs to the two halves and to no other topic. An update then needs only the difference
    of the two log weights of each item: a matrix-vector product.
(c) Clusters that lie as evenly as the corners of a cube have no principal component: whichever axis rounding
    chooses, a cut along it may go through clusters, where updates stay. `parted_side` then looks for an axis
    along which they lie apart.
(d) Halves are judged by `Rules.values`, at a fixed cost of alpha.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, xlogy

from .._kernels._responsibilities import Quadratic
from .items import rows_of_statistics
from .model import (
    LEAST_ALPHA,
    Scale,
    alpha_cost,
    log_rising_factorials,
    normaliser,
    raised_alpha,
)

# Numbers of items' statistics that are held; if there are more, they are computed block by block.
_HELD_NUMBERS = 4_000_000
# With more columns than this, the principal component is found by power iteration of so many steps.
_FEW_COLUMNS, _POWER_STEPS = 64, 16
# Whitened axes have at least this share of the greatest variance, and are moved at most so many times.
_FLAT, _PARTINGS = 1e-9, 10
# Restricted updates end when less than this share of the rows moves, or after so many.
_MOVED, _MAX_ITER = 0.005, 20
# Cuts of a clump that are looked at: along the principal component, and after moves of items.
_TIES = 3
# A half with fewer rows than this is empty.
_LEAST_ROWS = 0.5


class Others(NamedTuple):
    """Rows of each document group, ``lengths`` (S,), and the sum ``alpha`` of the other topics' alpha."""

    lengths: np.ndarray
    alpha: float


class Rules(NamedTuple):
    """Likelihood, priors and scale by which halves are found and judged.

    Attributes
    ----------
    likelihood : Likelihood
    prior : object
        Prior of the likelihood.
    sizes : ndarray, shape (S,)
        Documents in each group.
    shape : float
        Shape a of the gamma prior of alpha_k.
    cost : float
        Cost of alpha (`model.alpha_cost`), or what its prior costs if there are ``others``.
    scale : Scale
    peak : float
        What is subtracted for each set, `model.prior_peak`.
    others : Others or None
        The other topics; None if the documents' weights cost the same for any sum of alpha.
    once : Rules or None
        The rules if copies count once; None if there are no copies, or columns have no scale.
    """

    likelihood: object
    prior: object
    sizes: np.ndarray
    shape: float
    cost: float
    scale: Scale = Scale()
    peak: float = 0.0
    others: Others | None = None
    once: Rules | None = None

    def log_weights(self, s, counts, alpha):
        """Coefficients (J, P) of items' statistics, and weights (J, S) of their groups, of log q(z) (21)."""
        coef = self.likelihood.coefficients(self.prior, self.scale.points * s)
        # 1 unless documents and rows count differently in (30)
        documents_a_point = self.scale.documents / self.scale.points
        return coef, documents_a_point * digamma(counts / self.sizes + alpha[:, np.newaxis])

    def values(self, s, counts, entropy, alpha):
        """Values (J,) of sets of items at the cost of alpha; see note (b) of ``model.py``."""
        return (
            self.likelihood.evidence(self.prior, self.scale.points * s)
            + self.scale.points * entropy
            + self.scale.documents * log_rising_factorials(counts, alpha, self.sizes)
            + xlogy(self.shape - 1.0, alpha)
            - self.cost * alpha
            - self.peak
        )

    def raised_alpha(self, counts, alpha, n_iter):
        """alpha (J,) after steps of (22) or (25)."""
        for _ in range(n_iter):
            cost = self.tangent(alpha.sum()).cost
            alpha = raised_alpha(counts, alpha, self.sizes, self.shape, cost, self.scale.documents)
        return alpha

    def beside(self, alpha):
        """The rules where the alpha of the other topics sum to the number ``alpha``."""
        once = None if self.once is None else self.once.beside(alpha)
        return self._replace(others=self.others._replace(alpha=alpha), once=once)

    def tangent(self, alpha):
        """The rules with a tangent of the normaliser, by which the values of sets add up.

        It touches where the alpha of the sets sum to the number ``alpha``.
        """
        if self.others is None:
            return self
        cost = alpha_cost(self.others.lengths, self.sizes, self.others.alpha + alpha, self.cost)
        return self._replace(cost=cost, others=None)

    def total(self, summary):
        """Value of the sets of a `Summary` together."""
        value = summary.value.sum()
        if self.others is not None:
            total = self.others.alpha + summary.alpha.sum()
            value += normaliser(self.others.lengths, self.sizes, total)
        return float(value)


class Summary(NamedTuple):
    """Statistics (J, P), counts (J, S) and alpha (J,) of sets of items, and their values (J,)."""

    s: np.ndarray
    counts: np.ndarray
    alpha: np.ndarray
    value: np.ndarray

    def one(self, j):
        """`Summary` of the set j alone."""
        return Summary(*(field[j : j + 1] for field in self))


class Halves(NamedTuple):
    """Two halves of a set of items.

    Attributes
    ----------
    first : ndarray, shape (m,)
        Responsibility of the first half for each item; 0 or 1 if halves are ``hard``.
    summary : Summary
        Of the two halves.
    """

    first: np.ndarray
    summary: Summary


class ItemSubset:
    """Some of the items, prepared for restricted updates.

    Parameters
    ----------
    items : Items
    which : ndarray of int
        Numbers of the items, ascending.
    likelihood : Likelihood
    """

    def __init__(self, items, which, likelihood):
        self.likelihood = likelihood
        self.which = which
        self.n, self.distinct = items.n[which], items.distinct[which]
        n_clumps = np.searchsorted(which, items.n_clumps)
        shares = items.shares[which]
        self.clump_shares = shares[:n_clumps].toarray()
        self.owner = shares.indices[shares.indptr[n_clumps] :]
        self.clumps = items.means[which[:n_clumps]]
        self.z = items.z[which[n_clumps:] - items.n_clumps]
        small = len(which) * likelihood.n_statistics <= _HELD_NUMBERS
        self._held = [np.concatenate(list(self._computed()))] if small else None

    def _computed(self):
        """Yield blocks of statistics per row."""
        if len(self.clumps):
            yield self.clumps
        size = max(1, _HELD_NUMBERS // self.likelihood.n_statistics)
        for lo in range(0, len(self.z), size):
            yield rows_of_statistics(self.likelihood, self.z[lo : lo + size])

    def where(self, chosen):
        """`ItemSubset` of those for which the boolean (m,) ``chosen`` holds."""
        n_clumps, part = len(self.clumps), object.__new__(ItemSubset)
        of_clumps, of_rows = chosen[:n_clumps], chosen[n_clumps:]
        part.likelihood = self.likelihood
        part.which = self.which[chosen]
        part.n = self.n[chosen]
        part.distinct = self.distinct[chosen]
        part.clump_shares, part.clumps = self.clump_shares[of_clumps], self.clumps[of_clumps]
        part.owner, part.z = self.owner[of_rows], self.z[of_rows]
        part._held = None if self._held is None else [self._held[0][chosen]]
        return part

    def blocks(self):
        """Statistics per row of the items, block by block."""
        return self._computed() if self._held is None else self._held

    def products(self, coef, psi):
        """Log weights (m,) from coefficients (P,) and the document groups' log weights ``psi`` (S,)."""
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
        """Points (m, D) for the items, whose principal component the first cut follows."""
        likelihood, D = self.likelihood, self.likelihood.n_features
        if not likelihood.linear:  # the statistics of a clump hold its scatter, and no mean
            return np.concatenate([block[:, :-1] for block in self.blocks()])
        means = np.concatenate([self.clumps[:, -1 - D : -1].astype(self.z.dtype), self.z])
        if likelihood.quadratic == Quadratic.NONE:
            means = likelihood.seeding_points(prior, s, np.ascontiguousarray(means))
        return means


def principal_side(points, mass):
    """Boolean (m,): points (m, D) above their mean along the principal component; ``mass`` are weights."""
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


def parted_side(points, mass):
    """Boolean (m,): points (m, D) above their mean along an axis of extreme kurtosis in whitened units.

    In such units all axes have the same variance, and clusters that lie apart along one of them make its
    kurtosis small. The axis is found by the fixed-point iteration of Hyvärinen and Oja (1997), from
    between the two greatest principal components. None if points vary along one axis only, or have too
    many columns.
    """
    if not 2 <= points.shape[1] <= _FEW_COLUMNS:
        return None
    mass = mass / mass.sum()
    centred = points - mass @ points
    variance, axes = np.linalg.eigh((mass[:, np.newaxis] * centred).T @ centred)
    some = variance > _FLAT * variance[-1]
    if some.sum() < 2:
        return None
    white = centred @ (axes[:, some] / np.sqrt(variance[some]))
    axis = np.zeros(white.shape[1])
    axis[-2:] = np.sqrt(0.5)
    for _ in range(_PARTINGS):
        axis = (mass * (white @ axis) ** 3) @ white - 3.0 * axis
        axis /= max(np.linalg.norm(axis), np.finfo(float).tiny)
    along = white @ axis
    # Where it is no less than by chance for a single Gaussian, there is no gap at the mean.
    if mass @ along**4 > 3.0 - 2.0 * np.sqrt(24.0 / len(along)):
        return None
    return along > 0


class Tie(NamedTuple):
    """Present topics, by which a tie of q(z) loses nats: coefficients (K, P) and ``psi(zeta_ks)`` (K, S).

    Rows that share q(z) have ``n log sum_k exp(mean log weight)`` in the bound, and never more than if each
    had its own (Jensen).
    """

    coef: np.ndarray
    psi: np.ndarray

    def values(self, part):
        """Value (m,) of each item of a subset, a row."""
        out, lo, n_clumps = np.empty(len(part.n)), 0, len(part.clumps)
        rows = max(1, _HELD_NUMBERS // len(self.coef))
        for block in part.blocks():
            for first in range(0, len(block), rows):
                some = block[first : first + rows]
                logits = some @ self.coef.T
                hi = lo + len(some)
                edge = min(max(n_clumps, lo), hi)  # clumps come before rows
                logits[: edge - lo] += part.clump_shares[lo:edge] @ self.psi.T
                logits[edge - lo :] += self.psi.T[part.owner[edge - n_clumps : hi - n_clumps]]
                out[lo:hi] = softmax_and_log_sum(logits)[1]
                lo = hi
        return out

    def shared(self, s, counts):
        """q(z) (J, K) of sets with sums ``s`` (J, P) and ``counts`` (J, S), and its value a row (J,)."""
        return softmax_and_log_sum((s @ self.coef.T + counts @ self.psi.T) / s[:, -1:])

    def cut(self, part, s, prior):
        """Boolean (m,) that halves a subset with sums ``s`` (P,), and sums (2, P) and (2, S) of its halves.

        From a cut along the principal component, items move to the q(z) that suits them best. None if no
        cut leaves items on both sides.
        """
        side = principal_side(part.points(prior, s), part.n)
        best, most = None, -np.inf
        for _ in range(_TIES):
            if side.all() or not side.any():
                break
            sums = _sums(part, side.astype(float))
            q, value = self.shared(*sums)
            if sums[0][:, -1] @ value <= most:
                break
            best, most = (side, sums), sums[0][:, -1] @ value
            entropy = -np.einsum("jk,jk->j", q, np.log(np.maximum(q, np.finfo(float).tiny)))
            weight = q[0] - q[1]
            side = part.products(weight @ self.coef, weight @ self.psi) > entropy[1] - entropy[0]
        return best


def softmax_and_log_sum(logits):
    """Softmax (J, K) and logarithm of the sum (J,) of exponentials; changes ``logits``."""
    most = logits.max(axis=1, keepdims=True)
    np.exp(np.subtract(logits, most, out=logits), out=logits)
    total = logits.sum(axis=1, keepdims=True)
    logits /= total
    return logits, (np.log(total) + most)[:, 0]


def whole(part, rules, alpha):
    """`Summary` of all items of a subset as one set, with alpha starting from the number ``alpha``."""
    return summary_of(part, rules, part.n, np.ones((1, len(part.n))), np.array([alpha]), n_iter=3)


def summary_of(part, rules, n, resp, alpha, n_iter=1):
    """`Summary` of parts with responsibilities (J, m) for items of ``n`` (m,) rows.

    The prior weights are ``alpha`` (J,) after ``n_iter`` steps.
    """
    s, counts = part.sums(n * resp)
    alpha = rules.raised_alpha(counts, alpha, n_iter)
    return Summary(s, counts, alpha, rules.values(s, counts, -(xlogy(resp, resp) @ n), alpha))


def _sums(part, first, n=None):
    """Statistics (2, P) and counts (2, S) of halves with responsibilities ``first`` (m,) and the rest.

    The items have ``n`` (m,) rows, or ``part.n`` if None.
    """
    n, mass = part.n if n is None else n, np.empty((2, len(first)))
    np.multiply(n, first, out=mass[0])
    np.subtract(n, mass[0], out=mass[1])
    return part.sums(mass)


def _entropies(n, first):
    """Entropies (2,) of the two halves of items of ``n`` (m,) rows."""
    other = 1.0 - first
    return -np.array([n @ xlogy(first, first), n @ xlogy(other, other)])


def refine(part, rules, first, alpha):
    """Responsibilities (m,) and alpha (2,) of halves after restricted updates from ``first`` (m,)."""
    total = part.n.sum()
    for _ in range(_MAX_ITER):
        s, counts = _sums(part, first)
        alpha = rules.raised_alpha(counts, alpha, 1)
        coef, psi = rules.log_weights(s, counts, alpha)
        moved = expit(part.products(coef[0] - coef[1], psi[0] - psi[1]))
        change = part.n @ np.abs(moved - first)
        first = moved
        if change < _MOVED * total:
            break
    return first, alpha


def halve(part, rules, one, *, cut=principal_side, hard=False):
    """`Halves` of a subset whose `Summary` as a whole is ``one``; None if no cut leaves rows on both sides.

    ``cut(points, mass)`` gives the first halves, a boolean (m,), or None. With ``hard``, each item belongs
    to the half of greater responsibility alone.
    """
    if len(part.n) < 2:
        return None
    side = cut(part.points(rules.prior, one.s[0]), part.n)
    if side is None or side.all() or not side.any():
        return None
    begun = side.astype(float)
    share = float(part.n @ begun / part.n.sum())
    # weights may differ so much that one side's share is rounded to 0
    alpha = np.maximum(one.alpha * np.array([share, 1.0 - share]), LEAST_ALPHA)
    first, alpha = refine(part, rules, begun, alpha)
    if hard:
        first = np.round(first)
        if first.all() or not first.any():
            first = begun
    s, counts = _sums(part, first)
    if not s[:, -1].min() >= _LEAST_ROWS:
        return None
    alpha = rules.raised_alpha(counts, alpha, 1)
    value = rules.values(s, counts, _entropies(part.n, first), alpha)
    return Halves(first, Summary(s, counts, alpha, value))
