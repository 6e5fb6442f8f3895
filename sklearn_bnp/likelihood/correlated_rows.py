"""Gaussians whose rows are correlated with the row before; see `correlated.py` for the model.

All that depends on the dynamics is a linear map from the statistics of pairs of rows to those of independent
Gaussian points. The rest is the mathematics of the Gaussian family, with a count of its own for the means.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from .._kernels._responsibilities import n_statistics, statistics
from .autoregressive_gaps import GappedRegression
from .base import LastPrior, Likelihood

# Largest phi. Where it is larger, rows say hardly anything of the mean; a regression on the lags suits.
MOST_CORRELATION = 0.999
# Values that empirical Bayes compares with the present one, and moves of its inverse hyperbolic tangent.
# Steps that change phi and the posteriors in turn are slow where one depends much on the other.
_CORRELATIONS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98)
_MOVES = (-0.2, -0.06, -0.02, 0.02, 0.06, 0.2)
# Numbers in the posteriors of these values that are in memory at a time.
_BLOCK_NUMBERS = 4_000_000
# Numbers in the products of columns of a block of rows that is worked on at a time: they fit into a cache.
_CACHED_NUMBERS = 50_000


class CorrelatedPrior(NamedTuple):
    """Prior in internal units.

    Attributes
    ----------
    m, kappa, nu, b
        As in the Normal-Wishart prior of Gaussians.
    phi : float
        Correlation of a row with the row before, within a component.
    epsilon : float
        Probability that a row starts anew.
    """

    m: np.ndarray
    kappa: float
    nu: float
    b: np.ndarray
    phi: float
    epsilon: float


class Points(NamedTuple):
    """Sums over independent Gaussian points that are worth as much as the rows of K components.

    Attributes
    ----------
    square : ndarray, shape (K, Q)
        Squares of points, with the ridge, in the layout of the covariances' shape.
    linear : ndarray, shape (K, D')
        Points, each times the share of the mean that it has.
    n_mean, n : ndarray, shape (K,)
        Squares of these shares; the number of rows.
    """

    square: np.ndarray
    linear: np.ndarray
    n_mean: np.ndarray
    n: np.ndarray

    def __add__(self, other):
        return Points(*(a + b for a, b in zip(self, other, strict=True)))


class PointCoefficients(NamedTuple):
    """Coefficients of the fields of `Points` in the expected log likelihood, of the same shapes."""

    square: np.ndarray
    linear: np.ndarray
    n_mean: np.ndarray
    n: np.ndarray


def blocks_of_rows(n, n_numbers):
    """Slices of ``n`` rows with ``n_numbers`` each, whose numbers fit into a cache."""
    size = max(8, _CACHED_NUMBERS // n_numbers)
    return [slice(lo, lo + size) for lo in range(0, n, size)]


class CorrelatedGaussian(Likelihood):
    """Rows that go on from the row before: ``s = [x x', x p' + p x', p p', x, p, 1]`` with p the row before.

    Parameters
    ----------
    rows : GaussianLikelihood
        The family of rows without correlation, with the scaling of rows.
    prior : CorrelatedPrior
        Prior of each component, and the dynamics.
    learned : list of str
        The parameters of the dynamics that empirical Bayes sets, of ``"autocorrelation"`` and
        ``"restart_probability"``.
    """

    lags = 1
    allows_missing = True
    may_be_far_out = True  # the scaling is found without the first rows of sequences

    def __init__(self, rows, prior, learned):
        self.rows, self.prior, self.learned = rows, prior, tuple(learned)
        self.adapts_prior = rows.adapts_prior or bool(learned)
        self.n_features = 2 * rows.n_features
        self.n_squares = n_statistics(rows.n_features, rows.shape.quadratic, False) - 1
        # without products of different columns
        self.ridge = self.squares(np.diag(np.sqrt(rows.ridge))).sum(axis=0)
        self._last_norm = LastPrior()

    @property
    def copies_tell(self):
        return self.rows.copies_tell

    @property
    def log_cell(self):
        return self.rows.log_cell

    def with_missing(self):
        """The family for rows with missing entries; see `Likelihood`."""
        return GappedRegression(self)

    # ------------------------------------------------------------------ rows

    def squares(self, x):
        """Products ``x x'`` (n, Q) of rows (n, D'), packed."""
        out = np.empty((len(x), self.n_squares + 1))
        statistics(np.ascontiguousarray(x), self.rows.shape.quadratic, False, out)
        return out[:, :-1]

    @property
    def n_kernel_columns(self):
        return 3 * self.n_squares + self.n_features

    def kernel_rows(self, z):
        out = np.empty((len(z), self.n_kernel_columns), dtype=z.dtype)
        self._fill(out, z)
        return out

    def features(self, z):
        out = np.empty((len(z), self.n_statistics), dtype=z.dtype)
        self._fill(out[:, :-1], z)
        out[:, -1] = 1.0
        return out

    def _fill(self, out, z):
        D, Q = self.rows.n_features, self.n_squares
        out[:, 3 * Q :] = z
        for rows in blocks_of_rows(len(z), 3 * Q):
            x, before = z[rows, :D].astype(float), z[rows, D:].astype(float)
            square, square_before = self.squares(x), self.squares(before)
            out[rows, :Q], out[rows, 2 * Q : 3 * Q] = square, square_before
            out[rows, Q : 2 * Q] = self.squares(x + before) - square - square_before

    def prepare(self, x):
        D, scaling = x.shape[1] // 2, self.rows.scaling
        x = np.asarray(x, dtype=float)
        return np.concatenate([scaling.apply(x[:, :D]), scaling.apply(x[:, D:])], axis=1)

    def log_base(self, x):
        return self.rows.log_base(x[:, : x.shape[1] // 2])

    def split(self, s):
        """The parts of statistics (K, P): squares, crossed, of the rows before; sums of both; counts (K,)."""
        Q, D = self.n_squares, self.rows.n_features
        squares = s[:, :Q], s[:, Q : 2 * Q], s[:, 2 * Q : 3 * Q]
        return (*squares, s[:, 3 * Q : 3 * Q + D], s[:, 3 * Q + D : -1], s[:, -1])

    # ------------------------------------------------------------------ statistics to parameters

    def points(self, prior, s):
        """`Points` that are worth as much as rows with statistics (K, P)."""
        return self._points_of(np.array([prior.phi]), s)

    def _points_of(self, phi, s):
        """`points` (F K) for each phi (F,), one after the other."""
        square, crossed, before, x, p, n = self.split(s)
        of_noise = square + np.multiply.outer(n, self.ridge)
        phi = phi[:, np.newaxis, np.newaxis]
        of_noise = (of_noise - phi * crossed + phi**2 * before) / (1.0 - phi**2)
        linear = (x - phi * p) / (1.0 + phi)
        share = ((1.0 - phi) / (1.0 + phi))[:, :, 0]
        return Points(
            of_noise.reshape(-1, of_noise.shape[2]),
            linear.reshape(-1, linear.shape[2]),
            (share * n).ravel(),
            np.tile(n, len(phi)),
        )

    def log_scale(self, prior):
        """The part of log densities of rows that all states share, without the Gaussian's constants."""
        return np.log1p(-prior.epsilon) + self._log_volume(prior.phi)

    def _log_volume(self, phi):
        """Log of |dy / dx_t|."""
        return -0.5 * self.rows.n_features * np.log1p(-(phi**2))

    def evidence_of(self, prior, points):
        """Evidence (K,) of `Points`."""
        norm = self._log_norm(prior, points) - self._last_norm(self._prior_norm, prior)
        return norm + points.n * self.rows.row_constant

    def _scatter(self, prior, points):
        """Posterior inverse scales and means (K, D')."""
        s = np.column_stack([points.square, points.linear, points.n_mean])
        return self.rows.shape.scatter(prior, s, np.zeros(self.rows.n_features))

    def _counts(self, prior, points):
        """Posterior kappa and nu, both (K,)."""
        each = self.rows.shape.rows_a_point
        return prior.kappa + points.n_mean, prior.nu + each * points.n

    def _log_norm(self, prior, points):
        kappa, nu = self._counts(prior, points)
        log_det = self.rows.shape.log_det(self._scatter(prior, points)[0])
        return self.rows._log_norm(nu, kappa, log_det)

    def _prior_norm(self, prior):
        """Log normaliser of the prior."""
        return self._log_norm(prior, self.points(prior, np.zeros((1, self.n_kernel_columns + 1))))

    def evidence(self, prior, s):
        points = self.points(prior, np.atleast_2d(s))
        out = self.evidence_of(prior, points) + points.n * self.log_scale(prior)
        return out if np.ndim(s) == 2 else out[0]

    def posterior(self, prior, points):
        """``E[Lambda]``, posterior means (K, D'), log determinants of B, kappa and nu."""
        b, mean = self._scatter(prior, points)
        inverse, log_det = self.rows.shape.invert(b)
        kappa, nu = self._counts(prior, points)
        return self.rows.shape.times(nu, inverse), mean, log_det, kappa, nu

    def point_coefficients(self, prior, points):
        """`PointCoefficients` of the expected log likelihood, given sums over the points."""
        return self._coefficients_of(self.posterior(prior, points))

    def _coefficients_of(self, posterior):
        """`point_coefficients` given the `posterior`."""
        shape, D, Q = self.rows.shape, self.rows.n_features, self.n_squares
        precision, mean, log_det, kappa, nu = posterior
        out = np.zeros((len(mean), Q + D + 1))
        shape.fill_coefficients(out, precision, mean, np.zeros(D))
        log_precision = 0.5 * (shape.digamma_sum(nu) - shape.expand(log_det))
        return PointCoefficients(
            out[:, :Q],
            out[:, Q:-1],
            out[:, -1] - 0.5 * D / kappa,
            log_precision + self.rows.row_constant,
        )

    def row_coefficients(self, prior, c):
        """Coefficients (K, P) of s(x) from `PointCoefficients`."""
        phi = prior.phi
        square, linear = c.square / (1.0 - phi**2), c.linear / (1.0 + phi)
        each = square @ self.ridge + (1 - phi) / (1 + phi) * c.n_mean + c.n + self.log_scale(prior)
        return np.column_stack(
            [square, -phi * square, phi**2 * square, linear, -phi * linear, each]
        )

    def coefficients(self, prior, s):
        return self.row_coefficients(prior, self.point_coefficients(prior, self.points(prior, s)))

    # ------------------------------------------------------------------ empirical Bayes

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            prior = self.with_far_phi(prior, s)
            prior = self.next_prior(prior, s, self.points(prior, s))
        return prior

    def with_far_phi(self, prior, s, others=None):
        """The prior, or the one of another phi for which the sum of evidences is greatest.

        Rows that go on have the statistics ``s`` (K, P); ``others`` are `Points` that phi does not change.
        """
        if "autocorrelation" not in self.learned:
            return prior
        near = np.tanh(np.arctanh(prior.phi) + np.array(_MOVES)).clip(0.0, MOST_CORRELATION)
        phi = np.array([prior.phi, *_CORRELATIONS, *near])
        K, D = len(s), self.rows.n_features
        norms, most = np.empty((len(phi), K)), max(1, _BLOCK_NUMBERS // (K * D**2))
        for lo in range(0, len(phi), most):
            some = phi[lo : lo + most]
            points = self._points_of(some, s)
            if others is not None:
                points += Points(*(np.concatenate([v] * len(some)) for v in others))
            norms[lo : lo + most] = self._log_norm(prior, points).reshape(-1, K)
        # all else in the evidence is the same for every phi
        value = norms.sum(axis=1) + s[:, -1].sum() * self._log_volume(phi)
        best = np.argmax(np.where(np.isnan(value), -np.inf, value))  # NaN: rounding, near phi = 1
        return prior if best == 0 else prior._replace(phi=float(phi[best]))

    def next_prior(self, prior, s, points):
        """The prior after one step, given statistics (K, P) of rows that go on, and the `Points` of all."""
        changes, posterior = {}, self.posterior(prior, points)
        if self.rows.adapts_prior:
            precision, mean, _, kappa, _ = posterior
            adapted = self.rows.next_prior(prior, precision, mean, kappa)
            changes |= {"b": adapted.b, "kappa": adapted.kappa}
        if "autocorrelation" in self.learned:
            changes["phi"] = self._best_phi(prior, s, self._coefficients_of(posterior))
        return prior._replace(**changes)

    def _best_phi(self, prior, s, c):
        """The phi of the greatest expected log likelihood under posteriors with `PointCoefficients` c.

        It is ``-n D log(1 - phi^2) / 2 - (S_0 - 2 phi S_1 + phi^2 S_2) / (2 (1 - phi^2))``, with the expected
        products of deviations from the mean. The slope is 0 at the roots of a cubic.
        """
        square, crossed, before, x, p, n = self.split(s)
        if not n.sum() > 0:
            return prior.phi
        of_mean = -2.0 * n @ c.n_mean
        of_x, of_p = -2.0 * np.vdot(c.linear, x), -2.0 * np.vdot(c.linear, p)
        ridge = -2.0 * n @ (c.square @ self.ridge)
        s_0 = -2.0 * np.vdot(c.square, square) + of_x + of_mean + ridge
        s_1 = -np.vdot(c.square, crossed) + 0.5 * (of_x + of_p) + of_mean
        s_2 = -2.0 * np.vdot(c.square, before) + of_p + of_mean
        n_numbers = n.sum() * self.rows.n_features

        def value(phi):
            rest = 1.0 - phi**2
            return -n_numbers * log(rest) - (s_0 - 2.0 * phi * s_1 + phi**2 * s_2) / rest

        roots = np.roots([-n_numbers, s_1, n_numbers - s_0 - s_2, s_1])
        candidates = np.clip(roots.real, 0.0, MOST_CORRELATION).tolist()
        return max([prior.phi, *candidates], key=value)

    def prior_distance(self, old, new):
        moved = np.arctanh(new.phi) - np.arctanh(old.phi)
        return self.rows.prior_distance(old, new) + abs(moved)

    # ------------------------------------------------------------------ densities

    def mean(self, prior, s):
        """Posterior mean of z (2 D',) given statistics (P,)."""
        return np.tile(self._scatter(prior, self.points(prior, s[np.newaxis]))[1][0], 2)

    def log_student(self, prior, points, z, phi):
        """Student densities (n, K) of rows that go on with the correlation ``phi``."""
        D, shape = self.rows.n_features, self.rows.shape
        b, mean = self._scatter(prior, points)
        kappa, nu = self._counts(prior, points)
        share = np.sqrt((1.0 - phi) / (1.0 + phi))
        y = np.ascontiguousarray((z[:, :D] - phi * z[:, D:]) / np.sqrt(1.0 - phi**2))
        out = shape.log_student(y, b, share * mean, kappa / (kappa + share**2), nu)
        return out + self.rows.scaling.log_density_constant - 0.5 * D * np.log1p(-(phi**2))

    def log_predictive(self, prior, s, z):
        return self.log_student(prior, self.points(prior, s), z, prior.phi)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Rows in units of the component's spread: components differ in their means."""
        return self.points_under(prior, self.points(prior, s[np.newaxis]), z, whiten)

    def points_under(self, prior, points, z, whiten):
        """`seeding_points` given the `Points` of one component."""
        precision, mean, *_ = self.posterior(prior, points)
        x = np.ascontiguousarray(z[:, : self.rows.n_features])
        return self.rows.points_under(x, precision[0], mean[0], whiten)

    def attributes(self, prior, s):
        return self.attributes_of(prior, self.points(prior, s))

    def attributes_of(self, prior, points):
        """`attributes` given the `Points` of components."""
        precision, mean, *_ = self.posterior(prior, points)
        return self.rows.attributes_of(precision, mean) | {
            "autocorrelation_": np.full(len(mean), prior.phi),
            "restart_probability_": np.full(len(mean), prior.epsilon),
        }

    def sample(self, attributes, labels, rng):
        """Rows of one sequence, in the data's units."""
        means, covariances = attributes["means_"][labels], attributes["covariances_"]
        shape = means.shape
        noise = self.rows.shape.colour(rng.standard_normal(shape), covariances, labels)
        anew = rng.random_sample(len(labels)) < attributes["restart_probability_"][labels]
        anew[:1] = True
        phi = np.where(anew, 0.0, attributes["autocorrelation_"][labels])
        out, before = means + np.sqrt(1.0 - phi**2)[:, np.newaxis] * noise, 0.0
        for t in range(len(labels)):
            out[t] += phi[t] * (before - means[t])
            before = out[t]
        return out
