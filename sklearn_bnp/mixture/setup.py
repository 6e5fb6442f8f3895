"""From the parameters of a mixture estimator to the engine, and from the engine to its attributes."""

from __future__ import annotations

import numpy as np

from ..engine.merge import Merge
from ..estimator import base, publishing
from ..estimator.observations import are_alike, check_explains_rows
from ..estimator.validation import check_means, check_reach, check_responsibilities, checked
from ..likelihood.seeding import LLOYD_STEPS, seeded_statistics
from .birth import Birth
from .delete import Delete
from .model import MixtureModel
from .oversplit import Oversplit
from .regroup import Regroup
from .relocate import Relocate

PROPOSALS = {
    "birth": Birth,
    "delete": Delete,
    "merge": Merge,
    "oversplit": Oversplit,
    "regroup": Regroup,
    "relocate": Relocate,
}
# Names of ``init_params``: steps of k-means after k-means++, or None where rows are drawn uniformly.
SEEDINGS = {"k-means++": LLOYD_STEPS, "kmeans": 100, "random": None, "random_from_data": None}
MIXTURE = base.ModelKind("mixture", PROPOSALS)


def bind_model(observation, allocation, source, *, streaming=False):
    """`MixtureModel` with units and priors for the rows of an `ArraySource` or `ChunkSource`."""
    check_explains_rows(checked(observation))
    likelihood = base.bind_likelihood(observation, source, streaming=streaming)
    return MixtureModel(likelihood, allocation, likelihood.prior)


def under_allocation(model, allocation):
    """The model with this prior of the weights; itself if it has the same one."""
    return (
        model if are_alike(allocation, model.allocation) else model._replace(allocation=allocation)
    )


def given_responsibilities(settings, x, rng):
    """Responsibilities (n, K) that ``init_params`` holds or computes; None if it names a method."""
    resp = settings.init_params
    if settings.starts_by_name or settings.means_init is not None:
        return None
    if callable(resp):
        resp = resp(x, settings.n_components, rng)
    return check_responsibilities(resp, x.shape[0])


def starting_statistics(settings, source, likelihood, rng):
    """Statistics (K, P) from which the first parameters are found."""
    if source.resp is not None:  # the first lap needs no parameters
        return np.zeros((source.resp.shape[1], likelihood.n_statistics))
    n_components, means = settings.n_components, settings.means_init
    if means is None:
        settings.check_least(source.n_rows, f"n_samples={source.n_rows}", "rows")
    else:
        means = check_means(means, n_components, source.n_features)
        check_reach(likelihood, means)
    n_steps = SEEDINGS[settings.init_params] if settings.starts_by_name else None
    s = seeded_statistics(likelihood, source, n_components, rng, means=means, n_steps=n_steps)
    return base.as_many_as_wanted(s, settings)


def published(state, keeps_order):
    """`Published` attributes of a mixture."""
    totals, coef, model = state.counted, state.coef, state.model
    if totals is not state.totals:
        coef = model.coefficients(totals)
    by_weight = np.argsort(-totals.n, kind="stable")
    order = publishing.published_order(totals, by_weight, keeps_order)
    if np.any(np.diff(order) < 0):
        totals, coef = totals.take(order), coef[order]
    own = {
        "_statistics": totals.s,
        "component_ids_": totals.uids.copy(),
        "_coef": coef,
        "weights_": model.allocation.weights(totals.n),
        **model.likelihood.attributes(model.prior, totals.s),
        **model.allocation.attributes(totals.n),
    }
    return publishing.Published(totals, own)
