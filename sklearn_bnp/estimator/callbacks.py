"""Callbacks of fits: scikit-learn's experimental protocol, or the same for releases without it.

Design note
-----------
(a) scikit-learn 1.9 has callbacks: ``set_callbacks``, and hooks that are called at the beginning and end of
    each *task* of a fit. It may change them without notice. All of its names that we use are in this module.
(b) For older releases, `OwnSupport` has the methods that our fits and our callbacks use, with the same names.
(c) The tasks of our fits: the fit; its initialisations if there are several; and laps, or epochs.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from sklearn.base import _clone_parametrized

from .saved_state import CALLBACKS

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before scikit-learn 1.9
    CallbackSupportMixin = None

# Attributes that scikit-learn sets for the time of a fit. It needs them at the end of a call that fails, too.
OF_A_CALL = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
_HOOKS = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")


class FitCall(NamedTuple):
    """The arguments of a call of `fit`, which callbacks may want.

    Attributes
    ----------
    X, y : object
        As the user gave them.
    metadata : dict
        Further arguments by name.
    """

    X: object
    y: object = None
    metadata: dict = {}

    def for_hooks(self, estimator):
        """Arguments of hooks by name; of the metadata, those that the method ``score`` takes; no weights.

        scikit-learn's monitors hand all of them to each scorer, and functions of users take no weights.
        """
        known = set(inspect.signature(estimator.score).parameters) - {"sample_weight"}
        metadata = {
            name: value
            for name, value in self.metadata.items()
            if value is not None and name in known
        }
        return {"X": self.X, "y": self.y, "metadata": metadata or None}


class OwnSupport:
    """Mixin that gives estimators callbacks under releases of scikit-learn that have none."""

    def set_callbacks(self, *callbacks):
        """Set the callbacks of the estimator.

        Parameters
        ----------
        *callbacks : callback
            Objects with the methods of scikit-learn's callbacks, such as `Checkpoint`. None of them: the
            estimator has no callbacks any more.

        Returns
        -------
        self : estimator
            The estimator.
        """
        for callback in callbacks:
            if isinstance(callback, type) or not all(hasattr(callback, name) for name in _HOOKS):
                raise TypeError(
                    f"callback={callback!r} must be an object with the methods {', '.join(_HOOKS)}."
                )
        if callbacks:
            setattr(self, CALLBACKS, list(callbacks))
        else:
            vars(self).pop(CALLBACKS, None)
        return self

    def __sklearn_clone__(self):
        """A clone with the same callbacks, as in scikit-learn 1.9."""
        clone = _clone_parametrized(self)
        return clone.set_callbacks(*getattr(self, CALLBACKS, ()))

    def _init_callback_context(self, task_name="fit", max_subtasks=0):
        """The task of the whole fit; callbacks are set up."""
        task = OwnTask(getattr(self, CALLBACKS, ()), task_name, max_subtasks)
        for callback in task.callbacks:
            task.set_up.append(callback)
            callback.setup(estimator=self, context=task)
        return task


class OwnTask:
    """A task of a fit, with the attributes and methods of scikit-learn's `CallbackContext` that matter here.

    Attributes
    ----------
    task_name : str
    task_id : int
        Number of the task among those of its parent.
    max_subtasks : int or None
        Most tasks that it may have; None if that is not known.
    parent : OwnTask or None
    """

    def __init__(self, callbacks, task_name, max_subtasks, parent=None, task_id=0):
        self.callbacks, self.task_name, self.max_subtasks = list(callbacks), task_name, max_subtasks
        self.parent, self.task_id = parent, task_id
        self.set_up, self._n_tasks = [], 0

    def subcontext(self, task_name="", max_subtasks=0):
        """The next task of this task."""
        self._n_tasks += 1
        return OwnTask(self.callbacks, task_name, max_subtasks, self, self._n_tasks - 1)

    def call_on_fit_task_begin(self, **arguments):
        """Call this hook of all callbacks."""
        self._call("on_fit_task_begin", **arguments)
        return self

    def call_on_fit_task_end(self, **arguments):
        """Call this hook of all callbacks; whether one of them wants to stop."""
        return self._call("on_fit_task_end", **arguments)

    def _call(self, hook, *, estimator, reconstruction_attributes=None, **arguments):
        stop, fitted = False, None
        for callback in self.callbacks:
            method = getattr(callback, hook)
            wanted = inspect.signature(method).parameters
            given = {name: value for name, value in arguments.items() if name in wanted}
            if "fitted_estimator" in wanted and reconstruction_attributes is not None:
                if fitted is None:
                    fitted = estimator.__copy__()
                    vars(fitted).update(reconstruction_attributes())
                given["fitted_estimator"] = fitted
            stop |= bool(method(estimator, self, **given))
        return stop

    def close(self, estimator):
        """Tear down the callbacks that were set up."""
        for callback in self.set_up:
            callback.teardown(estimator=estimator, context=self)


_Support: Any = OwnSupport if CallbackSupportMixin is None else CallbackSupportMixin


class CallbackSupport(_Support):
    """Mixin of the estimators with callbacks; copies that are made during a fit have no part in it."""

    def __copy__(self):
        copy = super().__copy__()
        for name in OF_A_CALL:
            vars(copy).pop(name, None)
        return copy


class FitTask:
    """The task of a whole fit, as a context manager. Its tasks are begun and ended one after the other.

    Parameters
    ----------
    estimator : estimator
    call : FitCall
    max_subtasks : int or None
        Most tasks of it, if that is known.
    """

    def __init__(self, estimator, call, max_subtasks):
        self._estimator, self._call = estimator, call
        self._levels, self._max_subtasks = [], max_subtasks

    @property
    def callbacks(self):
        """The callbacks of the estimator, a list."""
        return list(getattr(self._estimator, CALLBACKS, ()))

    def __enter__(self):
        root = self._estimator._init_callback_context(max_subtasks=self._max_subtasks)
        self._levels = [root]
        self._hooked(root.call_on_fit_task_begin)
        return self

    def __exit__(self, kind, *exc_info):
        root = self._levels[0]
        if kind is None:
            self._hooked(root.call_on_fit_task_end)
        if isinstance(root, OwnTask):  # scikit-learn does so itself
            root.close(self._estimator)

    def begin(self, name, max_subtasks=0):
        """Begin a task of the task under way."""
        if self.callbacks:
            task = self._levels[-1].subcontext(task_name=name, max_subtasks=max_subtasks)
            self._levels.append(task)
            self._hooked(task.call_on_fit_task_begin)

    def end(self, attributes=None):
        """End the task under way; whether a callback wants to stop the tasks beside it.

        ``attributes()`` are those of an estimator as if the fit had stopped here.
        """
        if not self.callbacks:
            return False
        return bool(self._hooked(self._levels.pop().call_on_fit_task_end, attributes))

    def _hooked(self, hook, attributes=None):
        if not self.callbacks:
            return False
        return hook(
            estimator=self._estimator, reconstruction_attributes=attributes,
            **self._call.for_hooks(self._estimator),
        )  # fmt: skip
