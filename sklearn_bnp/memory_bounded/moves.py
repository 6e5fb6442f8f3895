"""Splits and merges of topics: candidates ranked as by Ueda et al., and what each would bring.

Ueda, Nakano, Ghahramani and Hinton, SMEM algorithm for mixture models, Neural Computation 12, 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._entropies import union_entropies
from ..engine.affinity import union_evidence
from .halves import ItemSubset, Rules, Summary, halve, whole
from .objective import document_rises, log_prior, price
from .updates import update

# Pairs whose gain is bounded, for each one that is evaluated.
_PAIRS_LOOKED_AT = 10
# Numbers that gains of all pairs are worked out on at a time.
_BLOCK_NUMBERS = 4_000_000


class Survey:
    """What candidates are found by: labels of all items, and how much topics overlap.

    An observer of `updates.update`.

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


class _Unions:
    """Entropies of unions of pairs, summed over the items; an observer of `updates.update`."""

    def __init__(self, pairs):
        self.members = np.ascontiguousarray(pairs, dtype=np.intp).ravel()
        self.indptr = np.arange(0, 2 * len(pairs) + 1, 2, dtype=np.intp)
        self.entropy = np.zeros(len(pairs))

    def __call__(self, first, n, resp):
        own = np.empty_like(self.entropy)
        union_entropies(np.ascontiguousarray(resp), n, self.indptr, self.members, own, 1)
        self.entropy += own


class Split(NamedTuple):
    """A topic ``k`` in two, and by how much that seems to raise the bound."""

    k: int
    summary: Summary
    gain: float

    @property
    def members(self):
        return (self.k,)

    def apply(self, topics):
        """Topics with the second half in a new last place."""
        value = self.summary
        fields = {"s": value.s, "counts": value.counts, "alpha": value.alpha}
        fields["entropy"] = np.zeros(2)  # the next update finds it
        return topics._replace(
            **{name: _replaced(getattr(topics, name), self.k, new) for name, new in fields.items()}
        )

    def names(self, uids, fresh):
        """The topics' names afterwards, two of them ``fresh``."""
        return _replaced(uids, self.k, np.array(fresh[:2]))


class Union(NamedTuple):
    """Topics ``k`` < ``l`` as one, and by how much exactly that raises the bound."""

    k: int
    l: int
    gain: float

    @property
    def members(self):
        return (self.k, self.l)

    def apply(self, topics):
        """Topics without the second one."""
        fields = {
            name: getattr(topics, name).copy() for name in ("s", "counts", "alpha", "entropy")
        }
        for value in fields.values():
            value[self.k] += value[self.l]
        joined = topics._replace(**fields)
        return joined.take(np.arange(len(joined.s)) != self.l)

    def names(self, uids, fresh):
        """The topics' names afterwards."""
        uids = uids.copy()
        uids[self.k] = fresh[0]
        return np.delete(uids, self.l)


class Swap(NamedTuple):
    """A split and a union of two other topics at once, where there may not be more topics."""

    split: Split
    union: Union
    gain: float

    @property
    def members(self):
        return (self.split.k, self.union.k, self.union.l)

    def _later(self):
        """The split, once the union is made."""
        return self.split._replace(k=self.split.k - (self.split.k > self.union.l))

    def apply(self, topics):
        """Topics after both."""
        return self._later().apply(self.union.apply(topics))

    def names(self, uids, fresh):
        """The topics' names afterwards."""
        return self._later().names(self.union.names(uids, fresh[2:]), fresh[:2])


def swaps(splits, merges):
    """`Swap` of each split with the union of others that loses least."""
    merges = sorted(merges, key=lambda union: -union.gain)
    out = []
    for split in splits:
        union = next((u for u in merges if split.k not in u.members), None)
        if union is not None:
            out.append(Swap(split, union, split.gain + union.gain))
    return out


def _replaced(values, k, new):
    out = np.concatenate([values, new[1:]])
    out[k] = new[0]
    return out


# ---------------------------------------------------------------------- splits


def split_order(settings, topics):
    """Topics by Ueda's split criterion, the least well described first.

    The Kullback-Leibler divergence between the rows of a topic and its density, which is a function of
    what was summed: ``-H_k / N_k - log N_k - theta_k . s_k / N_k``.
    """
    n = topics.s[:, -1]
    coef = settings.likelihood.coefficients(topics.prior, topics.s)
    fit = np.einsum("kp,kp->k", coef, topics.s)
    return np.argsort((topics.entropy + fit) / n + np.log(n), kind="stable")


def rules_of_splits(settings, topics, items):
    """`Rules` of halves of a topic."""
    cost = price(items.lengths, items.sizes, topics.alpha.sum(), settings.rate)
    return Rules(settings.likelihood, topics.prior, items.sizes, settings.shape, cost)


def split(settings, topics, items, k, which, rules):
    """`Split` of a topic, judged by the items ``which`` are most its own; a gain of -inf if there is none."""
    if len(which) < 2:
        return Split(k, None, -np.inf)
    part = ItemSubset(items, which, settings.likelihood)
    one = whole(part, rules, topics.alpha[k])
    halves = halve(part, rules, one)
    if halves is None:
        return Split(k, None, -np.inf)
    return Split(k, halves.summary, float(halves.summary.value.sum() - one.value[0]))


# ---------------------------------------------------------------------- merges


def _gains(settings, topics, sizes, pairs, entropy):
    """Gains (n,) of pairs (n, 2) whose unions have these entropies."""
    evidence = settings.likelihood.evidence(topics.prior, topics.s)
    rises = document_rises(topics.counts, topics.alpha, sizes)
    prior = log_prior(topics.alpha, settings.shape, settings.rate)
    own = evidence + rises + prior + topics.entropy
    k, l = pairs.T
    alpha = topics.alpha[k] + topics.alpha[l]
    union = (
        union_evidence(settings.likelihood, topics.prior, topics.s, k, l)
        + document_rises(topics.counts[k] + topics.counts[l], alpha, sizes)
        + log_prior(alpha, settings.shape, settings.rate)
    )
    return union + entropy - own[k] - own[l]


def pairs_to_merge(settings, topics, sizes, overlap, n_pairs, known):
    """At most ``n_pairs`` pairs (n, 2) that overlap most and might gain; not those that are ``known``."""
    k, l = np.triu_indices(len(overlap), 1)
    value = overlap[k, l]
    order = np.argsort(-value, kind="stable")
    order = [i for i in order[: 4 * _PAIRS_LOOKED_AT * n_pairs] if value[i] > 0]
    pairs = [(k[i], l[i]) for i in order if not known(k[i], l[i])]
    pairs = np.array(pairs[: _PAIRS_LOOKED_AT * n_pairs], dtype=np.intp).reshape(-1, 2)
    if len(pairs):
        most = topics.entropy[pairs].sum(axis=1)  # of a union, (4.1.2) of Hughes (2016)
        pairs = pairs[_gains(settings, topics, sizes, pairs, most) > 0]
    return pairs[:n_pairs]


def likely_pairs(settings, topics, sizes):
    """All pairs (n, 2), those first that seem to lose least when joined.

    Their unions are taken to have the members' entropies: gains are bounded, not known.
    """
    pairs = np.column_stack(np.triu_indices(len(topics.s), 1))
    parts = np.array_split(pairs, 1 + pairs.size * len(sizes) // _BLOCK_NUMBERS)
    most = [
        _gains(settings, topics, sizes, some, topics.entropy[some].sum(axis=1)) for some in parts
    ]
    return pairs[np.argsort(-np.concatenate(most), kind="stable")]


def disjoint(pairs, n_pairs):
    """The first ``n_pairs`` pairs (n, 2), at the most, of which none shares a topic with one before."""
    taken, chosen = set(), []
    for k, l in pairs.tolist():
        if len(chosen) < n_pairs and not taken & {k, l}:
            taken |= {k, l}
            chosen.append((k, l))
    return np.array(chosen)


def join_pairs(topics, pairs):
    """Topics of which disjoint pairs (n, 2) are one each."""
    into = np.arange(len(topics.s))
    into[pairs[:, 1]] = pairs[:, 0]
    sums = np.eye(len(into))[into].T  # (K, K): what each topic takes over
    sums = sums[np.unique(into)]
    return topics._replace(
        s=sums @ topics.s, counts=sums @ topics.counts, entropy=sums @ topics.entropy,
        alpha=sums @ topics.alpha,
    )  # fmt: skip


def unions(settings, before, topics, items, pairs):
    """`Union` of each pair of ``topics``, which are what an update makes of those ``before``."""
    observer = _Unions(pairs)
    update(settings, before, items, observer)
    gains = _gains(settings, topics, items.sizes, pairs, observer.entropy)
    return [Union(int(k), int(l), float(g)) for (k, l), g in zip(pairs, gains, strict=True)]
