"""The memory of memoized inference: the statistics of each batch from its last visit."""

from __future__ import annotations

from .layers import Layers
from .statistics import StatBag, added_up

# Name of what batches left behind that will not be seen again; no user's batch_id equals it.
PAST = ("sklearn_bnp", "batches that are gone")


def is_past(name):
    """Whether a batch's name is `PAST`. (Numbers of NumPy, which may be names, compare with each entry.)"""
    return isinstance(name, tuple) and name == PAST


def is_nameless(name):
    """Whether a batch has a name that no user gave: `PAST`, or one that begins with it."""
    return isinstance(name, tuple) and name[: len(PAST)] == PAST


class Memo:
    """Statistics of batches by name, in which edits are made when they are next looked at.

    Thus an accepted trial costs nothing for batches that are not being visited (Hughes 2016, Sec. 4.2.3),
    and several edits of a batch are made at once.
    """

    def __init__(self):
        self._bags, self._versions, self._numbers = Layers(), Layers(), Layers()
        self._contents = Layers()
        self._edits = []
        self._forgotten = 0  # edits that every bag has seen are dropped from the front

    def __len__(self):
        return len(self._bags)

    def __contains__(self, batch_id):
        return batch_id in self._bags

    @property
    def batch_ids(self):
        return tuple(self._bags)

    def copy(self):
        """A memo that does not follow this one's changes; bags are shared, for they never change."""
        memo = Memo()
        memo._bags, memo._versions = self._bags.copy(), self._versions.copy()
        memo._edits, memo._forgotten = list(self._edits), self._forgotten
        memo._numbers, memo._contents = self._numbers.copy(), self._contents.copy()
        return memo

    def without(self, batch_ids):
        """A memo without some of the batches, all edits made."""
        gone = set(batch_ids)
        if not self._edits:
            return self._copy_without(gone)
        memo = Memo()
        memo._numbers = Layers({k: n for k, n in self._numbers.items() if k not in gone})
        memo._contents = Layers({k: c for k, c in self._contents.items() if k not in gone})
        for batch_id in self._bags:
            if batch_id not in gone:
                memo.put(batch_id, self._current(batch_id))
        return memo

    def _copy_without(self, gone):
        memo = self.copy()
        for entries in (memo._bags, memo._versions, memo._numbers, memo._contents):
            entries.drop(gone)
        return memo

    def number(self, batch_id):
        """The place of a batch of a stream, by when it first came; None if it has none yet."""
        return self._numbers.get(batch_id)

    def numbered(self, batch_id, number):
        """Remember the place of a batch, and return it."""
        self._numbers[batch_id] = number
        return number

    def content(self, batch_id):
        """A hash of a batch's rows; None if there is none."""
        return self._contents.get(batch_id)

    def with_content(self, batch_id, content):
        """Remember a hash of a batch's rows, from which it is known whether it comes with other ones."""
        self._contents[batch_id] = content

    def mapped(self, change):
        """A memo that holds ``change`` of each bag, as it is today."""
        memo = Memo()
        memo._numbers, memo._contents = self._numbers.copy(), self._contents.copy()
        for batch_id in self._bags:
            memo.put(batch_id, change(self._current(batch_id)))
        return memo

    def put(self, batch_id, bag):
        self._bags[batch_id] = bag
        self._versions[batch_id] = self._forgotten + len(self._edits)

    def get(self, batch_id, uids):
        """`StatBag` of a batch with all edits made, listed as ``uids``; None for a new batch."""
        if batch_id not in self._bags:
            return None
        bag = self._current(batch_id).aligned(uids)
        self.put(batch_id, bag)
        return bag

    def _current(self, batch_id):
        """`StatBag` of a batch with all edits made, with its components in any order."""
        bag = self._bags[batch_id]
        for edit in self._edits[self._versions[batch_id] - self._forgotten :]:
            bag = edit.replay(bag, batch_id)
        return bag

    def rest(self, batch_ids, uids):
        """Statistics of the components ``uids``, summed over all batches but ``batch_ids``."""
        out = StatBag.zeros(uids, next(iter(self._bags.values())).s.shape[1])
        for batch_id in self._bags:
            if batch_id not in batch_ids:
                bag = self._current(batch_id).aligned(uids)
                out = out.add(bag)
        return out

    def record(self, edit):
        """Note the edit of an accepted trial."""
        self._edits.append(edit)

    def total(self, uids, n_statistics):
        """Sum over all batches: the statistics of everything seen. Drops the edits it has replayed."""
        bags = [self.get(batch_id, uids) for batch_id in self._bags]
        out = added_up([StatBag.zeros(uids, n_statistics), *bags])
        self._forgotten += len(self._edits)
        self._edits.clear()
        return out
