"""Sampling by random keys: a sample keeps the rows, runs or documents with the smallest keys.

Design note
-----------
(a) The budget of a sample is a number of rows. The mass of a component is its sum of responsibilities times
    weights. Without weights the mass is about the number of its rows. With weights, this number is
    not known before the lap.
(b) Each row draws a key, uniform on (0, 1), and is kept if the key is below the threshold of its sample.
    Without weights the threshold is the budget divided by the mass. With weights all rows are kept at
    first. When a sample has outgrown twice its budget, the rows with the smallest keys stay, which is a
    random choice, and the threshold is lowered to the least key of the others.
(c) If rows differ in weight, light rows may be many, and heavy rows may matter more. A key is therefore
    divided by odds, which are half of 1 plus half of the row's weight over the mean weight. No row is drawn
    less than half as often as if only numbers, or only weights, counted. Rows that are drawn more often
    get less weight in the sample.
"""

from __future__ import annotations

import numpy as np

# A sample is cut to its budget when it holds so many times as much.
OUTGROWN = 2


def first_threshold(budget, n, mean_weight):
    """First threshold of the keys, of the shape of ``budget``, for rows of mass ``n``; inf keeps all."""
    if mean_weight is not None:
        return np.full(np.shape(budget), np.inf)[()]
    rate = budget / np.maximum(n, 1e-12)
    return np.where(rate < 1.0, rate, np.inf)[()]  # a number if ``budget`` is one


def weights(weight, n, mean_weight):
    """Weights (n,) of rows for a sample: ones if other rows have some, None if none was expected to.

    If weights come when a lap is under way, its samples go by numbers of rows.
    """
    if mean_weight is None:
        return None
    return np.ones(n) if weight is None else weight


def odds(weight, mean_weight):
    """Relative frequency with which rows of weights (n,) are drawn: 1 on average over the rows."""
    return 0.5 + 0.5 * weight / mean_weight


def keys(n, weight, mean_weight, rng):
    """Keys (n,) of rows of weights (n,), if they have any; those of weight 0 are never kept."""
    key = rng.random_sample(n)
    if weight is not None:
        key /= odds(weight, mean_weight)
        key[weight == 0] = np.inf
    return key


def lowered(threshold, key, size, budget):
    """The threshold that keeps the smallest keys: as many as sizes (n,) in the budget allow, one at least."""
    order = np.argsort(key, kind="stable")
    n_kept = max(1, np.searchsorted(np.cumsum(size[order]), budget, side="right"))
    return key[order[n_kept]] if n_kept < len(key) else threshold


def evened(weight, mean_weight, threshold):
    """Weights (n,) of rows as if all had been drawn as often as the one that was drawn most seldom."""
    if weight is None or len(weight) == 0:
        return weight
    rate = np.minimum(1.0, threshold * odds(weight, mean_weight))
    return weight * (rate.min() / rate)
