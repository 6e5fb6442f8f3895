"""Prediction, scores and samples of a fitted mixture: scikit-learn's methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from ..estimator.component_features import ComponentFeatures, in_containers
from ..estimator.lazy_methods import lazy_on_chunks, summed_over_chunks
from ..estimator.named_arguments import by_name
from ..estimator.observations import allows_missing, takes_sparse
from ..estimator.prediction import in_range, suited
from ..estimator.sample_weights import check_weights, weighted_sums
from ..estimator.saved_state import SavedState
from ..estimator.summary import Summarised
from ..estimator.threads import threads
from ..estimator.validation import check_positive_integers, check_rows, checked_generator
from ..inputs.blas import blas_on_one_thread
from ..inputs.frames import with_categories
from ..inputs.rows import block_rows, part
from ..inputs.types import Data, Floats, Integers, RandomState
from .soundness import MIXTURE, check_mixture

# Rows that are worked on at a time: the arrays for them are small beside the data.
_PREDICT_ROWS, _SCORE_ROWS = 4096, 1024


class MixturePredictor(
    Summarised,
    SavedState,
    ComponentFeatures,
    DensityMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    """Prediction with a fitted mixture. `DPMixtureVB` derives from it and adds `fit`."""

    _check_state = check_mixture
    _learner_kind = MIXTURE

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = allows_missing(self.observation)
        tags.input_tags.sparse = takes_sparse(self.observation)
        return tags

    def _rows(self, X):
        """Checked rows."""
        check_is_fitted(self)
        return check_rows(self, X, reset=False)[0]

    def _blocks(self, rows, n_rows):
        """Blocks of rows as they came, the prepared blocks, and the `Fitted` model for all rows."""
        fitted = suited(self._model, self._statistics, self._coef, rows)
        prepare = fitted.likelihood.prepare
        n, n_rows = rows.shape[0], block_rows(rows, n_rows)
        blocks = (part(rows, slice(start, start + n_rows)) for start in range(0, n, n_rows))
        return ((x, in_range(prepare, x), fitted) for x in blocks)

    def _responsibilities(self, rows):
        """Responsibilities (n, K) of one block of rows after the other."""
        blocks = self._blocks(rows, _PREDICT_ROWS)
        n_threads = threads(self.n_jobs)
        for x, z, fitted in blocks:
            with blas_on_one_thread():
                resp = fitted.likelihood.local_step(
                    fitted.coef, z, None, None, None, None,
                    n_nonzero=self.n_nonzero_resp, n_threads=n_threads,
                )  # fmt: skip
            # counts are in double precision, whatever X is in
            yield resp.astype(np.float32, copy=False) if x.dtype == np.float32 else resp

    @lazy_on_chunks
    def predict_proba(self, X: Data) -> Floats:
        """Responsibility of each component for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Rows sum to 1.
        """
        return np.concatenate(list(self._responsibilities(self._rows(X))))

    @lazy_on_chunks
    def predict(self, X: Data) -> Integers:
        """The component with the greatest responsibility for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions of components, from 0 to ``n_components_ - 1``.
        """
        return self._components_of(self._rows(X))

    def _components_of(self, rows):
        """The component of each of some checked rows."""
        return np.concatenate([resp.argmax(axis=1) for resp in self._responsibilities(rows)])

    def fit_predict(
        self, X: Data, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Integers:
        """Fit to X and return the component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        fitted = self.fit(X, sample_weight=sample_weight)
        return fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(X)

    @in_containers
    def transform(self, X: Data) -> Floats:
        """Responsibilities as features, the same as from `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Rows sum to 1.
        """
        return self.predict_proba(X)

    @by_name
    def fit_transform(
        self, X: Data, y: object = None, *, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """Fit to X and return the responsibilities of its rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            As from `transform`.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @lazy_on_chunks
    def score_samples(self, X: Data) -> Floats:
        """Log posterior predictive density of each row, in nats.

        For Gaussian observations this is a mixture of Student densities: the uncertainty of means and
        covariances is integrated out.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log densities, in the units of the data.
        """
        blocks = self._blocks(self._rows(X), _SCORE_ROWS)
        log_weights, parts = np.log(self.weights_), []
        for x, z, fitted in blocks:
            each = fitted.likelihood.log_predictive(self._model.prior, fitted.s, z) + log_weights
            parts.append(logsumexp(each, axis=1) + fitted.likelihood.log_base(x))
        return np.concatenate(parts)

    def _score_sums(self, X, sample_weight=None, *, of_chunk=False):
        """Sum of the scores of rows, and of their weights."""
        each = self.score_samples(X)
        weight = check_weights(sample_weight, len(each), "row", of_chunk=of_chunk)
        return weighted_sums(each, weight)

    @summed_over_chunks
    def score(self, X: Data, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log posterior predictive density per row, in nats; higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows.

        Returns
        -------
        score : float
            Weighted mean of `score_samples`.
        """
        total, n = self._score_sums(X, sample_weight)
        return float(total / n)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Any, Any]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Seed. It is the estimator's own ``random_state`` if None.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component. Columns that had categories in a frame hold these, and the dtype is
            then object.
        labels : ndarray of shape (n_samples,)
            Their components.
        """
        check_is_fitted(self)
        check_positive_integers(n_samples=n_samples)
        rng = checked_generator(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        labels = np.repeat(np.arange(self.n_components_), counts)
        likelihood, prior = self._model.likelihood, self._model.prior
        attributes = likelihood.attributes(prior, self._statistics)
        drawn = likelihood.sample(attributes, labels, rng)
        return with_categories(getattr(self, "_reading", None), drawn), labels
