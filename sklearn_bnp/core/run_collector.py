"""Runs of rows of chosen states, collected during a lap for proposals."""

from __future__ import annotations

import numpy as np

from ..proposals.base import StateSample
from ..proposals.chain_observer import ChainObserver
from .rows import stacked

# A row belongs to a state's runs if the state has more than this share of it.
_LEAST_SHARE = 0.5
# Longer runs are cut, so that each state's runs come from all over the data.
_LONGEST = 500
# Rows whose owners are found at a time.
_TILE = 2**14


class RunCollector(ChainObserver):
    """Runs of chosen states: consecutive rows of a sequence that are the state's for the most part.

    Each run of state k is kept with a probability that makes about as many rows as k's budget. A run
    of a sequence of weight w is kept like those of w equal sequences: it may come several times.

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
        self._rate = {
            uid: min(1.0, wanted[uid] / max(totals.n[where[uid]], 1e-12))
            for uid in wanted
            if uid in where
        }
        self._rng = rng
        self._parts, self._batches = {}, {}
        self._owners, self._uids = [], None

    @staticmethod
    def wanted(proposals, totals, room):
        """Uid -> rows to collect, for all states that any proposal wants; about ``room`` at the most."""
        counts = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        rows = {
            uid: min(proposal.sample_rows(totals.s.shape[1]), counts[uid])
            for proposal in proposals
            for uid in proposal.wants(totals)
        }
        share = min(1.0, room / max(sum(rows.values()), 1e-12))
        return {uid: share * n for uid, n in rows.items()}

    def observe(self, block):
        if self._rate:
            self._owners.append((block.part.begin, _owners(block.resp)))
            self._uids = block.uids.tolist()

    def revisit(self, rows):
        """Draw runs of the batch: which part of a sequence was seen first has no say in it."""
        parts, self._owners = sorted(self._owners, key=lambda part: part[0]), []
        if not parts:
            return
        all_first, all_last, owner = _runs(np.concatenate([p for _, p in parts]), rows.indptr)
        for k, uid in enumerate(self._uids):
            if uid not in self._rate:
                continue
            first, last = _cut(all_first[owner == k], all_last[owner == k])
            if self._rate[uid] < 1.0 or rows.batch.weight is not None:
                sequence = np.searchsorted(rows.indptr, first, side="right") - 1
                kept = rows.batch.copies(sequence, self._rate[uid], self._rng)
                first, last = np.repeat(first, kept), np.repeat(last, kept)
            if len(first):
                self._parts[uid] = (rows.runs(first, last), last - first)

    def close(self, batch_id, bag):
        """Keep the runs of a batch; if it is seen again, these are replaced."""
        self._batches[batch_id], self._parts = self._parts, {}

    def samples(self):
        """Uid -> `StateSample`."""
        found = {}
        for parts in self._batches.values():
            for uid, part in parts.items():
                found.setdefault(uid, []).append(part)
        return {uid: _joined(parts) for uid, parts in found.items()}

    def uniform(self):
        """No rows are drawn uniformly."""
        return np.empty((0, 0)), np.empty((0, 0))

    @staticmethod
    def samples_after(trial, samples):
        """States that were replaced have no runs; their successors have none yet."""
        for uid in trial.removed:
            samples.pop(uid, None)

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        return np.empty((0, 0)), np.empty((0, len(uids_after)))


def _owners(resp):
    """The state (n,) that has most of each row, or -1."""
    out = np.empty(len(resp), dtype=np.int32)
    for lo in range(0, len(resp), _TILE):
        tile = resp[lo : lo + _TILE]
        out[lo : lo + _TILE] = np.where(tile.max(axis=1) > _LEAST_SHARE, tile.argmax(axis=1), -1)
    return out


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
