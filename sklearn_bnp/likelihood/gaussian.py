"""Gaussian likelihoods with Normal-Wishart, Normal-Gamma and Wishart priors.

Design note
-----------
(a) Full, diagonal and spherical covariances, with a mean or with the mean fixed at zero, are one family: the
    posterior is ``(nu, m, kappa, B)`` with ``nu = nu0 + (observations)`` and ``B = B0 + scatter``. Only the
    shape of B differs, and each shape is a small class of `covariance_shapes.py`.
(b) A ridge R (``reg_covar``, ``resolution``) is added to the scatter once per observation, and
    ``tr(E[Lambda] R) / 2`` is subtracted from the expected log likelihood. This is the likelihood of an
    observation blurred by noise of covariance R. It is below that of the observation itself, so the
    objective stays a lower bound and monotone, while duplicate columns, repeated rows and rounded values
    do no harm.
(c) B0 is diagonal and set by empirical Bayes, unless the user gives it: maximising the objective over B0
    gives the fixed point ``b_d = K nu0 / sum_k E[Lambda_k]_dd``.
(d) kappa0 is set in the same way: ``kappa0 = K D / sum_k (D / kappa_k + E-distance_k)``, where the distance
    of the posterior mean from the prior's is under ``E[Lambda_k]``. Both are steps of EM in which means
    and precisions are the hidden variables, and the step separates: made at once, they do not lower the
    objective. Clusters that are narrow beside the spread of the data need a kappa0 of about the square of
    the ratio; with a greater one, ``kappa0 (m_k - m0)(m_k - m0)'`` makes their covariances too wide. The
    default is the upper bound. So a single component, whose mean is the prior's, keeps it, and
    kappa0 does not grow where means coincide.

Symbols are those of ``doc/formulas.rst``. Sources: Hughes (2016), Sec. 2.2; Hughes and Sudderth (2013),
supplement Sec. 1.
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from ..inputs.advice import warn_caller
from .base import LastPrior, Likelihood, ObservationModel
from .cells import Blur, CellRows, standardised_cells
from .covariance_shapes import SHAPES
from .gaussian_missing import incomplete_gaussian
from .limits import LEAST, POSITIVE, points_within
from .scaling import ScaledLikelihood, find_scaling
from .seeding import directions

_DEFAULT_KAPPA = 0.01
# Of a kappa that is learned: the bounds. The least one is that of means 1e6 of their components' widths away.
# With .03 to .1 as the greatest, more clusters that overlap were found (mean adjusted Rand index of 64 drawn
# mixtures .836 -> .855). But 20,000 images had 170 to 200 components for 80, and ended .07 to .19 nats a row
# lower, though the prior suited them better: components near each other are harder to search.
_KAPPA_RANGE = (1e-12, _DEFAULT_KAPPA)
_DEFAULT_SCALE = 0.1  # prior mean of a component's variance, the data's being 1
_SCALE_RANGE = (1e-8, 1e2)
# Least noise of a state that a prior of sequences expects, the variance of the data being 1.
_LEAST_NOISE = 1e-4
# Correlation of successive rows' noise up to which a prior of sequences expects the noise within states,
# and from which on it expects the variances of all rows. Noise with a coefficient of 0.6 makes narrow
# states pay: the bound then prefers two or three states for each true one.
_MEMORY = 0.45, 0.6
# Largest step to which a column may have been recorded, as a multiple of its largest value.
_MOST_STEP = 1e7
# The warning of too few rows is for so many columns: with fewer, there would be hardly any rows at all.
_MANY_COLUMNS = 10


def _warn_of_few_rows(n_rows, n_features):
    """Warn if the scatter of all rows, whose rank is n_rows - 1 at most, has no inverse.

    New rows are then far from all components in directions of which the data say nothing. Of 160 rows with
    500 columns of noise, held-out scores were -1.8e8 for full covariances and -713 for diagonal ones; of 11
    rows with 10 columns they were -17 and -15.
    """
    n_numbers = n_features * (n_features + 1) // 2
    if n_features >= _MANY_COLUMNS and n_rows <= n_features:
        warn_caller(
            f"X has {n_rows} rows and {n_features} columns, which are too few rows for "
            f"covariance_type='full': each component has {n_numbers} covariances, which only the prior "
            "tells, and scores of new rows may be very low. Use observation=GaussianObservation('diag'), or "
            "reduce the columns by sklearn.decomposition.PCA."
        )


class NormalWishartPrior(NamedTuple):
    """Prior in internal units: mean ``m`` (D,), pseudo-counts ``kappa`` and ``nu``, inverse scale ``b``."""

    m: np.ndarray | None
    kappa: float
    nu: float
    b: np.ndarray


class GaussianParameters(ObservationModel):
    """Base class of models of Gaussian components: the parameters that they share."""

    _parameter_constraints = {
        "covariance_type": [StrOptions(set(SHAPES))],
        "mean_prior": ["array-like", None],
        "mean_precision_prior": [POSITIVE, None],
        "degrees_of_freedom_prior": [POSITIVE, None],
        "covariance_prior": [
            StrOptions({"data", "increments"}),
            "array-like",
            Interval(Real, 0, None, closed="neither"),
            None,
        ],
        "reg_covar": [Interval(Real, LEAST, 1, closed="left")],
        "resolution": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
            None,
        ],
    }
    allows_missing = True

    def __init__(
        self, shape, mean, mean_precision, degrees_of_freedom, covariance, reg, resolution
    ):
        self.covariance_type = shape
        self.mean_prior = mean
        self.mean_precision_prior = mean_precision
        self.degrees_of_freedom_prior = degrees_of_freedom
        self.covariance_prior = covariance
        self.reg_covar = reg
        self.resolution = resolution

    @property
    def needs_step(self) -> bool:
        """Whether `bind` needs the steps to which columns were recorded."""
        return isinstance(self.resolution, str)


class GaussianObservation(GaussianParameters):
    """Gaussian observations with a conjugate prior.

    Parameters
    ----------
    covariance_type : {"full", "diag", "spherical"}, default="full"
        Shape of each component's covariance. With full and diagonal covariances, results do not depend on
        the units of the columns. With spherical ones they do: the columns in which the data vary most
        decide. Then bring the columns to comparable units first, by ``StandardScaler`` for example.
    zero_mean : bool, default=False
        Whether all means are 0, in the data's own units. The prior of precisions is then a Wishart (Gamma)
        distribution.
    mean_prior : array-like of shape (n_features,), default=None
        Prior of the means, in the data's units; the mean of the data if None.
    mean_precision_prior : float, default=None
        How many observations the prior of a mean is worth. If None, it begins with 0.01, and maximises the
        objective at or below that (empirical Bayes): clusters that are narrow beside the spread of the data
        need a much smaller one.
    degrees_of_freedom_prior : float, default=None
        Prior degrees of freedom of a precision matrix: the larger, the firmer is the prior of covariances.
        It must be above ``n_features - 1`` for full covariances, and above 0 for the others. If None, it is
        ``n_features + 2`` and 3, and up to ``n_features`` more with ``covariance_prior="data"`` or
        ``"increments"``.
    covariance_prior : array-like or {"data", "increments"}, default=None
        How wide components are expected to be: the inverse scale matrix of the Wishart prior, in squared
        units of the data. Its shape is (n_features, n_features) for full covariances, (n_features,) for
        diagonal ones, and it is a float for spherical ones. The prior expects covariances near
        ``covariance_prior / degrees_of_freedom_prior``.

        - None: it is diagonal, and maximises the objective (empirical Bayes).
        - ``"data"``: the prior expects the variances of all the data.
        - ``"increments"`` is for sequences, and `HDPHMMVB` uses it in place of None. The prior begins with
          the variances of rows about the levels of their states, which follow from the differences between
          successive rows. If the noise of successive rows is correlated, such states would be split into
          ever narrower ones. So between correlations of 0.45 and 0.6 it changes gradually to ``"data"``,
          and above 0.6 it is ``"data"``. From there it maximises the objective, but in no column does it
          fall below where it began.
    reg_covar : float, default=1e-6
        Variance of the noise that every observation is taken to have, as a share of the variance of each
        column: above 0 and below 1. It keeps components from collapsing on repeated rows.
    resolution : {"auto"}, float or array-like of shape (n_features,), or None, default="auto"
        Step to which each column was recorded, in the data's units: 1 for whole numbers, 0 for none.
        Every observation is also taken to have the noise of rounding, of variance ``resolution ** 2 / 12``,
        so that no component is narrower than the step. ``"auto"`` finds the step from values and rows that
        occur repeatedly, and is 0 for continuous data; None is 0. Where the distances between such values are
        uneven, as those between logarithms of counts, each value has a step of its own.

    Notes
    -----
    Entries that are missing (NaN) are integrated out: a row is used for the columns that it has. For diagonal
    and spherical covariances this is exact. For full ones, each component has a Gaussian for the missing
    entries, given the observed entries of the row.

    References
    ----------
    Hughes (2016), Sec. 2.2; Hughes and Sudderth (2013), supplement Sec. 1.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, GaussianObservation
    >>> model = DPMixtureVB(observation=GaussianObservation(covariance_type="diag"))
    """

    _parameter_constraints = {
        **GaussianParameters._parameter_constraints,
        "zero_mean": ["boolean"],
    }

    def __init__(
        self,
        covariance_type: str = "full",
        *,
        zero_mean: bool = False,
        mean_prior: ArrayLike | None = None,
        mean_precision_prior: float | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        reg_covar: float = 1e-6,
        resolution: Any = "auto",
    ) -> None:
        super().__init__(
            covariance_type, mean_prior, mean_precision_prior, degrees_of_freedom_prior,
            covariance_prior, reg_covar, resolution,
        )  # fmt: skip
        self.zero_mean = zero_mean

    @property
    def needs_increments(self) -> bool:
        """Whether `bind` needs the differences between successive rows of sequences."""
        return isinstance(self.covariance_prior, str) and self.covariance_prior == "increments"

    @property
    def needs_covariance(self) -> bool:
        """Whether `bind` needs the covariances of the columns, and not only their variances."""
        return self.covariance_type == "full"

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        if not streaming and self.covariance_type == "full":
            _warn_of_few_rows(moments.n_rows, len(moments.mean))
        scaling = find_scaling(
            moments,
            step=self._step(moments),
            zero_mean=self.zero_mean,
            common_scale=self.covariance_type == "spherical",
            rotate=self.covariance_type == "full",
            floor=self.reg_covar,
            streaming=streaming,
        )
        shape = SHAPES[self.covariance_type](scaling.n_features)
        prior = self._prior(moments, scaling, shape)
        cells = standardised_cells(moments.cells, scaling) if self.needs_step else []
        family = partial(GaussianInCells, cells) if cells else GaussianLikelihood
        complete = family(
            scaling, shape, not self.zero_mean, prior,
            self.covariance_prior is None or self.needs_increments,
            self.mean_precision_prior is None and not self.zero_mean,
            only_rises=self.needs_increments,
        )  # fmt: skip
        return complete if moments.observed is None else incomplete_gaussian(complete, moments)

    def _step(self, moments):
        if self.resolution is None:
            return 0.0
        if self.needs_step:
            return moments.typical_step
        D = len(moments.mean)
        step = np.full(D, self.resolution) if np.ndim(self.resolution) == 0 else self.resolution
        step = _as_vector(step, "resolution", D)
        most = _MOST_STEP * moments.magnitude
        if np.any((step < 0) | (step > most)):
            raise ValueError(
                f"resolution={self.resolution!r} must hold no negative number, and none that is more than "
                f"{_MOST_STEP:g} times the largest value of its column, {moments.magnitude.min():g} or more."
            )
        return step

    def for_sequences(self) -> ObservationModel:
        """The model with defaults that suit rows of sequences; see `ObservationModel.for_sequences`."""
        if self.covariance_prior is not None:
            return self
        return clone(self).set_params(covariance_prior="increments")

    def _prior(self, moments, scaling, shape):
        named = isinstance(self.covariance_prior, str)
        expected, width = self._expected(moments, scaling) if named else (_DEFAULT_SCALE, 0.0)
        nu = self.degrees_of_freedom_prior
        if nu is None:
            nu = shape.default_nu + width * scaling.n_features
        if not nu > shape.least_nu:
            raise ValueError(
                f"degrees_of_freedom_prior={nu!r} must be greater than {shape.least_nu} for "
                f"{self.covariance_type} covariances; the default is {shape.default_nu}."
            )
        kappa = _DEFAULT_KAPPA if self.mean_precision_prior is None else self.mean_precision_prior
        m = np.zeros(scaling.n_features)
        if self.mean_prior is not None and not self.zero_mean:
            given = _as_vector(self.mean_prior, "mean_prior", len(scaling.shift))
            m = points_within(scaling, given, "mean_prior")
        if self.covariance_prior is None or named:
            b = shape.constant(expected * shape.mean_factor(nu))
        else:
            b = shape.from_user(self.covariance_prior, scaling)
        return NormalWishartPrior(None if self.zero_mean else m, float(kappa), float(nu), b)

    def _expected(self, moments, scaling):
        """Expected variances (D',) or 1 in internal units, and how far they are those of all the data."""
        if not self.needs_increments:
            return 1.0, 1.0
        if moments.increments is None:
            raise ValueError(
                "covariance_prior='increments' is for sequences, whose rows are in order (HDPHMMVB); use "
                "None or 'data'."
            )
        noise = moments.increments.noise(moments.variance)
        if noise is None:
            return 1.0, 1.0
        low, high = _MEMORY
        width = float(np.clip((noise.memory - low) / (high - low), 0.0, 1.0))
        variance = noise.variance * np.square(moments.magnitude / scaling.scale)
        if scaling.basis is not None:
            variance = variance @ np.square(scaling.basis)
        variance = np.clip(variance, _LEAST_NOISE, 1.0)
        return variance ** (1.0 - width), width


def _as_vector(value, name, size):
    value = np.asarray(value, dtype=float)
    if value.shape != (size,):
        raise ValueError(f"{name} must be {size} numbers, one a column; got shape {value.shape}.")
    if not np.isfinite(value).all():
        d = int(np.flatnonzero(~np.isfinite(value))[0])
        raise ValueError(f"{name} must be finite numbers; that of column {d} is {value[d]}.")
    return value


class GaussianLikelihood(ScaledLikelihood):
    """Gaussian family for scaled rows; see the module's note.

    Parameters
    ----------
    scaling : Scaling
        Scaling of the rows.
    shape : FullShape, DiagShape or SphericalShape
        Shape of the covariances.
    linear : bool
        Whether components have means; otherwise these are 0.
    prior : NormalWishartPrior
        Prior in scaled units.
    adapts_scale, adapts_kappa : bool
        Whether empirical Bayes sets the scale and the kappa of the prior.
    only_rises : bool
        Whether that scale never falls below the one of ``prior``, in any column.
    """

    # of models that were saved before kappa was learned, or before scales that rise
    adapts_kappa = scale_is_given = scale_only_rises = False
    blur: Any = None  # the `Blur` of a family in which the noise of rows depends on their values

    def __init__(
        self, scaling, shape, linear, prior, adapts_scale, adapts_kappa=False, only_rises=False
    ):
        self.scaling = scaling
        self.shape = shape
        self.linear = linear
        self.quadratic = shape.quadratic
        self.n_features = scaling.n_features
        self.prior = prior
        self.adapts_prior = adapts_scale or adapts_kappa
        self.scale_is_given, self.adapts_kappa = not adapts_scale, adapts_kappa
        self.scale_only_rises = only_rises
        self.ridge = scaling.ridge
        self._last_norm = LastPrior()
        self.row_constant = scaling.row_constant

    def with_missing(self):
        """The family for rows with missing entries; see `Likelihood`."""
        return incomplete_gaussian(self)

    @property
    def spread_of_means(self):
        return 1.0 if self.linear and not self.adapts_kappa else np.inf

    @property
    def adapts_scale(self):
        return self.adapts_prior and not self.scale_is_given

    def _scatter(self, prior, s):
        """Posterior inverse scales B and means (K, D) from statistics (K, P)."""
        return self.shape.scatter(prior, s, self.ridge)

    def _log_norm(self, nu, kappa, log_det):
        """Log normaliser of the Normal-Wishart, without terms that depend only on D."""
        out = self.shape.log_norm(nu, log_det)
        if self.linear:
            out -= 0.5 * self.n_features * np.log(kappa)
        return out

    def evidence(self, prior, s):
        rows = np.ascontiguousarray(np.atleast_2d(s))
        n = rows[:, -1]
        log_det = self.shape.log_det(self._scatter(prior, rows)[0])
        out = self._log_norm(prior.nu + self.shape.rows_a_point * n, prior.kappa + n, log_det)
        out += n * self.row_constant - self._last_norm(self._prior_norm, prior)
        return out if np.ndim(s) == 2 else out[0]

    def _prior_norm(self, prior):
        """Log normaliser of the prior."""
        log_det = self.shape.log_det(self.shape.own(prior.b))
        return self._log_norm(np.array([prior.nu]), np.array([prior.kappa]), log_det)

    def _precision(self, prior, s):
        """``E[Lambda]``, posterior means, log determinants of B and degrees of freedom."""
        b, mean = self._scatter(prior, s)
        inverse, log_det = self.shape.invert(b)
        nu = prior.nu + self.shape.rows_a_point * s[:, -1]
        return self.shape.times(nu, inverse), mean, log_det, nu

    def coefficients(self, prior, s):
        precision, mean, log_det, nu = self._precision(prior, s)
        out = np.zeros((len(s), self.n_statistics))
        out[:, -1] = self.row_constant + 0.5 * (
            self.shape.digamma_sum(nu) - self.shape.expand(log_det)
        )
        if self.linear:
            out[:, -1] -= 0.5 * self.n_features / (prior.kappa + s[:, -1])
        self.shape.fill_coefficients(out, precision, mean, self.ridge)
        return out

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            precision, mean, _, _ = self._precision(prior, s)
            before, prior = prior, self.next_prior(prior, precision, mean, prior.kappa + s[:, -1])
            if prior is before:
                break
        return prior

    def next_prior(self, prior, precision, mean, kappa):
        """The prior after one step of empirical Bayes; the same object if nothing changes.

        Parameters
        ----------
        prior : NormalWishartPrior or CorrelatedPrior
        precision : ndarray
            ``E[Lambda]`` in the form of the shape.
        mean : ndarray, shape (K, D), or None
            Posterior means.
        kappa : ndarray, shape (K,) or (K, D)
            Posterior pseudo-counts of the means, of all columns or of each.
        """
        changes = {}
        if self.adapts_scale:
            diagonal = self.shape.diagonal(precision)
            b = len(diagonal) * prior.nu / diagonal.sum(axis=0)
            least, most = (self.shape.mean_factor(prior.nu) * v for v in _SCALE_RANGE)
            if self.scale_only_rises:
                least = self.shape.diagonal(self.shape.own(self.prior.b))[0]
            # np.clip takes longer than all else that is done with so few numbers
            changes["b"] = self.shape.constant(np.minimum(np.maximum(b, least), most))
        if self.adapts_kappa:
            total = self.shape.square(precision, mean - prior.m).sum()
            total += mean.size / kappa.size * (1.0 / kappa).sum()
            least, most = _KAPPA_RANGE
            changes["kappa"] = min(max(float(mean.size / total), least), most)
        return prior if changes == {"kappa": prior.kappa} else prior._replace(**changes)

    def prior_distance(self, old, new):
        a, b = (np.mean(self.shape.diagonal(self.shape.own(p.b))) for p in (old, new))
        # the evidence has half the logarithm of kappa for each mean and column, and nu / 2 times that of b
        return max(abs(np.log(a / b)), 0.5 * abs(np.log(old.kappa / new.kappa)))

    def seeding_points(self, prior, s, z, *, whiten=True):
        precision, mean, _, _ = self._precision(prior, s[np.newaxis])
        return self.points_under(z, precision[0], None if mean is None else mean[0], whiten)

    def points_under(self, z, precision, mean, whiten):
        """`seeding_points` given ``E[Lambda]`` and the posterior mean (D,), or None for the origin."""
        centred = z.copy() if mean is None else z - mean.astype(z.dtype)
        if not whiten and self.scaling.is_rotated:
            return self._points_of_columns(centred, precision)
        y = self.shape.whiten(centred, precision, whole=whiten)
        return y if self.linear else directions(y)

    def _points_of_columns(self, centred, precision):
        """Points in units of the spread of each column, where axes are no columns.

        Along the axes of all rows, which are uncorrelated, such units would whiten the rows. Clusters that
        lie along few of many axes would be lost.
        """
        basis = self.scaling.basis
        variance = np.einsum("dj,jk,dk->d", basis, np.linalg.inv(precision), basis, optimize=True)
        units = np.maximum(np.sqrt(variance), np.sqrt(np.finfo(float).tiny))
        y = centred @ (basis.T / units).astype(centred.dtype)
        return y if self.linear else directions(y)

    def log_predictive(self, prior, s, z):
        b, mean = self._scatter(prior, s)
        kappa = prior.kappa + s[:, -1]
        shrink = kappa / (kappa + 1.0) if self.linear else np.ones(len(s))
        nu = prior.nu + self.shape.rows_a_point * s[:, -1]
        z = z.astype(np.float64, copy=False)
        out = self.shape.log_student(z, b, mean, shrink, nu)
        out += self.scaling.log_density_constant
        return out

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; the covariance without the row has a closed form (rank-one changes)."""
        b, mean = self._scatter(prior, s)
        z, shares = (np.ascontiguousarray(v, dtype=np.float64) for v in (z, shares))
        n = np.ascontiguousarray(s[:, -1])
        out = self.shape.log_student_without(z, b, mean, prior, n, shares)
        out += self.scaling.log_density_constant
        return out

    def attributes(self, prior, s):
        precision, mean, _, _ = self._precision(prior, s)
        return self.attributes_of(precision, mean)

    def attributes_of(self, precision, mean):
        """`attributes` given ``E[Lambda]`` and posterior means (K, D), or None for the origin."""
        covariances, precisions, cholesky = self.shape.attributes(precision, self.scaling)
        at_origin = np.zeros((len(precision), len(self.scaling.shift)))
        return {
            "means_": at_origin if mean is None else self.scaling.points_back(mean),
            "covariances_": covariances,
            "precisions_": precisions,
            "precisions_cholesky_": cholesky,
        }

    def sample(self, attributes, labels, rng):
        noise = rng.standard_normal((len(labels), len(self.scaling.shift)))
        noise = self.shape.colour(noise, attributes["covariances_"], labels)
        return attributes["means_"][labels] + noise


class GaussianInCells(CellRows, GaussianLikelihood):
    """Gaussian family for rows of which some columns have cells of unequal widths; see `cells.py`.

    Parameters
    ----------
    cells : list of Cells
        Cells of these columns.
    *args, **params
        Those of `GaussianLikelihood`.
    """

    def __init__(self, cells, *args, **params):
        super().__init__(*args, **params)
        self.blur = Blur(cells, self.scaling, self.quadratic)
        self.ridge = np.maximum(self.ridge - self.blur.mean, 0.0)

    def without_cells(self):
        """The family with the ridge alone."""
        plain = GaussianLikelihood.__new__(GaussianLikelihood)
        plain.__dict__.update({k: v for k, v in self.__dict__.items() if k != "blur"})
        return plain
