"""Scaling of sequences: rows about their mean, in standard deviations of the step between rows.

Directions in which all steps are equal are left out of rows and steps, as `Scaling` leaves out those in
which all rows are equal. In these directions, the next row is this row plus the mean step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inputs.moments import Moments
from .limits import are_within
from .scaling import Scaling, find_scaling

# Steps of less than this share of a column's standard deviation are rounding errors, because they are found
# as differences of second moments.
_LEAST_STEP = 1e-6
# Largest coefficient in internal units: its square, times the scatter of rows, is finite.
_MOST_COEF = 1e7


class StepScaling(NamedTuple):
    """Scaling of lagged rows ``[y_t, y_{t-1}, ..., y_{t-p}]``.

    Attributes
    ----------
    lags : int
        The order p.
    levels, steps : Scaling
        Scaling of rows, and of the steps from each row to the next; only their shift differs.
    """

    lags: int
    levels: Scaling
    steps: Scaling

    @property
    def n_columns(self):
        """Columns D of a sequence."""
        return len(self.levels.shift)

    @property
    def n_features(self):
        """Number D' of directions in which steps differ."""
        return self.levels.n_features

    @property
    def from_lags(self):
        """Matrix (p D', p D') that maps the lags to the last row and the steps that led to it.

        Its inverse maps coefficients of the lags to coefficients of the columns that `apply` returns.
        """
        blocks = np.eye(self.lags, k=-1) - np.eye(self.lags)
        blocks[0, 0] = 1.0
        return np.kron(blocks, np.eye(self.n_features))

    def apply(self, x):
        """Rows (n, (p + 1) D'): the last row, the steps that led to it, and the step that follows."""
        D, n = self.n_columns, len(x)
        steps = self._steps(x)
        parts = [
            self.levels.apply(x[:, D : 2 * D]),
            self.steps.apply(steps[:, 1:]).reshape(n, (self.lags - 1) * self.n_features),
            self.steps.apply(steps[:, 0]),
        ]
        return np.concatenate(parts, axis=1)

    def log_null_density(self, x):
        """Exponent (n,) of the density of the directions left out; see `Scaling`."""
        return self.steps.log_null_density(self._steps(x)[:, 0])

    def _steps(self, x):
        """Steps (n, p, D) to all rows but the earliest, as exact as the rows are."""
        rows = x.reshape(len(x), self.lags + 1, self.n_columns)
        dtype = np.float32 if x.dtype in (np.float32, np.float16) else np.float64
        return np.subtract(rows[:, :-1], rows[:, 1:], dtype=dtype)

    def given_coefficients(self, value):
        """`coefficients_in` of ``coef_prior`` as a user gave it; ValueError if they are not valid."""
        value = np.asarray(value, dtype=float)
        shape = self.n_columns, self.lags * self.n_columns
        if value.shape != shape or not np.isfinite(value).all():
            raise ValueError(
                f"coef_prior must be finite numbers of shape {shape}: n_features rows, and order times as "
                f"many columns; got shape {value.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            coef = self.coefficients_in(value)
        if not are_within(np.abs(coef), 0.0, _MOST_COEF):
            raise ValueError(
                f"coef_prior holds coefficients of {np.abs(coef).max():.1g}, when columns are in units of "
                f"their steps; they may be no greater than {_MOST_COEF:g}. Give them in the units of X."
            )
        return coef

    def coefficients_in(self, coef):
        """Coefficients (D', p D') of the step in internal units, from those (D, p D) of y in the data's."""
        inner = self._rescaled(coef)
        inner[:, : self.n_features] -= np.eye(self.n_features)
        return inner @ np.linalg.inv(self.from_lags)

    def _rescaled(self, coef):
        """Coefficients (D, p D) in the data's units as (D', p D') in internal ones."""
        Q, D = self.levels.basis, self.n_columns
        coef = coef / self.levels.scale[:, np.newaxis] * np.tile(self.levels.scale, self.lags)
        if Q is None:
            return coef
        blocks = coef.reshape(D, self.lags, D)
        return np.einsum("di,dle,ej->ilj", Q, blocks, Q).reshape(Q.shape[1], -1)

    def regressions_back(self, coef, at_mean):
        """Coefficients (K, D, p D) and intercepts (K, D) of y in the data's units.

        They come from coefficients (K, D', p D') of the step, and from the steps (K, D') that are expected
        at the mean of the data after mean steps.
        """
        levels, D, lags = self.levels, self.n_columns, self.lags
        origin = np.concatenate([levels.shift, np.tile(self.steps.shift, lags - 1)])
        centers = self._widened(coef) @ origin
        coef = self._widened(coef @ self.from_lags)
        coef[:, :, :D] += np.eye(D)
        return coef, self.steps.points_back(at_mean) - centers

    def _widened(self, coef):
        """Coefficients (K, D', p D') in internal units as (K, D, p D) in the data's."""
        Q, D, lags = self.levels.basis, self.n_columns, self.lags
        if Q is not None:
            blocks = coef.reshape(len(coef), Q.shape[1], lags, Q.shape[1])
            coef = np.einsum("di,kilj,ej->kdle", Q, blocks, Q).reshape(len(coef), D, lags * D)
        return coef * self.levels.scale[:, np.newaxis] / np.tile(self.levels.scale, lags)

    def resting_point(self, coef, intercept):
        """Fixed point (D,) of a regression of y if sequences return to it, else the mean of the data."""
        levels, lags, D = self.levels, self.lags, self.n_features
        inner = self._rescaled(coef)
        companion = np.eye(lags * D, k=-D)
        companion[:D] = inner
        if np.abs(np.linalg.eigvals(companion)).max() >= 1.0:
            return levels.shift
        at_mean = levels.apply((coef @ np.tile(levels.shift, lags) + intercept)[np.newaxis])[0]
        total = inner.reshape(D, lags, D).sum(axis=1)
        return levels.points_back(np.linalg.solve(np.eye(D) - total, at_mean))


def find_step_scaling(moments, lags, floor, streaming):
    """`StepScaling` of lagged rows with these `Moments`; ``floor`` and ``streaming`` as in `find_scaling`."""
    of_steps, mean = _moments_of_steps(moments, lags)
    steps = find_scaling(of_steps, step=0.0, floor=floor, streaming=streaming, rotate=True)
    return StepScaling(lags, steps._replace(shift=mean), steps)


def _moments_of_steps(moments, lags):
    """`Moments` of steps from those of lagged rows, and the mean (D,) of y in the data's units.

    Columns whose steps are only rounding errors get the variance 0.
    """
    D = len(moments.mean) // (lags + 1)
    now, before = slice(0, D), slice(D, 2 * D)
    magnitude = np.maximum(moments.magnitude[now], moments.magnitude[before])
    ratio = moments.magnitude[: 2 * D] / np.tile(magnitude, 2)
    mean = moments.mean[: 2 * D] * ratio
    c = moments.covariance[: 2 * D, : 2 * D] * np.multiply.outer(ratio, ratio)
    covariance = c[now, now] + c[before, before] - c[now, before] - c[before, now]
    spread = np.diagonal(c)[now]
    rounding = (8 * moments.precision) ** 2 * (spread + mean[now] ** 2)
    still = np.diagonal(covariance) <= rounding + _LEAST_STEP**2 * spread
    covariance[still], covariance[:, still] = 0.0, 0.0
    steps = Moments(
        moments.n_rows, magnitude, mean[now] - mean[before], covariance, moments.precision
    )
    return steps, mean[now] * magnitude
