"""How finely the columns of data were recorded, judged by the values that return.

Design note
-----------
(a) A density may rise without limit at a value that many rows share; what was *recorded* to a step h
    says no more than that a value lies within h. A row blurred by the variance h^2 / 12 of a
    uniform cell (Sheppard's correction) gains nothing from a component narrower than that.
(b) Only values that return say anything: in continuous data nothing does, and the step is 0.
(c) Columns come first. Where whole rows return as well, columns alone may be too fine a grid: 60
    different rows in two columns fill 60 of 3600 cells. The cell of a row is then found from its nearest
    neighbours among the different rows.
(d) Weights are repetitions, so only the weight of each value counts.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln

# Rows looked at, at the most, and different rows whose neighbours are.
SAMPLE_ROWS = 5000
_CENTRES = 200
# A column is recorded in steps if a value has at least this weight on average: rows drawn with
# replacement from continuous ones come to 1.6.
_RETURNS = 2.0
_NEIGHBOURS = 4


def recording_steps(x, weight=None):
    """Step h to which each column was recorded, shape (D,); 0 if no step can be told.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        A sample of rows; nan is nothing.
    weight : ndarray, shape (n,), or None
        Sample weights.
    """
    x = np.asarray(x)
    eps = np.finfo(x.dtype if x.dtype == np.float32 else np.float64).eps
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=float)
    x = x[weight > 0].astype(np.float64, copy=False)
    if len(x) == 0:
        return np.zeros(x.shape[1])
    largest = np.maximum(np.maximum(x.max(axis=0), -x.min(axis=0)), np.finfo(float).tiny)
    total, whole = np.full(x.shape[1], weight.sum()), slice(None)
    if np.isnan(largest).any():
        largest = np.fmax(np.fmax.reduce(np.abs(x), axis=0), np.finfo(float).tiny)
        seen, weight = ~np.isnan(x), weight[weight > 0]
        total, whole = weight @ seen, seen.all(axis=1)
    x /= largest
    steps, coarse, codes = np.zeros(x.shape[1]), [], []
    for d in range(x.shape[1]):
        ordered = np.sort(x[:, d])
        ordered = ordered[: np.searchsorted(ordered, np.nan)]  # nan is sorted last
        if len(ordered) == 0:
            continue
        new = np.diff(ordered) > 8 * eps  # rounding makes no other value
        values = ordered[np.append(True, new)]
        if len(values) == 1 or _RETURNS * len(values) > total[d]:
            continue
        gap = np.diff(values)
        nearest = np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))
        # the finer part of a scale that is not even: a step too small does no harm
        steps[d] = np.quantile(nearest, 0.25)
        coarse.append(d)
        cells = np.searchsorted(values[1:] - 4 * eps, x[whole, d], side="right")
        codes.append(cells.astype(np.int32))
    if coarse and len(x[whole]):
        codes = np.ascontiguousarray(np.transpose(codes))
        steps[coarse] = _with_cells(steps[coarse], x[whole][:, coarse], codes, weight[whole].sum())
    return steps * largest


def _with_cells(step, x, codes, total):
    """Steps of the blur once the cells of whole rows count as well.

    What a cell has beyond the step is the distance between samples: a row's variance is half of that,
    squared, and step^2 / 12. A full lattice's cells must come out as its steps, within 20 %.
    """
    excess = np.maximum(_cells(x, codes, total) ** 2 - 1.5 * step**2, 0.0)
    return np.sqrt(step**2 + 3.0 * excess)


def _cells(x, codes, total):
    """Edges of the cell that a whole row has to itself, column by column; 0 if rows do not return.

    In a ball that holds n points of a lattice of unit cells, the volume is about n and the mean square
    along each axis r^2 / (D + 2).
    """
    D, k = x.shape[1], _NEIGHBOURS
    first = np.unique(codes.view(f"V{codes.itemsize * D}").ravel(), return_index=True)[1]
    if len(first) <= 2 * (k + 1) or _RETURNS * len(first) > total:
        return np.zeros(D)
    rows = x[first][np.lexsort(codes[first].T)]  # whatever the order in which they came
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / spread
    centres = rows[np.linspace(0, len(rows) - 1, min(len(rows), _CENTRES)).astype(int)]
    square = cdist(centres, rows, "sqeuclidean")
    radius = np.partition(square, k, axis=1)[:, k]
    inside = (square <= radius[:, np.newaxis] * (1.0 + 1e-9)).astype(
        float
    )  # with all that are as near
    n = inside.sum(axis=1)[:, np.newaxis]
    square = (inside @ rows**2 - 2.0 * centres * (inside @ rows) + n * centres**2) / (n - 1.0)
    log_ball = 0.5 * D * np.log(np.pi) - gammaln(0.5 * D + 1.0)
    area = (D + 2) * np.exp(2.0 / D * (log_ball - np.log(n))) * square
    return np.sqrt(np.maximum(np.median(area, axis=0), 0.0)) * spread
