"""Moments of the columns of data, from which likelihoods find their scaling and default priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .increments import Increments


class Moments(NamedTuple):
    """First and second moments of the columns of data.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    magnitude : ndarray, shape (D,)
        Largest absolute value of each column in rows of positive weight, or 1 where that is 0. The moments
        are those of ``x / magnitude``, so that values up to 1e150 can be squared.
    mean : ndarray, shape (D,)
        Means.
    covariance : ndarray, shape (D, D) or (D,)
        Covariances, or only variances if the observation model does not need more.
    precision : float
        Rounding unit of the type of the data.
    step : ndarray, shape (D,), or 0.0
        Step to which each column was recorded. It is 0 where no step was found, or none was looked for.
    largest : ndarray, shape (D,), or None
        Largest absolute value of each column in any row, whatever its weight; None of sparse rows.
    observed : ndarray, shape (D,), or None
        Share of the data's weight in rows that show the column; None if no entry is missing.
    increments : Increments or None
        Differences between successive rows, divided by ``magnitude``; None if the rows are not sequences, or
        the observation model does not need them.
    codes : ndarray of object, shape (D,), or None
        The codes of categories that each column holds, as of `CodesOfColumns`; None if the observation model
        does not need them.
    cells : tuple of ColumnCells
        Cells of columns whose step depends on the value, in the units of the data.
    """

    n_rows: int
    magnitude: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    precision: float
    step: np.ndarray | float = 0.0
    largest: np.ndarray | None = None
    observed: np.ndarray | None = None
    increments: Increments | None = None
    codes: np.ndarray | None = None
    cells: tuple = ()

    @property
    def variance(self):
        """Variances (D,)."""
        return self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)

    @property
    def typical_step(self):
        """Steps (D,) in the units of the data, or 0.0; the typical width of cells where columns have some."""
        step = self.step * self.magnitude
        for own in self.cells:
            step[own.column] = own.typical
        return step


def has_missing(x):
    """Whether entries of rows are NaN, which sparse rows cannot be."""
    return not issparse(x) and x.dtype.kind == "f" and bool(np.isnan(x.min(initial=np.inf)))


def column_moments(batches, *, covariance):
    """`Moments` of the rows of ``batches``, a list that is gone through twice.

    With ``covariance``, they have covariances of columns, and else variances. Moments of columns with missing
    entries are those of observed entries; covariances are those of the rows that show both columns.
    """
    if issparse(batches[0].x):
        return _sparse_moments(batches)
    n_rows, largest, magnitude, precision = 0, 0.0, 0.0, np.finfo(np.float64).eps
    for x, weight in blocks(batches):
        counted = of_positive_weight(x, weight)
        n_rows += len(counted)
        largest = np.maximum(largest, _largest_by_column(x))
        magnitude = np.maximum(magnitude, _largest_by_column(counted))
        if x.dtype in (np.float32, np.float16):
            precision = np.finfo(x.dtype).eps
    if np.isnan(largest).any():
        return _observed_moments(batches, n_rows, precision, covariance)
    magnitude = np.where(magnitude == 0, 1.0, magnitude)
    shift = None
    mass, first, second = 0.0, 0.0, 0.0
    for x, w in _counted_blocks(batches):
        z = x / magnitude
        if shift is None:
            shift = np.average(z, axis=0, weights=w)
        z -= shift
        mass += w.sum()
        weighted = z * w[:, np.newaxis]
        first = first + weighted.sum(axis=0)
        second = second + (weighted.T @ z if covariance else np.einsum("nd,nd->d", weighted, z))
    offset = first / mass
    second = second / mass - (np.multiply.outer(offset, offset) if covariance else offset**2)
    return Moments(n_rows, magnitude, shift + offset, second, precision, largest=largest)


def blocks(batches):
    """Rows and their weights, or None, block by block.

    Blocks are in C order. Columns that lie one after another, as those of frames do, are added up in another
    order, and sums then have other last bits.
    """
    for batch in batches:
        for rows in batch.slices():
            x = np.ascontiguousarray(batch.x[rows])
            yield x, None if batch.weight is None else batch.weight[rows]


def _counted_blocks(batches):
    """Rows of positive weight and their weights, block by block; others may hold any numbers."""
    for x, weight in blocks(batches):
        w = of_positive_weight(ones_if_none(weight, x), weight)
        if len(w):
            yield of_positive_weight(x, weight), w


def of_positive_weight(x, weight):
    """The rows of ``x`` whose weight (n,) is positive; all of them if ``weight`` is None."""
    if weight is None or weight.min(initial=1.0) > 0:
        return x
    return x[weight > 0]


def require_values(batches):
    """Raise unless each column of dense rows has a value in a row of positive weight."""
    mass = 0.0
    for x, weight in blocks(batches):
        mass = mass + (ones_if_none(weight, x) > 0) @ ~np.isnan(x)
    raise_unless_seen(mass)


def raise_unless_seen(mass):
    """Raise unless the weights of the rows in which each column has a value, (D,), are positive."""
    unseen = np.flatnonzero(~(mass > 0))
    if len(unseen):
        raise ValueError(
            f"Column {unseen[0]} of X has no value: all its entries are NaN (in rows of positive "
            "weight). Leave the column out, or give rows in which it has one."
        )


def ones_if_none(weight, x):
    """Weights (n,) of rows."""
    return np.ones(len(x)) if weight is None else weight


def _largest_by_column(x):
    """Largest absolute value of each column (D,) in float64; NaN where an entry is."""
    highest, lowest = x.max(axis=0, initial=0), x.min(axis=0, initial=0)
    return np.maximum(highest, -lowest.astype(float)).astype(float)


def _observed_moments(batches, n_rows, precision, covariance):
    """`Moments` of rows with NaN."""
    largest = magnitude = 0.0
    for x, weight in blocks(batches):
        size = np.abs(x)
        largest = np.fmax(largest, np.fmax.reduce(size, axis=0, initial=0.0))
        counted = of_positive_weight(size, weight)
        magnitude = np.fmax(magnitude, np.fmax.reduce(counted, axis=0, initial=0.0))
    magnitude = np.where(magnitude > 0, magnitude, 1.0).astype(float)
    mass, first, total = 0.0, 0.0, 0.0
    for x, w in _counted_blocks(batches):
        z, seen = zeros_for_missing(x / magnitude)
        mass, first, total = mass + w @ seen, first + w @ z, total + w.sum()
    raise_unless_seen(mass)
    mean, second, pairs = first / mass, 0.0, 0.0
    for x, w in _counted_blocks(batches):
        z, seen = zeros_for_missing(x / magnitude - mean)
        w = w[:, np.newaxis]
        if covariance:
            second = second + (z * w).T @ z
            pairs = pairs + (seen * w).T @ seen
        else:
            second = second + np.einsum("nd,nd->d", z * w, z)
    second = second / np.maximum(pairs, np.finfo(float).tiny) if covariance else second / mass
    return Moments(
        n_rows, magnitude, mean, second, precision, largest=largest, observed=mass / total
    )


def zeros_for_missing(z):
    """Rows with 0 for NaN, and 1.0 for observed entries."""
    missing = np.isnan(z)
    z[missing] = 0.0
    return z, 1.0 - missing


def _sparse_moments(batches):
    """`Moments` of sparse rows, whose families need no covariances."""
    n_rows, n_columns, mass = 0, batches[0].x.shape[1], 0.0
    magnitude, precision = np.zeros(n_columns), np.finfo(np.float64).eps
    for batch in batches:
        n_rows += batch.n_entries if batch.weight is None else np.count_nonzero(batch.weight)
        mass += batch.total_weight
        np.maximum.at(magnitude, batch.x.indices, np.abs(batch.x.data))
        if batch.x.dtype == np.float32:
            precision = np.finfo(np.float32).eps
    magnitude = np.where(magnitude > 0, magnitude, 1.0)
    first, second = np.zeros(n_columns), np.zeros(n_columns)
    for batch in batches:
        x = batch.x.data / magnitude[batch.x.indices]
        weight = 1.0 if batch.weight is None else np.repeat(batch.weight, np.diff(batch.x.indptr))
        first += np.bincount(batch.x.indices, x * weight, minlength=n_columns)
        second += np.bincount(batch.x.indices, x * x * weight, minlength=n_columns)
    mean = first / mass
    return Moments(n_rows, magnitude, mean, second / mass - mean**2, precision)
