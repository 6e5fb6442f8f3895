"""Runs of rows of chosen states, and steps between rows, collected during a lap for proposals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine import keys
from ..engine.samples import least_weight, times_raised
from ..inputs.rows import stacked
from .observer import ChainObserver
from .steps import NO_STEPS, StepPool

# A row belongs to a state's runs if the state has more than this share of it.
_LEAST_SHARE = 0.5
# Longer runs are cut, so that each state's runs come from all over the data.
_LONGEST = 500
# Rows whose owners are found at a time.
_TILE = 2**14
# Steps that are drawn for estimates of entropies.
_STEPS = 2000


class _Runs(NamedTuple):
    """Runs of a batch.

    Attributes
    ----------
    z : ndarray, shape (n, D')
        Rows, one run after another.
    lengths : ndarray of int, shape (m,)
    weight : ndarray, shape (m,), or None
        Weights of their sequences.
    key : ndarray, shape (m,), or None
        None if none of them had to be left out.
    """

    z: np.ndarray
    lengths: np.ndarray
    weight: np.ndarray | None
    key: np.ndarray | None

    def __deepcopy__(self, memo):
        return self  # never changed in place

    def below(self, threshold):
        """Those runs whose keys are below a threshold."""
        keep = self.key < threshold
        rows = np.flatnonzero(np.repeat(keep, self.lengths))
        weight = None if self.weight is None else self.weight[keep]
        return _Runs(self.z[rows], self.lengths[keep], weight, self.key[keep])


class RunCollector(ChainObserver):
    """Runs of chosen states: consecutive rows of a sequence that are the state's for the most part.

    Each run of state k is kept with a probability that makes about as many rows as k's budget. Several
    states may be wanted as if they were one. Steps from one row to the next are drawn from all
    states at once (`StepPool`).

    Parameters
    ----------
    wanted : dict
        Tuple of uids, mostly of one -> number of rows to keep; the empty one -> steps.
    totals : StatBag
        Without weights, counts from which the probabilities are found.
    rng : numpy.random.RandomState
    mean_weight : float or None
        Of sequences, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, rng, mean_weight=None):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self._budget = {uids: n for uids, n in wanted.items() if uids and where.keys() >= set(uids)}
        self._threshold = {
            uids: keys.first_threshold(n, totals.n[[where[uid] for uid in uids]].sum(), mean_weight)
            for uids, n in self._budget.items()
        }
        self._unions = [uids for uids in self._budget if len(uids) > 1]
        self._rng, self._mean_weight = rng, mean_weight
        self._parts, self._batches = {}, {}
        self._owners, self._uids = [], None
        self._pool = StepPool(wanted[()]) if () in wanted else None
        self.wants_alpha = self._pool is not None

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """Uids -> rows to collect of all that any proposal wants; about ``room`` at the most.

        If sequences have weights, nobody knows how many rows a state has.
        """
        counts = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        rows = {}
        for proposal in proposals:
            most = proposal.sample_rows(totals.s.shape[1])
            for uids in [(uid,) for uid in proposal.wants(totals)] + proposal.wants_unions(totals):
                own = most
                if mean_weight is None:
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
        if self._budget:
            self._uids = block.uids.tolist()
            own = [_owned(block.resp[:, np.isin(block.uids, uids)]) for uids in self._unions]
            self._owners.append((block.part.begin, _owners(block.resp), own))

    def revisit(self, rows):
        """Draw runs of the batch: which part of a sequence was seen first has no say in it."""
        parts, self._owners = sorted(self._owners, key=lambda part: part[0]), []
        self._batches.pop(rows.batch.batch_id, None)  # if it was seen earlier in the lap
        if not parts:
            return
        first, last, owner = _runs(np.concatenate([p for _, p, _ in parts]), rows.indptr)
        for k, uid in enumerate(self._uids):
            if (uid,) in self._budget:
                self._draw((uid,), rows, first[owner == k], last[owner == k])
        for i, uids in enumerate(self._unions):
            own = np.concatenate([np.unpackbits(p[i], count=len(o)) for _, o, p in parts])
            first, last, owned = _runs(own, rows.indptr)
            self._draw(uids, rows, first[owned == 1], last[owned == 1])

    def _draw(self, uids, rows, first, last):
        """Draw some of the runs from rows ``first`` to before ``last``."""
        first, last = _cut(first, last)
        weight, key = self._weights(rows, first), None
        if self._threshold[uids] < np.inf:
            key = self._keys(weight, len(first))
        if weight is not None:
            key = self._make_room(uids, key, weight, last - first)
        if key is not None:
            kept = key < self._threshold[uids]
            first, last, key = first[kept], last[kept], key[kept]
            weight = None if weight is None else weight[kept]
        if len(first):
            self._parts[uids] = _Runs(rows.runs(first, last), last - first, weight, key)

    def _keys(self, weight, n):
        return keys.keys(n, weight, self._mean_weight, self._rng)

    def _weights(self, rows, first):
        """Weights of the sequences of some runs; None if there are none anywhere."""
        weight = rows.batch.weight
        if weight is not None:
            weight = weight[np.searchsorted(rows.indptr, first, side="right") - 1]
        return keys.weights(weight, len(first), self._mean_weight)

    def _make_room(self, uids, key, weight, lengths):
        """Cut a sample to its budget if runs that are to come outgrow it; returns their keys.

        What need not be left out needs no keys (None).
        """
        held = [parts for parts in self._batches.values() if uids in parts]
        new = lengths if key is None else lengths[key < self._threshold[uids]]
        n_rows = new.sum() + sum(parts[uids].lengths.sum() for parts in held)
        if n_rows <= keys.OUTGROWN * self._budget[uids]:
            return key
        key = self._keys(weight, len(weight)) if key is None else key
        for parts in held:
            runs = parts[uids]
            if runs.key is None:
                parts[uids] = runs._replace(key=self._keys(runs.weight, len(runs.weight)))
        everything = np.concatenate([key, *(parts[uids].key for parts in held)])
        lengths = np.concatenate([lengths, *(parts[uids].lengths for parts in held)])
        threshold = keys.lowered(self._threshold[uids], everything, lengths, self._budget[uids])
        self._threshold[uids] = threshold
        for parts in held:
            parts[uids] = parts[uids].below(threshold)
        return key

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
        out = {uids: _joined(parts) for uids, parts in found.items()}
        if self._mean_weight is None:
            return out
        for uids, sample in out.items():
            threshold = self._threshold[uids if isinstance(uids, tuple) else (uids,)]
            weight = keys.evened(sample.weight, self._mean_weight, threshold)
            out[uids] = sample._replace(weight=weight)
        return {uids: sample for uids, sample in out.items() if sample.n_rows}

    def uniform(self):
        """`Steps` in place of rows."""
        return NO_STEPS if self._pool is None else self._pool.steps()

    @staticmethod
    def samples_after(trial, samples):
        """States that were replaced have no runs; their successors have none yet."""
        gone = set(trial.removed)
        for uids in [uids for uids in samples if not gone.isdisjoint(np.atleast_1d(uids).tolist())]:
            del samples[uids]

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        """`Steps` once an accepted trial has replaced states."""
        return uniform.after(trial)


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
    lengths = np.concatenate([runs.lengths for runs in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    weight = None
    if parts[0].weight is not None:
        weight = np.concatenate([runs.weight for runs in parts])
    return StateSample(stacked([runs.z for runs in parts]), indptr, weight)


class StateSample(NamedTuple):
    """Runs of rows that a state explains, from all sequences.

    Attributes
    ----------
    z : ndarray, shape (n, D')
        Prepared rows, one run after another.
    indptr : ndarray of int64, shape (n_runs + 1,)
        Where runs begin.
    weight : ndarray, shape (n_runs,), or None
        How many equal runs each stands for, divided by how often runs of that weight were drawn beside the
        rarest; one if None.
    """

    z: np.ndarray
    indptr: np.ndarray
    weight: np.ndarray | None = None

    @property
    def n_rows(self):
        """Rows."""
        return self.z.shape[0]

    @property
    def row_weight(self):
        """Weight of each row (n,), or None."""
        return None if self.weight is None else np.repeat(self.weight, np.diff(self.indptr))

    @property
    def total(self):
        """Effective number of rows."""
        if self.weight is None:
            return self.z.shape[0]
        return float(self.weight @ np.diff(self.indptr))

    @property
    def one_row(self):
        """The least mass of a state that owns a row: the smallest weight, at most 1."""
        return least_weight(self.weight)

    @property
    def least_total(self):
        """Rows if all weighed as little as the lightest: states of these are part of it."""
        return self.total if self.weight is None else float(self.weight.min() * self.n_rows)

    def standing_for(self, n):
        """The sample with weights raised where they are small, as `Sample.standing_for` does."""
        times = times_raised(self.n_rows, self.total, n)
        return self if times <= 1.0 else self._replace(weight=times * self.weight)
