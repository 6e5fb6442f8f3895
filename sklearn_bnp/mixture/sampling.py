"""Rows drawn during a lap, for proposals to look at when it ends."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..engine import random_keys
from ..engine.probe import Each, Observer, Probe
from ..engine.samples import Sample, UniformSample
from ..engine.task import Purpose
from ..inputs.rows import RowBuffer, none_of, stacked

# A row belongs to a component's sample if the component has this share of it (4.2.1).
_LEAST_SHARE = 0.1
# Rows drawn from all, for entropies of unions; more if a proposal wants more.
_UNIFORM_ROWS = 2000
# In a dict of wanted rows, the key of those drawn from all.
EVERYTHING = ()


class RowsOfBlock(NamedTuple):
    """Rows drawn from one block, for several samples.

    Attributes
    ----------
    z : ndarray, shape (n, D')
    share : ndarray, shape (n,) or (n, K)
        Responsibilities, of the component whose sample a row is in, or of all.
    weight : ndarray, shape (n,), or None
        Sample weights; None if no rows have any.
    column : ndarray of int, shape (n,)
        The sample that each row is in; sorted.
    key : ndarray, shape (n,)
    """

    z: np.ndarray
    share: np.ndarray
    weight: np.ndarray | None
    column: np.ndarray
    key: np.ndarray

    def taken(self, keep):
        """The rows for which ``keep`` (n,) holds."""
        return RowsOfBlock(*(None if field is None else field[keep] for field in self))


class Draw(NamedTuple):
    """Rows in several samples: all that were seen whose key is below the threshold of their sample.

    Attributes
    ----------
    rows : tuple of RowsOfBlock
    threshold : ndarray, shape (m,)
    """

    rows: tuple
    threshold: np.ndarray

    def with_rows(self, rows, budget):
        """The draw with `RowsOfBlock` more; samples that have outgrown the budget (m,) are cut to it."""
        draw = self._replace(rows=(*self.rows, rows))
        return draw.below(_cut(draw, budget, random_keys.OUTGROWN))

    def joined(self, other, budget):
        """Both draws as one; samples that have outgrown the budget (m,) are cut to it."""
        least = np.minimum(self.threshold, other.threshold)
        both = Draw((*self.below(least).rows, *other.below(least).rows), least)
        return both.below(_cut(both, budget, random_keys.OUTGROWN))

    def below(self, threshold):
        """The rows whose keys are below a threshold (m,) that is no higher."""
        if np.array_equal(threshold, self.threshold):
            return self
        return Draw(tuple(r.taken(r.key < threshold[r.column]) for r in self.rows), threshold)


def _cut(draw, budget, times):
    """Thresholds (m,) that cut samples to their budgets where they hold more than so many times these."""
    held = np.zeros(len(budget), dtype=np.intp)
    for r in draw.rows:
        held += np.bincount(r.column, minlength=len(held))
    outgrown = np.flatnonzero(held > times * budget)
    if len(outgrown) == 0:
        return draw.threshold
    threshold = draw.threshold.copy()
    for k in outgrown:
        key = np.concatenate([r.key[r.column == k] for r in draw.rows])
        threshold[k] = np.partition(key, budget[k])[budget[k]]
    return threshold


@dataclass(frozen=True, eq=False)
class RowProbe(Probe):
    """Rows of chosen components, and rows of all, to be drawn by their keys.

    Its finding is a pair of `Draw`: of the components, and of all rows.

    Attributes
    ----------
    uids : tuple of int
        Components whose rows are wanted.
    budget, uniform_budget : ndarray, shapes (m,) and (1,)
        Rows of each, and rows of all.
    threshold, uniform_threshold : ndarray, shapes (m,) and (1,)
        Rows with greater keys are not wanted.
    mean_weight : float or None
        Of rows, about; None if they have no weights.
    """

    uids: tuple
    budget: np.ndarray
    uniform_budget: np.ndarray
    threshold: np.ndarray
    uniform_threshold: np.ndarray
    mean_weight: float | None

    @classmethod
    def observer(cls, probes, task):
        return Each(_RowObserver(probe, task) for probe in probes)

    def added(self, first, second):
        """`Draw` objects of two parts as one each."""
        pairs = zip(first, second, (self.budget, self.uniform_budget), strict=True)
        return tuple(one.joined(other, budget) for one, other, budget in pairs)


class _RowObserver(Observer):
    """Draws rows while blocks pass by."""

    def __init__(self, probe, task):
        self._probe, self._rng = probe, task.rng(Purpose.SAMPLE)
        where = {uid: k for k, uid in enumerate(task.uids.tolist())}
        self._columns = np.array([where[uid] for uid in probe.uids], dtype=np.intp)
        self._samples = Draw((), probe.threshold)
        self._uniform = Draw((), probe.uniform_threshold)

    def observe(self, block):
        n = block.z.shape[0]
        weight = random_keys.weights(block.weight, n, self._probe.mean_weight)
        everyone = np.arange(n), np.zeros(n, dtype=np.intp)
        self._uniform = self._with_drawn(
            self._uniform, self._probe.uniform_budget, block, weight, *everyone, block.resp
        )
        if not self._probe.uids:
            return
        share = block.resp[:, self._columns]
        rows, column = np.nonzero(share > _LEAST_SHARE)
        self._samples = self._with_drawn(
            self._samples, self._probe.budget, block, weight, rows, column, share
        )

    def _with_drawn(self, draw, budget, block, weight, rows, column, share):
        """The draw with those of candidates ``rows`` for samples ``column`` that are wanted."""
        of_rows = None if weight is None else weight[rows]
        key = random_keys.keys(len(rows), of_rows, self._probe.mean_weight, self._rng)
        kept = np.flatnonzero(key < draw.threshold[column])
        kept = kept[np.argsort(column[kept], kind="stable")]
        rows, column, key = rows[kept], column[kept], key[kept]
        weight = None if weight is None else weight[rows]
        share = share[rows] if share is block.resp else share[rows, column]
        own = RowsOfBlock(block.z[rows], share, weight, column, key)
        return draw.with_rows(own, budget)

    def finding(self, statistics):
        return self._samples, self._uniform


class RowSampling:
    """Samples of the rows of chosen components, over all batches, in one pass.

    Each row of component k is kept with the same probability in all batches, chosen so that about
    ``wanted[k]`` rows are kept.

    Parameters
    ----------
    wanted : dict
        Uid -> number of rows to keep; `EVERYTHING` -> number of rows drawn from all, 2000 if it is lacking.
    totals : StatBag
        Without weights, counts from which the probabilities are found.
    mean_weight : float or None
        Of rows, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, mean_weight=None):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self.uids = tuple(uid for uid in wanted if uid in where)
        self._mean_weight = mean_weight
        budget = np.array([wanted[uid] for uid in self.uids], dtype=np.intp)
        n = totals.n[[where[uid] for uid in self.uids]] if self.uids else np.empty(0)
        self._samples = _Held(budget, random_keys.first_threshold(budget, n, mean_weight))
        budget = np.array([wanted.get(EVERYTHING, _UNIFORM_ROWS)], dtype=np.intp)
        threshold = random_keys.first_threshold(budget, totals.n.sum(), mean_weight)
        self._uniform = _Held(budget, threshold)

    def copy(self):
        """Samples that do not follow these."""
        other = copy(self)
        other._samples, other._uniform = self._samples.copy(), self._uniform.copy()
        return other

    @property
    def probe(self):
        """The `RowProbe` of the next batch."""
        return RowProbe(
            self.uids, self._samples.budget, self._uniform.budget, self._samples.threshold,
            self._uniform.threshold, self._mean_weight,
        )  # fmt: skip

    def take(self, number, finding):
        """Keep what was drawn from a batch; if it was seen earlier in the lap, that is replaced."""
        samples, uniform = finding
        self._samples.put(number, samples)
        self._uniform.put(number, uniform)

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """Uid -> rows to collect; the most wanted first, until there are ``room`` of them.

        If rows have weights, nobody knows how many a component has, and all share the room. Rows of all
        are drawn beside these.
        """
        counts = totals.sizes
        most = max((proposal.uniform_rows(totals) for proposal in proposals), default=0)
        everything = {EVERYTHING: max(min(most, room), _UNIFORM_ROWS)}
        wanted, left = {}, room if mean_weight is None else np.inf
        for proposal in proposals:
            uids = proposal.wants(totals)
            most = proposal.rows_of_each(totals)
            for uid in filter(counts.__contains__, uids):
                known = most if mean_weight is not None else int(np.ceil(counts[uid]))
                rows = min(most, known) - wanted.get(uid, 0)
                if rows > 0:
                    rows = min(rows, left)
                    wanted[uid] = wanted.get(uid, 0) + rows
                    left -= rows
                if left <= 0:
                    return wanted | everything
        if mean_weight is None:
            return wanted | everything
        share = min(1.0, room / max(1, sum(wanted.values())))
        return {uid: max(1, int(share * rows)) for uid, rows in wanted.items()} | everything

    def samples(self):
        """Uid -> `Sample`; what was collected is given up on the way, so that little is held twice."""
        parts = self._samples.release()
        if not parts:
            return {}
        n = sum(np.bincount(part.column, minlength=len(self.uids)) for part in parts)
        like = none_of([part.z for part in parts])
        dtype = np.result_type(*(part.z.dtype for part in parts))
        weighted = self._mean_weight is not None
        out = [
            Sample(RowBuffer(m, like, dtype), np.empty(m), np.empty(m) if weighted else None)
            for m in n.tolist()
        ]
        start = np.zeros(len(n), dtype=np.intp)
        parts.reverse()
        while parts:
            z, mass, weight, column, _ = parts.pop()  # sorted by column
            edges = np.searchsorted(column, np.arange(len(n) + 1))
            for k in np.unique(column).tolist():
                mine = slice(edges[k], edges[k + 1])
                there = slice(start[k], start[k] + edges[k + 1] - edges[k])
                out[k].z.put(z[mine])
                out[k].mass[there] = mass[mine]
                if weighted:
                    out[k].weight[there] = weight[mine]
                start[k] = there.stop
        out = [
            Sample(z.rows(like), mass, random_keys.evened(weight, self._mean_weight, threshold))
            for (z, mass, weight), threshold in zip(out, self._samples.threshold, strict=True)
        ]
        return {uid: sample for uid, sample in zip(self.uids, out, strict=True) if len(sample.mass)}

    def uniform(self):
        """`UniformSample` of all rows, which are given up as well."""
        parts = self._uniform.release()
        weight = None
        if self._mean_weight is not None:
            weight = np.concatenate([part.weight for part in parts])
            weight = random_keys.evened(weight, self._mean_weight, self._uniform.threshold[0])
        resp = np.concatenate([part.share for part in parts])
        return UniformSample(stacked([part.z for part in parts]), resp, weight)

    @staticmethod
    def samples_after(change, model, samples):
        """The samples once an accepted trial has replaced components; children inherit rows."""
        parents = [samples.pop(uid) for uid in change.trial.removed if uid in samples]
        heirs = [[] for _ in change.created]
        for parent in parents:
            share = change.trial.share(model, parent.z)
            if share is None:
                continue
            for j, heir in enumerate(heirs):
                mass = parent.mass * share[:, j]
                rows = slice(None)
                if len(heirs) > 1:
                    rows = np.flatnonzero(mass > 0.5 * _LEAST_SHARE)
                weight = None if parent.weight is None else parent.weight[rows]
                heir.append(Sample(parent.z[rows], mass[rows], weight))
        for uid, parts in zip(change.created, heirs, strict=True):
            if sum(len(part.mass) for part in parts):
                samples[uid] = Sample(
                    stacked([part.z for part in parts]),
                    np.concatenate([part.mass for part in parts]),
                    None if parts[0].weight is None else np.concatenate([p.weight for p in parts]),
                )

    @staticmethod
    def uniform_after(change, model, uniform, uids, uids_after):
        """Responsibilities of the uniform rows, as ``uids_after``, once a trial was accepted."""
        z, resp, _ = uniform
        removed = np.isin(uids, change.trial.removed)
        share = change.trial.share(model, z)
        if share is None:  # nobody knows whose the rows are
            return UniformSample.empty(len(uids_after))
        mass = resp[:, removed].sum(axis=1, keepdims=True)
        if share.shape[1] > 1:
            mass = mass * share
        everything = np.concatenate([resp[:, ~removed], mass], axis=1)
        names = np.concatenate([uids[~removed], change.created]).tolist()
        order = [names.index(uid) for uid in uids_after.tolist()]
        return uniform._replace(resp=np.ascontiguousarray(everything[:, order]))


class _Held:
    """Rows drawn from all batches for several samples, which are cut when they outgrow their budgets."""

    def __init__(self, budget, threshold):
        self.budget, self.threshold = budget, threshold
        self._batches = {}

    def copy(self):
        other = copy(self)
        other._batches = dict(self._batches)
        return other

    def put(self, number, draw):
        """Keep the draw of a batch in place of an earlier one."""
        self._batches[number] = draw
        self._lower(np.minimum(self.threshold, draw.threshold))
        rows = tuple(rows for one in self._batches.values() for rows in one.rows)
        self._lower(_cut(Draw(rows, self.threshold), self.budget, random_keys.OUTGROWN))

    def _lower(self, threshold):
        self.threshold = threshold
        self._batches = {number: draw.below(threshold) for number, draw in self._batches.items()}

    def release(self):
        """All rows as a new list; they are forgotten here."""
        everything = [rows for draw in self._batches.values() for rows in draw.rows]
        self._batches = {}
        return everything
