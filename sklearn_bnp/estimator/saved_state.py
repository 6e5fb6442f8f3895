"""Saving and loading of estimators: the state that is pickled, and the checks when it is loaded.

Design note
-----------
(a) `__getstate__` returns a `Graph` of the attributes, the number of the format, the version and a
    checksum. Pickle, joblib and skops all use it; `copy` does not, since a copy needs no checks.
(b) `__setstate__` checks the format, then the checksum; then it makes the objects, and checks that they fit
    together (`estimator.soundness`). A state that was damaged before it was saved has a good checksum, and
    kernels trust what they are given.
"""

from __future__ import annotations

import warnings
from copy import deepcopy

from sklearn.exceptions import InconsistentVersionWarning

from .._version import __version__
from .object_graph import Graph, graph_of, value_of

# Changes with the classes and attributes that a saved state is made of.
FORMAT = 3
_REMEDY = "Fit the estimator anew"


class OtherVersionWarning(InconsistentVersionWarning):
    """A model was saved by another version of sklearn_bnp, in the present format."""

    def __init__(self, *, estimator_name, current_version, original_version):
        super().__init__(
            estimator_name=estimator_name,
            current_sklearn_version=current_version,
            original_sklearn_version=original_version,
        )

    def __str__(self):
        return (
            f"{self.estimator_name} was saved by sklearn_bnp {self.original_sklearn_version} and is loaded "
            f"by version {self.current_sklearn_version}, which may go on in another way. "
            f"{_REMEDY}, or load it with the version that saved it."
        )


class SavedState:
    """Mixin of the estimators for saving, loading and copying."""

    def __getstate__(self):
        graph, version = graph_of(self._saved_attributes(), self), __version__
        return {
            "format": FORMAT, "version": version, "checksum": _checksum(self, version, graph),
            **graph._asdict(),
        }  # fmt: skip

    def __setstate__(self, state):
        name = type(self).__name__
        _check_format(name, state)
        before = vars(self).copy()
        try:
            vars(self).update(_attributes(self, state))
            if "_published" in vars(self):  # it was fitted
                self._check_state()
        except Exception as error:
            vars(self).clear()
            vars(self).update(before)
            raise ValueError(
                f"This saved state of {name} is damaged: {error or type(error).__name__}. "
                f"{_REMEDY}, or copy the file again from where it was saved."
            ) from error
        if state["version"] != __version__:
            warnings.warn(
                OtherVersionWarning(
                    estimator_name=name,
                    current_version=__version__,
                    original_version=state["version"],
                ),
                stacklevel=2,
            )

    def __copy__(self):
        copy = type(self).__new__(type(self))
        vars(copy).update(vars(self))
        return copy

    def __deepcopy__(self, memo):
        copy = memo[id(self)] = type(self).__new__(type(self))
        vars(copy).update(deepcopy(vars(self), memo))
        return copy

    def _saved_attributes(self):
        """Attributes by name that are saved. It is all of them, but a user's own class may leave some out."""
        return vars(self)

    def _check_state(self):
        """Raise unless the attributes that `fit` has set fit together."""


def _check_format(name, state):
    found = state.get("format") if isinstance(state, dict) else None
    if isinstance(state, dict) and "format" not in state:
        raise ValueError(
            f"This {name} was saved without a format, by an unknown version or by a class of your own whose "
            "__getstate__ does not build on super().__getstate__(). Fit the estimator anew; such a class "
            "adds to what super().__getstate__() returns, or overrides _saved_attributes()."
        )
    if found != FORMAT:
        by = (
            state.get("version", "an unknown version")
            if isinstance(state, dict)
            else "another class"
        )
        raise ValueError(
            f"This {name} was saved by sklearn_bnp {by} in format {found}; version {__version__} reads "
            f"format {FORMAT} alone. {_REMEDY}, or load it with the version that saved it."
        )


def _checksum(estimator, version, graph):
    return graph.checksum(f"{type(estimator).__qualname__} {version}")


def _attributes(estimator, state):
    """Attributes by name of a saved state, once its checksum is verified."""
    graph = Graph(*(state[name] for name in Graph._fields))
    if _checksum(estimator, state["version"], graph) != state["checksum"]:
        raise ValueError("its content is not what its checksum was made of")
    return value_of(graph, estimator)
