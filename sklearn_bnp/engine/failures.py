"""Memory of a proposal's failed attempts."""

from __future__ import annotations


class Failures:
    """Counts failed attempts: what failed is skipped until its mass has changed.

    Parameters
    ----------
    change : float
        Relative change of mass from which on a failure is forgotten.
    patience : int
        How many failures it takes to be skipped.
    """

    def __init__(self, change, patience=1):
        self.change, self.patience = change, patience
        self._memory = {}  # key -> number of failures, and the mass at the last one

    def __deepcopy__(self, memo):
        other = Failures(self.change, self.patience)
        other._memory = dict(self._memory)
        return other

    def count(self, key, mass):
        """How many failures of ``key`` still count for a component of this mass."""
        n, then = self._memory.get(key, (0, mass))
        return n if abs(mass - then) <= self.change * then else 0

    def blocked(self, key, mass):
        """Whether ``key`` has failed too often to be tried at this mass."""
        return self.count(key, mass) >= self.patience

    def note(self, key, mass, times=1):
        """Remember one more failure of ``key``, or several."""
        self._memory[key] = (self.count(key, mass) + times, mass)

    def judged(self, key, accepted, mass):
        """Remember the verdict on an attempt: a failure is noted, a success is not."""
        if not accepted:
            self.note(key, mass)

    def forgive(self, keys):
        """Allow each of ``keys`` one more attempt."""
        for key in keys & self._memory.keys():
            n, then = self._memory[key]
            self._memory[key] = (min(n, self.patience - 1), then)
