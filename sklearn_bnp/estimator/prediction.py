"""Rows to predict for, and the fitted likelihood in the form that suits them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..likelihood.limits import largest_of
from .base import likelihood_for

# Sums of squares of greater values come near the end of the range of single precision.
_LARGEST_SINGLE = 1e15


def in_range(prepare, x):
    """Prepared rows, in double precision if their squares would overflow in single precision."""
    with np.errstate(over="ignore"):
        z = prepare(x)
        if z.dtype == np.float32 and not largest_of(z) < _LARGEST_SINGLE:
            z = prepare(x.astype(np.float64))
    return z


class Fitted(NamedTuple):
    """A likelihood to predict with, and the statistics (K, P) and coefficients (K, P) of its components."""

    likelihood: object
    s: np.ndarray
    coef: np.ndarray


def suited_statistics(complete, s, x):
    """The likelihood for rows ``x``, its variant for missing entries if they have some, and statistics.

    Documents of words have no rows, and ``x`` is None.
    """
    likelihood = complete if x is None else likelihood_for(complete, x)
    return likelihood, s if likelihood is complete else likelihood.from_complete(s)


def suited(model, s, coef, x):
    """`Fitted` model for rows ``x``: its variant for missing entries if they have some."""
    complete, prior = model.likelihood, model.prior
    likelihood, suited_s = suited_statistics(complete, s, x)
    if likelihood is complete:
        return Fitted(complete, s, coef)
    log_weights = coef[:, -1] - complete.coefficients(prior, s)[:, -1]
    coef = likelihood.coefficients(prior, suited_s)
    coef[:, -1] += log_weights
    return Fitted(likelihood, suited_s, coef)
