"""What every proposal is: a set of components replaced by others, judged on the whole data.

Design note
-----------
A proposal plans *trials* before a lap. A trial observes every block of every batch in that lap
and so learns, exactly, which statistics the data would leave behind if its components were
replaced. The scheduler then compares objectives. A birth replaces 1 by J, a merge n by 1, a delete
1 + absorbers by the absorbers; there are therefore only two sorts of trial, with one successor
(sums are known, only the entropy is to be found) and with several (a restricted local step).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from .._kernels._entropies import union_entropies
from ..engine.extra import NO_EXTRA
from .edits import SplitEdit, UnionEdit, union_row
from .statistics import StatBag

# Rows with less of the target than this go to the largest successor without a local step (4.2.1).
_LEAST_MASS = 1e-6


class Context(NamedTuple):
    """What a proposal may look at when it plans.

    Attributes
    ----------
    model : Model
    totals : StatBag
        Statistics of the whole data.
    samples : dict
        Uid -> `Sample` of its rows; tuple of uids -> that of the rows that are any of theirs.
    uniform : UniformSample or Steps
        Rows drawn from all, with responsibilities (m, K) as ``totals.uids``; steps of sequences.
    rng : numpy.random.RandomState
    new_uids : callable
        ``new_uids(n)`` names n new components.
    max_components : float
        Births may not lead beyond this.
    settling : bool
        The model is still shedding components, or has just been started with several.
    n_threads : int
        For the kernels.
    partial : bool
        Batches are remembered that the last lap did not see.
    """

    model: Any
    totals: StatBag
    samples: dict
    uniform: Any
    rng: np.random.RandomState
    new_uids: Callable
    max_components: float
    settling: bool = False
    n_threads: int = 1
    partial: bool = False


class Trial:
    """What all trials have.

    Attributes
    ----------
    observer_type : type or None
        What watches all such trials in one sweep; None if a trial itself observes blocks.
    alone : bool
        Whether no other trial is accepted in the same lap.
    unites : bool
        Whether it joins components to fewer. If but one of them is left, it is dropped; its failures are
        remembered with the mass of all of them, not that of the first.
    gain : float
        What it would add to the objective beyond rounding, as the scheduler found before it accepted any.
    """

    observer_type = None
    alone = False
    unites = False
    gain = -np.inf


class SplitTrial(Trial):
    """Replace ``removed`` by several components with local-step coefficients ``coef`` (J, P)."""

    def __init__(self, kind, removed, created, coef, likelihood):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.target = self.removed[0]
        self.coef, self.likelihood = coef, likelihood
        self.rows = {}
        self._start()

    def _start(self):
        J = len(self.created)
        self._s, self._entropy = np.zeros((J, self.likelihood.n_statistics)), np.zeros(J)
        self._rest = 0.0

    def observe(self, block):
        """One block's share: restricted local step on the rows that the removed ones explain."""
        columns = np.flatnonzero(np.isin(block.uids, self.removed))
        mass = block.resp[:, columns].sum(axis=1, dtype=np.float64)
        # what completed rows left with the target is not what they leave with its successors
        least = 0.0 if self.likelihood.imputes else _LEAST_MASS
        small = mass[mass <= least]
        if len(small) and small.any():
            w = 1.0 if block.weight is None else block.weight[mass <= least]
            self._rest -= np.sum(w * small * np.log(np.where(small > 0, small, 1.0)))
        for rows, n in block.by_places(np.flatnonzero(mass > least), columns, len(self.created)):
            weight = None if block.weight is None else block.weight[rows]
            s, entropy = np.empty_like(self._s), np.empty_like(self._entropy)
            z, own = block.z[rows], np.minimum(mass[rows], 1.0)
            self.likelihood.local_step(self.coef, z, own, weight, s, entropy, n_nonzero=n)
            self._s += s
            self._entropy += entropy

    def close(self, batch_id, bag):
        """End of a batch with statistics ``bag``: what the small masses left goes to the largest."""
        if not self.likelihood.imputes:
            self._give_rest(bag)
        self.rows[batch_id] = StatBag(
            np.asarray(self.created, dtype=np.int64), self._s, self._entropy
        )
        self._start()

    def _give_rest(self, bag):
        """Let the largest successor have what small masses left with the removed ones."""
        largest = int(np.argmax(self._s[:, -1]))
        self._s[largest] += bag.s[np.isin(bag.uids, self.removed)].sum(axis=0) - self._s.sum(axis=0)
        self._entropy[largest] += self._rest

    @property
    def seen(self):
        """Batches observed."""
        return self.rows.keys()

    def successors(self, totals, rest=None):
        """Statistics of what takes the place of the removed, over all batches.

        ``rest`` is what batches hold of the removed components that were not observed. It cannot be
        shared out; a single removed component lives on in the successor that explains it best, and
        several cannot, so that None says no.
        """
        observed = rest is None or not rest.n.sum() > 0
        if not observed and len(self.removed) > 1:
            return None
        if not observed:
            heir = int(np.argmax(self.coef @ rest.s[0]))
            self._rename(heir, self.target)
        bags = list(self.rows.values())
        out = StatBag(bags[0].uids, sum(b.s for b in bags), sum(b.entropy for b in bags))
        if not observed:
            out.s[heir] += rest.s[0]
            out.entropy[heir] += rest.entropy[0]
        return out

    def _rename(self, j, uid):
        """Let successor j be known as ``uid``."""
        self.created = (*self.created[:j], uid, *self.created[j + 1 :])
        uids = np.asarray(self.created, dtype=np.int64)
        self.rows = {batch_id: bag._replace(uids=uids) for batch_id, bag in self.rows.items()}

    def edit(self):
        return SplitEdit(self.removed, self.created, self.rows)


class UnionObserver:
    """Entropies of many unions at once, in one sweep over the responsibilities."""

    def __init__(self, trials, n_threads=1):
        self.trials, self.n_threads = trials, n_threads
        self._entropy = np.zeros(len(trials))
        self._members = None

    def observe(self, block):
        if self._members is None:
            where = {uid: i for i, uid in enumerate(block.uids.tolist())}
            sets = [[where[uid] for uid in trial.removed] for trial in self.trials]
            self._members = np.array([i for members in sets for i in members], dtype=np.intp)
            self._indptr = np.cumsum([0] + [len(members) for members in sets], dtype=np.intp)
        out = np.empty(len(self.trials))
        union_entropies(block.resp, block.weight, self._indptr, self._members, out, self.n_threads)
        self._entropy += out

    def close(self, batch_id, bag):
        for trial, entropy in zip(self.trials, self._entropy.tolist(), strict=True):
            trial.entropies[batch_id] = entropy
        self._entropy[:] = 0.0


class UnionTrial(Trial):
    """Replace ``removed`` by their union; its entropies come from a `UnionObserver`."""

    observer_type = UnionObserver
    unites = True

    def __init__(self, kind, removed, created):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.entropies = {}

    @property
    def seen(self):
        """Batches observed."""
        return self.entropies.keys()

    def successors(self, totals, rest=None):
        """Statistics of the union over all batches; of batches not observed, the entropy's bound."""
        entropy = sum(self.entropies.values())
        if rest is not None:
            entropy += union_row(rest, self.removed, self.created).entropy[0]
        return union_row(totals, self.removed, self.created, entropy)

    def edit(self):
        return UnionEdit(self.removed, self.created, self.entropies)


class UndoTrial(UnionTrial):
    """Join what an adoption of the same lap has put in a component's place: it did not help."""


class AdoptTrial(Trial):
    """Components added to the model for a lap, with statistics ``s`` that count rows twice.

    The learner puts them in when the lap begins and judges the whole lap when it ends. If the trial
    ``retires`` its targets, the ``target`` and ``others``, no row may go to those any more.
    """

    def __init__(self, kind, target, created, s, *, retires=False, extra=NO_EXTRA, others=()):
        self.kind, self.target, self.retires = kind, target, retires
        self.targets = (target, *others)
        self.removed, self.created = (), tuple(created)
        self.seeds = StatBag(np.asarray(created, dtype=np.int64), s, np.zeros(len(s)), extra)


class Proposal(BaseEstimator, ABC):
    """A kind of proposal with its settings.

    A learner works on a clone, which may keep memories of failures in private attributes, `reset`'s.

    Attributes
    ----------
    kind : str
        Name by which users, and ``history_``, know proposals of this kind.
    suits : tuple of str
        The models that it is for: of "mixture", "topics" and "hmm".
    """

    kind: str
    suits = ("mixture", "topics", "hmm")
    weighted = False  # whether rows have weights, so that a mass is no number of rows
    wants_steps = False  # of sequences, from one row to the next

    @property
    def pending(self):
        """Whether there is something left that was meant to be tried: a fit does not end before."""
        return False

    @abstractmethod
    def reset(self):
        """Forget everything: the start of a fit."""

    @abstractmethod
    def plan(self, context):
        """Trials for the next lap.

        Parameters
        ----------
        context : Context
            The model as it stands, and rows collected during the last lap.

        Returns
        -------
        trials : list
            `SplitTrial`, `UnionTrial` or `AdoptTrial` objects, or others that behave like one.
        """

    def wants(self, totals):
        """Components whose rows this proposal would like to see when it next plans.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        uids : list of int
            The most wanted first; there may be no room for all.
        """
        return []

    def wants_unions(self, totals):
        """States of sequences whose rows this proposal would like to see as if they were one.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        unions : list of tuple of int
            Uids of the states of each.
        """
        return []

    def sample_rows(self, n_statistics):
        """How many rows of each wanted component to collect.

        Parameters
        ----------
        n_statistics : int
            Length of s(x).

        Returns
        -------
        n_rows : int
            At the most.
        """
        return 2000

    def judged(self, trial, accepted, mass):
        """Take note of the scheduler's verdict.

        Parameters
        ----------
        trial : object
            One that `plan` returned.
        accepted : bool
            Whether it was carried out.
        mass : float
            Count of its targets, or of all its components if they were to be one.
        """

    def last_resort(self):
        """The fit would end here unless this proposal finds something to try again."""

    def new_data(self):
        """A batch has come that was never seen before."""

    def prior_changed(self):
        """Empirical Bayes has moved the prior far: remembered failures mean little."""
        self.reset()
