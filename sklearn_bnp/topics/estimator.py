"""Topic models that find their own number of topics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from ..distributed.recognition import are_chunks
from ..engine.proposal import Proposal
from ..estimator import base
from ..estimator.callbacks import FitCall
from ..estimator.chunks import ChunkedData
from ..estimator.observations import resolve_observation
from ..estimator.parameters import COUNT, OF_LEARNERS, with_shared_text
from ..estimator.transactions import leaves_model_on_error
from ..estimator.validation import check_units
from ..inputs.groups import GroupSource
from ..inputs.types import Data, RandomState
from ..likelihood.base import ObservationModel
from ..likelihood.limits import POSITIVE
from . import setup
from .chunks import (
    DocumentReader,
    are_of_words,
    bind_likelihood_in_chunks,
    warn_of_weighting_in_chunks,
)
from .corpus import (
    bind_likelihood,
    check_corpus,
    check_same_kind,
    check_total_mass,
    raise_no_tokens,
    require_tokens,
    warn_of_weighting,
)
from .model import LocalSchedule
from .predictor import TopicPredictor

_NUMBER = Interval(Integral, 0, None, closed="left")


@with_shared_text(
    components="topics",
    units="documents",
    entry="token",
    heirs="those that take over its tokens keep their names",
    proposals="`TopicBirth`, `Merge`, `TopicDelete`, `Resettle` and `TopicRestart`",
)
class HDPTopicVB(base.LearnerEstimator, TopicPredictor):
    """Topic model whose number of topics is learned.

    It finds the topics of documents, and the share of each topic in each document. A fit starts from one
    topic. It proposes to add topics (births), to join some (merges) and to remove some (deletes). A proposal
    is accepted only if the evidence lower bound (ELBO) of the whole corpus rises. The prior of the shares is
    a hierarchical Dirichlet process, or that of latent Dirichlet allocation with
    ``allocation="dirichlet"``. With ``groups``, rows of numbers take the place of words; such a model is
    called an admixture.

    Parameters
    ----------
    $n_components
    observation : {"multinomial", "gaussian", "fixed_variance_gaussian", "bernoulli", "categorical", \
            "negative_binomial", "poisson"} or ObservationModel, default="multinomial"
        The likelihood. All but the multinomial need ``groups``.
    allocation : {"hdp", "dirichlet"}, default="hdp"
        Prior of the shares of topics in a document: a hierarchical Dirichlet process, or a finite
        symmetric Dirichlet distribution.
    topic_word_prior : float, array-like of shape (n_features,) or "auto", default=None
        Pseudo-count of each word type in the Dirichlet prior of topics. With ``"auto"`` it is
        ``a + b p``, where p is the frequency of the type in the corpus. a and b are chosen such that the
        ELBO is highest, once there are several topics. If a fit starts with several, this waits until they
        have settled. Stochastic learning keeps the first values of a and b. If None, it is ``"auto"``, or the
        prior of a `MultinomialObservation` that is given as ``observation``. Other likelihoods have priors
        of their own.
    doc_topic_prior : float or "auto", default="auto"
        For ``"hdp"``, the concentration alpha: how closely the shares of topics in a document follow those
        in the corpus. ``"auto"`` starts from 1 and learns it by the ELBO once there are several topics. If a
        fit starts with several, this waits until they have settled. With stochastic learning it is 1. For
        ``"dirichlet"``, the parameter of each topic; ``"auto"`` is 1 / K.
    weight_concentration_prior : float, default=None
        For ``"hdp"``, the concentration gamma of the shares of topics in the corpus (1 if None). Greater
        values favour more topics.
    $max_components
    $proposals
    $learning_method
    batch_size : int, default=None
        Number of documents in a batch. If it and ``n_batches`` are None, there are ten batches of at least
        4096 documents.
    $n_batches
    n_nonzero_resp : int, default=None
        The greatest number of topics that may share a word of a document in a fit. All topics may if None.
        Of responsibilities in ``init_params``, the largest of each word are kept.
    warm_start_docs : bool, default=True
        Whether the computation of a document's topics goes on from those of its last visit. Every other
        lap it also starts anew, and the better result is kept, so that the ELBO never falls. If False, it
        starts anew in each lap.
    doc_restarts : int, default=5
        When the computation for a document starts anew in a fit, so many of its smallest topics, 0 or more,
        are removed on trial, one by one. Each stays away if that is better. Predictions do without.
    max_doc_update_iter : int, default=100
        The greatest number of iterations for a document in a local step.
    doc_tol : float, default=0.05
        The iterations for a document end when no topic's count in it changes by more tokens than this, which
        is above 0.
    $max_iter
    $tol
    n_init : int, default=1
        Number of fits with different random numbers, each with up to ``max_iter`` laps: first topics if
        there are several, order of batches, and documents that births look at. The one with the highest ELBO
        is kept. Topics that are given in ``init_params`` are the same in all fits; a callable
        is called for each.
    init_params : {"random", "k-means++", "anchor"}, callable or ndarray, default="random"
        Source of the first topics:

        - ``"random"`` and ``"k-means++"``: each topic is half the corpus and half a document. Documents are
          drawn at random, or by Bregman k-means++.
        - ``"anchor"``, which is best for text: each topic is built about an anchor word, which occurs in
          this topic alone.
        - An array of topics of shape (K, n_features), of which only the proportions count.
        - An array of responsibilities of shape (n_entries, K), for the nonzeros of X row by row; with
          ``groups``, for the rows of X. With ``max_iter=0``, `fit` makes one global step on them.
        - A callable ``(X, n_components, random_state)`` that returns one of these arrays.

        If the number of topics is fixed (``proposals=None``, or the stochastic method), topics keep the
        order in which they were given.
    $warm_start
    memoize : bool, default=True
        Whether `partial_fit` keeps the counts of topics in each document. The objective needs them, so
        False is only for ``learning_method="stochastic"``, which never keeps any.
    $max_batches
    $learning_decay
    $learning_offset
    $total_samples
    $random_state
    $n_jobs
    $verbose

    Attributes
    ----------
    n_components_ : int
        Number of topics found. They are sorted by decreasing weight; but if their number is fixed, they
        keep the order in which ``init_params`` gave them.
    components_ : ndarray of shape (`n_components_`, n_features)
        Words only: ``topic_word_prior`` plus the expected count of each word in each topic. These are the
        parameters of the topics' Dirichlet posteriors.
    exp_dirichlet_component_ : ndarray of shape (`n_components_`, n_features)
        Words only: ``exp(E[log p(word | topic)])``.
    means_ : ndarray of shape (`n_components_`, n_features)
        Expected means. For words, they are the topics' expected distributions.
    covariances_, precisions_, precisions_cholesky_ : ndarray of shape (K, D, D), (K, D) or (K,)
        Gaussian rows only, as in `DPMixtureVB`, for K topics and D columns.
    probabilities_, blocks_, categories_ : ndarray, dict, dict
        Categories, columns of several kinds and frames only, as in `DPMixtureVB`.
    topic_probs_ : ndarray of shape (`n_components_`,)
        Expected shares of the topics in a new document. Under ``"hdp"`` they sum to less than 1: the rest
        is for topics that were never seen.
    doc_topic_prior_ : float
        The value of ``doc_topic_prior`` that was given or learned.
    topic_word_prior_ : float or ndarray of shape (n_features,)
        Words only: the prior that was given or learned.
    lower_bound_ : float
        The ELBO of the whole corpus, in nats. The words of a document count as a sequence in a given order.
    $component_ids_
    $lower_bounds_
    bound_ : float
        Perplexity of the training documents by the ELBO, as scikit-learn's
        LatentDirichletAllocation has it: ``exp(-lower_bound_ / n_tokens)``.
    $elbo_terms_
    $history_
    $n_iter_
    $converged_
    $n_features_in_
    $feature_names_in_

    See Also
    --------
    DPMixtureVB : For rows without groups, and for texts of one subject each (``"multinomial"``).
    MemoryBoundedTopicVB : For rows in groups that never stop coming, in bounded memory.
    sklearn.decomposition.LatentDirichletAllocation : For a given number of topics.

    Notes
    -----
    Counts need not be whole numbers: a word that counts 0.5 is half a token. But do not give tf-idf or other
    weights of words, since the number of topics then has no meaning. `fit` and the first `partial_fit` warn
    of them.

    References
    ----------
    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics,
    and sequences, PhD thesis, Brown University, 2016, Chapters 5 and 7.

    S. Arora et al., A practical algorithm for topic modeling with provable guarantees, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import HDPTopicVB
    >>> rng = np.random.default_rng(0)
    >>> topics = np.kron(np.eye(3), np.full(4, 0.25))
    >>> X = rng.multinomial(50, topics[rng.integers(3, size=60)])
    >>> HDPTopicVB(random_state=0).fit(X).n_components_
    3
    """

    _kind, _chunk_reader = setup.TOPICS, DocumentReader
    _parameter_constraints = {
        **OF_LEARNERS,
        "allocation": [StrOptions(set(setup.DOCUMENT_ALLOCATIONS))],
        "topic_word_prior": [POSITIVE, "array-like", StrOptions({"auto"}), None],
        "doc_topic_prior": [POSITIVE, StrOptions({"auto"})],
        "n_nonzero_resp": [COUNT, None],
        "warm_start_docs": ["boolean"],
        "doc_restarts": [_NUMBER],
        "max_doc_update_iter": [COUNT],
        "doc_tol": [Interval(Real, 0, None, closed="neither")],
        "init_params": [StrOptions({"random", "k-means++", "anchor"}), callable, "array-like"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        observation: str | ObservationModel = "multinomial",
        allocation: str = "hdp",
        topic_word_prior: ArrayLike | str | None = None,
        doc_topic_prior: float | str = "auto",
        weight_concentration_prior: float | None = None,
        max_components: int | None = None,
        proposals: Iterable[str | Proposal] | None = (
            "birth",
            "merge",
            "delete",
            "resettle",
            "restart",
        ),
        learning_method: str = "memoized",
        batch_size: int | None = None,
        n_batches: int | None = None,
        n_nonzero_resp: int | None = None,
        warm_start_docs: bool = True,
        doc_restarts: int = 5,
        max_doc_update_iter: int = 100,
        doc_tol: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 1,
        init_params: str | Callable[..., Any] | ArrayLike = "random",
        warm_start: bool = False,
        memoize: bool = True,
        max_batches: int | None = None,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        total_samples: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.observation = observation
        self.allocation = allocation
        self.topic_word_prior = topic_word_prior
        self.doc_topic_prior = doc_topic_prior
        self.weight_concentration_prior = weight_concentration_prior
        self.max_components = max_components
        self.proposals = proposals
        self.learning_method = learning_method
        self.batch_size = batch_size
        self.n_batches = n_batches
        self.n_nonzero_resp = n_nonzero_resp
        self.warm_start_docs = warm_start_docs
        self.doc_restarts = doc_restarts
        self.max_doc_update_iter = max_doc_update_iter
        self.doc_tol = doc_tol
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init_params = init_params
        self.warm_start = warm_start
        self.memoize = memoize
        self.max_batches = max_batches
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.total_samples = total_samples
        self.random_state = random_state
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
        """Learn topics and their number.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), dask collection or list of chunks
            How often each word occurs in each document. With ``groups``, rows of data, in which NaN stands
            for an entry that was not observed, where the likelihood allows it. Dask arrays and frames, and
            lists of delayed batches or of batch references, are worked on where they lie; each chunk holds
            whole documents (:doc:`/distributed`).
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X.
        sample_weight : array-like of shape (n_samples,), default=None
            A document of weight w counts as w equal documents. With ``groups``, the weight of each
            row's document.

        Returns
        -------
        self : HDPTopicVB
            The fitted estimator.

        $raises
            If a count is negative, if there is no word at all, or if the likelihood needs ``groups``.

        $warns
            If counts of words look like tf-idf; if births were tried and all were refused, so that there is
            one topic.
        """
        if are_chunks(X):
            self._fit_chunks(X, groups=groups, sample_weight=sample_weight)
            setup.warn_of_one_topic(self)
            return self
        corpus = self._training_corpus(X, groups, sample_weight, reset=not self._is_warm)
        require_tokens(corpus)
        if self._is_warm:
            self._check_same_kind(corpus, groups, "warm_start=True")
        self._fit(X, corpus, FitCall(X, y, {"groups": groups, "sample_weight": sample_weight}))
        setup.warn_of_one_topic(self)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def partial_fit(
        self,
        X: Data,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        batch_id: Hashable | None = None,
    ) -> Self:
        """Update the model with one batch of documents.

        A new batch adds to the documents seen so far, and a batch that was seen before replaces its
        earlier version. Several epochs over the same batches are memoized inference. Proposals are made on
        the way, so that the number of topics grows and shrinks. After `fit`, batches add to the corpus of
        that fit.

        Parameters may be set between two calls. The prior of documents, the proposals and ``max_components``
        are then the new ones. The ELBO is that of the new prior, and may be lower than before. Another
        ``observation`` or ``topic_word_prior`` is an error. A learned ``topic_word_prior`` follows the
        frequencies of words in all batches so far.

        A batch without any words changes nothing. It takes no place among ``max_batches``, and its name is
        not remembered; if the name is known, the batch that had it is forgotten.

        A few documents rarely pay for a new topic. The latest batches are therefore kept with their
        documents, up to 1,000,000 counts of words or 2,000,000 numbers of rows, and now and then laps go over
        all of them as in `fit` (:doc:`/streams`). Once a batch comes back, in a second epoch, these documents
        are not needed and are forgotten. Until then, a pickle of the estimator holds them. It also holds the
        counts of topics in each document, and in the middle of an epoch samples of the documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), dask collection or list of chunks
            Documents; or with ``groups``, rows of data. The first batch must hold a word. A dask collection,
            or a list of chunks, is one batch (:doc:`/distributed`).
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The document of each row of X. A batch holds whole documents: the same id in another batch is
            another document.
        sample_weight : array-like of shape (n_samples,), default=None
            A document of weight w counts as w equal documents. With ``groups``, the weight of each
            row's document.
        batch_id : hashable, default=None
            Name of the batch: a number, a str, a date or a tuple of them, so that `save` can save it. It is
            a hash of the batch's content if None.

        Returns
        -------
        self : HDPTopicVB
            The fitted estimator.

        $raises_later
            If ``memoize`` is False and the learning method is not stochastic. If ``topic_word_prior`` is not
            that of the earlier calls, a count is negative, or the likelihood needs ``groups``.

        $warns_later
            If the words of the first batch look like tf-idf; if ``max_batches`` remembers more documents than
            are kept themselves.
        """
        if self._is_begun:
            self._check_goes_on()
        if not self.memoize and self.learning_method != "stochastic":
            raise ValueError(
                "memoize=False needs learning_method='stochastic': memoized learning of topics needs the "
                "counts of topics in each document, so it has to remember them."
            )
        if are_chunks(X):  # each chunk may have groups of its own
            self._check_same_prior(getattr(self, "_reading", None))
            return self._partial_fit_chunks(X, batch_id, groups=groups, sample_weight=sample_weight)
        if self._is_begun:
            check_same_kind(self._learner_.model.likelihood, groups is not None)
        corpus = self._training_corpus(X, groups, sample_weight, reset=not self._is_begun)
        if not self._is_begun:
            require_tokens(corpus)
        self._check_same_prior(corpus.reading)
        self._partial_fit(X, corpus, batch_id)
        setup.warn_if_documents_are_gone(self._learner_, self.max_batches)
        return self

    def _partial_fit(self, X, data, batch_id):
        if self._is_begun and isinstance(data, ChunkedData):
            check_same_kind(self._learner_.model.likelihood, not are_of_words(data.source))
        return super()._partial_fit(X, data, batch_id)

    def _check_same_kind(self, corpus, groups, call):
        """Raise unless ``call`` can go on with this corpus, and with the present prior of topics."""
        check_same_kind(self._learner_.model.likelihood, groups is not None)
        self._check_same_prior(corpus.reading, call)

    def _check_same_prior(self, reading, call="partial_fit"):
        """Raise if ``call`` would go on with another prior of topics."""
        if self._is_begun:
            observation, model = self._with_word_prior(reading), self._learner_.model
            setup.check_same_prior(observation, self.topic_word_prior, model.prior, call)

    def _training_corpus(self, X, groups, sample_weight, *, reset):
        corpus = check_corpus(
            self, X, groups, self._with_word_prior(), reset=reset, sample_weight=sample_weight
        )
        check_total_mass(corpus.documents.total_weight)
        if reset:
            warn_of_weighting(corpus)
        return corpus

    def _with_word_prior(self, reading=None):
        """The observation model, with ``topic_word_prior`` in it."""
        observation, prior = resolve_observation(self.observation, reading), self.topic_word_prior
        if prior is None and isinstance(self.observation, str) and setup.takes_words(observation):
            prior = setup.TOPIC_WORD_PRIOR
        return setup.with_word_prior(observation, prior)

    def _document_prior(self):
        """A `DocumentAllocation`, and the names of its attributes that are learned."""
        make = setup.DOCUMENT_ALLOCATIONS[self.allocation]
        return make(self.doc_topic_prior, self.weight_concentration_prior)

    def _schedule(self):
        """How documents go about their local step in each lap."""
        return LocalSchedule(
            warm=self.warm_start_docs, n_restarts=self.doc_restarts,
            max_iter=self.max_doc_update_iter, tol=self.doc_tol,
        )  # fmt: skip

    def _start(self, X, corpus, rng, settings, *, streaming):
        n_documents = np.count_nonzero(corpus.documents.has_entries)
        n_batches = 1 if streaming else settings.number_of_batches(n_documents)
        if self._is_warm:
            return self._from_last_fit(corpus, lambda batch: GroupSource(batch, n_batches))
        likelihood_of = partial(bind_likelihood, corpus=corpus, streaming=streaming)
        model = self._bound(likelihood_of, corpus.reading, corpus.n_features, settings)
        first_components = partial(setup.first_components, settings, model.likelihood, corpus, X)
        if settings.starts_by_name:  # others in each of several fits
            return base.Start(
                model, GroupSource(corpus.documents, n_batches), lambda rng: first_components(rng).s
            )

        def begun(rng):
            first = first_components(rng)
            return base.Start(model, GroupSource(first.documents, n_batches), lambda rng: first.s)

        return begun(rng)._replace(again=begun if callable(self.init_params) else None)

    def _start_in_chunks(self, data, rng, settings, *, streaming):
        source = data.source
        check_total_mass(source.total_weight)
        if not source.total_weight > 0:
            raise_no_tokens()
        warn_of_weighting_in_chunks(source)
        likelihood_of = partial(bind_likelihood_in_chunks, source=source, streaming=streaming)
        model = self._bound(likelihood_of, data.reading, source.n_features, settings)
        seeds = partial(setup.statistics_from_chunks, settings, source, model.likelihood)
        return base.Start(model, source, seeds)

    def _bound(self, likelihood_of, reading, n_features, settings):
        """The model in the units of the data."""
        setup.check_prior_length(self.topic_word_prior, n_features)
        model = setup.bind_model(
            likelihood_of, *self._document_prior(), self._schedule(),
            self._with_word_prior(reading), stochastic=settings.stochastic,
        )  # fmt: skip
        # topics first, then how documents are about them: the other way round they would keep to poor ones
        return model._replace(waits=self.n_components > 1 or not isinstance(self.init_params, str))

    def _present_batch(self, learner, batch):
        if not learner.model.likelihood.words:
            batch = base.ready_for(learner, batch, check_units)
        documents, schedule = self._document_prior(), self._schedule()
        base.go_on_under(
            learner, lambda model: setup.with_present_parameters(model, *documents, schedule)
        )
        return batch

    def _shared_by_parts(self):
        model = self._learner_.model
        kind = "words" if model.likelihood.words else "rows with groups"
        return {
            "documents of": kind,
            **super()._shared_by_parts(),
            "topic_word_prior": setup.given_word_prior(model.prior) if kind == "words" else None,
        }

    def _population(self, batch):
        return batch.total_weight * self.total_samples / batch.n_documents

    def _to_publish(self, state, observation):
        return setup.published(state, observation, self._keeps_order)
