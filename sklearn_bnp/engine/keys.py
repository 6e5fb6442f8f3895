"""Which rows, runs or documents a sample keeps: those with the smallest keys. A leaf module.

Design note
-----------
(a) A budget is room and time: it is counted in rows. The mass of a component, its sum of responsibilities
    times weights, tells how many rows it has only if there are no weights. With weights nobody
    knows before the lap.
(b) So each row draws a key, uniform on (0, 1), and is kept if that is below the threshold of its sample.
    Without weights the threshold is the budget divided by the mass. With weights all rows are kept at
    first. A sample that has outgrown twice its budget keeps those with the smallest keys, which are
    as likely to be any rows, and the threshold is lowered to the least key of those that went.
(c) Of rows that differ in weight, some may be many and others may matter. A key is therefore divided by
    odds: half of one and half of the row's weight over the mean weight. No row is drawn less than half
    as often as if only numbers, or only weights, counted. What is drawn more often than others counts
    for less.
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
