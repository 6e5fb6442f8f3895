"""Seeds that are narrow along one column.

Design note
-----------
(a) Many rows may have the same value in a column, or nearly the same, and be as wide as the others in all
    other columns: zeros of columns of amounts, values cut off at a limit, codes for missing entries. Seeds of
    k-means are about round, and each of them has some of these rows and some of the others.
(b) So rows are sorted along each column. For windows of several sizes, the gain of a split into the rows
    inside and those outside is estimated as if the column were two Gaussians. The best windows of the best
    columns are then compared by the evidence of their family.
(c) Missing entries are no values. If they were imputed, they would all be about the mean of their column,
    and would look like one more value that many rows have.
(d) If several columns have such values, clusters are the combinations of them. Taken one column at a time,
    the rows of a rare combination are spread over those that share most of its columns. So rows are also
    grouped by all of the windows that they are in.
"""

from __future__ import annotations

import numpy as np

from ..likelihood.seeding import completed, completed_as_one

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
# Columns whose best windows groups of rows are made of.
_COLUMNS_OF_GROUPS = 8
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
    model, points = small.model, _points(small.model, sample, target)
    if points.shape[1] > _MOST_COLUMNS:
        points = points[:, np.sort(rng.choice(points.shape[1], _MOST_COLUMNS, replace=False))]
    rows = list(windows(points, sample.row_mass))
    if least is None or not rows:
        return rows[0] if rows else None
    best, found = least, None
    together = completed_as_one(model.likelihood, small.prior, sample.z, sample.row_mass)
    whole = small.evidence(together)[0]
    for inside in rows:
        gain = small.evidence(statistics_apart(small, sample, inside)).sum() - whole
        if gain > best:
            best, found = gain, inside
    return found


def grouped_seeds(small, sample, target, n_most):
    """Statistics (J, P) of groups of rows that are narrow along the same columns; none if nothing is narrow.

    Rows that lack an entry of one of these columns are in no group.

    Parameters
    ----------
    small : RestrictedMixture
        Its likelihood and its prior decide.
    sample : Sample
        Rows of a component.
    target : ndarray, shape (P,)
        Statistics of the component.
    n_most : int
        Most groups; those of most rows are kept.
    """
    n = sample.z.shape[0]
    if n > _SEED_ROWS:
        sample = sample.rows(np.linspace(0, n - 1, _SEED_ROWS).astype(int))
    points = _points(small.model, sample, target)[:, :_MOST_COLUMNS]
    found = list(_best_of_columns(points, sample.row_mass, _COLUMNS_OF_GROUPS))
    if len(found) < 2:
        return target[np.newaxis][:0]
    columns, inside = zip(*found, strict=True)
    known = np.flatnonzero(~np.isnan(points[:, columns]).any(axis=1))
    _, group, size = np.unique(
        np.array(inside)[:, known], axis=1, return_inverse=True, return_counts=True
    )
    large = np.argsort(-size, kind="stable")[:n_most]
    large = large[size[large] >= _LEAST_ROWS]
    shares = (group.reshape(-1, 1) == large) * sample.row_mass[known, np.newaxis]
    return completed(small.model.likelihood, small.prior, sample.z[known], shares)


def _points(model, sample, target):
    """Points (n, m) of rows of a component, with NaN for missing entries if points have the rows' columns."""
    points = model.likelihood.seeding_points(model.prior, target, sample.z, whiten=False)
    if model.likelihood.has_missing and points.shape == sample.z.shape:
        points = np.where(np.isnan(sample.z), np.nan, points)
    return points


def statistics_apart(small, sample, inside):
    """Statistics (2, P) of the rows where ``inside`` (n,) is true, and of the others.

    Each part completes the missing entries of its own rows, so that a narrow one stays narrow.
    """
    shares = np.column_stack([inside, ~inside]) * sample.row_mass[:, np.newaxis]
    return completed(small.model.likelihood, small.prior, sample.z, shares)


def windows(points, mass):
    """The rows, as truth values (n,), of the best window of each of the most promising columns, an iterator.

    Missing entries of ``points`` are NaN, and in no window.
    """
    return (own for _, own in _best_of_columns(points, mass, _N_COLUMNS))


def _best_of_columns(points, mass, n_best):
    """Yield the ``n_best`` most promising columns, each with the rows (n,) of its best window."""
    n, n_columns = points.shape
    blocks = range(0, n_columns, _COLUMNS_A_BLOCK)
    found = [_best_windows(points[:, i : i + _COLUMNS_A_BLOCK], mass) for i in blocks]
    best, first, size = (np.concatenate(of_blocks) for of_blocks in zip(*found, strict=True))
    for d in np.argsort(-best, kind="stable")[:n_best]:
        if not best[d] > _LEAST_GAIN:
            break
        x, order, _ = (of_columns[..., 0] for of_columns in _in_order(points[:, d : d + 1]))
        low, high = x[first[d]], x[first[d] + size[d] - 1]
        room = _WIDER * (high - low)
        own = np.empty(n, dtype=bool)
        own[order] = (x >= low - room) & (x <= high + room)
        if _LEAST_ROWS <= np.count_nonzero(own) <= n - _LEAST_ROWS:
            yield d, own


def _in_order(points):
    """Columns (n, m) about their means, each in its order, the places of the rows, and how many are seen.

    Missing entries, which are NaN, come last.
    """
    missing = np.isnan(points)
    x, n = points.astype(np.float64), len(points) - missing.sum(axis=0)
    x -= x.sum(axis=0, where=~missing) / np.maximum(n, 1)
    order = np.argsort(x, axis=0, kind="stable")
    return np.take_along_axis(x, order, axis=0), order, n


def _best_windows(points, mass):
    """Gain of the best window of each column (m,), in nats, its first row in order, and its rows."""
    n, n_columns = points.shape
    x, order, n_seen = _in_order(points)
    w, missing = mass[order], np.isnan(x)
    x[missing] = w[missing] = 0.0
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
        gain[np.arange(len(gain))[:, np.newaxis] + m > n_seen] = -np.inf
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
    """Gain (n', m), in nats, of two Gaussians in place of one for each window of each column.

    It is -inf if the rows outside are narrower than those inside. Such a window is made of all others than
    the narrow rows, and of some of these, if its size does not fit.
    """
    outside = [all_ - own for all_, own in zip(whole, inside, strict=True)]
    variance = np.maximum(variance, floor)
    total_mass = np.maximum(whole[0], 1e-300)
    gain, least, widths = 0.0, np.maximum(_ROUNDING * total_mass, 1e-300), []
    for n, total, square in (inside, outside):
        own = np.maximum(_variance(n, total, square, least), floor)
        widths.append(own)
        narrower = np.log(variance) - np.log(own)
        gain = gain + n * (0.5 * narrower + np.log(np.maximum(n, 1e-300) / total_mass))
    return np.where(widths[0] <= widths[1], gain, -np.inf)
