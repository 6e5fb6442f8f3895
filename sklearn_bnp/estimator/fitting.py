"""The laps of a call of `fit`: from several initialisations, with callbacks, and from where a fit was left.

Design note
-----------
(a) A fit may be left in two ways: it was killed, and there is a checkpoint (`FitState`); or it came to its
    ``max_iter``, and the estimator has ``warm_start`` (`Paused`). Either way the learner goes on from the
    state at the end of a lap, which is a value, and makes the laps that it would have made.
(b) The files of checkpoints are written here, before callbacks have their turn at the end of a lap: whatever
    these do, the lap is not lost, and the estimator that they see holds nothing of the fit under way.
(c) What a fit draws before its first lap is drawn again when it is resumed, from the generator as it was at
    the beginning. The generator then takes the state that it had.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from .._version import __version__
from ..engine.checkpoint import FitState, Paused, as_value, at_hand
from ..engine.learner import Learner
from ..engine.progress import Progress
from ..engine.state import LearnerSettings
from ..engine.stochastic import fit_stochastic
from .checkpoints import Checkpoint, FitFile
from .fingerprints import fingerprint
from .threads import threads

# Parameters that may change between two calls of a fit that goes on: where it ends, and how it began.
_MAY_CHANGE = ("max_iter", "tol", "n_init", "random_state", "warm_start")


class Fitting:
    """A call of `fit`, after the data are checked.

    Parameters
    ----------
    estimator : LearnerEstimator
    data : object
        Checked data.
    settings : FitSettings
    rng : RandomState
    task : FitTask
    """

    def __init__(self, estimator, data, settings, rng, task):
        self._estimator, self._data, self._settings = estimator, data, settings
        self._rng, self._task = rng, task
        self._at_start = _copy(rng)
        self._files, self._state, self.paused = [], None, None
        self._is_left = False
        self._name = self._resumed = None
        if settings.warm_start:
            # of a fit that cannot be recognised, only components are known
            with suppress(ValueError):
                self._name = fingerprint(estimator, data, but=_MAY_CHANGE)
            before = getattr(estimator, "_paused", None)
            known = before is not None and before.fingerprint == self._name
            self._resumed = before if known else None

    @property
    def goes_on(self):
        """Whether this fit goes on with that of the call before."""
        return self._resumed is not None

    def open_files(self, start_of):
        """The `Start` of the fit, as ``start_of(rng)`` makes it, after a look for checkpoints."""
        checkpoints = [each for each in self._task.callbacks if isinstance(each, Checkpoint)]
        if not checkpoints:
            return start_of(self._rng)
        before = None
        if self._settings.warm_start and self._estimator._is_begun:
            before = self._estimator._statistics, self._estimator.n_iter_
        # before the start, which calls a function of the user that may change what it uses
        name = fingerprint(self._estimator, self._data, before, __version__)
        start = start_of(self._rng)
        self._files = [FitFile(each, self._estimator, name, start.model) for each in checkpoints]
        found = (file.read() for file in self._files)
        self._state = next((state for state in found if state is not None), None)
        if self._state is not None:
            if self._settings.random_state is None:  # another state than that of the first call
                start = start_of(_copy(self._state.at_start))
                self._rng = _copy(self._state.now)
                self._at_start = self._state.at_start
            else:
                self._rng.set_state(self._state.now.get_state())
        return start

    def best(self, start):
        """The `Learner` of the best initialisation, and whether its components keep their order."""
        if self._state is None:
            self._state = FitState(self._at_start, self._rng)
        state = self._state
        best = None if state.best is None else self._learner(state.best)
        self.paused, keeps_order = state.paused, state.keeps_order
        if state.finished:
            return best, keeps_order
        n_init = 1 if self.goes_on else self._settings.n_init
        found = list(state.found)
        for i in range(state.n_done, n_init):
            self._begin_task(n_init)
            if self._state.learner is not None:
                now, learner = start, self._under_way()
            else:
                now = start if i == 0 or start.again is None else start.again(self._rng)
                learner, n_before, keeps_order = self._begun(now)
                self._state = self._as_laps_begin(i, n_before, keeps_order, best, found)
            left = self._run(learner, now.source)
            if n_init > 1 and learner.scheduler.meets:
                found.append((learner.lower_bound, learner.totals))
            else:
                _forget(learner, now.source)
            if best is None or learner.lower_bound > best.lower_bound:
                best, self.paused = learner, left
            if self._end_task(n_init):
                if i + 1 < n_init or self._meet(found):
                    self._state = self._as_laps_begin(i + 1, 0, keeps_order, best, found)
                    self._leave(None)
                break
        else:
            if self._meet(found):
                best = self._after_meeting(best, found, start.source, keeps_order)
        _forget(best, start.source)
        self._finish(best)
        return best, keeps_order

    def _meet(self, found):
        """Whether the best learner goes on from what the other initialisations have ``found``."""
        # one lap samples rows, and the next one tries what they show
        return bool(found) and self._settings.max_iter > 1

    def _after_meeting(self, best, found, source, keeps_order):
        """The best learner, after it went on from what the other initialisations have ``found``."""
        n_init = self._settings.n_init
        self._begin_task(n_init)
        if self._state.learner is not None:
            best = self._under_way()
        else:
            n_before, others = best.n_laps, sorted(found, key=lambda pair: -pair[0])[1:]
            best.scheduler.meet([totals for _, totals in others])
            best.converged, best.finishing = False, False
            best.retried = n_before  # laps without a gain count from here
            self._state = self._as_laps_begin(n_init, n_before, keeps_order, None, found)
        self.paused = self._run(best, source)
        best.scheduler.meet([])
        self._end_task(n_init)
        return best

    def _as_laps_begin(self, n_done, n_before, keeps_order, best, found):
        """The `FitState` as an initialisation begins its laps, or the best one goes on after all others."""
        best = None if best is None else as_value(best)
        return FitState(
            self._at_start, self._rng, n_done, n_before=n_before, keeps_order=keeps_order, best=best,
            paused=self.paused, found=tuple(found),
        )  # fmt: skip

    def _begin_task(self, n_init):
        if n_init > 1:
            self._task.begin("initialisation", self._most_laps)

    def _end_task(self, n_init):
        return n_init > 1 and self._task.end()

    def _under_way(self):
        """The `Learner` of the initialisation that a checkpoint has found under way, which is so no more."""
        learner = self._learner(self._state.learner)
        self._state = replace(self._state, learner=None)
        return learner

    def _begun(self, start):
        """A `Learner` at its first lap, or where the call before left it, its laps so far, and its order."""
        if self.goes_on:
            learner = self._learner(self._resumed.learner)
            learner.converged = False  # at least one lap is made
            return learner, learner.n_laps, self._resumed.keeps_order
        learner = self._estimator._begun_learner(start, self._rng, self._settings)
        return learner, 0, self._estimator._keeps_order

    def _learner(self, state):
        return Learner(state, learner_settings(self._settings))

    @property
    def _most_laps(self):
        return max(1, self._settings.max_iter) + int(self._is_stochastic)

    @property
    def _is_stochastic(self):
        return self._settings.stochastic and self._settings.max_iter > 0

    def _run(self, learner, source):
        """The laps of one initialisation; where they end, if another call may go on from there."""
        state, settings, open_laps = self._state, self._settings, []
        done, last = learner.n_laps, state.n_before + self._most_laps
        if learner.converged or done >= last:  # killed before there was a result
            return self._paused_at(learner) if state.left is None else state.left
        self._estimator._keeps_order = state.keeps_order

        def begin():
            self._task.begin("lap")
            open_laps.append(None)

        def on_lap(lap):
            progress.show(lap)
            if not open_laps:  # the exact lap after stochastic ones that were stopped
                begin()
            open_laps.pop()
            self._write(learner)
            stop = self._task.end(lambda: self._estimator._as_if_ended(learner))
            if not (learner.converged or learner.n_laps >= last):
                if stop:
                    self._leave(learner)
                else:
                    begin()
            return stop

        def keep(learner):
            self._state = replace(self._state, left=self._paused_at(learner))

        with Progress(settings.verbose, type(self._estimator).__name__) as progress:
            begin()
            fit_learner(learner, source, settings, on_lap, done, state.n_before, keep)
        return self._state.left

    def _paused_at(self, learner):
        """`Paused` with the learner as it stands, or None if another call would not know this fit again."""
        if self._name is None:
            return None
        return Paused(self._name, as_value(learner), self._state.keeps_order)

    def _write(self, learner):
        """Write the files whose time has come, with a learner at the end of a lap."""
        self._write_to([file for file in self._files if file.is_due], learner)

    def _leave(self, learner):
        """Write all files, from which another call goes on, if a callback stops the fit before its end.

        What is still made in this call, so that there is a result, is not for them.
        """
        self._write_to(self._files, learner)
        self._is_left = True

    def _write_to(self, files, learner):
        """Write files, unless the fit was left before; ``learner`` is that under way, or None."""
        if files and not self._is_left:
            state = self._with(learner=None if learner is None else at_hand(as_value(learner)))
            for file in files:
                file.write(state)

    def _with(self, **changes):
        """The `FitState` as it stands."""
        fields = {**vars(self._state), "now": _copy(self._rng), **changes}
        return FitState(**fields)

    def _finish(self, best):
        """Write the result, or delete the file if another call is to make another fit."""
        for file in () if self._is_left else self._files:
            if self._settings.random_state is None:
                file.remove()
            else:
                result = self._with(
                    learner=None, best=as_value(best), paused=self.paused, finished=True
                )
                file.write(result)


def fit_learner(learner, source, settings, on_lap, done=0, n_before=0, keep=lambda learner: None):
    """Laps through the data, of which ``done`` were made before; ``n_before`` of them in calls before.

    ``keep(learner)`` is called where another call may go on.
    """
    if settings.stochastic and settings.max_iter > 0:
        fit_stochastic(
            learner, source, settings.max_iter + n_before, settings.learning_decay,
            settings.learning_offset, on_lap, done=done, keep=keep,
        )  # fmt: skip
    else:
        most = max(1, settings.max_iter) + n_before
        learner.fit(source, most, settings.tol, on_lap, done=done, goes_on=settings.warm_start)
        keep(learner)


def _forget(learner, source):
    """Let a learner forget the batches of a source that it will not visit again."""
    learner.forget_batches()
    if getattr(source, "leaves_behind", False):
        learner.let_go()


def learner_settings(settings):
    """`LearnerSettings`: those that may change between calls of `partial_fit`."""
    most = np.inf if settings.max_components is None else settings.max_components
    return LearnerSettings(most, settings.n_nonzero_resp, threads(settings.n_jobs))


def _copy(rng):
    """A generator in the same state."""
    out = np.random.RandomState()
    out.set_state(rng.get_state())
    return out
