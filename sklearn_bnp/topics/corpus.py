"""From the data that users pass to a `Corpus`: checked, with the entries of each document side by side.

Design note. There are two kinds of corpus. Without ``groups``, a row of X is a document and holds the count
of each word type. With ``groups``, a row of X is one token of the document that ``groups`` names, under
any likelihood. The rows of a document need not be adjacent: they are sorted, stably, and `Corpus.rows`
says where each came from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from ..estimator.base import moments_of_rows
from ..estimator.observations import can, resolve_observation
from ..estimator.sample_weights import check_weights, weight_of_each
from ..estimator.validation import check_rows, read_frames
from ..inputs.advice import warn_caller
from ..inputs.batches import ArraySource
from ..inputs.frames import is_sparse_frame, require_zeros_to_fill
from ..inputs.group_ids import check_groups
from ..inputs.rows import canonical
from ..inputs.tables import (
    in_numpy,
    require_finite_counts,
    require_rows,
    require_table,
    says_what_is_no_number,
)
from ..likelihood import Moments
from ..likelihood.limits import LEAST, LEAST_MASS, MOST_MASS
from ..likelihood.multinomial import MultinomialLikelihood
from .batch import DocumentBatch

# Relative difference up to which two numbers are equal: tf-idf may be in single precision.
_CLOSE = 1e-4
# Share of the entries, and number of different factors of words, that are evidence of tf-idf.
_MOST, _LEAST_FACTORS = 0.9, 3


class Corpus(NamedTuple):
    """Documents, and their places in X.

    Attributes
    ----------
    documents : DocumentBatch
    rows : ndarray, shape (n,), or None
        Row of X of each entry; None if rows are documents.
    document_of_row : ndarray, shape (n_samples,)
        Document of each row of X.
    n_features : int
    dtype : dtype
        Data type of X.
    kept : ndarray of bool, or None
        True for entries of X that are in the corpus: documents of weight 0 are left out, and rows that say
        nothing. All if None.
    reading : Reading or None
        How a frame is read.
    """

    documents: DocumentBatch
    rows: np.ndarray | None
    document_of_row: np.ndarray
    n_features: int
    dtype: np.dtype
    kept: np.ndarray | None = None
    reading: object = None

    @property
    def batch(self):
        """All documents as one batch."""
        return self.documents

    @property
    def n_documents(self):
        return len(self.documents.indptr) - 1

    def in_order_of_rows(self, values, of_document):
        """Values, one per entry, in the order of X.

        Rows that say nothing have the value of their document, ``of_document(documents)``.
        """
        if self.rows is None:
            return values
        n = len(self.document_of_row)
        out = np.empty((n, *values.shape[1:]), dtype=values.dtype)
        out[self.rows] = values
        if len(self.rows) < n:
            silent = np.ones(n, dtype=bool)
            silent[self.rows] = False
            out[silent] = of_document(self.document_of_row[silent])
        return out


class CountRows(MultinomialLikelihood):
    """Multinomial likelihood of rows that are tokens: each whole row belongs to one topic."""

    words = joins_types = False


def takes_words(observation):
    """Whether an observation model, or its name, takes documents of words, which need no ``groups``."""
    return can(observation, "takes_words")


def has_documents_of_words(estimator):
    """Whether an estimator was fitted to documents of words; before a fit, whether it could be.

    With ``groups`` the rows of any observation are tokens, and belong to topics.
    """
    fitted = vars(estimator)
    if "_model" in fitted:
        return fitted["_model"].likelihood.words
    if "_learner_" in fitted:  # attributes are still to be computed
        return fitted["_learner_"].model.likelihood.words
    return takes_words(estimator.observation)


def check_corpus(estimator, x, groups, observation, *, reset, sample_weight=None, of_chunk=False):
    """`Corpus` of the arguments of an estimator's method, or of a chunk of them, checked."""
    if groups is None:
        corpus = _corpus_of_words(estimator, x, observation, reset)
        weight = check_weights(sample_weight, corpus.n_documents, "document", of_chunk=of_chunk)
        return _weighted(corpus, weight)
    rows, reading = check_rows(estimator, x, reset=reset)
    corpus = corpus_of_rows(rows, groups, observation, reading)._replace(reading=reading)
    return with_weights_of_rows(corpus, sample_weight, of_chunk=of_chunk)


def with_weights_of_rows(corpus, sample_weight, *, of_chunk=False):
    """The corpus of rows with weights, of each row that of its document; no weights are None."""
    number = corpus.document_of_row
    weight = check_weights(sample_weight, len(number), "row", of_chunk=of_chunk)
    if weight is not None:
        weight = weight_of_each(weight, number, corpus.n_documents, "document")
    return _weighted(corpus, weight)


def _weighted(corpus, weight):
    """The corpus with weights (n_documents,), without documents of weight 0; weights may be None."""
    if weight is None:
        return corpus
    documents, keep = corpus.documents._replace(weight=weight.copy()), weight > 0
    if keep.all():
        return corpus._replace(documents=documents)
    kept = np.repeat(keep, np.diff(documents.indptr))
    rows = None if corpus.rows is None else corpus.rows[kept]
    if corpus.kept is not None:  # of the entries that are left
        left, kept = kept, corpus.kept.copy()
        kept[kept] = left
    return corpus._replace(documents=documents.chosen(keep), rows=rows, kept=kept)


def check_same_kind(likelihood, has_groups):
    """Raise if a model fitted without ``groups`` is given them, or the other way about."""
    if likelihood.words and has_groups:
        raise ValueError(
            "groups were given, but the model was fitted without groups: a row of X is a whole document. "
            "Leave groups out, or fit with groups."
        )
    if not likelihood.words and not has_groups:
        raise ValueError(
            "groups=None, but the model was fitted with groups; give the document of each row of X."
        )


def check_total_mass(total):
    """Raise if ``total``, the weight of all tokens, is too small or too large; 0 is fine."""
    if total != 0 and not LEAST_MASS < total < MOST_MASS:
        raise ValueError(
            f"The counts in X, times sample_weight, sum to {total:g}; they must sum to {LEAST_MASS:g} to "
            f"{MOST_MASS:g}. Rescale X or sample_weight."
        )


def require_tokens(corpus):
    """Raise if there are no tokens to learn from."""
    if corpus.documents.total_weight > 0:
        return
    if corpus.rows is None:
        raise_no_tokens()
    raise ValueError(
        "No row of X says anything of topics: in each of them everything is missing, or all counts are zero, "
        "or its document has the weight 0. Give rows with values."
    )


def raise_no_tokens():
    """Raise, since there are no tokens to learn from."""
    raise ValueError(
        "X holds no tokens: all its counts are zero. Give documents with words, and check "
        "whether min_df, max_df or stop_words of the vectorizer remove all of them."
    )


# ---------------------------------------------------------------------- words


def _corpus_of_words(estimator, x, observation, reset):
    if not takes_words(observation):
        raise ValueError(
            f"observation={observation!r} takes rows of data as tokens of documents: give groups, "
            "one id per row. Without groups, X holds counts of words, for observation='multinomial'."
        )
    require_table(x, of_words=True)
    require_rows(x, of_words=True)
    [x], reading = read_frames(estimator, [x], reset=reset)
    if is_sparse_frame(x):
        require_zeros_to_fill(x)
    with says_what_is_no_number(x), in_numpy():
        x = validate_data(
            estimator, x, reset=reset, accept_sparse="csr", accept_large_sparse=True, dtype="numeric",
            ensure_all_finite=False,  # which `require_finite_counts` looks for
        )  # fmt: skip
    if x.dtype.kind not in "fiub":
        raise ValueError(f"X has dtype {x.dtype}; it must hold counts.")
    dtype, x = x.dtype, _canonical(x)
    _require_counts(x, type(estimator).__name__)
    documents = DocumentBatch(
        "all", x.indptr.astype(np.int64), x.data, x.indices.astype(np.int32, copy=False)
    )
    n, n_features = x.shape
    return Corpus(documents, None, np.arange(n), n_features, dtype, reading=reading)


def _require_counts(x, name):
    """Raise unless sparse rows hold counts, not negative, tiny or huge; ``name`` is the estimator's."""
    require_finite_counts(x)
    least = x.data.min(initial=0.0)
    if least < 0:
        raise ValueError(
            f"Negative values in data passed to {name}: X holds {least:g}, but "
            "counts of words are zero or more. Look for errors in X (a HashingVectorizer needs "
            "alternate_sign=False and norm=None); or if its rows are data and no documents, give the "
            "document of each by name, groups=..., and an observation such as 'gaussian'."
        )
    least = x.data.min(initial=1.0)  # zeros are not stored
    if least < LEAST:
        raise ValueError(
            f"X holds a count of {least:g}; counts are zero, or {LEAST:g} or more. Rescale X, or set this "
            "count to zero."
        )
    with np.errstate(over="ignore"):
        total = x.data.sum()
    if not total <= MOST_MASS:
        raise ValueError(
            f"The counts in X sum to {total:g}, which is more than {MOST_MASS:g}: beside such a sum, a count "
            "of 1 is lost in rounding. Rescale X."
        )


def _canonical(x):
    """Copy of X as CSR of doubles: entries are sorted and summed, and zeros are not stored."""
    if x.dtype == np.float16 or not x.dtype.isnative:  # SciPy has no such matrices
        x = x.astype(np.float32 if x.dtype == np.float16 else x.dtype.newbyteorder("="))
    return canonical(sparse.csr_array(x)).astype(np.float64, copy=False)


def moments_of_words(documents, n_features):
    """`Moments` of documents of words; likelihoods of words use only the mean."""
    sums = np.bincount(documents.indices, documents.entry_weight, minlength=n_features)
    return moments_of_counts(len(documents.indptr) - 1, n_with_words(documents), sums)


def n_with_words(documents):
    """Number of documents with words that a batch stands for, a float."""
    some, weight = documents.has_entries, documents.weight
    return float(np.count_nonzero(some) if weight is None else weight[some].sum())


def moments_of_counts(n_rows, n_documents, sums):
    """`Moments` of documents, of which ``n_documents`` have words, with these sums (V,) of words."""
    ones, zeros = np.ones(len(sums)), np.zeros(len(sums))
    return Moments(n_rows, ones, sums / max(1, n_documents), zeros, np.finfo(float).eps)


def warn_of_weighting(corpus):
    """Warn if X looks like tf-idf. Fractions are allowed, since they may be counts times a constant."""
    if corpus.rows is not None:
        return
    warn_if_weighted(weighting_of(corpus.documents, corpus.n_features))


def warn_if_weighted(why):
    """Warn if there is a reason to take X for tf-idf, in the line that calls fit."""
    if why is not None:
        warn_caller(
            f"X holds numbers that are not whole, and {why}, as in tf-idf. HDPTopicVB is a model of counts "
            "of words, and these decide how many topics it finds: give counts, as from CountVectorizer."
        )


def weighting_of(documents, n_features):
    """Reason to take the entries for tf-idf weights, or None. Counts times a constant are counts."""
    x, word = documents.counts, documents.indices
    fractions = x[x != np.rint(x)]
    if len(fractions) == 0:
        return None
    first = documents.indptr[:-1][np.diff(documents.indptr) > 0]
    for norm in (np.add.reduceat(x, first), np.sqrt(np.add.reduceat(x * x, first))):
        if np.all(np.abs(norm - 1.0) < _CLOSE):
            return "all rows have the norm 1"
    if np.mean(_are_whole(_counts_of_logs(fractions))) > _MOST:
        return "they are 1 + log(count)"
    if np.mean(_are_whole(_counts_of_logs(fractions + 1.0) - 1.0)) > _MOST:
        return "they are log(1 + count)"
    if np.mean(_are_whole(x / x.min())) > _MOST:
        return None
    # The least entry of a word is its factor, if the word occurs just once in some document.
    factor = np.full(n_features, np.inf)
    np.minimum.at(factor, word, x)
    common = np.bincount(word, minlength=n_features) > 1
    weighted = common & ~_are_whole(factor)
    n_words, own = np.count_nonzero(weighted), weighted[word]
    if len(np.unique(np.round(factor[weighted], 6))) < _LEAST_FACTORS or 2 * n_words < common.sum():
        return None
    ratio = x[own] / factor[word[own]]
    for count in (ratio, _counts_of_logs(ratio)):
        # Each word has one entry whose ratio is 1 whatever the weights: it does not count.
        if np.count_nonzero(_are_whole(count)) - n_words > _MOST * (len(ratio) - n_words):
            return "the entries of each word are multiples of a factor of its own"
    return None


def _counts_of_logs(x):
    """Counts from numbers ``1 + log(count)``; NaN where a number is too large to be that."""
    return np.exp(np.where(x < 20.0, x, np.nan) - 1.0)


def _are_whole(x):
    """Boolean: whole numbers, but for rounding."""
    with np.errstate(invalid="ignore"):  # words that do not occur have infinite factors
        return np.abs(x - np.rint(x)) <= _CLOSE * np.minimum(x, 100.0)


# ---------------------------------------------------------------------- rows with groups


def corpus_of_rows(x, groups, observation, reading=None):
    """`Corpus` of checked rows and the ids of their documents, without rows that say nothing.

    Such a row is equally probable under all topics, and all other rows are as probable without it. Columns
    that the observation does not use are zero.
    """
    used = resolve_observation(observation, reading).used_columns(x.shape[1])
    if used is not None and len(used) < x.shape[1]:
        kept_columns = np.zeros_like(x)
        kept_columns[:, used] = x[:, used]
        x = kept_columns
    ids, _, document_of_row = check_groups(groups, x.shape[0], "document")
    rows = np.argsort(document_of_row, kind="stable")
    sizes = np.bincount(document_of_row, minlength=len(ids))
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    documents = DocumentBatch("all", indptr, x=x if _sorted(rows) else x[rows])
    kept = _telling(documents.x, observation, used)
    if kept is not None:
        documents, rows = documents.restricted(kept), rows[kept]
    return Corpus(documents, rows, document_of_row, x.shape[1], x.dtype, kept)


def _telling(x, observation, used):
    """Boolean (n,): rows that can tell topics apart; None if all of them can.

    Rows of zeros cannot if the observation model declares that, nor can rows of which everything is missing.
    Columns but those that it ``used`` have no say; None are all.
    """
    if used is not None and len(used) < x.shape[1]:
        x = x[:, used]
    if can(observation, "zeros_say_nothing"):
        telling = np.diff(x.indptr) > 0 if sparse.issparse(x) else np.any(x, axis=1)
    elif can(observation, "allows_missing") and x.dtype.kind == "f" and not sparse.issparse(x):
        telling = ~np.isnan(x[:, 0])
        unsure = np.flatnonzero(~telling)
        telling[unsure] = ~np.isnan(x[unsure]).all(axis=1)
    else:
        return None
    return None if telling.all() else np.asarray(telling)


def _sorted(rows):
    return bool(np.all(rows[1:] > rows[:-1]))


# ---------------------------------------------------------------------- likelihoods


def bind_likelihood(observation, corpus, *, streaming=False):
    """Likelihood of the entries of documents, with default priors in the units of the corpus."""
    documents = corpus.documents
    if corpus.rows is None:
        return observation.bind(moments_of_words(documents, corpus.n_features), streaming=streaming)
    weight = None if documents.weight is None else documents.entry_weight
    moments = moments_of_rows(observation, ArraySource(documents.x, weight))
    return as_count_rows(observation.bind(moments, streaming=streaming))


def as_count_rows(likelihood):
    """The likelihood of rows that are tokens of documents."""
    return CountRows(likelihood.prior, likelihood.n_tokens) if likelihood.words else likelihood
