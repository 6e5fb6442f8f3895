"""Merges: two topics become one, and the gain is exact once the union's entropy is known.

Pairs are ranked by the merge criterion of Ueda, Nakano, Ghahramani and Hinton, SMEM algorithm for mixture
models, Neural Computation 12, 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._entropies import union_entropies
from ..engine.affinity import loss_of_statistics, union_evidence
from ..engine.merge_losses import MergeLosses
from .items import kept_items
from .local import update
from .model import log_prior, log_rising_factorials

# Pairs whose gain is bounded from above, for each pair that is evaluated.
_BOUNDED_PAIRS = 10
# Numbers in the tables of gains that are held at a time.
_BLOCK_NUMBERS = 4_000_000


class _UnionEntropies:
    """Entropies of unions of pairs, summed over the items; an observer of `update`."""

    def __init__(self, pairs):
        self.members = np.ascontiguousarray(pairs, dtype=np.intp).ravel()
        self.indptr = np.arange(0, 2 * len(pairs) + 1, 2, dtype=np.intp)
        self.entropy = np.zeros(len(pairs))

    def __call__(self, first, n, resp):
        own, n = np.empty_like(self.entropy), np.broadcast_to(n, len(resp)).astype(float)
        union_entropies(np.ascontiguousarray(resp), n, self.indptr, self.members, own, 1)
        self.entropy += own


class _Overlap:
    """``overlap`` (K, K), ``sum_c N_c q_ck q_cl``, Ueda's criterion for merges; an observer of `update`."""

    def __init__(self, n_topics):
        self.overlap = np.zeros((n_topics, n_topics))

    def __call__(self, first, n, resp):
        self.overlap += (resp * np.reshape(n, (-1, 1))).T @ resp


class Union(NamedTuple):
    """Topics ``k`` < ``l`` as one, and the exact gain of the bound."""

    k: int
    l: int
    gain: float

    @property
    def members(self):
        return (self.k, self.l)

    def born(self, topics):
        """The new topic; the next update finds its entropy."""
        return topics.mapped(lambda values: values[[self.k]] + values[[self.l]])


def _gains(settings, topics, sizes, pairs, entropy):
    """Gains (n,) of the bound by joining pairs (n, 2) whose unions have the entropies (n,)."""
    evidence = settings.likelihood.evidence(topics.prior, topics.s)
    rises = log_rising_factorials(topics.counts, topics.alpha, sizes)
    prior = log_prior(topics.alpha, settings.shape, settings.rate)
    own = evidence + rises + prior + topics.entropy
    k, l = pairs.T
    alpha = topics.alpha[k] + topics.alpha[l]
    union = (
        union_evidence(settings.likelihood, topics.prior, topics.s, k, l)
        + log_rising_factorials(topics.counts[k] + topics.counts[l], alpha, sizes)
        + log_prior(alpha, settings.shape, settings.rate)
    )
    return union + entropy - own[k] - own[l]


def _greatest_gains(settings, topics, sizes, pairs):
    """Upper bounds (n,) of the gains of pairs: no union has more entropy than its members together.

    Hughes (2016), (4.1.2).
    """
    return _gains(settings, topics, sizes, pairs, topics.entropy[pairs].sum(axis=1))


def pairs_to_merge(settings, before, topics, items, n_pairs, known):
    """Pairs (n, 2) that may gain and are not ``known`` to fail, at most ``n_pairs`` by each of two criteria.

    The first are those that overlap most: topics that share rows. Topics that share none, since each has
    other documents, are found by the second: the pairs of which one topic explains the other's rows best.
    ``topics`` are ``before`` after one update, and ``known(k, l)`` returns a boolean.
    """
    observer = _Overlap(len(topics.s))
    update(settings, before, items, observer)
    k, l = np.triu_indices(len(topics.s), 1)
    overlap, lost = observer.overlap[k, l], _reassigned(settings, topics)[k, l]
    by_overlap, found = np.argsort(-overlap, kind="stable"), []
    for order in (by_overlap[overlap[by_overlap] > 0], np.argsort(lost, kind="stable")):
        first = order[: 4 * _BOUNDED_PAIRS * n_pairs]
        pairs = [(k[i], l[i]) for i in first if not known(k[i], l[i])]
        pairs = np.array(pairs[: _BOUNDED_PAIRS * n_pairs], dtype=np.intp).reshape(-1, 2)
        if len(pairs):
            pairs = pairs[_greatest_gains(settings, topics, items.sizes, pairs) > 0]
        found.append(pairs[:n_pairs])
    return np.unique(np.concatenate(found), axis=0)


def _reassigned(settings, topics):
    """Nats (K, K) by which the data term falls at most if two topics are joined; symmetric."""
    loss = loss_of_statistics(settings.likelihood, topics.prior, topics.s) * topics.s[:, -1:]
    return np.minimum(loss, loss.T)


def likely_pairs(settings, topics, sizes):
    """All pairs (n, 2), by decreasing upper bound of their gains."""
    pairs = np.column_stack(np.triu_indices(len(topics.s), 1))
    parts = np.array_split(pairs, 1 + pairs.size * len(sizes) // _BLOCK_NUMBERS)
    most = [_greatest_gains(settings, topics, sizes, some) for some in parts]
    return pairs[np.argsort(-np.concatenate(most), kind="stable")]


def disjoint(pairs, n_pairs):
    """The first pairs (n, 2), at most ``n_pairs``, that share no topic with a pair before them."""
    taken, chosen = set(), []
    for k, l in pairs.tolist():
        if len(chosen) < n_pairs and not taken & {k, l}:
            taken |= {k, l}
            chosen.append((k, l))
    return np.array(chosen)


def join_pairs(topics, pairs):
    """Topics after each of some disjoint pairs (n, 2) has become one topic."""
    into = np.arange(len(topics.s))
    into[pairs[:, 1]] = pairs[:, 0]
    sums = np.eye(len(into))[into].T[np.unique(into)]  # 1 where a new topic takes over an old one
    return topics.mapped(lambda values: sums @ values)


def unions(settings, before, topics, items, pairs):
    """`Union` of each pair (n, 2) of ``topics``, which are ``before`` after one update."""
    observer = _UnionEntropies(pairs)
    update(settings, before, items, observer)
    gains = _gains(settings, topics, items.sizes, pairs, observer.entropy)
    return [Union(int(k), int(l), float(g)) for (k, l), g in zip(pairs, gains, strict=True)]


def merge_losses(settings, topics, kept):
    """`MergeLosses` of topics in the data that are kept, where the entropies of unions are known.

    They are changes of the bound after compression, when all items have their responsibilities under
    ``topics``.
    """
    K = len(topics.s)
    if K < 2:
        return MergeLosses.nothing(K)
    items = kept_items(settings.likelihood, kept)
    after = update(settings, topics, items)
    loss = loss_of_statistics(settings.likelihood, after.prior, after.s)
    np.fill_diagonal(loss, np.inf)
    pairs = likely_pairs(settings, after, items.sizes)
    best = np.unique([np.flatnonzero((pairs == k).any(axis=1))[0] for k in range(K)])
    lost = {
        union.members: -union.gain for union in unions(settings, topics, after, items, pairs[best])
    }
    order = -np.arange(len(pairs), dtype=float)
    return MergeLosses.of_pairs(
        np.argmin(loss, axis=1), pairs, order, lambda pair: (lost[pair], lost[pair])
    )
