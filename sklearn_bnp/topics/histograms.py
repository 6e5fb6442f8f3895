"""Histograms of counts, on which sums of smooth functions of the counts are exact to rounding.

Design note
-----------
(a) The objective needs of the counts N of documents no more than sums of ``lnG(N + a)``, of their
    derivatives in a, and of such functions of the documents' lengths, for any a >= 0. As a function of
    log N, ``lnG(N + a)`` has no singularity nearer to the real axis than pi, whatever a is: it is singular
    where N + a is zero or a negative integer, and there log N has the imaginary part pi.
(b) The positive axis is cut into *panels* around the powers of 16, from a quarter of the power to four times
    it. In each panel a polynomial of degree 19 in log N, through the values at 20 Chebyshev points, differs
    from ``lnG(N + a)`` by about rounding. A count therefore gives each of the 20 *nodes* of its panel the
    weight that the node's value has in the polynomial at N. The sum of f over documents is then the sum over
    nodes, each counted with its weight.
(c) Weights of nodes add up over documents and over batches, and can be subtracted. They do not depend on a.
    A topic has 20 of them for each panel in use, six or so, however many documents there are.
(d) A panel's half-width in log N is log 4 = 1.39. Polynomials of degree m - 1 converge like r^-m, where r is
    the sum of the half-axes of the largest ellipse without singularities, in units of the half-width:
    r = (pi + sqrt(pi^2 + 1.39^2)) / 1.39 = 4.74, and 4.74^-20 = 3e-14 (Trefethen, Approximation Theory and
    Approximation Practice, 2013, Thm. 8.2). doc/formulas_histograms.rst has the formulas.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from .._kernels._histograms import spread_over_nodes

# Nodes of a panel, and the ratio of its last count to its first.
N_NODES, RATIO = 20, 16.0
# Counts are held between 16^-12 and 16^12, 4e-15 and 3e14
MOST_PANEL = 12

_ANGLES = np.pi * (np.arange(N_NODES) + 0.5) / N_NODES
# Counts of the nodes of panel 0.
_NODES = RATIO ** (0.5 * np.cos(_ANGLES))
# Row j has the weights of the nodes for the j-th Chebyshev polynomial: the discrete orthogonality.
_TABLE = 2.0 / N_NODES * np.cos(np.outer(np.arange(N_NODES), _ANGLES))
_TABLE[0] *= 0.5


@cache  # there are no more than 325 pairs
def _nodes(first, last):
    """Counts of the nodes of the panels from ``first`` to before ``last``; nobody may change them."""
    nodes = np.outer(RATIO ** np.arange(first, last), _NODES).ravel()
    nodes.setflags(write=False)
    return nodes


class Histogram(NamedTuple):
    """Weights of nodes that stand for positive counts; nothing changes them.

    Attributes
    ----------
    first : int
        The first panel.
    weights : ndarray, shape (n_panels * N_NODES,)
        Panel after panel. Some are negative; they add up to the number of counts.
    """

    first: int
    weights: np.ndarray

    @property
    def last(self):
        """The panel after the last one."""
        return self.first + len(self.weights) // N_NODES

    @property
    def nodes(self):
        """Counts that the nodes stand for, shape (n_panels * N_NODES,)."""
        return _nodes(self.first, self.last)

    @property
    def total(self):
        """Weighted number of the counts."""
        return float(self.weights.sum())

    def added(self, other, sign=1.0):
        """The histogram of these counts and others, or without others if ``sign`` is -1."""
        if len(other.weights) == 0:
            return self
        mine = self if len(self.weights) else Histogram(other.first, self.weights)
        first, last = min(mine.first, other.first), max(mine.last, other.last)
        return Histogram(first, mine._over(first, last) + sign * other._over(first, last))

    def _over(self, first, last):
        """Weights of the nodes of the panels from ``first`` to before ``last``."""
        if (first, last) == (self.first, self.last):
            return self.weights
        out = np.zeros((last - first) * N_NODES)
        start = (self.first - first) * N_NODES
        out[start : start + len(self.weights)] = self.weights
        return out

    def times(self, factor):
        """The histogram if each count occurred ``factor`` times as often."""
        return self._replace(weights=factor * self.weights)


NOTHING = Histogram(0, np.zeros(0))


def added_up(parts):
    """The `Histogram` of all counts of several; equivalent to `Histogram.added` of one after the other."""
    some = [part for part in parts if len(part.weights)]
    if len(some) < 2:
        return some[0] if some else NOTHING
    first = min(part.first for part in some)
    weights = np.zeros((max(part.last for part in some) - first) * N_NODES)
    for part in some:
        start = (part.first - first) * N_NODES
        weights[start : start + len(part.weights)] += part.weights
    return Histogram(first, weights)


def histograms(values, indptr, weight=None):
    """A `Histogram` of each group of counts.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Positive counts, group after group.
    indptr : ndarray, shape (G + 1,)
        ``values[indptr[g]:indptr[g + 1]]`` are those of group g.
    weight : ndarray, shape (n,), or None
        How often each count occurs; once if None.

    Returns
    -------
    list of Histogram
    """
    sizes = np.diff(indptr)
    used = sizes > 0
    if not used.any():
        return [NOTHING] * len(sizes)
    starts = np.asarray(indptr)[:-1][used]
    place = np.clip(np.log(values) / np.log(RATIO), -MOST_PANEL, MOST_PANEL)
    panel = np.rint(place)
    first = np.minimum.reduceat(panel, starts).astype(np.int64)
    n_panels = np.maximum.reduceat(panel, starts).astype(np.int64) - first + 1
    ends = np.cumsum(n_panels)
    row = np.repeat(ends - n_panels - first, sizes[used]) + panel.astype(np.int64)
    moments, weights = np.zeros((2, ends[-1], N_NODES))
    if weight is not None:
        weight = np.ascontiguousarray(weight, dtype=float)
    spread_over_nodes(row, 2.0 * (place - panel), weight, _TABLE, moments, weights)
    made = zip(first.tolist(), np.split(weights.ravel(), N_NODES * ends[:-1]), strict=True)
    found = [Histogram(*one) for one in made]
    out = iter(found)
    return [next(out) if some else NOTHING for some in used]
