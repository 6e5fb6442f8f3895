"""Gaussians whose rows are correlated with the row before: dynamics that all components share.

The model is ``x_t = mu + phi (x_{t-1} - mu) + e_t`` with ``e_t ~ N(0, (1 - phi^2) Sigma)``. Here mu and Sigma
are those of the component, and phi is one number for all. With the probability epsilon a row starts anew
instead: ``x_t ~ N(mu, Sigma)``, independently of the row before.

Design note
-----------
(a) Sigma is the covariance of rows far apart, so that a component is a Gaussian, and ``phi = 0`` is
    `GaussianObservation`. With one phi for all columns, ``y = (x_t - phi x_{t-1}) / sqrt(1 - phi^2)`` is
    ``N(a mu, Sigma)`` with ``a^2 = (1 - phi) / (1 + phi)``. So the posterior stays Normal-Wishart: a row is
    one observation of Sigma, and a^2 observations of mu. With a phi for each column it would not.
(b) phi and epsilon are part of the prior, and empirical Bayes sets them. The statistics hold the second
    moments of pairs of rows, from which those of y follow for any phi.
(c) The row before the first row of a visit to a state belongs to another state, with another mean. Without
    new starts, such rows are so unlikely that states of single rows are made for them. Whether a row starts
    anew is a hidden variable of the row. Its posterior given the component is one more factor of the
    objective. Statistics are therefore those of rows that go on, those of rows that start anew, and the
    entropy of that factor, as for missing entries in `full_gaussian_missing.py`.
(d) The ridge R blurs x_t, not y: it is added to the scatter as ``R / (1 - phi^2)`` for a row that goes
    on. So the noise e_t is never less than R, and repeated rows do not draw phi to 1.
(e) Rows are prepared in double precision. The squares of y are differences of much larger squares.

Symbols are those of ``doc/formulas_correlated.rst``.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .base import Likelihood
from .correlated_rows import MOST_CORRELATION, CorrelatedGaussian, CorrelatedPrior
from .gaussian import GaussianObservation, GaussianParameters
from .new_starts import MOST_RESTART, RestartingGaussian

# Where empirical Bayes starts: no correlation, and one new start in twenty rows. They are in the order
# of the fields of `CorrelatedPrior`.
_FIRST = {"autocorrelation": 0.0, "restart_probability": 0.05}


class CorrelatedGaussianObservation(GaussianParameters):
    """Gaussian states with noise that is correlated between successive rows.

    A state has a mean and a covariance, as in `GaussianObservation`. Within a state, the deviation of a row
    from the mean is ``autocorrelation`` times that of the row before, plus noise. ``autocorrelation`` is the
    same in all states. With the probability ``restart_probability`` a row starts anew, independently of the
    row before, as rows often do when the state changes. The first row of each sequence is taken as given.

    Independent Gaussian states explain such rows only by many states. Use this model for rows of overlapping
    windows, smoothed signals, and measurements in quick succession.

    Parameters
    ----------
    covariance_type : {"full", "diag", "spherical"}, default="full"
        Shape of each state's covariance.
    autocorrelation : float or {"auto"}, default="auto"
        Correlation of a row with the row before within a state, from 0 to 0.999. With ``"auto"``, it
        maximises the objective (empirical Bayes). With 0, rows are independent given their states.
    restart_probability : float or {"auto"}, default="auto"
        Probability that a row starts anew, from 0 to 0.5. With ``"auto"``, it maximises the objective.
    mean_prior : array-like of shape (n_features,), default=None
        Prior of the means, in the data's units; the mean of the data if None.
    mean_precision_prior : float, default=None
        How many independent observations the prior of a mean is worth; see `GaussianObservation`.
    degrees_of_freedom_prior : float, default=None
        Prior degrees of freedom of a precision matrix; see `GaussianObservation`.
    covariance_prior : array-like or {"data"}, default=None
        Inverse scale matrix of the Wishart prior; see `GaussianObservation`. If None, it is diagonal and
        maximises the objective. In sequences this is safe here: as correlation is part of the model, states
        are not split into ever narrower ones.
    reg_covar : float, default=1e-6
        Variance of the noise that every observation is taken to have; see `GaussianObservation`.
    resolution : {"auto"}, float or array-like of shape (n_features,), or None, default="auto"
        Step to which each column was recorded; see `GaussianObservation`.

    Notes
    -----
    A row with missing entries (NaN) counts as missing as a whole. Neither it nor the row after it is
    modelled. The sequence of states goes on through these rows without an observation.

    References
    ----------
    J. D. Hamilton, A new approach to the economic analysis of nonstationary time series and the business
    cycle, Econometrica 57, 1989: states with means of their own and shared autoregressive coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import HDPHMMVB
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(1500, 2))
    >>> for t in range(1, 1500):
    ...     noise[t] = 0.8 * noise[t - 1] + 0.6 * noise[t]
    >>> means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    >>> X = means[np.repeat(rng.integers(3, size=60), 25)] + noise
    >>> model = HDPHMMVB(observation="correlated_gaussian", random_state=0).fit([X])
    >>> model.n_components_
    3
    >>> model.autocorrelation_.round(1)
    array([0.8, 0.8, 0.8])
    """

    _parameter_constraints = {
        **GaussianParameters._parameter_constraints,
        # no "increments": correlation of rows is a part of this model
        "covariance_prior": [
            StrOptions({"data"}),
            *GaussianParameters._parameter_constraints["covariance_prior"][1:],
        ],
        "autocorrelation": [
            StrOptions({"auto"}),
            Interval(Real, 0, MOST_CORRELATION, closed="both"),
        ],
        "restart_probability": [
            StrOptions({"auto"}),
            Interval(Real, 0, MOST_RESTART, closed="both"),
        ],
    }

    def __init__(
        self,
        covariance_type: str = "full",
        *,
        autocorrelation: float | str = "auto",
        restart_probability: float | str = "auto",
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
        self.autocorrelation = autocorrelation
        self.restart_probability = restart_probability

    lags = 1
    needs_covariance = True

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for lagged rows with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        rows: Any = self._of_rows().bind(_moments_of_rows(moments), streaming=streaming)
        given = {name: getattr(self, name) for name in _FIRST}
        learned = [name for name, value in given.items() if isinstance(value, str)]
        first = [float(_FIRST[name] if name in learned else given[name]) for name in _FIRST]
        prior = CorrelatedPrior(*rows.prior, *first)
        complete: Any = CorrelatedGaussian(rows, prior, learned)
        if prior.epsilon > 0:
            complete = RestartingGaussian(complete, _typical_correlation(moments, rows.scaling))
        return complete if moments.observed is None else complete.with_missing()

    def _of_rows(self):
        """The model of rows that are independent given their states."""
        of_rows = {name: v for name, v in self.get_params().items() if name not in _FIRST}
        return GaussianObservation(**of_rows)


def _moments_of_rows(moments):
    """`Moments` of the rows from those of lagged rows. Rows with gaps have no part in either."""
    D = len(moments.mean) // 2
    return moments._replace(
        magnitude=moments.magnitude[:D],
        mean=moments.mean[:D],
        covariance=moments.covariance[:D, :D],
        step=moments.step if np.ndim(moments.step) == 0 else moments.step[:D],
        cells=(),  # the noise of y is that of two rows, and has one variance
        largest=None,
        observed=None,
    )


def _typical_correlation(moments, scaling):
    """Correlation of a row with the row before, averaged over the columns of prepared rows."""
    D = len(scaling.shift)
    ratio = moments.magnitude / np.tile(scaling.scale, 2)
    covariance = moments.covariance * np.multiply.outer(ratio, ratio)
    products, squares = covariance[:D, D:], covariance[:D, :D]
    if scaling.basis is not None:
        products, squares = (scaling.basis.T @ c @ scaling.basis for c in (products, squares))
    total = np.trace(squares)
    return float(np.clip(np.trace(products) / total, 0.0, 0.98)) if total > 0 else 0.0
