"""Binary columns with Beta priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from .._kernels._counts import digamma_rows, log_gamma_sums
from .base import ObservationModel
from .counts import CountLikelihood, checked_bits, points_of_counts, statistics_as_rows


class BetaPrior(NamedTuple):
    """Pseudo-counts of ones ``a`` and of zeros ``b``, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class BernoulliObservation(ObservationModel):
    """Independent binary columns, each component with a probability for each.

    Rows may be sparse (CSR): zeros cost nothing, and are never written out.

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
        """Ratios of Beta functions, as rises of lnGamma by ones, by zeros and by all."""
        parts, rises = _ones_zeros_all(statistics_as_rows(s)), np.empty((3, s.size // s.shape[-1]))
        for part, pseudo, rise in zip(parts, _pseudo_counts(prior), rises, strict=True):
            log_gamma_sums(part, pseudo, rise, 1)
        return (rises[0] + rises[1] - rises[2]).reshape(s.shape[:-1])

    def coefficients(self, prior, s):
        """``E[log p_kd] - E[log (1 - p_kd)]``, and ``sum_d E[log (1 - p_kd)]`` for the last column."""
        ones, zeros, both = (
            _digammas(part, pseudo)
            for part, pseudo in zip(
                _ones_zeros_all(statistics_as_rows(s)), _pseudo_counts(prior), strict=True
            )
        )
        out = np.empty(s.shape)
        np.subtract(ones, zeros, out=out[:, :-1])
        out[:, -1] = np.sum(zeros - both, axis=1)
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


def _ones_zeros_all(s):
    """Numbers of ones, of zeros and of rows, each (K, D), in statistics (K, D + 1)."""
    ones = np.ascontiguousarray(s[:, :-1])
    both = np.tile(s[:, -1:], (1, ones.shape[1]))
    return ones, both - ones, both


def _pseudo_counts(prior):
    """Those of the same."""
    return prior.a, prior.b, prior.a + prior.b


def _digammas(counts, pseudo):
    """``psi(pseudo + counts)``, (K, D)."""
    out = np.empty_like(counts)
    digamma_rows(counts, pseudo, out, 1)
    return out + digamma(pseudo.sum() + counts.sum(axis=1, keepdims=True))
