"""From a learner that has come to an end of its work to the fitted attributes of an estimator.

Design note
-----------
(a) Components are published by decreasing weight; or in the order in which the user gave them, if their
    number is fixed. In the second case their uids are 0, 1, ... from the start of the fit, and so tell the
    order. The learner keeps an order of its own, since observers of a lap under way know components by their
    column.
(b) Attributes are functions of the learner's state. `fit` computes all of them. To learn from a small batch
    of a stream takes less time than its attributes do, and often nobody looks at them between two batches.
    `partial_fit` therefore sets the state alone, and the first attribute that is read computes them all
    (`FittedAttributes`). Code that copies ``vars`` of an estimator calls `complete` before.
(c) ``_published`` lists the names of all attributes. Those that are not there are still to be computed:
    they wait, or a user has deleted them.
(d) ``labels_`` are a function of rows, too. After `fit` they are there. After `partial_fit` they wait by
    themselves, since they take a pass over the batch. A copy of its rows is kept until they are read, because
    the user's array may change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..engine.statistics import StatBag
from ..inputs.advice import warn_caller
from ..inputs.blas import blas_on_one_thread
from .observations import are_alike

# The attribute that is computed from rows, and the data while it waits.
_LABELS, _UNLABELLED = "labels_", "_unlabelled"
# The number of columns of X, and a copy of it. Without it scikit-learn does not check the width of X, which
# kernels trust.
_WIDTH, _SAME_WIDTH = "n_features_in_", "_n_columns"
# What the other attributes are computed from.
_SOURCES = ("_learner_", "_observation")
# There is no warning of fewer rows, which may well weigh no more than one.
_MANY_ROWS = 10


class Published(NamedTuple):
    """The attributes that one estimator publishes beside those of all estimators with a learner.

    Attributes
    ----------
    totals : StatBag
        Statistics of the whole data, without those of components on trial.
    own : dict
        Attributes by name; all of their numbers must be finite.
    derived : dict or None
        Attributes that are functions of the objective, and may overflow.
    """

    totals: StatBag
    own: dict
    derived: dict | None = None


def published_order(totals, by_weight, keeps_order):
    """Order (K,) in which components are published: as they were given, or else ``by_weight``."""
    return np.argsort(totals.uids) if keeps_order else by_weight


_OF_COMPARISONS = (
    "The ELBO already charges for every component: compare fits to the same data by lower_bound_, and other "
    "models by score(X) of data that were left out."
)
# Attributes and methods of other packages, and what to use here.
_ELSEWHERE = {
    "aic": _OF_COMPARISONS,
    "bic": _OF_COMPARISONS,
    "cluster_centers_": "Use means_.",
    "covars_": "Use covariances_.",
    "emissionprob_": "Use probabilities_ of categories, or means_ of counts.",
    "inertia_": "Use lower_bound_ of the data of the fit, or score(X) of others.",
    "monitor_": "Use converged_, history_ and lower_bounds_.",
    "n_clusters_": "Use n_components_.",
    "n_topics_": "Use n_components_.",
}


class FittedAttributes:
    """Mixin of all estimators for the attributes that a fit publishes.

    An estimator has a method ``_attributes_again()``: attributes by name, computed from what was learned.
    They take the place of those that wait, or that a user has deleted.
    """

    # Attributes that nothing brings back once they are deleted. A model does without them.
    _gone_for_good = (_LABELS,)

    def __getattr__(self, name):
        if name == _LABELS:
            _label_rows(self)
        elif name == _WIDTH and _SAME_WIDTH in vars(self):
            vars(self)[_WIDTH] = vars(self)[_SAME_WIDTH]
        elif name in vars(self).get("_published", ()) and name not in _SOURCES:
            complete(self)
        gone = name not in vars(self) and "_learner_" in vars(self)
        if name == _LABELS and gone and hasattr(type(self), "fit_predict"):
            raise AttributeError(
                f"This {type(self).__name__} has no attribute 'labels_': only fit and partial_fit of data in "
                "memory set it, and not memory maps, data in chunks, forget or combine; or it was deleted. "
                "Call predict(X)."
            )
        if name in _ELSEWHERE and name not in vars(self):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}. {_ELSEWHERE[name]}"
            )
        return super().__getattribute__(name)  # it is there now, or Python raises its own error

    def __delattr__(self, name):
        # labels have one number a row, and those that wait hold the rows
        if name == _LABELS and not vars(self).keys().isdisjoint((_LABELS, _UNLABELLED)):
            drop_labels(self)
        elif name in vars(self) or name not in vars(self).get("_published", ()):
            super().__delattr__(name)
            forget_lost(self)
        # others wait: they are not there yet, and would be computed again when they are read

    def __dir__(self):
        return sorted({*super().__dir__(), *vars(self).get("_published", ())})

    def __sklearn_is_fitted__(self):
        return "_published" in vars(self) or "n_components_" in vars(self)


def complete(estimator, *, labels=False):
    """Compute the fitted attributes that are still to be computed, with ``labels_`` if these are wanted."""
    if labels:
        _label_rows(estimator)
    forget_lost(estimator)
    if _SAME_WIDTH in vars(estimator):
        vars(estimator).setdefault(_WIDTH, vars(estimator)[_SAME_WIDTH])
    missing = set(vars(estimator).get("_published", ())).difference(vars(estimator), (_LABELS,))
    if missing:
        with blas_on_one_thread():
            found = estimator._attributes_again()
        vars(estimator).update({name: found[name] for name in missing if name in found})


def fitted_attributes(state, observation, published):
    """All fitted attributes, a dict by name.

    Parameters
    ----------
    state : LearnerState
    observation : ObservationModel
        That of the fit.
    published : Published
    """
    terms = state.model.elbo_terms(published.totals)
    return {
        "_learner_": state,
        "_model": state.model,
        "_observation": observation,
        "n_components_": len(published.totals.uids),
        "lower_bound_": sum(terms.values()),
        "elbo_terms_": terms,
        "lower_bounds_": [lap.lower_bound for lap in state.history],
        "history_": list(state.history),
        "n_iter_": state.n_laps,
        "converged_": state.converged,
        **published.own,
        **(published.derived or {}),
    }


def kept_observation(observation, before):
    """A copy of an observation model; that of the last call if this is like it."""
    return before if are_alike(observation, before) else clone(observation)


def set_published(estimator, attributes):
    """Set attributes, and delete those of the last fit that are not among them.

    Another likelihood has other attributes.
    """
    drop_labels(estimator)
    _delete(estimator, set(vars(estimator).get("_published", ())).difference(attributes))
    vars(estimator).update(attributes, _published=tuple(attributes))
    keep_width(estimator)


def keep_width(estimator):
    """Keep a copy of ``n_features_in_``, in case a user deletes it."""
    vars(estimator)[_SAME_WIDTH] = estimator.n_features_in_


def publish_later(estimator, state):
    """Set the state of a learner that has gone on; all attributes that follow from it are computed when read.

    The likelihood and the kind of the weights' prior have to be those of before, with the same attributes.
    """
    drop_labels(estimator)
    names = [name for name in estimator._published if name != "_paused"]
    _delete(estimator, set(estimator._published).difference(("_learner_", "_observation")))
    vars(estimator).update(_learner_=state, _published=tuple(names))


def publish_labels(estimator, labels):
    """Set ``labels_`` of an estimator whose other attributes are published."""
    vars(estimator).update({_LABELS: labels, "_published": (*estimator._published, _LABELS)})


def label_later(estimator, data):
    """Let ``labels_`` of checked data be computed when they are read; the data must not change until then."""
    names = (*estimator._published, _LABELS)
    vars(estimator).update({_UNLABELLED: data, "_published": names})


def _label_rows(estimator):
    """Compute ``labels_`` if they wait."""
    if _UNLABELLED in vars(estimator):
        labels = estimator._labels(vars(estimator)[_UNLABELLED])
        vars(estimator)[_LABELS] = labels
        _delete(estimator, [_UNLABELLED])


def drop_labels(estimator):
    """Delete the labels of the last fit, or of the last batch, whether they wait or not."""
    _delete(estimator, (_LABELS, _UNLABELLED))
    forget_lost(estimator)


def forget_lost(estimator):
    """Take what is gone for good from the list of attributes; users delete labels to save memory."""
    there = {*vars(estimator), *((_LABELS,) if _UNLABELLED in vars(estimator) else ())}
    lost, names = set(estimator._gone_for_good) - there, vars(estimator).get("_published", ())
    if not lost.isdisjoint(names):
        vars(estimator)["_published"] = tuple(name for name in names if name not in lost)


def _delete(estimator, names):
    for name in names:
        vars(estimator).pop(name, None)


def require_finite(estimator, bounds, parameters, *, but=()):
    """Raise unless the objective and all parameters are finite: the last check before they are published.

    Limits of data and parameters are checked where they come in; this is for what these cannot foresee.

    Parameters
    ----------
    estimator : BaseEstimator
    bounds : dict
        Terms of the objective by name.
    parameters : dict
        Attributes by name: numbers, arrays, and dicts, tuples and lists of them.
    but : tuple of str
        Attributes that need not be finite, see `Likelihood.may_be_nan`.
    """
    for what, values in {"objective": bounds, "parameters": parameters}.items():
        wrong = [name for name, value in values.items() if not _is_finite(name, value, but)]
        if wrong:
            raise FloatingPointError(
                f"The {what} of {type(estimator).__name__} would not be finite: {', '.join(wrong)}. Look for "
                "values in X or sample_weight that are far from all others, and for parameters of priors "
                "that are very large or small; rescale them. The estimator stays as it was before this call."
            )


def _is_finite(name, value, but):
    if name in but:
        return True
    if isinstance(value, dict):
        return all(_is_finite(f"{name}.{key}", v, but) for key, v in value.items())
    if isinstance(value, (tuple, list)):
        return all(_is_finite(name, v, but) for v in value)
    value = np.asarray(value)
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())


def warn_if_weightless(source):
    """Warn if all data together weigh no more than one row, as if weights had been made to sum to 1."""
    total, mean = source.total_weight, source.mean_weight
    if mean is None or total > 1.0 + 1e-6 or total < _MANY_ROWS * mean:
        return
    warn_caller(
        f"sample_weight sums to {total:.3g} over all the data. They count no more than a single row, which "
        "hardly tells components apart. If the weights were made to sum to 1, divide them by their mean."
    )


def warn_if_not_converged(estimator):
    """Warn as scikit-learn's mixtures do; stochastic learning knows no convergence."""
    if estimator.converged_ or estimator.max_iter == 0 or estimator.learning_method == "stochastic":
        return
    if estimator.n_iter_ < estimator.max_iter:  # a callback has stopped it
        return
    warn_caller(
        f"{type(estimator).__name__} did not converge in max_iter={estimator.max_iter} laps. "
        "Increase max_iter or tol.",
        ConvergenceWarning,
    )
