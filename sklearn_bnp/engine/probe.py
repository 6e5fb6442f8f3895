"""Probes: requests to the local pass, by which trials and samples observe rows.

A *probe* is a value that says what to observe. It travels with the task to where the rows are, and makes an
*observer* there. The observer sees every block of rows with its responsibilities, and in the end the
statistics of the part. It returns one *finding* for each probe. Findings of the parts of a batch are added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._kernels._entropies import union_entropies
from .._kernels.threads import threads_for_unions
from .statistics import StatBag
from .unions import UnionFinding

# Rows that have less than this of the target go to the largest successor without a local step (4.2.1).
_LEAST_MASS = 1e-6


class Observer:
    """Observes one part of a batch during its local pass, for one probe or several.

    An observer lives as long as the pass. It is never pickled, and may change.

    Attributes
    ----------
    wants_alpha : bool
        Whether blocks of sequences need filtered probabilities, which have to be copied. False by default.
    """

    wants_alpha = False

    def observe(self, block):
        """See a block of rows with its responsibilities.

        Blocks come in the order of the rows; the blocks of one long sequence come in reverse order.

        Parameters
        ----------
        block : RowBlock, DocumentBlock or ChainBlock
            Rows of a mixture, entries of documents, or rows of sequences.
        """

    def revisit(self, rows):
        """See all rows of sequences once more, after all blocks.

        Parameters
        ----------
        rows : PreparedRows
            The rows of the part, for a local step of the observer's own.
        """

    def finish(self, statistics):
        """Findings of the part.

        Parameters
        ----------
        statistics : StatBag
            Statistics of the part, with the components in the order of ``task.uids``.

        Returns
        -------
        findings : list
            One for each probe, in their order.
        """


class Probe(ABC):
    """A value that says what to observe. It can be pickled, and nothing changes it."""

    @classmethod
    @abstractmethod
    def observer(cls, probes, task):
        """Make the observer, in the process where the rows are.

        Parameters
        ----------
        probes : list of Probe
            All probes of this class in the task: one observer may serve them together.
        task : LocalTask
            The local pass. Its ``model``, ``uids`` and ``rng`` may be used.

        Returns
        -------
        observer : Observer
            An observer of the part.
        """

    def added(self, first, second):
        """Add the findings of two parts of a batch.

        Parameters
        ----------
        first, second : object
            Findings of this probe. The part of ``first`` comes before that of ``second``.

        Returns
        -------
        finding : object
            Finding of both parts. By default ``first + second``.
        """
        return first + second


class Each(Observer):
    """An observer that hands everything to one observer for each probe.

    Parameters
    ----------
    observers : iterable of Observer
        In place of ``finish``, each has a method ``finding(statistics)``, which returns one finding.
    """

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
    """A restricted local step, which shares rows of components among their successors.

    The finding is the `StatBag` of the successors.

    Attributes
    ----------
    removed, created : tuple of int
        Uids of the components, and of their successors.
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
    """Adds up the statistics of the successors of one split."""

    def __init__(self, probe, likelihood):
        self._probe, self._likelihood = probe, likelihood
        J = len(probe.created)
        self._s, self._entropy = np.zeros((J, likelihood.n_statistics)), np.zeros(J)
        self._rest, self._entropy_of_rest = np.zeros(likelihood.n_statistics), 0.0

    def observe(self, block):
        columns = np.flatnonzero(np.isin(block.uids, self._probe.removed))
        mass = block.resp[:, columns].sum(axis=1, dtype=np.float64)
        # imputed rows have other statistics under the successors than under the target
        least = 0.0 if self._likelihood.imputes else _LEAST_MASS
        self._observe_rest(block, mass, np.flatnonzero((mass > 0.0) & (mass <= least)))
        for rows, n in block.by_places(np.flatnonzero(mass > least), columns, len(self._s)):
            weight = None if block.weight is None else block.weight[rows]
            s, entropy = np.empty_like(self._s), np.empty_like(self._entropy)
            z, own = block.z[rows], np.minimum(mass[rows], 1.0)
            self._likelihood.local_step(self._probe.coef, z, own, weight, s, entropy, n_nonzero=n)
            self._s += s
            self._entropy += entropy

    def _observe_rest(self, block, mass, rows):
        """Add up what the target has of rows of which it has next to nothing.

        It could be had as a difference of sums, but those of float32 rows are too rough for that. Where the
        successor that gets the rest is narrow and not at the origin, its scatter would be negative.
        """
        if len(rows) == 0:
            return
        small, s = mass[rows], np.empty((1, len(self._rest)))
        own = small if block.weight is None else small * block.weight[rows]
        self._likelihood.summarise(block.z[rows], own[:, np.newaxis], s)
        self._rest += s[0]
        self._entropy_of_rest -= own @ np.log(small)

    def finding(self, statistics):
        largest = int(np.argmax(self._s[:, -1]))  # the rest goes to the largest successor
        self._s[largest] += self._rest
        self._entropy[largest] += self._entropy_of_rest
        uids = np.asarray(self._probe.created, dtype=np.int64)
        return StatBag(uids, self._s, self._entropy)


@dataclass(frozen=True, eq=False)
class UnionProbe(Probe):
    """The entropy of the union of components.

    The finding is a number, or a `UnionFinding` where the model wants to know more of the union.

    Attributes
    ----------
    removed : tuple of int
        Uids of the components.
    """

    removed: tuple

    @classmethod
    def observer(cls, probes, task):
        return _UnionObserver(probes, task)

    def added(self, first, second):
        if isinstance(first, UnionFinding):
            return first.added(second)
        return first + second


class _UnionObserver(Observer):
    """Entropies of many unions at once, in one sweep over the responsibilities."""

    def __init__(self, probes, task):
        where = {uid: i for i, uid in enumerate(task.uids.tolist())}
        self._sets = [probe.removed for probe in probes]
        sets = [[where[uid] for uid in removed] for removed in self._sets]
        self._members = np.array([i for members in sets for i in members], dtype=np.intp)
        self._indptr = np.cumsum([0] + [len(members) for members in sets], dtype=np.intp)
        self._entropy, self._n_threads = np.zeros(len(sets)), task.n_threads

    def observe(self, block):
        out = np.empty_like(self._entropy)
        resp, members = block.resp, self._members
        n_threads = threads_for_unions(len(resp), len(members), self._n_threads)
        union_entropies(resp, block.weight, self._indptr, members, out, n_threads)
        self._entropy += out

    def finish(self, statistics):
        more = (statistics.extra.seen_of_union(removed) for removed in self._sets)
        return [
            entropy if seen is None else UnionFinding(entropy, seen)
            for entropy, seen in zip(self._entropy.tolist(), more, strict=True)
        ]
