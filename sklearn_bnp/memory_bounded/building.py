"""Model building (Alg. 3.1): updates of all topics, and the best of the splits and merges.

Design note
-----------
(a) What a split would bring is an estimate, made from the items that are the topic's own; what a merge
    brings is exact. The best candidate is taken, all topics are updated, and the result stays only if the
    bound rose: no accepted change lowers it.
(b) A candidate that was looked at is not looked at again while its topics have the rows they had, so that
    every topic gets its turn among the ten that a round may try.
(c) Where there are more topics than may be (each needs a clump of its own, and clumps become fewer as
    document groups become more), those that lose least are joined first, whatever they lose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .moves import (
    Split,
    Survey,
    Swap,
    Union,
    disjoint,
    join_pairs,
    likely_pairs,
    pairs_to_merge,
    rules_of_splits,
    split,
    split_order,
    swaps,
    unions,
)
from .state import Topics
from .updates import alive, converge, finished, threshold, update

# Splits and merges that a round looks at (Alg. 3.1).
CANDIDATES = 10
# A topic is another one when its rows have changed by this share.
_MOVED = 0.05


class Built(NamedTuple):
    """What model building ends with.

    Attributes
    ----------
    topics : Topics
    labels : ndarray of int32, shape (n_items,)
        Topic of greatest responsibility of each item.
    n_splits, n_merges : int
        Accepted.
    """

    topics: Topics
    labels: np.ndarray
    n_splits: int
    n_merges: int


class _Memory:
    """Candidates that were looked at, and how many rows their topics had."""

    def __init__(self, n_topics):
        self.uids = np.arange(n_topics)
        self._next = n_topics
        self._seen = {}

    def key(self, *members):
        return tuple(self.uids[list(members)].tolist())

    def known(self, n, *members):
        """The candidate of these topics if they have not changed, else None."""
        found = self._seen.get(self.key(*members))
        if found is None:
            return None
        rows, candidate = found
        now = n[list(members)]
        return candidate if np.all(np.abs(now - rows) <= _MOVED * rows) else None

    def failed(self, n, candidate):
        found = self.known(n, *candidate.members)
        return found is not None and found.gain == -np.inf

    def keep(self, n, candidate):
        members = candidate.members
        self._seen[self.key(*members)] = (n[list(members)].copy(), candidate)

    def change(self, move, lasting):
        """New names for topics after a move, of which those with ``lasting`` (boolean) are left."""
        fresh = [self._next, self._next + 1, self._next + 2]
        self._next += 3
        self.uids = move.names(self.uids, fresh)[lasting]


def build(settings, topics, items, trace=None):
    """`Built` from topics to begin with and all items.

    Parameters
    ----------
    trace : list or None
        Bounds of all accepted states are appended to it.
    """
    topics = _settled(settings, topics, items, trace)
    while len(topics.s) > settings.max_topics:
        surplus = len(topics.s) - settings.max_topics
        topics = join_pairs(topics, disjoint(likely_pairs(settings, topics, items.sizes), surplus))
        topics = _settled(settings, topics, items, None)
    memory, accepted = _Memory(len(topics.s)), dict.fromkeys((Split, Union, Swap), 0)
    while True:
        survey = Survey(len(items.n), len(topics.s))
        before, topics = topics, update(settings, topics, items, survey)
        if trace is not None:
            trace.append(topics.bound)
        merges = _merges(settings, before, topics, items, survey, memory)
        move = _taken(settings, topics, items, survey, memory, merges, trace)
        if move is None:
            splits, merges = (accepted[kind] + accepted[Swap] for kind in (Split, Union))
            return Built(topics, survey.labels, splits, merges)
        accepted[type(move[0])] += 1
        topics = move[1]


def _settled(settings, topics, items, trace):
    """Topics after updates, without those that have no rows left."""
    topics = converge(settings, topics, items, trace)
    lasting = alive(topics)
    return topics if lasting.all() else finished(settings, topics.take(lasting), items)


def _merges(settings, before, topics, items, survey, memory):
    """Candidates for merges, with their gains."""
    n = topics.s[:, -1]

    def known(k, l):
        candidate = memory.known(n, k, l)
        return candidate is not None and candidate.gain <= 0

    pairs = pairs_to_merge(settings, topics, items.sizes, survey.overlap, CANDIDATES, known)
    if len(n) >= settings.max_topics:  # for swaps, which may lose by the union
        likely = likely_pairs(settings, topics, items.sizes)[: 2 * CANDIDATES]
        pairs = np.unique(np.concatenate([pairs, likely]), axis=0)
    found = unions(settings, before, topics, items, pairs) if len(pairs) else []
    for union in found:
        memory.keep(n, union)
    return found


def _splits(settings, topics, items, survey, memory):
    """Candidates for splits: those known, and at most ten new ones more each time."""
    n = topics.s[:, -1]
    rules = rules_of_splits(settings, topics, items)
    order = [int(k) for k in split_order(settings, topics)]
    fresh = [k for k in order if memory.known(n, k) is None]
    by_label = np.argsort(survey.labels, kind="stable")
    edges = np.searchsorted(survey.labels[by_label], np.arange(len(n) + 1))
    for lo in range(0, max(1, len(fresh)), CANDIDATES):
        for k in fresh[lo : lo + CANDIDATES]:
            which = np.sort(by_label[edges[k] : edges[k + 1]])
            memory.keep(n, split(settings, topics, items, k, which, rules))
        known = [(k, memory.known(n, k)) for k in order]
        yield [candidate._replace(k=k) for k, candidate in known if candidate is not None]


def _taken(settings, topics, items, survey, memory, merges, trace):
    """The best candidate that raises the bound, and the topics after it; None if none does."""
    least, n = threshold(settings, topics, items), topics.s[:, -1]
    full = len(n) >= settings.max_topics
    for splits in _splits(settings, topics, items, survey, memory):
        moves = [*(swaps(splits, merges) if full else splits), *merges]
        for move in sorted(moves, key=lambda move: -move.gain):
            if move.gain <= least:
                break
            if memory.failed(n, move):
                continue
            changed = converge(settings, move.apply(topics), items)
            if changed.bound > topics.bound + least:
                lasting = alive(changed)
                memory.change(move, lasting)
                if not lasting.all():
                    changed = finished(settings, changed.take(lasting), items)
                if trace is not None:
                    trace.append(changed.bound)
                return move, changed
            memory.keep(n, move._replace(gain=-np.inf))
    return None
