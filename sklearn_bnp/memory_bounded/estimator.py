"""Topic models that learn for as long as data come, in memory that is bounded."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval

from ..estimator.base import bind_likelihood
from ..estimator.observations import (
    ObservationParameters,
    check_explains_rows,
    check_same_observation,
    resolve_observation,
)
from ..estimator.parameters import COMMON, COUNT, with_shared_text
from ..estimator.publishing import require_finite, set_published
from ..estimator.threads import threads
from ..estimator.transactions import leaves_model_on_error
from ..estimator.validation import check_units, checked
from ..inputs.batches import ArraySource
from ..inputs.blas import blas_on_one_thread
from ..likelihood.limits import MOST, POSITIVE
from ..topics.corpus import CountRows, corpus_of_rows
from .epochs import BoundTooSmall, Limits, run_epoch
from .predictor import BoundedPredictor, check_whole_rows
from .state import Settings, nothing

# Beyond any number of topics that a model could have.
_NO_LIMIT = sys.maxsize


class EpochRecord(NamedTuple):
    """Record of an epoch: an entry of ``history_``.

    Attributes
    ----------
    epoch : int
        From 1.
    n_components : int
        Topics after it.
    free_energy : float
        Bound after model building, before rows were joined.
    kept_free_energy : float
        Bound of what is left once they are.
    n_clumps, n_singlets, n_document_groups : int
        What is kept.
    memory : int
        Numbers kept, as the memory bound counts them.
    memory_bytes : int
        Bytes of the arrays that are kept.
    n_splits, n_merges : int
        Accepted.
    seconds : float
        Wall time.
    """

    epoch: int
    n_components: int
    free_energy: float
    kept_free_energy: float
    n_clumps: int
    n_singlets: int
    n_document_groups: int
    memory: int
    memory_bytes: int
    n_splits: int
    n_merges: int
    seconds: float


@with_shared_text()
class MemoryBoundedTopicVB(ObservationParameters, BoundedPredictor):
    """Topic model that learns from documents for ever in bounded memory.

    Documents (images, recordings, sites) are groups of rows, and mix topics. They come in epochs. In
    each, the model is built: variational updates, and splits and merges of topics. Then what is known
    of the data is compressed: rows that topics will hardly tell apart become a *clump*, of which
    only the summed statistics are kept, and the rows themselves are forgotten.

    Parameters
    ----------
    memory_bound : int or None, default=100_000
        Most numbers that may be kept between epochs: for each clump its statistics and its count of rows in
        each document group, and for each row that is kept as it is its columns. A clump in d
        columns has ``d (d + 3) / 2`` statistics with full covariances, ``2 d`` with diagonal ones and
        ``d`` for counts. None keeps all rows: the batch algorithm. Beyond it an integer is kept for each
        document, which `similarity` asks for, and a record for each epoch.
    target_points : float, default=None
        How many rows the model is expected to see in its life. What is compressed is chosen as if there
        were so many, all like those that were seen; ten times those seen if None.
    target_documents : float, default=None
        The same of documents.
    max_document_groups : int, default=None
        Most groups of documents with topic weights of their own; those most alike are joined. All
        documents have their own if None: memory for counts then grows with them, and clumps get fewer.
    observation : {"gaussian", "fixed_variance_gaussian", "multinomial", "bernoulli", "categorical", \
            "poisson"} or ObservationModel, default="gaussian"
        The likelihood of rows; `ColumnObservation` for columns of several kinds.
    doc_topic_prior_shape : float, default=1.0
        Shape a >= 1 of the gamma prior of each topic's weight alpha_k, the parameter of the documents'
        Dirichlet prior.
    doc_topic_prior_rate : float, default=0.5
        Rate b of the same.
    max_components : int, default=None
        Splits do not lead beyond this number of topics. A memory bound limits it too: each topic has a
        clump at least.
    documents_per_epoch : int, default=None
        Documents that `fit` takes at a time, in the order of their sorted ids; all if None.
        `partial_fit` always takes what it is given.
    max_iter : int, default=100
        Most updates in a row, until they are taken for converged.
    tol : float, default=1e-5
        Updates end, and splits and merges have to bring more, at this change of the bound relative to
        its value (or to the number of rows, if that is greater).
    $n_jobs
    verbose : int, default=0
        If 1, print a line an epoch on standard error.

    Attributes
    ----------
    n_components_ : int
        Number of topics, which are sorted by decreasing weight.
    topic_probs_ : ndarray of shape (`n_components_`,)
        Mean of the documents' expected shares of the topics.
    doc_topic_prior_ : ndarray of shape (`n_components_`,)
        The learned weights alpha_k.
    means_, covariances_, precisions_, precisions_cholesky_ : ndarray
        As in `DPMixtureVB`; of other likelihoods, their own.
    free_energy_ : float
        The variational bound of all data seen, in nats, after the model building of the last epoch: a
        lower bound of the log evidence given the learned weights alpha_k; higher is better.
    n_clumps_, n_singlets_ : int
        Clumps of several rows, and rows that are kept as they are.
    n_document_groups_ : int
        Groups of documents.
    n_documents_ : int
        Documents seen.
    n_rows_ : int
        Rows seen.
    memory_ : int
        Numbers kept, as ``memory_bound`` counts them.
    memory_bytes_ : int
        Bytes of all arrays that are kept of the data and of the topics.
    history_ : list of EpochRecord
        What each epoch did.
    n_iter_ : int
        Epochs.
    $n_features_in_
    $feature_names_in_

    References
    ----------
    R. Gomes, M. Welling and P. Perona, Memory bounded inference in topic models, ICML 2008.

    N. Ueda, R. Nakano, Z. Ghahramani and G. Hinton, SMEM algorithm for mixture models, Neural
    Computation 12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import MemoryBoundedTopicVB
    >>> rng = np.random.default_rng(0)
    >>> model = MemoryBoundedTopicVB(memory_bound=500)
    >>> for _ in range(5):  # epochs of four documents with 100 rows each
    ...     X = rng.normal(size=(400, 2)) + rng.choice([-9.0, 0.0, 9.0], size=(400, 1))
    ...     model = model.partial_fit(X, groups=np.repeat(np.arange(4), 100))
    >>> model.n_components_, model.n_rows_, model.memory_ <= 500
    (3, 2000, True)
    """

    _parameter_constraints = {
        **COMMON,
        "memory_bound": [COUNT, None],
        "target_points": [POSITIVE, None],
        "target_documents": [POSITIVE, None],
        "max_document_groups": [COUNT, None],
        "doc_topic_prior_shape": [Interval(Real, 1, MOST, closed="both")],
        "doc_topic_prior_rate": [POSITIVE],
        "documents_per_epoch": [COUNT, None],
        "max_iter": [COUNT],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        memory_bound=100_000,
        *,
        target_points=None,
        target_documents=None,
        max_document_groups=None,
        observation="gaussian",
        doc_topic_prior_shape=1.0,
        doc_topic_prior_rate=0.5,
        max_components=None,
        documents_per_epoch=None,
        max_iter=100,
        tol=1e-5,
        n_jobs=None,
        verbose=0,
    ):
        self.memory_bound = memory_bound
        self.target_points = target_points
        self.target_documents = target_documents
        self.max_document_groups = max_document_groups
        self.observation = observation
        self.doc_topic_prior_shape = doc_topic_prior_shape
        self.doc_topic_prior_rate = doc_topic_prior_rate
        self.max_components = max_components
        self.documents_per_epoch = documents_per_epoch
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def fit(self, X, y=None, *, groups=None):
        """Learn topics and their number, and forget what was learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. All rows are one document if None: then the model is a mixture,
            with weights that all rows share.

        Returns
        -------
        self : MemoryBoundedTopicVB
            The fitted estimator.
        """
        corpus = self._corpus(X, groups, reset=True)
        self._begin(corpus, streaming=False)
        documents = corpus.documents
        n = len(documents.indptr) - 1
        step = n if self.documents_per_epoch is None else self.documents_per_epoch
        for first, last in pairwise([*range(0, n, step), n]):
            self._epoch(documents.part(None, first, last))
        return self._publish()

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def partial_fit(self, X, y=None, *, groups=None):
        """Learn from an epoch of new documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data. The first epoch gives the units and the default priors.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X; all rows are one document if None. Ids mean nothing beyond the
            epoch, which holds whole documents: those of earlier epochs are others.

        Returns
        -------
        self : MemoryBoundedTopicVB
            The fitted estimator.
        """
        first = not hasattr(self, "_kept")
        corpus = self._corpus(X, groups, reset=first)
        documents = corpus.documents
        if first:
            self._begin(corpus, streaming=True)
        else:
            self._validate_params()  # `_fit_context` leaves that to the first call
            check_same_observation(self.observation, self._observation, "partial_fit")
            documents = check_units(self._likelihood, documents)
        self._epoch(documents)
        return self._publish()

    def _corpus(self, X, groups, *, reset):
        """`Corpus` of checked rows."""
        observation = checked(resolve_observation(self.observation))
        check_explains_rows(observation)
        x, reading = check_whole_rows(self, X, reset=reset)
        groups = np.zeros(len(x), dtype=int) if groups is None else groups
        return corpus_of_rows(x, groups)._replace(reading=reading)

    def _begin(self, corpus, *, streaming):
        """Begin with an empty model in the units of a corpus."""
        documents = corpus.documents
        observation = resolve_observation(self.observation, corpus.reading)
        source = ArraySource(documents.x, None)
        likelihood = bind_likelihood(observation, source, streaming=streaming)
        if likelihood.words:
            likelihood = CountRows(likelihood.prior, likelihood.n_tokens)
        self._observation = clone(resolve_observation(self.observation))
        self._likelihood = likelihood
        dtype = likelihood.prepare(documents.x[:1]).dtype
        self._kept, self._topics, self.history_ = nothing(likelihood, dtype), None, []

    def _epoch(self, documents):
        """Learn from an epoch, and note what it did."""
        start = time.perf_counter()
        most = _NO_LIMIT if self.max_components is None else self.max_components
        settings = Settings(
            self._likelihood, self.doc_topic_prior_shape, self.doc_topic_prior_rate, self.tol,
            self.max_iter, most, threads(self.n_jobs),
        )  # fmt: skip
        limits = Limits(
            self.memory_bound, self.target_points, self.target_documents, self.max_document_groups
        )
        z = self._likelihood.prepare(np.asarray(documents.x))
        try:
            with blas_on_one_thread():
                epoch = run_epoch(settings, limits, self._kept, self._topics, z, documents.indptr)
        except BoundTooSmall as error:
            raise ValueError(self._least_bound(error)) from error
        self._kept, self._topics = epoch.kept, epoch.topics
        kept, topics = epoch.kept, epoch.topics
        held = (topics.s, topics.counts, topics.entropy, topics.alpha)
        record = EpochRecord(
            len(self.history_) + 1, len(topics.s), topics.bound, epoch.kept_bound, len(kept.s),
            len(kept.z), len(kept.sizes), kept.n_numbers,
            kept.n_bytes + sum(array.nbytes for array in held), epoch.n_splits, epoch.n_merges,
            time.perf_counter() - start,
        )  # fmt: skip
        self.history_ = [*self.history_, record]
        if self.verbose:
            print(
                f"MemoryBoundedTopicVB: epoch {record.epoch} K={record.n_components} bound "
                f"{record.free_energy:.1f} clumps {record.n_clumps} memory {record.memory} "
                f"{record.seconds:.1f} s",
                file=sys.stderr,
            )

    def _least_bound(self, error):
        groups = "1 group" if error.n_groups == 1 else f"{error.n_groups} groups"
        return (
            f"memory_bound={self.memory_bound} is too small for this epoch: a topic with a clump, "
            f"which has statistics and a count for {groups} of documents, needs "
            f"memory_bound={error.least} at least. Raise it, or have fewer groups by "
            "max_document_groups."
        )

    def _publish(self):
        """Set the fitted attributes."""
        kept, topics, likelihood = self._kept, self._topics, self._likelihood
        zeta = topics.counts / kept.sizes + topics.alpha[:, np.newaxis]
        weights = (zeta / zeta.sum(axis=0)) @ kept.sizes / kept.sizes.sum()
        order = np.lexsort((-topics.s[:, -1], -weights))
        s, record = topics.s[order], self.history_[-1]
        attributes = {
            **likelihood.attributes(topics.prior, s),
            "_statistics": s,
            "_coef": likelihood.coefficients(topics.prior, s),
            "topic_probs_": weights[order],
            "doc_topic_prior_": topics.alpha[order],
            "n_components_": len(s),
            "free_energy_": topics.bound,
            "n_clumps_": record.n_clumps,
            "n_singlets_": record.n_singlets,
            "n_document_groups_": record.n_document_groups,
            "n_documents_": len(kept.group_of_document),
            "n_rows_": round(float(s[:, -1].sum())),
            "memory_": record.memory,
            "memory_bytes_": record.memory_bytes,
            "n_iter_": record.epoch,
        }
        require_finite(self, {"free_energy_": topics.bound}, attributes, but=likelihood.restated)
        set_published(self, attributes)
        return self
