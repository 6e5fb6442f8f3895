"""Full, diagonal and spherical covariances: the operations of a Gaussian family on each shape.

All arrays have a leading axis over components. An inverse scale ``b`` of a posterior is (K, D, D), of which
only the upper triangle is valid, for full covariances, (K, D) for diagonal and (K,) for spherical ones.
The three classes have the same methods; those of `FullShape` are documented.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.special import digamma, gammaln

from .._kernels._gaussian import (
    quadratic_coefficients,
    rough_scales,
    scale_matrices,
    spd_inverse,
    spd_logdet,
    wishart_log_norms,
)
from .._kernels._responsibilities import Quadratic, statistics
from .._kernels._student import student_columns_without, student_without
from .leaving_out import LEAST_SHARE
from .limits import variances_within

_LOG_2 = np.log(2.0)
# Rows whose statistics are in memory at a time, a tile that stays in the cache; fewer if these are long.
_BLOCK_ROWS, _BLOCK_NUMBERS, _LEAST_ROWS = 256, 2_000_000, 16
# Relative error that sums of float32 products may have: half a unit in the last place for each of 256.
_ROUGH = 128 * np.finfo(np.float32).eps


def _is_positive_definite(b):
    """Whether a symmetric matrix is positive definite beyond rounding, whatever the units of its columns."""
    diagonal = np.diag(b)
    if not np.all(diagonal > 0):
        return False
    values = np.linalg.eigvalsh(b / np.sqrt(np.multiply.outer(diagonal, diagonal)))
    return bool(np.all(values > 16 * len(b) * np.finfo(float).eps))


def _slices(n_rows, size=_BLOCK_ROWS):
    """Slices of rows to work on, one after another."""
    for lo in range(0, n_rows, size):
        yield slice(lo, min(lo + size, n_rows))


def _features(z, quadratic, linear, n_statistics):
    """Slices of rows with their statistics, which are overwritten by those of the next slice."""
    size = int(np.clip(_BLOCK_NUMBERS // n_statistics, _LEAST_ROWS, _BLOCK_ROWS))
    features = np.empty((min(len(z), size), n_statistics))
    for rows in _slices(len(z), size):
        own = features[: len(z[rows])]
        statistics(z[rows], quadratic, linear, own)
        yield rows, own


def repaired(b, prior, ridge, s, rough=_ROUGH):
    """Posterior inverse scales ``b`` (K, D, D) that no rounding has made less than those without any rows.

    Rows only add to an inverse scale. But sums over float32 rows are rough. If a component is far from the
    origin, and is narrow or narrow in some direction, rounding may take more than the prior and the ``ridge``
    add, and its matrix is not positive definite. Such matrices are changed in place: their eigenvalues,
    relative to those of ``prior + n diag(ridge)``, are raised to one.

    Parameters
    ----------
    b : ndarray, shape (K, D, D)
        Upper triangles.
    prior : ndarray, shape (D, D)
    ridge : ndarray, shape (D,)
    s : ndarray, shape (K, P)
        Statistics, of which the first are packed upper triangles.
    rough : float
        Components are looked at if a diagonal entry of ``prior + n diag(ridge)`` is below this share of the
        largest sum of squares. Greater if ``prior`` is far from diagonal.
    """
    is_rough = np.empty(len(s), dtype=np.uint8)
    if rough_scales(s, prior, ridge, rough, is_rough):
        some = np.flatnonzero(is_rough)
        log_det = np.empty(len(some))
        spd_logdet(b[some], log_det)
        for k in some[np.isnan(log_det)]:
            own = np.triu(b[k]) + np.triu(b[k], 1).T
            floor = prior + s[k, -1] * np.diag(ridge)
            values, vectors = eigh(own, floor)
            vectors = floor @ vectors
            b[k] = vectors * np.maximum(values, 1.0) @ vectors.T
    return b


class FullShape:
    """Full covariance matrices, with Wishart precisions.

    Attributes
    ----------
    D : int
        Number of columns.
    quadratic : Quadratic
        The quadratic part of s(x).
    rows_a_point : int
        How many degrees of freedom a row adds.
    least_nu, default_nu : int
        Greatest lower bound and default of the prior's degrees of freedom.
    log_two : float
        The logarithm of 2, once for each column with a precision of its own.
    """

    quadratic = Quadratic.FULL
    rows_a_point = 1

    def __init__(self, D):
        self.D = D
        self.least_nu, self.default_nu = D - 1, D + 2
        self.log_two = D * _LOG_2
        self._halves = 0.5 * (1.0 - np.arange(1, D + 1))

    def mean_factor(self, nu):
        """Inverse scale of a prior whose expected variances are 1."""
        return max(nu - self.D - 1.0, 1.0)

    def constant(self, diagonal):
        """Inverse scale with the given diagonal, a number or (D,)."""
        return np.diag(np.full(self.D, diagonal, dtype=float))

    def from_user(self, value, scaling):
        """Inverse scale in internal units from ``covariance_prior`` as a user gave it."""
        value = np.asarray(value, dtype=float)
        size = len(scaling.shift)
        if value.shape != (size, size):
            raise ValueError(
                f"covariance_prior must have shape ({size}, {size}) for full covariances; got {value.shape}."
            )
        if np.all(np.diag(value) > 0):
            variances_within(np.diag(value), scaling.scale**2, "covariance_prior")
        b = value / np.multiply.outer(scaling.scale, scaling.scale)
        if scaling.basis is not None:
            b = scaling.basis.T @ b @ scaling.basis
        if not (np.isfinite(b).all() and np.allclose(b, b.T) and _is_positive_definite(b)):
            raise ValueError(
                "covariance_prior must be symmetric and positive definite; add a small multiple of the "
                "identity to one that is singular."
            )
        return np.ascontiguousarray(0.5 * (b + b.T))

    def own(self, b):
        """The prior's inverse scale as that of one component."""
        return b[np.newaxis].copy()

    def log_gamma(self, nu):
        """Log of the multivariate Gamma function of nu / 2, without a constant; (K,)."""
        return gammaln(0.5 * nu[:, np.newaxis] + self._halves).sum(axis=1)

    def log_norm(self, nu, log_det):
        """Log normalisers (K,) of the precisions, without a constant; ``log_det`` is that of ``b``."""
        out = np.empty(len(nu))
        wishart_log_norms(np.ascontiguousarray(nu, dtype=float), log_det, self.D, out)
        return out

    def digamma_sum(self, nu):
        """``E[log |Lambda|] + log |B|``."""
        return digamma(0.5 * nu[:, np.newaxis] + self._halves).sum(axis=1) + self.log_two

    def expand(self, log_det):
        """Log determinants (K,) of full matrices from those of ``b``."""
        return log_det

    def scatter(self, prior, s, ridge):
        """Posterior inverse scales ``b`` and means (K, D) from statistics (K, P)."""
        b = np.empty((len(s), self.D, self.D))
        mean = None if prior.m is None else np.empty((len(s), self.D))
        kappa = 0.0 if prior.m is None else prior.kappa
        scale_matrices(s, prior.b, ridge, prior.m, kappa, b, mean)
        return repaired(b, prior.b, ridge, s), mean

    def log_det(self, b):
        """Log determinants (K,); ``b`` may be overwritten."""
        out = np.empty(len(b))
        spd_logdet(b, out)
        return out

    def invert(self, b):
        """Inverses and log determinants (K,); ``b`` may be overwritten."""
        log_det = np.empty(len(b))
        spd_inverse(b, log_det)
        return b, log_det

    def times(self, nu, inverse):
        """Expected precisions ``nu inv(b)``; ``inverse`` may be overwritten."""
        inverse *= nu[:, np.newaxis, np.newaxis]
        return inverse

    def diagonal(self, precision):
        """Diagonals (K, D) of precisions; (K,) for spherical ones."""
        return np.diagonal(precision, axis1=1, axis2=2)

    def square(self, precision, difference):
        """Squared lengths (K,) of vectors (K, D) under precisions."""
        return ((precision @ difference[:, :, np.newaxis])[:, :, 0] * difference).sum(axis=1)

    def fill_coefficients(self, out, precision, mean, ridge):
        """Set coefficients (K, P) of the quadratic and linear parts, and add to those of 1."""
        quadratic_coefficients(precision, mean, ridge, out)

    def whiten(self, z, precision, *, whole=True):
        """Rows (n, D) in units of one component's spread; column by column unless ``whole``.

        ``z`` may be overwritten.
        """
        if whole:
            return np.ascontiguousarray(z @ np.linalg.cholesky(precision).astype(z.dtype))
        deviation = np.sqrt(np.diagonal(np.linalg.inv(precision)))
        z /= deviation.astype(z.dtype)
        return np.ascontiguousarray(z)

    def _squares(self, b, mean):
        """Coefficients (K, P) of the squared distances under B, times -1/2, and log determinants of B."""
        inverse, log_det = self.invert(b)
        n_linear = 0 if mean is None else self.D
        coef = np.zeros((len(inverse), self.D * (self.D + 1) // 2 + n_linear + 1))
        quadratic_coefficients(inverse, mean, np.zeros(self.D), coef)
        return coef, log_det

    def log_student(self, z, b, mean, shrink, nu):
        """Log predictive densities (n, K); ``shrink`` (K,) is kappa / (kappa + 1)."""
        coef, log_det = self._squares(b, mean)
        delta = np.empty((len(z), len(coef)))
        for rows, own in _features(z, self.quadratic, mean is not None, coef.shape[1]):
            delta[rows] = np.maximum(-2.0 * (own @ coef.T), 0.0) * shrink
        dof = nu - self.D + 1.0
        constant = (
            gammaln(0.5 * (nu + 1.0))
            - gammaln(0.5 * dof)
            - 0.5 * self.D * np.log(np.pi)
            - 0.5 * (log_det - self.D * np.log(shrink))
        )
        np.log1p(delta, out=delta)
        delta *= -0.5 * (nu + 1.0)
        delta += constant
        return delta

    def log_student_without(self, z, b, mean, prior, n, shares):
        """`log_student` of rows, each without its share (n, K) of the components.

        The components have ``n`` (K,) rows.
        """
        coef, log_det = self._squares(b, mean)
        out = self._student_of(z, coef, prior, n, shares)
        out -= 0.5 * log_det
        return out

    def _student_of(self, z, coef, prior, n, shares):
        """Densities, without determinants, of rows whose distances have the coefficients -2 ``coef``."""
        linear, P = prior.m is not None, coef.shape[1]
        coef, out = np.ascontiguousarray(-2.0 * coef.T), np.empty((len(z), len(n)))
        for rows, own in _features(z, self.quadratic, linear, P):
            square = np.maximum(own @ coef, 0.0)
            student_without(
                square, shares[rows], n, self.D, self.rows_a_point, prior.nu - self.least_nu, prior.kappa,
                linear, LEAST_SHARE, out[rows],
            )  # fmt: skip
        out -= 0.5 * self.D * np.log(np.pi)
        return out

    def attributes(self, precision, scaling):
        """Covariances, precisions and their Cholesky factors in the data's units."""
        precisions = scaling.matrices_back(precision, inverse=True)
        covariances = scaling.matrices_back(np.linalg.inv(precision))
        # scikit-learn has upper triangular factors U, with precision = U U'
        flipped = np.linalg.cholesky(precisions[:, ::-1, ::-1])
        return covariances, precisions, np.ascontiguousarray(flipped[:, ::-1, ::-1])

    def colour(self, noise, covariances, labels):
        """Standard normal rows (n, D) as noise with the covariances of their components."""
        root = np.linalg.cholesky(covariances)
        return np.einsum("nij,nj->ni", root[labels], noise)


class DiagShape:
    """Diagonal covariance matrices: each column has a Gamma precision of shape nu / 2 and rate b / 2."""

    quadratic = Quadratic.DIAG
    rows_a_point = 1
    least_nu, default_nu = 0, 3

    def __init__(self, D):
        self.D = D
        self.log_two = D * _LOG_2

    def mean_factor(self, nu):
        return max(nu - 2.0, 1.0)

    def constant(self, diagonal):
        return np.broadcast_to(diagonal, self.D).astype(float)

    def from_user(self, value, scaling):
        value = np.asarray(value, dtype=float)
        valid = value.shape == scaling.shift.shape and np.all((value > 0) & np.isfinite(value))
        if not valid:
            raise ValueError(
                f"covariance_prior must be {len(scaling.shift)} positive numbers for diagonal covariances; "
                f"got {value!r}."
            )
        b = variances_within(value, scaling.scale**2, "covariance_prior")
        return b if scaling.basis is None else scaling.basis.T @ b

    def own(self, b):
        return b[np.newaxis]

    def log_gamma(self, nu):
        return self.D * gammaln(0.5 * nu)

    def log_norm(self, nu, log_det):
        return self.log_gamma(nu) + 0.5 * nu * self.log_two - 0.5 * nu * log_det

    def digamma_sum(self, nu):
        return self.D * (digamma(0.5 * nu) + _LOG_2)

    def expand(self, log_det):
        return log_det

    def scatter(self, prior, s, ridge):
        n = s[:, -1:]
        b = prior.b + s[:, : self.D] + n * ridge
        if prior.m is None:
            return b, None
        total = n + prior.kappa
        mean = (prior.kappa * prior.m + s[:, self.D : 2 * self.D]) / total
        scatter = b + prior.kappa * prior.m**2 - total * mean**2
        return np.maximum(scatter, prior.b + n * ridge), mean  # rounding may have taken more

    def log_det(self, b):
        return np.log(b).sum(axis=1)

    def invert(self, b):
        return 1.0 / b, self.log_det(b)

    def times(self, nu, inverse):
        return inverse * nu[:, np.newaxis]

    def diagonal(self, precision):
        return precision

    def square(self, precision, difference):
        return np.sum(precision.T * difference.T**2, axis=0)  # of one precision a component, too

    def fill_coefficients(self, out, precision, mean, ridge):
        out[:, : self.D] = -0.5 * precision
        out[:, -1] -= 0.5 * (precision @ ridge)
        if mean is not None:
            out[:, self.D : 2 * self.D] = precision * mean
            out[:, -1] -= 0.5 * np.einsum("kd,kd->k", precision, mean**2)

    def whiten(self, z, precision, *, whole=True):
        z *= np.sqrt(precision).astype(z.dtype)
        return np.ascontiguousarray(z)

    def log_student(self, z, b, mean, shrink, nu):
        """Products of Student densities, one for each column."""
        out = np.empty((len(z), len(b)))
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi / shrink)
        constant = self.D * constant - 0.5 * np.log(b).sum(axis=1)
        for rows in _slices(len(z)):
            for k in range(len(b)):
                delta = (z[rows] if mean is None else z[rows] - mean[k]) ** 2 * (shrink[k] / b[k])
                out[rows, k] = constant[k] - 0.5 * (nu[k] + 1.0) * np.log1p(delta).sum(axis=1)
        return out

    def log_student_without(self, z, b, mean, prior, n, shares):
        out = np.empty((len(z), len(b)))
        center = np.zeros(b.shape) if mean is None else mean
        student_columns_without(
            z, center, 1.0 / b, shares, n, prior.nu, prior.kappa, mean is not None, LEAST_SHARE, out
        )
        out -= 0.5 * (self.log_det(b) + self.D * np.log(np.pi))
        return out

    def attributes(self, precision, scaling):
        full = np.full((len(precision), len(scaling.shift)), 1.0 / scaling.floor)
        if scaling.basis is None:
            full[...] = precision
        else:
            full[:, scaling.basis.any(axis=1)] = precision
        precisions = full / scaling.scale**2
        return 1.0 / precisions, precisions, np.sqrt(precisions)

    def colour(self, noise, covariances, labels):
        return noise * np.sqrt(covariances)[labels]


class SphericalShape(DiagShape):
    """Spherical covariances: one Gamma precision for all columns, to which each row adds D times."""

    quadratic = Quadratic.SPHERICAL

    def __init__(self, D):
        self.D = D
        self.rows_a_point = D
        self.log_two = _LOG_2

    def constant(self, diagonal):
        return np.asarray(np.mean(diagonal), dtype=float)

    def from_user(self, value, scaling):
        if np.ndim(value) != 0 or not value > 0 or not np.isfinite(value):
            raise ValueError(
                f"covariance_prior must be a positive number for spherical covariances; got {value!r}."
            )
        return np.asarray(variances_within(value, scaling.scale[0] ** 2, "covariance_prior"))

    def log_gamma(self, nu):
        return gammaln(0.5 * nu)

    def digamma_sum(self, nu):
        return self.D * (digamma(0.5 * nu) + _LOG_2)

    def expand(self, log_det):
        return self.D * log_det

    def scatter(self, prior, s, ridge):
        n = s[:, -1]
        b = prior.b + s[:, 0] + n * ridge.sum()
        if prior.m is None:
            return b, None
        total = n + prior.kappa
        mean = (prior.kappa * prior.m + s[:, 1 : 1 + self.D]) / total[:, np.newaxis]
        square = np.einsum("kd,kd->k", mean, mean)
        scatter = b + prior.kappa * (prior.m @ prior.m) - total * square
        return np.maximum(scatter, prior.b + n * ridge.sum()), mean

    def log_det(self, b):
        return np.log(b)

    def times(self, nu, inverse):
        return inverse * nu

    def fill_coefficients(self, out, precision, mean, ridge):
        out[:, 0] = -0.5 * precision
        out[:, -1] -= 0.5 * precision * ridge.sum()
        if mean is not None:
            out[:, 1 : 1 + self.D] = precision[:, np.newaxis] * mean
            out[:, -1] -= 0.5 * precision * np.einsum("kd,kd->k", mean, mean)

    def log_student(self, z, b, mean, shrink, nu):
        center = np.zeros((len(b), self.D)) if mean is None else mean
        square = (
            np.einsum("nd,nd->n", z, z)[:, np.newaxis]
            - 2.0 * z @ center.T
            + np.einsum("kd,kd->k", center, center)
        )
        constant = (
            gammaln(0.5 * (nu + self.D))
            - gammaln(0.5 * nu)
            - 0.5 * self.D * np.log(np.pi * b / shrink)
        )
        return constant - 0.5 * (nu + self.D) * np.log1p(np.maximum(square, 0.0) * (shrink / b))

    def log_student_without(self, z, b, mean, prior, n, shares):
        coef = np.zeros((len(b), 2 + (0 if mean is None else self.D)))
        self.fill_coefficients(coef, 1.0 / b, mean, np.zeros(self.D))
        out = FullShape._student_of(self, z, coef, prior, n, shares)
        return out - 0.5 * self.D * np.log(b)

    def attributes(self, precision, scaling):
        precisions = precision / scaling.scale[0] ** 2
        return 1.0 / precisions, precisions, np.sqrt(precisions)

    def colour(self, noise, covariances, labels):
        return noise * np.sqrt(covariances)[labels, np.newaxis]


SHAPES = {"diag": DiagShape, "full": FullShape, "spherical": SphericalShape}
