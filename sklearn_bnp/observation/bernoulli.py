"""Binary columns with Beta priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma

from .base import ObservationModel
from .counts import CountLikelihood, checked_bits, points_of_counts


class BetaPrior(NamedTuple):
    """Pseudo-counts of ones ``a`` and of zeros ``b``, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class BernoulliObservation(ObservationModel):
    """Independent binary columns, each component with a probability for each.

    Parameters
    ----------
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Pseudo-counts (a, b) > 0 of ones and zeros in the Beta prior; (1, 1) if None.

    References
    ----------
    Hughes (2016), Sec. 2.2.

    Examples
    --------
    >>> from sklearn_bnp import BernoulliObservation, DPMixtureVB
    >>> model = DPMixtureVB(observation=BernoulliObservation(prior=(0.5, 0.5)))
    """

    _parameter_constraints = {"prior": ["array-like", None]}

    def __init__(self, prior=None):
        self.prior = prior

    takes_sparse = True

    @property
    def needs_covariance(self):
        """Whether the covariances of the columns are wanted, or their variances alone."""
        return False

    def bind(self, moments, *, streaming=False):
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        pair = (1.0, 1.0) if self.prior is None else self.prior
        try:
            a, b = (np.broadcast_to(np.asarray(v, dtype=float), moments.mean.shape) for v in pair)
        except (TypeError, ValueError):
            a = b = np.array([np.nan])
        if not (np.all(a > 0) and np.all(b > 0) and np.all(np.isfinite(a + b))):
            raise ValueError(
                f"prior={self.prior!r} must be two positive numbers (a, b), or two arrays of "
                f"{len(moments.mean)} of them."
            )
        return BernoulliLikelihood(BetaPrior(a.copy(), b.copy()))


class BernoulliLikelihood(CountLikelihood):
    """``s(x) = [x, 1]``; the evidence of a column is a ratio of Beta functions."""

    def __init__(self, prior):
        self.prior = prior
        self.n_features = len(prior.a)

    def prepare(self, x):
        return checked_bits(x)

    def prepare_means(self, means):
        return np.ascontiguousarray(means, dtype=np.float64)

    def _counts(self, prior, s):
        ones = s[..., :-1]
        return prior.a + ones, prior.b + s[..., -1:] - ones

    def evidence(self, prior, s):
        a, b = self._counts(prior, s)
        return np.sum(betaln(a, b) - betaln(prior.a, prior.b), axis=-1)

    def coefficients(self, prior, s):
        a, b = self._counts(prior, s)
        out = np.empty_like(s, dtype=float)
        out[:, :-1] = digamma(a) - digamma(b)
        out[:, -1] = np.sum(digamma(b) - digamma(a + b), axis=1)
        return out

    def log_predictive(self, prior, s, z):
        a, b = self._counts(prior, s)
        on, off = np.log(a / (a + b)), np.log(b / (a + b))
        return z @ (on - off).T + off.sum(axis=1)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Columns in units of their standard deviations in the target."""
        a, b = self._counts(prior, s)
        p = a / (a + b)
        deviation = np.sqrt(p * (1.0 - p))
        return points_of_counts(z, lambda x, column: x / deviation[column], -p / deviation)

    def attributes(self, prior, s):
        a, b = self._counts(prior, s)
        return {"means_": a / (a + b)}

    def sample(self, attributes, labels, rng):
        p = attributes["means_"][labels]
        return (rng.random(p.shape) < p).astype(float)
