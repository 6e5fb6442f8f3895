"""`MemoryBoundedTopicVB`: topics of a stream of documents, learned in bounded memory."""

from __future__ import annotations

import time
from copy import copy
from itertools import pairwise
from numbers import Real
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval

from ..distributed.recognition import are_chunks
from ..engine.progress import LOGGER
from ..estimator.callbacks import CallbackSupport, FitCall, FitTask
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
from ..inputs.advice import warn_caller
from ..inputs.blas import blas_on_one_thread
from ..inputs.types import Data
from ..likelihood.base import ObservationModel
from ..likelihood.limits import MOST, POSITIVE
from ..topics.corpus import bind_likelihood, require_tokens, with_weights_of_rows
from .epochs import NO_LIMIT, BoundTooSmall, Limits, run_epoch
from .items import NewDocuments, nothing
from .merge import merge_losses
from .model import EpochSettings
from .predictor import BoundedPredictor, corpus_of_whole_rows

# Relative error of sums of weights.
_ROUNDING = 1e-9


class EpochRecord(NamedTuple):
    """Record of an epoch: an entry of ``history_``.

    Attributes
    ----------
    epoch : int
        Number of the epoch, from 1.
    n_components : int
        Number of topics.
    lower_bound : float
        Lower bound after model building, before compression, in nats.
    kept_lower_bound : float
        Lower bound after compression and one more update of the topics, in nats.
    n_clumps, n_singlets, n_document_groups : int
        Clumps, single rows and document groups after compression.
    memory : int
        Numbers kept, as ``memory_bound`` counts them.
    memory_bytes : int
        Bytes of all arrays that are kept.
    n_splits, n_merges : int
        Numbers of accepted splits and merges.
    seconds : float
        Wall time.
    n_rows : int or float
        Rows seen up to this epoch, weights included; 0 in models that were saved without it.
    """

    epoch: int
    n_components: int
    lower_bound: float
    kept_lower_bound: float
    n_clumps: int
    n_singlets: int
    n_document_groups: int
    memory: int
    memory_bytes: int
    n_splits: int
    n_merges: int
    seconds: float
    n_rows: float = 0


@with_shared_text()
class MemoryBoundedTopicVB(CallbackSupport, ObservationParameters, BoundedPredictor):
    """Topic model of an endless stream of documents, in bounded memory.

    A document is a group of rows, and mixes topics: an image of pixels, for instance, or a recording of
    frames. Documents come in epochs. Each epoch has two phases. In the first, the model is built by
    variational updates, and by splits and merges of topics. In the second, the data are compressed: rows
    with nearly the same topic probabilities become a *clump*. Only the summed statistics of a clump are
    kept, and its rows are forgotten.

    Parameters
    ----------
    memory_bound : int or None, default=100_000
        How many numbers, of eight bytes, may be kept between epochs. A clump costs its
        statistics and a count of its rows in each document group. A row that is kept as it is costs its
        columns. In d columns, a clump has ``d (d + 3) / 2`` statistics with full covariances, ``2 d`` with
        diagonal ones, and ``d`` for counts. An integer per document, which `similarity` needs, and a record
        per epoch are not counted. With None all rows are kept, and nothing is compressed.
    target_points : float, default=None
        Number of rows that the model is expected to see in its life. Compression assumes that so many rows
        will come, all like those seen so far. If None, ten times the rows seen so far.
    target_documents : float, default=None
        Number of documents that the model is expected to see in its life, a document of weight w counting
        w times. If None, ten times the documents seen so far.
    max_document_groups : int, default=None
        The greatest number of groups of documents. All documents of a group have the same shares of topics.
        The two groups are joined whose union lowers the bound least. If None, it is the square root of half
        the ``memory_bound``, S: the counts of 2 S clumps in S groups are then ``memory_bound`` numbers.
        Without a ``memory_bound``, each document is a group of its own.
    observation : {"gaussian", "fixed_variance_gaussian", "multinomial", "bernoulli", "categorical", \
            "negative_binomial", "poisson"} or ObservationModel, default="gaussian"
        The likelihood of rows. For columns of several kinds it is a `ColumnObservation`.
    doc_topic_prior_shape : float, default=1.0
        Shape a >= 1 of the gamma prior of alpha_k, the weight of each topic in the Dirichlet prior of
        documents.
    doc_topic_prior_rate : float, default=0.5
        Rate b of the gamma prior of alpha_k.
    max_components : int, default=None
        The greatest number of topics that splits may lead to; no limit if None. The memory bound limits
        topics too, since each needs at least one clump.
    documents_per_epoch : int, default=None
        Number of documents that `fit` takes per epoch, in the order of their sorted ids; all if None.
        For `partial_fit`, each call is one epoch.
    max_iter : int, default=100
        The greatest number of updates between two splits or merges.
    tol : float, default=1e-5
        Updates end when the bound changes by less than ``tol`` times the bound, or times the number of
        rows if that is greater. A split or merge is accepted only if it gains more than that.
    $n_jobs
    verbose : int, default=0
        If 1, show a line per epoch on standard error. It goes through the logger ``sklearn_bnp``.

    Attributes
    ----------
    n_components_ : int
        Number of topics. Topics are sorted by decreasing weight.
    topic_probs_ : ndarray of shape (`n_components_`,)
        Mean over documents of the expected topic shares.
    doc_topic_prior_ : ndarray of shape (`n_components_`,)
        The learned weights alpha_k.
    means_ : ndarray of shape (`n_components_`, n_features)
        Expected means.
    covariances_, precisions_, precisions_cholesky_ : ndarray of shape (K, D, D), (K, D) or (K,)
        Gaussian rows only, as in `DPMixtureVB`, for K topics and D columns. Other likelihoods have the
        attributes that they have there.
    lower_bound_ : float
        Variational lower bound of the log evidence of all data seen, given the learned alpha_k, in nats.
        Higher is better. It is the bound after the first phase of the last epoch, before compression. The
        bound after compression is ``history_[-1].kept_lower_bound``.
    elbo_terms_ : dict
        The terms "data", "entropy" and "allocation" (weights of topics in documents), which sum to
        ``lower_bound_``.
    n_clumps_, n_singlets_ : int
        Number of clumps of several rows, and of rows that are kept as they are.
    n_document_groups_ : int
        Number of document groups.
    document_groups_ : ndarray of int32 of shape (`n_documents_`,)
        The group of each document seen, epoch by epoch, and within an epoch in the order of the sorted ids.
        Documents of weight 0 have not been seen, and are left out.
    clump_sizes_ : ndarray of shape (`n_clumps_`,)
        Rows of each clump; a row of a document of weight w counts as w rows.
    clump_groups_ : ndarray of shape (`n_clumps_`, `n_document_groups_`)
        Rows of each document group in each clump.
    clump_probs_ : ndarray of shape (`n_clumps_`, `n_components_`)
        Responsibility of each topic for each clump.
    clump_means_ : ndarray of shape (`n_clumps_`, n_features)
        Mean of the rows of each clump, for likelihoods whose topics have ``means_``.
    n_documents_ : int
        Documents seen; one of weight 0 is not.
    n_rows_ : int or float
        Rows seen; a row of a document of weight w counts as w rows.
    memory_ : int
        Numbers kept, as ``memory_bound`` counts them.
    memory_bytes_ : int
        Bytes of all arrays that are kept of the data and of the topics.
    history_ : list of EpochRecord
        One record per epoch, a named tuple: epoch, n_components, lower_bound, kept_lower_bound, n_clumps,
        n_singlets, n_document_groups, memory, memory_bytes, n_splits, n_merges, seconds, n_rows. The two
        bounds are those before and after compression, in nats. ``n_splits`` and ``n_merges`` count what was
        accepted, and ``n_rows`` all rows seen so far. It may be deleted to save memory; the next epoch
        begins another.
    n_iter_ : int
        Epochs.
    $n_features_in_
    $feature_names_in_

    See Also
    --------
    HDPTopicVB : For documents that fit in memory or in files, and for texts.
    DPMixtureVB : For rows without documents; its memory is bounded too with ``memoize=False``.

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
        memory_bound: int = 100_000,
        *,
        target_points: float | None = None,
        target_documents: float | None = None,
        max_document_groups: int | None = None,
        observation: str | ObservationModel = "gaussian",
        doc_topic_prior_shape: float = 1.0,
        doc_topic_prior_rate: float = 0.5,
        max_components: int | None = None,
        documents_per_epoch: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
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
    def fit(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn topics and their number from scratch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,)
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            A document of weight w counts as w equal documents: the weight of each row's document.

        Returns
        -------
        self : MemoryBoundedTopicVB
            The fitted estimator.

        $raises
            If ``groups`` are not given, or ``memory_bound`` has no room for a single clump.

        $warns_later
            If ``memory_bound`` has room for no more topics. Topics are then joined to make room for others.
        """
        corpus = self._training_corpus(X, groups, sample_weight, reset=True)
        self._begin(corpus, streaming=False)
        documents = corpus.documents
        n = len(documents.indptr) - 1
        step = n if self.documents_per_epoch is None else self.documents_per_epoch
        parts, epochs = list(pairwise([*range(0, n, step), n])), []
        call = FitCall(X, y, {"groups": groups, "sample_weight": sample_weight})
        with FitTask(self, call, len(parts)) as task:
            for first, last in parts:
                task.begin("epoch")
                epochs.append(self._epoch(documents.part(None, first, last)))
                if task.end(self._as_if_ended(epochs[-1])):
                    break
            self._publish(epochs[-1])
        return self._warned(epochs)

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def partial_fit(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from an epoch of new documents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data. The units and the default priors come from the first epoch.
        y : None
            Ignored; documents are given by name, ``groups=...``.
        groups : array-like of shape (n_samples,)
            The document of each row of X. Ids hold within a call only: a document belongs to one epoch as a
            whole, and the same id in a later call is another document.
        sample_weight : array-like of shape (n_samples,), default=None
            A document of weight w counts as w equal documents: the weight of each row's document.

        Returns
        -------
        self : MemoryBoundedTopicVB
            The fitted estimator.

        $raises_later
            If ``groups`` are not given, or ``memory_bound`` has no room for a single clump.

        $warns_later
            If ``memory_bound`` has room for no more topics. Topics are then joined to make room for others.
        """
        first = not hasattr(self, "_kept")
        corpus = self._training_corpus(X, groups, sample_weight, reset=first)
        documents = corpus.documents
        if first:
            self._begin(corpus, streaming=True)
        else:
            self._validate_params()  # `_fit_context` leaves that to the first call
            check_same_observation(self.observation, self._observation, "partial_fit")
            documents = check_units(self._likelihood, documents)
        epoch = self._epoch(documents)
        self._publish(epoch)
        return self._warned([epoch])

    def _training_corpus(self, X, groups, sample_weight, *, reset):
        """`Corpus` of checked rows."""
        if are_chunks(X):
            raise ValueError(
                "X is data in chunks, which MemoryBoundedTopicVB does not take. Call partial_fit for each "
                "chunk: partial_fit(**reference.load()), or the rows that X.compute() returns."
            )
        observation = checked(resolve_observation(self.observation))
        check_explains_rows(observation)
        corpus = corpus_of_whole_rows(self, X, groups, reset=reset)
        return with_weights_of_rows(corpus, sample_weight)

    def _begin(self, corpus, *, streaming):
        """Begin with an empty model in the units of a corpus."""
        require_tokens(corpus)
        observation = resolve_observation(self.observation, corpus.reading)
        likelihood = bind_likelihood(observation, corpus, streaming=streaming)
        self._likelihood = likelihood.of_vectors()  # of which clumps have means
        if self._likelihood.may_be_far_out or corpus.documents.weight is not None:
            check_units(self._likelihood, corpus.documents)
        self._observation = clone(resolve_observation(self.observation))
        dtype = self._likelihood.prepare(corpus.documents.x[:1]).dtype
        self._kept, self._topics = nothing(self._likelihood, dtype), None
        self._n_epochs, self.history_ = 0, []

    def _epoch(self, documents):
        """Learn from an epoch and record it; returns the `Epoch`."""
        start, settings = time.perf_counter(), self._epoch_settings()
        limits = Limits(
            self.memory_bound, self.target_points, self.target_documents, self.max_document_groups
        )
        indptr, weight = documents.indptr, documents.weight
        weight = np.ones(len(indptr) - 1) if weight is None else weight
        new = NewDocuments(self._likelihood.prepare(np.asarray(documents.x)), indptr, weight)
        try:
            with blas_on_one_thread():
                epoch = run_epoch(settings, limits, self._kept, self._topics, new)
        except BoundTooSmall as error:
            raise ValueError(self._least_bound(error)) from error
        self._kept, self._topics = epoch.kept, epoch.topics
        self._n_epochs += 1
        record = EpochRecord(
            epoch=self._n_epochs,
            n_components=len(epoch.topics.s),
            lower_bound=epoch.topics.bound,
            kept_lower_bound=epoch.kept_bound,
            n_splits=epoch.n_splits,
            n_merges=epoch.n_merges,
            seconds=time.perf_counter() - start,
            **self._sizes_of_kept(),
        )
        self.history_ = [*vars(self).get("history_", ()), record]  # it may have been deleted
        if self.verbose:
            LOGGER.info(
                f"MemoryBoundedTopicVB: epoch {record.epoch} K={record.n_components} bound "
                f"{record.lower_bound:.1f} clumps {record.n_clumps} memory {record.memory} "
                f"{record.seconds:.1f} s"
            )
        return epoch

    def _sizes_of_kept(self):
        """How much is kept, a dict: fields of `EpochRecord`, which are attributes, too."""
        kept, topics = self._kept, self._topics
        held = (topics.s, topics.counts, topics.entropy, topics.alpha)
        return {
            "n_clumps": len(kept.s),
            "n_singlets": len(kept.z),
            "n_document_groups": len(kept.sizes),
            "memory": kept.n_numbers,
            "memory_bytes": kept.n_bytes + sum(array.nbytes for array in held),
            "n_rows": _whole(kept.s[:, -1].sum() + kept.weight.sum()),
        }

    def _epoch_settings(self):
        """`EpochSettings` of the parameters as they are set now."""
        return EpochSettings(
            self._likelihood,
            shape=self.doc_topic_prior_shape,
            rate=self.doc_topic_prior_rate,
            tol=self.tol,
            max_iter=self.max_iter,
            max_topics=NO_LIMIT if self.max_components is None else self.max_components,
            n_threads=threads(self.n_jobs),
        )

    def _sizes_and_losses(self):
        """Rows of each topic, and the losses of merges in the clumps and rows that are kept."""
        with blas_on_one_thread():
            losses = merge_losses(self._epoch_settings(), self._topics, self._kept)
        return self._topics.s[:, -1], losses

    def _least_bound(self, error):
        """Message of a bound that is too small."""
        groups = "1 group" if error.n_groups == 1 else f"{error.n_groups} groups"
        return (
            f"memory_bound={self.memory_bound} is too small for this epoch: a topic needs a clump, whose "
            f"statistics and counts for {groups} of documents take memory_bound={error.least} at least. "
            "Raise memory_bound, or have fewer groups by max_document_groups."
        )

    def _as_if_ended(self, epoch):
        """A function that gives the attributes by name as if this epoch had been the last one."""

        def attributes():
            ended = copy(self)
            ended._publish(epoch)
            return vars(ended)

        return attributes

    def _publish(self, epoch):
        """Set the fitted attributes after an epoch."""
        weights = self._weights_of_topics()
        order = np.lexsort((-self._topics.s[:, -1], -weights))
        self._topics = self._topics.take(order)
        attributes = {**self._attributes(weights[order]), "elbo_terms_": epoch.elbo_terms}
        bounds = {"lower_bound_": self._topics.bound}
        require_finite(self, bounds, attributes, but=self._likelihood.may_be_nan)
        set_published(self, attributes)

    def _weights_of_topics(self):
        """Expected shares (K,) of topics in all documents."""
        sizes = self._kept.sizes
        zeta = self._topics.zeta(sizes)
        return (zeta / zeta.sum(axis=0)) @ sizes / sizes.sum()

    def _attributes_again(self):
        """The fitted attributes by name, but ``elbo_terms_``: what an epoch learned from is gone."""
        return self._attributes(self._weights_of_topics())

    def _attributes(self, weights):
        """The fitted attributes by name, but ``elbo_terms_``, for topics of these weights."""
        likelihood, topics, s = self._likelihood, self._topics, self._topics.s
        return {
            **likelihood.attributes(topics.prior, s),
            "_statistics": s,
            "_coef": likelihood.coefficients(topics.prior, s),
            "topic_probs_": weights,
            "doc_topic_prior_": topics.alpha,
            "n_components_": len(s),
            "lower_bound_": topics.bound,
            **{f"{name}_": size for name, size in self._sizes_of_kept().items()},
            "n_documents_": len(self._kept.group_of_document),
            "n_iter_": self._n_epochs,
        }

    def _warned(self, epochs):
        """The estimator, after a warning if there was no room for more topics in some epochs."""
        rooms = [epoch.room for epoch in epochs if epoch.is_full]
        if rooms:
            groups = f"{self.n_document_groups_} groups of documents"
            warn_caller(
                f"memory_bound={self.memory_bound} has room for {min(rooms)} clumps, beside the counts of "
                f"{groups}, and so for {min(rooms)} topics. Topics were joined to make room, or could not be "
                "split. Raise memory_bound, or set a lower max_document_groups."
            )
        return self


def _whole(n):
    """A number, as an int if it is whole but for rounding."""
    return round(n) if abs(n - round(n)) <= _ROUNDING * n else float(n)
