"""From the parameters of a mixture estimator to the engine, and from the engine to its attributes."""

from __future__ import annotations

import numpy as np

from ..engine.merge import Merge
from ..estimator import base
from ..estimator.observations import observation_of
from ..estimator.validation import (
    check_explains_rows,
    check_means,
    check_reach,
    check_responsibilities,
    checked,
)
from ..likelihood.seeding import seeded_statistics
from .birth import Birth
from .delete import Delete
from .model import Model
from .sampling import Collector
from .weights import allocation_from

PROPOSALS = {"birth": Birth, "delete": Delete, "merge": Merge}


def bind_model(estimator, source, *, streaming=False):
    """`Model` whose units and priors are those of the data."""
    observation = checked(observation_of(estimator))
    check_explains_rows(observation)
    likelihood = base.bind_likelihood(observation, source, streaming=streaming)
    return Model(likelihood, allocation_of(estimator), likelihood.prior)


def allocation_of(estimator):
    """The `MixtureAllocation` of the estimator's parameters."""
    return allocation_from(estimator.allocation, estimator.weight_concentration_prior)


def make_learner(estimator, model, rng):
    """A `Learner` of rows with the estimator's settings."""
    return base.make_learner(estimator, model, rng, PROPOSALS, "mixture", Collector)


def starting_responsibilities(estimator, x, rng):
    """Responsibilities set by the user, or None."""
    resp = estimator.init_params
    if isinstance(resp, str) or estimator.means_init is not None:
        return None
    if callable(resp):
        resp = resp(x, estimator.n_components, rng)
    return check_responsibilities(resp, x.shape[0])


def starting_statistics(estimator, learner, source):
    """Statistics (K, P) from which the first parameters are found."""
    likelihood = learner.model.likelihood
    if source.resp is not None:  # the first lap needs no parameters
        return np.zeros((source.resp.shape[1], likelihood.n_statistics))
    n_components, means = estimator.n_components, estimator.means_init
    if n_components > source.n_rows and means is None:
        raise ValueError(
            f"n_components={n_components} is more than n_samples={source.n_rows}; start from fewer "
            "components."
        )
    if means is not None:
        means = check_means(means, n_components, source.x.shape[1])
        check_reach(likelihood, means)
    spread = isinstance(estimator.init_params, str) and estimator.init_params == "k-means++"
    s = seeded_statistics(likelihood, source, n_components, learner.rng, means=means, spread=spread)
    return base.as_many_as_wanted(learner, s, n_components)


def _settled(estimator, learner):
    """Totals in the order in which they are published, and the coefficients of the local step."""
    totals, coef = base.totals_without_seeds(learner), learner.coef
    if totals is not learner.totals:
        coef = learner.model.coefficients(totals)
    order = base.published_order(estimator, totals, np.argsort(-totals.n, kind="stable"))
    if np.any(np.diff(order) < 0):
        totals, coef = totals.take(order), coef[order]
    return totals, coef


def publish(estimator, learner):
    """Set all fitted attributes of a mixture at once."""
    model = learner.model
    totals, coef = _settled(estimator, learner)
    base.publish_with(
        estimator, learner, totals,
        {
            "_statistics": totals.s,
            "_coef": coef,
            "weights_": model.allocation.weights(totals.n),
            **model.likelihood.attributes(model.prior, totals.s),
            **model.allocation.attributes(totals.n),
        },
    )  # fmt: skip
