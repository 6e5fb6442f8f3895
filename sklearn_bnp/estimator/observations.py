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


def can(observation, ability):
    """Whether an observation model, or its name, declares an ability such as ``"takes_sparse"``."""
    try:
        return bool(getattr(resolve_observation(observation), ability))
    except ValueError:  # it is not known, which fit says
        return False


def allows_missing(observation):
    """Whether entries of rows may be NaN, which stands for a missing value."""
    return can(observation, "allows_missing")


def takes_sparse(observation):
    """Whether rows may be sparse."""
    return can(observation, "takes_sparse")


def observation_of(estimator):
    """The `ObservationModel` of an estimator, with columns by number if its data came with names."""
    reading = vars(estimator).get("_reading")
    return resolve_observation(estimator.observation) if reading is None else reading.observation
