"""`combine`: models that were fitted apart become one."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..engine.combining import canonical_order, combine_parts, keep_sums
from ..engine.learner import Learner
from ..engine.statistics import StatBag
from ..inputs.blas import blas_on_one_thread
from ..likelihood.change_of_units import in_units_of
from . import base
from .observations import are_alike
from .saved_state import CALLBACKS
from .settings import settings_of

_OF_CATEGORIES = (
    " Before each fit, give columns all categories, as by "
    "X.astype({name: pandas.CategoricalDtype(categories)})."
)


def combine(models: Iterable[Any]) -> Any:
    """Combine models that were fitted to different data into one, from their statistics alone.

    No rows are needed: data may stay where they are, in hospitals or at sensors. The components of all models
    are put side by side, which gives a model of all data. Then those that describe the same cluster, topic or
    state are joined, if that raises the objective of all data. The objective is known exactly from the
    models' statistics, as long as no two components of one model are joined; if they are, a lower bound
    stands for their entropy.

    Parameters
    ----------
    models : list of DPMixtureVB, of HDPTopicVB or of HDPHMMVB
        Fitted models of one class with the same parameter ``observation``, the same priors and the same
        columns or vocabulary. Codes of categories that `fit` found may differ, and the new model has those of
        all; categories of frames have to be the same. Each row, document or sequence should have been learned
        by one of them only, since it counts once for each model.

    Returns
    -------
    model : DPMixtureVB, HDPTopicVB or HDPHMMVB
        A new model with the parameters of the first one. Otherwise the order of the models does not matter:
        the new model begins with the units and the learned prior of the largest one, and empirical Bayes
        adapts the prior to all data. It predicts, and goes on with ``partial_fit``. Its ``lower_bound_`` is
        the objective of all data, and ``history_`` has one lap. There is no ``labels_``. Components that
        cannot be joined are kept, even if there are more than ``max_components``. A single model stays as it
        is, without its rows, its ``labels_``, and the sums of its batches.

    Raises
    ------
    ValueError
        If the models do not go together, or one of them is not fitted.

    See Also
    --------
    DPMixtureVB.partial_fit : Learns from one batch after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB, combine
    >>> rng = np.random.default_rng(0)
    >>> parts = [rng.normal(c, 0.3, size=(100, 2)) for c in (-3, 0, 3, 0)]
    >>> model = combine([DPMixtureVB(random_state=0).fit(X) for X in parts])
    >>> model.n_components_
    3
    """
    if not isinstance(models, (list, tuple)) and not hasattr(models, "__next__"):
        raise TypeError(
            f"models={models!r:.200} must be a list of fitted models: combine([first, second])."
        )
    models = list(models)
    if not models:
        raise ValueError("models=[] must hold a fitted model, or several.")
    first = models[0]
    for i, other in enumerate(models):
        _check_kind(first, other, i)
        check_is_fitted(
            other, msg=f"models[{i}] is not fitted: call fit of this %(name)s, or leave it out."
        )
        _check_goes_with(first, other, i)
    learners = [_at_rest(model) for model in models]
    out = deepcopy(first)
    vars(out).pop(CALLBACKS, None)
    with blas_on_one_thread():
        if len(learners) == 1:
            learner = learners[0]
            keep_sums(learner)
        else:
            learner = _one_of(learners, out)
            out._keeps_order = False
        out._publish(learner)
    return out


def _one_of(learners, out):
    """The learner of the data of several others, for an estimator with the parameters of the first one."""
    order = canonical_order([learner.totals for learner in learners])
    model = _model_of_all([learners[i].model for i in order])
    bags = [_bag(learners[i], model.likelihood, i) for i in order]
    rng = check_random_state(out.random_state)
    learner = base.make_learner(model, rng, settings_of(out), out._kind)
    combine_parts(learner, bags)
    learner.converged = all(each.converged for each in learners)
    return learner


def _check_kind(first, other, i):
    """Raise unless the i-th model is of a class that can be combined, and of that of the first one."""
    if not isinstance(other, base.LearnerEstimator):
        raise TypeError(
            f"models[{i}] must be a DPMixtureVB, HDPTopicVB or HDPHMMVB, not a {type(other).__name__}."
        )
    if other._kind.name != first._kind.name:
        raise TypeError(
            f"models[{i}] is a {type(other).__name__}, but models[0] is a {type(first).__name__}; only "
            "models of one class can be combined."
        )


def _check_goes_with(first, other, i):
    """Raise unless the i-th model is for the same columns, and has the same priors, as the first one."""
    for what, mine, its, remedy in (
        ("columns", first.n_features_in_, other.n_features_in_, ""),
        ("names of columns", *(_names(model) for model in (first, other)), ""),
        ("categories", *(_categories(model) for model in (first, other)), _OF_CATEGORIES),
    ):
        if mine != its:
            raise ValueError(
                f"models[{i}] has {what} {its!r:.200}, but models[0] has {mine!r:.200}; only models of the "
                f"same {what} can be combined.{remedy}"
            )
    mine, its = first._shared_by_parts(), other._shared_by_parts()
    for what in mine:
        if not are_alike(mine[what], its[what]):
            raise ValueError(
                f"models[{i}] has {what}={its[what]!r:.200}, but models[0] has {mine[what]!r:.200}; only "
                f"models with the same {what} can be combined."
            )


def _names(model):
    return list(getattr(model, "feature_names_in_", ()))


def _categories(model):
    found = getattr(model, "categories_", {})
    return {name: np.asarray(values).tolist() for name, values in found.items()}


def _at_rest(model):
    """A `Learner` of a fitted model, which ends the trials that are under way."""
    learner = Learner(model._learner_, base.learner_settings(settings_of(model)))
    learner.end_trials()
    return learner


def _model_of_all(models):
    """The model to begin with, which knows no components: that of the largest part.

    If some data have missing values, the likelihood and its prior are those of the first part that has. The
    categories are those of all parts.
    """
    model = models[0].released()
    gappy = next((one for one in models if one.likelihood.has_missing), model)
    others = [one.likelihood for one in models if one is not gappy]
    likelihood, prior = gappy.likelihood.spanning(gappy.prior, others)
    if likelihood is not model.likelihood:
        model = model._replace(likelihood=likelihood, prior=prior)
    return model.updated(StatBag.zeros((), model.likelihood.n_statistics))


def _bag(learner, likelihood, i):
    """Totals of a learner in the units of a likelihood."""
    try:
        s = in_units_of(learner.model.likelihood, likelihood, learner.totals.s)
    except ValueError as error:
        what = str(error).rstrip(".")
        raise ValueError(f"models[{i}] cannot be combined with the others: {what}.") from error
    return learner.totals._replace(s=s)
