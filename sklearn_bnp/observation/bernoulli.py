"""Binary columns with Beta priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma

from .base import Likelihood, ObservationModel
from .holes import CompleteColumns, HoledColumns, columns_of


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

    Notes
    -----
    Entries that are missing (NaN) are integrated out.

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

    @property
    def needs_covariance(self):
        """Whether the covariances of the columns are wanted, or their variances alone."""
        return False

    @property
    def allows_missing(self):
        """Whether entries of rows may be NaN, for what was not observed."""
        return True

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
        return BernoulliLikelihood(BetaPrior(a.copy(), b.copy()), columns_of(moments))


class BernoulliLikelihood(Likelihood):
    """``s(x) = [x, 1]``; the evidence of a column is a ratio of Beta functions."""

    def __init__(self, prior, columns=None):
        self.prior = prior
        self.columns = CompleteColumns() if columns is None else columns
        self.holes = self.columns.holes
        self.n_features = len(prior.a)

    @property
    def n_kernel_columns(self):
        return self.columns.n_kernel_columns(self.n_features)

    def kernel_rows(self, z):
        return self.columns.kernel_rows(z)

    def with_holes(self):
        return BernoulliLikelihood(self.prior, HoledColumns(self.n_features))

    def from_complete(self, s):
        return self.columns.from_complete(s)

    def prepare(self, x):
        valid = (x == 0) | (x == 1)
        if self.holes:
            valid |= np.isnan(x)
        if not np.all(valid):
            raise ValueError(
                "observation='bernoulli' needs columns of 0 and 1; binarise X first, for instance with "
                "sklearn.preprocessing.Binarizer."
            )
        return np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)

    def prepare_means(self, means):
        return np.ascontiguousarray(means, dtype=np.float64)

    def _counts(self, prior, s):
        ones = self.columns.values(s)
        return prior.a + ones, prior.b + self.columns.counts(s) - ones

    def evidence(self, prior, s):
        a, b = self._counts(prior, s)
        return np.sum(betaln(a, b) - betaln(prior.a, prior.b), axis=-1)

    def coefficients(self, prior, s):
        a, b = self._counts(prior, s)
        out = np.zeros_like(s, dtype=float)
        self.columns.values(out)[...] = digamma(a) - digamma(b)
        self.columns.put(out, digamma(b) - digamma(a + b))
        return out

    def log_predictive(self, prior, s, z):
        a, b = self._counts(prior, s)
        on, off = np.log(a / (a + b)), np.log(b / (a + b))
        return self.columns.filled(z) @ (on - off).T + self.columns.total(off, z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        a, b = self._counts(prior, s)
        p = a / (a + b)
        z = self.columns.imputed(z, p)
        return np.ascontiguousarray((z - p) / np.sqrt(p * (1.0 - p)), dtype=z.dtype)

    def imputed(self, prior, s, z):
        a, b = self._counts(prior, s)
        return self.columns.imputed(z, a / (a + b))

    def attributes(self, prior, s):
        a, b = self._counts(prior, s)
        return {"means_": a / (a + b)}

    def sample(self, attributes, labels, rng):
        p = attributes["means_"][labels]
        return (rng.random(p.shape) < p).astype(float)
