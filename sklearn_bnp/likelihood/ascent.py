"""Ascent of functions of few numbers, such as concentrations: L-BFGS that keeps the best of what it meets."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, minimize

# SciPy's own.
RELATIVE_GAIN = 1e7 * float(np.finfo(float).eps)


def ascended(evaluate, start, least, most, best, *, max_iter, slope, relative_gain=RELATIVE_GAIN):
    """The best of what L-BFGS meets on its way up a function within bounds.

    Parameters
    ----------
    evaluate : callable
        From a point (n,) to its value, the slopes (n,) there, and any object that belongs to the point.
    start, least, most : ndarray, shape (n,)
        Where to start, and the bounds.
    best : tuple
        A value and an object that are known already.
    max_iter : int
        Largest number of iterations.
    slope, relative_gain : float
        The search stops where all slopes, or gains, are smaller.

    Returns
    -------
    value : float
        Never lower than that of ``best``.
    there : object
    """
    last, descent = None, None

    def negated(point):
        nonlocal best, last, descent
        value, slopes, there = evaluate(point)
        if value > best[0]:
            best = value, there
        last, descent = point.copy(), -slopes
        return -value

    def slopes_of_negated(point):
        if not (point == last).all():  # SciPy asks for both at each point, the value first
            negated(point)
        return descent

    # two functions: SciPy's own memory of a function that returns both takes as long as these evaluations
    minimize(
        negated, start, method="L-BFGS-B", jac=slopes_of_negated, bounds=Bounds(least, most),
        options={"maxiter": max_iter, "ftol": relative_gain, "gtol": slope},
    )  # fmt: skip
    return best
