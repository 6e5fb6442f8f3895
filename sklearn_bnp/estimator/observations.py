"""The parameter ``observation``: a name or an `ObservationModel`."""

from __future__ import annotations

from functools import cache
from pickle import PicklingError
from typing import Any, Self

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from ..inputs.advice import (
    ExplainedParameters,
    advice_on_observation,
    has_nested,
    require_parts,
    with_part,
)
from ..inputs.frames import is_sparse_frame, require_zeros_to_fill
from ..likelihood import OBSERVATIONS, ObservationModel

# Types whose values are compared as they are.
_PLAIN = (type(None), bool, str, bytes)
_OF_NUMPY = (np.generic, np.ndarray)


class ObservationParameters(ExplainedParameters):
    """Mixin for estimators with an ``observation`` parameter: `set_params` reaches its nested parameters."""

    observation: Any

    @classmethod
    def _advice_on_name(cls, name, names, given):
        own = given.get("observation", "gaussian")
        own = OBSERVATIONS.get(own) if isinstance(own, str) else type(own)
        for family in filter(None, (own, OBSERVATIONS["gaussian"], *OBSERVATIONS.values())):
            if issubclass(family, ObservationModel) and name in family._get_param_names():
                shown = f"observation={family.__name__}({name}=...)"
                return f" It is a parameter of the likelihood: give {shown}."
        return super()._advice_on_name(name, names, given)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones of ``observation`` even if that is a name.

        Parameters
        ----------
        **params : dict
            Estimator parameters.

        Returns
        -------
        self : estimator
            The estimator.
        """
        observation = params.get("observation", self.observation)
        own = self.get_params(deep=False)  # type: ignore[attr-defined]  # of BaseEstimator
        _check_none_is_of_likelihood(sorted(set(params).difference(own)), observation, self)
        if has_nested(params, "observation") and not isinstance(observation, ObservationModel):
            params = with_part(params, "observation", resolve_observation(observation))
        require_parts(self, params)
        return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator


def _check_none_is_of_likelihood(names, observation, estimator):
    """Raise if one of these names, which the estimator does not have, is a parameter of its likelihood."""
    if isinstance(observation, str) and observation in OBSERVATIONS:
        observation = OBSERVATIONS[observation]()
    its = observation.get_params(deep=False) if isinstance(observation, ObservationModel) else ()
    for name in names:
        if name in its:
            raise ValueError(
                f"Invalid parameter {name!r} for estimator {type(estimator).__name__}: it is a parameter of "
                f"the likelihood. Set observation__{name}."
            )


def resolve_observation(observation, reading=None):
    """The `ObservationModel` that a parameter means.

    A frame's columns may be chosen by name. In the model of its `Reading` they are numbers.
    """
    if reading is not None:
        return reading.observation
    if isinstance(observation, ObservationModel):
        return observation
    if isinstance(observation, str) and observation in OBSERVATIONS:
        return OBSERVATIONS[observation]()
    advice = advice_on_observation(observation, OBSERVATIONS, ObservationModel)
    raise ValueError(
        f"observation={observation!r} is not known.{advice} Use one of {sorted(OBSERVATIONS)} or an "
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


def require_sparse_family(x, observation):
    """Raise if rows are sparse and the likelihood takes dense rows only, or what is not stored is not 0."""
    of_frame = is_sparse_frame(x)
    if (issparse(x) or of_frame) and not takes_sparse(observation):
        families = [name for name in OBSERVATIONS if takes_sparse(name)]
        raise TypeError(
            f"X is sparse, but observation={observation!r} takes dense rows: give "
            f"{'X.sparse.to_dense()' if of_frame else 'X.toarray()'}. Sparse rows are for the families of "
            f"counts, {sorted(families)}."
        )
    if of_frame:
        require_zeros_to_fill(x)


def check_explains_rows(observation):
    """Raise if a likelihood explains rows by those before them, where rows have no order."""
    if observation.lags:
        raise ValueError(
            f"observation={observation!r} explains each row by those before it and is for sequences, "
            "but here rows of X have no order; use HDPHMMVB, or observation='gaussian' for rows."
        )


def check_same_observation(observation, before, call):
    """Raise if the parameter ``observation`` is not what the fit that ``call`` goes on with was begun with.

    ``before`` is the `ObservationModel` of that fit.
    """
    observation = resolve_observation(observation)
    if not are_alike(observation, before):
        raise ValueError(
            f"observation={observation!r} differs from that of the fit which {call} continues, "
            f"{before!r}; set it back, or {how_to_begin_anew(call)}."
        )


def how_to_begin_anew(call):
    """Words of an error message: how to fit without the past that ``call`` would go on with.

    ``call`` is "partial_fit" or "warm_start=True". In a warm start `fit` goes on as well, and is no remedy.
    """
    return (
        "set warm_start=False to begin anew"
        if call.startswith("warm_start")
        else "begin anew with fit"
    )


def are_alike(one, other):
    """Whether two objects with parameters have the same class and the same parameters."""
    return type(one) is type(other) and _same(one, other)


def _same(one, other):
    """Whether two values of parameters are the same, be they of Python or of NumPy.

    Streams ask at each call. Plain values are therefore compared as they are; only other values, such as
    arrays and functions, are hashed.
    """
    if one is other:
        return True
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    one, other = (v.tolist() if isinstance(v, _OF_NUMPY) else v for v in (one, other))
    if _is_number(one) and _is_number(other):
        return one == other
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    one, other = _by_name(one, other), _by_name(other, one)
    if type(one) is not type(other):
        return False
    if isinstance(one, _PLAIN):
        return one == other
    if isinstance(one, BaseEstimator):
        pairs = ((getattr(one, n), getattr(other, n)) for n in _parameter_names(type(one)))
        # defaults are mostly one object
        return all(mine is its or _same(mine, its) for mine, its in pairs)
    return _identity(one) == _identity(other)


def _is_number(value):
    """Whether a value is a number; whole ones may be of either type."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _by_name(value, other):
    """An observation model in place of its name, if the ``other`` value is one itself."""
    if isinstance(value, str) and isinstance(other, ObservationModel) and value in OBSERVATIONS:
        return OBSERVATIONS[value]()
    return value


@cache
def _parameter_names(kind):
    """Names of the parameters of a class of estimators."""
    return tuple(kind._get_param_names())


def _identity(value):
    """A hash of a value that is no estimator, or its text where it cannot be hashed."""
    try:
        return joblib.hash(clone(value, safe=False))
    except (AttributeError, PicklingError):  # a function without a name, to choose columns
        return repr(value)
