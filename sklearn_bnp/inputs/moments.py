"""Moments of the columns of data, from which likelihoods find their units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """First and second moments of the columns, as families need them to find their units.

    Attributes
    ----------
    n_rows : int
    magnitude : ndarray, shape (D,)
        Largest absolute value of each column in rows that count, 1 where that is 0; the other fields are
        of ``x / magnitude``, so that values up to 1e150 can be squared.
    mean : ndarray, shape (D,)
    covariance : ndarray, shape (D, D) or (D,)
        About the mean; its diagonal alone if the family asks for no more.
    precision : float
        Rounding unit of the data's type.
    step : ndarray, shape (D,), or 0.0
        Step to which each column was recorded; 0 where none can be told or the family does not ask.
    largest : ndarray, shape (D,), or None
        Largest absolute value of each column in any row, those of weight 0 too; None if nobody has looked.
    observed : ndarray, shape (D,), or None
        Share of the data's weight that shows each column; None if no entry is missing.
    """

    n_rows: int
    magnitude: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    precision: float
    step: np.ndarray | float = 0.0
    largest: np.ndarray | None = None
    observed: np.ndarray | None = None

    @property
    def variance(self):
        return self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)
