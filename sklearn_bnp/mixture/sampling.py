"""Rows collected during a lap, for proposals to look at when it ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine import keys
from ..engine.samples import Sample, UniformSample
from ..inputs.rows import RowBuffer, stacked

# A row belongs to a component's sample if the component has this share of it (4.2.1).
_LEAST_SHARE = 0.1
# Of rows drawn uniformly, for entropies of unions.
_UNIFORM_ROWS = 2000


class _Rows(NamedTuple):
    """Rows kept of one block.

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

    def __deepcopy__(self, memo):
        return self  # never changed in place

    def taken(self, keep):
        return _Rows(*(None if field is None else field[keep] for field in self))


class _Reservoir:
    """Rows of all batches in several samples, each of about its budget at the most.

    Parameters
    ----------
    budget : ndarray, shape (m,)
        Rows.
    threshold : ndarray, shape (m,)
        A row is wanted if its key is less. It is lowered when a sample outgrows its budget.
    """

    def __init__(self, budget, threshold):
        self._budget, self.threshold = budget, threshold
        self._open, self._batches = [], {}

    def put(self, rows):
        """Take in rows of the batch in hand.

        It alone must not outgrow the samples: rows that it had earlier in the lap are still held.
        """
        self._open.append(rows)
        self._cut([self._open])

    def close(self, batch_id):
        """Keep the rows of a batch; those it had when it was seen earlier in the lap go."""
        self._batches[batch_id], self._open = self._open, []
        self._cut(self._batches.values())

    def release(self):
        """All rows, in a list that nobody else holds."""
        everything = [rows for batch in self._batches.values() for rows in batch]
        self._batches.clear()
        return everything

    def _cut(self, lists):
        """Cut samples that have outgrown their budgets, in some lists of rows, to these."""
        held = np.zeros(len(self._budget), dtype=np.intp)
        for r in (r for rows in lists for r in rows):
            held += np.bincount(r.column, minlength=len(held))
        outgrown = np.flatnonzero(held > keys.OUTGROWN * self._budget)
        for k in outgrown:
            key = np.concatenate([r.key[r.column == k] for rows in lists for r in rows])
            self.threshold[k] = np.partition(key, self._budget[k])[self._budget[k]]
        if len(outgrown):
            for rows in (*self._batches.values(), self._open):
                rows[:] = [r.taken(r.key < self.threshold[r.column]) for r in rows]


class Collector:
    """Sample of the rows of chosen components, over all batches, in one pass.

    Each row of component k is kept with a probability that makes about as many rows as k's budget, so
    that no batch is favoured.

    Parameters
    ----------
    wanted : dict
        Uid -> number of rows to keep.
    totals : StatBag
        Without weights, counts from which the probabilities are found.
    rng : numpy.random.RandomState
    mean_weight : float or None
        Of rows, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, rng, mean_weight=None):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self.uids = [uid for uid in wanted if uid in where]
        self._columns = np.array([where[uid] for uid in self.uids], dtype=np.intp)
        self._rng, self._mean_weight = rng, mean_weight
        budget = np.array([wanted[uid] for uid in self.uids], dtype=np.intp)
        n = totals.n[self._columns] if len(self.uids) else np.empty(0)
        self._samples = _Reservoir(budget, keys.first_threshold(budget, n, mean_weight))
        budget = np.array([_UNIFORM_ROWS])
        threshold = keys.first_threshold(budget, totals.n.sum(), mean_weight)
        self._uniform = _Reservoir(budget, threshold)

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """Uid -> rows to collect; the most wanted first, until there are ``room`` of them.

        If rows have weights, nobody knows how many a component has, and all share the room.
        """
        counts = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        wanted, left = {}, room if mean_weight is None else np.inf
        for proposal in proposals:
            most = proposal.sample_rows(totals.s.shape[1])
            for uid in proposal.wants(totals):
                known = most if mean_weight is not None else int(np.ceil(counts[uid]))
                rows = min(most, known) - wanted.get(uid, 0)
                if rows > 0:
                    rows = min(rows, left)
                    wanted[uid] = wanted.get(uid, 0) + rows
                    left -= rows
                if left <= 0:
                    return wanted
        if mean_weight is None:
            return wanted
        share = min(1.0, room / max(1, sum(wanted.values())))
        return {uid: max(1, int(share * rows)) for uid, rows in wanted.items()}

    def observe(self, block):
        n = block.z.shape[0]
        weight = keys.weights(block.weight, n, self._mean_weight)
        rows, column, key = self._drawn_from(
            self._uniform, np.arange(n), np.zeros(n, np.intp), weight
        )
        of_rows = None if weight is None else weight[rows]
        self._uniform.put(_Rows(block.z[rows], block.resp[rows], of_rows, column, key))
        if not self.uids:
            return
        share = block.resp[:, self._columns]
        rows, column = np.nonzero(share > _LEAST_SHARE)
        rows, column, key = self._drawn_from(self._samples, rows, column, weight)
        of_rows = None if weight is None else weight[rows]
        self._samples.put(_Rows(block.z[rows], share[rows, column], of_rows, column, key))

    def _drawn_from(self, reservoir, rows, column, weight):
        """Those of candidates for samples ``column`` that are wanted, and their keys, by samples."""
        of_rows = None if weight is None else weight[rows]
        key = keys.keys(len(rows), of_rows, self._mean_weight, self._rng)
        kept = np.flatnonzero(key < reservoir.threshold[column])
        kept = kept[np.argsort(column[kept], kind="stable")]
        return rows[kept], column[kept], key[kept]

    def close(self, batch_id, bag):
        """Keep the rows of a batch."""
        self._samples.close(batch_id)
        self._uniform.close(batch_id)

    def samples(self):
        """Uid -> `Sample`; what was collected is given up on the way, so that little is held twice."""
        parts = self._samples.release()
        if not parts:
            return {}
        n = sum(np.bincount(part.column, minlength=len(self.uids)) for part in parts)
        like, dtype = parts[0].z[:0], np.result_type(*(part.z.dtype for part in parts))
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
            Sample(z.rows(like), mass, keys.evened(weight, self._mean_weight, threshold))
            for (z, mass, weight), threshold in zip(out, self._samples.threshold, strict=True)
        ]
        return {uid: sample for uid, sample in zip(self.uids, out, strict=True) if len(sample.mass)}

    def uniform(self):
        """`UniformSample` of all rows, which are given up as well."""
        parts = self._uniform.release()
        weight = None
        if self._mean_weight is not None:
            weight = np.concatenate([part.weight for part in parts])
            weight = keys.evened(weight, self._mean_weight, self._uniform.threshold[0])
        resp = np.concatenate([part.share for part in parts])
        return UniformSample(stacked([part.z for part in parts]), resp, weight)

    @staticmethod
    def samples_after(trial, samples):
        """The samples once an accepted trial has replaced components; children inherit rows."""
        parents = [samples.pop(uid) for uid in trial.removed if uid in samples]
        coef = getattr(trial, "coef", None)
        heirs = [[] for _ in trial.created]
        for parent in parents:
            if coef is None:
                heirs[0].append(parent)
                continue
            share = trial.likelihood.local_step(coef, parent.z, None, None, None, None)
            for j, heir in enumerate(heirs):
                mass = parent.mass * share[:, j]
                rows = np.flatnonzero(mass > 0.5 * _LEAST_SHARE)
                weight = None if parent.weight is None else parent.weight[rows]
                heir.append(Sample(parent.z[rows], mass[rows], weight))
        for uid, parts in zip(trial.created, heirs, strict=True):
            if sum(len(part.mass) for part in parts):
                samples[uid] = Sample(
                    stacked([part.z for part in parts]),
                    np.concatenate([part.mass for part in parts]),
                    None if parts[0].weight is None else np.concatenate([p.weight for p in parts]),
                )

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        """Responsibilities of the uniform rows, as ``uids_after``, once a trial was accepted."""
        z, resp, _ = uniform
        removed = np.isin(uids, trial.removed)
        mass = resp[:, removed].sum(axis=1, keepdims=True)
        coef = getattr(trial, "coef", None)
        if coef is not None:
            mass = mass * trial.likelihood.local_step(coef, z, None, None, None, None)
        everything = np.concatenate([resp[:, ~removed], mass], axis=1)
        names = np.concatenate([uids[~removed], trial.created]).tolist()
        order = [names.index(uid) for uid in uids_after.tolist()]
        return uniform._replace(resp=np.ascontiguousarray(everything[:, order]))
