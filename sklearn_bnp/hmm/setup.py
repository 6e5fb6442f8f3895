"""From the parameters of an estimator of sequences to the engine, and from the engine to its attributes."""

from __future__ import annotations

import numpy as np

from ..engine.task import Purpose
from ..estimator import base
from ..estimator.observations import observation_of
from ..estimator.validation import check_responsibilities, check_units, checked
from ..inputs.batches import ArraySource, Batch
from ..likelihood.autoregressive_gaps import blanked
from .birth import StateBirth
from .delete import StateDelete
from .local import ChainParams
from .merge import StateMerge
from .model import SequenceModel
from .seeding import seeded_states
from .sequences import modelled, n_dimensions
from .weights import DirichletChains, HDPChains

PROPOSALS = {"birth": StateBirth, "delete": StateDelete, "merge": StateMerge}
_CONCENTRATION = 1.0  # alpha, alpha_0 and gamma


def _or_default(value):
    return _CONCENTRATION if value is None else float(value)


def _rows(estimator):
    """Parameters of the rows' priors: alpha, alpha_0 and kappa."""
    return (
        _or_default(estimator.transition_concentration),
        _or_default(estimator.start_concentration),
        float(estimator.stickiness),
    )


def _hdp(estimator):
    return HDPChains(_or_default(estimator.weight_concentration_prior), *_rows(estimator))


def _dirichlet(estimator):
    return DirichletChains(*_rows(estimator))


CHAIN_ALLOCATIONS = {"hdp": _hdp, "dirichlet": _dirichlet}


def allocation_of(estimator):
    """The `ChainAllocation` that the estimator's parameters name."""
    return CHAIN_ALLOCATIONS[estimator.allocation](estimator)


def bind_model(estimator, sequences, *, streaming=False):
    """`SequenceModel` in the units of the sequences."""
    observation = checked(observation_of(estimator).for_sequences())
    batch = sequences.batch
    rows, _ = modelled(batch)
    if observation.lags:
        rows = _without_gaps(rows, observation)
    weight = None if batch.weight is None else np.repeat(batch.weight, batch.lengths)
    likelihood = base.bind_likelihood(observation, ArraySource(rows, weight), streaming=streaming)
    return SequenceModel(
        likelihood, allocation_of(estimator), likelihood.prior, low_memory=estimator.low_memory
    )


def _without_gaps(rows, observation):
    """Lagged rows, blank where they lack something: moments are of what is explained."""
    rows = blanked(rows)
    if np.isnan(rows).all():
        raise ValueError(
            f"observation={observation!r} explains rows by the {observation.lags} before them, but X nowhere "
            f"has {observation.lags + 1} rows without NaN one after the other. Fill values in, leave "
            "columns out in which they are missing, or lower the order."
        )
    return rows


def present_model(estimator, model):
    """The model with the priors of transitions, and the care for memory, that are set now."""
    model = model._replace(low_memory=estimator.low_memory)
    allocation = allocation_of(estimator)
    before = model.allocation
    if type(allocation) is type(before) and vars(allocation) == vars(before):
        return model
    return model._replace(allocation=allocation, sticks=None, uids=())


def in_units(likelihood, batch):
    """The batch, in a precision that suits the units; see `check_units`."""
    rows, _ = modelled(batch)
    found = check_units(likelihood, Batch(None, rows)).x
    return batch if found.dtype == rows.dtype else batch._replace(x=batch.x.astype(found.dtype))


def make_learner(estimator, model, rng):
    """A `Learner` of sequences with the estimator's settings."""
    return base.make_learner(estimator, model, rng, PROPOSALS, "hmm")


# ---------------------------------------------------------------------- where fits start


def starting_batch(estimator, sequences, x, rng):
    """All sequences, with responsibilities if the user set them; ``x`` is what a callable wants."""
    resp = estimator.init_params
    if isinstance(resp, str):
        return sequences.batch
    if callable(resp):
        resp = resp(x, estimator.n_components, rng)
    if sequences.listed and isinstance(resp, (list, tuple)) and resp and n_dimensions(resp[0]) == 2:
        resp = np.concatenate(resp)
    resp = check_responsibilities(resp, sequences.n_given or sequences.n_rows)
    return sequences.batch._replace(resp=sequences.in_order_of_batch(resp))


def starting_statistics(estimator, learner, batch):
    """Statistics (K, P) from which the first parameters are found."""
    likelihood, n_components = learner.model.likelihood, estimator.n_components
    if batch.resp is not None:  # the first lap needs no parameters
        return np.zeros((batch.resp.shape[1], likelihood.n_statistics))
    if n_components > batch.n_entries:
        raise ValueError(
            f"n_components={n_components} is more than the {batch.n_entries} rows of X that are "
            "modelled; start from fewer components."
        )
    spread = estimator.init_params == "k-means++"
    s = seeded_states(likelihood, batch, n_components, learner.rng(Purpose.START), spread=spread)
    return base.as_many_as_wanted(learner, s, n_components)


# ---------------------------------------------------------------------- where fits end


def publish(estimator, learner):
    """Set all fitted attributes at once, with states by decreasing number of rows, or as given.

    The learner's own order stays as it is: its sticks are in that order.
    """
    totals = learner.state.counted
    # a state that gives way to others for a lap still has the rows of batches not yet visited
    model = learner.model._replace(retired=None)
    order = base.published_order(estimator, totals, np.argsort(-totals.n, kind="stable"))
    cells = np.ix_(np.append(0, order + 1), order)
    coef, log_rows, states = model.coefficients(totals)
    mean_rows = model.mean_rows(totals)[cells]
    s = totals.s[order]
    own = {
        "_statistics": s,
        "_params": ChainParams(coef[order], log_rows[cells], states),
        "startprob_": mean_rows[0],
        "transmat_": mean_rows[1:],
        "weights_": model.weights(totals)[order],
        **model.likelihood.attributes(model.prior, s),
    }
    base.publish_with(estimator, learner, totals, own)
