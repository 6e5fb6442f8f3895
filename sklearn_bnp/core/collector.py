"""Rows collected during a lap, for proposals to look at when it ends."""

from __future__ import annotations

import numpy as np

from ..proposals.base import Sample
from .rows import RowBuffer, stacked

# A row belongs to a component's sample if the component has this share of it (4.2.1).
_LEAST_SHARE = 0.1
# Of rows drawn uniformly, for entropies of unions.
_UNIFORM_ROWS = 2000


class Collector:
    """Sample of the rows of chosen components, over all batches, in one pass.

    Each row of component k is kept with a probability that makes about as many rows as k's budget, so
    that no batch is favoured and nothing has to be thrown away later.

    Parameters
    ----------
    wanted : dict
        Uid -> expected number of rows to keep.
    totals : StatBag
        Counts from which the probabilities are found.
    rng : numpy.random.RandomState
    """

    def __init__(self, wanted, totals, rng):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self.uids = [uid for uid in wanted if uid in where]
        self._columns = np.array([where[uid] for uid in self.uids], dtype=np.intp)
        budget = np.array([wanted[uid] for uid in self.uids], dtype=float)
        n = totals.n[self._columns] if len(self.uids) else np.empty(0)
        self._rate = np.minimum(1.0, budget / np.maximum(n, 1e-12))
        self._uniform_rate = min(1.0, _UNIFORM_ROWS / max(totals.n.sum(), 1e-12))
        self._rng = rng
        self._parts, self._uniform = [], []
        self._batches = {}  # a batch that is seen again before the lap ends replaces its rows

    @staticmethod
    def wanted(proposals, totals, room):
        """Uid -> rows to collect; the most wanted first, until there are ``room`` of them."""
        counts = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        wanted = {}
        for proposal in proposals:
            most = proposal.sample_rows(totals.s.shape[1])
            for uid in proposal.wants(totals):
                rows = min(most, int(np.ceil(counts[uid]))) - wanted.get(uid, 0)
                if rows > 0:
                    rows = min(rows, room)
                    wanted[uid] = wanted.get(uid, 0) + rows
                    room -= rows
                if room <= 0:
                    return wanted
        return wanted

    def observe(self, block):
        rows = np.flatnonzero(self._rng.random_sample(block.z.shape[0]) < self._uniform_rate)
        self._uniform.append((block.z[rows], block.resp[rows]))
        if not self.uids:
            return
        share = block.resp[:, self._columns]
        rows, column = np.nonzero(share > _LEAST_SHARE)
        kept = self._rng.random_sample(len(rows)) < self._rate[column]
        rows, column = rows[kept], column[kept]
        order = np.argsort(column, kind="stable")
        rows, column = rows[order], column[order]
        weight = None if block.weight is None else block.weight[rows]
        self._parts.append((block.z[rows], share[rows, column], weight, column))

    def close(self, batch_id, bag):
        """Keep the rows of a batch."""
        self._batches[batch_id] = self._parts, self._uniform
        self._parts, self._uniform = [], []

    def samples(self):
        """Uid -> `Sample`; what was collected is given up on the way, so that little is held twice."""
        parts = [part for parts, _ in self._batches.values() for part in parts]
        for collected, _ in self._batches.values():
            collected.clear()
        if not parts:
            return {}
        n = sum(np.bincount(column, minlength=len(self.uids)) for *_, column in parts)
        like, dtype = parts[0][0][:0], np.result_type(*(part[0].dtype for part in parts))
        weighted = any(weight is not None for _, _, weight, _ in parts)
        out = [
            Sample(RowBuffer(m, like, dtype), np.empty(m), np.ones(m) if weighted else None)
            for m in n.tolist()
        ]
        start = np.zeros(len(n), dtype=np.intp)
        parts.reverse()
        while parts:
            z, mass, weight, column = parts.pop()  # sorted by column
            edges = np.searchsorted(column, np.arange(len(n) + 1))
            for k in np.unique(column).tolist():
                mine = slice(edges[k], edges[k + 1])
                there = slice(start[k], start[k] + edges[k + 1] - edges[k])
                out[k].z.put(z[mine])
                out[k].mass[there] = mass[mine]
                if weight is not None:
                    out[k].weight[there] = weight[mine]
                start[k] = there.stop
        out = [sample._replace(z=sample.z.rows(like)) for sample in out]
        return {uid: sample for uid, sample in zip(self.uids, out, strict=True) if len(sample.mass)}

    def uniform(self):
        """Rows drawn uniformly and their responsibilities, which are given up as well."""
        uniform = [part for _, parts in self._batches.values() for part in parts]
        self._batches.clear()
        z, resp = zip(*uniform, strict=True)
        return stacked(z), np.concatenate(resp)

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
        z, resp = uniform
        removed = np.isin(uids, trial.removed)
        mass = resp[:, removed].sum(axis=1, keepdims=True)
        coef = getattr(trial, "coef", None)
        if coef is not None:
            mass = mass * trial.likelihood.local_step(coef, z, None, None, None, None)
        everything = np.concatenate([resp[:, ~removed], mass], axis=1)
        names = np.concatenate([uids[~removed], trial.created]).tolist()
        order = [names.index(uid) for uid in uids_after.tolist()]
        return z, np.ascontiguousarray(everything[:, order])
