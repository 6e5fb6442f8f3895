"""Scaling of real-valued data, which are modelled in standard deviations from their mean.

Every column is centred and divided by its standard deviation, that of blurred rows, so that one
default prior fits all data. Constant columns, and directions in which the standardised columns do not
vary, say nothing about components, but would spoil the prior of the others. They are left out of the
model, and have a fixed narrow density that all components share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inputs.advice import warn_caller
from .base import Likelihood

# A stream's first batch may leave a direction out only if it has this many rows for each column.
_STREAM_ROWS_A_COLUMN = 10
# A shift that is rounded to single precision is as good as the exact one if they differ by less, in standard
# deviations.
_SAME_SHIFT = 1e-6


class Scaling(NamedTuple):
    """Affine map to the internal units of rows: ``z = ((x - shift) / scale) @ basis``.

    Attributes
    ----------
    shift, scale : ndarray, shape (D,)
        Mean and standard deviation of each column.
    basis : ndarray, shape (D, D') or None
        Orthonormal columns; None is the identity.
    floor : float
        Variance of the density of directions that are left out, of standardised columns.
    left_out : float
        Sum of the data's variances in these directions.
    ridge : ndarray, shape (D',)
        Variance by which each prepared row is blurred.
    kept : ndarray of int, shape (D',), or None
        The columns that the basis selects, if it does no more than that.
    cell : ndarray, shape (D',), or None
        Variance of the cell that each prepared row was rounded to, if rows are not blurred by it. None if
        they are: it is then a part of the ridge.
    """

    shift: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None
    floor: float
    left_out: float
    ridge: np.ndarray
    kept: np.ndarray | None = None
    cell: np.ndarray | None = None

    @property
    def n_features(self):
        """Columns D' of prepared rows."""
        return len(self.shift) if self.basis is None else self.basis.shape[1]

    @property
    def is_continuous(self):
        """Whether some axis has no step: rows are blurred along it by the floor alone, or have no cell."""
        return bool(np.any(self.ridge <= self.floor if self.cell is None else self.cell == 0.0))

    @property
    def log_cell(self):
        """Log volume of the cell of a row that was recorded in steps."""
        variance = self.ridge if self.cell is None else self.cell
        return 0.5 * np.sum(np.log(12.0 * variance)) - self.log_density_constant

    @property
    def is_rotated(self):
        """Whether the axes of internal rows are no columns."""
        return self.basis is not None and self.kept is None

    @property
    def log_density_constant(self):
        """Constant that scaling and the directions left out add to each row's log density, in nats."""
        n_null = len(self.shift) - self.n_features
        return -np.sum(np.log(self.scale)) - 0.5 * n_null * np.log(2 * np.pi * self.floor)

    @property
    def mean_log_null_density(self):
        """Mean of `log_null_density` over the data whose moments gave this scaling."""
        return -0.5 * self.left_out / self.floor

    @property
    def row_constant(self):
        """The part of a row's Gaussian log density that no parameter changes, on average over the data."""
        log_norm = 0.5 * self.n_features * np.log(2 * np.pi)
        return self.log_density_constant + self.mean_log_null_density - log_norm

    def standardise(self, x):
        """Rows (n, D) in standard deviations from the mean, float32 if they are in float32 or float16.

        They are in C order, whatever the order of ``x``: products with matrices of another order have other
        last bits.
        """
        dtype = np.float32 if x.dtype in (np.float32, np.float16) else np.float64
        shift = self.shift.astype(dtype)
        z = np.subtract(x, shift, dtype=dtype, order="C")
        rest = self.shift - shift
        if np.any(np.abs(rest) > _SAME_SHIFT * self.scale):  # rows are far from zero
            z -= rest.astype(dtype)
        z /= self.scale.astype(dtype)
        return z

    def apply(self, x):
        """Prepared rows (n, D')."""
        z = self.standardise(x)
        if self.kept is not None:
            z = z[..., self.kept]
        elif self.basis is not None:
            z = z @ self.basis.astype(z.dtype)
        return np.ascontiguousarray(z)

    def log_null_density(self, x):
        """Exponent (n,) of the density of the directions left out; 0 within the span of the data."""
        if self.basis is None:
            return np.zeros(len(x))
        z = self.standardise(x).astype(np.float64)
        inside = z @ self.basis
        square = np.einsum("ij,ij->i", z, z) - np.einsum("ij,ij->i", inside, inside)
        return -0.5 * np.maximum(square, 0.0) / self.floor

    def points_back(self, z):
        """Points (..., D') in the data's units."""
        if self.basis is not None:
            z = z @ self.basis.T
        return z * self.scale + self.shift

    def matrices_back(self, c, *, inverse=False):
        """Covariances (K, D', D') in the data's units, with the floor in the directions left out.

        With ``inverse``, precisions instead.
        """
        if self.basis is not None:
            null = np.eye(len(self.shift)) - self.basis @ self.basis.T
            floor = 1.0 / self.floor if inverse else self.floor
            c = self.basis @ c @ self.basis.T + floor * null
        scale = 1.0 / self.scale if inverse else self.scale
        return c * np.multiply.outer(scale, scale)


class ScaledLikelihood(Likelihood):
    """A family for rows in the internal units of its ``scaling``, which also takes missing entries."""

    allows_missing = True

    @property
    def copies_tell(self):
        return not self.scaling.is_continuous

    @property
    def log_cell(self):
        return self.scaling.log_cell

    def prepare(self, x):
        return self.scaling.apply(x)

    def log_base(self, x):
        return self.scaling.log_null_density(x)


def find_scaling(
    moments, *, step, floor, streaming, zero_mean=False, common_scale=False, rotate=False
):
    """`Scaling` of data with given moments.

    Parameters
    ----------
    moments : Moments
        Moments of the data.
    step : float or ndarray of shape (D,)
        Step to which each column was recorded, in the data's units.
    floor : float
        A direction counts as constant if its variance is less than this share of a standardised
        column's. It is also the least variance by which rows are blurred.
    streaming : bool
        See `ObservationModel.bind`.
    zero_mean : bool
        Scale about the origin, and do not shift.
    common_scale : bool
        Use one scale for all columns, for families that are not closed under scaling a column.
    rotate : bool
        Leave out all directions in which the standardised columns do not vary, and not only constant
        columns.
    """
    mean = np.zeros_like(moments.mean) if zero_mean else moments.mean
    square = moments.variance + (moments.mean**2 if zero_mean else 0.0)
    constant = _are_constant(moments, square)
    log_sd = np.log(np.where(constant, 1.0, square)) / 2 + np.log(moments.magnitude)
    largest = np.exp(log_sd[~constant].max()) if np.any(~constant) else 1.0
    sd = np.where(constant, largest, np.exp(log_sd))
    step = np.where(constant, 0.0, step)
    if common_scale:
        kept = sd[~constant] if np.any(~constant) else sd
        sd = np.full_like(sd, np.exp(np.mean(np.log(kept / largest))) * largest)
        constant = constant & constant.all()
    cell = (step / sd) ** 2 / 12.0  # variance of a uniform cell, Sheppard's correction
    blurred = 1.0 + floor + (cell.mean() if common_scale else cell)
    scale, ridge = sd * np.sqrt(blurred), (floor + cell) / blurred
    scaling = Scaling(mean * moments.magnitude, scale, None, floor, 0.0, ridge)
    if moments.observed is not None:  # missing entries are of columns, and not of other axes
        rotate = False
    if streaming and moments.n_rows < _STREAM_ROWS_A_COLUMN * len(mean):
        rotate, constant = False, np.zeros_like(constant)
    basis, left_out, kept = None, 0.0, None
    if rotate:
        basis, left_out = _informative_basis(moments, scaling, constant, zero_mean)
    if basis is None and np.any(constant):
        kept = np.flatnonzero(~constant) if np.any(~constant) else np.array([0])
        basis = np.eye(len(constant))[:, kept]
    if basis is not None:
        ridge = np.einsum("dj,d->j", basis**2, ridge)  # variances along the new axes
    return scaling._replace(basis=basis, left_out=left_out, ridge=ridge, kept=kept)


def _are_constant(moments, square):
    """Whether the mean squares (D,) of columns, about their means or about 0, are no more than rounding."""
    # float32 rows far from zero have few digits, which are data; of float64 ones the last three bits are not
    units = 8 if moments.precision < 1e-12 else 1
    rounding = (units * moments.precision * np.maximum(np.abs(moments.mean), 1e-3)) ** 2
    constant = square <= rounding
    if units == 1:
        _warn_of_few_digits(moments, constant & (square > 0.01 * rounding))
    return constant


def _warn_of_few_digits(moments, lost):
    """Warn of float32 columns that differ by no more than their rounding, where ``lost`` (D,) is true."""
    if np.any(lost):
        d = int(np.argmax(lost))
        value = moments.mean[d] * moments.magnitude[d]
        step = np.spacing(np.float32(abs(value)))
        warn_caller(
            f"Column {d} of X has float32 values near {value:.6g}, which differ by hardly more than the step "
            f"between such numbers, {step:.3g}: it counts as constant. Subtract an offset from the column in "
            "float64 before it becomes float32."
        )


def _informative_basis(moments, scaling, constant, zero_mean):
    """Basis of the directions in which the standardised columns vary, and the sum of other variances.

    The basis is None if the columns vary in all directions.
    """
    keep = np.flatnonzero(~constant)
    if len(keep) == 0:
        return None, 0.0
    second = moments.covariance + (
        np.multiply.outer(moments.mean, moments.mean) if zero_mean else 0.0
    )
    ratio = (moments.magnitude / scaling.scale)[keep]
    values, vectors = np.linalg.eigh(second[np.ix_(keep, keep)] * np.multiply.outer(ratio, ratio))
    informative = values > scaling.floor
    if informative.all():
        return None, 0.0
    basis = np.zeros((len(constant), max(1, np.count_nonzero(informative))))
    if not informative.any():
        informative[-1] = True
    basis[keep] = vectors[:, informative]
    return basis, float(np.maximum(values[~informative], 0.0).sum())
