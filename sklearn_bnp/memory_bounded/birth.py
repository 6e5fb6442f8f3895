"""Births: a topic is split in two, and the gain is estimated from the topic's own items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .halves import (
    ItemSubset,
    Rules,
    Summary,
    gain_of_distinct,
    halve,
    parted_side,
    principal_side,
    whole,
)
from .model import alpha_cost


class Split(NamedTuple):
    """Topic ``k`` in two halves, and the estimated gain of the bound; a gain of -inf if it has no halves."""

    k: int
    summary: Summary | None
    gain: float

    @property
    def members(self):
        return (self.k,)

    def born(self, topics):
        """The new topics; the next update finds their entropies."""
        s, counts, alpha, _ = self.summary
        return topics._replace(s=s, counts=counts, alpha=alpha, entropy=np.zeros(len(s)))


def rules_of_splits(settings, topics, items):
    """`Rules` for the halves of a topic."""

    def rules(lengths, sizes):
        cost = alpha_cost(lengths, sizes, topics.alpha.sum(), settings.rate)
        return Rules(settings.likelihood, topics.prior, sizes, settings.shape, cost)

    usual = rules(items.lengths, items.sizes)
    if not np.any(settings.likelihood.standardised) or not np.any(items.distinct < items.n):
        return usual
    lengths = items.shares.T @ items.distinct
    return usual._replace(once=rules(lengths, items.distinct_sizes))


def split(topics, items, k, which, rules):
    """`Split` of topic k, estimated from the items ``which``, those whose likeliest topic is k.

    Copies of rows of numbers are no evidence of a topic of their own: the halves have to gain if copies count
    once, too. Clusters that lie as evenly as the corners of a cube have no principal component, and a cut
    may go through each of them; so another cut is tried where the first gains nothing.
    """
    found = Split(k, None, -np.inf)
    if len(which) < 2:
        return found
    part = ItemSubset(items, which, rules.likelihood)
    one = whole(part, rules, topics.alpha[k])
    for cut in (principal_side, parted_side):
        halves = halve(part, rules, one, cut=cut)
        gain = -np.inf if halves is None else _gain(part, rules, one, halves)
        if gain > found.gain:
            found = Split(k, halves.summary, gain)
        if gain > 0:
            break
    return found


def _gain(part, rules, one, halves):
    """Estimated gain of `Halves`."""
    gain = float(halves.summary.value.sum() - one.value[0])
    if gain > 0 and rules.once is not None and np.any(part.distinct < part.n):
        own = gain_of_distinct(part, rules.once, halves.first, halves.summary.alpha)
        return gain if own > 0 else -np.inf
    return gain
