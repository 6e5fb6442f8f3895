"""What proposals remember of attempts that failed."""

from __future__ import annotations


class Failures:
    """Memory of failed attempts: skip what failed until its mass has changed.

    Parameters
    ----------
    change : float
        Relative change of mass after which a failure is forgotten.
    patience : int
        How many failures it takes to be skipped.
    """

    def __init__(self, change, patience=1):
        self.change, self.patience = change, patience
        self._memory = {}

    def __deepcopy__(self, memo):
        other = Failures(self.change, self.patience)
        other._memory = dict(self._memory)
        return other

    def count(self, key, mass):
        """Failures of ``key`` that still count for a component of this mass."""
        n, then = self._memory.get(key, (0, mass))
        return n if abs(mass - then) <= self.change * then else 0

    def blocked(self, key, mass):
        return self.count(key, mass) >= self.patience

    def note(self, key, mass, times=1):
        self._memory[key] = (self.count(key, mass) + times, mass)

    def forgive(self, keys):
        """Allow each of ``keys`` one more attempt."""
        for key in keys & self._memory.keys():
            n, then = self._memory[key]
            self._memory[key] = (min(n, self.patience - 1), then)
