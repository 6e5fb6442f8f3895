"""The steps to which the columns of data were recorded, found from values that occur repeatedly.

Design note
-----------
(a) A density may rise without limit at a value that many rows share. But a value that was recorded to a
    step h is only known to lie within h. A row that is blurred by the variance h^2 / 12 of a uniform cell
    (Sheppard's correction) gains nothing from a component narrower than that.
(b) Only values that occur repeatedly tell a step. In continuous data there are none, and the step is 0.
(c) First each column is looked at by itself. If whole rows occur repeatedly too, the grid of the columns may
    be too fine: 60 different rows in two columns fill 60 of 3600 cells. The cell of a row is then found from
    its nearest neighbours among the different rows.
(d) Weights are repetitions, so only the total weight of each value counts.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln

# Largest number of rows in the sample, and of different rows whose neighbours are looked for.
SAMPLE_ROWS = 5000
_CENTRES = 200
# A column was recorded in steps if each value has at least this weight on average. Rows that are drawn with
# replacement from continuous ones have 1.6.
_RETURNS = 2.0
# A column whose range is less than so many times what rounding may change, as of float32 rows far from zero,
# was recorded in the steps of its numbers.
_FEW_DIGITS = 1000.0
_NEIGHBOURS = 4


def recording_steps(x, weight=None):
    """Step h to which each column was recorded, shape (D,); 0 if no step is found.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        A sample of rows, in which missing entries are NaN.
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
        ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN is sorted last
        if len(ordered) == 0:
            continue
        same = 8 * eps  # values that differ only by rounding are one value
        if ordered[-1] - ordered[0] < _FEW_DIGITS * same:
            same = 0.0  # unless there is hardly more than rounding: then each number counts
        new = np.diff(ordered) > same
        values = ordered[np.append(True, new)]
        if len(values) == 1 or _RETURNS * len(values) > total[d]:
            continue
        gap = np.diff(values)
        nearest = np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))
        # a small quantile, for scales with unequal steps: a step that is too small does no harm
        steps[d] = np.quantile(nearest, 0.25)
        coarse.append(d)
        cells = np.searchsorted(values[1:] - same / 2, x[whole, d], side="right")
        codes.append(cells.astype(np.int32))
    if coarse and len(x[whole]):
        codes = np.ascontiguousarray(np.transpose(codes))
        steps[coarse] = _with_cells(steps[coarse], x[whole][:, coarse], codes, weight[whole].sum())
    return steps * largest


def _with_cells(step, x, codes, total):
    """Steps (D,) of columns, made larger by the cells of whole rows.

    The part of a cell beyond the step is a distance between samples, so a row's variance is half its square
    plus step^2 / 12. The cells of a full lattice have to be found equal to its steps, within 20 %.
    """
    excess = np.maximum(_cells(x, codes, total) ** 2 - 1.5 * step**2, 0.0)
    return np.sqrt(step**2 + 3.0 * excess)


def _cells(x, codes, total):
    """Edges (D,) of the cell around a whole row; 0 if rows do not occur repeatedly.

    A ball that holds n points of a lattice of unit cells has a volume of about n, and the mean square of the
    points along each axis is r^2 / (D + 2).
    """
    D, k = x.shape[1], _NEIGHBOURS
    first = np.unique(codes.view(f"V{codes.itemsize * D}").ravel(), return_index=True)[1]
    if len(first) <= 2 * (k + 1) or _RETURNS * len(first) > total:
        return np.zeros(D)
    rows = x[first][np.lexsort(codes[first].T)]  # the result must not depend on their order
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / spread
    centres = rows[np.linspace(0, len(rows) - 1, min(len(rows), _CENTRES)).astype(int)]
    square = cdist(centres, rows, "sqeuclidean")
    radius = np.partition(square, k, axis=1)[:, k]
    # neighbours that are equally near are all inside
    inside = (square <= radius[:, np.newaxis] * (1.0 + 1e-9)).astype(float)
    n = inside.sum(axis=1)[:, np.newaxis]
    square = (inside @ rows**2 - 2.0 * centres * (inside @ rows) + n * centres**2) / (n - 1.0)
    log_ball = 0.5 * D * np.log(np.pi) - gammaln(0.5 * D + 1.0)
    area = (D + 2) * np.exp(2.0 / D * (log_ball - np.log(n))) * square
    return np.sqrt(np.maximum(np.median(area, axis=0), 0.0)) * spread
