"""The way from the estimators to the engine and back.

Design note
-----------
(a) A call that fails, or is interrupted, changes nothing: `leaves_model_on_error` puts the attributes
    back, `partial_fit` works on a copy of the learner, and an engine is published only when it
    has come to the end.
(b) What is published lists components by decreasing weight, or in the order in which the user gave
    them, if their number is fixed: they are named 0, 1, ... when a fit begins, and keep these names.
    The engine keeps its own order while a lap of `partial_fit` is under way: observers of the lap
    know components by their column.
"""

from __future__ import annotations

import os
import warnings
from functools import wraps

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..engine.learner import Learner
from ..engine.progress import Progress
from ..engine.stochastic import fit_stochastic
from ..inputs.moments import column_moments, has_missing
from ..inputs.resolution import SAMPLE_ROWS, recording_steps
from .finite import require_finite
from .validation import (
    check_most_components,
    check_units,
    resolve_observation,
    resolve_proposals,
)

# By default data are cut into this many batches, of at least this many rows.
_DEFAULT_BATCHES, _LEAST_BATCH = 10, 4096


def leaves_model_on_error(method):
    """Decorator of `fit` and the like: attributes are as they were if the call fails.

    So is a generator given as ``random_state``: to try again gives what the first call would have given.
    """

    @wraps(method)
    def guarded(self, *args, **kwargs):
        before, rng = vars(self).copy(), getattr(self, "random_state", None)
        state = rng.get_state() if isinstance(rng, np.random.RandomState) else None
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            if state is not None:
                rng.set_state(state)
            raise

    return guarded


class ObservationParameters:
    """Mixin for estimators with an ``observation`` parameter: `set_params` reaches its nested parameters."""

    def set_params(self, **params):
        """Set parameters, nested ones of ``observation`` even if that is a name.

        Parameters
        ----------
        **params : dict
            Estimator parameters.

        Returns
        -------
        self : estimator
            The estimator.
        """
        nested = any(name.startswith("observation__") for name in params)
        observation = params.get("observation", self.observation)
        if nested and isinstance(observation, str):
            params["observation"] = resolve_observation(observation)
        return super().set_params(**params)


def number_of_batches(estimator, n_units, rows_a_unit=1.0):
    """Batches that rows, documents or sequences are cut into, from what the user set.

    There may be fewer units than that.
    """
    size, number = estimator.batch_size, estimator.n_batches
    if size is not None and number is not None:
        raise ValueError(f"batch_size={size} and n_batches={number} are both set; set one of them.")
    if estimator.learning_method == "full":
        return 1
    if number is not None:
        return int(number)
    if size is None:
        size = max(np.ceil(_LEAST_BATCH / rows_a_unit), -(-n_units // _DEFAULT_BATCHES))
    return -(-n_units // int(size))


class _Team:
    """Whether kernels have had several threads in this process, and whether a fork has lost them."""

    begun = lost = False

    @classmethod
    def lose(cls):
        cls.lost = cls.begun


if hasattr(os, "register_at_fork"):  # where it is not, there are no forks
    os.register_at_fork(after_in_child=_Team.lose)


def threads(n_jobs):
    """Threads for the kernels: ``n_jobs`` as joblib reads it, but one where others would be waited for.

    The threads of GCC's OpenMP do not survive a fork, though the child believes that it has them: its
    first loop on several would never end. No result depends on the number of threads.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None for one thread, or -1 for all cores.")
    if _Team.lost:
        return 1
    n_threads = joblib.effective_n_jobs(n_jobs)
    _Team.begun |= n_threads > 1
    return n_threads


def bind_likelihood(observation, source, *, streaming=False):
    """The likelihood of rows, lagged if it wants them so, in the units of an `ArraySource`."""
    batches = [source.batch(i) for i in range(len(source))]
    moments = column_moments(batches, covariance=observation.needs_covariance)
    if observation.needs_step:
        # the same rows for any random_state: units belong to the data, not to the fit
        sample = source.sample(SAMPLE_ROWS, np.random.RandomState(0))
        moments = moments._replace(step=recording_steps(*sample) / moments.magnitude)
    likelihood = observation.bind(moments, streaming=streaming)
    if likelihood.may_be_far_out or source.weight is not None:
        for batch in batches:
            check_units(likelihood, batch)
    return likelihood


def make_learner(estimator, model, rng, registry, kind, collector_type):
    """A `Learner` with the estimator's settings, and proposals of a registry for this kind of model."""
    by_name = isinstance(estimator.init_params, str)
    if by_name or vars(estimator).get("means_init") is not None:  # otherwise it is not what counts
        check_most_components(estimator, estimator.n_components, "n_components={}")
    stochastic = estimator.learning_method == "stochastic"
    proposals = [] if stochastic else resolve_proposals(estimator.proposals, registry, kind)
    learner = Learner(model, proposals, rng, collector_type)
    return with_settings(learner, estimator)


def with_settings(learner, estimator):
    """The learner with those settings that may change between calls to `partial_fit`."""
    most = estimator.max_components
    learner.scheduler.max_components = np.inf if most is None else most
    learner.n_nonzero = vars(estimator).get("n_nonzero_resp")  # states of sequences are all in use
    learner.n_threads = learner.scheduler.n_threads = threads(estimator.n_jobs)
    return learner


def begin(estimator, learner, s, *, named=None):
    """Start from statistics (K, P) of first components.

    ``named`` says whether those of a warm start were given by the user once, who knows them by number;
    None if it is no warm start.
    """
    whence = "init_params holds" if named is None else "warm_start=True goes on from"
    check_most_components(estimator, len(s), f"{whence} {{}} components, which")
    if named is None:
        by_means = vars(estimator).get("means_init") is not None  # which not all models have
        named = by_means or not isinstance(estimator.init_params, str)
    estimator._keeps_order = named and not learner.scheduler.proposals
    learner.start(s)


def as_many_as_wanted(learner, s, n_components):
    """Statistics of first components, empty ones added where few were found: a fixed number stays."""
    if learner.scheduler.proposals:
        return s
    return np.concatenate([s, np.zeros((n_components - len(s), s.shape[1]))])


def fit_learner(estimator, learner, source):
    """Laps as the estimator's settings have them, shown if the user wants to see them."""
    with Progress(estimator.verbose, type(estimator).__name__) as progress:
        if estimator.learning_method == "stochastic" and estimator.max_iter > 0:
            fit_stochastic(
                learner, source, estimator.max_iter, estimator.learning_decay,
                estimator.learning_offset, progress.show,
            )  # fmt: skip
        else:
            learner.fit(source, estimator.max_iter, estimator.tol, progress.show)


def likelihood_for(likelihood, x):
    """The likelihood, or the one for rows with missing entries if rows ``x`` are the first with some."""
    if likelihood.has_missing or not has_missing(x):
        return likelihood
    if not likelihood.allows_missing:
        raise ValueError(
            "X has missing values (NaN), but this model was fitted to complete data and cannot do "
            "without any column. Fill them in, or leave these rows out."
        )
    return likelihood.with_missing()


def ready_for(learner, batch, check):
    """The batch as ``check(likelihood, batch)`` returns it; the learner is told of missing entries."""
    before = learner.model.likelihood
    likelihood = likelihood_for(before, batch.x)
    batch = check(likelihood, batch)
    if likelihood is not before:
        learner.go_on_with(likelihood, likelihood.from_complete)
    return batch


def show_laps(estimator, learner, n_before):
    """Print a line for each lap after the first ``n_before``, if the estimator is verbose."""
    with Progress(estimator.verbose, type(estimator).__name__, live=False) as progress:
        for lap in learner.history:
            if lap.lap > n_before:
                progress.show(lap)


def totals_without_seeds(learner):
    """Totals in the learner's own order; in mid-lap, components on trial count rows twice."""
    totals = learner.totals
    for seeds in learner.seeds:
        totals = totals.less(seeds)
    return totals


def published_order(estimator, totals, by_weight):
    """Rows of the totals in the order in which components are published; see note (b)."""
    return np.argsort(totals.uids) if estimator._keeps_order else by_weight


def publish_with(estimator, learner, totals, own, derived=None):
    """Set all fitted attributes at once: those of every estimator, its ``own``, and what is ``derived``.

    Raises FloatingPointError, and sets none, if one of the objective's terms or of its own is not
    finite. What is derived from the objective may overflow.
    """
    terms = learner.model.elbo_terms(totals)
    require_finite(estimator, terms, own, but=learner.model.likelihood.may_be_nan)
    attributes = {
        "_learner_": learner,
        "_model": learner.model,
        "_observation": clone(resolve_observation(estimator.observation)),
        "n_components_": len(totals.uids),
        "lower_bound_": sum(terms.values()),
        "elbo_terms_": terms,
        "lower_bounds_": [lap.lower_bound for lap in learner.history],
        "history_": list(learner.history),
        "n_iter_": learner.history[-1].lap if learner.history else 0,
        "converged_": learner.converged,
        **own,
        **(derived or {}),
    }
    # another likelihood has other attributes
    for name in set(getattr(estimator, "_published", ())).difference(attributes):
        delattr(estimator, name)
    vars(estimator).update(attributes, _published=tuple(attributes))


def warn_if_not_converged(estimator):
    """As scikit-learn's mixtures do; the stochastic method has no such notion."""
    if estimator.converged_ or estimator.max_iter == 0 or estimator.learning_method == "stochastic":
        return
    warnings.warn(
        f"{type(estimator).__name__} did not converge in max_iter={estimator.max_iter} laps. "
        "Increase max_iter or tol.",
        ConvergenceWarning,
        stacklevel=5,  # of the call of fit, through its two decorators
    )
