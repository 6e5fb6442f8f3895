"""From the parameters of an estimator of sequences to the engine, and from the engine to its attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..estimator import base, publishing
from ..estimator.validation import check_responsibilities, check_units, checked
from ..inputs.advice import warn_caller
from ..inputs.batches import ArraySource, Batch
from ..inputs.increments import Increments
from ..inputs.moments import has_missing, require_values
from ..inputs.rows import at_hand
from ..likelihood.autoregressive_gaps import are_whole, blanked
from .birth import StateBirth
from .chunks import RowsOfSequences, increments_of, sampled_sequences
from .delete import StateDelete
from .merge import StateMerge
from .model import SequenceModel
from .oversplit import StateOversplit
from .restart import StateRestart
from .seeding import SEED_ROWS, SEED_ROWS_A_STATE, seeded_states
from .sequences import modelled, n_dimensions
from .weights import DirichletChains, HDPChains

PROPOSALS = {
    "birth": StateBirth,
    "delete": StateDelete,
    "merge": StateMerge,
    "oversplit": StateOversplit,
    "restart": StateRestart,
}
SEQUENCES = base.ModelKind("hmm", PROPOSALS)
_CONCENTRATION = 1.0  # gamma
# Values of the rows' parameters that are "auto": where learning starts, and those of finite priors and of
# stochastic learning, whose steps know no objective to learn by.
_LEARNED_FROM = {"concentration": 1.0, "start_concentration": 1.0, "stickiness": 5.0}
_FINITE = {"concentration": 1.0, "start_concentration": 1.0, "stickiness": 50.0}
# A warning says so if a smaller share of rows is modelled, since others lack an entry in them or before.
_FEW_WHOLE = 0.5


def _with_numbers(rows, automatic):
    """The rows' parameters, with the numbers of ``automatic`` for those that are "auto"."""
    return {name: automatic[name] if v == "auto" else float(v) for name, v in rows.items()}


def _hdp(concentration, rows):
    gamma = _CONCENTRATION if concentration is None else float(concentration)
    learned = tuple(name for name, value in rows.items() if value == "auto")
    return HDPChains(gamma, **_with_numbers(rows, _LEARNED_FROM)), learned


def _dirichlet(concentration, rows):
    return DirichletChains(**_with_numbers(rows, _FINITE)), ()


# Name -> function of ``weight_concentration_prior`` and of the rows' parameters. It gives a `ChainAllocation`
# and the names of its attributes that are learned.
CHAIN_ALLOCATIONS = {"hdp": _hdp, "dirichlet": _dirichlet}


class ChainPrior(NamedTuple):
    """A `ChainAllocation`, and the names of its attributes that are learned."""

    allocation: object
    learned: tuple = ()


def chain_prior(
    name, concentration, transition_concentration, start_concentration, stickiness, *, learns=True
):
    """The `ChainPrior` of this name for an estimator's parameters. None is learned unless it ``learns``."""
    rows = {
        "concentration": transition_concentration,
        "start_concentration": start_concentration,
        "stickiness": stickiness,
    }
    if not learns:
        rows = _with_numbers(rows, _FINITE)
    return ChainPrior(*CHAIN_ALLOCATIONS[name](concentration, rows))


class ModelledRows(NamedTuple):
    """The rows of all sequences that are modelled, from which units and priors are found.

    Attributes
    ----------
    source : ArraySource or ChunkSource
    increments : callable
        ``increments(magnitude)`` are the `Increments` of the sequences.
    """

    source: object
    increments: Callable


def modelled_rows(batch, observation):
    """`ModelledRows` of sequences in memory."""
    rows, _ = modelled(batch)
    if observation.lags:
        rows = _without_gaps(rows, observation)
    weight = None if batch.weight is None else np.repeat(batch.weight, batch.lengths)
    increments = partial(Increments.of, rows, batch.indptr, batch.weight)
    return ModelledRows(ArraySource(rows, weight), increments)


def require_values_of(batch):
    """Raise unless each column has a value in some sequence of positive weight."""
    if has_missing(batch.x):
        weight = None if batch.weight is None else np.repeat(batch.weight, np.diff(batch.indptr))
        require_values(ArraySource(at_hand(batch.x), weight).batches())


def modelled_rows_in_chunks(source, observation):
    """`ModelledRows` of sequences in chunks."""
    rows = source.with_rows_of(RowsOfSequences(observation.lags > 0))
    return ModelledRows(rows, partial(increments_of, source))


def bind_model(observation, chain, modelled_rows_of, *, low_memory, streaming=False):
    """`SequenceModel` of a `ChainPrior` and of the `ModelledRows` ``modelled_rows_of(observation)``."""
    observation = checked(observation.for_sequences())
    rows = modelled_rows_of(observation)
    likelihood = base.bind_likelihood(
        observation, rows.source, streaming=streaming, increments=rows.increments
    )
    return SequenceModel(
        likelihood, chain.allocation, likelihood.prior, learned=chain.learned, low_memory=low_memory
    )


def _without_gaps(rows, observation):
    """Lagged rows, all NaN where an entry is missing: such rows have no part in the moments."""
    n_whole = np.count_nonzero(are_whole(rows))
    lags, remedy = observation.lags, "leave columns out in which they are missing"
    remedy = f"{remedy}, or lower the order" if lags > 1 else f"or {remedy}"
    if n_whole == 0:
        raise ValueError(
            f"observation={observation!r} explains rows by the {lags} before them, but X has no "
            f"{lags + 1} successive rows without NaN. Fill values in, {remedy}."
        )
    if n_whole < _FEW_WHOLE * len(rows):
        warn_caller(
            f"observation={observation!r} explains rows by the {lags} before them, and takes rows as given "
            f"that have NaN in them or in these: it models {n_whole} of {len(rows)} rows. Fill values in, "
            f"{remedy}. observation='gaussian' models all rows."
        )
    return blanked(rows)


def with_present_parameters(model, chain, low_memory):
    """The model with the prior of transitions, and the care for memory, that are set now.

    What was learned so far stays.
    """
    model, now = model._replace(low_memory=low_memory), chain.allocation
    if type(now) is type(model.allocation):
        now = replace(now, **{name: getattr(model.allocation, name) for name in chain.learned})
        if now == model.allocation and chain.learned == model.learned:
            return model
    return model._replace(allocation=now, learned=chain.learned, sticks=None, uids=())


def in_units(likelihood, batch):
    """The batch, in double precision if its rows are too far out for single precision; see `check_units`."""
    rows, _ = modelled(batch)
    found = check_units(likelihood, Batch(None, rows)).x
    return batch if found.dtype == rows.dtype else batch._replace(x=batch.x.astype(found.dtype))


# ---------------------------------------------------------------------- where fits start


def starting_batch(settings, sequences, x, rng):
    """All sequences, with responsibilities if the user gave them.

    ``x`` is what the user gave, for a callable ``init_params``.
    """
    resp = settings.init_params
    if settings.starts_by_name:
        return sequences.batch
    if callable(resp):
        resp = resp(x, settings.n_components, rng)
    if sequences.listed and isinstance(resp, (list, tuple)) and resp and n_dimensions(resp[0]) == 2:
        resp = np.concatenate(resp)
    resp = check_responsibilities(resp, sequences.n_given or sequences.n_rows)
    return sequences.batch._replace(resp=sequences.in_order_of_batch(resp))


def starting_statistics(settings, batch, likelihood, rng):
    """Statistics (K, P) from which the first parameters are found."""
    n_components = settings.n_components
    if batch.resp is not None:  # the first lap needs no parameters
        return np.zeros((batch.resp.shape[1], likelihood.n_statistics))
    _check_number(settings, batch)
    spread = settings.init_params == "k-means++"
    s = seeded_states(likelihood, batch, n_components, rng, spread=spread)
    return base.as_many_as_wanted(s, settings)


def statistics_from_chunks(settings, source, lags, likelihood, rng):
    """As `starting_statistics`, from a sample of sequences in chunks."""
    _check_number(settings, source)
    n_rows = max(SEED_ROWS, SEED_ROWS_A_STATE * settings.n_components)
    sample = sampled_sequences(source, n_rows, lags, rng)
    return starting_statistics(settings, sample, likelihood, rng)


def _check_number(settings, data):
    n = data.n_entries
    settings.check_least(n, f"the {n} rows of X that are modelled", "rows")


# ---------------------------------------------------------------------- where fits end


def published(state, keeps_order):
    """`Published` attributes of a model of sequences.

    The learner's own order stays as it is: its sticks are in that order.
    """
    totals = state.counted
    # a state that gives way to others for a lap still has the rows of batches not yet visited
    model = state.model._replace(retired=None)
    by_size = np.argsort(-totals.n, kind="stable")
    order = publishing.published_order(totals, by_size, keeps_order)
    cells = np.ix_(np.append(0, order + 1), order)
    mean_rows = model.mean_rows(totals)[cells]
    s = totals.s[order]
    own = {
        "_statistics": s,
        "component_ids_": totals.uids[order],
        "_coef": model.likelihood.coefficients(model.prior, totals.s)[order],
        "startprob_": mean_rows[0],
        "transmat_": mean_rows[1:],
        "weights_": model.weights(totals)[order],
        "transition_concentration_": model.allocation.concentration,
        "start_concentration_": model.allocation.start_concentration,
        "stickiness_": model.allocation.stickiness,
        **model.likelihood.attributes(model.prior, s),
    }
    return publishing.Published(totals, own)
