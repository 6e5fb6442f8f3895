"""Rows with missing entries.

Design note
-----------
(a) A missing entry is integrated out. Where columns are independent given the component, nothing is left of
    it: each column has the evidence of the rows that show it. So statistics need one count for each
    column, and a row for the kernels is ``[x with 0 for NaN | 1 for observed entries]``: all stays a
    matrix product.
(b) A family of such columns holds `CompleteColumns` or `IncompleteColumns`, and asks it where the counts of
    columns are and where the constants of entries go. Complete rows cost nothing extra.
(c) Prepared rows keep their NaN, so that missing entries can be told from zeros, and rows take no more room
    than complete ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .base import Likelihood


class IncompleteLikelihood(Likelihood):
    """A family for rows with missing entries, made of the same family for complete rows.

    Parameters
    ----------
    complete : Likelihood
        The family for complete rows, whose statistics come first among those of this one.

    Attributes
    ----------
    n_added : int
        How many statistics follow those of the family for complete rows.
    """

    has_missing = True
    n_added: int

    def __init__(self, complete):
        self.complete, self.n_features = complete, complete.n_features
        self.prior, self.adapts_prior = complete.prior, complete.adapts_prior
        self.lags, self.may_be_far_out = complete.lags, complete.may_be_far_out

    @property
    def spread_of_means(self):
        return self.complete.spread_of_means

    @property
    def copies_tell(self):
        return self.complete.copies_tell

    @property
    def log_cell(self):
        return self.complete.log_cell

    @property
    def n_statistics(self):
        return self.complete.n_statistics + self.n_added

    def own(self, s):
        """The statistics of complete rows among statistics (..., P)."""
        return np.ascontiguousarray(s[..., : -self.n_added])

    def prepare(self, x):
        return self.complete.prepare(x)

    def update_prior(self, prior, s, n_iter):
        return self.complete.update_prior(prior, self.own(s), n_iter)

    def prior_distance(self, old, new):
        return self.complete.prior_distance(old, new)

    def seeding_points(self, prior, s, z, *, whiten=True):
        points = self.imputed(prior, s, z)
        return self.complete.seeding_points(prior, self.own(s), points, whiten=whiten)

    def attributes(self, prior, s):
        return self.complete.attributes(prior, self.own(s))

    def sample(self, attributes, labels, rng):
        return self.complete.sample(attributes, labels, rng)


class CompleteColumns:
    """All rows show all columns, and the last statistic counts them."""

    has_missing = False

    def n_kernel_columns(self, n_features):
        return n_features

    def kernel_rows(self, z):
        return z

    def dense(self, x):
        """Rows in a form that can have missing entries, if there are any."""
        return x

    def filled(self, z):
        """Rows with 0 for missing entries."""
        return z

    def values(self, s):
        """Sums of values, (..., D)."""
        return s[..., :-1]

    def counts(self, s):
        """How many rows show each column: (..., 1), or (..., D) if columns differ in that."""
        return s[..., -1:]

    def put(self, out, each):
        """Add constants (K, D) of observed entries to coefficients (K, P)."""
        out[:, -1] += np.sum(each, axis=1)

    def total(self, each, z):
        """Constants (K, D) summed over the observed entries of rows: (n, K), or (K,) if rows are alike."""
        return each.sum(axis=1)

    def dot(self, a, b, z):
        """``a * b``, each (D,), summed over the observed entries of rows: (n,), or a number."""
        return a @ b

    def imputed(self, z, means):
        """Rows with means (D,) for missing entries."""
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


def columns_of(moments):
    """`CompleteColumns` or `IncompleteColumns`, as data with these `Moments` need them."""
    return CompleteColumns() if moments.observed is None else IncompleteColumns(len(moments.mean))


def masked(z, squares=None):
    """Rows ``[squares | z with 0 for NaN | 1 for observed entries]``, in the precision of ``z``.

    ``squares`` is a function that makes the first part of filled rows; None if there is none.
    """
    missing = np.isnan(z)
    x = np.where(missing, z.dtype.type(0), z)
    parts = [x, ~missing] if squares is None else [squares(x), x, ~missing]
    return np.concatenate(parts, axis=1, dtype=z.dtype)


def with_counts(s, n_features):
    """Statistics (..., P) with the last count repeated before itself, once for each column."""
    counts = np.repeat(s[..., -1:], n_features, axis=-1)
    return np.concatenate([s[..., :-1], counts, s[..., -1:]], axis=-1)


class EntryConstants(NamedTuple):
    """Terms that scaling adds to the log density of rows, entry by entry.

    Columns that are left out of the model have a fixed density, which belongs to no component.

    Attributes
    ----------
    each : ndarray, shape (D',)
        The term of each observed entry of a column in the model.
    left_out : ndarray of int
        Columns that are not in the model.
    others : ndarray, shape (len(left_out),)
        The term of each observed entry of a column that is left out.
    row : float
        The sum of the latter over a row of the data, on average.
    """

    each: np.ndarray
    left_out: np.ndarray
    others: np.ndarray
    row: float


def entry_constants(scaling, observed):
    """`EntryConstants` of a `Scaling` without rotation.

    ``observed`` (D,) is the share of the data's rows that shows each column.
    """
    each, every = -np.log(scaling.scale), np.arange(len(scaling.scale))
    if scaling.kept is None:
        return EntryConstants(each, every[:0], each[:0], 0.0)
    left_out = np.setdiff1d(every, scaling.kept)
    others = each[left_out] - 0.5 * np.log(2 * np.pi * scaling.floor)
    return EntryConstants(each[scaling.kept], left_out, others, float(observed[left_out] @ others))


def log_base_of_observed(scaling, constants, x):
    """Log density (n,) of the observed entries of columns that are left out of the model."""
    if len(constants.left_out) == 0:
        return np.zeros(len(x))
    z = scaling.standardise(x)[:, constants.left_out].astype(np.float64)
    return np.where(np.isnan(z), 0.0, constants.others - 0.5 * z**2 / scaling.floor).sum(axis=1)


def check_axes(scaling):
    """Raise unless prepared rows have the columns of the data, or some of them."""
    if scaling.basis is not None and scaling.kept is None:
        raise ValueError(
            "X has missing values (NaN), but the model was fitted to complete rows in which some columns "
            "were linear combinations of others, and it cannot do without any column. Leave such columns "
            "out before the fit, or fit to rows with missing values as well."
        )
