"""What families of counts have in common: rows that may be sparse, how they are checked, zeros skipped.

Design note
-----------
(a) ``s(x) = [x, 1]``: zeros add nothing to the statistics, and nothing but a constant to the log weights.
    So rows stay sparse all the way, from the user's CSR to the sums. Here is the one place where
    the two kinds part: dense rows go through the kernel of all families, sparse ones through
    `_kernels._sparse_rows`.
(b) Seeds are chosen among dense points. A point of a count is ``scale (g(x) + u v)``, where g is zero where
    x is, and ``u v`` is an outer product: where a table of all columns would be large, both parts
    are projected, and distances stay what they are within some per cent.
(c) Columns that are independent given the component may have holes: `ColumnsOfCounts` has what follows
    of that, with `holes.py`. Of Bernoulli and Poisson families only the densities are left to say.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import digamma, gammaln

from .._kernels._counts import digamma_rows
from .._kernels._sparse_rows import are_counts, sparse_shares, sparse_summary
from .base import Likelihood
from .limits import LEAST, MOST, MOST_MASS, are_within
from .missing import CompleteColumns, IncompleteColumns

# Numbers of a table of points with all columns; beyond that there are so many columns instead, in which
# squared distances have a relative error of sqrt(2 / 512) = 6 %.
_DENSE_NUMBERS, _PROJECTED = 2**22, 512
# Columns of the projection that a column of the data goes to: one alone may be another's as well.
_PLACES = 4


class CountLikelihood(Likelihood):
    """A family with ``s(x) = [x, 1]``; prepared rows are an array or a `csr_array`."""

    def farthest(self, z):
        return 0.0  # counts are what they are

    def features(self, z):
        return super().features(z.toarray() if issparse(z) else z)

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        if not issparse(z):
            super().summarise(z, shares, s, coef=coef, sparse=sparse)
            return
        shares = np.ascontiguousarray(shares, dtype=z.dtype)
        sparse_summary(*_arrays(z), shares, None, s, 1)

    def local_step(
        self, coef, z, mass, weight, s, entropy, *, n_nonzero=None, n_threads=1, log_norm=None
    ):
        if not issparse(z):
            return super().local_step(
                coef, z, mass, weight, s, entropy,
                n_nonzero=n_nonzero, n_threads=n_threads, log_norm=log_norm,
            )  # fmt: skip
        resp = np.empty((z.shape[0], len(coef)), dtype=z.dtype)
        rows, coef = _arrays(z), np.ascontiguousarray(coef, dtype=z.dtype)
        n_nonzero = len(coef) if n_nonzero is None else n_nonzero
        sparse_shares(*rows, coef, mass, weight, resp, entropy, log_norm, n_nonzero, n_threads)
        if s is not None:
            given = [factor for factor in (mass, weight) if factor is not None]
            scale = np.prod(given, axis=0) if given else None
            sparse_summary(*rows, resp, scale, s, n_threads)
        return resp

    def likelihood_table(self, coef, z, floor, n_threads=1):
        if not issparse(z):
            return super().likelihood_table(coef, z, floor, n_threads)
        coef = np.ascontiguousarray(coef, dtype=z.dtype)
        table, log_norm = np.empty((z.shape[0], len(coef)), dtype=z.dtype), np.empty(z.shape[0])
        sparse_shares(
            *_arrays(z), coef, None, None, table, None, log_norm, len(coef), n_threads, floor
        )
        return np.maximum(table, floor, dtype=np.float64), log_norm


class ColumnsOfCounts(CountLikelihood):
    """Of columns that are independent given the component, of which entries may be missing.

    Parameters
    ----------
    prior : tuple
        With two numbers for each column, ``a`` and ``b``.
    columns : CompleteColumns or IncompleteColumns, default=None
        Where statistics have the counts of columns; complete ones if None.
    """

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
        holed = copy(self)
        holed.columns = IncompleteColumns(self.n_features)
        return holed

    def from_complete(self, s):
        return self.columns.from_complete(s)

    @abstractmethod
    def means(self, prior, s):
        """Expected means (..., D) of components with statistics (..., P)."""

    def imputed(self, prior, s, z):
        return self.columns.imputed(z, self.means(prior, s[np.newaxis]))

    def attributes(self, prior, s):
        return {"means_": self.means(prior, s)}


def pair_of_priors(pair, n_features):
    """Two positive numbers for each column, (D,) each, of ``prior`` as the user gave it."""
    try:
        a, b = (np.broadcast_to(np.asarray(v, dtype=float), n_features).copy() for v in pair)
    except (TypeError, ValueError):
        a = b = np.array([np.nan])
    if not (are_within(a) and are_within(b)):
        raise ValueError(
            f"prior={pair!r} must be two numbers (a, b) from {LEAST:g} to {MOST:g}, or two arrays of "
            f"{n_features} of them."
        )
    return a, b


def _arrays(z):
    """Rows as the kernels take them."""
    return z.data, z.indices.astype(np.int32, copy=False), z.indptr.astype(np.int64, copy=False)


# ---------------------------------------------------------------------- checks


def checked_counts(x, name, instead):
    """Rows of counts in float32 or float64; ``instead`` says what to give for what are none.

    Where the family allows it, and X was let through with them, nan stands for what is missing.
    """
    rows = _converted(x)
    values = _values(rows)
    largest = np.fmax.reduce(values, initial=0)
    if largest > MOST_MASS:
        raise ValueError(
            f"X holds {largest:g}, but observation={name!r} takes counts up to {MOST_MASS:g}, of which "
            "doubles can tell one from the next. Look for errors in X, or rescale it."
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
            "or np.rint(X). What is to count less than once has its place in sample_weight."
        )
    return rows


def checked_bits(x):
    """Rows of 0 and 1 in float32 or float64; nan as in `checked_counts`."""
    rows = _converted(x)
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


def _converted(x):
    """Rows in float32, if they are so, or float64."""
    dtype = np.float32 if x.dtype == np.float32 else np.float64
    return x.astype(dtype, copy=False) if issparse(x) else np.ascontiguousarray(x, dtype=dtype)


def _values(rows):
    """The numbers of rows, or those that are not zero."""
    return rows.data if issparse(rows) else rows.reshape(-1)


# ---------------------------------------------------------------------- sums


def digammas(counts, pseudo):
    """``psi(pseudo + counts)`` of counts (K, D), C-contiguous."""
    out = np.empty_like(counts)
    digamma_rows(counts, pseudo, out, 1)  # less digamma of each row's sum
    return out + digamma(pseudo.sum() + counts.sum(axis=1, keepdims=True))


def statistics_as_rows(s):
    """Statistics (..., P) as C-contiguous rows (n, P) for the kernels; a copy only if need be."""
    return np.ascontiguousarray(s, dtype=np.float64).reshape(-1, s.shape[-1])


def nonzeros(counts):
    """Row, column and value of what is not zero in counts (n, V)."""
    if issparse(counts):
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        return row, counts.indices, counts.data.astype(np.float64, copy=False)
    flat = counts.reshape(-1)
    at = np.flatnonzero(flat != 0)  # faster than np.nonzero of the counts themselves
    row, column = np.divmod(at, counts.shape[-1])
    return row, column, flat[at].astype(np.float64, copy=False)


def sum_log_factorials(counts):
    """``sum_v log x_v!`` of each row of counts (n, V)."""
    row, _, values = nonzeros(counts)
    return np.bincount(row, gammaln(values + 1.0), minlength=counts.shape[0])


# ---------------------------------------------------------------------- points


def points_of_counts(z, change, base, *, row_scale=None, row_base=None):
    """Points (n, m) for `Likelihood.seeding_points` of rows of counts.

    They are ``row_scale * (g + row_base * base)``, or stand for these: distances between them are nearly the
    same. Points of dense rows, and of few or short sparse ones, are what they are said to be.

    Parameters
    ----------
    z : ndarray or csr_array, shape (n, V)
    change : callable
        ``change(values, column)`` -> g of counts that are not zero; g is zero where they are.
    base : ndarray, shape (V,)
    row_scale, row_base : ndarray, shape (n, 1), or None
        1 if None.
    """
    n, V = z.shape
    row, column, values = nonzeros(z)
    changed = change(values, column)
    if not issparse(z) or n * V <= _DENSE_NUMBERS:
        points = np.tile(base, (n, 1)) if row_base is None else row_base * base
        points[row, column] += changed
    else:
        project = _projection(V)
        rows = csr_array((changed, (row, column)), shape=(n, V)) @ project
        base = base @ project
        points = rows.toarray() + (base if row_base is None else row_base * base)
    if row_scale is not None:
        points *= row_scale
    return points.astype(z.dtype, copy=False)


def _projection(n_columns):
    """Sparse random projection (V, m) that is always the same: seeds then depend on the rows alone.

    Each column goes to a few places with random signs (Kane and Nelson 2014).
    """
    rng = np.random.RandomState(0)
    width = _PROJECTED // _PLACES  # each place is in a block of its own
    places = rng.randint(width, size=(n_columns, _PLACES)) + width * np.arange(_PLACES)
    signs = (2.0 * rng.randint(2, size=places.size) - 1.0) / np.sqrt(_PLACES)
    indptr = np.arange(0, places.size + 1, _PLACES)
    return csr_array((signs, places.ravel(), indptr), shape=(n_columns, _PROJECTED))
