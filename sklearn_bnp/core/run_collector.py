"""Runs of rows of chosen states, collected during a lap for proposals."""

from __future__ import annotations

import numpy as np

from ..proposals.base import StateSample

# A row belongs to a state's runs if the state has more than this share of it.
_LEAST_SHARE = 0.5
# Longer runs are cut, so that each state's runs come from all over the data.
_LONGEST = 500


class RunCollector:
    """Runs of chosen states: consecutive rows of a sequence that are the state's for the most part.

    Each run of state k is kept with a probability that makes about as many rows as k's budget.

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

    @staticmethod
    def wanted(proposals, totals, room):
        """Uid -> rows to collect, for all states that any proposal wants."""
        return {
            uid: proposal.sample_rows(totals.s.shape[1])
            for proposal in proposals
            for uid in proposal.wants(totals)
        }

    def observe(self, block):
        for k, uid in enumerate(block.uids.tolist()):
            if uid not in self._rate:
                continue
            first, last = _runs(block.resp[:, k] > _LEAST_SHARE, block.indptr)
            if self._rate[uid] < 1.0:
                kept = self._rng.random_sample(len(first)) < self._rate[uid]
                first, last = first[kept], last[kept]
            if len(first):
                rows = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
                self._parts.setdefault(uid, []).append((block.z[rows], last - first))

    def close(self, batch_id, bag):
        """Keep the runs of a batch; if it is seen again, these are replaced."""
        self._batches[batch_id], self._parts = self._parts, {}

    def samples(self):
        """Uid -> `StateSample`."""
        found = {}
        for parts in self._batches.values():
            for uid, more in parts.items():
                found.setdefault(uid, []).extend(more)
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


def _runs(mine, indptr):
    """First rows of runs within sequences, and rows after their last ones, long runs cut."""
    begins = mine.copy()
    begins[1:] &= ~mine[:-1]
    starts = indptr[:-1]
    begins[starts] = mine[starts]
    ends = mine.copy()
    ends[:-1] &= ~mine[1:]
    last_rows = indptr[1:] - 1
    ends[last_rows] = mine[last_rows]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends) + 1
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
    return StateSample(np.concatenate([z for z, _ in parts]), indptr)
