"""An epoch: new documents join the kept items, the model is built on all, and the items are compressed."""

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
from .items import Kept, memory_cost, with_epoch
from .local import first_topics, update
from .model import Scale, Topics, elbo_terms, with_new_groups

# If no target is set, data are expected to become this many times those seen so far.
_AHEAD = 10.0


class Limits(NamedTuple):
    """Limits of memory, and the amount of data to expect.

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
        """Number of document groups for ``n`` documents or groups."""
        return n if self.max_groups is None else min(n, self.max_groups)

    def scale(self, n_points, n_documents):
        """`Scale` of the data seen so far; no factor is below 1."""
        pairs = ((self.target_points, n_points), (self.target_documents, n_documents))
        return Scale(*(_AHEAD if target is None else max(1.0, target / n) for target, n in pairs))


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
    """

    kept: Kept
    topics: Topics
    elbo_terms: dict
    kept_bound: float
    n_splits: int
    n_merges: int


def run_epoch(settings, limits, kept, topics, z, indptr):
    """`Epoch` of new documents, whose rows are ``z[indptr[i]:indptr[i + 1]]``.

    Parameters
    ----------
    settings : EpochSettings
        Its ``max_topics`` is lowered if the memory bound has no room for as many clumps.
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
    terms = elbo_terms(settings, topics, items.lengths, items.sizes)
    group = grouping(topics, items.sizes, n_groups)
    older = np.concatenate([kept.group_of_document, len(kept.sizes) + np.arange(len(indptr) - 1)])
    topics, items = joined_groups(topics, items, group)
    kept = _compressed(settings, limits, topics, items, labels, group[older].astype(np.int32))
    no_rows = with_epoch(kept, likelihood, z[:0], np.zeros(1, dtype=int))
    kept_bound = update(settings, topics, no_rows).bound
    return Epoch(kept, topics, terms, kept_bound, n_splits, n_merges)


def _with_room(settings, limits, n_groups):
    """Settings with ``max_topics`` lowered to the number of clumps for which there is room."""
    if limits.memory_bound is None:
        return settings
    least = memory_cost(1, 0, settings.likelihood.n_statistics, n_groups)
    if limits.memory_bound < least:
        raise BoundTooSmall(least, n_groups)
    return settings._replace(max_topics=min(settings.max_topics, limits.memory_bound // least))


def _compressed(settings, limits, topics, items, labels, group_of_document):
    """`Kept` of all items within the memory bound."""
    if fits(items, limits.memory_bound, settings.likelihood.n_statistics):
        return kept_as_they_are(items, group_of_document)
    scale = limits.scale(items.n.sum(), items.sizes.sum())
    leaves = compress(settings, topics, items, labels, limits.memory_bound, scale)
    return kept_of_leaves(items, leaves, group_of_document)
