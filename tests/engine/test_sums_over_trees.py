"""Sums over a tree do not depend on who adds up which part of it."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_bnp.engine.task import added_over_tree, added_siblings


def added(a, b):
    return f"({a}+{b})"  # tells the order of additions


def slow(items):
    """Twin of `added_over_tree`: pairs of neighbours, again and again."""
    while len(items) > 1:
        pairs = [[i for i in items[k : k + 2] if i is not None] for k in range(0, len(items), 2)]
        items = [added(*p) if len(p) == 2 else (p[0] if p else None) for p in pairs]
    return items[0]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 31, 80])
@pytest.mark.parametrize("seed", range(3))
def test_any_partition_gives_the_same_sum(n, seed):
    rng = np.random.default_rng(seed)
    items = [None if seed and rng.random() < 0.2 else i for i in range(n)]
    assert added_over_tree(added, items) == slow(items)
    owner = rng.integers(4, size=n)  # of which neighbours need not have the same
    parts = [
        added_siblings(added, {(0, i): items[i] for i in range(n) if owner[i] == w}, n)
        for w in range(4)
    ]
    first = added_siblings(added, {**parts[3], **parts[1]}, n)
    [root] = added_siblings(added, {**parts[0], **parts[2], **first}, n).values()
    assert root == slow(items)


def test_neighbours_are_added_where_they_are():
    """A part of neighbours leaves few nodes: at most two at each height."""
    for first, last in ((0, 64), (3, 61), (17, 40)):
        nodes = added_siblings(added, {(0, i): i for i in range(first, last)}, 80)
        heights = [height for height, _ in nodes]
        assert max(map(heights.count, heights)) <= 2 and len(nodes) <= 2 * 6
