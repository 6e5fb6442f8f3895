"""Moments of columns of which entries are missing: each from the rows that show it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from .moments import Moments


def has_missing(x):
    """Whether entries of rows are nan; sparse ones have none."""
    return not issparse(x) and x.dtype.kind == "f" and bool(np.isnan(x.min(initial=np.inf)))


def observed_moments(batches, *, covariance):
    """`Moments` of rows with nan; covariances are of the rows that show both columns.

    Parameters are as in `core.batches.column_moments`.
    """
    n_rows, largest, magnitude, precision = 0, 0.0, 0.0, np.finfo(np.float64).eps
    for x, w in _parts(batches):
        n_rows += len(x)
        largest = np.fmax(largest, np.fmax.reduce(np.abs(x), axis=0, initial=0.0))
        magnitude = np.fmax(magnitude, np.fmax.reduce(np.abs(x[w > 0]), axis=0, initial=0.0))
        if x.dtype in (np.float32, np.float16):
            precision = np.finfo(x.dtype).eps
    magnitude = np.where(magnitude > 0, magnitude, 1.0).astype(float)
    mass, first = 0.0, 0.0
    for x, w in _parts(batches):
        z, seen = _zeros_for_holes(x / magnitude)
        mass = mass + w @ seen
        first = first + w @ z
    _check_seen(mass)
    mean, total = first / mass, sum(w.sum() for _, w in _parts(batches))
    second, pairs = 0.0, 0.0
    for x, w in _parts(batches):
        z, seen = _zeros_for_holes(x / magnitude - mean)
        weighted = z * w[:, np.newaxis]
        if covariance:
            second = second + weighted.T @ z
            pairs = pairs + (seen * w[:, np.newaxis]).T @ seen
        else:
            second = second + np.einsum("nd,nd->d", weighted, z)
    second = second / np.maximum(pairs, np.finfo(float).tiny) if covariance else second / mass
    return Moments(
        n_rows, magnitude, mean, second, precision, largest=largest, observed=mass / total
    )


def _parts(batches):
    """Rows and their weights, block by block."""
    for batch in batches:
        for rows in batch.slices():
            x = np.asarray(batch.x[rows])
            yield x, np.ones(len(x)) if batch.weight is None else batch.weight[rows]


def _zeros_for_holes(z):
    """Rows with 0 for nan, and 1.0 for what is seen."""
    hole = np.isnan(z)
    z[hole] = 0.0
    return z, 1.0 - hole


def _check_seen(mass):
    unseen = np.flatnonzero(~(mass > 0))
    if len(unseen):
        raise ValueError(
            f"Column {unseen[0]} of X has no value: all its entries are NaN (in rows of positive "
            "weight). Leave the column out, or give rows that show it."
        )
