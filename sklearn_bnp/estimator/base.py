"""The flow of `fit` and `partial_fit` after the data are checked, shared by the estimators with a learner.

Design note
-----------
(a) A slice brings its data checks, its model and the statistics that a fit starts from
    (`LearnerEstimator._start`), and the attributes that it publishes (`LearnerEstimator._to_publish`).
    The flow between them is here, and so are all calls of the engine's `Learner`.
(b) A call that fails, or is interrupted, changes nothing: `partial_fit` works on a copy of the learner, a
    learner is published only when it has come to the end, and `leaves_model_on_error` puts the
    attributes back that were set on the way.
(c) Parameters that are set between two calls of `partial_fit` are heeded, or the call is refused. The prior
    of the weights and the proposals are taken as they are now (`go_on_under`, `go_on_with_proposals`). The
    observation model has to stay, since statistics are in its terms. Parameters of the start and of `fit`
    alone, such as ``n_components``, have no part in a later batch.
(d) ``fit``, ``partial_fit`` and ``score`` take ``X, y=None``, and all else by keyword in this order:
    ``lengths``, ``groups``, ``sample_weight``, ``batch_id``, as far as the estimator has them. The one
    exception is ``sample_weight`` of ``fit`` and ``score`` of `DPMixtureVB`, which may be given by position,
    as in scikit-learn's `KMeans`.
(e) Every ``score`` takes ``sample_weight``: under metadata routing, a `Pipeline` passes it in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..distributed.source import ChunkBatch
from ..engine.forgetting import forget, names_of_batches
from ..engine.learner import Learner
from ..engine.progress import Progress
from ..engine.state import LearnerState, ScheduleState
from ..engine.stochastic import stochastic_step
from ..engine.streaming import stream_batch
from ..inputs.advice import warn_caller
from ..inputs.batches import is_mapped
from ..inputs.blas import blas_on_one_thread
from ..inputs.moments import has_missing, of_positive_weight
from ..inputs.outliers import warn_if_hidden
from ..inputs.resolution import SAMPLE_ROWS, recording
from .batch_names import check_batch_id, check_may_empty, check_may_forget, checked_batch_id
from .callbacks import CallbackSupport, FitCall, FitTask
from .chunks import ChunkedData, check_init_suits_chunks, check_suits_chunks, chunked_data
from .fitting import Fitting, learner_settings
from .observations import (
    ObservationParameters,
    are_alike,
    check_same_observation,
    resolve_observation,
)
from .publishing import (
    drop_labels,
    fitted_attributes,
    kept_observation,
    label_later,
    publish_labels,
    publish_later,
    require_finite,
    set_published,
    warn_if_not_converged,
    warn_if_weightless,
)
from .settings import settings_of
from .soundness.engine import check_learner
from .transactions import leaves_model_on_error
from .validation import (
    check_units,
    resolve_proposals,
)


class ModelKind(NamedTuple):
    """The name of a slice's kind of model, and the proposals for it.

    Attributes
    ----------
    name : str
        Proposals say which of these names they suit.
    proposals : dict
        Name -> what makes the `Proposal`.
    """

    name: str
    proposals: dict


class Start(NamedTuple):
    """Model, data and first statistics with which a fit, or a stream of batches, begins.

    Attributes
    ----------
    model : Model
        In the units of the data.
    source : ArraySource or GroupSource
        The data, with responsibilities if the user gave them.
    statistics : callable
        ``statistics(rng)`` are the statistics (K, P) of the first components, drawn anew for each of
        several fits.
    keeps_order : bool or None
        Of a warm start, whether the user once gave the components, and knows each by its position; None
        if it is no warm start.
    coef : object
        Parameters of the first local step; None if they are functions of the statistics alone.
    again : callable or None
        ``again(rng)`` is the `Start` of another of several fits, if the user's function makes first
        components; None if all of them begin with this one.
    """

    model: object
    source: object
    statistics: Callable
    keeps_order: bool | None = None
    coef: object = None
    again: Callable | None = None


class LearnerEstimator(CallbackSupport, ObservationParameters):
    """Mixin of the estimators that learn in laps through batches.

    A slice defines ``_kind``, a `ModelKind`, and these methods:

    ``_start(X, data, rng, settings, streaming)``
        A `Start`. ``data`` are the checked data, ``X`` is what the user gave.
    ``_present_batch(learner, batch)``
        The batch in a precision that suits the learner's units; the learner's model takes over
        parameters that may change between calls, its prior of weights by `go_on_under`.
    ``_population(batch)``
        Total weight of the population of ``total_samples`` units.
    ``_to_publish(state, observation)``
        The slice's own attributes, as `Published`: a function of the learner's state, of the
        `ObservationModel` of the fit, and of ``_keeps_order``.

    ``_start_in_chunks(data, rng, settings, streaming)``
        The same for `ChunkedData`.
    ``_chunk_reader``
        The `ChunkReader` of its data.

    Checked data have an attribute ``batch``. A slice whose rows have labels defines
    ``_labels(data)`` and ``_may_label(data)``, which is asked for data in memory.
    """

    def _may_label(self, data):
        """Whether the model gives labels to the rows of checked data, and to all of them."""
        return False

    def _has_labels(self, data):
        """Whether there are to be ``labels_``."""
        in_memory = not isinstance(data, ChunkedData) and not is_mapped(data.batch.x)
        return in_memory and self._may_label(data)

    @property
    def _is_begun(self):
        """Whether there is a learner to go on with."""
        return hasattr(self, "_learner_")

    @property
    def _is_warm(self):
        """Whether `fit` begins where the last fit ended."""
        return self.warm_start and self._is_begun

    def _from_last_fit(self, data, source_of):
        """A `Start` from the groups' model and components of the last fit, whose units and prior stay.

        ``source_of(batch)`` makes a source of the batch of all data.
        """
        self._check_same_observation("warm_start=True")
        learner = Learner(self._learner_, learner_settings(settings_of(self)))
        learner.end_trials()
        source = source_of(self._present_batch(learner, data.batch))
        model, s = learner.model, learner.totals.s
        if model.sticks is not None:  # a new learner gives the components new names
            model = model._replace(uids=tuple(range(len(s))))
        return Start(model, source, lambda rng: s, self._keeps_order, learner.coef)

    def _check_goes_on(self):
        """Raise if `partial_fit` cannot go on with the parameters as they are set now."""
        self._validate_params()  # `_fit_context` leaves that to the first call
        self._check_same_observation("partial_fit")

    def _check_same_observation(self, call):
        """Raise if ``call`` would go on with another observation model than the fit was begun with."""
        check_same_observation(self.observation, self._observation, call)

    def _fit(self, X, data, call):
        """Learn from all the data of a `FitCall`, and publish the best of ``n_init`` fits."""
        # callbacks see the estimator as it would be without those of the last fit
        drop_labels(self)
        settings, rng = settings_of(self), check_random_state(self.random_state)
        # With several initialisations the number is not known yet: a warm fit has laps as its tasks, and the
        # best initialisation may go on as one more task.
        n_tasks = None if settings.n_init > 1 else settings.max_iter + 1
        with blas_on_one_thread(), FitTask(self, call, n_tasks) as task:
            fitting = Fitting(self, data, settings, rng, task)
            start = fitting.open_files(
                lambda rng: self._started(X, data, rng, settings, streaming=False)
            )
            warn_if_weightless(start.source)
            best, self._keeps_order = fitting.best(start)
            best.mass_seen = start.source.total_weight
            self._publish(best, fitting.paused)
            if self._has_labels(data):
                publish_labels(self, self._labels(data))
        warn_if_not_converged(self)
        return self

    def _fit_chunks(self, X, **given):
        """Learn from data in chunks, which stay where they are; ``given`` are other arguments of `fit`."""
        settings = settings_of(self)
        check_suits_chunks(self, settings)
        with chunked_data(
            self, X, given, reset=True, n_batches=settings.n_batches, leaves=True
        ) as data:
            return self._fit(None, data, FitCall(X, None, given))

    def _partial_fit_chunks(self, X, batch_id, **given):
        """Learn from chunks, which are one batch."""
        with chunked_data(self, X, given, reset=not self._is_begun) as data:
            return self._partial_fit(None, data, batch_id)

    def _started(self, X, data, rng, settings, *, streaming):
        """A `Start` from data in memory, or in chunks."""
        if isinstance(data, ChunkedData):
            check_init_suits_chunks(self, settings)
            return self._start_in_chunks(data, rng, settings, streaming=streaming)
        return self._start(X, data, rng, settings, streaming=streaming)

    def _partial_fit(self, X, data, batch_id):
        """Learn from one batch, and publish."""
        batch_id = checked_batch_id(batch_id)
        settings, n_laps = settings_of(self), self._learner_.n_laps if self._is_begun else 0
        stream = settings.stream  # before anything is learned: they may contradict each other
        with blas_on_one_thread():
            content = data.batch.content_hash() if settings.memoize else None
            batch_id = content if batch_id is None else batch_id
            learner, batch = self._learner_for(X, data, settings)
            if content is None and learner.memo.content(batch_id) is not None:
                content = data.batch.content_hash()  # the stream remembered batches before
            self._learn_from(learner, batch._replace(batch_id=batch_id), content, settings, stream)
            self._publish_batch(learner)
            if self._has_labels(data):
                label_later(self, data._replace(batch=data.batch.kept()))
        show_laps(learner, n_laps, settings.verbose, type(self).__name__)
        return self

    def _learner_for(self, X, data, settings):
        """A `Learner` that goes on with a batch, or begins with it; and the batch in its terms."""
        if not self._is_begun:
            rng = check_random_state(self.random_state)
            start = self._started(X, data, rng, settings, streaming=True)
            return self._begun_learner(start, rng, settings), start.source.everything
        learner = Learner(self._learner_, learner_settings(settings))
        go_on_with_proposals(learner, proposals_of(settings, self._kind))
        self._keeps_order = self._keeps_order and not learner.scheduler.proposals_at_rest
        return learner, self._present_batch(learner, data.batch)

    def _learn_from(self, learner, batch, content, settings, stream):
        """Let a learner learn from a batch, whose rows have a hash, ``content``, if it is remembered."""
        holds_something = batch.total_weight > 0  # documents may have no words
        if not settings.stochastic and holds_something:
            stream_batch(learner, batch, stream, content)
        elif not settings.stochastic:
            _leave_out(learner, batch.batch_id)
        elif holds_something:
            total = None if settings.total_samples is None else self._population(batch)
            stochastic_step(
                learner, batch, total, settings.learning_decay, settings.learning_offset
            )

    @leaves_model_on_error
    def forget(self, batch_id: Hashable) -> Self:
        """Take a batch out of the model, as if it had never been seen.

        The statistics are then those of all other batches, at their present responsibilities, and components
        that only this batch used are gone. The units of the data, which the first batch sets, stay.

        Parameters
        ----------
        batch_id : hashable
            The name that the batch was given in `partial_fit`.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If there is no such batch in memory, or no other one.
        """
        check_is_fitted(self)
        check_batch_id(batch_id)
        state = self._learner_
        check_may_forget(batch_id, names_of_batches(state.memo), len(state.memo), self.memoize)
        with blas_on_one_thread():
            learner = Learner(state, learner_settings(settings_of(self)))
            forget(learner, [batch_id])
        self._publish(learner)
        return self

    def _begun_learner(self, start, rng, settings):
        """A `Learner` with first components."""
        if start.keeps_order is None and settings.starts_from_number:
            settings.check_most(settings.n_components, "n_components={}")
        learner = make_learner(start.model, rng, settings, self._kind)
        self._keeps_order = begin(learner, start.statistics(rng), settings, start.keeps_order)
        if start.coef is not None:
            learner.coef = start.coef
        return learner

    def _publish(self, learner, paused=None):
        """Set all fitted attributes; ``paused`` is where `fit` may go on, or None."""
        attributes = self._checked_attributes(learner.state)
        set_published(self, attributes if paused is None else {**attributes, "_paused": paused})

    def _publish_batch(self, learner):
        """Set the fitted attributes after a batch: at once if their names may be new, or else when read."""
        before = vars(self).get("_learner_")
        if before is None or not _have_same_attributes(before.model, learner.model):
            self._publish(learner)
            return
        numbers = {"lower_bound_": learner.lower_bound}
        require_finite(self, numbers, {"statistics": learner.totals.s})
        publish_later(self, learner.state)

    def _checked_attributes(self, state):
        """All fitted attributes by name, once they are found to be finite."""
        before = vars(self).get("_observation")
        observation = kept_observation(resolve_observation(self.observation), before)
        published = self._to_publish(state, observation)
        attributes = fitted_attributes(state, observation, published)
        may_be_nan = state.model.likelihood.may_be_nan
        require_finite(self, attributes["elbo_terms_"], published.own, but=may_be_nan)
        return attributes

    def _attributes_again(self):
        """All fitted attributes by name."""
        state, observation = self._learner_, self._observation
        return fitted_attributes(state, observation, self._to_publish(state, observation))

    def _as_if_ended(self, learner):
        """Attributes by name of this estimator as if its fit had stopped here, in the middle of laps."""
        learner = Learner(learner.state, learner.settings)
        learner.forget_batches()
        attributes = self._checked_attributes(learner.state)
        return {**attributes, "_published": tuple(attributes)}

    def _shared_by_parts(self):
        """Name -> what models that are combined must have in common, beside their columns."""
        allocation = self._learner_.model.given_allocation
        return {"observation": self._observation, "allocation": allocation}

    def _check_learner(self, state):
        """Raise unless a `LearnerState` is sound and suits the data of this estimator."""
        check_learner(state, self._learner_kind, self.n_features_in_)


def _have_same_attributes(one, other):
    """Whether the attributes that follow from two models have the same names."""
    same_weights = type(one.allocation) is type(other.allocation)
    return same_weights and one.likelihood is other.likelihood


# ---------------------------------------------------------------------- units of the data


def moments_of_rows(observation, source):
    """`Moments` of the rows of an `ArraySource` or `ChunkSource`, with what the observation needs."""
    moments = source.moments(covariance=observation.needs_covariance)
    if observation.needs_step:
        # the same rows for any random_state: units belong to the data, not to the fit
        sample = source.sample(SAMPLE_ROWS, np.random.RandomState(0))
        found = recording(*sample)
        moments = moments._replace(step=found.steps / moments.magnitude, cells=found.cells)
        if observation.scales_rows:
            warn_if_hidden(of_positive_weight(*sample), moments)
    if observation.needs_codes:
        moments = moments._replace(codes=source.codes().of_columns)
    return moments


def bind_likelihood(observation, source, *, streaming=False, increments=None):
    """The likelihood of rows, lagged if it wants them so, in the units of an `ArraySource` or `ChunkSource`.

    ``increments`` makes `Increments` of the rows, given the magnitudes of columns; None if the rows are
    not sequences.
    """
    moments = moments_of_rows(observation, source)
    if observation.needs_increments and increments is not None:
        moments = moments._replace(increments=increments(moments.magnitude))
    likelihood = observation.bind(moments, streaming=streaming)
    if likelihood.may_be_far_out or source.mean_weight is not None:
        source.check(partial(check_units, likelihood))
    return likelihood


def likelihood_for(likelihood, x):
    """The likelihood, or the one for rows with missing entries if rows ``x`` are the first with some."""
    return likelihood if likelihood.has_missing else _variant(likelihood, has_missing(x))


def _variant(likelihood, missing):
    """The likelihood, or the one for rows with missing entries if there are some and it is not."""
    if likelihood.has_missing or not missing:
        return likelihood
    if not likelihood.allows_missing:
        raise ValueError(
            "X has missing values (NaN), but this model was fitted to complete data and cannot do "
            "without any column. Fill them in, or leave these rows out."
        )
    return likelihood.with_missing()


# ---------------------------------------------------------------------- the learner


def make_learner(model, rng, settings, kind):
    """A `Learner` with proposals for this `ModelKind`."""
    proposals = proposals_of(settings, kind)
    for proposal in proposals:
        proposal.reset()
    seed = int(rng.randint(np.iinfo(np.int32).max))
    state = LearnerState(model, seed, ScheduleState(tuple(proposals)))
    return Learner(state, learner_settings(settings))


def proposals_of(settings, kind):
    """A list of fresh `Proposal` objects for a `ModelKind`; none if learning is by stochastic steps."""
    names = None if settings.stochastic else settings.proposals
    return resolve_proposals(names, kind.proposals, kind.name)


def begin(learner, s, settings, keeps_order=None):
    """Start a learner from statistics (K, P), and return whether components keep their order.

    ``keeps_order`` is that of a `Start`.
    """
    whence = "init_params holds" if keeps_order is None else "warm_start=True goes on from"
    settings.check_most(len(s), f"{whence} {{}} components, which")
    if len(s) == 1 and settings.stochastic and settings.proposals:
        warn_caller(
            "learning_method='stochastic' makes no proposals: the one component of the start is all that "
            "there will be. Give n_components, or take learning_method='memoized', which finds the number."
        )
    named = settings.starts_from_given if keeps_order is None else keeps_order
    learner.start(s)
    return named and not learner.scheduler.proposals


def as_many_as_wanted(s, settings):
    """Statistics (K, P) of first components; if their number is fixed, with empty ones for those lacking."""
    if not settings.number_is_fixed:
        return s
    return np.concatenate([s, np.zeros((settings.n_components - len(s), s.shape[1]))])


def ready_for(learner, batch, check):
    """The batch as ``check(likelihood, batch)`` returns it.

    If it is the first with missing entries, the learner goes on with a likelihood for such rows.
    """
    before = learner.model.likelihood
    if isinstance(batch, ChunkBatch):
        likelihood = _variant(before, any(batch.each(_has_missing)))
        batch.go_through(partial(check, likelihood))
    else:
        likelihood = likelihood_for(before, batch.x)
        batch = check(likelihood, batch)
    if likelihood is not before:
        learner.go_on_with(likelihood, likelihood.from_complete)
    return batch


def _has_missing(batch):
    return has_missing(batch.x)


def go_on_under(learner, present):
    """Let a learner go on with ``present(model)``: its model with the parameters that are set now.

    If this has another prior of the weights, trials under way end, and failures are forgotten: they were
    planned and judged under the prior before. The objective is that of the new prior from now on.
    """
    model = present(learner.model)
    if model.allocation is not learner.model.allocation:
        learner.end_trials()
        learner.scheduler.prior_changed()
        model = present(learner.model).updated(learner.totals)
        learner.coef = model.coefficients(learner.totals)
    learner.model = model


def go_on_with_proposals(learner, proposals):
    """Let a learner go on with these proposals; those that are as they were go on with their memories."""
    at_rest = {proposal.kind: proposal for proposal in learner.scheduler.proposals_at_rest}
    same = [p.kind in at_rest and are_alike(p, at_rest[p.kind]) for p in proposals]
    if not all(same) or [p.kind for p in proposals] != list(at_rest):
        learner.end_trials()
        known = {proposal.kind: proposal for proposal in learner.scheduler.proposals}
        new = [p for p, is_same in zip(proposals, same, strict=True) if not is_same]
        now = [known[p.kind] if is_same else p for p, is_same in zip(proposals, same, strict=True)]
        learner.scheduler.go_on_with(now, new)


def _leave_out(learner, batch_id):
    """Learn nothing from a batch that holds nothing, and forget what came under its name before."""
    if batch_id in learner.memo:
        check_may_empty(batch_id, len(learner.memo))
        forget(learner, [batch_id])


def show_laps(learner, n_before, verbose, name):
    """Print a line for each lap after the first ``n_before``, if the estimator is verbose."""
    if not verbose:
        return
    with Progress(verbose, name, live=False) as progress:
        for lap in learner.history:
            if lap.lap > n_before:
                progress.show(lap)
