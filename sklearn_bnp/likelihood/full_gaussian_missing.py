"""Full Gaussians for rows of which entries are missing.

Design note
-----------
(a) The posterior of a component given rows with holes is no Wishart. The entries that are missing become
    variables with a factor of their own, ``q(x_mis | z = k)``: the best is Gaussian, the conditional
    of x_mis under ``E[Lambda_k]`` and the posterior mean. Its moments complete s(x), and its entropy
    is one more statistic, whose coefficient is 1: so the objective is a function of statistics as
    ever, and stays a lower bound whatever a proposal makes of them.
(b) The log weight of a row is the log of the integral of ``exp(coef . s(x))`` over what is missing.
(c) The ridge is the cost of blurring what was recorded: entries that are missing do not pay it. A row
    that shows nothing at all has no part in the Gaussian, and counts for the weights alone: hence
    a count of rows that show something beside that of all rows.
(d) Where a row must be completed and no component is in sight (seeds, given responsibilities), it is
    under one Gaussian for all the data. Most rows of wide data have a pattern of their own, and each
    pattern a matrix: so this goes by blocks of rows.

Symbols are those of ``doc/missing_values.rst``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._kernels._holes import complete_rows, hole_sums, hole_table
from .missing import entry_constants, log_base_of_seen
from .tables import TableLikelihood

_LOG_2PI = np.log(2.0 * np.pi)
# Numbers in the statistics of rows that are held at a time.
_BLOCK_NUMBERS = 4_000_000


class Patterns(NamedTuple):
    """Rows by what is missing of them.

    Attributes
    ----------
    whole, blank : ndarray of int
        Rows without holes, and rows of nothing else.
    order : ndarray of int, shape (n,)
        The others, sorted by pattern.
    starts : ndarray of int, shape (G + 1,)
        Where patterns begin in ``order``.
    hole : ndarray of uint8, shape (G, D)
        1 for what is missing.
    """

    whole: np.ndarray
    blank: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    hole: np.ndarray


def patterns_of(z):
    """`Patterns` of rows (n, D)."""
    hole = np.isnan(z)
    n_missing = hole.sum(axis=1)
    some = np.flatnonzero((n_missing > 0) & (n_missing < z.shape[1]))
    bits = np.packbits(hole[some], axis=1)
    names = bits.view(f"V{bits.shape[1]}").ravel()
    _, first, number = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(first)))])
    return Patterns(
        np.flatnonzero(n_missing == 0), np.flatnonzero(n_missing == z.shape[1]), some[order],
        starts.astype(np.intp), hole[some[first]].astype(np.uint8),
    )  # fmt: skip


def _blocks(n, width):
    """Slices of n rows, of which a table of so many columns is no larger than ours may be."""
    most = max(1, _BLOCK_NUMBERS // width)
    return [slice(lo, lo + most) for lo in range(0, n, most)]


def _doubles(values, rows):
    return np.ascontiguousarray(values[rows], dtype=float)


class IncompleteFullGaussian(TableLikelihood):
    """Full covariances: ``s(x) = [completed xx', x, shows anything, entropy of what is missing, 1]``.

    Parameters
    ----------
    complete : GaussianLikelihood
        Its statistics are all but the last two.
    observed : ndarray, shape (D,)
        Share of the data's rows that shows each column.
    covariance : ndarray, shape (D', D')
        Of all the data, in internal units.
    """

    has_missing = imputes = True

    def __init__(self, complete, observed, covariance):
        self.complete, self.scaling = complete, complete.scaling
        self.prior, self.adapts_prior = complete.prior, complete.adapts_prior
        self.n_features, self.ridge = complete.n_features, complete.ridge
        self.constants = entry_constants(self.scaling, observed)
        self.whole = np.linalg.inv(covariance)
        self.i, self.j = np.triu_indices(self.n_features)
        self.others = float(np.sum(self.constants.others))

    @property
    def n_statistics(self):
        return self.complete.n_statistics + 2

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with holes."""
        n = s[..., -1:]
        return np.concatenate([s, np.zeros_like(n), n], axis=-1)

    def prepare(self, x):
        return self.complete.prepare(x)

    def log_base(self, x):
        return log_base_of_seen(self.scaling, self.constants, x)

    # ------------------------------------------------------------------ statistics to parameters

    def evidence(self, prior, s):
        own = self.complete.evidence(prior, np.ascontiguousarray(s[..., :-2]))
        # columns left out belong to all rows, and not to those alone that show something
        return own + s[..., -2] + s[..., -1] * self.constants.row - s[..., -3] * self.others

    def coefficients(self, prior, s):
        """Those of complete rows, and 1 for the entropy of what is missing."""
        out = np.empty(s.shape)
        out[:, :-2] = self.complete.coefficients(prior, np.ascontiguousarray(s[:, :-2]))
        out[:, -3] -= self.others
        out[:, -2] = 1.0
        out[:, -1] = self.constants.row
        return out

    def update_prior(self, prior, s, n_iter):
        return self.complete.update_prior(prior, np.ascontiguousarray(s[:, :-2]), n_iter)

    def prior_distance(self, old, new):
        return self.complete.prior_distance(old, new)

    def attributes(self, prior, s):
        return self.complete.attributes(prior, np.ascontiguousarray(s[:, :-2]))

    def sample(self, attributes, labels, rng):
        return self.complete.sample(attributes, labels, rng)

    # ------------------------------------------------------------------ rows

    def _unpacked(self, coef):
        """Quadratic forms A (K, D, D) and linear ones b (K, D) of coefficients (K, P)."""
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
        full = coef[:, :-2].astype(z.dtype)
        out[rows.whole] = self.complete.features(z[rows.whole]) @ full.T
        out[rows.whole] += base.astype(z.dtype)
        out[rows.blank] = base
        if len(rows.order):
            a, b = self._unpacked(coef)
            diagonal = np.diagonal(a, axis1=1, axis2=2)
            fix = 0.5 * (_LOG_2PI + diagonal * self.ridge) - self.constants.each
            table = np.empty((len(rows.order), len(coef)))
            hole_table(
                _doubles(z, rows.order),
                rows.starts,
                rows.hole,
                a,
                b,
                base + coef[:, -3],
                fix,
                table,
            )
            out[rows.order] = table
        return out

    def features(self, z):
        """s(x) (n, P) of rows completed under the Gaussian of all the data."""
        out = np.empty((len(z), self.n_statistics), dtype=z.dtype)
        for block in _blocks(len(z), self.n_statistics):
            self._fill_features(z[block], out[block])
        return out

    def _fill_features(self, z, out):
        """The same of a block of rows."""
        rows, n_packed = patterns_of(z), len(self.i)
        x, spread, entropy = self._completed(z, rows, self.whole, np.zeros(self.n_features))
        out[:, :-2] = self.complete.features(x)
        out[:, -2], out[:, -1] = 0.0, 1.0
        pattern = np.repeat(np.arange(len(rows.hole)), np.diff(rows.starts))
        out[rows.order, :n_packed] += spread[pattern].astype(z.dtype)
        out[rows.order, -2] = entropy[pattern]
        out[rows.blank, :-1] = 0.0

    def _completed(self, z, rows, a, b):
        """Rows with conditional means for holes, and variances and entropies (G, ...) of patterns."""
        G, some = len(rows.hole), np.empty((len(rows.order), self.n_features))
        spread, entropy = np.empty((G, len(self.i))), np.empty(G)
        complete_rows(
            _doubles(z, rows.order), rows.starts, rows.hole, a, b, self.ridge, self.constants.each,
            some, spread, entropy,
        )  # fmt: skip
        out = z.copy()
        out[rows.order] = some
        if len(rows.blank):
            out[rows.blank] = np.linalg.solve(a, b)
        return out, spread, entropy

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        """Fill ``s`` (J, P) with completed statistics; see `Likelihood.summarise`."""
        if coef is None:
            s[...] = 0.0
            for block in _blocks(len(z), max(s.shape)):
                self._add_completed(z[block], shares[block], s, sparse)
            return
        rows, own = patterns_of(z), np.empty((len(s), s.shape[1] - 2))
        self.complete.summarise(z[rows.whole], shares[rows.whole], own, sparse=sparse)
        s[:, :-2] = own
        s[:, -2] = 0.0
        s[:, -1] = own[:, -1] + shares[rows.blank].sum(axis=0, dtype=float)
        if len(rows.order):
            a, b = self._unpacked(coef)
            hole_sums(
                _doubles(z, rows.order), rows.starts, rows.hole, _doubles(shares, rows.order), a, b,
                self.ridge, self.constants.each, self.complete.linear, s,
            )  # fmt: skip

    def _add_completed(self, z, shares, s, sparse):
        """Add what a block of rows has to ``s`` (J, P), completed under the Gaussian of all the data."""
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
        """Rows with conditional means for holes, under the posterior given ``s`` (P,)."""
        a, b = self._unpacked(self.coefficients(prior, s[np.newaxis]))
        out = np.empty_like(z)
        for block in _blocks(len(z), self.n_statistics):
            out[block] = self._completed(z[block], patterns_of(z[block]), a[0], b[0])[0]
        return out

    def seeding_points(self, prior, s, z, *, whiten=True):
        """As of complete rows, with what is missing as expected."""
        points = self.imputed(prior, s, z)
        return self.complete.seeding_points(prior, s[:-2], points, whiten=whiten)

    def log_predictive(self, prior, s, z):
        """Student densities of what is seen of rows."""
        own = np.ascontiguousarray(s[:, :-2])
        rows, out = patterns_of(z), np.zeros((len(z), len(s)))
        if len(rows.whole):
            out[rows.whole] = self.complete.log_predictive(prior, own, z[rows.whole]) - self.others
        if len(rows.order):
            out[rows.order] = self._log_student(prior, own, _doubles(z, rows.order), rows)
        return out

    def _log_student(self, prior, s, z, rows):
        """The same of rows (n, D) with holes, sorted by pattern.

        With ``A = inv(B)``, integrating ``exp(-(x - m)' A (x - m) / 2)`` over what is missing leaves the
        distance under the block of B that is seen, whose determinant is ``|B| |A_mm|``.
        """
        D, (K, G) = self.n_features, (len(s), len(rows.hole))
        b, mean = self.complete.shape.scatter(prior, s, self.ridge)
        a, log_det = self.complete.shape.invert(b)
        mean = np.zeros((K, D)) if mean is None else mean
        at_mean = np.einsum("kij,kj->ki", a, mean)
        table, of_pattern = np.empty((len(z), K)), np.empty((G, K))
        nothing, none = np.zeros((K, D)), np.zeros(K)
        constant = -0.5 * np.einsum("kd,kd->k", mean, at_mean)
        hole_table(z, rows.starts, rows.hole, a, at_mean, constant, nothing, table)
        hole_table(
            np.zeros((G, D)), np.arange(G + 1), rows.hole, a, nothing, none, nothing, of_pattern
        )
        of_row = np.repeat(of_pattern, np.diff(rows.starts), axis=0)  # -log|A_mm| / 2
        square = 2.0 * np.maximum(of_row - table, 0.0)
        seen = ~np.isnan(z)
        n = seen.sum(axis=1, keepdims=True)
        dof, kappa = prior.nu + s[:, -1] - D + 1.0, prior.kappa + s[:, -1]
        shrink = kappa / (kappa + 1.0) if self.complete.linear else np.ones(K)
        out = gammaln(0.5 * (dof + n)) - gammaln(0.5 * dof) + 0.5 * n * np.log(shrink / np.pi)
        out += of_row - 0.5 * log_det - 0.5 * (dof + n) * np.log1p(shrink * square)
        return out + (seen @ self.constants.each)[:, np.newaxis]
