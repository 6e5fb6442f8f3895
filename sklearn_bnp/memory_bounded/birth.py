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
    cost = alpha_cost(items.lengths, items.sizes, topics.alpha.sum(), settings.rate)
    return Rules(settings.likelihood, topics.prior, items.sizes, settings.shape, cost)


def split(topics, items, k, which, rules):
    """`Split` of topic k, estimated from the items ``which``, those whose likeliest topic is k.

    Continuous rows that are equal are copies, and no evidence of a topic of their own: the halves have to
    gain if copies count once, too. Clusters that lie as evenly as the corners of a cube have no principal
    component, and a cut may go through each of them; so another cut is tried where the first gains nothing.
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
    copied = np.any(rules.likelihood.standardised) and np.any(part.distinct < part.n)
    if gain > 0 and copied:
        own = gain_of_distinct(part, rules, halves.first, halves.summary.alpha)
        return gain if own > 0 else -np.inf
    return gain
