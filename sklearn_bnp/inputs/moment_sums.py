"""Moments of data in parts: what each part contributes, and how contributions add up.

Two passes lead to the same `Moments` as from `moments.column_moments`, but for rounding: the first finds the
sizes of columns, the second sums about a common shift, which is near the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .moments import (
    Moments,
    blocks,
    has_missing,
    ones_if_none,
    raise_unless_seen,
    zeros_for_missing,
)


class ColumnSizes(NamedTuple):
    """How large the values of columns are, in a part of the data.

    Attributes
    ----------
    n_rows : int
        Of positive weight.
    largest, magnitude : ndarray, shape (D,)
        As of `Moments`; 0 where a column has no value but 0.
    center : ndarray, shape (D,), or None
        A point among rows of positive weight, in the units of the data; None if there is no such row.
    precision : float
    missing : bool
        Whether entries are missing.
    sparse : bool
        Whether there are sparse rows.
    """

    n_rows: int
    largest: np.ndarray
    magnitude: np.ndarray
    center: np.ndarray | None
    precision: float
    missing: bool
    sparse: bool

    @classmethod
    def of(cls, batch):
        """Sizes of the rows of a `Batch`."""
        x, D = batch.x, batch.x.shape[1]
        precision = np.finfo(x.dtype if x.dtype in (np.float32, np.float16) else np.float64).eps
        largest, magnitude, center = np.zeros(D), np.zeros(D), None
        n_rows = x.shape[0] if batch.weight is None else np.count_nonzero(batch.weight)
        if issparse(x):
            magnitude = largest_by_column(x)
            return cls(n_rows, magnitude, magnitude, np.zeros(D), precision, False, True)
        missing = has_missing(x)
        for rows, weight in blocks([batch]):
            largest = np.fmax(largest, largest_by_column(rows))
            counted = rows if weight is None else rows[weight > 0]
            magnitude = np.fmax(magnitude, largest_by_column(counted))
            if center is None and len(counted):
                center = _center(counted)
        return cls(n_rows, largest, magnitude, center, precision, missing, False)

    def added(self, other):
        """Sizes of both parts."""
        sparse = self.sparse or other.sparse
        center = other.center if self.center is None else self.center
        if sparse:  # sums over sparse rows are about zero, and so must be those over dense ones
            center = np.zeros_like(self.magnitude)
        return ColumnSizes(
            self.n_rows + other.n_rows, np.fmax(self.largest, other.largest),
            np.fmax(self.magnitude, other.magnitude), center,
            max(self.precision, other.precision), self.missing or other.missing, sparse,
        )  # fmt: skip

    @property
    def units(self):
        """The magnitude of each column (D,), 1 where it is 0."""
        return np.where(self.magnitude > 0, self.magnitude, 1.0)


def largest_by_column(rows):
    """Largest absolute value of each column (D,) in float64; missing entries count for nothing."""
    if issparse(rows):
        out = np.zeros(rows.shape[1])
        np.maximum.at(out, rows.indices, np.abs(rows.data))
        return out
    rows = rows.view(np.uint8) if rows.dtype == bool else rows
    highest = np.fmax.reduce(rows, axis=0, initial=0)
    lowest = np.fmin.reduce(rows, axis=0, initial=0)
    return np.fmax(highest.astype(float), -lowest.astype(float))


def _center(rows):
    """Mean (D,) of the observed entries of each column; 0 where there is none."""
    size = np.maximum(largest_by_column(rows), np.finfo(float).tiny)
    z, seen = zeros_for_missing(rows / size)
    return size * z.sum(axis=0) / np.maximum(seen.sum(axis=0), 1.0)


class ColumnSums(NamedTuple):
    """Weighted sums over a part of the data, of ``z = x / units - shift``, in which missing entries are 0.

    Attributes
    ----------
    total : float
        Weight of the rows.
    mass : ndarray, shape (D,)
        Weight of the rows that show each column.
    first : ndarray, shape (D,)
    second : ndarray, shape (D, D) or (D,)
        Products of two columns, or squares.
    cross, pairs : ndarray, shape (D, D), or 0.0
        Sums of one column over the rows that show another, and the weight of these; 0.0 if nothing is
        missing or covariances are not wanted.
    """

    total: float
    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray
    cross: np.ndarray | float = 0.0
    pairs: np.ndarray | float = 0.0

    @classmethod
    def of(cls, batch, units, shift, missing, covariance):
        """Sums over the rows of a `Batch`."""
        D = len(units)
        sums = cls(0.0, np.zeros(D), np.zeros(D), np.zeros((D, D) if covariance else D))
        if issparse(batch.x):
            return _sparse_sums(batch, units)
        for rows, weight in blocks([batch]):
            w = ones_if_none(weight, rows)
            z, seen = zeros_for_missing(rows / units - shift)
            weighted = z * w[:, np.newaxis]
            second = weighted.T @ z if covariance else np.einsum("nd,nd->d", weighted, z)
            block = cls(w.sum(), w @ seen, weighted.sum(axis=0), second)
            if missing and covariance:
                block = block._replace(
                    cross=weighted.T @ seen, pairs=(seen * w[:, np.newaxis]).T @ seen
                )
            sums = sums.added(block)
        return sums

    def added(self, other):
        """Sums over both parts."""
        return ColumnSums(*(a + b for a, b in zip(self, other, strict=True)))

    def moments(self, sizes, shift):
        """`Moments` of all data, whose `ColumnSizes` are ``sizes``."""
        raise_unless_seen(self.mass)
        offset, mass = self.first / self.mass, self.mass
        second = self.second / mass
        if second.ndim == 1:
            second = second - offset**2
        elif sizes.missing:
            # of rows that show both columns, about the means of all rows that show one of them
            product = np.multiply.outer(offset, offset) * self.pairs
            second = self.second - offset * self.cross - (offset * self.cross).T + product
            second = second / np.maximum(self.pairs, np.finfo(float).tiny)
        else:
            second = second - np.multiply.outer(offset, offset)
        observed = self.mass / self.total if sizes.missing else None
        largest = None if sizes.sparse else sizes.largest
        return Moments(
            sizes.n_rows, sizes.units, shift + offset, second, sizes.precision, largest=largest,
            observed=observed,
        )  # fmt: skip


def _sparse_sums(batch, units):
    """`ColumnSums` of sparse rows, about zero; their families need no covariances."""
    D, columns = len(units), batch.x.indices
    x = batch.x.data / units[columns]
    w = 1.0 if batch.weight is None else np.repeat(batch.weight, np.diff(batch.x.indptr))
    total = batch.total_weight
    return ColumnSums(
        total, np.full(D, total), np.bincount(columns, x * w, minlength=D),
        np.bincount(columns, x * x * w, minlength=D),
    )  # fmt: skip
