"""Exchanges: each block of rows takes the better one of two sets of components.

Design note
-----------
(a) A search may find better components for some rows and worse ones for others, so that all of them together
    lose. Components that share rows are therefore linked across the two sets. What is linked is a *block*: a
    few components of one set and those of the other that hold nearly the same rows. Where blocks share few
    rows, each may be chosen by itself.
(b) What a block gains is not estimated: others hold a part of its rows, and terms of single components would
    forget that. The found components of one block at a time take the place of the present ones, a few
    steps follow, and the objective of all rows decides.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from .last_resort import WORTH_A_TRIAL

# Similarity of two components, the cosine of their responsibilities, from which they are linked, and from
# which they are the same.
_LINKED, _SAME = 0.1, 0.999
# Least norm that anything is divided by.
_LEAST_NORM = 1e-10
# Steps after an exchange of one block.
_STEPS = 2


def exchanged(small, present, found):
    """Statistics (J, P) of the present components, but those that were found in each block where these gain.

    They are None if no block gains, or if the two sets differ in one block only.

    Parameters
    ----------
    small : RestrictedMixture
        The components that may be replaced, on a sample of their rows.
    present, found : ndarray, shapes (K, P) and (K', P)
        Statistics of both sets of components on the sample.
    """
    present, entropy, resp = small.step(present)
    found, _, resp_found = small.step(found)
    mass, weight = small.sample.mass, small.sample.weight
    own = np.sqrt(mass if weight is None else mass * weight)[:, np.newaxis]
    block, block_found, differ = _blocks(_unit(own * resp).T @ _unit(own * resp_found))
    if len(differ) < 2:
        return None
    objective = small.objective(present, entropy)

    def mixed(blocks):
        return np.concatenate(
            [present[~np.isin(block, blocks)], found[np.isin(block_found, blocks)]]
        )

    def gain(b):
        s, entropy, _ = small.iterate(mixed([b]), _STEPS, 0.0)
        return small.objective(s, entropy) - objective

    better = [b for b in differ if gain(b) > WORTH_A_TRIAL]
    return mixed(better) if better else None


def _unit(resp):
    """Columns of length one."""
    return resp / np.maximum(np.linalg.norm(resp, axis=0), _LEAST_NORM)


def _blocks(similarity):
    """Blocks of the components of each set, arrays (K,) and (K',), and blocks in which the sets differ.

    ``similarity`` (K, K') is that of the components of one set to those of the other.
    """
    K, J = similarity.shape
    graph = np.zeros((K + J, K + J), dtype=bool)
    links = graph[:K, K:]
    links[:] = similarity > _LINKED
    links[np.arange(K), similarity.argmax(axis=1)] = True
    links[similarity.argmax(axis=0), np.arange(J)] = True
    n_blocks, label = connected_components(graph, directed=False)
    same = similarity > _SAME
    other = np.concatenate([~same.any(axis=1), ~same.any(axis=0)])  # than all of the other set
    n_present, n_found = (np.bincount(part, minlength=n_blocks) for part in (label[:K], label[K:]))
    n_other = np.bincount(label[other], minlength=n_blocks)
    return label[:K], label[K:], np.flatnonzero((n_present != n_found) | (n_other > 0))
