"""Exchanges: each block of rows takes the better one of two sets of states.

Design note
-----------
(a) A search may find better states for some rows and worse ones for others. Blocks of rows
    (``engine/matching_components.py``) are therefore judged one by one. That serves the better one of two
    chains, whichever it is.
(b) The states of the two chains have no transitions between them. So all rows go to the state that they are
    most likely in, the links of these are counted, and a pass follows.
(c) One pass tells whether a block gains: nine in ten of those that gained after eight passes did after one.
"""

from __future__ import annotations

import numpy as np

from ..engine.matching_components import blocks_that_differ, members, similarities
from .creation import statistics_of_labels

# Similarities from which states are linked: blocks of several sizes are tried.
_LEVELS = (0.1, 0.3, 0.5)
# Passes after an exchange of all blocks that gain, and the least gain of one, in nats.
_STEPS, _LEAST_GAIN = 8, 0.5


def exchanged(model, better, worse):
    """The chain ``better``, but with the states of ``worse`` in blocks of rows where that raises the bound.

    Parameters
    ----------
    model : NestedModel
        Its prior is that of ``better``. Afterwards, it is that of the chain that is returned, if one is.
    better, worse : Chain
        Chains of the same rows, with responsibilities.

    Returns
    -------
    chain : Chain or None
        None if no block gains, or if the chains differ in one block only.
    """
    mass = model.sample.row_weight
    blocks = blocks_that_differ(similarities(better.resp, worse.resp, mass), _LEVELS)
    before, prior = model.bound(better), model.prior

    def tried(blocks, n_steps):
        model.prior = prior
        chain = model.iterate(_mixed(model, better, worse, blocks), n_steps, 0.0)
        return chain, -np.inf if chain.resp is None else model.bound(chain) - before

    gains = {block: tried([block], 1)[1] for block in blocks}
    chosen = _disjoint(gains)
    if not chosen:
        return None
    chain, gain = tried(chosen, _STEPS)
    if gain < gains[chosen[0]]:
        chain, gain = tried(chosen[:1], _STEPS)
    return chain if gain > 0 else None


def _disjoint(gains):
    """Blocks that gain, the best first, of which no two share a state."""
    chosen, used = [], (set(), set())
    for block in sorted(gains, key=gains.get, reverse=True):
        if gains[block] > _LEAST_GAIN and not any(
            u & set(b) for u, b in zip(used, block, strict=True)
        ):
            chosen.append(block)
            for u, b in zip(used, block, strict=True):
                u.update(b)
    return chosen


def _mixed(model, better, worse, blocks):
    """The chain of rows by their likeliest states, which in these blocks are those of ``worse``."""
    given, taken = members(blocks)
    resp = np.hstack([np.delete(better.resp, given, axis=1), worse.resp[:, taken]])
    used, labels = np.unique(resp.argmax(axis=1), return_inverse=True)
    s = statistics_of_labels(model.likelihood, model.sample, labels, len(used))
    return model.labelled(s, labels)
