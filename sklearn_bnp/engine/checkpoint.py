"""A fit between two of its laps, as a value from which it can go on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .learner import Learner


@dataclass(frozen=True, eq=False)
class FitState:
    """Everything that the rest of a fit depends on, beside the data and the parameters.

    Attributes
    ----------
    at_start, now : RandomState
        The generator of the fit, as it was at the beginning and as it is.
    n_done : int
        Initialisations whose laps are done. If it is all of them and there is a learner, this is the best
        one, which has met the others.
    learner : LearnerState or None
        The initialisation under way; None if none is, because the next has not begun.
    n_before : int
        Laps that this learner had made before the call of `fit`.
    keeps_order : bool
        Whether its components keep the order in which the user gave them.
    left : Paused or None
        Where its laps of stochastic steps ended, if they did and another call of `fit` may go on from there.
    best : LearnerState or None
        The best of the initialisations that are done.
    paused : Paused or None
        Where the best one ended, if another call of `fit` may go on from there.
    finished : bool
        Whether all of them are done: ``best`` is the result.
    found : tuple of pairs of float and StatBag
        Objective and components of the initialisations that are done, if the best one is to meet the others.
    """

    at_start: Any
    now: Any
    n_done: int = 0
    learner: Any = None
    n_before: int = 0
    keeps_order: bool = False
    left: Paused | None = None
    best: Any = None
    paused: Any = None
    finished: bool = False
    found: tuple = ()


class Paused(NamedTuple):
    """Where a fit ended, so that another call of `fit` can go on as if it had not.

    Attributes
    ----------
    fingerprint : str
        Hash of the data and of the parameters on which laps depend.
    learner : LearnerState
        At the end of the last lap, with everything that was planned for the next.
    keeps_order : bool
        Whether its components keep the order in which the user gave them.
    """

    fingerprint: str
    learner: Any
    keeps_order: bool


def at_hand(state):
    """A `LearnerState` between laps with all that has stayed beside chunks, so that a file can hold it."""
    extra = state.totals.extra
    if not state.model.leaves_behind or extra.at_hand() is extra:
        return state
    memo = state.memo.mapped(lambda bag: bag._replace(extra=bag.extra.at_hand()))
    return replace(state, memo=memo, totals=state.totals._replace(extra=extra.at_hand()))


def as_value(learner):
    """The `LearnerState` of a learner, as a value that stays as it is when the learner goes on."""
    return Learner(learner.state, learner.settings).state
