"""Seeds that are narrow along one column.

Design note
-----------
(a) Many rows may have the same value in a column, or nearly the same, and be as wide as the others in all
    other columns: zeros of columns of amounts, values cut off at a limit, codes for missing entries. Seeds of
    k-means are about round, and each of them has some of these rows and some of the others.
(b) So rows are sorted along each column. For windows of several sizes, the gain of a split into the rows
    inside and those outside is estimated as if the column were two Gaussians. The best windows of the best
    columns are then compared by the evidence of their family.
"""

from __future__ import annotations

import numpy as np

from ..likelihood.seeding import summaries

# Sizes of windows, as shares of the rows, and the fewest rows of one.
_SHARES, _LEAST_ROWS = (0.03, 0.06, 0.12, 0.25, 0.5), 5
# Rows inside vary by this share of the column's variance at least; equal rows would be worth any number.
_LEAST_VARIANCE = 1e-6
# Columns whose best windows are compared, and part of its width by which a window is wider on each side.
_N_COLUMNS, _WIDER = 4, 0.1
# Steps by which the prior adapts to them: it may have to become narrow along a column.
NARROW_ADAPT = 10
# Least estimated gain of a window, in nats: the best of many windows gains something by chance.
_LEAST_GAIN = 10.0
# Rows and columns that are looked at, at the most.
_SEED_ROWS, _MOST_COLUMNS = 2000, 200
# Columns that are looked at together: a block of them takes some twenty tables of its size.
_COLUMNS_A_BLOCK = 16
# Sums over windows are differences of sums over all rows, of which they are known up to such a share.
_ROUNDING = 1e-12


def narrow_seeds(small, sample, target, rng):
    """Statistics (2, P) of rows that are narrow along a column, and of the others; none if no rows are.

    Arguments are those of `narrow_rows`.
    """
    n = sample.z.shape[0]
    if n > _SEED_ROWS:
        sample = sample.rows(np.sort(rng.choice(n, _SEED_ROWS, replace=False)))
    inside = narrow_rows(small, sample, target, rng, least=0.0)
    return target[np.newaxis][:0] if inside is None else statistics_apart(small, sample, inside)


def narrow_rows(small, sample, target, rng, least=None):
    """The rows, as truth values (n,), that are narrow along a column; None if there are none.

    Parameters
    ----------
    small : RestrictedMixture
        Its likelihood and its prior decide.
    sample : Sample
        Rows of a component.
    target : ndarray, shape (P,)
        Statistics of the component.
    rng : numpy.random.RandomState
        It draws columns, if there are very many.
    least : float or None
        Least gain of evidence, in nats, of these rows and the others apart. If None, the estimated gain
        alone decides: the prior may be one that narrow components do not suit.
    """
    if sample.z.shape[0] < 2 * _LEAST_ROWS:
        return None
    model = small.model
    points = model.likelihood.seeding_points(model.prior, target, sample.z, whiten=False)
    if points.shape[1] > _MOST_COLUMNS:
        points = points[:, np.sort(rng.choice(points.shape[1], _MOST_COLUMNS, replace=False))]
    rows = windows(points, sample.row_mass)
    if least is None:
        return next(rows, None)
    best, found = least, None
    for inside in rows:
        s = statistics_apart(small, sample, inside)
        gain = small.evidence(s).sum() - small.evidence(s.sum(axis=0, keepdims=True))[0]
        if gain > best:
            best, found = gain, inside
    return found


def statistics_apart(small, sample, inside):
    """Statistics (2, P) of the rows where ``inside`` (n,) is true, and of the others."""
    shares = np.column_stack([inside, ~inside]) * sample.row_mass[:, np.newaxis]
    return summaries(small.model.likelihood, sample.z, shares)


def windows(points, mass):
    """Yield the rows, as truth values (n,), of the best window of each of the most promising columns."""
    n, n_columns = points.shape
    blocks = range(0, n_columns, _COLUMNS_A_BLOCK)
    found = [_best_windows(points[:, i : i + _COLUMNS_A_BLOCK], mass) for i in blocks]
    best, first, size = (np.concatenate(of_blocks) for of_blocks in zip(*found, strict=True))
    for d in np.argsort(-best, kind="stable")[:_N_COLUMNS]:
        if not best[d] > _LEAST_GAIN:
            break
        x, order = (of_column[:, 0] for of_column in _in_order(points[:, d : d + 1]))
        low, high = x[first[d]], x[first[d] + size[d] - 1]
        room = _WIDER * (high - low)
        own = np.empty(n, dtype=bool)
        own[order] = (x >= low - room) & (x <= high + room)
        if _LEAST_ROWS <= np.count_nonzero(own) <= n - _LEAST_ROWS:
            yield own


def _in_order(points):
    """Columns (n, m) about their means, each in its order, and the places of the rows in that order."""
    x = points.astype(np.float64) - points.mean(axis=0)
    order = np.argsort(x, axis=0, kind="stable")
    return np.take_along_axis(x, order, axis=0), order


def _best_windows(points, mass):
    """Gain of the best window of each column (m,), in nats, its first row in order, and its rows."""
    n, n_columns = points.shape
    x, order = _in_order(points)
    w = mass[order]
    sums = [np.vstack([np.zeros(n_columns), np.cumsum(w * x**i, axis=0)]) for i in range(3)]
    variance = _variance(*(one[-1] for one in sums))
    usable = variance > 0
    best = np.full(n_columns, -np.inf)
    first, size = np.zeros((2, n_columns), int)
    floor = np.where(usable, _LEAST_VARIANCE * variance, 1.0)
    for m in sorted({max(_LEAST_ROWS, int(share * n)) for share in _SHARES}):
        if m > n - _LEAST_ROWS:
            break
        inside = [one[m:] - one[:-m] for one in sums]
        gain = _gain(inside, [one[-1] for one in sums], variance, floor)
        at = gain.argmax(axis=0)
        value = np.where(usable, gain[at, np.arange(n_columns)], -np.inf)
        better = value > best
        best, first = np.where(better, value, best), np.where(better, at, first)
        size = np.where(better, m, size)
    return best, first, size


def _variance(n, total, square, least=1e-300):
    """Variances of rows of mass ``n``, given the sums of their values and of the squares of these.

    Masses count as ``least`` if they are smaller. Where sums are differences of larger ones, such a mass may
    be nothing but a rounding error.
    """
    n = np.maximum(n, least)
    return np.maximum(square / n - (total / n) ** 2, 0.0)


def _gain(inside, whole, variance, floor):
    """Gain (n', m), in nats, of two Gaussians in place of one for each window of each column."""
    outside = [all_ - own for all_, own in zip(whole, inside, strict=True)]
    variance = np.maximum(variance, floor)
    gain, least = 0.0, np.maximum(_ROUNDING * whole[0], 1e-300)
    for n, total, square in (inside, outside):
        own = np.maximum(_variance(n, total, square, least), floor)
        narrower = np.log(variance) - np.log(own)
        gain = gain + n * (0.5 * narrower + np.log(np.maximum(n, 1e-300) / whole[0]))
    return gain
