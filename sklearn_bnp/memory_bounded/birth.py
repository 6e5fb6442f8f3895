"""Births: a topic is split in two, and the gain is estimated from the topic's own items.

Topics are tried in the order of the split criterion of Ueda, Nakano, Ghahramani and Hinton, SMEM algorithm
for mixture models, Neural Computation 12, 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .halves import ItemSubset, Rules, Summary, halve, whole
from .model import alpha_cost


class Split(NamedTuple):
    """Topic ``k`` in two halves, and the estimated gain of the bound; a gain of -inf if it has no halves."""

    k: int
    summary: Summary | None
    gain: float

    @property
    def members(self):
        return (self.k,)

    def apply(self, topics):
        """Topics with the first half in place of the topic, and the second half in a new last place."""
        halves = self.summary
        fields = {"s": halves.s, "counts": halves.counts, "alpha": halves.alpha}
        fields["entropy"] = np.zeros(2)  # the next update finds it
        return topics._replace(
            **{name: _replaced(getattr(topics, name), self.k, new) for name, new in fields.items()}
        )

    def names(self, uids, fresh):
        """Uids of the topics afterwards, of which two are from ``fresh``."""
        return _replaced(uids, self.k, np.array(fresh[:2]))


def _replaced(values, k, new):
    """Values with the first of ``new`` in place k and the others at the end."""
    out = np.concatenate([values, new[1:]])
    out[k] = new[0]
    return out


def split_order(settings, topics):
    """Topics by Ueda's split criterion, the least well described first.

    The criterion is the Kullback-Leibler divergence between the rows of a topic and its density. It is a
    function of the sums: ``-H_k / N_k - log N_k - theta_k . s_k / N_k``.
    """
    n = topics.s[:, -1]
    coef = settings.likelihood.coefficients(topics.prior, topics.s)
    fit = np.einsum("kp,kp->k", coef, topics.s)
    return np.argsort((topics.entropy + fit) / n + np.log(n), kind="stable")


def rules_of_splits(settings, topics, items):
    """`Rules` for the halves of a topic."""
    cost = alpha_cost(items.lengths, items.sizes, topics.alpha.sum(), settings.rate)
    return Rules(settings.likelihood, topics.prior, items.sizes, settings.shape, cost)


def split(settings, topics, items, k, which, rules):
    """`Split` of topic k, estimated from the items ``which``, those whose likeliest topic is k."""
    if len(which) >= 2:
        part = ItemSubset(items, which, settings.likelihood)
        one = whole(part, rules, topics.alpha[k])
        halves = halve(part, rules, one)
        if halves is not None:
            gain = halves.summary.value.sum() - one.value[0]
            return Split(k, halves.summary, float(gain))
    return Split(k, None, -np.inf)
