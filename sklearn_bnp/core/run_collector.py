"""Runs of rows of chosen states, and steps between rows, collected during a lap for proposals."""

from __future__ import annotations

import numpy as np

from ..proposals.base import StateSample
from ..proposals.chain_observer import ChainObserver
from .rows import stacked
from .steps import NO_STEPS, StepPool

# A row belongs to a state's runs if the state has more than this share of it.
_LEAST_SHARE = 0.5
# Longer runs are cut, so that each state's runs come from all over the data.
_LONGEST = 500
# Rows whose owners are found at a time.
_TILE = 2**14
# Steps that are drawn for estimates of entropies.
_STEPS = 2000


class RunCollector(ChainObserver):
    """Runs of chosen states: consecutive rows of a sequence that are the state's for the most part.

    Each run of state k is kept with a probability that makes about as many rows as k's budget. A run
    of a sequence of weight w is kept like those of w equal sequences: it may come several times.
    Several states may be wanted as if they were one. Steps from one row to the next are drawn from all
    states at once (`StepPool`).

    Parameters
    ----------
    wanted : dict
        Tuple of uids, mostly of one -> expected number of rows to keep; the empty one -> steps.
    totals : StatBag
        Counts from which the probabilities are found.
    rng : numpy.random.RandomState
    """

    def __init__(self, wanted, totals, rng):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self._rate = {
            uids: min(1.0, wanted[uids] / max(totals.n[[where[uid] for uid in uids]].sum(), 1e-12))
            for uids in wanted
            if uids and where.keys() >= set(uids)
        }
        self._unions = [uids for uids in self._rate if len(uids) > 1]
        self._rng = rng
        self._parts, self._batches = {}, {}
        self._owners, self._uids = [], None
        self._pool = StepPool(wanted[()]) if () in wanted else None
        self.wants_alpha = self._pool is not None

    @staticmethod
    def wanted(proposals, totals, room):
        """Uids -> rows to collect of all that any proposal wants; about ``room`` at the most."""
        counts = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        rows = {}
        for proposal in proposals:
            most = proposal.sample_rows(totals.s.shape[1])
            for uids in [(uid,) for uid in proposal.wants(totals)] + proposal.wants_unions(totals):
                own = min(most, sum(counts[uid] for uid in uids))
                rows[uids] = max(own, rows.get(uids, 0.0))
        share = min(1.0, room / max(sum(rows.values()), 1e-12))
        wanted = {uids: share * n for uids, n in rows.items()}
        if any(proposal.wants_steps for proposal in proposals):
            wanted[()] = _STEPS
        return wanted

    def observe(self, block):
        if self._pool is not None:
            self._pool.observe(block)
        if self._rate:
            self._uids = block.uids.tolist()
            own = [_owned(block.resp[:, np.isin(block.uids, uids)]) for uids in self._unions]
            self._owners.append((block.part.begin, _owners(block.resp), own))

    def revisit(self, rows):
        """Draw runs of the batch: which part of a sequence was seen first has no say in it."""
        parts, self._owners = sorted(self._owners, key=lambda part: part[0]), []
        if not parts:
            return
        first, last, owner = _runs(np.concatenate([p for _, p, _ in parts]), rows.indptr)
        for k, uid in enumerate(self._uids):
            if (uid,) in self._rate:
                self._draw((uid,), rows, first[owner == k], last[owner == k])
        for i, uids in enumerate(self._unions):
            own = np.concatenate([np.unpackbits(p[i], count=len(o)) for _, o, p in parts])
            first, last, owned = _runs(own, rows.indptr)
            self._draw(uids, rows, first[owned == 1], last[owned == 1])

    def _draw(self, uids, rows, first, last):
        """Draw some of the runs from rows ``first`` to before ``last``."""
        first, last = _cut(first, last)
        if self._rate[uids] < 1.0 or rows.batch.weight is not None:
            sequence = np.searchsorted(rows.indptr, first, side="right") - 1
            kept = rows.batch.copies(sequence, self._rate[uids], self._rng)
            first, last = np.repeat(first, kept), np.repeat(last, kept)
        if len(first):
            self._parts[uids] = (rows.runs(first, last), last - first)

    def close(self, batch_id, bag):
        """Keep what was drawn from a batch; if it is seen again, this is replaced."""
        self._batches[batch_id], self._parts = self._parts, {}
        if self._pool is not None:
            self._pool.close(batch_id)

    def samples(self):
        """Uid, or tuple of several -> `StateSample`."""
        found = {}
        for parts in self._batches.values():
            for uids, part in parts.items():
                found.setdefault(uids if len(uids) > 1 else uids[0], []).append(part)
        return {uids: _joined(parts) for uids, parts in found.items()}

    def uniform(self):
        """`Steps` in place of rows, and no responsibilities of rows by themselves."""
        steps = NO_STEPS if self._pool is None else self._pool.steps()
        return steps, np.empty((0, 0))

    @staticmethod
    def samples_after(trial, samples):
        """States that were replaced have no runs; their successors have none yet."""
        gone = set(trial.removed)
        for uids in [uids for uids in samples if not gone.isdisjoint(np.atleast_1d(uids).tolist())]:
            del samples[uids]

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        """`Steps` once an accepted trial has replaced states."""
        return uniform[0].after(trial), np.empty((0, len(uids_after)))


def _owners(resp):
    """The state (n,) that has most of each row, or -1."""
    out = np.empty(len(resp), dtype=np.int32)
    for lo in range(0, len(resp), _TILE):
        tile = resp[lo : lo + _TILE]
        out[lo : lo + _TILE] = np.where(tile.max(axis=1) > _LEAST_SHARE, tile.argmax(axis=1), -1)
    return out


def _owned(resp):
    """Whether the states (n, m) have most of each row together, in bits."""
    return np.packbits(resp.sum(axis=1) > _LEAST_SHARE)


def _runs(owners, indptr):
    """First rows of runs within sequences, rows after their last ones, and whose they are."""
    begins = np.ones(len(owners), dtype=bool)
    begins[1:] = owners[1:] != owners[:-1]
    begins[indptr[:-1]] = True
    first = np.flatnonzero(begins)
    return first, np.append(first[1:], len(owners)), owners[first]


def _cut(first, last):
    """Runs with long ones cut."""
    n_cuts = np.maximum(1, -(-(last - first) // _LONGEST))
    pieces = [
        np.linspace(a, b, n + 1).astype(np.int64)
        for a, b, n in zip(first.tolist(), last.tolist(), n_cuts.tolist(), strict=True)
    ]
    if not pieces:
        return first, last
    return np.concatenate([p[:-1] for p in pieces]), np.concatenate([p[1:] for p in pieces])


def _joined(parts):
    lengths = np.concatenate([lengths for _, lengths in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return StateSample(stacked([z for z, _ in parts]), indptr)
