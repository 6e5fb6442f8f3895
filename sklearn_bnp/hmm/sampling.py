"""Runs of rows of chosen states, and steps between rows, collected during a lap for proposals."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from ..engine import random_keys
from ..engine.probe import Each, Observer, Probe
from ..engine.row_frequencies import copies, frequencies, rows_owned, times_raised, without_copies
from ..engine.task import Purpose
from ..inputs.rows import stacked
from .sampled_steps import NO_STEPS, StepObserver, Steps

# A row belongs to a state's runs if the state has more than this share of it.
_LEAST_SHARE = 0.5
# Longer runs are cut, so that each state's runs come from all over the data.
_LONGEST = 500
# Rows whose owners are found at a time.
_TILE = 2**14
# Steps that are drawn for estimates of entropies: the fewest, and from how many rows one comes where there
# are many, up to a limit. What an estimate may be wrong by should not grow with the rows.
_STEPS, _ROWS_A_STEP, _MOST_STEPS = 2000, 40, 20_000
# In place of the uid of a neighbour: the sequence begins or ends here; the neighbour is not known.
EDGE, UNKNOWN = -1, -2


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
    neighbours : ndarray of int64, shape (n_runs, 2), or None
        Uids of the states of the row before and of the row after each run, or `EDGE`, or `UNKNOWN`. None if
        no neighbour is known.
    n_different : int or None
        How many rows count if equal ones are one; None if copies were not looked for, or not found.
    """

    z: np.ndarray
    indptr: np.ndarray
    weight: np.ndarray | None = None
    neighbours: np.ndarray | None = None
    n_different: int | None = None

    @property
    def n_rows(self):
        """Rows."""
        return self.z.shape[0]

    @property
    def row_weight(self):
        """Weight of each row (n,), or None."""
        return None if self.weight is None else np.repeat(self.weight, np.diff(self.indptr))

    @property
    def row_mass(self):
        """Weight of each row (n,); one if rows have no weights."""
        return np.ones(self.n_rows) if self.weight is None else self.row_weight

    @property
    def total(self):
        """Effective number of rows."""
        if self.weight is None:
            return self.z.shape[0]
        return float(self.weight @ np.diff(self.indptr))

    def rows_owned(self, n, resp):
        """How many rows (J,) states of masses ``n`` (J,) own, as `Sample.rows_owned` says."""
        return rows_owned(n, resp, self.row_weight)

    def among(self, uids):
        """The sample with neighbours that are among the states ``uids``; others are `UNKNOWN`."""
        if self.neighbours is None:
            return self
        known = np.isin(self.neighbours, [EDGE, *uids])
        return self._replace(neighbours=np.where(known, self.neighbours, UNKNOWN))

    def runs(self, some):
        """The sample with some of its runs only, whose numbers (m,) ascend."""
        lengths = np.diff(self.indptr)
        rows = np.flatnonzero(np.isin(np.repeat(np.arange(len(lengths)), lengths), some))
        indptr = np.concatenate([[0], np.cumsum(lengths[some])]).astype(np.int64)
        weight, around = (None if x is None else x[some] for x in self[2:4])
        return StateSample(self.z[rows], indptr, weight, around, self.n_different)

    def within(self, n_rows, rng):
        """The sample, or some of its runs that are drawn, with about ``n_rows`` rows at the most."""
        if self.n_rows <= n_rows:
            return self
        order = rng.permutation(len(self.indptr) - 1)
        enough = np.searchsorted(np.cumsum(np.diff(self.indptr)[order]), n_rows, side="right")
        return self.runs(np.sort(order[: max(1, enough)]))

    def without_copies(self):
        """The sample in which equal rows count as one, as in `Sample.without_copies`.

        Sequences that occur several times, or that overlap, have equal rows. Of these, the one in the longest
        run counts. The weight of a run becomes the mean over its rows, and runs of weight 0 are left out.
        Rows of which everything is missing are no copies.
        """
        lengths = np.diff(self.indptr)
        run = np.repeat(np.arange(len(lengths)), lengths)
        order = np.argsort(-lengths[run], kind="stable")
        order = order[~np.isnan(self.z[order]).all(axis=1)]
        counts = self.row_mass
        own = without_copies(*copies(self.z[order]), counts[order], n_heavy=0)
        if own is None:
            return self
        counts[order] = own
        weight = np.bincount(run, counts, minlength=len(lengths)) / np.maximum(lengths, 1)
        own = self._replace(weight=weight, n_different=np.count_nonzero(counts))
        return own.runs(np.flatnonzero(weight))

    def with_frequencies(self, log_probability):
        """The sample in which weights are cut to what frequencies of runs can be.

        See `Sample.with_frequencies`. ``log_probability`` (n,) holds those of the rows under the state.
        """
        lengths = np.diff(self.indptr)
        run = np.repeat(np.arange(len(lengths)), lengths)
        total = np.bincount(run, log_probability, minlength=len(lengths))
        expected = self.weight.sum() * np.exp(np.minimum(total, 0.0))
        weight = frequencies(self.weight, expected, np.arange(len(lengths)), may_be_table=False)
        return self._replace(weight=weight)

    def standing_for(self, n):
        """The sample with weights raised where they are small, as `Sample.standing_for` does."""
        n_rows = self.n_rows if self.n_different is None else self.n_different
        times = times_raised(n_rows, self.total, n)
        return self if times <= 1.0 else self._replace(weight=times * self.weight)


class Runs(NamedTuple):
    """Runs drawn from a part of a batch.

    Attributes
    ----------
    z : ndarray, shape (n, D')
        Rows, one run after another.
    lengths : ndarray of int, shape (m,)
    neighbours : ndarray of int64, shape (m, 2)
        As in `StateSample`.
    weight : ndarray, shape (m,), or None
        Weights of their sequences.
    key : ndarray, shape (m,), or None
        None if all were kept.
    """

    z: np.ndarray
    lengths: np.ndarray
    neighbours: np.ndarray
    weight: np.ndarray | None
    key: np.ndarray | None

    def below(self, threshold):
        """The runs whose keys are below a threshold."""
        keep = self.key < threshold
        rows = np.flatnonzero(np.repeat(keep, self.lengths))
        weight = None if self.weight is None else self.weight[keep]
        return Runs(self.z[rows], self.lengths[keep], self.neighbours[keep], weight, self.key[keep])


class Draw(NamedTuple):
    """Runs drawn from a batch for several samples, and steps.

    Attributes
    ----------
    runs : dict
        Tuple of uids -> tuple of `Runs`.
    threshold : dict
        Tuple of uids -> number; all runs were kept whose key is below it.
    steps : Steps
    """

    runs: dict
    threshold: dict
    steps: Steps

    def below(self, threshold):
        """The runs whose keys are below thresholds that are no higher."""
        if threshold == self.threshold:
            return self
        runs = {
            uids: tuple(
                r.below(threshold[uids]) if threshold[uids] < self.threshold[uids] else r
                for r in some
            )
            for uids, some in self.runs.items()
        }
        return self._replace(runs=runs, threshold=threshold)


def _least(one, other):
    """The lower of two thresholds of each sample."""
    return {uids: min(threshold, other[uids]) for uids, threshold in one.items()}


def _lowered(threshold, key, lengths, most):
    """The threshold that cuts runs to so many rows, if those below the present one outgrow that."""
    if lengths[key < threshold].sum() <= random_keys.OUTGROWN * most:
        return threshold
    return min(threshold, random_keys.lowered(threshold, key, lengths, most))


def _cut(draws, threshold, budget):
    """Thresholds that cut the samples of some draws to their budgets, where they have outgrown these."""
    threshold = dict(threshold)
    for uids, most in budget.items():
        held = [r for draw in draws for r in draw.runs.get(uids, ())]
        if held:
            key, lengths = (
                np.concatenate(x) for x in zip(*((r.key, r.lengths) for r in held), strict=True)
            )
            threshold[uids] = _lowered(threshold[uids], key, lengths, most)
    return threshold


@dataclass(frozen=True, eq=False)
class RunProbe(Probe):
    """Runs of chosen states, and steps of all, to be drawn. Its finding is a `Draw`.

    Attributes
    ----------
    budget, threshold : dict
        Tuple of uids, mostly of one -> rows to keep, and the key from which on runs are not wanted.
    mean_weight : float or None
        Of sequences, about; None if they have no weights.
    n_steps : int
        Steps to keep; 0 if none are wanted.
    step_threshold : float
        Steps of lower priority are not wanted.
    """

    budget: dict
    threshold: dict
    mean_weight: float | None
    n_steps: int
    step_threshold: float

    @classmethod
    def observer(cls, probes, task):
        return Each(_RunObserver(probe, task) for probe in probes)

    def added(self, first, second):
        """`Draw` of two parts as one."""
        least = _least(first.threshold, second.threshold)
        one, two = first.below(least).runs, second.below(least).runs
        runs = {uids: one.get(uids, ()) + two.get(uids, ()) for uids in {**one, **two}}
        both = Draw(runs, least, first.steps.joined(second.steps).within(self.n_steps))
        if self.mean_weight is not None:
            both = both.below(_cut([both], least, self.budget))
        return both


class _RunObserver(Observer):
    """Draws steps, and runs once every row of the part is assigned to a state."""

    def __init__(self, probe, task):
        self._probe, self._rng = probe, task.rng(Purpose.SAMPLE)
        self._unions = [uids for uids in probe.budget if len(uids) > 1]
        self._owners, self._uids, self._runs = [], (), {}
        self._threshold = dict(probe.threshold)
        self._steps = StepObserver(probe.n_steps, probe.step_threshold, task.rng(Purpose.STEPS))
        self.wants_alpha = probe.n_steps > 0

    def observe(self, block):
        if self.wants_alpha:
            self._steps.observe(block)
        if self._probe.budget:
            self._uids = block.uids.tolist()
            own = [_owned(block.resp[:, np.isin(block.uids, uids)]) for uids in self._unions]
            self._owners.append((block.part.begin, _owners(block.resp), own))

    def revisit(self, rows):
        """Draw runs of the part: the order in which blocks were observed does not affect the draw."""
        parts = sorted(self._owners, key=lambda part: part[0])
        if not parts:
            return
        owners = np.concatenate([p for _, p, _ in parts])
        first, last, owner = runs_of(owners, rows.indptr)
        for k, uid in enumerate(self._uids):
            if (uid,) in self._probe.budget:
                self._draw((uid,), rows, owners, first[owner == k], last[owner == k])
        for i, uids in enumerate(self._unions):
            own = np.concatenate([np.unpackbits(p[i], count=len(o)) for _, o, p in parts])
            first, last, owned = runs_of(own, rows.indptr)
            self._draw(uids, rows, owners, first[owned == 1], last[owned == 1])

    def _draw(self, uids, rows, owners, first, last):
        """Draw some of the runs from rows ``first`` to before ``last``; ``owners`` (n,) are of all rows."""
        first, last = even_pieces(first, last - first, -(-(last - first) // _LONGEST))
        mean_weight, threshold = self._probe.mean_weight, self._threshold[uids]
        weight, key = rows.batch.weight, None
        if weight is not None:
            weight = weight[np.searchsorted(rows.indptr, first, side="right") - 1]
        weight = random_keys.weights(weight, len(first), mean_weight)
        if mean_weight is not None or threshold < np.inf:
            key = random_keys.keys(len(first), weight, mean_weight, self._rng)
        if weight is not None:  # cut before rows are copied
            threshold = _lowered(threshold, key, last - first, self._probe.budget[uids])
            self._threshold[uids] = threshold
        if key is not None:
            kept = key < threshold
            first, last, key = first[kept], last[kept], key[kept]
            weight = None if weight is None else weight[kept]
        if len(first):
            around = _neighbours(first, last, owners, rows.indptr, self._uids)
            around[np.isin(around, uids)] = UNKNOWN
            runs = Runs(rows.runs(first, last), last - first, around, weight, key)
            self._runs[uids] = (runs,)

    def finding(self, statistics):
        return Draw(self._runs, self._threshold, self._steps.finding(statistics))


class RunSampling:
    """Runs of chosen states: consecutive rows of a sequence that are the state's for the most part.

    Each run of state k is kept with a probability that makes about as many rows as k's budget. Several
    states may be wanted as if they were one. Steps from one row to the next are drawn from all
    states at once.

    Parameters
    ----------
    wanted : dict
        Tuple of uids, mostly of one -> number of rows to keep; the empty one -> steps.
    totals : StatBag
        Without weights, counts from which the probabilities are found.
    mean_weight : float or None
        Of sequences, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, mean_weight=None):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        budget = {uids: n for uids, n in wanted.items() if uids and where.keys() >= set(uids)}
        threshold = {
            uids: random_keys.first_threshold(
                n, totals.n[[where[uid] for uid in uids]].sum(), mean_weight
            )
            for uids, n in budget.items()
        }
        self.probe = RunProbe(budget, threshold, mean_weight, wanted.get((), 0), 0.0)
        self._batches = {}

    def copy(self):
        """Samples that do not follow these."""
        other = copy(self)
        other._batches = dict(self._batches)
        return other

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """Uids -> rows to collect of all that any proposal wants; about ``room`` at the most.

        If sequences have weights, nobody knows how many rows a state has.
        """
        counts, rows = totals.sizes, {}
        for proposal in proposals:
            own = [(uid,) for uid in proposal.wants(totals)]
            most = proposal.rows_of_each(totals)
            for uids in own + proposal.wants_unions(totals):
                if not counts.keys() >= set(uids):
                    continue
                n = most
                if mean_weight is None:
                    n = min(most, sum(counts[uid] for uid in uids))
                rows[uids] = max(n, rows.get(uids, 0.0))
        share = min(1.0, room / max(sum(rows.values()), 1e-12))
        wanted = {uids: share * n for uids, n in rows.items()}
        if any(proposal.wants_steps for proposal in proposals):
            n_rows = 0.0 if mean_weight is not None else sum(counts.values())
            wanted[()] = int(np.clip(n_rows / _ROWS_A_STEP, _STEPS, _MOST_STEPS))
        return wanted

    def take(self, number, finding):
        """Keep what was drawn from a batch; if it was seen earlier in the lap, that is replaced."""
        self._batches[number] = finding
        self._lower(_least(self.probe.threshold, finding.threshold))
        if self.probe.mean_weight is not None:
            draws = self._batches.values()
            self._lower(_cut(draws, self.probe.threshold, self.probe.budget))
        steps = self._steps().within(self.probe.n_steps)
        threshold = max(self.probe.step_threshold, steps.threshold)
        self.probe = replace(self.probe, step_threshold=threshold)
        self._batches = {
            number: draw._replace(steps=draw.steps.above(threshold))
            for number, draw in self._batches.items()
        }

    def _lower(self, threshold):
        self.probe = replace(self.probe, threshold=threshold)
        self._batches = {number: draw.below(threshold) for number, draw in self._batches.items()}

    def _steps(self):
        """`Steps` of all batches."""
        return reduce(Steps.joined, (draw.steps for draw in self._batches.values()), NO_STEPS)

    def samples(self):
        """Uid, or tuple of several -> `StateSample`."""
        found, mean_weight = {}, self.probe.mean_weight
        for draw in self._batches.values():
            for uids, runs in draw.runs.items():
                found.setdefault(sample_key(uids), []).extend(runs)
        out = {key: _joined(runs) for key, runs in found.items()}
        if mean_weight is None:
            return out
        for key, sample in out.items():
            weight = random_keys.evened(
                sample.weight, mean_weight, self.probe.threshold[states_of(key)]
            )
            out[key] = sample._replace(weight=weight)
        return {key: sample for key, sample in out.items() if sample.n_rows}

    def uniform(self):
        """`Steps` in place of rows."""
        steps = self._steps().thinned(self.probe.n_steps)
        return steps if self.probe.n_steps else NO_STEPS

    @staticmethod
    def samples_after(change, model, samples):
        """States that were replaced have no runs; their successors have none yet."""
        gone = set(change.trial.removed)
        for key in [key for key in samples if not gone.isdisjoint(states_of(key))]:
            del samples[key]

    @staticmethod
    def uniform_after(change, model, uniform, uids, uids_after):
        """`Steps` once an accepted trial has replaced states."""
        return uniform.after(change.trial)


def sample_key(uids):
    """The key of ``context.samples`` for the sample of these states, a tuple: their uids, or the only one."""
    return uids if len(uids) > 1 else uids[0]


def states_of(key):
    """The states, a tuple of uids, whose sample has this key."""
    return key if isinstance(key, tuple) else (key,)


def _owners(resp):
    """The state k (n,) that has most of each row, or ``-1 - k`` if that is not more than half of it."""
    out = np.empty(len(resp), dtype=np.int32)
    for lo in range(0, len(resp), _TILE):
        tile = resp[lo : lo + _TILE]
        best = tile.argmax(axis=1)
        out[lo : lo + _TILE] = np.where(tile.max(axis=1) > _LEAST_SHARE, best, -1 - best)
    return out


def _owned(resp):
    """Whether the states (n, m) have most of each row together, in bits."""
    return np.packbits(resp.sum(axis=1) > _LEAST_SHARE)


def runs_of(owners, indptr):
    """First rows of runs within sequences, rows after their last ones, and whose they are."""
    begins = np.ones(len(owners), dtype=bool)
    begins[1:] = owners[1:] != owners[:-1]
    begins[indptr[:-1]] = True
    first = np.flatnonzero(begins)
    return first, np.append(first[1:], len(owners)), owners[first]


def _neighbours(first, last, owners, indptr, uids):
    """Uids (m, 2) of the states of the rows before and after runs; `EDGE` where a sequence begins or ends."""
    out = np.empty((len(first), 2), dtype=np.int64)
    names = np.asarray(uids, dtype=np.int64)
    for side, rows in ((0, first - 1), (1, last)):
        at = owners[np.clip(rows, 0, len(owners) - 1)]
        out[:, side] = names[np.where(at < 0, -1 - at, at)]
    out[np.isin(first, indptr), 0] = EDGE
    out[np.isin(last, indptr), 1] = EDGE
    return out


def even_pieces(first, sizes, n):
    """First rows (m,), and rows after the last (m,), of ``n`` (r,) pieces of runs, as equal as can be."""
    run = np.repeat(np.arange(len(n)), n)
    i = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return first[run] + i * sizes[run] // n[run], first[run] + (i + 1) * sizes[run] // n[run]


def _joined(parts):
    lengths = np.concatenate([runs.lengths for runs in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    weight = None
    if parts[0].weight is not None:
        weight = np.concatenate([runs.weight for runs in parts])
    around = np.concatenate([runs.neighbours for runs in parts])
    return StateSample(stacked([runs.z for runs in parts]), indptr, weight, around)
