"""Gaussians for rows whose values stand for cells, of widths that depend on the value.

Design note
-----------
(a) A value that stands for a cell of width w is blurred by the variance ``w^2 / 12``, as by a constant ridge:
    note (b) of `gaussian.py`. The ridge R(x) is then a diagonal matrix for each row. It is a function of the
    row, so ``s(x) = [x x' + R(x), x, 1]`` in place of ``[x x', x, 1]`` is all that changes, and the family
    stays conjugate. The objective is a lower bound of the log probability of cells, less their log volume: by
    Jensen's inequality, the mean of a log density over a cell is at most the log of its mean.
(b) R is looked up in a table for each column, at every step. So prepared rows are vectors as before. Values
    that are not in the table have the width of the nearest one.
(c) A missing entry has no cell. Under full covariances, an observed entry pays for its cell as if all entries
    of the row were known, as it does for a constant ridge.
(d) The kernels do not know cells. Shares are made of a table of log weights, which is made block by block,
    because features take more room than rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._kernels._responsibilities import Quadratic
from .row_kernels import RowKernels, share_table, weighted_shares

# Rows that are worked on at a time: tables have features of these, and sums have none.
_TABLE_ROWS, _SUMMED_ROWS = 2**12, 2**16


class Cells(NamedTuple):
    """Cells of a column of standardised rows, in the order of their values.

    Attributes
    ----------
    column : int
        Number of the column.
    edges : ndarray, shape (m - 1,)
        Where the cell of a value ends and that of the next one begins.
    variance : ndarray, shape (m,)
        Variances of the cells.
    mean : float
        Mean of the variances over rows of the data.
    """

    column: int
    edges: np.ndarray
    variance: np.ndarray
    mean: float


def standardised_cells(cells, scaling):
    """List of `Cells` of the columns that a `Scaling` keeps, from those of the data."""
    kept = range(len(scaling.shift)) if scaling.kept is None else scaling.kept
    found = []
    for own in cells:
        d = own.column
        if d not in kept:
            continue
        values = (own.values - scaling.shift[d]) / scaling.scale[d]
        edges = 0.5 * (values[1:] + values[:-1])
        variance = (own.widths / scaling.scale[d]) ** 2 / 12
        mean = float((own.typical / scaling.scale[d]) ** 2 / 12)
        found.append(Cells(d, edges, variance, mean))
    return found


class Blur:
    """Variances by which rows are blurred, and their places among the statistics of a Gaussian.

    Parameters
    ----------
    cells : list of Cells
        Cells of C columns.
    scaling : Scaling
        Scaling of the rows.
    quadratic : Quadratic
        The quadratic part of s(x).

    Attributes
    ----------
    axes : ndarray, shape (D', C)
        Products of prepared rows with these are the standardised columns.
    squares : ndarray, shape (C, Q) or None
        What a variance of each column adds to the squares; None if it adds to one number.
    places : ndarray of int, shape (C,)
        The place of this number.
    """

    def __init__(self, cells, scaling, quadratic):
        self.cells = list(cells)
        D, basis = scaling.n_features, scaling.basis
        self.is_rotated = scaling.is_rotated
        axes = np.eye(D) if basis is None else basis
        self.axes = np.ascontiguousarray(axes[[own.column for own in cells]].T)
        i, j = np.triu_indices(D) if quadratic == Quadratic.FULL else (np.arange(D),) * 2
        squares = self.axes[i].T * self.axes[j].T
        if quadratic == Quadratic.SPHERICAL:
            squares = squares.sum(axis=1, keepdims=True)
        self.places = squares.argmax(axis=1)
        single = np.count_nonzero(squares, axis=1).max() == 1
        apart = len(set(self.places)) == len(cells)
        self.squares = None if single and apart else squares

    @property
    def mean(self):
        """Mean variances (D',) along the axes of prepared rows."""
        return self.axes**2 @ [own.mean for own in self.cells]

    def variances(self, z):
        """Variances (n, C) of the cells of prepared rows; 0 where an entry is missing."""
        out = np.empty((len(z), len(self.cells)))
        for i, own in enumerate(self.cells):
            axis = self.axes[:, i]
            x = z @ axis.astype(z.dtype) if self.is_rotated else z[:, axis.argmax()]
            out[:, i] = own.variance[np.searchsorted(own.edges, x)]
            out[np.isnan(x), i] = 0.0
        return out

    def add(self, s, variances):
        """Add variances (n, C), or sums of them, to statistics ``s`` (n, P)."""
        if self.squares is None:
            s[:, self.places] += variances.astype(s.dtype, copy=False)
        else:
            s[:, : self.squares.shape[1]] += variances @ self.squares

    def log_weights(self, coef, variances):
        """Change (n, K) of the log weights of rows that are blurred by variances (n, C)."""
        if self.squares is None:
            return variances @ coef[:, self.places].T
        return variances @ (self.squares @ coef[:, : self.squares.shape[1]].T)

    def log_volume(self, z, ridge):
        """Log volume (n,) of the cells of prepared rows, in units of these, beside a constant ridge (D',)."""
        each = 0.5 * np.log(12.0 * (ridge + self.variances(z) @ self.axes.T**2))
        return np.where(np.isnan(z), 0.0, each).sum(axis=1)


class CellRows(RowKernels):
    """Row kernels of a Gaussian family that derives from this class first, and has a ``blur``."""

    blur: Any  # a Blur

    likelihood_table = RowKernels.likelihood_table

    def features(self, z):
        out = super().features(z)
        self.blur.add(out, self.blur.variances(z))
        return out

    def log_table(self, coef, z):
        return self._log_table(coef, z, self.blur.variances(z))

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        self._summarise(z, self.blur.variances(z), shares, s, coef, sparse)

    def _share(self, coef, z, how):
        variances = self.blur.variances(z)
        share_table(self._log_table(coef, z, variances), how)
        if how.s is not None:
            shares = weighted_shares(how.resp, how.mass, how.weight)
            self._summarise(z, variances, shares, how.s, coef)

    def _log_table(self, coef, z, variances):
        """`log_table` of dense rows, given the variances (n, C) of their cells."""
        out = np.empty((len(z), len(coef)), dtype=z.dtype)
        for rows in _blocks(len(z), _TABLE_ROWS):
            own = self._in_precision(coef, z[rows])
            features = super().features(own)
            self.blur.add(features, variances[rows])
            out[rows] = features @ coef.T.astype(own.dtype, copy=False)
        return out

    def _summarise(self, z, variances, shares, s, coef, sparse=False):
        """`summarise` given the variances (n, C) of the cells of rows."""
        s[...], own = 0.0, np.empty_like(s)
        for rows in _blocks(len(z), _SUMMED_ROWS):
            super().summarise(z[rows], shares[rows], own, coef=coef, sparse=sparse)
            self.blur.add(own, shares[rows].T.astype(float, copy=False) @ variances[rows])
            s += own

    def log_probability(self, prior, s, z):
        """See `Likelihood`; each row has a cell of its own."""
        volume = self.blur.log_volume(z, self.ridge)
        missing = np.isnan(z) @ np.log(_scale(self.scaling)) if not self.blur.is_rotated else 0.0
        volume -= self.scaling.log_density_constant + missing
        return self.log_predictive(prior, s[np.newaxis], z)[:, 0] + volume


def _scale(scaling):
    """Standard deviations (D',) of the columns that are kept."""
    return scaling.scale if scaling.kept is None else scaling.scale[scaling.kept]


def _blocks(n_rows, size):
    """Slices of at most ``size`` rows; none if there are no rows."""
    return (slice(lo, lo + size) for lo in range(0, n_rows, size))
