"""Blocks of rows: components of two sets that hold nearly the same rows.

Components that share rows are linked across the two sets. What is linked is a block: a few components of one
set and those of the other. Where blocks share few rows, each may be chosen from the one set or from the other
by itself.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

# Similarity of two components, the cosine of their responsibilities, from which they are the same.
_SAME = 0.999
# Least norm that anything is divided by.
_LEAST_NORM = 1e-10


def similarities(resp, other, mass):
    """Similarities (K, K') of the components of two sets: cosines of their responsibilities.

    Parameters
    ----------
    resp, other : ndarray, shapes (n, K) and (n, K')
    mass : ndarray, shape (n,), or None
        Masses of the rows; None if they are all 1.
    """
    own = 1.0 if mass is None else np.sqrt(mass)[:, np.newaxis]
    return _unit(own * resp).T @ _unit(own * other)


def _unit(resp):
    """Columns of length one."""
    return resp / np.maximum(np.linalg.norm(resp, axis=0), _LEAST_NORM)


def blocks_that_differ(similarity, levels):
    """Blocks in which two sets differ, pairs of tuples: components of the one and of the other set.

    Each component is linked to its most similar one, and to all that are more similar than a level. Each
    level has its own blocks. None of them are given where all that differs is in one block.

    Parameters
    ----------
    similarity : ndarray, shape (K, K')
    levels : sequence of float
    """
    same = similarity > _SAME
    unlike = ~same.any(axis=1), ~same.any(axis=0)
    found = {}
    for level in levels:
        blocks = [
            (one, two)
            for one, two in _blocks(similarity, level)
            if len(one) != len(two) or unlike[0][list(one)].any() or unlike[1][list(two)].any()
        ]
        if len(blocks) > 1:
            found.update(dict.fromkeys(blocks))
    return list(found)


def _blocks(similarity, level):
    """All blocks of components that are linked."""
    K, J = similarity.shape
    graph = np.zeros((K + J, K + J), dtype=bool)
    links = graph[:K, K:]
    links[:] = similarity > level
    links[np.arange(K), similarity.argmax(axis=1)] = True
    links[similarity.argmax(axis=0), np.arange(J)] = True
    n_blocks, label = connected_components(graph, directed=False)
    for b in range(n_blocks):
        one, two = (np.flatnonzero(part == b).tolist() for part in (label[:K], label[K:]))
        yield tuple(one), tuple(two)


def members(blocks):
    """Components of the first and of the second set, two sorted lists, that are part of any of the blocks."""
    return tuple(sorted({k for block in blocks for k in block[i]}) for i in (0, 1))
