"""Saving and loading of estimators: the state that is pickled, and the checks when it is loaded.

Design note
-----------
(a) `__getstate__` returns a `Graph` of the attributes, the number of the format, the version and a
    checksum. Pickle, joblib and skops all use it; `copy` does not, since a copy needs no checks. `save`
    writes the same state as an `Archive`, in which classes are names; see ``safe_graph.py``.
(b) `__setstate__` checks the format, then the checksum; then it makes the objects, and checks that they fit
    together (`estimator.soundness`). A state that was damaged before it was saved has a good checksum, and
    kernels trust what they are given.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from .._version import __version__
from ..engine.forgetting import names_of_batches
from ..inputs.missing_parameters import set_missing_parameters
from ..inputs.types import Path
from .archive import Archive, read_archive, write_archive
from .object_graph import Graph, graph_of, value_of
from .publishing import FittedAttributes, complete, forget_lost, keep_width
from .safe_graph import KnownNames, UnknownName, check_graph, name_of, names_of, others_of

# Changes with the classes and attributes that a saved state is made of.
FORMAT = 4
_REMEDY = "Fit the estimator anew"
# Attribute of scikit-learn with the callbacks of an estimator. They belong to a run, and not to a model.
CALLBACKS = "_skl_callbacks"


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


def _raise_of_frames(estimator, error):
    """Raise because of the ``error`` if a parameter is a frame or a series, which files cannot hold."""
    for name, value in estimator.get_params().items():
        if hasattr(value, "to_numpy"):
            raise ValueError(
                f"{name} is a {type(value).__name__}, which a file of text and arrays cannot hold. Set "
                f"{name}=np.asarray({name}) before fit, or save the estimator by joblib or pickle."
            ) from error


def _raise_of_batches(estimator, error):
    """Raise because of the ``error`` if files cannot hold the name of a batch."""
    learner = vars(estimator).get("_learner_")
    for name in names_of_batches(learner.memo) if learner is not None else ():
        try:
            names_of(graph_of(name).others, type(estimator).__name__)
        except ValueError:
            raise ValueError(
                f"batch_id={name!r} is a {type(name).__name__}, which a file of text and arrays cannot hold. "
                "Save the estimator by joblib or pickle; in another stream, give a str, as by str(batch_id), "
                "a number, a datetime in UTC or a tuple of them."
            ) from error


class SavedState(FittedAttributes):
    """Mixin of the estimators for saving, loading and copying."""

    def save(self, path: Path) -> None:
        """Save the estimator, fitted or not, to a file that `load` reads.

        The file holds text and arrays only, so nothing in it can be executed; see :doc:`/persistence`. A file
        of the same name is replaced in one step, once the new one is complete. Callbacks are not saved.

        Parameters
        ----------
        path : str or path-like
            Name of the file.

        Raises
        ------
        ValueError
            If the estimator holds objects that are not made of attributes, such as open files. Save it by
            ``joblib`` or ``pickle`` then.
        """
        try:
            archive = _archive_of(self)
        except ValueError as error:
            _raise_of_frames(self, error)
            _raise_of_batches(self, error)
            raise
        write_archive(path, archive)

    def __getstate__(self):
        complete(self, labels=True)
        return _state(self, self._saved_attributes())

    def __setstate__(self, state):
        name = type(self).__name__
        _check_format(name, state)
        before = vars(self).copy()
        try:
            vars(self).update(_attributes(self, state))
            set_missing_parameters(self)
            self._bring_up_to_date()
            if "_published" in vars(self):  # it was fitted
                forget_lost(self)
                self._check_state()
                keep_width(self)
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

    def _bring_up_to_date(self):
        """Give attributes that an earlier version has saved the names and forms that they have now."""

    def _check_state(self):
        """Raise unless the attributes that `fit` has set fit together."""


def load(path: Path, *, trusted: Iterable[Any] = ()) -> Any:
    """Load an estimator from a file that its method ``save`` wrote.

    The estimator is the same to the last bit: it predicts the same, and continues in the same way. The file
    is not trusted: nothing in it is executed, no module is imported because of it, and everything is checked
    before the first number is computed; see :doc:`/persistence`.

    Parameters
    ----------
    path : str or path-like
        Name of the file.
    trusted : iterable of type and function, default=()
        Classes and functions of your own that the estimator uses: a likelihood, a prior, a proposal, a
        class derived from an estimator, or a function given as ``init_params``. Only those that the file
        names are used.

    Returns
    -------
    estimator : estimator
        The estimator, of the class that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged or was written by a version with another format, if its parts do not fit
        each other, or if it names classes or functions that are neither of sklearn_bnp nor ``trusted``.

    Warns
    -----
    InconsistentVersionWarning
        If the file was written by another version of sklearn_bnp.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import sklearn_bnp
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> model = sklearn_bnp.DPMixtureVB(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.bnp")
    ...     model.save(path)
    ...     loaded = sklearn_bnp.load(path)
    >>> loaded.lower_bound_ == model.lower_bound_
    True
    """
    archive, known = read_archive(path), KnownNames(trusted)
    try:
        if "checkpoint" in archive.header:
            raise ValueError(
                "it is a checkpoint: fit goes on from it after set_callbacks(Checkpoint(folder))"
            )
        cls = _estimator_class(archive.header.get("estimator"), known)
        _check_format(cls.__name__, archive.header)
        state = _state_of(archive, cls, known)
    except Exception as error:
        raise ValueError(
            f"The file {os.fspath(path)!r} cannot be loaded: {error or type(error).__name__}."
        ) from error
    estimator = cls.__new__(cls)
    estimator.__setstate__(state)
    return estimator


def _archive_of(estimator):
    """`Archive` of an estimator."""
    cls = type(estimator)
    if cls.__getstate__ is not SavedState.__getstate__:
        raise ValueError(
            f"{cls.__name__} defines __getstate__, and may save what a file of text and arrays cannot hold. "
            "Save it by joblib or pickle, or override _saved_attributes in place of __getstate__."
        )
    complete(estimator, labels=True)
    attributes = {k: v for k, v in estimator._saved_attributes().items() if k != CALLBACKS}
    state = _state(estimator, attributes)
    archive = Archive(
        {
            **{name: state[name] for name in ("format", "version", "checksum")},
            "estimator": name_of(cls),
            "others": names_of(state["others"], cls.__name__),
        },
        state["text"],
        state["arrays"],
    )
    try:
        _state_of(archive, cls, KnownNames(KnownNames().missing([cls, *state["others"]])))
    except ValueError as error:
        raise ValueError(
            f"This {cls.__name__} cannot be saved to a file of text and arrays: {error}. Save it by joblib "
            "or pickle."
        ) from error
    return archive


def _state_of(archive, cls, known):
    """The state of an estimator of this class, as `__setstate__` takes it, once it is found to be safe."""
    header = archive.header
    graph = Graph(archive.text, archive.arrays, others_of(header["others"], known))
    check_graph(graph, cls, known)
    return {
        **{name: header[name] for name in ("format", "version", "checksum")}, **graph._asdict()
    }  # fmt: skip


def _estimator_class(name, known):
    """The class of estimators of this name: one of ours, or a trusted one."""
    package, found = __name__.split(".")[0], list(SavedState.__subclasses__())
    for cls in found:
        found.extend(sub for sub in cls.__subclasses__() if sub not in found)
    ours = {name_of(c): c for c in found if c.__module__.split(".")[0] == package}
    cls = ours.get(name) or known.find(str(name))
    if cls is None:
        raise UnknownName([name])
    if not (isinstance(cls, type) and issubclass(cls, SavedState)):
        raise ValueError(f"it does not hold an estimator, but {name!r:.80}")
    return cls


def _state(estimator, attributes):
    """The state of an estimator with these attributes by name."""
    graph, version = graph_of(attributes, estimator), __version__
    return {
        "format": FORMAT, "version": version, "checksum": _checksum(estimator, version, graph),
        **graph._asdict(),
    }  # fmt: skip


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
    return graph.checksum(f"{type(estimator).__name__} {version}")


def _attributes(estimator, state):
    """Attributes by name of a saved state, once its checksum is verified."""
    graph = Graph(*(state[name] for name in Graph._fields))
    if _checksum(estimator, state["version"], graph) != state["checksum"]:
        raise ValueError("its content does not match its checksum")
    if not all(_is_plain(array.dtype) for array in graph.arrays):
        raise ValueError("an array's type of numbers is not as NumPy makes it")
    return value_of(graph, estimator)


def _is_plain(dtype):
    """Whether a type has no flags of another one. Pickles have them, and NumPy believes what it reads."""
    return dtype.kind == "V" or dtype.flags == np.dtype(dtype.str).flags
