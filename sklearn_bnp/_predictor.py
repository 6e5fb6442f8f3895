"""What a fitted mixture says of rows: scikit-learn's methods for prediction, density and sampling."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import threads
from .core.local import blas_on_one_thread

_PREDICT_ROWS, _SCORE_ROWS = 4096, 1024


class MixturePredictor(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator
):
    """Prediction from a fitted learner; estimators derive from it and bring `fit`."""

    def _blocks(self, X, n_rows=_PREDICT_ROWS):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype="numeric")
        likelihood = self._learner_.model.likelihood
        for start in range(0, len(X), n_rows):
            x = X[start : start + n_rows]
            yield x, likelihood.prepare(x)

    def predict_proba(self, X):
        """Responsibility of each component for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components_)
            Rows sum to 1.
        """
        likelihood = None
        parts = []
        for _, z in self._blocks(X):
            likelihood = self._learner_.model.likelihood
            with blas_on_one_thread():
                parts.append(
                    likelihood.local_step(
                        self._coef, z, None, None, None, None,
                        n_nonzero=self.n_nonzero_resp, n_threads=threads(self.n_jobs),
                    )
                )  # fmt: skip
        return np.concatenate(parts)

    def predict(self, X):
        """Component with the greatest responsibility for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From 0, the heaviest component, to ``n_components_ - 1``.
        """
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit to X and return the component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def transform(self, X):
        """Responsibilities, as features; the same as `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components_)
            Rows sum to 1.
        """
        return self.predict_proba(X)

    def score_samples(self, X):
        """Log posterior predictive density of each row, in nats.

        For Gaussian observations a mixture of Student densities: the uncertainty of means and
        covariances is integrated out, not plugged in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log densities, in the units of the data.
        """
        parts = []
        for x, z in self._blocks(X, _SCORE_ROWS):
            model, totals = self._learner_.model, self._learner_.totals
            each = model.likelihood.log_predictive(model.prior, totals.s, z)
            parts.append(
                logsumexp(each + np.log(self.weights_), axis=1) + model.likelihood.log_base(x)
            )
        return np.concatenate(parts)

    def score(self, X, y=None):
        """Mean log posterior predictive density per row, in nats; higher is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        random_state : int, RandomState instance or None, default=None
            Seed; by default the estimator's own ``random_state``.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component.
        labels : ndarray of shape (n_samples,)
            Their components.
        """
        check_is_fitted(self)
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(f"n_samples={n_samples!r} must be a positive integer.")
        rng = check_random_state(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        labels = np.repeat(np.arange(self.n_components_), counts)
        attributes = {
            name: getattr(self, name) for name in ("means_", "covariances_") if hasattr(self, name)
        }
        return self._learner_.model.likelihood.sample(attributes, labels, rng), labels

    @property
    def _n_features_out(self):
        return self.n_components_
