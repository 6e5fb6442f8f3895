"""Vector autoregression with matrix-normal-Wishart priors.

The model is ``y = A x + b + e`` with ``e ~ N(0, inv(Lambda))``, where x are the p rows before y.

Design note
-----------
(a) The family is given lagged rows (`lags.lagged`): y, followed by the p rows before it. A prepared row is
    ``z = (x, u)``: x holds the last row and the p - 1 steps that led to it, and u is the step
    ``y - y_{t-1}`` that follows. Regressing u on x is regressing y on its lags in other coordinates. In
    these, slow sequences of large values lose no digits, and the default prior's mean, A = I on lag 1,
    is 0.
(b) It is a Gaussian of z, given x. Let C be the scatter of z about its posterior mean, prior included,
    ``C_xx`` its block of the lags and ``B = C_uu - C_ux inv(C_xx) C_xu``. The posterior has ``nu + n``
    degrees of freedom, the scale B, coefficients ``C_ux inv(C_xx)`` with precision ``C_xx``, and
    ``kappa + n`` for the intercept. So the kernels of the Gaussian family do the work. x comes first in z
    because one Cholesky factor of C then holds the factors of ``C_xx`` and B.
(c) The ridge R blurs only y, as in note (b) of `gaussian.py`: ``tr(E[Lambda] R) / 2`` is subtracted from
    the expected log likelihood, and ``n R`` is added to B. This is ``E_e[log p(y + e | x)]``, which is at
    most ``log p(y | x)`` for each row. The density of a sequence is the product of these given its first p
    rows, with x as observed, so the bound is one of the unblurred sequence. Blurring x as well would
    also subtract ``tr(A' E[Lambda] A R) / 2``. That is looser, and would draw A to 0.
(d) Directions in which all steps are equal (constant or duplicate columns, and also ramps and columns that
    are constant in each sequence) are left out of y and of every lag. Their steps have a fixed narrow
    density about their mean.
(e) Empirical Bayes sets B, but never below the scale that expects steps of variance 1. A lower one expects
    ever narrower states: it doubles K without a gain on held-out data. A scale that cannot rise either
    is firm where there are many columns. There, states of few rows would be narrow beside their rows, so
    that noise would be cut into many states. The precision of the coefficients is learned in many columns,
    or if that is asked for. Held-out rows of motion capture, in 12 columns, then score 4 nats more each, but
    there are 33 states for 24, which agree less with labels by hand.

Symbols are those of ``doc/formulas_autoregressive.rst``. Source: Hughes (2016), Sec. 6.1.1.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._gaussian import quadratic_coefficients, scale_matrices, spd_inverse, spd_logdet
from .._kernels._responsibilities import Quadratic
from .autoregressive_gaps import GappedRegression
from .base import LastPrior, Likelihood, ObservationModel
from .covariance_shapes import FullShape, repaired
from .limits import LEAST, MOST, POSITIVE
from .scaling import ScaledLikelihood
from .step_scaling import find_step_scaling

_INTERCEPT_PRECISION = 1.0
# A smaller precision of coefficients is lost in rounding beside the scatter of the rows.
_LEAST_PRECISION = 1e-10
# How much larger than at first the scale of the prior may become: by a factor.
_MOST_SCALE = 1e4
# Of so many columns, the precision of coefficients is learned by default. The more coefficients a row has,
# the larger are the steps that a fixed precision expects: with 1, states of 20 to 60 columns are joined, or
# noise is cut into several.
_MANY_COLUMNS = 20
# Precisions of coefficients that may be learned.
_PRECISION_RANGE = (1e-3, 1e6)


class AutoregressivePrior(NamedTuple):
    """Prior of the regression of steps, in internal units; made by `autoregressive_prior`.

    Attributes
    ----------
    coef : ndarray, shape (D', p D')
        Mean of the coefficients.
    gram : ndarray, shape (p D', p D')
        Precision of the coefficients, as a multiple of the noise's.
    kappa, nu : float
        Precision of the intercept, likewise; degrees of freedom of the noise's precision.
    b : ndarray, shape (D', D')
        Inverse scale of the noise's precision.
    joint : ndarray, shape ((p + 1) D', (p + 1) D')
        The matrix that the prior adds to the scatter of z.
    """

    coef: np.ndarray
    gram: np.ndarray
    kappa: float
    nu: float
    b: np.ndarray
    joint: np.ndarray


def autoregressive_prior(coef, gram, kappa, nu, b):
    """`AutoregressivePrior` from its independent fields."""
    D, X = coef.shape
    joint = np.empty((X + D, X + D))
    joint[:X, :X] = gram
    joint[X:, :X] = coef @ gram
    joint[:X, X:] = joint[X:, :X].T
    joint[X:, X:] = b + coef @ gram @ coef.T
    return AutoregressivePrior(coef, gram, kappa, nu, b, joint)


class Regressions(NamedTuple):
    """Posteriors of K components.

    Attributes
    ----------
    coef : ndarray, shape (K, D', p D')
        Expected coefficients of the step.
    precision : ndarray, shape (K, D', D')
        Expected precision of the noise.
    gram : ndarray, shape (K, p D', p D')
        Inverse of ``C_xx``: covariance of the coefficients, as a multiple of the noise's.
    mean : ndarray, shape (K, (p + 1) D')
        Posterior mean of z.
    log_det, nu, kappa : ndarray, shape (K,)
        Log determinant of B; degrees of freedom; precision of the intercept.
    """

    coef: np.ndarray
    precision: np.ndarray
    gram: np.ndarray
    mean: np.ndarray
    log_det: np.ndarray
    nu: np.ndarray
    kappa: np.ndarray


class AutoregressiveObservation(ObservationModel):
    """Sequences in which each row is a linear function of the rows before it, plus Gaussian noise.

    ``y_t = A_1 y_{t-1} + ... + A_p y_{t-p} + b + e_t``. Each state has its own coefficients A, intercept b
    and covariance of the noise e. The first p rows of a sequence are taken as given.

    Parameters
    ----------
    order : int, default=1
        How many earlier rows each row depends on, p.
    coef_prior : array-like of shape (n_features, order * n_features), default=None
        Prior mean of the coefficients, lag 1 first, in the data's units. If None, it is the identity on
        lag 1 and 0 elsewhere, so that each row is expected to be the row before it plus the mean step.
    coef_precision_prior : float or {"auto"}, default=None
        Prior precision of each coefficient. A precision of c has the influence of c observations that lie
        one standard deviation of a step away from the mean. With ``"auto"`` it maximises the objective
        (empirical Bayes): rows of many columns and slow movements are then predicted better, by more states.
        None is ``"auto"`` for 20 columns or more, and 1 for fewer.
    degrees_of_freedom_prior : float, default=None
        Prior degrees of freedom of the noise's precision matrix, above ``n_features - 1``;
        ``n_features + 2`` if None.
    covariance_prior : array-like of shape (n_features, n_features), default=None
        Inverse scale matrix of the Wishart prior, in squared units of the data. If None, it is diagonal. It
        begins with the variance of the steps from row to row, and maximises the objective at or above that
        (empirical Bayes).
    reg_covar : float, default=1e-6
        Variance of the noise that every observation is taken to have, as a share of the variance of each
        column's steps.

    Notes
    -----
    A row with missing entries (NaN) counts as missing as a whole. Neither it nor the ``order`` rows after it
    are modelled. The sequence of states goes on through these rows without an observation.

    References
    ----------
    Hughes (2016), Sec. 6.1.1. E. B. Fox, Bayesian nonparametric learning of complex dynamical phenomena,
    PhD thesis, MIT, 2009.

    Examples
    --------
    >>> from sklearn_bnp import AutoregressiveObservation
    >>> observation = AutoregressiveObservation(order=2)
    """

    _parameter_constraints = {
        "order": [Interval(Integral, 1, None, closed="left")],
        "coef_prior": ["array-like", None],
        "coef_precision_prior": [
            Interval(Real, _LEAST_PRECISION, MOST, closed="both"),
            StrOptions({"auto"}),
            None,
        ],
        "degrees_of_freedom_prior": [POSITIVE, None],
        "covariance_prior": ["array-like", None],
        "reg_covar": [Interval(Real, LEAST, 1, closed="left")],
    }

    def __init__(
        self,
        order: int = 1,
        *,
        coef_prior: ArrayLike | None = None,
        coef_precision_prior: float | str | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        reg_covar: float = 1e-6,
    ) -> None:
        self.order = order
        self.coef_prior = coef_prior
        self.coef_precision_prior = coef_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.reg_covar = reg_covar

    needs_covariance = allows_missing = True

    @property
    def lags(self) -> int:
        """How many earlier rows the density of a row depends on."""
        return self.order

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for lagged rows with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        scaling = find_step_scaling(moments, self.order, self.reg_covar, streaming)
        complete = AutoregressiveLikelihood(
            scaling,
            self._prior(scaling),
            adapts_scale=self.covariance_prior is None,
            adapts_coef=self._learns_precision(scaling),
        )
        return complete if moments.observed is None else complete.with_missing()

    def _learns_precision(self, scaling):
        """Whether the precision of the coefficients maximises the objective."""
        if self.coef_precision_prior is None:
            return scaling.n_columns >= _MANY_COLUMNS
        return isinstance(self.coef_precision_prior, str)

    def _prior(self, scaling):
        D = scaling.n_features
        shape = FullShape(D)
        nu = self.degrees_of_freedom_prior
        nu = shape.default_nu if nu is None else nu
        if not nu > shape.least_nu:
            raise ValueError(
                f"degrees_of_freedom_prior={nu!r} must be greater than {shape.least_nu}; the default is "
                f"{shape.default_nu}."
            )
        given = self.coef_precision_prior
        precision = 1.0 if given is None or isinstance(given, str) else float(given)
        if self.covariance_prior is None:
            b = shape.constant(shape.mean_factor(nu))
        else:
            b = shape.from_user(self.covariance_prior, scaling.steps)
        coef = np.zeros((D, self.order * D))
        if self.coef_prior is not None:
            coef = scaling.given_coefficients(self.coef_prior)
        # coefficients of lags are those of x times this matrix, and have equal precisions
        gram = precision * scaling.from_lags @ scaling.from_lags.T
        return autoregressive_prior(coef, gram, _INTERCEPT_PRECISION, float(nu), b)


class AutoregressiveLikelihood(ScaledLikelihood):
    """Regression of steps on lags, for scaled rows; see the module's note.

    Parameters
    ----------
    scaling : StepScaling
        Scaling of the rows and of the steps between them.
    prior : AutoregressivePrior
        Prior of each component.
    adapts_scale : bool
        Whether empirical Bayes sets the scale of the prior of the noise, at or above that of ``prior``.
    adapts_coef : bool
        Whether it sets the precision of the coefficients.
    """

    quadratic = Quadratic.FULL
    adapts_scale = adapts_coef = False  # of models that were saved before these were learned

    def __init__(self, scaling, prior, *, adapts_scale=False, adapts_coef=False):
        steps = scaling.steps
        self.scaling, self.lags = scaling, scaling.lags
        self.may_be_far_out = scaling.lags > 1  # the scaling is found without the earliest lags
        self.prior = prior
        self.adapts_scale, self.adapts_coef = adapts_scale, adapts_coef
        self.adapts_prior = adapts_scale or adapts_coef
        self.shape = FullShape(steps.n_features)
        self.n_lagged = scaling.lags * steps.n_features
        self.n_features = self.n_lagged + steps.n_features
        self.ridge = np.concatenate([np.zeros(self.n_lagged), steps.ridge])
        self.row_constant = steps.row_constant
        self._last_norm = LastPrior()

    @property
    def copies_tell(self):
        return not self.scaling.steps.is_continuous

    @property
    def log_cell(self):
        return self.scaling.steps.log_cell

    def with_missing(self):
        """The family for rows with missing entries; see `Likelihood`."""
        return GappedRegression(self)

    def mean(self, prior, s):
        """Posterior mean of z (Dz,) given statistics (P,)."""
        return self._scatter(prior, s[np.newaxis])[1][0]

    def _scatter(self, prior, s):
        """Scatter C (K, Dz, Dz) of z about its posterior mean (K, Dz); only upper triangles are set."""
        K, D = len(s), self.n_features
        c, mean = np.empty((K, D, D)), np.empty((K, D))
        scale_matrices(s, prior.joint, self.ridge, np.zeros(D), prior.kappa, c, mean)
        return repaired(c, prior.joint, self.ridge, s, rough=1.0), mean

    def _log_norm(self, prior, s):
        """Log normaliser of the posterior, without terms that depend only on D'."""
        c, _ = self._scatter(prior, s)
        spd_logdet(c, np.empty(len(s)))
        diagonal = np.ascontiguousarray(np.diagonal(c, axis1=1, axis2=2))  # of the Cholesky factor
        logs = 2.0 * np.log(diagonal)
        log_det_x = logs[:, : self.n_lagged].sum(axis=1)
        log_det_b = logs[:, self.n_lagged :].sum(axis=1)
        nu, kappa = prior.nu + s[:, -1], prior.kappa + s[:, -1]
        out = self.shape.log_norm(nu, log_det_b)
        return out - 0.5 * self.shape.D * (log_det_x + np.log(kappa))

    def _prior_norm(self, prior):
        """Log normaliser of the prior."""
        return self._log_norm(prior, np.zeros((1, self.n_statistics)))

    def evidence(self, prior, s):
        rows = np.ascontiguousarray(s, dtype=float).reshape(-1, s.shape[-1])
        out = self._log_norm(prior, rows) - self._last_norm(self._prior_norm, prior)
        return (out + rows[:, -1] * self.row_constant).reshape(s.shape[:-1])

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            before, prior = prior, self._next_prior(prior, self._regressions(prior, s))
            if prior is before:
                break
        return prior

    def _next_prior(self, prior, q):
        """The prior after one step of empirical Bayes; the same object if nothing changes."""
        coef, gram, kappa, nu, b, _ = prior
        n, D = len(q.nu), self.shape.D
        if self.adapts_scale:
            least = np.diagonal(self.prior.b)
            diagonal = n * nu / self.shape.diagonal(q.precision).sum(axis=0)
            b = self.shape.constant(np.clip(diagonal, least, _MOST_SCALE * least))
        if self.adapts_coef:
            away, unit = q.coef - coef, self.prior.gram
            total = np.sum((q.precision @ away) * (away @ unit)) + D * np.sum(q.gram * unit)
            gram = np.clip(n * D * self.n_lagged / total, *_PRECISION_RANGE) * unit
        if np.array_equal(b, prior.b) and np.array_equal(gram, prior.gram):
            return prior
        return autoregressive_prior(coef, gram, kappa, nu, b)

    def prior_distance(self, old, new):
        # the evidence has half the logarithm of the precision for each coefficient
        b = abs(np.log(np.trace(old.b) / np.trace(new.b)))
        gram = abs(np.log(np.trace(old.gram) / np.trace(new.gram)))
        return max(b, 0.5 * gram)

    def _regressions(self, prior, s):
        """`Regressions` given statistics (K, P)."""
        c, mean = self._scatter(prior, s)
        X, unused = self.n_lagged, np.empty(len(s))
        gram = c[:, :X, :X].copy()  # c is still needed
        spd_inverse(gram, unused)
        spd_logdet(c, unused)
        root = np.triu(c)  # C = root' root
        coef = np.linalg.solve(root[:, :X, :X], root[:, :X, X:]).transpose(0, 2, 1)
        noise = root[:, X:, X:]
        precision, log_det = self.shape.invert(
            np.ascontiguousarray(noise.transpose(0, 2, 1) @ noise)
        )
        nu = prior.nu + s[:, -1]
        precision = self.shape.times(nu, precision)
        return Regressions(coef, precision, gram, mean, log_det, nu, prior.kappa + s[:, -1])

    def _quadratic(self, q, share):
        """Matrices L (K, Dz, Dz) of a quadratic form in z - mean.

        The form is the squared residual, relative to the noise, plus ``share`` times
        ``(x - mean)' inv(C_xx) (x - mean)``.
        """
        X = self.n_lagged
        out = np.empty((len(q.nu), self.n_features, self.n_features))
        out[:, X:, X:] = q.precision
        out[:, X:, :X] = -q.precision @ q.coef
        out[:, :X, X:] = out[:, X:, :X].transpose(0, 2, 1)
        out[:, :X, :X] = share * q.gram - q.coef.transpose(0, 2, 1) @ out[:, X:, :X]
        return out

    def coefficients(self, prior, s):
        q = self._regressions(prior, s)
        out = np.zeros((len(s), self.n_statistics))
        log_precision = self.shape.digamma_sum(q.nu) - q.log_det
        out[:, -1] = self.row_constant + 0.5 * (log_precision - self.shape.D / q.kappa)
        quadratic_coefficients(self._quadratic(q, self.shape.D), q.mean, self.ridge, out)
        return out

    def seeding_points(self, prior, s, z, *, whiten=True):
        """x in units of its spread, and residuals in units of the noise.

        Components differ in where x lies as well as in what follows. This is the geometry of the joint
        Gaussian of z, whose distances take account of both.
        """
        q = self._regressions(prior, s[np.newaxis])
        precision = self._quadratic(q, q.nu[0])[0]  # nu inv(C)
        return self.shape.whiten(z - q.mean[0].astype(z.dtype), precision, whole=whiten)

    def log_predictive(self, prior, s, z):
        """Student densities of the step of each row, given its lags."""
        q, D, X = self._regressions(prior, s), self.shape.D, self.n_lagged
        out = np.empty((len(z), len(s)))
        for k in range(len(s)):
            x = z[:, :X] - q.mean[k, :X]  # float64, as the mean is
            residual = z[:, X:] - q.mean[k, X:] - x @ q.coef[k].T
            widen = (
                1.0 + 1.0 / q.kappa[k] + np.einsum("ni,ij,nj->n", x, q.gram[k], x, optimize=True)
            )
            square = np.einsum(
                "ni,ij,nj->n", residual, q.precision[k] / q.nu[k], residual, optimize=True
            )
            out[:, k] = -0.5 * D * np.log(widen)
            out[:, k] -= 0.5 * (q.nu[k] + 1.0) * np.log1p(square / widen)
        ends = self.shape.log_gamma(q.nu + 1.0) - self.shape.log_gamma(q.nu)
        constant = ends - 0.5 * D * np.log(np.pi) - 0.5 * q.log_det
        return out + constant + self.scaling.steps.log_density_constant

    def attributes(self, prior, s):
        q = self._regressions(prior, s)
        X = self.n_lagged
        at_mean = q.mean[:, X:] - np.einsum("kij,kj->ki", q.coef, q.mean[:, :X])
        coef, intercept = self.scaling.regressions_back(q.coef, at_mean)
        steps = self.scaling.steps
        return {
            "coef_": coef,
            "intercept_": intercept,
            "covariances_": steps.matrices_back(np.linalg.inv(q.precision)),
            "precisions_": steps.matrices_back(q.precision, inverse=True),
        }

    def sample(self, attributes, labels, rng):
        """Rows of one sequence, in the data's units.

        The rows before it are the fixed point of the first component, or the mean of the data if sequences
        would not return to such a point.
        """
        coef, intercept = attributes["coef_"], attributes["intercept_"]
        D = self.scaling.n_columns
        noise = rng.standard_normal((len(labels), D))
        noise = self.shape.colour(noise, attributes["covariances_"], labels)
        out = np.empty_like(noise)
        if len(labels):
            start = self.scaling.resting_point(coef[labels[0]], intercept[labels[0]])
            past = np.tile(start, self.lags)
        for t, k in enumerate(labels):
            out[t] = coef[k] @ past + intercept[k] + noise[t]
            past = np.concatenate([out[t], past[:-D]])
        return out
