"""The local step of one part of a batch, as a pure function of values that can be pickled.

Design note
-----------
(a) A `LocalTask` holds all that a local pass depends on. `run` gives the same bits for it in any process
    of the same build, on any number of threads, whatever ran before. So a batch may be worked on
    where its rows are, and a task that was lost may be run again.
(b) A batch has *parts*. All parts of one visit are worked on under the same parameters; their results
    are added up over a tree that depends on the numbers of the parts alone. What is remembered of
    the batch is the sum. One part a batch is memoized inference (Hughes 2016, Alg. 3.3); one batch of
    all parts is full-data inference (Alg. 3.1), whose parts may run at the same time.
(c) Random draws of a task come from its seed and from their purpose, so that none depends on the order in
    which tasks are run.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..inputs.blas import blas_on_one_thread
from .statistics import StatBag


class Purpose(IntEnum):
    """Uses of random numbers: each has a generator of its own."""

    ORDER = 0
    PLAN = 1
    SAMPLE = 2
    STEPS = 3
    SHUFFLE = 4
    PROBE = 5


def generator(seed, purpose, *more):
    """A `numpy.random.RandomState` for one purpose; ``seed`` is a tuple of integers."""
    entropy = np.random.SeedSequence([*seed, int(purpose), *more])
    return np.random.RandomState(np.random.MT19937(entropy))


class LocalTask(NamedTuple):
    """Everything that the local pass over one part of a batch depends on.

    Parameters
    ----------
    model : Model
        The model, which makes the local pass.
    params : object
        Parameters of the local step, from ``model.coefficients``.
    uids : ndarray of int, shape (K,)
        Components that the parameters are of.
    part : Batch, or a reference to one
        Its ``load()`` gives the rows where the task runs.
    probes : tuple of Probe
        What to observe on the way.
    carry : object
        What the model wants to know of the part's last visit, from ``model.carry``; None if nothing.
    lap : int
        Laps that were made before.
    seed : tuple of int
        Seed of the fit, lap, pass of the lap, number of the batch, number of the part.
    n_nonzero : int or None
        L of L-sparse responsibilities; dense if None.
    n_threads : int
        No bit of the result depends on it.
    """

    model: Any
    params: Any
    uids: np.ndarray
    part: Any
    probes: tuple = ()
    carry: Any = None
    lap: int = 0
    seed: tuple = (0,)
    n_nonzero: int | None = None
    n_threads: int = 1

    def rng(self, purpose, *more):
        """The generator of this task for one purpose.

        Parameters
        ----------
        purpose : Purpose
            What the numbers are drawn for: no two purposes share a generator. Probes of a user's own take
            ``Purpose.PROBE``.
        *more : int
            Numbers that tell draws of one purpose apart, such as those of several probes.

        Returns
        -------
        rng : numpy.random.RandomState
            The same for the same task.
        """
        return generator(self.seed, purpose, *more)


class LocalResult(NamedTuple):
    """Statistics and findings of a `LocalTask`.

    Parameters
    ----------
    statistics : StatBag
        Of the part's rows, and what they leave behind beside sums: the carry of the next visit is in it.
    findings : tuple
        One for each probe.
    """

    statistics: StatBag
    findings: tuple


def run(task):
    """`LocalResult` of a `LocalTask`; None if its part turns out to have no rows: ``load()`` is None."""
    batch = task.part.load()
    if batch is None:
        return None
    observers = _observers(task)
    with blas_on_one_thread():
        statistics = task.model.local_pass(
            batch, task.params, task.uids, [observer for _, observer in observers],
            carry=task.carry, lap=task.lap, n_nonzero=task.n_nonzero, n_threads=task.n_threads,
        )  # fmt: skip
    findings = [None] * len(task.probes)
    for places, observer in observers:
        for i, finding in zip(places, observer.finish(statistics), strict=True):
            findings[i] = finding
    return LocalResult(statistics, tuple(findings))


def _observers(task):
    """Pairs (indices of probes, their observer): probes of one type are observed in one sweep."""
    places = {}
    for i, probe in enumerate(task.probes):
        places.setdefault(type(probe), []).append(i)
    return [
        (rows, kind.observer([task.probes[i] for i in rows], task)) for kind, rows in places.items()
    ]


def added_over_tree(add, items):
    """Sum of one item or more over a binary tree that depends on their number alone; None adds nothing."""
    items = list(items)
    [root] = added_siblings(
        add, {(0, i): item for i, item in enumerate(items)}, len(items)
    ).values()
    return root


def added_siblings(add, nodes, n):
    """Nodes of the binary tree over ``n`` items, in which nodes with the same parent are replaced by it.

    Whoever has some of the items may add up what they can, and others go on with what is left: when all items
    have met, the root is left, and its bits do not depend on who added what.

    Parameters
    ----------
    add : callable
    nodes : dict
        (height, place at this height) -> sum of the items below; None if they add nothing.
    n : int
    """
    nodes, height, size = dict(nodes), 0, n
    while size > 1:
        for i in sorted(i for h, i in nodes if h == height and i % 2 == 0):
            left, right, parent = (height, i), (height, i + 1), (height + 1, i // 2)
            if right in nodes:
                nodes[parent] = _added(add, nodes.pop(left), nodes.pop(right))
            elif i + 1 == size:  # the last of an odd number goes up alone
                nodes[parent] = nodes.pop(left)
        height, size = height + 1, -(-size // 2)
    return nodes


def _added(add, first, second):
    if first is None or second is None:
        return second if first is None else first
    return add(first, second)


def combined(probes, results):
    """`LocalResult` of a batch from those of its parts in order; None if all of these are None."""
    return added_over_tree(partial(_both, probes), results)


def partly_combined(probes, nodes, n):
    """Combine the results of some of ``n`` parts as far as they can be added; see `added_siblings`."""
    return added_siblings(partial(_both, probes), nodes, n)


def _both(probes, first, second):
    """`LocalResult` of two sets of parts."""
    findings = tuple(
        probe.added(*pair)
        for probe, *pair in zip(probes, first.findings, second.findings, strict=True)
    )
    return LocalResult(first.statistics.add(second.statistics), findings)


def cut_anew(carries, batches):
    """The carry of each of some batches, a list, from those of batches with the same rows, cut elsewhere.

    They are None if that of any batch is.
    """
    if any(carry is None for carry in carries):
        return [None] * len(batches)
    whole, edges = carries[0].joined(carries[1:]), np.cumsum([0, *(one.n_units for one in batches)])
    return [whole.part(a, b) for a, b in pairwise(edges)]
