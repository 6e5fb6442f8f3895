"""Correlated rows that may start anew; see `correlated.py` for the model.

Whether a row starts anew is a hidden variable, with a factor of its own in the objective. So the statistics
of a row depend on the component that explains it. The last but one is the entropy of that factor.
"""

from __future__ import annotations

import numpy as np

from .._kernels._responsibilities import summarise
from .autoregressive_gaps import GappedRegression
from .base import Likelihood
from .correlated_rows import Points, blocks_of_rows
from .row_kernels import TableRows

# Limits of a probability to start anew that is learned. At 0 it would stay there.
_LEAST_RESTART, MOST_RESTART = 1e-4, 0.5
# Shares of a block of rows that is worked on at a time, so that they fit into a cache, and the least number
# of its rows.
_CACHED_SHARES, _LEAST_ROWS = 10_000, 256


class RestartingGaussian(TableRows, Likelihood):
    """Rows that go on or start anew: ``s = [those that go on | x x', x, 1 of new starts | entropy | 1]``.

    Parameters
    ----------
    continuing : CorrelatedGaussian
        The family without new starts.
    typical : float
        Correlation of a row with the row before in all the data.
    """

    imputes = True
    lags = 1
    allows_missing = True
    may_be_far_out = True

    def __init__(self, continuing, typical):
        self.continuing, self.prior, self.typical = continuing, continuing.prior, typical
        self.adapts_prior, self.n_features = continuing.adapts_prior, continuing.n_features
        of_all = np.arange(continuing.n_statistics)
        square, _, _, x, _, one = continuing.split(of_all[np.newaxis])
        self.anew = np.concatenate([square[0], x[0], one])  # their places among all statistics

    @property
    def n_statistics(self):
        return self.continuing.n_statistics + len(self.anew) + 2

    @property
    def scaling(self):
        """Units of the rows."""
        return self.continuing.rows.scaling

    @property
    def copies_tell(self):
        return self.continuing.copies_tell

    @property
    def log_cell(self):
        return self.continuing.log_cell

    def with_missing(self):
        """The family for rows with missing entries; see `Likelihood`."""
        return GappedRegression(self)

    def prepare(self, x):
        return self.continuing.prepare(x)

    def log_base(self, x):
        return self.continuing.log_base(x)

    def _split(self, s):
        """Statistics of rows that go on, and of new starts, from (K, P)."""
        P = self.continuing.n_statistics
        return np.ascontiguousarray(s[:, :P]), s[:, P:-2]

    # ------------------------------------------------------------------ rows

    def _tables(self, coef, z):
        """Log weights (n, K) of rows that go on, and of new starts.

        The former depend on ``x - phi p`` alone, where p is the row before.
        """
        continuing, Q, D = self.continuing, self.continuing.n_squares, self.n_features // 2
        of_going, of_anew = self._split(coef.astype(float, copy=False))
        square, crossed, _, linear, _, one = continuing.split(of_going)
        phi = _common_phi(square, crossed)
        going, anew = np.empty((len(z), len(coef))), np.empty((len(z), len(coef)))
        for rows in blocks_of_rows(len(z), Q):
            x = z[rows, :D].astype(float)
            y = x - phi * z[rows, D:]
            going[rows] = continuing.squares(y) @ square.T + y @ linear.T
            anew[rows] = continuing.squares(x) @ of_anew[:, :Q].T + x @ of_anew[:, Q:-1].T
        return going + one, anew + of_anew[:, -1]

    def log_table(self, coef, z):
        """The log of the sum of both weights."""
        out = np.empty((len(z), len(coef)), dtype=z.dtype)
        for rows in _blocks(out.shape):
            going, anew = self._tables(coef, z[rows])
            out[rows] = np.maximum(going, anew) + np.log(1.0 + _odds(going, anew)) + coef[:, -1]
        return out

    def features(self, z):
        """Rows s(x); each goes on or starts anew, as is likelier under one Gaussian for all the data."""
        out, P = np.zeros((len(z), self.n_statistics), dtype=z.dtype), self.continuing.n_statistics
        f, anew = self.continuing.features(z), self._jumps(z)
        out[~anew, :P] = f[~anew]
        out[anew, P:-2] = f[anew][:, self.anew]
        out[:, -1] = 1.0
        return out

    def _jumps(self, z):
        """Which rows (n,) start anew, if no component is known and columns are independent."""
        D, phi = self.n_features // 2, self.typical
        x, rest = z[:, :D], 1.0 - phi**2
        noise = x - phi * z[:, D:]
        odds = np.einsum("nd,nd->n", noise, noise) / rest - np.einsum("nd,nd->n", x, x)
        odds += D * np.log(rest)
        return odds > 2.0 * (np.log1p(-self.prior.epsilon) - np.log(self.prior.epsilon))

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        s[...] = 0.0
        for rows in _blocks(shares.shape):
            w = shares[rows].astype(float, copy=False)
            if coef is None:
                s += w.T @ self.features(z[rows])
            else:
                self._add(z[rows].astype(float, copy=False), w, s, coef, sparse)

    def _add(self, z, w, s, coef, sparse):
        """Add the statistics of rows in shares ``w`` (n, K) to ``s``, as `summarise`."""
        P = self.continuing.n_statistics
        Q = self.continuing.n_squares
        D = z.shape[1] // 2
        K = len(s)
        going, anew = self._tables(coef, z)
        odds, goes_on = _odds(going, anew), going >= anew
        entropy = np.log(1.0 + odds) + np.abs(going - anew) * odds / (1.0 + odds)
        larger = w / (1.0 + odds)
        smaller = larger * odds
        goes = np.where(goes_on, larger, smaller)
        starts = np.where(goes_on, smaller, larger)
        x, before = z[:, :D], z[:, D:]
        of_rows = self._sums(x, np.concatenate([goes, starts], axis=1), sparse)
        of_before = self._sums(before, goes, sparse)
        of_both = self._sums(x + before, goes, sparse)
        square, crossed, square_before, linear, linear_before, n = self.continuing.split(s[:, :P])
        square += of_rows[:K, :Q]
        square_before += of_before[:, :Q]
        crossed += of_both[:, :Q] - of_rows[:K, :Q] - of_before[:, :Q]
        linear += of_rows[:K, Q:-1]
        linear_before += of_before[:, Q:-1]
        n += of_rows[:K, -1]
        s[:, P:-2] += of_rows[K:]
        s[:, -2] += np.sum(w * entropy, axis=0)
        s[:, -1] += w.sum(axis=0)

    def _sums(self, x, w, sparse):
        """Sums (J, Q + D' + 1) of ``[x x', x, 1]`` of rows in shares (n, J)."""
        out = np.empty((w.shape[1], self.continuing.n_squares + x.shape[1] + 1))
        quadratic = self.continuing.rows.shape.quadratic
        summarise(np.ascontiguousarray(x), w, quadratic, True, out, sparse)
        return out

    # ------------------------------------------------------------------ statistics to parameters

    def _points(self, prior, s):
        """`Points` of all rows with statistics (K, P), whether they go on or not."""
        going, anew = self._split(s)
        return self.continuing.points(prior, going) + self._points_anew(anew)

    def _points_anew(self, anew):
        """`Points` of new starts, given their statistics."""
        Q, n = self.continuing.n_squares, anew[:, -1]
        square = anew[:, :Q] + np.multiply.outer(n, self.continuing.ridge)
        return Points(square, anew[:, Q:-1], n, n)

    def evidence(self, prior, s):
        rows = np.atleast_2d(s)
        going, anew = self._split(rows)
        out = self.continuing.evidence_of(prior, self._points(prior, rows)) + rows[:, -2]
        out += going[:, -1] * self.continuing.log_scale(prior) + anew[:, -1] * np.log(prior.epsilon)
        return out if np.ndim(s) == 2 else out[0]

    def coefficients(self, prior, s):
        c = self.continuing.point_coefficients(prior, self._points(prior, s))
        anew = c.square @ self.continuing.ridge + c.n_mean + c.n + np.log(prior.epsilon)
        rest = np.tile([1.0, 0.0], (len(s), 1))
        going = self.continuing.row_coefficients(prior, c)
        return np.column_stack([going, c.square, c.linear, anew, rest])

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        going, anew = self._split(s)
        n, n_anew = going[:, -1].sum() + anew[:, -1].sum(), anew[:, -1].sum()
        others = self._points_anew(anew)
        for _ in range(n_iter):
            prior = self.continuing.with_far_phi(prior, going, others)
            points = self.continuing.points(prior, going) + others
            prior = self.continuing.next_prior(prior, going, points)
            if "restart_probability" in self.continuing.learned and n > 0:
                share = np.clip(n_anew / n, _LEAST_RESTART, MOST_RESTART)
                prior = prior._replace(epsilon=float(share))
        return prior

    def prior_distance(self, old, new):
        return self.continuing.prior_distance(old, new)

    # ------------------------------------------------------------------ densities

    def mean(self, prior, s):
        """Posterior mean of z (2 D',) given statistics (P,)."""
        _, mean, *_ = self.continuing.posterior(prior, self._points(prior, s[np.newaxis]))
        return np.tile(mean[0], 2)

    def log_predictive(self, prior, s, z):
        """Mixtures of two Student densities."""
        points = self._points(prior, s)
        going = self.continuing.log_student(prior, points, z, prior.phi)
        anew = self.continuing.log_student(prior, points, z, 0.0)
        return np.logaddexp(going + np.log1p(-prior.epsilon), anew + np.log(prior.epsilon))

    def seeding_points(self, prior, s, z, *, whiten=True):
        points = self._points(prior, s[np.newaxis])
        return self.continuing.points_under(prior, points, z, whiten)

    def attributes(self, prior, s):
        return self.continuing.attributes_of(prior, self._points(prior, s))

    def sample(self, attributes, labels, rng):
        return self.continuing.sample(attributes, labels, rng)


def _blocks(shape):
    """Slices of the rows of shares (n, K)."""
    n, K = shape
    size = max(_LEAST_ROWS, _CACHED_SHARES // max(1, K))
    return [slice(lo, lo + size) for lo in range(0, n, size)]


def _odds(going, anew):
    """The smaller weight (n, K) of a row, divided by the larger one."""
    return np.exp(-np.abs(going - anew))


def _common_phi(square, crossed):
    """The phi of coefficients (K, Q) of squares and of crossed products, which are -phi times the former."""
    if not square.any():
        return 0.0
    largest = np.unravel_index(np.abs(square).argmax(), square.shape)
    return float(-crossed[largest] / square[largest])
