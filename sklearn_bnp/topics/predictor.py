"""Prediction with a fitted topic model: scikit-learn's methods to transform, score and sample.

Design note. Scores are of document completion (Hughes 2016, (5.59) and Sec. 7.4.1): a document's shares are
inferred from one part of it, and the other part is predicted. The likelihood of a document under shares
that were inferred from the same document would favour models that overfit. The part that is hidden is a
function of the document alone, so that scores depend neither on chance nor on other documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import update_wrapper
from itertools import pairwise
from numbers import Real
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..estimator.component_features import ComponentFeatures, in_containers
from ..estimator.lazy_methods import lazy_on_chunks, summed_over_chunks
from ..estimator.named_arguments import by_name
from ..estimator.observations import allows_missing, takes_sparse
from ..estimator.prediction import suited_statistics
from ..estimator.sample_weights import weighted_sums
from ..estimator.saved_state import SavedState
from ..estimator.summary import Summarised, Summary
from ..estimator.threads import threads
from ..estimator.validation import check_positive_integers, checked_generator
from ..inputs.advice import advice_on
from ..inputs.blas import blas_on_one_thread
from ..inputs.frames import with_categories
from ..inputs.masked_arrays import refuse_masked
from ..inputs.tables import in_numpy
from ..inputs.types import Data, Floats, RandomState
from .completion import (
    drawn_keys,
    entries_apart,
    keys_of_content,
    mean_of_tokens,
    perplexity_of,
    tokens_apart,
)
from .corpus import check_corpus, check_same_kind, has_documents_of_words, takes_words
from .new_documents import expected_shares, infer, table_of_rows, table_of_words
from .soundness import TOPICS, check_topics

# Size of the arrays (documents or entries, times topics) that are worked on at a time.
_BLOCK_NUMBERS, _BLOCK_ENTRIES = 4_000_000, 200_000
# Share of a document's word types, or rows, that `score` predicts from the others.
_HELDOUT = 0.2
# What `score_completion` may divide: the different words of a document, or all of them.
_UNITS = ("types", "tokens")
# Attributes from which typical rows follow, as far as a family has them.
_OF_ROWS = ("means_", "probabilities_", "blocks_")


class _OfRows:
    """Decorator of methods for rows of data, each of which can be assigned to a topic.

    An estimator for documents of words does not have them. scikit-learn's ``available_if`` would not say what
    to use.
    """

    def __init__(self, method):
        self._method = method
        update_wrapper(self, method)

    def __get__(self, estimator, owner=None):
        if estimator is None:
            return self._method
        if has_documents_of_words(estimator):
            name, kind = self._method.__name__, type(estimator).__name__
            raise AttributeError(
                f"This {kind!r} has no attribute {name!r}: documents of words mix topics, and have no topic "
                "of their own. Use transform(X), their shares of topics, or transform(X).argmax(axis=1). "
                "Rows of data have one: fit with groups, the document of each row."
            )
        return MethodType(self._method, estimator)


class TopicPredictor(
    Summarised, SavedState, ComponentFeatures, BaseEstimator, auto_wrap_output_keys=None
):
    """Inference for documents under fitted topics. `HDPTopicVB` derives from it and adds `fit`."""

    _check_state = check_topics
    _learner_kind = TOPICS

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = takes_words(self.observation)
        tags.input_tags.sparse = takes_sparse(self.observation)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = allows_missing(self.observation)
        return tags

    # ------------------------------------------------------------------ inference

    def _corpus(self, X, groups, **weights):
        check_is_fitted(self)
        check_same_kind(self._model.likelihood, groups is not None)
        return check_corpus(self, X, groups, self._observation, reset=False, **weights)

    def _inferred(self, documents, *, want_resp=False):
        """`Inferred` topics of documents, block by block."""
        likelihood, s = suited_statistics(self._model.likelihood, self._statistics, documents.x)
        table = table_of_words(self.means_) if likelihood.words else None
        n_threads = threads(self.n_jobs)
        in_blocks = want_resp or not likelihood.words
        size = max(1, _BLOCK_NUMBERS // self.n_components_) if in_blocks else _BLOCK_ENTRIES
        for first, last in pairwise(documents.cuts(size)):
            with blas_on_one_thread():
                docs = documents.documents(first, last, likelihood.prepare)
                if not likelihood.words:
                    table = table_of_rows(likelihood, self._model.prior, s, docs.z)
                yield infer(
                    table, docs, self._doc_prior, self.max_doc_update_iter, self.doc_tol,
                    want_resp=want_resp, n_threads=n_threads,
                )  # fmt: skip

    def _shares(self, documents):
        """Expected shares (n_documents, K) of the topics."""
        counts = np.concatenate([found.counts for found in self._inferred(documents)])
        return expected_shares(counts, self._doc_prior)

    def _each_row(self, X, groups, function):
        """``function`` of the responsibilities (n, K) of rows, in the order of X."""
        corpus = self._corpus(X, groups)
        dtype, each, counts = np.float32 if corpus.dtype == np.float32 else np.float64, [], []
        for found in self._inferred(corpus.documents, want_resp=True):
            each.append(function(found.resp.astype(dtype, copy=False)))
            counts.append(found.counts)
        shares = expected_shares(np.concatenate(counts), self._doc_prior).astype(dtype, copy=False)
        return corpus.in_order_of_rows(np.concatenate(each), lambda docs: function(shares[docs]))

    @in_containers
    @by_name
    def transform(self, X: Data, *, groups: ArrayLike | None = None) -> Floats:
        """Topic distribution of documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            Expected shares of the topics in the document of each row of X. They sum to 1: nothing is left
            for topics that were never seen.
        """
        return self._shares_of_rows(X, groups=groups)

    @lazy_on_chunks
    def _shares_of_rows(self, X, *, groups=None):
        """Result of `transform` before it is put into a frame."""
        corpus = self._corpus(X, groups)
        shares = self._shares(corpus.documents)
        dtype = np.float32 if corpus.dtype == np.float32 else np.float64
        return shares[corpus.document_of_row].astype(dtype, copy=False)

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
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            As from `transform`.
        """
        return self.fit(X, groups=groups, sample_weight=sample_weight).transform(X, groups=groups)

    @_OfRows
    @lazy_on_chunks
    def predict_proba(self, X, *, groups=None):
        """Responsibility of each topic for each row of data; not available for words.

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

        Raises
        ------
        AttributeError
            If the model is one of words. Use `transform`, the shares of topics in each document.
        """
        return self._each_row(X, groups, lambda resp: resp)

    @_OfRows
    @lazy_on_chunks
    def predict(self, X, *, groups=None):
        """The topic with the greatest responsibility for each row of data; not available for words.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        groups : array-like of shape (n_samples,)
            The document of each row of X.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions of topics, from 0 to ``n_components_ - 1``.

        Raises
        ------
        AttributeError
            If the model is one of words. The main topic of each document is ``transform(X).argmax(axis=1)``.
        """
        return self._each_row(X, groups, lambda resp: resp.argmax(axis=1))

    def inverse_transform(self, X: ArrayLike, n_tokens: Any = 1.0) -> Any:
        """Expected counts of documents with given topic distributions; for rows of data, what is typical.

        A row of a document is expected to have the mean of each column of numbers, and the most probable
        category of each column of categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_topics)
            Topic distributions, as from `transform`.
        n_tokens : float or array-like of shape (n_samples,), default=1
            Lengths of documents of words. Counts for a length of 1 are expected proportions.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Expected counts, which sum to ``n_tokens`` if the distribution sums to 1; or a typical row of each
            document, NaN in columns that no block uses. Categories that a frame held by other names than
            numbers are given by these names, and the dtype is object.

        Raises
        ------
        ValueError
            If there is not one column for each topic, if ``n_tokens`` is not one length, or one for each row
            of ``X``, or if it is given for rows of data.
        """
        check_is_fitted(self)
        for name, value in {"X": X, "n_tokens": n_tokens}.items():
            refuse_masked(value, name)
        with in_numpy():
            shares = check_array(X, dtype=[np.float64, np.float32])
        if shares.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {shares.shape[1]} columns, but there are {self.n_components_} topics; give "
                "distributions as from transform."
            )
        n_tokens = _column_of_lengths(n_tokens, len(shares))
        if self._model.likelihood.words:
            return shares @ self.means_ * n_tokens
        if np.any(n_tokens != 1.0):
            raise ValueError(
                f"n_tokens={n_tokens.ravel()[0]:g} is for documents of words, but this model was fitted with "
                "groups: what it gives is a typical row of each document. Leave n_tokens out."
            )
        attributes = {name: getattr(self, name) for name in _OF_ROWS if hasattr(self, name)}
        return with_categories(
            getattr(self, "_reading", None),
            self._model.likelihood.expected_rows(attributes, shares),
        )

    # ------------------------------------------------------------------ scores

    def _completion(self, seen, part):
        """Log probabilities (n,) of hidden entries, times their counts; their documents and counts.

        ``seen`` and ``part`` have the parts of the same documents that are seen and hidden.
        """
        shares = self._shares(seen)
        counts = np.ones(part.n_entries) if part.counts is None else part.counts
        owner = np.repeat(np.arange(len(shares)), np.diff(part.indptr))
        log_prob = np.empty(part.n_entries)
        size = max(1, _BLOCK_NUMBERS // self.n_components_)
        for start in range(0, part.n_entries, size):
            rows = slice(start, start + size)
            log_prob[rows] = self._log_prob(part, rows, shares[owner[rows]])
        return log_prob * counts, owner, counts

    def _log_prob(self, part, rows, shares):
        """Log probabilities (n,) of the entries ``rows``; their documents have shares (n, K) of topics."""
        if self._model.likelihood.words:
            return np.log(np.einsum("nk,kn->n", shares, self.means_[:, part.indices[rows]]))
        x = part.x[rows]
        likelihood, s = suited_statistics(self._model.likelihood, self._statistics, x)
        each = likelihood.log_predictive(self._model.prior, s, likelihood.prepare(x))
        return logsumexp(each + np.log(shares), axis=1) + likelihood.log_base(x)

    def _scored(self, X, groups, **weights):
        """The corpus, and the `_completion` of the entries that `score` hides."""
        corpus = self._corpus(X, groups, **weights)
        keys = keys_of_content(corpus.documents)
        return corpus, *self._completion(*entries_apart(corpus.documents, keys, _HELDOUT))

    @lazy_on_chunks
    def score_samples(self, X: Data, *, groups: ArrayLike | None = None) -> Floats:
        """Mean log predictive probability of a part of each document, given the rest of it.

        A fifth of a document's word types, or of its rows, is predicted from the others. Which fifth it
        is depends on the document alone, and not on the order of its rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Mean per token, in nats, for the document of each row of X; 0 for documents without words.
        """
        corpus, log_prob, owner, counts = self._scored(X, groups)
        sums = np.bincount(owner, log_prob, minlength=corpus.n_documents)
        tokens = np.bincount(owner, counts, minlength=corpus.n_documents)
        return (sums / np.where(tokens > 0, tokens, 1.0))[corpus.document_of_row]

    def _score_sums(self, X, groups=None, **weights):
        """Sum of the scores of tokens that are predicted, and of their weights."""
        corpus, log_prob, owner, counts = self._scored(X, groups, **weights)
        weight = corpus.documents.weight
        return weighted_sums(log_prob, None if weight is None else weight[owner], counts)

    @summed_over_chunks
    def score(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean log predictive probability per token, in nats; higher is better.

        It is the score of `score_completion` with a split that depends on each document alone. The inference
        of a document's topics does not see the tokens that are predicted, so that models with different
        numbers of topics can be compared. The bound of the training documents is ``lower_bound_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            A document of weight w counts as w equal documents, as in `fit`.

        Returns
        -------
        score : float
            Weighted mean over all tokens that are predicted.
        """
        return mean_of_tokens(*self._score_sums(X, groups, sample_weight=sample_weight))

    @by_name
    def perplexity(self, X: Data, *, groups: ArrayLike | None = None) -> float:
        """Perplexity of documents: ``exp(-score(X))``; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.

        Returns
        -------
        perplexity : float
            Perplexity of the tokens that are predicted from the rest of their document.
        """
        return perplexity_of(self.score(X, groups=groups))

    @by_name
    def score_completion(
        self,
        X: Data,
        random_state: RandomState = 0,
        by: str = "types",
        heldout: float = _HELDOUT,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        """Document completion: mean log probability of a random part of each document, given the rest.

        Which part it is depends on the document and the seed alone, and not on other documents, on their
        order or on the order of a document's rows. Equal documents have the same part hidden.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents; or with ``groups``, rows of data.
        random_state : int, RandomState instance or None, default=0
            Seed of the split.
        by : {"types", "tokens"}, default="types"
            Whether all tokens of a word type in a document are hidden together, or each by itself, so that
            others of the same type may be seen. Rows of data are hidden one by one.
        heldout : float, default=0.2
            Share of each document that is hidden. It is rounded, but at least one type or token is hidden,
            and never all of several.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.

        Returns
        -------
        score : float
            Mean over all tokens that are hidden, in nats.

        References
        ----------
        Hughes (2016), (5.59) and Sec. 7.4.1.
        """
        if by not in _UNITS:
            raise ValueError(f"by={by!r} must be 'types' or 'tokens'.{advice_on(by, _UNITS)}")
        if not (isinstance(heldout, Real) and 0 < heldout < 1):
            raise ValueError(f"heldout={heldout!r} must be a number between 0 and 1.")
        rng = checked_generator(random_state)
        documents = self._corpus(X, groups).documents
        if by == "tokens" and documents.counts is not None:
            seen, hidden = tokens_apart(documents, rng, heldout)
        else:
            seen, hidden = entries_apart(documents, drawn_keys(documents, rng), heldout)
        log_prob, _, counts = self._completion(seen, hidden)
        return mean_of_tokens(log_prob.sum(), counts.sum())

    # ------------------------------------------------------------------ words and samples

    def top_words(self, feature_names: Sequence[str] | None = None, n: int = 10) -> list[list[str]]:
        """The most probable words of each topic.

        Parameters
        ----------
        feature_names : array-like of shape (n_features,), default=None
            Words, as from the ``get_feature_names_out`` of a vectorizer. They are the names of the features
            seen during fit if None, or x0, x1, ... if these had none.
        n : int, default=10
            Number of words.

        Returns
        -------
        words : list of list of str
            A list for each topic, with the most probable word first.
        """
        check_is_fitted(self)
        if not self._model.likelihood.words:
            raise ValueError(
                "top_words is for topics of words; the model was fitted with groups, and its topics are of "
                "rows. See means_ and summary(), or draw them with ComponentsDisplay."
            )
        check_positive_integers(n=n)
        if feature_names is None:
            feature_names = _check_feature_names_in(self)
        names = np.asarray(feature_names)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"feature_names has shape {names.shape}; it must be ({self.n_features_in_},), one name "
                "for each feature."
            )
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        return names[order].tolist()

    def summary(self, feature_names: Any = None) -> Summary:
        """Table of the topics: how large they are, their words, and how much the best merge would lose.

        It is found from the statistics that are kept after a fit, without a look at documents.

        Parameters
        ----------
        feature_names : array-like of shape (n_features,), default=None
            Words, as from the ``get_feature_names_out`` of a vectorizer. They are the names of the features
            seen during fit if None; if there are none, no words are shown.

        Returns
        -------
        summary : Summary
            A dict of columns, which prints as a table, as from `DPMixtureVB.summary`. ``size`` counts tokens.
            ``top_words`` are the five most probable words of each topic.
        """
        check_is_fitted(self)
        named = self._model.likelihood.words and hasattr(self, "feature_names_in_")
        if feature_names is None and not named:
            return self._summary({})
        return self._summary({"top_words": self.top_words(feature_names, 5)})

    def sample(
        self, n_samples: int = 1, n_tokens: Any = None, random_state: RandomState = None
    ) -> tuple[Any, Any]:
        """Draw documents from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        n_tokens : int, default=None
            Number of words, or rows, of each document. It is the mean length of the documents seen in fit
            if None.
        random_state : int, RandomState instance or None, default=None
            Seed. It is the estimator's own ``random_state`` if None.

        Returns
        -------
        X : sparse matrix of shape (n_samples, n_features) or ndarray
            Counts of words, or rows of data: ``n_tokens`` for each document in turn. Columns of rows that had
            categories in a frame hold these, and the dtype is then object.
        doc_topic_distr : ndarray of shape (n_samples, n_topics)
            The documents' shares of the topics.
        """
        check_is_fitted(self)
        n_tokens = max(1, round(self._mean_length)) if n_tokens is None else n_tokens
        check_positive_integers(n_samples=n_samples, n_tokens=n_tokens)
        rng = checked_generator(self.random_state if random_state is None else random_state)
        drawn, shares = drawn_documents(
            self._model, self._doc_prior, self._statistics, n_samples, n_tokens, rng
        )
        return with_categories(getattr(self, "_reading", None), drawn), shares


def _column_of_lengths(n_tokens, n_samples):
    """Lengths of documents as a column, one or ``n_samples``; raise if there are others, or any below 0."""
    flat = np.asarray(n_tokens).reshape(-1)
    lengths = check_array(flat, dtype=np.float64, ensure_2d=False, input_name="n_tokens")
    if len(lengths) not in (1, n_samples):
        raise ValueError(
            f"n_tokens has {len(lengths)} lengths, but X has {n_samples} rows; give one length for each row, "
            "or one for all."
        )
    if lengths.min() < 0:
        raise ValueError(f"n_tokens={lengths.min():g} is below 0; a document has 0 tokens or more.")
    return lengths[:, np.newaxis]


def drawn_documents(model, doc_prior, s, n_samples, n_tokens, rng):
    """Random documents of topics with statistics ``s`` (K, P), and their topic shares (n_samples, K).

    Documents of words are a CSR matrix of counts. Others are rows of data, document after document.
    """
    shares = _dirichlet_variates(doc_prior, n_samples, rng)
    sizes = np.array([rng.multinomial(n_tokens, pi) for pi in shares])
    likelihood = model.likelihood
    attributes = likelihood.attributes(model.prior, s)
    if likelihood.words:
        means = attributes["means_"]
        rows = [
            sparse.csr_matrix(sum(rng.multinomial(size[k], means[k]) for k in np.flatnonzero(size)))
            for size in sizes
        ]
        return sparse.vstack(rows, format="csr"), shares
    labels = np.concatenate([rng.permutation(np.repeat(np.arange(len(s)), n)) for n in sizes])
    return likelihood.sample(attributes, labels, rng), shares


def _dirichlet_variates(prior, n, rng):
    """Shares (n, K) of a Dirichlet distribution, by logarithms of Gamma variates.

    Where all of ``prior`` (K,) is tiny, variates themselves would underflow, and the shares would be equal.
    If ``G`` is a Gamma(a + 1) variate and ``U`` is uniform, ``G * U ** (1 / a)`` is a Gamma(a) variate.
    """
    shape = np.maximum(prior, 1e-100)
    uniform = 1.0 - rng.uniform(size=(n, len(shape)))  # not 0
    return softmax(
        np.log(rng.gamma(shape + 1.0, size=uniform.shape)) + np.log(uniform) / shape, axis=1
    )
