"""Births: a topic is split in two or more, and the gain is estimated from the topic's own items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .halves import (
    ItemSubset,
    Others,
    Rules,
    Summary,
    halve,
    parted_side,
    principal_side,
    summary_of,
    whole,
)
from .model import prior_peak
from .parts import Parts, parts_that_gain

# Nats that parts must gain if copies count once. This is an estimate, and no step judges it exactly.
_CLEAR = 3.0


class Split(NamedTuple):
    """Topic ``k`` in parts, and the estimated gain of the bound; a gain of -inf if it has no parts."""

    k: int
    summary: Summary | None
    gain: float

    @property
    def members(self):
        return (self.k,)

    @property
    def n_more(self):
        """By how many topics there are more."""
        return 0 if self.summary is None else len(self.summary.s) - 1

    def born(self, topics):
        """The new topics; the next update finds their entropies."""
        s, counts, alpha, _ = self.summary
        return topics._replace(s=s, counts=counts, alpha=alpha, entropy=np.zeros(len(s)))


def rules_of_splits(settings, topics, items):
    """`Rules` for the parts of a topic, as if it stood beside all topics; see `Rules.beside`."""
    alpha, peak = topics.alpha.sum(), prior_peak(settings.shape, settings.rate)
    fixed = {"likelihood": settings.likelihood, "prior": topics.prior, "shape": settings.shape}

    def rules(lengths, sizes):
        others = Others(lengths, alpha)
        return Rules(**fixed, sizes=sizes, cost=settings.rate, peak=peak, others=others)

    usual = rules(items.lengths, items.sizes)
    if not np.any(settings.likelihood.standardised) or not np.any(items.distinct < items.n):
        return usual
    lengths = items.shares.T @ items.distinct
    return usual._replace(once=rules(lengths, items.distinct_sizes))


def split(topics, items, k, which, rules, most):
    """`Split` of topic k, estimated from the items ``which``, those whose likeliest topic is k.

    Clusters that lie as evenly as the corners of a cube have no principal component, and a cut
    may go through each of them; so another cut is tried where the first gains nothing. If no cut in two
    gains, more parts are tried, up to ``most``.
    """
    found = Split(k, None, -np.inf)
    if len(which) < 2:
        return found
    part = ItemSubset(items, which, rules.likelihood)
    rules = rules.beside(topics.alpha.sum() - topics.alpha[k])
    one = whole(part, rules, topics.alpha[k])

    def gain(parts):
        return _gain(part, rules, one, parts)

    for cut in (principal_side, parted_side):
        halves = halve(part, rules, one, cut=cut)
        if halves is None:
            continue
        gained = gain(Parts(np.array([halves.first, 1.0 - halves.first]), halves.summary))
        if gained > found.gain:
            found = Split(k, halves.summary, gained)
        if gained > 0:
            return found
    if most <= 2:
        return found
    parts, gained = parts_that_gain(part, rules, topics.alpha[k], most, gain)
    return found if parts is None else Split(k, parts.summary, gained)


def _gain(part, rules, one, parts):
    """Estimated gain of `Parts` of items whose `Summary` as a whole is ``one``.

    Copies of rows of numbers are no evidence of a topic of their own: the parts have to gain clearly if
    copies count once, too. If they do not, this is -inf.
    """
    gain = rules.total(parts.summary) - rules.total(one)
    if gain > 0 and rules.once is not None and np.any(part.distinct < part.n):
        return gain if _gain_of_distinct(part, rules.once, parts) > _CLEAR else -np.inf
    return gain


def _gain_of_distinct(part, rules, parts):
    """Gain of `Parts` by ``rules`` if copies count once."""
    several = summary_of(part, rules, part.distinct, parts.resp, parts.summary.alpha, 3)
    everything, alpha = np.ones((1, len(part.n))), several.alpha.sum(keepdims=True)
    return rules.total(several) - rules.total(
        summary_of(part, rules, part.distinct, everything, alpha, 3)
    )
