"""Checks of the attributes that fitted estimators share."""

from __future__ import annotations

import numpy as np

from ...engine.checkpoint import Paused
from .engine import check_history, check_learner, check_model
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
)
from .likelihoods import is_ours

# Attributes with one entry a component.
_OF_COMPONENTS = (
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "coef_",
    "intercept_",
    "autocorrelation_",
    "restart_probability_",
)


def check_fitted(estimator, kind):
    """Raise unless the attributes that all estimators with a learner have are sound."""
    n_columns = estimator.n_features_in_
    expect_count("n_features_in_", n_columns, least=1)
    check_learner(estimator._learner_, kind, n_columns)
    paused = getattr(estimator, "_paused", None)
    if paused is not None:
        expect_type("where the fit may go on", paused, Paused)
        check_learner(paused.learner, kind, n_columns)
    model, below = estimator._model, estimator._learner_.next_uid
    if model is not estimator._learner_.model:
        check_model(model, kind.model, below, n_columns)
    expect_count("n_iter_", estimator.n_iter_)
    expect_type("converged_", estimator.converged_, bool)
    expect_number("lower_bound_", estimator.lower_bound_)
    for name, term in estimator.elbo_terms_.items():
        expect_number(f"the term {name} of the objective", term)
    for bound in estimator.lower_bounds_:
        expect_number("an entry of lower_bounds_", bound)
    check_history(estimator.history_)
    K = estimator.n_components_
    expect_positions("component_ids_", estimator.component_ids_, (K,), below)
    check_components(estimator, model.likelihood)


def check_components(estimator, likelihood):
    """Raise unless attributes with one entry a component have one for each of them."""
    K = estimator.n_components_
    expect_count("n_components_", K)
    expect_numbers("statistics", estimator._statistics, (K, likelihood.n_statistics))
    for name in set(_OF_COMPONENTS).intersection(estimator._published):
        value = getattr(estimator, name)
        expect(len(value) == K, f"{name} has {len(value)} entries, not {K}")
        if is_ours(likelihood):  # of categories, means are NaN
            expect_type(name, value, np.ndarray)
            expect(value.dtype == float, f"{name} holds values of type {value.dtype}")
    missing = set(estimator._published).difference(vars(estimator))
    expect(not missing, f"there is no {', no '.join(sorted(missing))}")
