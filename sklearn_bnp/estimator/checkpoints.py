"""`Checkpoint`: a callback that writes a fit to a file as it goes on, from which it can go on later."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from .._version import __version__
from ..engine.checkpoint import FitState, Paused
from ..engine.statistics import StatBag
from ..inputs.types import Path
from .archive import Archive, content_of, remove_leftovers, write_archive
from .object_graph import Graph, graph_of, value_of
from .safe_graph import KnownNames, check_graph, names_of, others_of
from .saved_state import FORMAT
from .soundness.expectations import expect, expect_count, expect_type


class Checkpoint:
    """Callback that writes the state of a fit to a file, from which a fit that was killed goes on.

    Set it by ``set_callbacks`` and call ``fit``. If the process dies, run the same program again. A fit of
    the same estimator with the same parameters and data goes on from the last checkpoint, and ends with the
    same result to the last bit. If that fit had ended, its result is read from the file. If another callback
    had stopped it, such as a limit of time, it goes on from there. Another version of the package
    begins a new fit, since it might go on in another way.

    Each fit has a file of its own in the folder, named by a hash of the class, the parameters and the data.
    Many fits, such as those of a grid search and in several processes, may therefore share one `Checkpoint`.
    Any change of the parameters, other than ``n_jobs`` and ``verbose``, or of the data begins a new fit and
    file. Functions of your own among the parameters count with their code and all that it uses. Delete the
    folder when the results are no longer needed.

    Parameters
    ----------
    path : str or path-like
        Folder of the files. It is made if it is not there. ``~`` stands for the home folder.
    every : float, default=10.0
        Least number of seconds between two writes of a fit's file. With 0, it is written after each lap. The
        end of a fit is always written.
    trusted : iterable of type and function, default=()
        Classes and functions of your own that the fit uses, as in `load`. Those that are parameters of the
        estimator need not be given.

    Notes
    -----
    It is for `DPMixtureVB`, `HDPTopicVB` and `HDPHMMVB`. A fit with ``random_state=None`` goes on, too, if it
    was killed. But its file is deleted when the fit ends, since the next call should draw other numbers.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_bnp import Checkpoint, DPMixtureVB
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = DPMixtureVB(random_state=0).set_callbacks(Checkpoint(folder, every=0))
    ...     bound = model.fit(X).lower_bound_
    ...     again = model.fit(X).lower_bound_  # from the file
    >>> bound == again
    True
    """

    def __init__(self, path: Path, every: float = 10.0, *, trusted: Iterable[Any] = ()) -> None:
        if not isinstance(every, Real) or not 0 <= every < np.inf:
            raise ValueError(f"every={every!r} must be a number of seconds, 0 or more.")
        path = os.path.expanduser(path)
        if os.path.exists(path) and not os.path.isdir(path):
            raise NotADirectoryError(
                f"path={path!r} is a file: give the name of a folder, in which each fit has a "
                "file of its own."
            )
        self.path: str = path
        self.every, self.trusted = every, tuple(trusted)

    def __repr__(self):
        return f"Checkpoint({self.path!r}, every={self.every!r})"

    def setup(self, estimator: Any, context: Any) -> None:
        """Hook at the beginning of a call of `fit`.

        Parameters
        ----------
        estimator : estimator
            The estimator of the fit.
        context : object
            The task of the fit.
        """
        if not hasattr(estimator, "_learner_kind"):
            raise TypeError(
                "Checkpoint is for DPMixtureVB, HDPTopicVB and HDPHMMVB, not for "
                f"{type(estimator).__name__}: save such a model between two calls of partial_fit."
            )
        os.makedirs(self.path, exist_ok=True)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Hook after a call of `fit`.

        Parameters
        ----------
        estimator : estimator
            The estimator of the fit.
        context : object
            The task of the fit.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Hook at the beginning of each lap.

        Parameters
        ----------
        estimator : estimator
            The estimator of the fit.
        context : object
            The task of the lap.
        """

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Hook at the end of each lap, before which the fit has written the file if it was time.

        Parameters
        ----------
        estimator : estimator
            The estimator of the fit.
        context : object
            The task of the lap.
        """


class FitFile:
    """The file of one fit in the folder of a `Checkpoint`.

    Parameters
    ----------
    checkpoint : Checkpoint
    estimator : estimator
    name : str
        The fingerprint of the fit.
    model : Model
        With which the fit begins; its classes are known.
    """

    def __init__(self, checkpoint, estimator, name, model):
        self._checkpoint, self._estimator = checkpoint, estimator
        self._path = os.path.join(checkpoint.path, f"{name}.bnp")
        own = graph_of([model, estimator.get_params()]).others
        self._known = KnownNames([*checkpoint.trusted, *KnownNames().missing(own)])
        self._last = time.monotonic()

    @property
    def is_due(self):
        """Whether it is time for another file."""
        return time.monotonic() - self._last >= self._checkpoint.every

    def write(self, state):
        """Write a `FitState`."""
        graph = graph_of(state)
        missing = self._known.missing(graph.others)
        if missing:
            found = ", ".join(each.__qualname__ for each in missing)
            raise ValueError(
                f"The checkpoint of this fit would name classes and functions of your own: {found}. Hand "
                "them over, as Checkpoint(path, trusted=[...])."
            )
        check_graph(graph, None, self._known)
        name = type(self._estimator).__qualname__
        header = {
            "format": FORMAT, "version": __version__, "checkpoint": name,
            "checksum": graph.checksum(f"checkpoint of {name} {__version__}"),
            "others": names_of(graph.others, name),
        }  # fmt: skip
        write_archive(self._path, Archive(header, graph.text, graph.arrays))
        self._last = time.monotonic()

    def read(self):
        """The `FitState` in the file; None if there is no file."""
        remove_leftovers(self._path)
        if not os.path.exists(self._path):
            return None
        try:
            with open(self._path, "rb") as file:
                archive = content_of(file)
            return self._state(archive)
        except Exception as error:
            raise ValueError(
                f"The checkpoint {self._path!r} cannot be used: {error or type(error).__name__}. Delete it "
                "to begin this fit anew."
            ) from error

    def remove(self):
        """Delete the file, if there is one."""
        if os.path.exists(self._path):
            os.remove(self._path)

    def _state(self, archive):
        header, name = archive.header, type(self._estimator).__qualname__
        given = tuple(header.get(key) for key in ("format", "version", "checkpoint"))
        if given != (FORMAT, __version__, name):
            raise ValueError(
                f"it was written by version {header.get('version')} in format {header.get('format')} for "
                f"{header.get('checkpoint')}; this is version {__version__}, format {FORMAT}, and {name}"
            )
        graph = Graph(archive.text, archive.arrays, others_of(header["others"], self._known))
        check_graph(graph, None, self._known)
        if graph.checksum(f"checkpoint of {name} {header['version']}") != header["checksum"]:
            raise ValueError("its content does not match its checksum")
        state = value_of(graph)
        self._check(state)
        return state

    def _check(self, state):
        """Raise unless a `FitState` is sound."""
        expect_type("the state", state, FitState)
        for rng in (state.at_start, state.now):
            expect_type("the generator", rng, np.random.RandomState)
        for name in ("n_done", "n_before"):
            expect_count(name, getattr(state, name))
        for name in ("keeps_order", "finished"):
            expect_type(name, getattr(state, name), bool)
        expect(state.best is not None or not state.finished, "a fit that ended has no result")
        learners = [state.learner, state.best]
        for paused in (state.left, state.paused):
            if paused is not None:
                expect_type("where a fit ended", paused, Paused)
                learners.append(paused.learner)
        for learner in learners:
            if learner is not None:
                self._estimator._check_learner(learner)
        for pair in state.found:
            expect_type("what other fits found", pair, tuple)
            expect_type("an objective", pair[0], float)
            expect_type("components of other fits", pair[1], StatBag)
