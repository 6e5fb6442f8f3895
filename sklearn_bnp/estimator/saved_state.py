"""Saving and loading of estimators: the state that is pickled, and the checks when it is loaded.

Design note
-----------
(a) `__getstate__` gives a `Graph` of the attributes, with the format's number, the version and a checksum.
    All of pickle, joblib and skops go through it; `copy` does not, for copies are not checked.
(b) Coming back, the format comes first, then the checksum, then the objects, then what must hold among
    them whatever they are: a state that was damaged before it was saved has a good checksum. Kernels
    trust what they are given.
"""

from __future__ import annotations

import warnings
from copy import deepcopy

from sklearn.exceptions import InconsistentVersionWarning

from .._version import __version__
from .object_graph import Graph, graph_of, value_of

# Changes with the classes and attributes that a saved state is made of.
FORMAT = 2
_REMEDY = "Fit the estimator anew"


class OtherVersionWarning(InconsistentVersionWarning):
    """A model was saved by another version of sklearn_bnp, with a format that is still the same."""

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
    """Mixin of the estimators: saving, loading and copying."""

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
        """Attributes by name that are saved: all, unless a class of a user's own leaves some out."""
        return vars(self)

    def _check_state(self):
        """Raise unless the attributes that `fit` has set fit each other."""


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
    """The attributes of a state whose content is as it was saved."""
    graph = Graph(*(state[name] for name in Graph._fields))
    if _checksum(estimator, state["version"], graph) != state["checksum"]:
        raise ValueError("its content is not what its checksum was made of")
    return value_of(graph, estimator)
