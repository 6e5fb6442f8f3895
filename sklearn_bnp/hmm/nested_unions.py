"""Unions of pairs of nested states, for as long as they raise the objective.

Design note
-----------
(a) The objective of a nested chain (``nested_chain.py``) has terms of data, of links, and the entropy.
    The change of the first two by a union of two states follows from their sums. The entropy of a union is
    never higher than that of its members, so only pairs for which these two terms rise need a look at rows.
(b) The entropy of the chain is taken to change as that of single rows does, in proportion.
(c) Several pairs are joined at a time, and passes over the rows follow. If the objective has then not risen,
    a third of these pairs are tried, the best ones.
(d) When no union is expected to gain, a few that lose least are still tried with passes: the other states may
    regain about the price of a state once its rows are theirs.
"""

from __future__ import annotations

import numpy as np

from ..engine.affinity import union_evidence_gains
from ..engine.unions import entropies_of_unions
from .second_try import price_of_state
from .weights import log_rising_factorial

# At most this part of the states goes in a round. Passes after each round, and after a single union.
_PART, _STEPS, _STEPS_OF_ONE = 1 / 6, 2, 3
# Unions that lose, by estimate, and are tried in a row.
_TRIES = 6


def joined(model, chain):
    """The chain after unions of pairs of its states.

    Parameters
    ----------
    model : NestedModel
    chain : Chain
        As a pass finds it, with responsibilities.

    Returns
    -------
    chain : Chain
        Of two states or more, as a pass finds it. Its bound is no lower.
    """
    while len(chain.s) > 2:
        pairs, gains = _likely_pairs(model, chain)
        fewer = _several(model, chain, pairs[gains > 0])
        if fewer is None:
            fewer = _one_of(model, chain, pairs[gains <= 0][:_TRIES])
        if fewer is None:
            break
        chain = fewer
    return chain


def _likely_pairs(model, chain):
    """Pairs (M, 2) of states whose union may raise the bound, and estimates (M,) of how much, best first."""
    i, j = np.triu_indices(len(chain.s), 1)
    gains = union_evidence_gains(model.likelihood, model.prior, chain.s, i, j)
    gains += gains_of_links(model.around, chain.links, i, j)
    i, j, gains = (x[gains > 0] for x in (i, j, gains))
    pairs, J = np.stack([i, j], axis=1), len(chain.s)
    groups = [(k,) for k in range(J)] + pairs.tolist()
    entropy = entropies_of_unions(chain.resp, model.sample.row_weight, groups, model.n_threads)
    alone = entropy[:J].sum()
    share = chain.entropy / alone if alone > 0 else 0.0
    gains += share * (entropy[J:] - entropy[i] - entropy[j])
    rows = model.sample.rows_owned(chain.s[:, -1], chain.resp)
    price = price_of_state(chain.s.shape[1], rows[pairs].min(axis=1))
    order = np.argsort(-gains, kind="stable")
    order = order[gains[order] > -price[order]]
    return pairs[order], gains[order]


def gains_of_links(around, links, i, j):
    """Change of the links' term by each union of states ``i[m]`` and ``j[m]``, shape (M,).

    The prior weights of the two add up.

    Parameters
    ----------
    around : Surroundings
    links : Links
    i, j : ndarray of int, shape (M,)
    """
    rise, m, J = log_rising_factorial, np.arange(len(i)), len(links.counts)
    counts, a, kappa = links.counts, around.alpha / J, around.kappa
    own = rise(counts, a)
    columns = rise(counts[:, i] + counts[:, j], 2 * a) - own[:, i] - own[:, j]
    rows = rise(counts[i] + counts[j], a) - own[i] - own[j]
    columns[i, m] = columns[j, m] = rows[m, i] = rows[m, j] = 0.0
    gains = columns.sum(axis=0) + rows.sum(axis=1)
    among = counts[i, i] + counts[i, j] + counts[j, i] + counts[j, j]
    stays = rise(np.diagonal(counts), a + kappa)
    gains += rise(among, 2 * a + kappa) - stays[i] - stays[j] - own[i, j] - own[j, i]
    entries, b = links.entries, around.rows[:, np.newaxis] / J
    own = rise(entries, b)
    gains += (rise(entries[:, i] + entries[:, j], 2 * b) - own[:, i] - own[:, j]).sum(axis=0)
    own = rise(links.exits, around.exits)
    both = rise(links.exits[i] + links.exits[j], around.exits)
    gains += (both - own[i] - own[j]).sum(axis=1)
    total = links.leaving.sum(axis=1)
    own = rise(total, around.whole)
    return gains - rise(total[i] + total[j], around.whole) + own[i] + own[j]


def _several(model, chain, pairs):
    """The chain after unions of some of these pairs, the best ones; None if they do not raise the bound."""
    most, J, chosen = max(1, int(_PART * len(chain.s))), len(chain.s), {}
    free = np.ones(J, dtype=bool)
    for a, b in pairs.tolist():
        if free[a] and free[b] and len(chosen) < most:
            chosen[a], free[a], free[b] = b, False, False
    while chosen:
        fewer = _united(model, chain, chosen, _STEPS)
        if fewer is not None:
            return fewer
        n = len(chosen) // 3
        chosen = dict(list(chosen.items())[:n])
    return None


def _one_of(model, chain, pairs):
    """The chain after a union of the first of these pairs that raises the bound; None if none does."""
    tried = (_united(model, chain, {a: b}, _STEPS_OF_ONE) for a, b in pairs.tolist())
    return next((fewer for fewer in tried if fewer is not None), None)


def _united(model, chain, unions, n_steps):
    """The chain after passes that begin with ``unions``, a dict; None if the bound does not rise."""
    gone = set(unions.values())
    groups = [(k, unions[k]) if k in unions else (k,) for k in range(len(chain.s)) if k not in gone]
    prior, before = model.prior, model.bound(chain)
    fewer = model.iterate(chain.grouped(groups), n_steps, 0.0)
    if fewer.resp is not None and model.bound(fewer) > before:
        return fewer
    model.prior = prior
    return None
