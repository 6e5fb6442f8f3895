"""A dictionary whose copies cost little, however many entries it has."""

from __future__ import annotations

from collections.abc import MutableMapping

# The upper layer may have so many entries whatever the lower one has.
_LEAST = 64


class Layers(MutableMapping):
    """A dictionary in two layers: copies share the lower one, which never changes; the upper one is small.

    A stream copies its memory of batches at the start of each call, and changes one entry. With n entries
    a copy takes ``sqrt(n)`` steps, and so does a change on average: the layers are joined when the square of
    the upper one's length exceeds that of the lower one. Entries keep the order in which their keys came.

    Parameters
    ----------
    entries : dict, default=()
        The first entries.
    """

    def __init__(self, entries=()):
        self._lower, self._upper = dict(entries), {}
        self._n = len(self._lower)

    def copy(self):
        """A dictionary that does not follow this one's changes."""
        other = Layers()
        other._lower, other._upper, other._n = self._lower, dict(self._upper), self._n
        return other

    def __len__(self):
        return self._n

    def __contains__(self, key):
        return key in self._upper or key in self._lower

    def __getitem__(self, key):
        return self._upper[key] if key in self._upper else self._lower[key]

    def __setitem__(self, key, value):
        self._n += key not in self
        self._upper[key] = value
        if len(self._upper) ** 2 > len(self._lower) + _LEAST:
            self._lower, self._upper = {**self._lower, **self._upper}, {}

    def __delitem__(self, key):
        if key not in self:
            raise KeyError(key)
        self.drop([key])

    def drop(self, keys):
        """Delete the entries of some keys, as far as there are any."""
        there = [key for key in keys if key in self]
        if there:
            entries = {**self._lower, **self._upper}
            for key in there:
                del entries[key]
            self._lower, self._upper, self._n = entries, {}, len(entries)

    def __iter__(self):
        lower, upper = self._lower, self._upper  # values may be set on the way
        yield from lower
        yield from (key for key in upper if key not in lower)
