"""Checks of ``sample_weight``."""

from __future__ import annotations

from numbers import Real

import numpy as np

from ..likelihood.limits import LEAST, LEAST_MASS, MOST_MASS
from .validation import numbers


def check_weights(sample_weight, n, unit, *, of_chunk=False):
    """Weights (n,) in float64 of rows, or of another ``unit``; None if not given.

    Those of a chunk may sum to little: the sum of all chunks is checked later.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weight = numbers(sample_weight, "sample_weight")
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; it must be ({n},), one weight a "
            f"{unit}.{_remedy(weight, n)}"
        )
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight holds a negative value, {weight.min():g}; weights must be zero or more."
        )
    least = weight.min(initial=1.0, where=weight > 0)
    if least < LEAST:
        raise ValueError(
            f"sample_weight holds {least:g}; weights must be zero, or {LEAST:g} or more. Rescale them, or "
            f"leave the {unit} out."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not of_chunk or total >= MOST_MASS:
        check_total_weight(total, unit)
    return weight


def _remedy(weight, n):
    return " Give sample_weight.ravel()." if weight.shape in ((n, 1), (1, n)) else ""


def check_total_weight(total, unit):
    """Raise if the weights of all data vanish or overflow."""
    if not LEAST_MASS < total < MOST_MASS:
        raise ValueError(
            f"sample_weight sums to {total:g}. It must not be all zero, and its sum must be from "
            f"{LEAST_MASS:g} to {MOST_MASS:g}: rescale the weights. A {unit} of weight w counts as w equal "
            f"{unit}s."
        )


def weighted_sums(scores, weight, n=None):
    """Sum of scores (m,) times their weights, and the sum of the weights.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Those of weight 0 do not count, and may be infinite.
    weight : ndarray of shape (m,), or None
        None if all weights are 1.
    n : ndarray of shape (m,), default=None
        How many numbers each score is the sum of; 1 if None.
    """
    n = np.ones(len(scores)) if n is None else n
    if weight is None:
        return scores.sum(), n.sum()
    some = weight > 0
    return (weight[some] * scores[some]).sum(), (weight[some] * n[some]).sum()


def weight_of_each(weight, number, n, unit):
    """Weights (n,) of units from the weights of their rows; ``number`` (n_rows,) is the unit of each row."""
    out = np.empty(n)
    out[number] = weight
    other = np.flatnonzero(out[number] != weight)
    if len(other):
        row = int(other[0])
        raise ValueError(
            f"sample_weight holds {weight[row]:g} for row {row}, but {out[number[row]]:g} for another "
            f"row of its {unit}. A {unit} of weight w counts as w equal {unit}s: give all of its rows "
            "the same weight."
        )
    return out
