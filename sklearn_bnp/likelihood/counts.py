"""Parts that families of counts share: checks of rows, sums over counts, and points for seeding.

Design note
-----------
(a) ``s(x) = [x, 1]``, in the layout `SparseRows`: zeros are skipped everywhere.
(b) Seeds are chosen among dense points. A point of a row of counts is ``scale (g(x) + u v)``, where g is
    zero where x is, and ``u v`` is an outer product. Where a table of all columns would be too large, both
    parts are projected to fewer columns, which changes distances by some per cent.
(c) Columns that are independent given the component may have missing entries. `ColumnsOfCounts` handles these
    with `missing.py`, and Bernoulli and Poisson families only add their densities.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import NamedTuple
from weakref import ref

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import digamma, gammaln

from .._kernels._counts import digamma_rows, log_gamma_sums, log_rises, pair_log_gamma_sums
from .._kernels._sparse_rows import are_counts
from ..inputs.batches import even_slices
from ..inputs.rows import part
from .base import Likelihood
from .limits import LEAST, MOST, MOST_MASS, are_within, as_numbers
from .missing import CompleteColumns, IncompleteColumns, with_counts
from .row_kernels import SparseRows

# A table of points with all columns may have so many numbers. For more, there are so many columns instead,
# in which squared distances have a relative error of sqrt(2 / 512) = 6 %.
_DENSE_NUMBERS, _PROJECTED = 2**22, 512
# Pairs of a column and a count, in a table of what each gains the components.
_MOST_PAIRS = 20_000
# Of so many types or more, those that occur are taken alone if they are less than this share of all.
_MANY_TYPES, _FEW_OF_THEM = 4096, 0.25
# From such pseudo-counts on, differences of lnGamma lose more than 1e-8 nats, and rises are taken as such.
_LARGE = 1e6
# Pairs of a column and a count are told apart without sorting if there could be no more of them than so
# many for each entry.
_CODES_PER_ENTRY = 4
# Columns of the projection that each column of the data goes to: a single one may be shared with another.
_PLACES = 4


class ColumnsOfCounts(SparseRows, Likelihood):
    """Columns of counts that are independent given the component; entries may be missing.

    Parameters
    ----------
    prior : tuple
        A prior with two numbers for each column, ``a`` and ``b``.
    columns : CompleteColumns or IncompleteColumns, default=None
        Where statistics have the counts of columns; `CompleteColumns` if None.
    """

    allows_missing = True
    standardised = False

    def __init__(self, prior, columns=None):
        self.prior = prior
        self.columns = CompleteColumns() if columns is None else columns
        self.n_features = len(prior.a)

    @property
    def has_missing(self):
        return self.columns.has_missing

    @property
    def n_kernel_columns(self):
        return self.columns.n_kernel_columns(self.n_features)

    def kernel_rows(self, z):
        return self.columns.kernel_rows(z)

    def with_missing(self):
        """The family for rows with missing entries; see `Likelihood`."""
        incomplete = copy(self)
        incomplete.columns = IncompleteColumns(self.n_features)
        return incomplete

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with missing entries."""
        return with_counts(s, self.n_features)

    @abstractmethod
    def means(self, prior, s):
        """Expected means (..., D) of components with statistics (..., P)."""

    def imputed(self, prior, s, z):
        """Rows with means for missing entries; see `Likelihood`."""
        return self.columns.imputed(z, self.means(prior, s[np.newaxis]))

    def attributes(self, prior, s):
        return {"means_": self.means(prior, s)}


def pair_of_priors(pair, n_features):
    """Two positive numbers for each column, (D,) each, from ``prior`` as the user gave it."""
    try:
        a, b = (as_numbers(v, n_features) for v in pair)
    except (TypeError, ValueError):  # no pair
        a = b = np.array([np.nan])
    if not (are_within(a) and are_within(b)):
        raise ValueError(
            f"prior={pair!r} must be two numbers (a, b) from {LEAST:g} to {MOST:g}, such as (1.0, 1.0), "
            f"or two arrays of {n_features} of them."
        )
    return a, b


# ---------------------------------------------------------------------- checks


def checked_means(means, what):
    """Means of the first components, in C order; ValueError unless they may be means of counts."""
    if np.any(means < 0):
        raise ValueError(
            f"means_init holds {means.min():g}, but must hold {what}, which are zero or more."
        )
    return np.ascontiguousarray(means, dtype=np.float64)


def checked_counts(x, name, instead):
    """Rows of counts in float64; ``instead`` is the advice of the error for other numbers.

    They are never in float32: log weights of rows of many events are large numbers, whose differences count.
    Missing entries are NaN, if X was let through with them.
    """
    rows = _converted(x, np.float64)
    values = _values(rows)
    largest = np.fmax.reduce(values, initial=0)
    if largest > MOST_MASS:
        raise ValueError(
            f"X holds {largest:g}, but observation={name!r} takes counts up to {MOST_MASS:g}: larger ones "
            "cannot be told from the next count in double precision. Look for errors in X, or rescale it."
        )
    if are_counts(values, False):
        return rows
    values = values[~np.isnan(values)]
    least = values.min(initial=0)
    if least < 0:
        raise ValueError(
            f"X holds {least:g}, but observation={name!r} takes counts, which are never negative; "
            "look for errors in X."
        )
    fractions = values[values != np.rint(values)]
    if len(fractions):
        raise ValueError(
            f"X holds {fractions[0]:g}, but observation={name!r} takes whole numbers: {instead}, "
            "or np.rint(X). For rows that count less than once, use sample_weight."
        )
    return rows


def checked_bits(x):
    """Rows of 0 and 1 in float32 or float64; missing entries are NaN, as in `checked_counts`."""
    rows = _converted(x, np.float32 if x.dtype == np.float32 else np.float64)
    values = _values(rows)
    if are_counts(values, True):
        return rows
    wrong = values[(values != 0) & (values != 1) & ~np.isnan(values)]
    if len(wrong):
        raise ValueError(
            f"X holds {wrong[0]:g}, but observation='bernoulli' needs columns of 0 and 1; binarise X first, "
            "for instance with sklearn.preprocessing.Binarizer."
        )
    return rows


def _converted(x, dtype):
    """Rows as an array of a floating type, or as they are stored if they are sparse."""
    return x.astype(dtype, copy=False) if issparse(x) else np.ascontiguousarray(x, dtype=dtype)


def _values(rows):
    """The entries of rows; of sparse rows, those that are not zero."""
    return rows.data if issparse(rows) else rows.reshape(-1)


# ---------------------------------------------------------------------- sums


def log_rising_factorials(counts, pseudo):
    """``sum_v lnGamma(pseudo_v + counts_v) - lnGamma(pseudo_v)`` of rows of counts (n, >= V); (n,).

    Counts of zero add nothing. If most counts of a row are zero, as with hashed words, they are passed over.
    """
    out, V = np.empty(len(counts)), len(pseudo)
    if V and pseudo.max() >= _LARGE:
        for i, row in enumerate(counts):
            out[i] = log_rise(pseudo, row[:V]).sum()
        return out
    if V < _MANY_TYPES:
        log_gamma_sums(counts, pseudo, out, 1)
        return out
    for i, row in enumerate(counts):  # each by itself: its sum must not depend on others
        some = np.flatnonzero(row[:V])
        few = len(some) < _FEW_OF_THEM * V
        own, lam = (row[some], pseudo[some]) if few else (row, pseudo)
        log_gamma_sums(own[np.newaxis], lam, out[i : i + 1], 1)
    return out


def log_rising_factorials_of_pairs(counts, pseudo, first, second):
    """`log_rising_factorials` of sums of two rows of counts, by their numbers (M,) of intp; (M,)."""
    out = np.empty(len(first))
    if pseudo.max() >= _LARGE:
        for m in range(len(first)):
            both = counts[first[m], : len(pseudo)] + counts[second[m], : len(pseudo)]
            out[m] = log_rise(pseudo, both).sum()
    else:
        pair_log_gamma_sums(counts, pseudo, first, second, out, 1)
    return out


def log_rise_of_totals(pseudo, counts):
    """``lnGamma(pseudo + counts) - lnGamma(pseudo)`` of sums of pseudo-counts and counts."""
    if np.max(pseudo) >= _LARGE:
        shape = np.broadcast_shapes(np.shape(pseudo), np.shape(counts))
        return log_rise(np.broadcast_to(np.asarray(pseudo, dtype=float), shape), counts)
    return gammaln(pseudo + counts) - gammaln(pseudo)


def types_that_occur(counts, n_types):
    """Numbers of the types that occur in rows of counts (n, >= V); None unless they are few out of many."""
    if n_types < _MANY_TYPES:
        return None
    some = np.flatnonzero(counts[:, :n_types].any(axis=0))
    return some if len(some) < _FEW_OF_THEM * n_types else None


def digammas(counts, pseudo):
    """``psi(pseudo + counts)`` of counts (K, D), C-contiguous."""
    out = np.empty_like(counts)
    digamma_rows(counts, pseudo, out, 1)  # minus digamma of each row's sum, which is added again
    return out + digamma(pseudo.sum() + counts.sum(axis=1, keepdims=True))


def log_ratio(counts, pseudo, less):
    """``log((pseudo + counts - less) / (pseudo + counts))``, where ``less`` is a part of the counts."""
    return np.log1p(np.maximum(counts - less, 0.0) / pseudo) - np.log1p(counts / pseudo)


def statistics_as_rows(s):
    """Statistics (..., P) as C-contiguous rows (n, P) for the kernels, copied only where necessary."""
    return np.ascontiguousarray(s, dtype=np.float64).reshape(-1, s.shape[-1])


class DistinctEntries(NamedTuple):
    """Entries of rows of counts that are not zero, as occurrences of distinct pairs of a column and a count.

    Attributes
    ----------
    column, values : ndarray, shape (m,)
        The column and the count of each distinct pair.
    occurrences : csr_array, shape (n, m)
        How often each row has each pair: once or never.
    """

    column: np.ndarray
    values: np.ndarray
    occurrences: csr_array

    @classmethod
    def of(cls, counts):
        """The `DistinctEntries` of rows (n, V)."""
        row, column, values = nonzeros(counts)
        most = values.max(initial=0.0) + 1.0
        if most * counts.shape[1] <= _CODES_PER_ENTRY * len(values):
            first, number = _firsts(column.astype(np.intp) * int(most) + values.astype(np.intp))
        else:
            levels, level = np.unique(values, return_inverse=True)
            code = column.astype(np.intp) * len(levels) + level
            _, first, number = np.unique(code, return_index=True, return_inverse=True)
        ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=counts.shape[0]))])
        shape = (counts.shape[0], len(first))
        occurrences = csr_array((np.ones(len(row)), number, ends), shape=shape)
        return cls(column[first], values[first], occurrences)


def _firsts(code):
    """Equivalent to ``np.unique(code, True, True)[1:]``, but without sorting: codes are small."""
    first = np.full(code.max(initial=-1) + 1, -1)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # the last assignment stays
    occurs = first >= 0
    return first[occurs], (np.cumsum(occurs) - 1)[code]


class _LastRows:
    """`DistinctEntries` of the rows that were asked for last, which steps ask for over and over.

    They are forgotten together with the rows, which nothing changes.
    """

    def __init__(self):
        self._last = None, None

    def __call__(self, counts):
        rows, entries = self._last
        if rows is None or rows() is not counts:
            entries = DistinctEntries.of(counts)
            self._last = ref(counts, self._forget), entries
        return entries

    def _forget(self, rows):
        if self._last[0] is rows:
            self._last = None, None


distinct_entries = _LastRows()


def sums_over_entries(counts, gains):
    """Sums (n, K) over the entries of rows (n, V) that are not zero, of what each gains a component.

    ``gains(column, values)`` returns a table (m, K) for m pairs of a column and a count. Each pair is asked
    for once: where there are many entries, most pairs occur repeatedly. Where they do not, rows are gone
    through in blocks, so that no table is large.
    """
    entries, n = distinct_entries(counts), counts.shape[0]
    if len(entries.values) <= _MOST_PAIRS or n == 1:
        return entries.occurrences @ gains(entries.column, entries.values)
    blocks = even_slices(n, max(1, _MOST_PAIRS * n // entries.occurrences.nnz))
    parts = (DistinctEntries.of(counts[rows]) for rows in blocks)
    return np.concatenate([part.occurrences @ gains(part.column, part.values) for part in parts])


def log_rise(pseudo, x):
    """Log rising factorials ``lnGamma(pseudo + x) - lnGamma(pseudo)`` of counts x."""
    pseudo = np.ascontiguousarray(pseudo)
    out = np.empty(pseudo.shape)
    if np.shape(x) != pseudo.shape:
        x = np.broadcast_to(x, pseudo.shape)
    log_rises(pseudo.reshape(-1), np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
    return out


def alike_columns(*numbers):
    """First of the columns that agree in all numbers, each (D,), and for each column which group it is in."""
    code = np.zeros(len(numbers[0]), dtype=np.intp)
    for v in numbers:
        levels, level = np.unique(v, return_inverse=True)
        code = np.unique(code * len(levels) + level, return_inverse=True)[1]
    return np.unique(code, return_index=True)[1], code


def nonzeros(counts):
    """Row, column and value of each entry of counts (n, V) that is not zero."""
    if issparse(counts):
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        return row, counts.indices, counts.data.astype(np.float64, copy=False)
    flat = counts.reshape(-1)
    at = np.flatnonzero(flat != 0)  # faster than np.nonzero in two dimensions
    row, column = np.divmod(at, counts.shape[-1])
    return row, column, flat[at].astype(np.float64, copy=False)


def nonzeros_of_rows(counts, rows):
    """`nonzeros` of ``counts[rows]``, whose rows (m,) may occur repeatedly."""
    if len(rows):  # those between the first and the last
        first = rows.min()
        counts, rows = part(counts, slice(first, rows.max() + 1)), rows - first
    row, column, values = nonzeros(counts)
    n = np.bincount(row, minlength=counts.shape[0])
    length, start = n[rows], (np.cumsum(n) - n)[rows]
    number = np.repeat(np.arange(len(rows)), length)
    at = np.arange(len(number)) + np.repeat(start - (np.cumsum(length) - length), length)
    return number, column[at], values[at]


def sum_log_factorials(counts):
    """``sum_v log x_v!`` of each row of counts (n, V)."""
    row, _, values = nonzeros(counts)
    return np.bincount(row, gammaln(values + 1.0), minlength=counts.shape[0])


# ---------------------------------------------------------------------- points


def points_of_counts(z, change, base, *, row_scale=None, row_base=None):
    """Points (n, m) for `Likelihood.seeding_points` of rows of counts.

    They are ``row_scale * (g + row_base * base)``. Of many long sparse rows, they are projections of these,
    whose distances are nearly the same.

    Parameters
    ----------
    z : ndarray or csr_array, shape (n, V)
        Prepared rows.
    change : callable
        ``change(values, column)`` returns g of counts that are not zero; g is zero where they are.
    base : ndarray, shape (V,), or csr_array, shape (B, V)
        The part of points that all rows have, or B such parts.
    row_scale, row_base : ndarray, shape (n, 1), or None
        Factors of each row; 1 if None. Those of B parts are ``row_base`` (n, B).
    """
    n, V = z.shape
    row, column, values = nonzeros(z)
    changed = change(values, column)
    if not issparse(z) or n * V <= _DENSE_NUMBERS:
        points = _of_base(base, row_base, n)
        points[row, column] += changed
    else:
        project = _projection(V)
        rows = csr_array((changed, (row, column)), shape=(n, V)) @ project
        points = rows.toarray() + _of_base(base @ project, row_base, n)
    if row_scale is not None:
        points *= row_scale
    return np.ascontiguousarray(points, dtype=z.dtype)


def _of_base(base, row_base, n):
    """The parts (n, m) of points that are the same for all rows, times the rows' factors."""
    if row_base is None:
        return np.tile(base, (n, 1))
    return np.ascontiguousarray(row_base @ base) if issparse(base) else row_base * base


def _projection(n_columns):
    """Sparse random projection (V, m), always the same, so that seeds depend on the rows alone.

    Each column goes to a few places with random signs (Kane and Nelson 2014).
    """
    rng = np.random.RandomState(0)
    width = _PROJECTED // _PLACES  # each of the places is in a block of its own
    places = rng.randint(width, size=(n_columns, _PLACES)) + width * np.arange(_PLACES)
    signs = (2.0 * rng.randint(2, size=places.size) - 1.0) / np.sqrt(_PLACES)
    indptr = np.arange(0, places.size + 1, _PLACES)
    return csr_array((signs, places.ravel(), indptr), shape=(n_columns, _PROJECTED))
