"""Parts of a set of items: cut in two again and again, and refined together.

Design note
-----------
(a) Many clusters that touch can look like one to every cut in two. Each half then still covers many clusters,
    and gains less than the entropy of the cut costs. Parts of about the size of a cluster gain.
(b) Each round cuts all parts in two and refines them. The first round whose parts gain is taken. Cuts go
    through clusters, so parts are also joined where that raises their value, and then refined again.
(c) Parts are refined on a sample of the items, in which copies count once. If they gain there, they are
    summed over all items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.agglomeration import agglomerate
from ..engine.unions import UnionsOfRows
from .halves import Summary, principal_side, softmax_and_log_sum, summary_of

# Rounds of cuts: there are at most 2, 4, 8 parts.
_ROUNDS = 3
# Items of the sample.
_SAMPLED = 8000
# Updates end when less than this share of the rows moves, or after so many.
_MOVED, _MAX_ITER = 0.002, 60
# Steps of alpha take as long as an update, and alpha changes slowly: it is updated once in so many.
_ALPHA_EVERY = 3
# A part of fewer items is not cut again, and one that has fewer rows left is given up.
_LEAST_ITEMS, _LEAST_ROWS = 8, 1.0


class Parts(NamedTuple):
    """Parts of a set of items: their responsibilities (J, m) for the items, and `Summary`."""

    resp: np.ndarray
    summary: Summary


def parts_that_gain(part, rules, alpha, most, gain):
    """`Parts` of an `ItemSubset` that gain, and their gain; None and -inf if none are found.

    Parameters
    ----------
    alpha : float
        Prior weight of the topic whose items they are.
    most : int
        Most parts.
    gain : callable
        ``gain(parts)`` is the gain of `Parts` of all items.
    """
    step = -(-len(part.n) // _SAMPLED)
    sample = part if step == 1 else part.where(np.arange(len(part.n)) % step == 0)
    once, rows = (rules, sample.n) if rules.once is None else (rules.once, sample.distinct)
    n = rows * ((part.n if rules.once is None else part.distinct).sum() / rows.sum())
    resp = np.ones((1, len(n)))
    one = summary_of(sample, once, n, resp, np.array([alpha]))
    points, least = sample.points(rules.prior, one.s[0]), once.total(one)
    for _ in range(_ROUNDS):
        cut = _cut(points, n, resp)
        if len(cut) == len(resp):
            break
        wide = _refined(sample, once, n, cut, alpha)
        joined = _refined(sample, once, n, _joined(once, n, wide), alpha)
        best = max(wide, joined, key=lambda parts: once.total(parts.summary))
        if 1 < len(best.resp) <= most and once.total(best.summary) > least:
            found = _summed(part, rules, once, best.summary)
            gained = gain(found)
            if gained > 0:
                return found, gained
        resp = wide.resp
    return None, -np.inf


def _cut(points, n, resp):
    """Responsibilities (J, m), 0 or 1, after a cut of each part that has enough items in two.

    The items have ``n`` (m,) rows.
    """
    labels = resp.argmax(axis=0)
    for j in range(len(resp)):
        own = np.flatnonzero(labels == j)
        if len(own) >= _LEAST_ITEMS:
            labels[own[principal_side(points[own], n[own])]] += len(resp)
    return (np.unique(labels)[:, np.newaxis] == labels).astype(float)


def _refined(part, rules, n, resp, alpha):
    """`Parts` after restricted updates from ``resp`` (J, m), of items with ``n`` (m,) rows.

    At first each part has a share of the number ``alpha``, by its rows.
    """
    alpha = alpha * (resp @ n) / n.sum()
    for i in range(_MAX_ITER):
        s, counts = part.sums(n * resp)
        lasting = s[:, -1] > min(_LEAST_ROWS, s[:, -1].max() / 2)
        s, counts, alpha, before = s[lasting], counts[lasting], alpha[lasting], resp[lasting]
        if i % _ALPHA_EVERY == 0:
            alpha = rules.raised_alpha(counts, alpha, 1)
        resp = _responsibilities(part, rules, s, counts, alpha)
        if 0.5 * np.abs(resp - before).sum(axis=0) @ n < _MOVED * n.sum():
            break
    return Parts(resp, summary_of(part, rules, n, resp, alpha))


def _responsibilities(part, rules, s, counts, alpha):
    """Responsibilities (J, m) of parts with these sums and prior weights (J,)."""
    coef, psi = rules.log_weights(s, counts, alpha)
    return softmax_and_log_sum(part.products(coef.T, psi.T))[0].T


def _summed(part, rules, once, sampled):
    """`Parts` of all items, from the `Summary` of those of a sample, found by the rules ``once``."""
    resp = _responsibilities(part, once, sampled.s, sampled.counts, sampled.alpha)
    return Parts(resp, summary_of(part, rules, part.n, resp, sampled.alpha))


def _joined(rules, n, parts):
    """Responsibilities (J, m) after the unions of parts that raise their value most."""
    s, counts, alpha, _ = parts.summary
    rules, n_groups = rules.tangent(alpha.sum()), counts.shape[1]

    def values(columns):
        counts, alpha, s = np.split(columns, [n_groups, n_groups + 1], axis=1)
        alpha = rules.raised_alpha(counts, alpha[:, 0], 1)
        return rules.values(s, counts, np.zeros(len(s)), alpha)

    columns = np.column_stack([counts, alpha, s])
    unions = UnionsOfRows(np.ascontiguousarray(parts.resp.T), n)
    own = unions([[j] for j in range(len(s))])
    tree = agglomerate(columns, own, unions.growing(), values, lambda n: 0.0)
    return np.array([parts.resp[list(group)].sum(axis=0) for group in tree.cut])
