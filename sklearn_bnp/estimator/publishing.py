"""From a learner that has come to an end of its work to the fitted attributes of an estimator.

Components are published by decreasing weight; or in the order in which the user gave them, if their number
is fixed. In the second case their uids are 0, 1, ... from the start of the fit, and so tell the order. The
learner keeps an order of its own, since observers of a lap under way know components by their column.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..engine.statistics import StatBag
from .observations import are_alike


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


def fitted_attributes(estimator, learner, observation, published):
    """All fitted attributes, a dict by name; ``published`` is a `Published`.

    Raises FloatingPointError if a term of the objective or an attribute is not finite.
    """
    terms = learner.model.elbo_terms(published.totals)
    require_finite(estimator, terms, published.own, but=learner.model.likelihood.may_be_nan)
    return {
        "_learner_": learner.state,
        "_model": learner.model,
        "_observation": _kept(observation, getattr(estimator, "_observation", None)),
        "n_components_": len(published.totals.uids),
        "lower_bound_": sum(terms.values()),
        "elbo_terms_": terms,
        "lower_bounds_": [lap.lower_bound for lap in learner.history],
        "history_": list(learner.history),
        "n_iter_": learner.history[-1].lap if learner.history else 0,
        "converged_": learner.converged,
        **published.own,
        **(published.derived or {}),
    }


def _kept(observation, before):
    """A copy of an observation model; that of the last call if this is like it."""
    return before if are_alike(observation, before) else clone(observation)


def set_published(estimator, attributes):
    """Set attributes, and delete those of the last fit that are not among them.

    Another likelihood has other attributes.
    """
    for name in set(getattr(estimator, "_published", ())).difference(attributes):
        delattr(estimator, name)
    vars(estimator).update(attributes, _published=tuple(attributes))


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


def warn_if_not_converged(estimator):
    """Warn as scikit-learn's mixtures do; stochastic learning knows no convergence."""
    if estimator.converged_ or estimator.max_iter == 0 or estimator.learning_method == "stochastic":
        return
    if estimator.n_iter_ < estimator.max_iter:  # a callback has stopped it
        return
    warnings.warn(
        f"{type(estimator).__name__} did not converge in max_iter={estimator.max_iter} laps. "
        "Increase max_iter or tol.",
        ConvergenceWarning,
        stacklevel=6,  # the caller of fit, beyond its two decorators and the common flow
    )
