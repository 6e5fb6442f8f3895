"""Prediction for new rows and documents by a model in bounded memory.

Design note. Topics of documents are inferred as those of `HDPTopicVB` are, with the documents' shares
integrated out (`topics/new_documents.py`), and scores are of document completion.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.special import digamma, logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..estimator.component_features import ComponentFeatures, in_containers
from ..estimator.named_arguments import by_name
from ..estimator.prediction import in_range
from ..estimator.sample_weights import weighted_sums
from ..estimator.saved_state import SavedState
from ..estimator.summary import Summarised
from ..estimator.threads import threads
from ..estimator.validation import check_rows
from ..inputs.blas import blas_on_one_thread
from ..inputs.frames import is_sparse_frame
from ..inputs.moments import has_missing
from ..inputs.types import Data, Floats, Integers
from ..topics.completion import entries_apart, keys_of_content, mean_of_tokens
from ..topics.corpus import corpus_of_rows, with_weights_of_rows
from ..topics.new_documents import expected_shares, infer, table_of_rows
from .soundness import check_bounded

# Responsibilities that are held at a time.
_BLOCK_NUMBERS = 4_000_000
# Rows of a clump whose mean is that of its prior as well, but for rounding.
_MANY_ROWS = 1e10
# Share of a document's rows that `score` predicts from the others.
_HELDOUT = 0.2
# Steps of a document end after so many, or when none moves more rows of any topic.
_MAX_ITER, _TOL = 100, 0.05


def corpus_of_whole_rows(estimator, x, groups, *, reset):
    """`Corpus` of dense and complete rows, since clumps are their sums."""
    if issparse(x) or is_sparse_frame(x):
        dense = "X.toarray()" if issparse(x) else "X.sparse.to_dense()"
        raise TypeError(
            f"X is sparse, but MemoryBoundedTopicVB takes dense rows: give {dense}, an epoch at a time."
        )
    x, reading = check_rows(estimator, x, reset=reset)
    if has_missing(x):
        row = int(np.flatnonzero(np.isnan(x).any(axis=1))[0])
        raise ValueError(
            f"Input X contains NaN, first in row {row}, but MemoryBoundedTopicVB takes no missing values: "
            "fill them in, or leave these rows out."
        )
    if groups is None:
        raise ValueError(
            "groups=None, but rows of X are parts of documents: give groups, the document of each row, such "
            "as groups=np.zeros(len(X)) if they are one document."
        )
    return corpus_of_rows(x, groups, estimator.observation, reading)._replace(reading=reading)


class BoundedPredictor(
    Summarised, SavedState, ComponentFeatures, BaseEstimator, auto_wrap_output_keys=None
):
    """Base class of the estimator: prediction with fitted topics."""

    _check_state = check_bounded
    _gone_for_good = ("elbo_terms_",)  # what an epoch learned from is not kept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _bring_up_to_date(self):
        # once, epochs were counted by the history alone
        if "_n_epochs" not in vars(self) and "history_" in vars(self):
            self._n_epochs = len(self.history_)

    def _corpus(self, X, groups):
        check_is_fitted(self)
        return corpus_of_whole_rows(self, X, groups, reset=False)

    def _inferred(self, documents):
        """Yield the `Inferred` topics of each block of documents."""
        likelihood, prior = self._likelihood, self._topics.prior
        size = max(1, _BLOCK_NUMBERS // self.n_components_)
        for first, last in pairwise(documents.cuts(size)):
            with blas_on_one_thread():
                docs = documents.documents(first, last, self._prepared)
                table = table_of_rows(likelihood, prior, self._statistics, docs.z)
                yield infer(
                    table, docs, self.doc_topic_prior_, _MAX_ITER, _TOL, want_resp=True,
                    n_threads=threads(self.n_jobs),
                )  # fmt: skip

    def _prepared(self, x):
        return in_range(self._likelihood.prepare, x)

    def _of_rows(self, X, groups, function):
        """``function(resp)`` of the responsibilities of rows, joined in the order of X."""
        corpus, values, counts = self._corpus(X, groups), [], []
        for found in self._inferred(corpus.documents):
            values.append(function(found.resp))
            counts.append(found.counts)
        shares = expected_shares(np.concatenate(counts), self.doc_topic_prior_)
        return corpus.in_order_of_rows(np.concatenate(values), lambda docs: function(shares[docs]))

    @by_name
    def predict_proba(self, X: Data, *, groups: ArrayLike | None = None) -> Floats:
        """Responsibility of each topic for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,)
            The document of each row of X.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_topics)
            Rows sum to 1.
        """
        return self._of_rows(X, groups, lambda resp: resp)

    @by_name
    def predict(self, X: Data, *, groups: ArrayLike | None = None) -> Integers:
        """Topic of greatest responsibility for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,)
            The document of each row of X.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From 0, the heaviest topic, to ``n_components_ - 1``.
        """
        return self._of_rows(X, groups, lambda resp: resp.argmax(axis=1))

    def _shares(self, documents):
        counts = np.concatenate([found.counts for found in self._inferred(documents)])
        return expected_shares(counts, self.doc_topic_prior_)

    @in_containers
    @by_name
    def transform(self, X: Data, *, groups: ArrayLike | None = None) -> Floats:
        """Topic distribution of documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,)
            The document of each row of X.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            Expected shares of the topics in the document of each row of X; they sum to 1.
        """
        corpus = self._corpus(X, groups)
        shares = self._shares(corpus.documents)[corpus.document_of_row]
        dtype = np.float32 if corpus.dtype == np.float32 else np.float64
        return shares.astype(dtype, copy=False)

    @by_name
    def fit_transform(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Floats:
        """Fit to X and return the topic distribution of its documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,)
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            The result of `transform`.
        """
        return self.fit(X, groups=groups, sample_weight=sample_weight).transform(X, groups=groups)

    # ------------------------------------------------------------------ scores

    def _scored(self, X, groups, sample_weight=None):
        """The corpus, log densities (n,) of the rows that are predicted, and the document of each."""
        corpus = with_weights_of_rows(self._corpus(X, groups), sample_weight)
        documents = corpus.documents
        seen, part = entries_apart(documents, keys_of_content(documents), _HELDOUT)
        shares = self._shares(seen)
        owner = np.repeat(np.arange(len(shares)), np.diff(part.indptr))
        return corpus, self._log_density(part.x, shares[owner]), owner

    @by_name
    def score_samples(self, X: Data, *, groups: ArrayLike | None = None) -> Floats:
        """Mean log predictive density of a fifth of each document's rows, given the others.

        Which fifth it is depends on the document alone, and not on the order of its rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,)
            The document of each row of X.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Mean per row that is predicted, in nats, for the document of each row of X.
        """
        corpus, log_prob, owner = self._scored(X, groups)
        sums = np.bincount(owner, log_prob, minlength=corpus.n_documents)
        n = np.bincount(owner, minlength=corpus.n_documents)
        return (sums / np.maximum(n, 1))[corpus.document_of_row]

    @by_name
    def score(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean log predictive density of rows, in nats; higher is better.

        A fifth of each document's rows is predicted from the others. Which rows these are depends on the
        document alone, and not on the order of its rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,)
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row's document. A document of weight w counts as w equal documents, as in
            `fit`.

        Returns
        -------
        score : float
            Weighted mean over the predicted rows.
        """
        corpus, log_prob, owner = self._scored(X, groups, sample_weight)
        weight = corpus.documents.weight
        return mean_of_tokens(*weighted_sums(log_prob, None if weight is None else weight[owner]))

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

    @by_name
    def similarity(
        self,
        X: Data,
        others: Any = None,
        *,
        groups: ArrayLike | None = None,
        other_groups: ArrayLike | None = None,
    ) -> Floats:
        """Affinity of the topic distributions of documents, for instance to find the documents most alike.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of documents.
        others : array-like of shape (n_other_samples, n_features), default=None
            Rows of the documents with which those of X are compared. If None, they are compared with the
            documents that the model has learned from. These are known as far as they are kept: all documents
            of a document group have the same distribution. To tell them apart, give their rows again.
        groups : array-like of shape (n_samples,)
            The document of each row of X.
        other_groups : array-like of shape (n_other_samples,), default=None
            The document of each row of ``others``.

        Returns
        -------
        affinity : ndarray of shape (n_documents, n_other_documents)
            ``sum_k sqrt(p_k q_k)`` of two distributions p and q: 1 if they are equal, 0 if they have no topic
            in common. It is 1 less the square of their Hellinger distance. There is a row and a column for
            each document, in the order of the sorted ids. Documents learned from come epoch by epoch, as in
            ``document_groups_``, without those of weight 0.
        """
        own = self._shares(self._corpus(X, groups).documents)
        if others is not None:
            if other_groups is None:
                raise ValueError(
                    "other_groups=None, but rows of others are parts of documents: give other_groups, the "
                    "document of each of these rows."
                )
            found = self._shares(self._corpus(others, other_groups).documents)
        else:
            zeta = self._topics.zeta(self._kept.sizes).T[self._kept.group_of_document]
            found = zeta / zeta.sum(axis=1, keepdims=True)
        # rounding may pass 1, where the distance would be NaN
        return np.clip(np.sqrt(own) @ np.sqrt(found).T, 0.0, 1.0)

    # ------------------------------------------------------------------ what is kept

    # Attributes that are functions of others, so that nothing of them is held or saved.

    @property
    def document_groups_(self) -> Any:
        """The group of each document seen."""
        check_is_fitted(self)
        return self._kept.group_of_document.copy()

    @property
    def clump_sizes_(self) -> Floats:
        """Rows of each clump."""
        check_is_fitted(self)
        return self._kept.s[:, -1].copy()

    @property
    def clump_groups_(self) -> Integers:
        """Rows of each document group in each clump."""
        check_is_fitted(self)
        return self._kept.counts.copy()

    @property
    def clump_probs_(self) -> Floats:
        """Responsibility of each topic for each clump."""
        check_is_fitted(self)
        kept, psi = self._kept, digamma(self._topics.zeta(self._kept.sizes))
        return softmax((kept.s @ self._coef.T + kept.counts @ psi.T) / kept.s[:, -1:], axis=1)

    @property
    def clump_means_(self) -> Floats:
        """Mean of the rows of each clump, or proportions of its tokens if rows are ``"multinomial"``.

        AttributeError for likelihoods that have no ``means_``.
        """
        check_is_fitted(self)
        # As topics of so many rows that nothing is left of the prior
        many = self._kept.s * (_MANY_ROWS / self._kept.s[:, -1:])
        found = self._likelihood.attributes(self._topics.prior, many)
        if "means_" not in found:
            raise AttributeError(
                f"observation={self._observation!r} has no means_ of topics or clumps. Its topics have "
                f"{', '.join(sorted(found))}."
            )
        return found["means_"]
