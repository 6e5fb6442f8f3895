"""Probes: what a local pass observes on behalf of proposals.

A *probe* is a value that says what to observe. It travels with the task to where the rows are, and is
turned into an *observer* there. The observer sees every block of rows with its responsibilities, and
when the part is done it is told the part's statistics. It returns one *finding* a probe.
Findings of the parts of a batch add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._kernels._entropies import union_entropies
from .statistics import StatBag

# Rows with less of the target than this go to the largest successor without a local step (4.2.1).
_LEAST_MASS = 1e-6


class Observer:
    """Looks at a part of a batch during its local pass.

    Attributes
    ----------
    wants_alpha : bool
        Whether blocks of sequences should come with filtered probabilities, which have to be copied.
    """

    wants_alpha = False

    def observe(self, block):
        """Take note of a block; those of one long sequence come in turn, the last one first."""

    def revisit(self, rows):
        """Take note of all `PreparedRows` of sequences, when all of their blocks have been seen."""

    def finish(self, statistics):
        """Findings, listed as the probes were, of a part with these statistics."""


class Probe(ABC):
    """A value that says what to observe: it can be pickled, and is never changed."""

    @classmethod
    @abstractmethod
    def observer(cls, probes, task):
        """The `Observer` of several probes of this class on the part of a `LocalTask`."""

    def added(self, first, second):
        """The finding of two parts of a batch, of which ``first`` comes before ``second``."""
        return first + second


class Each(Observer):
    """One observer a probe; each has ``finding(statistics)``."""

    def __init__(self, observers):
        self._observers = list(observers)
        self.wants_alpha = any(observer.wants_alpha for observer in self._observers)

    def observe(self, block):
        for observer in self._observers:
            observer.observe(block)

    def revisit(self, rows):
        for observer in self._observers:
            observer.revisit(rows)

    def finish(self, statistics):
        return [observer.finding(statistics) for observer in self._observers]


@dataclass(frozen=True, eq=False)
class SplitProbe(Probe):
    """Rows of components shared out among successors by a restricted local step.

    Its finding is the `StatBag` of the successors on the rows observed.

    Attributes
    ----------
    removed, created : tuple of int
        Uids.
    coef : ndarray, shape (J, P)
        Coefficients of the successors' log weights.
    """

    removed: tuple
    created: tuple
    coef: np.ndarray

    @classmethod
    def observer(cls, probes, task):
        return Each(_SplitObserver(probe, task.model.likelihood) for probe in probes)

    def added(self, first, second):
        return first.add(second)


class _SplitObserver(Observer):
    """Adds up what the successors of one split would have."""

    def __init__(self, probe, likelihood):
        self._probe, self._likelihood = probe, likelihood
        J = len(probe.created)
        self._s, self._entropy = np.zeros((J, likelihood.n_statistics)), np.zeros(J)
        self._rest = 0.0

    def observe(self, block):
        columns = np.flatnonzero(np.isin(block.uids, self._probe.removed))
        mass = block.resp[:, columns].sum(axis=1, dtype=np.float64)
        # what completed rows left with the target is not what they leave with its successors
        least = 0.0 if self._likelihood.imputes else _LEAST_MASS
        small = mass[mass <= least]
        if len(small) and small.any():
            w = 1.0 if block.weight is None else block.weight[mass <= least]
            self._rest -= np.sum(w * small * np.log(np.where(small > 0, small, 1.0)))
        for rows, n in block.by_places(np.flatnonzero(mass > least), columns, len(self._s)):
            weight = None if block.weight is None else block.weight[rows]
            s, entropy = np.empty_like(self._s), np.empty_like(self._entropy)
            z, own = block.z[rows], np.minimum(mass[rows], 1.0)
            self._likelihood.local_step(self._probe.coef, z, own, weight, s, entropy, n_nonzero=n)
            self._s += s
            self._entropy += entropy

    def finding(self, statistics):
        if not self._likelihood.imputes:  # the largest has what small masses left with the removed
            largest = int(np.argmax(self._s[:, -1]))
            own = statistics.s[np.isin(statistics.uids, self._probe.removed)]
            self._s[largest] += own.sum(axis=0) - self._s.sum(axis=0)
            self._entropy[largest] += self._rest
        uids = np.asarray(self._probe.created, dtype=np.int64)
        return StatBag(uids, self._s, self._entropy)


@dataclass(frozen=True, eq=False)
class UnionProbe(Probe):
    """The entropy that components would have as one: a number.

    Attributes
    ----------
    removed : tuple of int
        Uids of the components.
    """

    removed: tuple

    @classmethod
    def observer(cls, probes, task):
        return _UnionObserver(probes, task)


class _UnionObserver(Observer):
    """Entropies of many unions at once, in one sweep over the responsibilities."""

    def __init__(self, probes, task):
        where = {uid: i for i, uid in enumerate(task.uids.tolist())}
        sets = [[where[uid] for uid in probe.removed] for probe in probes]
        self._members = np.array([i for members in sets for i in members], dtype=np.intp)
        self._indptr = np.cumsum([0] + [len(members) for members in sets], dtype=np.intp)
        self._entropy, self._n_threads = np.zeros(len(sets)), task.n_threads

    def observe(self, block):
        out = np.empty_like(self._entropy)
        union_entropies(block.resp, block.weight, self._indptr, self._members, out, self._n_threads)
        self._entropy += out

    def finish(self, statistics):
        return self._entropy.tolist()
