"""Full Gaussians for rows with missing entries.

Design note
-----------
(a) The posterior of a component given rows with missing entries is not a Wishart. Missing entries become
    variables with a factor of their own, ``q(x_mis | z = k)``. The best factor is Gaussian, the conditional
    of x_mis under ``E[Lambda_k]`` and the posterior mean. Its moments complete s(x), and its entropy is
    one more statistic, whose coefficient is 1. So the objective is a function of statistics as for other
    families, and stays a lower bound whatever a proposal makes of them.
(b) The log weight of a row is the log of the integral of ``exp(coef . s(x))`` over the missing entries.
(c) The ridge is the cost of blurring what was recorded, so missing entries do not pay it. A row without any
    observed entry has no part in the Gaussian, and counts for the weights alone. So there are two counts: of
    rows with an observed entry, and of all rows.
(d) Where a row must be completed and no component is known (seeds, given responsibilities), it is completed
    under one Gaussian for all the data. Most rows of wide data have a pattern of their own, and each
    pattern has a matrix, so this is done in blocks of rows.

Symbols are those of ``doc/formulas_missing.rst``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._missing import complete_rows, missing_sums, missing_table
from .._kernels._student import student_without
from .leaving_out import LEAST_SHARE
from .missing import IncompleteLikelihood, entry_constants, log_base_of_observed
from .row_kernels import TableRows

_LOG_2PI = np.log(2.0 * np.pi)
# Numbers in the statistics of rows that are in memory at a time.
_BLOCK_NUMBERS = 4_000_000


class Patterns(NamedTuple):
    """Rows grouped by the pattern of their missing entries.

    Attributes
    ----------
    whole, blank : ndarray of int
        Rows without missing entries, and rows without observed ones.
    order : ndarray of int, shape (n,)
        The other rows, sorted by pattern.
    starts : ndarray of int, shape (G + 1,)
        Where patterns begin in ``order``.
    missing : ndarray of uint8, shape (G, D)
        1 for a missing entry.
    """

    whole: np.ndarray
    blank: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    missing: np.ndarray


def patterns_of(z):
    """`Patterns` of rows (n, D)."""
    missing = np.isnan(z)
    n_missing = missing.sum(axis=1)
    some = np.flatnonzero((n_missing > 0) & (n_missing < z.shape[1]))
    names = _names(missing[some])
    order = np.argsort(names, kind="stable")
    names, some = names[order], some[order]
    begins = np.ones(len(names), dtype=bool)
    begins[1:] = names[1:] != names[:-1]
    first = np.flatnonzero(begins)
    return Patterns(
        np.flatnonzero(n_missing == 0), np.flatnonzero(n_missing == z.shape[1]), some,
        np.append(first, len(names)).astype(np.intp), missing[some[first]].astype(np.uint8),
    )  # fmt: skip


def _names(missing):
    """A name (n,) for the pattern of each row (n, D): a short integer if there is room, for fast sorting."""
    bits = np.packbits(missing, axis=1)
    size = next((size for size in (1, 2, 4, 8) if size >= bits.shape[1]), None)
    if size is None:
        return bits.view(f"V{bits.shape[1]}").ravel()
    wide = np.zeros((len(bits), size), dtype=np.uint8)
    wide[:, : bits.shape[1]] = bits
    return wide.view(f"u{size}").ravel()


def _blocks(n, width):
    """Slices of n rows, for each of which a table of ``width`` columns fits into memory."""
    most = max(1, _BLOCK_NUMBERS // width)
    return [slice(lo, lo + most) for lo in range(0, n, most)]


def _doubles(values, rows):
    return np.ascontiguousarray(values[rows], dtype=float)


class IncompleteFullGaussian(TableRows, IncompleteLikelihood):
    """Full covariances: ``s(x) = [completed xx', x, shows anything, entropy of missing entries, 1]``.

    Parameters
    ----------
    complete : GaussianLikelihood
        The likelihood for complete rows.
    observed : ndarray, shape (D,)
        Share of the data's rows that shows each column.
    covariance : ndarray, shape (D', D')
        Covariance of all the data, in internal units.
    """

    imputes = leaves_out = True
    n_added = 2

    def __init__(self, complete, observed, covariance):
        super().__init__(complete)
        self.scaling, self.ridge = complete.scaling, complete.ridge
        self.constants = entry_constants(self.scaling, observed)
        self.whole = np.linalg.inv(covariance)
        self.i, self.j = np.triu_indices(self.n_features)
        self.others = float(np.sum(self.constants.others))

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with missing entries; see `Likelihood`."""
        n = s[..., -1:]
        return np.concatenate([s, np.zeros_like(n), n], axis=-1)

    def log_base(self, x):
        return log_base_of_observed(self.scaling, self.constants, x)

    # ------------------------------------------------------------------ statistics to parameters

    def evidence(self, prior, s):
        own = self.complete.evidence(prior, self.own(s))
        # columns left out are a matter of all rows, not only of those with an observed entry in the model
        return own + s[..., -2] + s[..., -1] * self.constants.row - s[..., -3] * self.others

    def coefficients(self, prior, s):
        """Coefficients of complete rows, and 1 for the entropy of missing entries."""
        out = np.empty(s.shape)
        out[:, :-2] = self.complete.coefficients(prior, self.own(s))
        out[:, -3] -= self.others
        out[:, -2] = 1.0
        out[:, -1] = self.constants.row
        return out

    # ------------------------------------------------------------------ rows

    def _unpacked(self, coef):
        """Quadratic forms A (K, D, D) and linear forms b (K, D) from coefficients (K, P)."""
        D, n_packed = self.n_features, len(self.i)
        a, b = np.empty((len(coef), D, D)), np.zeros((len(coef), D))
        packed = -coef[:, :n_packed].astype(float)
        packed[:, self.i == self.j] *= 2.0
        a[:, self.i, self.j] = a[:, self.j, self.i] = packed
        if self.complete.linear:
            b[:] = coef[:, n_packed : n_packed + D]
        return a, b

    def log_table(self, coef, z):
        coef = np.ascontiguousarray(coef, dtype=float)
        out, rows = np.empty((len(z), len(coef)), dtype=z.dtype), patterns_of(z)
        base = coef[:, -1]
        out[rows.whole] = self.complete.log_table(coef[:, :-2], z[rows.whole])
        out[rows.whole] += base.astype(z.dtype)
        out[rows.blank] = base
        if len(rows.order):
            a, b = self._unpacked(coef)
            diagonal = np.diagonal(a, axis1=1, axis2=2)
            fix = 0.5 * (_LOG_2PI + diagonal * self.ridge) - self.constants.each
            table = np.empty((len(rows.order), len(coef)))
            missing_table(
                _doubles(z, rows.order),
                rows.starts,
                rows.missing,
                a,
                b,
                base + coef[:, -3],
                fix,
                table,
            )
            out[rows.order] = table
        return out

    def features(self, z):
        """Rows s(x) (n, P), completed under the Gaussian of all the data."""
        out = np.empty((len(z), self.n_statistics), dtype=z.dtype)
        for block in _blocks(len(z), self.n_statistics):
            self._fill_features(z[block], out[block])
        return out

    def _fill_features(self, z, out):
        """Rows s(x) of a block of rows."""
        rows, n_packed = patterns_of(z), len(self.i)
        x, spread, entropy = self._completed(z, rows, self.whole, np.zeros(self.n_features))
        out[:, :-2] = self.complete.features(x)
        out[:, -2], out[:, -1] = 0.0, 1.0
        pattern = np.repeat(np.arange(len(rows.missing)), np.diff(rows.starts))
        out[rows.order, :n_packed] += spread[pattern].astype(z.dtype)
        out[rows.order, -2] = entropy[pattern]
        out[rows.blank, :-1] = 0.0

    def _completed(self, z, rows, a, b):
        """Rows with conditional means for missing entries; variances and entropies (G, ...) of patterns."""
        G, some = len(rows.missing), np.empty((len(rows.order), self.n_features))
        spread, entropy = np.empty((G, len(self.i))), np.empty(G)
        complete_rows(
            _doubles(z, rows.order), rows.starts, rows.missing, a, b, self.ridge, self.constants.each,
            some, spread, entropy,
        )  # fmt: skip
        out = z.copy()
        out[rows.order] = some
        if len(rows.blank):
            out[rows.blank] = np.linalg.solve(a, b)
        return out, spread, entropy

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        if coef is None:
            s[...] = 0.0
            for block in _blocks(len(z), max(s.shape)):
                self._add_completed(z[block], shares[block], s, sparse)
            return
        rows, own = patterns_of(z), np.empty((len(s), s.shape[1] - 2))
        whole = z[rows.whole], shares[rows.whole]
        self.complete.summarise(*whole, own, coef=coef[:, :-2], sparse=sparse)
        s[:, :-2] = own
        s[:, -2] = 0.0
        s[:, -1] = own[:, -1] + shares[rows.blank].sum(axis=0, dtype=float)
        if len(rows.order):
            a, b = self._unpacked(coef)
            missing_sums(
                _doubles(z, rows.order), rows.starts, rows.missing, _doubles(shares, rows.order), a, b,
                self.ridge, self.constants.each, self.complete.linear, s,
            )  # fmt: skip

    def _add_completed(self, z, shares, s, sparse):
        """Add a block of rows, completed under the Gaussian of all the data, to ``s`` (J, P)."""
        rows, own = patterns_of(z), np.empty((len(s), s.shape[1] - 2))
        x, spread, entropy = self._completed(z, rows, self.whole, np.zeros(self.n_features))
        seen = np.concatenate([rows.whole, rows.order])
        self.complete.summarise(x[seen], shares[seen], own, sparse=sparse)
        of_pattern = np.add.reduceat(_doubles(shares, rows.order), rows.starts[:-1], axis=0)
        s[:, :-2] += own
        s[:, : len(self.i)] += of_pattern.T @ spread
        s[:, -2] += of_pattern.T @ entropy
        s[:, -1] += own[:, -1] + shares[rows.blank].sum(axis=0, dtype=float)

    def imputed(self, prior, s, z):
        """Rows with conditional means for missing entries; see `Likelihood`."""
        a, b = self._unpacked(self.coefficients(prior, s[np.newaxis]))
        out = np.empty_like(z)
        for block in _blocks(len(z), self.n_statistics):
            out[block] = self._completed(z[block], patterns_of(z[block]), a[0], b[0])[0]
        return out

    def log_predictive(self, prior, s, z):
        """Student densities of the observed entries of rows."""
        own = self.own(s)
        rows, out = patterns_of(z), np.zeros((len(z), len(s)))
        if len(rows.whole):
            out[rows.whole] = self.complete.log_predictive(prior, own, z[rows.whole]) - self.others
        if len(rows.order):
            out[rows.order] = self._log_student(prior, own, _doubles(z, rows.order), rows)
        return out

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; as for complete rows, on the block of B of the observed entries.

        The completed row that the statistics hold has the same observed entries.
        """
        own, shares = self.own(s), np.asarray(shares, dtype=float)
        rows, out = patterns_of(z), np.zeros((len(z), len(s)))
        if len(rows.whole):
            whole = z[rows.whole], shares[rows.whole]
            out[rows.whole] = self.complete.log_predictive_without(prior, own, *whole) - self.others
        if len(rows.order):
            some = _doubles(z, rows.order), rows, shares[rows.order]
            out[rows.order] = self._log_student(prior, own, *some)
        return out

    def _log_student(self, prior, s, z, rows, shares=None):
        """Student densities (n, K) of rows (n, D) with missing entries, sorted by pattern.

        If ``shares`` (n, K) are given, each row is without its own share.

        With ``A = inv(B)``, integrating ``exp(-(x - m)' A (x - m) / 2)`` over missing entries leaves the
        distance under the block of B of the observed ones, whose determinant is ``|B| |A_mm|``.
        """
        D, (K, G) = self.n_features, (len(s), len(rows.missing))
        b, mean = self.complete.shape.scatter(prior, s, self.ridge)
        a, log_det = self.complete.shape.invert(b)
        mean = np.zeros((K, D)) if mean is None else mean
        at_mean = np.einsum("kij,kj->ki", a, mean)
        table, of_pattern = np.empty((len(z), K)), np.empty((G, K))
        nothing, none = np.zeros((K, D)), np.zeros(K)
        constant = -0.5 * np.einsum("kd,kd->k", mean, at_mean)
        missing_table(z, rows.starts, rows.missing, a, at_mean, constant, nothing, table)
        missing_table(
            np.zeros((G, D)), np.arange(G + 1), rows.missing, a, nothing, none, nothing, of_pattern
        )
        of_row = np.repeat(of_pattern, np.diff(rows.starts), axis=0)  # -log|A_mm| / 2
        square = 2.0 * np.maximum(of_row - table, 0.0)
        shares = np.zeros_like(square) if shares is None else shares
        seen = ~np.isnan(z)
        n, out = seen.sum(axis=1), np.empty_like(square)
        count = np.ascontiguousarray(s[:, -1])
        for m in np.unique(n):
            at, own = np.flatnonzero(n == m), np.empty((np.count_nonzero(n == m), K))
            student_without(
                square[at], shares[at], count, m, 1, prior.nu - D + 1.0, prior.kappa, self.complete.linear,
                LEAST_SHARE, own,
            )  # fmt: skip
            out[at] = own
        out += of_row - 0.5 * log_det
        constant = seen @ self.constants.each - 0.5 * n * np.log(np.pi)
        return out + constant[:, np.newaxis]
