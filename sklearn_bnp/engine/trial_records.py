"""Records of trials, for the entries of ``history_``.

Design note
-----------
(a) A lap keeps a record of each trial that counts as tried: ``tried`` and ``accepted`` are its counts. The
    trials of which nothing was left to judge have none, and neither have `UndoTrial` objects, whose verdict
    is that on the birth.
(b) Records are of the last laps only, up to a number of trials. A stream without end keeps no more than that.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

# Trials of which a history keeps records, at the most.
_MOST_TRIALS = 2000


class Reason:
    """The words of `TrialRecord.verdict`: made, or the reason why not."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  # the objective would not rise, or by too little for a trial of everything
    SUPERSEDED = "superseded"  # a better one changed its components, or allows no other beside it
    NO_ROOM = "no room"  # there would be more than ``max_components``
    UNKNOWN = "unknown"  # batches that it did not observe may hold what it would change
    GIVEN_UP = "given up"  # in the first batches it lost too much for the others to make up
    UNDONE = "undone"  # of the births of a lap, this one did not pay
    TAKEN_BACK = "taken back"  # the whole lap was, and this change with it


class TrialRecord(NamedTuple):
    """Record of a trial: an entry of ``history_[i].trials``.

    Attributes
    ----------
    kind : str
        Kind of the proposal that has planned it.
    components : tuple of int
        Its targets, by their lasting names: those that would be split or deleted, or all that would be
        joined.
    verdict : str
        "accepted", or why it was not made: "refused" (the objective would not rise, or by too little
        for a trial of everything), "superseded" (a better trial of the same lap changed its components, or
        allowed no other), "no room" (there would be more than ``max_components``), "unknown" (batches that
        were not visited may hold its components), "given up" (early, since it lost too much in the first
        batches), "undone" (other births of the same lap paid, but not this one) or "taken back" (with the
        whole lap).
    gain : float or None
        Exact change of the objective in nats. Of an accepted trial it is what it changed when it was made;
        of another one, what it would have changed before any was made. (For topics and states that lose
        clearly, global weights are guessed, and it may be some nats too low.) Of trials that are judged with
        their lap it is the change over the lap, of all of them together. None if it was not found.
    estimate : float or None
        The gain that the proposal expected, from its samples; None if it did not say.
    created : tuple of int
        Names of the components that came, if it was accepted.
    """

    kind: str
    components: tuple
    verdict: str
    gain: float | None = None
    estimate: float | None = None
    created: tuple = ()

    @classmethod
    def of(cls, trial, verdict, gain=None, created=()):
        """The record of a `Trial`; its gain is left out if it is not finite."""
        return cls(
            trial.kind, _names(trial.targets), verdict, _finite(gain), _finite(trial.estimate),
            _names(created) if verdict == Reason.ACCEPTED else (),
        )  # fmt: skip

    @property
    def accepted(self):
        """Whether the trial was made.

        Returns
        -------
        accepted : bool
            Whether the verdict is "accepted".
        """
        return self.verdict == Reason.ACCEPTED


def counted(records):
    """Number of trials by kind, a Counter."""
    return Counter(record.kind for record in records)


def counted_accepted(records):
    """Number of accepted trials by kind, a Counter."""
    return Counter(record.kind for record in records if record.accepted)


def taken_back(records):
    """Records of trials in a lap that was taken back."""
    return [
        record._replace(verdict=Reason.TAKEN_BACK, created=()) if record.accepted else record
        for record in records
    ]


def drop_old_trials(history):
    """Leave records of trials out of those laps of a history, a list, that came before the latest ones.

    To be called after each lap. A lap's records may still grow until the next one ends, so that there is
    nothing to do if the last two laps have none: a stream has a thousand laps, most of them without trials.
    """
    if not any(lap.trials for lap in history[-2:]):
        return
    room = _MOST_TRIALS
    for i in range(len(history) - 1, -1, -1):
        trials = history[i].trials
        if len(trials) > room:
            history[i] = history[i]._replace(trials=trials[:room])
        room = max(0, room - len(trials))


def _names(uids):
    return tuple(int(uid) for uid in uids)


def _finite(value):
    """A number as a float; None if there is none, or it is not finite."""
    return float(value) if value is not None and abs(value) < float("inf") else None
