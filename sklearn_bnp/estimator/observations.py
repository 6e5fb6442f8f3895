"""The observation model that a user means."""

from __future__ import annotations

from ..likelihood import OBSERVATIONS, ObservationModel


def resolve_observation(observation):
    """An `ObservationModel` from a name or a model."""
    if isinstance(observation, ObservationModel):
        return observation
    if isinstance(observation, str) and observation in OBSERVATIONS:
        return OBSERVATIONS[observation]()
    raise ValueError(
        f"observation={observation!r} is not known; use one of {sorted(OBSERVATIONS)} or an "
        "instance of one of the observation models."
    )


def takes_missing(observation):
    """Whether rows may have NaN for an observation model or its name, for what was not observed."""
    known = isinstance(observation, ObservationModel) or observation in list(OBSERVATIONS)
    return known and resolve_observation(observation).takes_missing


def takes_sparse(observation):
    """Whether an observation model, or its name, takes sparse rows."""
    if isinstance(observation, str):
        observation = OBSERVATIONS.get(observation)
    return getattr(observation, "takes_sparse", False) is True


def observation_of(estimator):
    """The `ObservationModel` of an estimator, with columns by number if its data came with names."""
    reading = vars(estimator).get("_reading")
    return resolve_observation(estimator.observation) if reading is None else reading.observation
