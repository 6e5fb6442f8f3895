"""An epoch: new documents come, the model is built on all items, and what is kept of them is compressed."""

from __future__ import annotations

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
from .objective import Scale
from .state import Kept, Topics, memory_cost, with_epoch
from .updates import first_topics, update, with_new_groups

# A target that was not set is so many times what was seen.
_AHEAD = 10.0


class Limits(NamedTuple):
    """What a user allows and expects.

    Attributes
    ----------
    memory_bound : int or None
        Most numbers to keep (26).
    target_points, target_documents : float or None
        Rows and documents in the whole life of the model.
    max_groups : int or None
        Most document groups.
    """

    memory_bound: int | None
    target_points: float | None
    target_documents: float | None
    max_groups: int | None

    def groups_of(self, n):
        """Groups that ``n`` of them are joined to."""
        return n if self.max_groups is None else min(n, self.max_groups)

    def scale(self, n_points, n_documents):
        """`Scale` of what was seen; the data never count less than once."""
        return Scale(
            _AHEAD if self.target_points is None else max(1.0, self.target_points / n_points),
            _AHEAD
            if self.target_documents is None
            else max(1.0, self.target_documents / n_documents),
        )


class BoundTooSmall(Exception):
    """The bound cannot hold what has to be kept; ``least`` numbers would do."""

    def __init__(self, least, n_groups):
        super().__init__(least, n_groups)
        self.least, self.n_groups = least, n_groups


class Epoch(NamedTuple):
    """What an epoch ends with.

    Attributes
    ----------
    kept : Kept
    topics : Topics
    kept_bound : float
        The objective once items are joined; `Topics.bound` is from before.
    n_splits, n_merges : int
        Accepted in model building.
    """

    kept: Kept
    topics: Topics
    kept_bound: float
    n_splits: int
    n_merges: int


def run_epoch(settings, limits, kept, topics, z, indptr):
    """`Epoch` of new documents, whose rows are ``z[indptr[i]:indptr[i + 1]]``.

    Parameters
    ----------
    settings : EpochSettings
        Its ``max_topics`` may be lowered: topics have a clump each at least.
    limits : Limits
    kept : Kept
    topics : Topics or None
        None before the first epoch.
    """
    likelihood = settings.likelihood
    n_groups = limits.groups_of(len(kept.sizes) + len(indptr) - 1)
    settings = _with_room(settings, limits, n_groups)
    items = with_epoch(kept, likelihood, z, indptr)
    if topics is None:
        topics = first_topics(settings, items)
    else:
        topics = with_new_groups(topics, len(items.sizes))
    topics, labels, n_splits, n_merges = build(settings, topics, items)
    group = grouping(topics, items.sizes, n_groups)
    older = np.concatenate([kept.group_of_document, len(kept.sizes) + np.arange(len(indptr) - 1)])
    topics, items = joined_groups(topics, items, group)
    kept = _compressed(settings, limits, topics, items, labels, group[older].astype(np.int32))
    empty = z[:0]
    again = update(settings, topics, with_epoch(kept, likelihood, empty, np.zeros(1, dtype=int)))
    return Epoch(kept, topics, again.bound, n_splits, n_merges)


def _with_room(settings, limits, n_groups):
    """Settings for as many topics as can have a clump each."""
    if limits.memory_bound is None:
        return settings
    least = memory_cost(1, 0, settings.likelihood.n_statistics, n_groups)
    if limits.memory_bound < least:
        raise BoundTooSmall(least, n_groups)
    return settings._replace(max_topics=min(settings.max_topics, limits.memory_bound // least))


def _compressed(settings, limits, topics, items, labels, group_of_document):
    if fits(items, limits.memory_bound, settings.likelihood.n_statistics):
        return kept_as_they_are(items, group_of_document)
    scale = limits.scale(items.n.sum(), items.sizes.sum())
    leaves = compress(settings, topics, items, labels, limits.memory_bound, scale)
    return kept_of_leaves(items, leaves, group_of_document)
