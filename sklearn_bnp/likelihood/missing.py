"""Rows of which entries are missing, for families whose columns are independent given the component.

Design note
-----------
(a) What is not observed is integrated out, and of independent columns nothing is left of it: each column
    has the evidence of those rows that show it. So statistics need one count a column, and a row is
    ``[x with 0 for holes | 1 for what is seen]``: all stays a matrix product.
(b) A `Likelihood` holds `CompleteColumns` or `IncompleteColumns` and asks it where the counts of columns are
    and where constants go that belong to each entry. Complete rows pay nothing.
(c) Prepared rows keep their nan. Whoever holds them can tell holes from zeros, and they take
    no more room than complete ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse


class CompleteColumns:
    """All rows show all columns: the last statistic counts them all."""

    has_missing = False

    def n_kernel_columns(self, n_features):
        return n_features

    def kernel_rows(self, z):
        return z

    def dense(self, x):
        """Rows in a form that can show holes, if they have some."""
        return x

    def filled(self, z):
        """Rows with 0 for holes."""
        return z

    def values(self, s):
        """Sums of values, (..., D)."""
        return s[..., :-1]

    def counts(self, s):
        """How many rows show each column: (..., 1), or (..., D) if that is not the same for all."""
        return s[..., -1:]

    def put(self, out, each):
        """Add constants (K, D) of each entry that is seen to coefficients (K, P)."""
        out[:, -1] += np.sum(each, axis=1)

    def total(self, each, z):
        """The same constants summed over the entries of rows: (n, K), or (K,) if it is all of them."""
        return each.sum(axis=1)

    def dot(self, a, b, z):
        """``a * b``, each (D,), summed over the entries of rows: (n,), or a number."""
        return a @ b

    def imputed(self, z, means):
        """Rows with means (D,) for holes."""
        return z


class IncompleteColumns:
    """Rows may lack entries: each of ``n_features`` columns has a count of its own before the last."""

    has_missing = True

    def __init__(self, n_features):
        self.D = n_features

    def n_kernel_columns(self, n_features):
        return 2 * n_features

    def kernel_rows(self, z):
        return masked(z)

    def dense(self, x):
        return x.toarray() if issparse(x) else x

    def filled(self, z):
        z = self.dense(z)
        return np.where(np.isnan(z), z.dtype.type(0), z)

    def values(self, s):
        return s[..., : self.D]

    def counts(self, s):
        return s[..., self.D : 2 * self.D]

    def put(self, out, each):
        out[:, self.D : 2 * self.D] += each

    def total(self, each, z):
        return ~np.isnan(z) @ each.T

    def dot(self, a, b, z):
        return ~np.isnan(z) @ (a * b)

    def imputed(self, z, means):
        return np.where(np.isnan(z), means.astype(z.dtype), z)

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with holes."""
        return with_counts(s, self.D)


def columns_of(moments):
    """What suits data with these `Moments`."""
    return CompleteColumns() if moments.observed is None else IncompleteColumns(len(moments.mean))


def masked(z, squares=None):
    """Rows ``[squares | z with 0 for holes | 1 for what is seen]``, in the precision of ``z``.

    ``squares`` gives the first part of rows without holes; None if there is none.
    """
    hole = np.isnan(z)
    x = np.where(hole, z.dtype.type(0), z)
    parts = [x, ~hole] if squares is None else [squares(x), x, ~hole]
    return np.concatenate(parts, axis=1, dtype=z.dtype)


def with_counts(s, n_features):
    """Statistics (..., P) with the last count repeated before itself, once for each column."""
    counts = np.repeat(s[..., -1:], n_features, axis=-1)
    return np.concatenate([s[..., :-1], counts, s[..., -1:]], axis=-1)


class EntryConstants(NamedTuple):
    """What units add to the log density of rows, entry by entry.

    Columns that are left out of the model have a fixed density, which belongs to no component.

    Attributes
    ----------
    each : ndarray, shape (D',)
        Of each entry in the model that is seen.
    left_out : ndarray of int
        Columns that are not in the model.
    others : ndarray, shape (len(left_out),)
        Of each entry of these that is seen.
    row : float
        What these add to a row of the data, on average.
    """

    each: np.ndarray
    left_out: np.ndarray
    others: np.ndarray
    row: float


def entry_constants(scaling, observed):
    """`EntryConstants` of `Scaling` of which ``kept`` tells the columns.

    ``observed`` (D,) is the share of the data's rows that shows each column.
    """
    each, every = -np.log(scaling.scale), np.arange(len(scaling.scale))
    if scaling.kept is None:
        return EntryConstants(each, every[:0], each[:0], 0.0)
    left_out = np.setdiff1d(every, scaling.kept)
    others = each[left_out] - 0.5 * np.log(2 * np.pi * scaling.floor)
    return EntryConstants(each[scaling.kept], left_out, others, float(observed[left_out] @ others))


def log_base_of_seen(scaling, constants, x):
    """Log density (n,) of the entries seen of columns that are left out of the model."""
    if len(constants.left_out) == 0:
        return np.zeros(len(x))
    z = scaling.standardise(x)[:, constants.left_out].astype(np.float64)
    return np.where(np.isnan(z), 0.0, constants.others - 0.5 * z**2 / scaling.floor).sum(axis=1)


def check_axes(scaling):
    """Raise unless prepared rows have the columns of the data, or some of them."""
    if scaling.basis is not None and scaling.kept is None:
        raise ValueError(
            "X has missing values (NaN), but in the data that the model was fitted to, all of them "
            "complete, columns were linear combinations of others. Leave such columns out, or fit with "
            "the rows in which values are missing."
        )
