"""Hidden Markov models that find their own number of states."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from numbers import Real
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Options, StrOptions

from ..distributed.recognition import are_chunks
from ..engine.proposal import Proposal
from ..estimator import base
from ..estimator.callbacks import FitCall
from ..estimator.observations import resolve_observation
from ..estimator.parameters import HALF_LIFE, OF_LEARNERS, with_shared_text
from ..estimator.transactions import leaves_model_on_error
from ..estimator.validation import checked
from ..inputs.groups import GroupSource
from ..inputs.types import Data, RandomState
from ..likelihood.base import ObservationModel
from ..likelihood.limits import POSITIVE
from . import setup
from .chunks import SequenceReader
from .predictor import SequencePredictor
from .sequences import check_sequences

_AUTO = StrOptions({"auto"})


@with_shared_text(
    components="states",
    units="sequences",
    entry="row",
    heirs="those that take over its rows keep their names",
    proposals="`StateBirth`, `StateMerge`, `StateDelete`, `StateRestart` and `StateOversplit`",
)
class HDPHMMVB(base.LearnerEstimator, SequencePredictor):
    """Hidden Markov model whose number of states is learned.

    It divides sequences into segments, each in one of several states that may come back. A fit starts from
    one state, and proposes to add states (births), to join some (merges) and to remove some (deletes). A
    proposal is accepted only if the evidence lower bound (ELBO) of all sequences rises. The prior of the
    transitions is a sticky hierarchical Dirichlet process: states are expected to last. With
    ``allocation="dirichlet"`` it is that of the finite Bayesian hidden Markov model.

    Parameters
    ----------
    $n_components
    observation : {"gaussian", "fixed_variance_gaussian", "correlated_gaussian", "autoregressive", \
            "bernoulli", "categorical", "multinomial", "negative_binomial", "poisson"} or \
            ObservationModel, default="gaussian"
        The likelihood of rows in each state. For columns of several kinds it is a `ColumnObservation`.
    allocation : {"hdp", "dirichlet"}, default="hdp"
        Prior of transitions: a sticky hierarchical Dirichlet process, or finite symmetric Dirichlet
        distributions, which are sticky too.
    transition_concentration : float or "auto", default="auto"
        For ``"hdp"``, the concentration alpha: how closely each row of the transition matrix follows the
        global weights. ``"auto"`` starts from 1 and learns it by the ELBO once there are several states. For
        ``"dirichlet"``, the sum of a row's parameters without the stickiness; ``"auto"`` is 1.
    start_concentration : float or "auto", default="auto"
        The same for the probabilities of the first state of a sequence, alpha_0.
    stickiness : float or "auto", default="auto"
        Pseudo-count kappa, 0 or more, of every state's transition to itself. Greater values favour states
        that last. For ``"hdp"``, ``"auto"`` starts from 5 and learns it; for ``"dirichlet"`` it is 50.
        Stochastic learning learns none of these three: there ``"auto"`` is 1, 1 and 50.
    weight_concentration_prior : float, default=None
        For ``"hdp"``, the concentration gamma of the global weights (1 if None). Greater values favour more
        states.
    $max_components
    $proposals
    $learning_method
    batch_size : int, default=None
        Number of sequences in a batch. If it and ``n_batches`` are None, there are ten batches of at least
        about 4096 rows.
    $n_batches
    $max_iter
    $tol
    n_init : int, default=1
        Number of fits with different random numbers, each with up to ``max_iter`` laps: first states if
        there are several, order of batches, and rows that births look at. The one with the highest ELBO is
        kept. With `StateOversplit` it goes on for up to ``max_iter`` more: it tries the
        states of the others for blocks of rows, and then searches once more. (Of more than 60,000 rows it
        only searches.) On real sequences ``n_init=2`` takes three to four times as long as one fit.
        Responsibilities in ``init_params`` are the same in all fits; a callable is called for each.
    init_params : {"random", "k-means++"}, callable or ndarray, default="random"
        Source of the first states:

        - "random": contiguous blocks of the sequences, drawn at random.
        - "k-means++": windows of the sequences that are far from each other, by Bregman k-means++.
        - Responsibilities of shape (n_rows, K) in the order of the rows of X: an array, or a callable
          ``(X, n_components, random_state)`` that returns one. With ``max_iter=0``, `fit` makes one global
          step on them. If the number of states is fixed (``proposals=None``, or the stochastic method),
          states keep the order of the columns.
    low_memory : bool, default=False
        Whether to save memory in exchange for time, for sequences of millions of rows. By default the
        probabilities of states are held for all rows of a batch, which takes about
        ``8 * n_rows * n_components`` bytes. With True they are held for some ten thousand rows at a time
        (sqrt(T) rows for a longer sequence of T rows). Longer sequences than that cost one more
        forward pass, and are worked on one after the other, each by one thread. Results are the same but
        for rounding. `predict_proba` returns the probabilities of all rows in any case, and `decode` needs
        such a table.
    $warm_start
    $memoize
    $max_batches
    $half_life
    $learning_decay
    $learning_offset
    $total_samples
    $random_state
    $n_jobs
    $verbose

    Attributes
    ----------
    n_components_ : int
        Number of states found. They are sorted by decreasing number of rows; but if their number is fixed,
        they keep the order of given responsibilities.
    labels_ : ndarray of shape (n_rows,), or list of them
        The state of each row of the last call of `fit` or `partial_fit`, as `predict` returns it. After
        `partial_fit` it is found when it is first read; until then the model holds a copy of the batch.
        There are none after a fit of a memory map, of data in chunks, or of data in which some sequence has
        weight 0: call `predict`.
    startprob_ : ndarray of shape (`n_components_`,)
        Expected probabilities of the first state, among the states that were found.
    transmat_ : ndarray of shape (`n_components_`, `n_components_`)
        Expected probabilities of transitions from the row's state to the column's state, among the states
        that were found.
    transition_concentration_, start_concentration_, stickiness_ : float
        Concentrations and stickiness as they were given, or as they were learned.
    weights_ : ndarray of shape (`n_components_`,)
        Expected global weights pi^G: how common each state is as the next one, whatever the state before.
        They are not the shares of the rows. Under ``"hdp"`` they sum to less than 1: the rest is for states
        that were never seen.
    means_ : ndarray of shape (`n_components_`, n_features)
        Expected means.
    covariances_, precisions_, precisions_cholesky_ : ndarray of shape (K, D, D), (K, D) or (K,)
        Gaussian rows only, correlated ones included, as in `DPMixtureVB`, for K states and D columns.
        Autoregressive states have the first two, of shape (K, D, D): those of a row, given the rows before.
    components_, exp_dirichlet_component_ : ndarray of shape (`n_components_`, n_features)
        ``"multinomial"`` only, as in `DPMixtureVB`.
    coef_, intercept_ : ndarray
        Autoregressive rows only: expected regressions, of shapes (`n_components_`, n_features,
        order * n_features) and (`n_components_`, n_features).
    autocorrelation_, restart_probability_ : ndarray of shape (`n_components_`,)
        Correlated Gaussian rows only: the dynamics, which are the same in all states.
    probabilities_, blocks_, categories_ : ndarray, dict, dict
        Categories, columns of several kinds and frames only, as in `DPMixtureVB`.
    lower_bound_ : float
        The ELBO of all sequences, in nats.
    $component_ids_
    $lower_bounds_
    $elbo_terms_
    $history_
    $n_iter_
    $converged_
    $n_features_in_
    $feature_names_in_

    See Also
    --------
    DPMixtureVB : For rows whose order does not matter.
    HDPTopicVB : For rows in groups, without an order within the group.

    Notes
    -----
    scikit-learn's cross-validation can divide a list of sequences, and arrays with one entry per row, but not
    ``lengths``. To hold out whole sequences, give a list; or give ``groups`` by metadata routing, with a
    splitter such as `sklearn.model_selection.GroupKFold`.

    References
    ----------
    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics,
    and sequences, PhD thesis, Brown University, 2016, Chapter 6.

    E. B. Fox et al., A sticky HDP-HMM with application to speaker diarization, Annals of Applied
    Statistics 5, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import HDPHMMVB
    >>> rng = np.random.default_rng(0)
    >>> means = np.repeat([0.0, 9.0, 0.0, 18.0], 40)
    >>> X = [rng.normal(means)[:, np.newaxis] for _ in range(3)]
    >>> model = HDPHMMVB(random_state=0).fit(X)
    >>> model.n_components_
    3
    >>> [states.shape for states in model.predict(X)]
    [(160,), (160,), (160,)]
    """

    _kind, _chunk_reader = setup.SEQUENCES, SequenceReader
    _parameter_constraints = {
        **OF_LEARNERS,
        "half_life": [HALF_LIFE, None],
        "allocation": [StrOptions(set(setup.CHAIN_ALLOCATIONS))],
        "transition_concentration": [POSITIVE, _AUTO],
        "start_concentration": [POSITIVE, _AUTO],
        "stickiness": [Options(Real, {0}), POSITIVE, _AUTO],
        "init_params": [StrOptions({"random", "k-means++"}), callable, "array-like"],
        "low_memory": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        observation: str | ObservationModel = "gaussian",
        allocation: str = "hdp",
        transition_concentration: float | str = "auto",
        start_concentration: float | str = "auto",
        stickiness: float | str = "auto",
        weight_concentration_prior: float | None = None,
        max_components: int | None = None,
        proposals: Iterable[str | Proposal] | None = (
            "birth",
            "merge",
            "delete",
            "restart",
            "oversplit",
        ),
        learning_method: str = "memoized",
        batch_size: int | None = None,
        n_batches: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 1,
        init_params: str | Callable[..., Any] | ArrayLike = "random",
        low_memory: bool = False,
        warm_start: bool = False,
        memoize: bool = True,
        max_batches: int | None = None,
        half_life: float | None = None,
        learning_decay: float = 0.51,
        learning_offset: float = 1.0,
        total_samples: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.observation = observation
        self.allocation = allocation
        self.transition_concentration = transition_concentration
        self.start_concentration = start_concentration
        self.stickiness = stickiness
        self.weight_concentration_prior = weight_concentration_prior
        self.max_components = max_components
        self.proposals = proposals
        self.learning_method = learning_method
        self.batch_size = batch_size
        self.n_batches = n_batches
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init_params = init_params
        self.low_memory = low_memory
        self.warm_start = warm_start
        self.memoize = memoize
        self.max_batches = max_batches
        self.half_life = half_life
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
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn states and their number.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences; or the rows of all of them, which are one sequence unless ``lengths`` or
            ``groups`` say otherwise. NaN stands for an entry that was not observed, where the likelihood
            allows it; a row of NaN alone is a gap. Sparse rows are for "bernoulli", "multinomial",
            "negative_binomial" and "poisson". Dask arrays and frames, and lists of delayed batches or of
            batch references, are worked on where they lie; each chunk holds whole sequences
            (:doc:`/distributed`).
        y : array-like, default=None
            Not used. It may be labels that scikit-learn's tools pass on: one per row, or one per sequence
            if X is a list. Without ``lengths`` and ``groups``, another number of them is an error.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X. Rows of a sequence keep their order in X.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            A sequence of weight w counts as w equal sequences. There is one weight per sequence if X is a
            list, and there may be with ``lengths``. Otherwise there is one per row of X, which is the same
            for all rows of a sequence.

        Returns
        -------
        self : HDPHMMVB
            The fitted estimator.

        $raises
            If ``lengths`` or ``groups`` do not go with X.

        $warns
        """
        if are_chunks(X):
            return self._fit_chunks(X, lengths=lengths, groups=groups, sample_weight=sample_weight)
        sequences = self._training_sequences(
            X, lengths, groups, sample_weight, y, reset=not self._is_warm, min_rows=2
        )
        metadata = {"lengths": lengths, "groups": groups, "sample_weight": sample_weight}
        return self._fit(X, sequences, FitCall(X, y, metadata))

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def partial_fit(
        self,
        X: Data,
        y: object = None,
        *,
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        batch_id: Hashable | None = None,
    ) -> Self:
        """Update the model with one batch of sequences.

        A new batch adds to the sequences seen so far, and a batch that was seen before replaces its
        earlier version. Several epochs over the same batches are memoized inference. Proposals are made on
        the way, so that the number of states grows and shrinks. The first batch sets the units of the
        data, and should be like the others. After `fit`, batches add to the sequences of that fit.

        A single sequence rarely pays for a new state. The latest batches are therefore kept with their rows,
        up to 20,000 rows or 2,000,000 numbers, and now and then laps go over all of them as in `fit`
        (:doc:`/streams`). Once a batch comes back, in a second epoch, these rows are not needed and are
        forgotten. Until then, a pickle of the estimator holds them.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Whole sequences, or the rows of all of them. The first batch has two rows or more. A dask
            collection, or a list of chunks, is one batch (:doc:`/distributed`).
        y : array-like, default=None
            Not used, as in `fit`.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X. The same id in another batch is another sequence.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            As in `fit`.
        batch_id : hashable, default=None
            Name of the batch: a number, a str, a date or a tuple of them, so that `save` can save it. It is
            a hash of the batch's content if None.

        Returns
        -------
        self : HDPHMMVB
            The fitted estimator.

        $raises_later
            If ``lengths`` or ``groups`` do not go with X.

        $warns_later
        """
        if self._is_begun:
            self._check_goes_on()
        if are_chunks(X):
            return self._partial_fit_chunks(
                X, batch_id, lengths=lengths, groups=groups, sample_weight=sample_weight
            )
        first = not self._is_begun
        sequences = self._training_sequences(
            X, lengths, groups, sample_weight, y, reset=first, min_rows=2 if first else 1
        )
        return self._partial_fit(X, sequences, batch_id)

    def _training_sequences(self, X, lengths, groups, sample_weight, y, *, reset, min_rows):
        observation = checked(resolve_observation(self.observation))
        return check_sequences(
            self, X, lengths, groups, observation,
            reset=reset, min_rows=min_rows, sample_weight=sample_weight, y=y,
        )  # fmt: skip

    def _chain_prior(self):
        return setup.chain_prior(
            self.allocation, self.weight_concentration_prior, self.transition_concentration,
            self.start_concentration, self.stickiness, learns=self.learning_method != "stochastic",
        )  # fmt: skip

    def _start(self, X, sequences, rng, settings, *, streaming):
        n, n_rows = sequences.n_sequences, sequences.n_rows
        n_batches = 1 if streaming else settings.number_of_batches(n, n_rows / n)
        if self._is_warm:
            setup.require_values_of(sequences.batch)
            return self._from_last_fit(sequences, lambda batch: GroupSource(batch, n_batches))
        batch = setup.starting_batch(settings, sequences, X, rng)
        model = self._bound(
            sequences.reading, partial(setup.modelled_rows, batch), streaming=streaming
        )

        def begun(batch):
            seeds = partial(setup.starting_statistics, settings, batch, model.likelihood)
            return base.Start(model, GroupSource(batch, n_batches), seeds)

        def again(rng):
            return begun(setup.starting_batch(settings, sequences, X, rng))

        return begun(batch)._replace(again=again if callable(self.init_params) else None)

    def _start_in_chunks(self, data, rng, settings, *, streaming):
        source, observation = data.source, resolve_observation(self.observation, data.reading)
        model = self._bound(
            data.reading, partial(setup.modelled_rows_in_chunks, source), streaming=streaming
        )
        seeds = partial(
            setup.statistics_from_chunks, settings, source, observation.lags, model.likelihood
        )
        return base.Start(model, source, seeds)

    def _bound(self, reading, rows_of, *, streaming):
        return setup.bind_model(
            resolve_observation(self.observation, reading), self._chain_prior(), rows_of,
            low_memory=self.low_memory, streaming=streaming,
        )  # fmt: skip

    def _present_batch(self, learner, batch):
        batch = base.ready_for(learner, batch, setup.in_units)
        chain = self._chain_prior()
        base.go_on_under(
            learner, lambda model: setup.with_present_parameters(model, chain, self.low_memory)
        )
        return batch

    def _population(self, batch):
        return batch.total_weight * self.total_samples / batch.n_sequences

    def _may_label(self, sequences):
        return sequences.n_given is None

    def _labels(self, sequences):
        return self._states_of(sequences)

    def _to_publish(self, state, observation):
        return setup.published(state, self._keeps_order)
