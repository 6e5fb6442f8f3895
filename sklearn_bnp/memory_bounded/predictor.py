"""Prediction for new rows and documents by a model in bounded memory.

Design note. With ``groups``, the topic shares of a document are inferred from its rows, as by `HDPTopicVB`.
Without ``groups``, the document of a row is unknown: each row stands alone, and the topics' weights
are those of all data seen. If all data seen are one document, these are also the weights of its further rows.
A model that was never given ``groups`` is therefore a mixture, and `transform` is that of mixtures. After
several documents, a row alone has no distribution of topics, and `transform` asks for ``groups``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import issparse
from scipy.special import digamma, logsumexp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..estimator.prediction import in_range
from ..estimator.saved_state import SavedState
from ..estimator.threads import threads
from ..estimator.validation import check_rows
from ..inputs.blas import blas_on_one_thread
from ..inputs.moments import has_missing
from ..topics.completion import hidden_entries, keys_of_content, mean_of_tokens
from ..topics.corpus import corpus_of_rows
from ..topics.documents import DocumentSettings
from ..topics.local import document_step
from .items import rows_of_statistics
from .soundness import check_bounded

# Responsibilities, and numbers in tables of scores, that are held at a time.
_BLOCK_NUMBERS, _SCORE_NUMBERS = 4_000_000, 2_000_000
# Share of a document's rows that `score` predicts from the others.
_HELDOUT = 0.2
_SETTINGS = DocumentSettings(
    warm=False, cold=True, max_iter=100, tol=0.05, n_restarts=5, n_nonzero=None, n_threads=1
)


def check_whole_rows(estimator, x, *, reset):
    """Rows and `Reading` as from `check_rows`, of dense and complete rows: clumps are their sums."""
    if issparse(x):
        raise TypeError(
            "X is sparse, but MemoryBoundedTopicVB takes dense rows: give X.toarray(), an epoch at a time."
        )
    x, reading = check_rows(estimator, x, reset=reset)
    if has_missing(x):
        raise ValueError(
            "Input X contains NaN, but MemoryBoundedTopicVB takes no missing values: fill them in, or "
            "leave these rows out."
        )
    return x, reading


class BoundedPredictor(
    SavedState, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Base class of the estimator: prediction with fitted topics."""

    _check_state = check_bounded

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked(self, X, groups, alone):
        """`Corpus` of rows. Without groups all rows are one document, or one each if ``alone``."""
        check_is_fitted(self)
        x, _ = check_whole_rows(self, X, reset=False)
        if groups is None:
            groups = np.arange(len(x)) if alone else np.zeros(len(x), dtype=int)
        return corpus_of_rows(x, groups)

    def _steps(self, documents):
        """Yield the `DocumentStep` of each block of documents."""
        settings = _SETTINGS._replace(n_threads=threads(self.n_jobs))
        size = max(1, _BLOCK_NUMBERS // self.n_components_)
        for first, last in pairwise(documents.cuts(size)):
            with blas_on_one_thread():
                docs = documents.documents(first, last, self._prepared)
                model = (self._likelihood, self._coef)
                yield document_step(*model, docs, self.doc_topic_prior_, settings, want_resp=True)

    def _prepared(self, x):
        return in_range(self._likelihood.prepare, x)

    def _alone(self, x):
        """Yield the responsibilities of rows of unknown documents, block by block."""
        coef = self._coef.copy()
        coef[:, -1] += np.log(self.topic_probs_)
        for lo in range(0, len(x), 4096):
            with blas_on_one_thread():
                z = self._prepared(x[lo : lo + 4096])
                n_threads = threads(self.n_jobs)
                yield self._likelihood.local_step(
                    coef, z, None, None, None, None, n_threads=n_threads
                )

    def _of_rows(self, X, groups, function):
        """``function(resp)`` of the responsibilities of rows, joined in the order of X."""
        corpus = self._checked(X, groups, alone=True)
        if groups is None:
            return np.concatenate([function(resp) for resp in self._alone(corpus.documents.x)])
        values = [function(step.resp) for step in self._steps(corpus.documents)]
        return corpus.in_order_of_rows(np.concatenate(values))

    def predict_proba(self, X, groups=None):
        """Responsibility of each topic for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. If None, the topics' weights are ``topic_probs_`` for every row.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_topics)
            Rows sum to 1.
        """
        return self._of_rows(X, groups, lambda resp: resp)

    def predict(self, X, groups=None):
        """Topic of greatest responsibility for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. If None, the topics' weights are ``topic_probs_`` for every row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From 0, the heaviest topic, to ``n_components_ - 1``.
        """
        return self._of_rows(X, groups, lambda resp: resp.argmax(axis=1))

    def _shares(self, documents):
        counts = np.concatenate([step.counts for step in self._steps(documents)])
        shares = counts + self.doc_topic_prior_
        return shares / shares.sum(axis=1, keepdims=True)

    def transform(self, X, groups=None):
        """Topic distribution of documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. It is required if the model has learned from several documents.
            If the model has learned from one document, as after `fit` without ``groups``, None stands for
            further rows of that document, and the result is that of `predict_proba`.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            Expected shares of the topics in the document of each row of X; they sum to 1.
        """
        corpus = self._checked(X, groups, alone=True)
        if groups is None:
            self._require_one_document()
            shares = np.concatenate(list(self._alone(corpus.documents.x)))
        else:
            shares = self._shares(corpus.documents)[corpus.document_of_row]
        dtype = np.float32 if corpus.dtype == np.float32 else np.float64
        return shares.astype(dtype, copy=False)

    def _require_one_document(self):
        if self.n_documents_ > 1:
            raise ValueError(
                f"groups=None, but the model has learned from {self.n_documents_} documents, which have "
                "topic shares of their own. Give the document of each row of X, such as "
                "groups=np.zeros(len(X)) for rows of one document, or use predict_proba, which takes rows "
                "of unknown documents."
            )

    def fit_transform(self, X, y=None, *, groups=None):
        """Fit to X and return the topic distribution of its documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X; if None, all rows are one document, as in `fit` and `transform`.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            The result of `transform`.
        """
        return self.fit(X, groups=groups).transform(X, groups=groups)

    def score(self, X, y=None, groups=None):
        """Mean log predictive density of rows, in nats; higher is better.

        With ``groups``, a fifth of each document's rows is predicted from the others. Which rows
        these are depends on the document alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. If None, every row is predicted from ``topic_probs_``.

        Returns
        -------
        score : float
            Mean over the predicted rows.
        """
        documents = self._checked(X, groups, alone=True).documents
        if groups is None:
            weights = np.broadcast_to(self.topic_probs_, (documents.n_entries, self.n_components_))
            return float(np.mean(self._log_density(documents.x, weights)))
        hidden = hidden_entries(documents, keys_of_content(documents), _HELDOUT)
        shares = self._shares(documents.restricted(~hidden))
        part = documents.restricted(hidden)
        owner = np.repeat(np.arange(len(shares)), np.diff(part.indptr))
        return mean_of_tokens(self._log_density(part.x, shares[owner]), np.ones(len(part.x)))

    def _log_density(self, x, weights):
        """Log predictive density (n,) of rows whose topics have these weights (n, K)."""
        out, likelihood = np.empty(len(x)), self._likelihood
        size = max(1, _BLOCK_NUMBERS // self.n_components_)
        for lo in range(0, len(x), size):
            rows = slice(lo, lo + size)
            with blas_on_one_thread():
                z = self._prepared(x[rows])
                each = likelihood.log_predictive(self._topics.prior, self._statistics, z)
            out[rows] = logsumexp(each + np.log(weights[rows]), axis=1)
            out[rows] += likelihood.log_base(x[rows])
        return out

    def similarity(self, X, groups=None):
        """Retrieval score: how well each training document explains new documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of new documents.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X; all rows are one document if None.

        Returns
        -------
        scores : ndarray of shape (n_documents, n_training_documents)
            One row per new document, in the order of the sorted ids in ``groups``. One column per
            training document, epoch by epoch, and within an epoch in the order of the sorted ids. In nats;
            greater is more similar. All documents of a document group have the same score.

        References
        ----------
        Gomes, Welling and Perona (2008), (28).
        """
        documents = self._checked(X, groups, alone=False).documents
        zeta = self._topics.zeta(self._kept.sizes)
        coef = self._likelihood.coefficients(self._topics.prior, self._topics.s)
        with blas_on_one_thread():
            scores = [
                retrieval_scores(self._likelihood, coef, zeta, self._prepared(documents.x[lo:hi]))
                for lo, hi in pairwise(documents.indptr)
            ]
        return np.array(scores)[:, self._kept.group_of_document]

    @property
    def _n_features_out(self):
        return self.n_components_


def retrieval_scores(likelihood, coef, zeta, z):
    """Score (S,) of each document group for the rows ``z`` of one document (28).

    ``sum_i max_k {E[log p(x_i | k)] + psi(zeta_ks) - psi(sum_k zeta_ks)}``.

    Parameters
    ----------
    coef : ndarray, shape (K, P)
        Coefficients of E[log p(x | k)].
    zeta : ndarray, shape (K, S)
        Parameters of q(pi_s).
    z : ndarray, shape (n, D)
        Prepared rows.
    """
    log_pi = (digamma(zeta) - digamma(zeta.sum(axis=0))).T
    S, K = log_pi.shape
    scores = np.zeros(S)
    rows = max(1, _SCORE_NUMBERS // max(K, coef.shape[1]))
    for lo in range(0, len(z), rows):
        log_lik = rows_of_statistics(likelihood, z[lo : lo + rows]) @ coef.T
        groups = max(1, _SCORE_NUMBERS // log_lik.size)
        for first in range(0, S, groups):
            some = slice(first, first + groups)
            best = (log_lik + log_pi[some, np.newaxis]).max(axis=2)
            scores[some] += best.sum(axis=1)
    return scores
