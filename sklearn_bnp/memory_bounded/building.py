"""Model building (Alg. 3.1): updates of all topics, and the best of the splits and merges.

Design note
-----------
(a) The gain of a split is an estimate from the items of its topic alone; the gain of a merge is exact.
    All candidates that promise to gain are applied at once, if no two change the same topic, and all topics
    are updated. The result is kept only if the bound rose, so that no accepted change lowers it; otherwise
    the better half of the candidates is tried. The number of topics can double in a round.
(b) A failed candidate is not tried again while the sizes of its topics stay about the same. For splits this
    holds from epoch to epoch: with a document a call, most topics are as they were (`_are_due`).
(c) Document groups take memory from clumps, and each topic needs a clump. If there are more topics than
    clumps are allowed, pairs are joined first, those with the least loss, even if the bound falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .birth import Split, rules_of_splits, split
from .items import items_by_topic
from .local import converge, log_weights, sums_of_epoch, update
from .merge import Union, disjoint, join_pairs, likely_pairs, pairs_to_merge, unions
from .model import Topics, alive, global_step, joined_topics, threshold

# Moves that may fail in a round, and least number of merges that are looked at (Alg. 3.1).
CANDIDATES = 10
# A candidate is evaluated again once the rows of a topic have changed by this share.
_MOVED = 0.05
# More parts than two are tried again once the rows of a topic are so many times as many.
_GROWN = 4.0
# A split is tried if new rows differ by so many nats for each statistic and log row; a topic costs about .5.
_NEWS = 0.25
# Stands for a candidate that was tried, and did not raise the bound.
_FAILED = object()


class Built(NamedTuple):
    """Result of model building.

    Attributes
    ----------
    topics : Topics
    labels : ndarray of int32, shape (n_items,)
        Topic of greatest responsibility of each item.
    n_splits, n_merges : int
        Numbers of accepted splits and merges; a swap counts as one of each.
    n_forced : int
        Merges for which room was the reason.
    """

    topics: Topics
    labels: np.ndarray
    n_splits: int
    n_merges: int
    n_forced: int


class _Labels:
    """Observer of `update`: ``labels`` (n_items,), the topic of greatest responsibility of each item."""

    def __init__(self, n_items):
        self.labels = np.empty(n_items, dtype=np.int32)

    def __call__(self, first, n, resp):
        self.labels[first : first + len(resp)] = resp.argmax(axis=1)


class Swap(NamedTuple):
    """A split, and a union of two other topics, where the number of topics may not grow."""

    split: Split
    union: Union

    @property
    def gain(self):
        return self.split.gain + self.union.gain

    @property
    def members(self):
        return (*self.split.members, *self.union.members)

    def born(self, topics):
        """The new topics."""
        return joined_topics(self.split.born(topics), self.union.born(topics))


def applied(moves, topics):
    """Topics after moves, of which no two change the same topic; new ones are the last."""
    for_new = [move.born(topics) for move in moves]
    return joined_topics(topics.take(_untouched(moves, len(topics.s))), *for_new)


def _untouched(moves, n_topics):
    """Boolean (n_topics,): topics that no move changes."""
    untouched = np.ones(n_topics, dtype=bool)
    untouched[[k for move in moves for k in move.members]] = False
    return untouched


def swaps(splits, merges, promises):
    """`Swap` of each split, the best first, with the best union of two topics that are in no other swap.

    Only swaps for which ``promises(swap)`` holds are made.
    """
    taken, found = set(), []
    merges = sorted(merges, key=lambda union: -union.gain)
    for one in sorted(splits, key=lambda one: -one.gain):
        others = (union for union in merges if taken.isdisjoint(union.members))
        pairs = (Swap(one, union) for union in others if one.k not in union.members)
        swap = None if one.k in taken else next((s for s in pairs if promises(s)), None)
        if swap is not None:
            taken.update(swap.members)
            found.append(swap)
    return found


class _Memory:
    """Evaluated candidates by the uids of their topics, with the rows that these topics had.

    The topics whose uids are in ``halves_only`` are not split in more parts.
    """

    def __init__(self, n_topics):
        self.uids = np.arange(n_topics)
        self._next = n_topics
        self._seen = {}
        self.halves_only = set()

    def _key(self, members):
        return tuple(self.uids[list(members)].tolist())

    def known(self, n, *members):
        """The candidate of these topics, or None if there is none or a topic has changed since."""
        found = self._seen.get(self._key(members))
        if found is None:
            return None
        rows, candidate = found
        now = n[list(members)]
        return candidate if np.all(np.abs(now - rows) <= _MOVED * rows) else None

    def failed(self, n, move):
        """Whether a move was tried, and did not raise the bound."""
        return self.known(n, *move.members) is _FAILED

    def keep(self, n, members, candidate):
        self._seen[self._key(members)] = (n[list(members)].copy(), candidate)

    def change(self, moves, n_topics, lasting):
        """Name topics anew after `applied`, and forget those that are not ``lasting`` (boolean)."""
        old = self.uids[_untouched(moves, len(self.uids))]
        fresh = np.arange(self._next, self._next + n_topics - len(old))
        self._next += len(fresh)
        self.uids = np.concatenate([old, fresh])[lasting]


def build(settings, topics, items):
    """`Built` from the topics so far and all items."""
    topics = _settled(settings, topics, items)
    topics, joined = _with_room(settings, topics, items)
    memory, accepted, at_rest = _Memory(len(topics.s)), [], True
    halves_due, parts_due = _are_due(settings, topics, items)
    memory.halves_only.update(np.flatnonzero(~parts_due).tolist())
    for k in np.flatnonzero(~halves_due):
        memory.keep(topics.s[:, -1], (k,), _FAILED)
    while True:
        observer = _Labels(len(items.n))
        before, topics = topics, update(settings, topics, items, observer)
        found = _best_moves(settings, before, topics, items, observer.labels, memory)
        if found is not None:
            (moves, topics), at_rest = found, False
            accepted += moves
        elif at_rest:
            break
        else:  # trials end before updates do
            rested = converge(settings, topics, items)
            memory.change([], len(rested.s), alive(rested))
            topics, at_rest = _without_empty(settings, rested, items), True
    n_swaps, n_splits, n_merges = (
        sum(isinstance(move, kind) for move in accepted) for kind in (Swap, Split, Union)
    )
    return Built(topics, observer.labels, n_splits + n_swaps, n_merges + n_swaps, joined)


def _with_room(settings, topics, items):
    """At most ``max_topics`` topics, the likeliest pairs of which were joined; and how many were."""
    before = len(topics.s)
    while len(topics.s) > settings.max_topics:
        surplus = len(topics.s) - settings.max_topics
        topics = join_pairs(topics, disjoint(likely_pairs(settings, topics, items.sizes), surplus))
        topics = _settled(settings, topics, items)
    return topics, before - len(topics.s)


def _settled(settings, topics, items):
    """Topics after updates, without empty ones."""
    return _without_empty(settings, converge(settings, topics, items), items)


def _without_empty(settings, topics, items):
    lasting = alive(topics)
    return topics if lasting.all() else global_step(settings, topics.take(lasting), items)


def _are_due(settings, topics, items):
    """Booleans (K,) and (K,): topics that are worth a new try of halves, and of more parts.

    The rows of such a topic have grown past a power of ``1 + _MOVED``, or of ``_GROWN``, so that nothing
    has to be kept about tries. Or the new ones fit otherwise than its rows do on average, by more than a
    share of the nats that parameters of a topic cost. All are due in a first epoch, and where a split could
    only be part of a swap.
    """
    n = topics.s[:, -1]
    if len(items.means) == 0 or len(n) >= settings.max_topics:
        everyone = np.ones(len(n), dtype=bool)
        return everyone, everyone
    new = sums_of_epoch(settings, topics, items)
    coef = log_weights(settings, topics, items.sizes)[0]
    before = np.log(np.maximum(n - new[:, -1], np.finfo(float).tiny))
    unlike = np.abs(np.einsum("kp,kp->k", coef, new - topics.s * (new[:, -1] / n)[:, np.newaxis]))
    news = unlike > _NEWS * coef.shape[1] * np.log1p(n)
    powers = np.log([[1.0 + _MOVED], [_GROWN]])
    halves, parts = news | (np.floor(np.log(n) / powers) > np.floor(before / powers))
    return halves, parts


def _splits(settings, topics, items, labels, memory):
    """`Split` of each topic; those of topics that have hardly changed are not worked out again."""
    n, found, rules = topics.s[:, -1], [], rules_of_splits(settings, topics, items)
    members, most = items_by_topic(labels, len(n)), settings.max_topics - len(n) + 1
    for k in range(len(n)):
        known = memory.known(n, k)
        if known is None:
            n_parts = 2 if memory.uids[k] in memory.halves_only else most
            known = split(topics, items, k, members[k], rules, n_parts)
            memory.keep(n, (k,), known)
        if known is not _FAILED:
            found.append(known._replace(k=k))
    return found


def _unions(settings, before, topics, items, memory):
    """`Union` of likely pairs, with their gains; if no more topics are allowed, also some for swaps."""
    n = topics.s[:, -1]

    def known(k, l):
        candidate = memory.known(n, k, l)
        return candidate is _FAILED or (candidate is not None and candidate.gain <= 0)

    n_pairs = max(CANDIDATES, len(n))
    pairs = pairs_to_merge(settings, before, topics, items, n_pairs, known)
    if len(n) >= settings.max_topics:
        likely = likely_pairs(settings, topics, items.sizes)[: 2 * n_pairs]
        pairs = np.unique(np.concatenate([pairs, likely]), axis=0)
    found = unions(settings, before, topics, items, pairs) if len(pairs) else []
    for union in found:
        if not memory.failed(n, union):  # which is looked at again for the sake of swaps alone
            memory.keep(n, union.members, union)
    return found


def _best_moves(settings, before, topics, items, labels, memory):
    """Moves that raise the bound together, and the topics after them; None if there are none."""
    least, n = threshold(settings, topics, items), topics.s[:, -1]

    def promises(move):
        return move.gain > least and not memory.failed(n, move)

    splits, room = _splits(settings, topics, items, labels, memory), settings.max_topics - len(n)
    found = _tried(settings, topics, items, memory, _within(_apart(splits, promises), room))
    if found is None:
        merges = _unions(settings, before, topics, items, memory)
        found = _tried(settings, topics, items, memory, _apart(merges, promises))
        if found is None and room <= 0:
            halved = [one for one in splits if one.n_more == 1]
            found = _tried(settings, topics, items, memory, swaps(halved, merges, promises))
    return found


def _apart(moves, promises):
    """The moves that promise to gain, the best first, of which no two change the same topic."""
    taken, chosen = set(), []
    for move in sorted(filter(promises, moves), key=lambda move: -move.gain):
        if taken.isdisjoint(move.members):
            taken.update(move.members)
            chosen.append(move)
    return chosen


def _within(splits, room):
    """The splits, the first ones first, that make at most ``room`` more topics together."""
    chosen = []
    for one in splits:
        if one.n_more <= room:
            chosen.append(one)
            room -= one.n_more
    return chosen


def _tried(settings, topics, items, memory, moves):
    """Moves that raise the bound together, and the topics after them; ``moves`` has the best first.

    None if there are none. If all of them do not raise it, the better half is tried. A move that fails alone
    is remembered, and the next are tried.
    """
    least, n = threshold(settings, topics, items), topics.s[:, -1]
    for first in range(min(len(moves), CANDIDATES)):
        some = moves[first:]
        while some:
            changed = converge(settings, applied(some, topics), items, above=topics.bound)
            if changed.bound > topics.bound + least:
                memory.change(some, len(changed.s), alive(changed))
                return some, _without_empty(settings, changed, items)
            some = some[: len(some) // 2]
        memory.keep(n, moves[first].members, _FAILED)
    return None
