"""Memories of failed attempts, for proposals."""

from __future__ import annotations

import numpy as np


class Failures:
    """Counts failed attempts, and forgets them once the mass of a component has changed.

    Keys are whatever names an attempt, such as the uid of a component or a tuple of uids.

    Parameters
    ----------
    change : float
        Relative change of mass beyond which failures are forgotten.
    patience : int, default=1
        Number of failures after which a key is blocked.
    """

    def __init__(self, change, patience=1):
        self.change, self.patience = change, patience
        self._memory = {}  # key -> number of failures, and the mass at the last one

    def __deepcopy__(self, memo):
        other = Failures(self.change, self.patience)
        other._memory = dict(self._memory)
        return other

    def count(self, key, mass):
        """Count the failures that are not forgotten.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        mass : float
            Present mass of its component.

        Returns
        -------
        n_failures : int
            0 if the mass has changed too much since the last failure.
        """
        n, then = self._memory.get(key, (0, mass))
        return n if abs(mass - then) <= self.change * then else 0

    def blocked(self, key, mass):
        """Whether an attempt has failed too often to be made again.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        mass : float
            Present mass of its component.

        Returns
        -------
        blocked : bool
            Whether there were ``patience`` failures that are not forgotten.
        """
        return self.count(key, mass) >= self.patience

    def n_left_alone(self, masses):
        """Count the attempts that are not made again, of those that name components by uid.

        Parameters
        ----------
        masses : dict
            Uid -> present mass of every component.

        Returns
        -------
        n_left_alone : int
            Number of attempts whose components are all there, and that are blocked.
        """
        named = ((key, key if isinstance(key, tuple) else (key,)) for key in self._memory)
        return sum(
            masses.keys() >= set(uids) and self.blocked(key, sum(masses[uid] for uid in uids))
            for key, uids in named
        )

    def note(self, key, mass, times=1):
        """Remember a failure.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        mass : float
            Present mass of its component.
        times : int, default=1
            The number of failures that it counts as.
        """
        self._memory[key] = (self.count(key, mass) + times, mass)

    def forgive(self, key):
        """Forget all failures of an attempt.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        """
        self._memory.pop(key, None)

    def judged(self, key, accepted, mass):
        """Remember a failure if an attempt was not accepted.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        accepted : bool
            The verdict.
        mass : float
            Present mass of its component.
        """
        if not accepted:
            self.note(key, mass)


class Attempts:
    """Remembers which components an attempt involved, until one of these has gone or changed.

    The same attempt may well succeed once the components that were to take its rows are others, or hold
    other rows. An attempt that was carried out needs no entry: its target is gone.

    Parameters
    ----------
    change : float
        Relative change of the mass of a component beyond which attempts with it are forgotten.
    """

    def __init__(self, change):
        self.change = change
        self._memory = {}  # key -> masses, at the attempt, of the components involved, by uid

    def __deepcopy__(self, memo):
        other = Attempts(self.change)
        other._memory = dict(self._memory)
        return other

    def begin(self, key, uids, masses):
        """Remember an attempt, which is taken for a failure as long as its components are as they are.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        uids : ndarray of int, shape (m,)
            Components involved.
        masses : ndarray, shape (m,)
            Their present masses.
        """
        self._memory[key] = dict(zip(uids.tolist(), masses.tolist(), strict=True))

    def failed(self, key, masses):
        """Whether an attempt was made, and all of its components are still there and as large.

        Parameters
        ----------
        key : hashable
            Name of the attempt.
        masses : dict
            Uid -> present mass of every component.

        Returns
        -------
        failed : bool
            False if the attempt was never made.
        """
        then = self._memory.get(key)
        return then is not None and all(
            abs(masses.get(uid, np.inf) - n) <= self.change * n for uid, n in then.items()
        )

    def n_left_alone(self, masses):
        """Count the attempts that are taken for failures.

        Parameters
        ----------
        masses : dict
            Uid -> present mass of every component.

        Returns
        -------
        n_left_alone : int
            Number of attempts whose components are all there and as large.
        """
        return sum(self.failed(key, masses) for key in self._memory)

    def clear(self):
        """Forget all attempts."""
        self._memory.clear()
