"""Model building (Alg. 3.1): updates of all topics, and the best of the splits and merges.

Design note
-----------
(a) The gain of a split is an estimate from the items of its topic alone; the gain of a merge is exact.
    The best candidate is applied and all topics are updated. The result is kept only if the bound rose, so
    that no accepted change lowers it.
(b) A failed candidate is not tried again while the sizes of its topics stay about the same. Every topic
    thus gets its turn among the ten candidates of a round.
(c) Document groups take memory from clumps, and each topic needs a clump. If there are more topics than
    clumps are allowed, pairs are joined first, those with the least loss, even if the bound falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .birth import Split, rules_of_splits, split, split_order
from .items import items_by_topic
from .local import converge, update
from .merge import Union, disjoint, join_pairs, likely_pairs, pairs_to_merge, unions
from .model import Topics, alive, global_step, threshold

# Splits, and merges, that are evaluated in a round (Alg. 3.1).
CANDIDATES = 10
# A candidate is evaluated again once the rows of a topic have changed by this share.
_MOVED = 0.05


class Built(NamedTuple):
    """Result of model building.

    Attributes
    ----------
    topics : Topics
    labels : ndarray of int32, shape (n_items,)
        Topic of greatest responsibility of each item.
    n_splits, n_merges : int
        Numbers of accepted splits and merges; a swap counts as one of each.
    """

    topics: Topics
    labels: np.ndarray
    n_splits: int
    n_merges: int


class Survey:
    """Observer of `update` that collects what candidates are chosen by.

    Attributes
    ----------
    labels : ndarray of int32, shape (n_items,)
        Topic of greatest responsibility.
    overlap : ndarray, shape (K, K)
        ``sum_c N_c q_ck q_cl``, Ueda's criterion for merges.
    """

    def __init__(self, n_items, n_topics):
        self.labels = np.empty(n_items, dtype=np.int32)
        self.overlap = np.zeros((n_topics, n_topics))

    def __call__(self, first, n, resp):
        self.labels[first : first + len(resp)] = resp.argmax(axis=1)
        weighted = resp if n is None else resp * n[:, np.newaxis]
        self.overlap += weighted.T @ resp


class Swap(NamedTuple):
    """A split, and a union of two other topics, where the number of topics may not grow."""

    split: Split
    union: Union
    gain: float

    @property
    def members(self):
        return (self.split.k, self.union.k, self.union.l)

    def _later(self):
        """The split, with the topic's place after the union."""
        return self.split._replace(k=self.split.k - (self.split.k > self.union.l))

    def apply(self, topics):
        """Topics after the union and the split."""
        return self._later().apply(self.union.apply(topics))

    def names(self, uids, fresh):
        """Uids of the topics afterwards, of which three are from ``fresh``."""
        return self._later().names(self.union.names(uids, fresh[2:]), fresh[:2])


def swaps(splits, merges):
    """`Swap` of each split with the best union of two other topics, where there is one."""
    merges = sorted(merges, key=lambda union: -union.gain)
    pairs = ((s, next((u for u in merges if s.k not in u.members), None)) for s in splits)
    return [Swap(s, union, s.gain + union.gain) for s, union in pairs if union is not None]


class _Memory:
    """Evaluated candidates by the uids of their topics, with the rows that these topics had."""

    def __init__(self, n_topics):
        self.uids = np.arange(n_topics)
        self._next = n_topics
        self._seen = {}

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

    def failed(self, n, candidate):
        found = self.known(n, *candidate.members)
        return found is not None and found.gain == -np.inf

    def keep(self, n, candidate):
        members = candidate.members
        self._seen[self._key(members)] = (n[list(members)].copy(), candidate)

    def change(self, move, lasting):
        """Rename topics after a move, and forget those that are not ``lasting`` (boolean)."""
        fresh = [self._next, self._next + 1, self._next + 2]
        self._next += 3
        self.uids = move.names(self.uids, fresh)[lasting]


def build(settings, topics, items, trace=None):
    """`Built` from the topics so far and all items.

    Parameters
    ----------
    trace : list or None
        The bound of each accepted state is appended to it.
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
        found = _best_move(settings, topics, items, survey, memory, merges, trace)
        if found is None:
            splits, merges = (accepted[kind] + accepted[Swap] for kind in (Split, Union))
            return Built(topics, survey.labels, splits, merges)
        move, topics = found
        accepted[type(move)] += 1


def _settled(settings, topics, items, trace):
    """Topics after updates, without empty ones."""
    return _without_empty(settings, converge(settings, topics, items, trace), items)


def _without_empty(settings, topics, items):
    lasting = alive(topics)
    return topics if lasting.all() else global_step(settings, topics.take(lasting), items)


def _merges(settings, before, topics, items, survey, memory):
    """`Union` candidates, with their gains."""
    n = topics.s[:, -1]

    def known(k, l):
        candidate = memory.known(n, k, l)
        return candidate is not None and candidate.gain <= 0

    pairs = pairs_to_merge(settings, topics, items.sizes, survey.overlap, CANDIDATES, known)
    if len(n) >= settings.max_topics:  # for swaps, whose union may lower the bound
        likely = likely_pairs(settings, topics, items.sizes)[: 2 * CANDIDATES]
        pairs = np.unique(np.concatenate([pairs, likely]), axis=0)
    found = unions(settings, before, topics, items, pairs) if len(pairs) else []
    for union in found:
        memory.keep(n, union)
    return found


def _splits(settings, topics, items, survey, memory):
    """Yield lists of `Split` candidates: all known ones, and ten new ones more each time."""
    n = topics.s[:, -1]
    rules = rules_of_splits(settings, topics, items)
    order = [int(k) for k in split_order(settings, topics)]
    fresh = [k for k in order if memory.known(n, k) is None]
    members = items_by_topic(survey.labels, len(n))
    for lo in range(0, max(1, len(fresh)), CANDIDATES):
        for k in fresh[lo : lo + CANDIDATES]:
            memory.keep(n, split(settings, topics, items, k, members[k], rules))
        known = [(k, memory.known(n, k)) for k in order]
        yield [candidate._replace(k=k) for k, candidate in known if candidate is not None]


def _best_move(settings, topics, items, survey, memory, merges, trace):
    """The best candidate that raises the bound, with the topics after it; None if there is none."""
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
                memory.change(move, alive(changed))
                changed = _without_empty(settings, changed, items)
                if trace is not None:
                    trace.append(changed.bound)
                return move, changed
            memory.keep(n, move._replace(gain=-np.inf))
    return None
