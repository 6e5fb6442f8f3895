"""A memory of failed attempts, for proposals."""

from __future__ import annotations


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

    def forgive(self, keys):
        """Allow one more attempt each.

        Parameters
        ----------
        keys : set
            Names of the attempts.
        """
        for key in keys & self._memory.keys():
            n, then = self._memory[key]
            self._memory[key] = (min(n, self.patience - 1), then)
