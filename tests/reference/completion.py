"""Missing values under full Gaussians: conditional moments, row by row and component by component."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad


class Conditional(NamedTuple):
    """What is missing of a row given what is seen: indices, mean and covariance; and log weight."""

    missing: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    log_weight: float


def conditional(a, b, c, row):
    """Of ``exp(c + b . x - x' a x / 2)`` in the missing entries of a row, with its log integral."""
    mis, seen = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
    x = row[seen]
    log_weight = c + b[seen] @ x - 0.5 * x @ a[np.ix_(seen, seen)] @ x
    if len(mis) == 0:
        return Conditional(mis, np.empty(0), np.empty((0, 0)), log_weight)
    covariance = np.linalg.inv(a[np.ix_(mis, mis)])
    offset = b[mis] - a[np.ix_(mis, seen)] @ x
    mean = covariance @ offset
    log_weight += 0.5 * offset @ mean + 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    return Conditional(mis, mean, covariance, log_weight)


def moments(a, b, row):
    """``E[x]``, ``E[x x']`` and the entropy of what is missing of a row."""
    mis, mean, covariance, _ = conditional(a, b, 0.0, row)
    x = row.copy()
    x[mis] = mean
    square = np.outer(x, x)
    square[np.ix_(mis, mis)] += covariance
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1] if len(mis) else 0.0
    return x, square, entropy


def log_marginal_over_one(evidence, z, spread):
    """Log evidence of rows of which one entry at the most is missing, by quadrature over it.

    Parameters
    ----------
    evidence : callable
        Of complete rows (n, D).
    z : ndarray, shape (n, D)
    spread : float
        Scale of what is missing.
    """
    places = np.argwhere(np.isnan(z))
    if len(places) == 0:
        return evidence(z)
    [(n, d)] = places

    def log_density(value):
        x = z.copy()
        x[n, d] = value
        return evidence(x)

    center = max(np.linspace(-5, 5, 201) * spread, key=log_density)
    top = log_density(center)
    # Student tails: the whole line, in a variable of bounded range
    value, _ = quad(
        lambda t: np.exp(log_density(center + spread * np.tan(t)) - top) / np.cos(t) ** 2,
        -0.5 * np.pi, 0.5 * np.pi, epsabs=0.0, epsrel=1e-10, limit=400,
    )  # fmt: skip
    return top + np.log(spread * value)
