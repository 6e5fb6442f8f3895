"""An epoch: new documents join the kept items, the model is built on all, and the items are compressed."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from .building import build
from .compression import (
    compress,
    fits,
    grouping,
    joined_groups,
    kept_as_they_are,
    kept_of_leaves,
)
from .items import Kept, kept_items, memory_cost, with_epoch
from .local import first_topics, update, with_new_documents
from .model import Scale, Topics, elbo_terms

# Beyond any number of topics that a model could have.
NO_LIMIT = sys.maxsize
# If no target is set, data are expected to become this many times those seen so far.
_AHEAD = 10.0
# Clumps for each document group. With 20 overlapping clusters, 200 documents and 5000 numbers, the bound was
# about 1.2, 2.1, 2.5 and 3.7 % below that of the batch with 100, 50, 35 and 12 groups, which leave room for
# 43, 78, 102 and 192 clumps: groups are worth more than clumps, but each topic needs a clump.
_CLUMPS_A_GROUP = 2


class Limits(NamedTuple):
    """Limits of memory, and the amount of data to expect.

    Attributes
    ----------
    memory_bound : int or None
        Most numbers to keep (26).
    target_points, target_documents : float or None
        Rows and documents in the whole life of the model.
    max_groups : int or None
        Most document groups; if None, as many as `default_groups` says.
    """

    memory_bound: int | None
    target_points: float | None
    target_documents: float | None
    max_groups: int | None

    def groups_of(self, n, n_statistics):
        """Number of document groups for ``n`` documents or groups."""
        if self.max_groups is None and self.memory_bound is None:
            return n
        most = self.max_groups or default_groups(self.memory_bound, n_statistics)
        return min(n, most)

    def scale(self, n_points, n_documents):
        """`Scale` of the data seen so far; no factor is below 1."""
        pairs = ((self.target_points, n_points), (self.target_documents, n_documents))
        return Scale(*(_AHEAD if target is None else max(1.0, target / n) for target, n in pairs))


def default_groups(memory_bound, n_statistics):
    """Number of document groups beside whose counts there is room for twice as many clumps.

    With S groups and C = 2 S clumps, the counts C S fill the bound. The statistics of clumps then take a
    part of their room, but leave room for one clump at least, if any number of groups does.
    """
    most = int(np.sqrt(memory_bound / _CLUMPS_A_GROUP))
    return max(1, min(most, memory_bound - (n_statistics - 1)))


class BoundTooSmall(Exception):
    """The memory bound has no room for one topic; ``least`` is the smallest bound that has."""

    def __init__(self, least, n_groups):
        super().__init__(least, n_groups)
        self.least, self.n_groups = least, n_groups


class Epoch(NamedTuple):
    """Result of an epoch.

    Attributes
    ----------
    kept : Kept
    topics : Topics
        With the bound before compression.
    elbo_terms : dict
        Terms of that bound.
    kept_bound : float
        The bound after compression and one more update.
    n_splits, n_merges : int
        Numbers of accepted splits and merges.
    room : int
        Number of topics for which there is room in memory.
    is_full : bool
        Whether topics had to be joined for lack of room, or could not be split any more.
    """

    kept: Kept
    topics: Topics
    elbo_terms: dict
    kept_bound: float
    n_splits: int
    n_merges: int
    room: int
    is_full: bool


def run_epoch(settings, limits, kept, topics, new):
    """`Epoch` of new documents.

    Parameters
    ----------
    settings : EpochSettings
        Its ``max_topics`` is lowered if the memory bound has no room for as many clumps.
    limits : Limits
    kept : Kept
    topics : Topics or None
        None before the first epoch.
    new : NewDocuments
    """
    likelihood, P = settings.likelihood, settings.likelihood.n_statistics
    n_groups = limits.groups_of(len(kept.sizes) + len(new.weight), P)
    room = _room(limits.memory_bound, P, n_groups)
    short = room < settings.max_topics
    settings = settings._replace(max_topics=min(settings.max_topics, room))
    items = with_epoch(kept, likelihood, new)
    if topics is None:
        topics = first_topics(settings, items)
    else:
        topics = with_new_documents(settings, topics, items)
    built = build(settings, topics, items)
    terms = elbo_terms(settings, built.topics, items.lengths, items.sizes)
    group = grouping(built.topics, items.sizes, n_groups)
    older = np.concatenate([kept.group_of_document, len(kept.sizes) + np.arange(len(new.weight))])
    topics, items = joined_groups(built.topics, items, group)
    kept = _compressed(settings, limits, topics, items, built.labels, group[older].astype(np.int32))
    kept_bound = update(settings, topics, kept_items(likelihood, kept)).bound
    is_full = short and (built.n_forced > 0 or len(topics.s) >= room)
    return Epoch(kept, topics, terms, kept_bound, built.n_splits, built.n_merges, room, is_full)


def _room(memory_bound, n_statistics, n_groups):
    """Number of clumps for which there is room, and so of topics."""
    if memory_bound is None:
        return NO_LIMIT
    least = memory_cost(1, 0, n_statistics, n_groups)
    if memory_bound < least:
        raise BoundTooSmall(least, n_groups)
    return memory_bound // least


def _compressed(settings, limits, topics, items, labels, group_of_document):
    """`Kept` of all items within the memory bound."""
    if fits(items, limits.memory_bound, settings.likelihood.n_statistics):
        return kept_as_they_are(items, group_of_document)
    scale = limits.scale(items.n.sum(), items.sizes.sum())
    leaves = compress(settings, topics, items, labels, limits.memory_bound, scale)
    return kept_of_leaves(items, leaves, group_of_document)
