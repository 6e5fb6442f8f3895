"""New states for a target, from the runs of rows it explains (Hughes 2016, Sec. 6.5.2).

A hidden Markov model is nested in the state. Its seeds are windows of runs, as neighbours mostly belong
together. It makes a few passes, and then states are joined by agglomeration. How long states last is not
known beforehand, so windows of several lengths are tried, and more seeds where most of them survive. One more
candidate starts from whole runs, told apart by the states around them (``visits.py``). The best few
candidates get more passes, and the small states of the winner are removed if that is better.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from ..likelihood.seeding import lloyd, seeding_mass, summaries
from .nested_chain import Chain, NestedModel, feature_tiles
from .nested_links import Links, Surroundings
from .sampling import EDGE, UNKNOWN
from .transitions import Transitions
from .visits import visit_groups

# Rows of a window.
_WINDOWS = (1, 10, 50)
# A longer window is tried only if it lowers the number of windows to less than this share.
_FEWER = 0.8
# Numbers of seeds.
_SEEDS = (10, 2)
# If more than this share of the seeds survive, twice as many are tried, up to a limit.
_MOST_SURVIVE, _MOST_SEEDS = 0.6, 40
_LLOYD_STEPS = 3
# Windows drawn for each seed; the best is taken.
_TRIES = 3
# Passes before a candidate's first cut; candidates that get more passes after it.
_FIRST_STEPS, _FINALISTS = 3, 2
# A candidate whose estimated gain is at most this many nats per row too low still gets more passes.
_SHORT = 0.1
# Most passes of such a candidate, and after each later cut; rounds of cuts.
_STEPS, _STEPS_AFTER_CUT, _ROUNDS = 8, 4, 3
# Passes stop when they gain less than this per row, in nats.
_TOL = 1e-4
# Share of a target's rows in a part of which emissions are the same: fewer make too few visits.
_SMALL = 0.1
# Steps of empirical Bayes between cuts; small states that may be tried for removal.
_ADAPT_STEPS = 5
_PRUNINGS = 3


class StateCreation(NamedTuple):
    """Proposed successors of a state.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the successors; they add up to those of the sample.
    links : Links
        Expected transitions.
    around : Surroundings
        The neighbours in ``links``.
    gain : float
        Estimated change of the whole objective, in nats.
    """

    s: np.ndarray
    links: Links
    around: Surroundings
    gain: float

    @classmethod
    def of(cls, model, chain, before):
        """The creation of a `Chain` of a `NestedModel`, in place of one state under the prior ``before``."""
        return cls(chain.s, chain.links, model.around, model.gain(chain, before))

    def transitions(self, created):
        """`Transitions` of the states, named ``created``, and their links to neighbours that are known."""
        around, links, J = self.around, self.links, len(created)
        uids = [*created, *sorted({uid for uid in around.before if uid >= 0}.union(around.after))]
        place = {uid: i for i, uid in enumerate(uids)} | {EDGE: -1}
        counts = np.zeros((len(uids) + 1, len(uids)))
        counts[1 : J + 1, :J] = links.counts
        for uid, entries in zip(around.before, links.entries, strict=True):
            if uid != UNKNOWN:
                counts[place[uid] + 1, :J] = entries
        counts[1 : J + 1, [place[uid] for uid in around.after]] = links.exits
        return Transitions(tuple(uids), counts)


def create_states(nested, n_most, rng, *, lengths=None, seeds=_SEEDS, least_gain=None):
    """Successors of a state by a hidden Markov model nested in it.

    Parameters
    ----------
    nested : NestedModel
        In place of the state, on a sample of its rows. It stays as it is.
    n_most : int
        The most successors.
    rng : numpy.random.RandomState
    lengths : list of int, or None
        Lengths of the windows to try; those of `window_lengths` if None.
    seeds : tuple of int
        Numbers of seeds to try.
    least_gain : float or None
        Candidates that are far below this gain after few passes are given up, and no further length is tried
        if no candidate has reached it. None is a gain of 0, and all lengths are tried.

    Returns
    -------
    StateCreation or None
        None if no split was found that raises the objective.
    """
    field, sample, prior = _Field(nested), nested.sample, nested.prior
    worth = (least_gain or 0.0) - _SHORT * sample.total
    for L in window_lengths(sample) if lengths is None else lengths:
        if least_gain is not None and field.entrants and field.entrants[0].gain < least_gain:
            break
        for n_seeds in sorted({min(n, n_most) for n in seeds if n_most > 1}, reverse=True):
            field.enter(L, n_seeds, rng)
    field.enter_visits(n_most)
    n_seeds, most = min(seeds[0], n_most), min(_MOST_SEEDS, n_most)
    while n_seeds < most and field.crowded(n_seeds):
        n_seeds = min(2 * n_seeds, most)
        field.enter(field.entrants[0].L, n_seeds, rng)
    best = None
    for entrant in [e for e in field.entrants[:_FINALISTS] if e.gain >= worth]:
        chain = refined(entrant.model, entrant.chain)
        if len(chain.s) > 1:
            gain = entrant.model.gain(chain, prior)
            if best is None or gain > best.gain:
                best = entrant._replace(chain=chain, gain=gain)
    if best is None:
        return None
    chain = best.model.pruned(best.chain, _PRUNINGS)
    made = StateCreation.of(best.model, chain, prior)
    return made if made.gain > 0 else None


class _Entrant(NamedTuple):
    """A candidate: length of its windows, model (with a prior of its own), chain, present gain."""

    L: int
    model: NestedModel
    chain: Chain
    gain: float


class _Field:
    """All candidates by decreasing gain, each after few passes and a first cut."""

    def __init__(self, nested):
        # as it is before any pass; candidates work on copies, whose priors adapt
        self._anew = nested
        self.windows, self.entrants = {}, []

    def enter(self, L, n_seeds, rng):
        """Add a candidate that starts from windows, unless it is left with fewer than two states."""
        if L not in self.windows:
            anew = self._anew
            self.windows[L] = windows(anew.likelihood, anew.prior, anew.sample, L)
        model = copy(self._anew)
        self._enter(L, model, model.labelled(*self.windows[L].seeded(n_seeds, rng)))

    def enter_visits(self, n_most):
        """Add a candidate that starts from runs, by the states around them, if these differ."""
        model = copy(self._anew)
        likelihood, sample = model.likelihood, model.sample
        lengths = np.diff(sample.indptr)
        whole = statistics_of_labels(likelihood, sample, np.zeros(sample.n_rows, dtype=np.intp), 1)
        one, small, large = model.evidence(np.array([[1.0], [_SMALL], [1.0 - _SMALL]]) * whole)
        cost = one - small - large  # of emissions that are the same in both
        labels, J = _consecutive(visit_groups(model.around, lengths, sample.weight, n_most, cost))
        if J > 1:
            labels = np.repeat(labels, lengths)
            s = statistics_of_labels(likelihood, sample, labels, J)
            self._enter(0, model, model.labelled(s, labels))

    def _enter(self, L, model, chain):
        chain = first_passes(model, chain)
        if len(chain.s) > 1:
            self.entrants.append(_Entrant(L, model, chain, model.gain(chain, self._anew.prior)))
            self.entrants.sort(key=lambda entrant: -entrant.gain)

    def crowded(self, n_seeds):
        """Whether the best candidate may need more than ``n_seeds`` seeds."""
        return bool(self.entrants) and len(self.entrants[0].chain.s) > _MOST_SURVIVE * n_seeds


def first_passes(model, chain):
    """The chain after a few passes and a first cut, with priors that suit it; one state may be left."""
    if len(chain.s) > 1:
        # a prior for one wide state would make narrow ones wide
        model.adapt(chain.s, _ADAPT_STEPS)
        chain = model.iterate(chain, _FIRST_STEPS, 0.0)
    if len(chain.s) > 1:
        chain = model.cut(chain)
        model.adapt(chain.s, _ADAPT_STEPS)  # few states need another prior than many seeds
    return chain


def refined(model, chain):
    """The chain after passes and cuts in turn; there may be one state left."""
    tol = _TOL * model.sample.total
    chain = model.iterate(chain, _STEPS, tol)
    for _ in range(_ROUNDS):
        if len(chain.s) < 2:
            break
        model.adapt(chain.s, _ADAPT_STEPS)
        cut = model.cut(chain)
        if cut is chain:
            break
        chain = model.iterate(cut, _STEPS_AFTER_CUT, tol)
    return chain


def _pieces(sample, L):
    """Number of windows of about L rows that each run is cut into, (n_runs,)."""
    return np.maximum(1, np.diff(sample.indptr) // L)


def window_lengths(sample):
    """Lengths of windows worth trying: longer ones make no difference where runs are short."""
    out, n_last = [], np.inf
    for L in _WINDOWS:
        n = _pieces(sample, L).sum()
        if 1 < n < _FEWER * n_last:
            out.append(L)
            n_last = n
    return out


def _consecutive(labels):
    """Labels renamed 0, 1, ..., and the number of different ones."""
    names, labels = np.unique(labels, return_inverse=True)
    return labels, len(names)


def statistics_of_labels(likelihood, sample, labels, J):
    """Statistics (J, P) of the rows of each label."""
    shares = sample.row_mass[:, np.newaxis] * np.equal.outer(labels, np.arange(J))
    return summaries(likelihood, sample.z, shares)


def windows(likelihood, prior, sample, L):
    """Windows of about L rows of a sample's runs, among which seeds of states are chosen."""
    return (_Rows if L == 1 else _Windows)(likelihood, prior, sample, L)


class _Rows:
    """Windows of one row, which are compared by the likelihood's seeding points."""

    def __init__(self, likelihood, prior, sample, L):
        self.likelihood, self.sample = likelihood, sample
        self.odds = seeding_mass(np.ones(sample.n_rows), sample.row_weight)
        whole = summaries(likelihood, sample.z, sample.row_mass[:, np.newaxis])[0]
        self.points = likelihood.seeding_points(prior, whole, sample.z)

    def seeded(self, n_seeds, rng):
        """Statistics (J, P) of states, and the state (n,) of each row: that of the nearest seed."""
        shares = lloyd(self.points, self.odds, n_seeds, rng, n_steps=_LLOYD_STEPS)
        labels, J = _consecutive(shares.argmax(axis=1))
        return statistics_of_labels(self.likelihood, self.sample, labels, J), labels


class _Windows:
    """Windows of about L rows, which are compared by their expected log likelihoods.

    A window has too few rows for parameters of its own, whatever their weight. Its statistics are therefore
    smoothed with the mean statistics of the sample, which count as many rows as there are columns.
    """

    def __init__(self, likelihood, prior, sample, L):
        self.likelihood, self.prior, self.sample = likelihood, prior, sample
        lengths, pieces = np.diff(sample.indptr), _pieces(sample, L)
        runs = np.repeat(np.arange(len(lengths)), lengths)
        offset = np.arange(sample.n_rows) - sample.indptr[runs]
        first = np.cumsum(pieces) - pieces
        self.of_row = first[runs] + offset * pieces[runs] // lengths[runs]
        self.s = self._summed(np.searchsorted(self.of_row, np.arange(pieces.sum() + 1)))
        self.times, self.odds = None, np.ones(len(self.s))
        if sample.weight is not None:
            self.times = np.repeat(sample.weight, pieces)
            self.odds = seeding_mass(self.odds, self.times)
        whole = self.s.sum(axis=0) if self.times is None else self.times @ self.s
        self.coef = likelihood.coefficients(
            prior, self.s + likelihood.n_features / whole[-1] * whole
        )
        self.own = np.einsum("wp,wp->w", self.s, self.coef)

    def _summed(self, edges):
        """Statistics (W, P) of the windows between ``edges``."""
        out = np.empty((len(edges) - 1, self.likelihood.n_statistics))
        for rows, features in feature_tiles(self.likelihood, self.sample.z, edges):
            lo, hi = np.searchsorted(edges, [rows.start, rows.stop])
            out[lo:hi] = np.add.reduceat(features, edges[lo:hi] - rows.start, dtype=float)
        return out

    def seeded(self, n_seeds, rng):
        """As of `_Rows`: the windows that one seed explains best are one state."""
        coef = self.coef[self._seeds(n_seeds, rng)]
        for _ in range(_LLOYD_STEPS + 1):
            labels, J = _consecutive(np.argmax(self.s @ coef.T, axis=1))
            hard = np.equal.outer(np.arange(J), labels)
            s = (hard * self.odds) @ self.s
            coef = self.likelihood.coefficients(self.prior, s)
        if self.times is not None:
            s = (hard * self.times) @ self.s
        return s, labels[self.of_row]

    def _seeds(self, n_seeds, rng):
        """Positions of windows, drawn in proportion to their loss under the seeds so far.

        Each is the best of a few draws.
        """
        seeds = [rng.randint(len(self.s))]
        least = self._loss(seeds)[0]
        while len(seeds) < n_seeds:
            reach = np.cumsum(least)
            if not reach[-1] > 0:
                break
            draws = rng.random_sample(_TRIES) * reach[-1]
            tries = np.searchsorted(reach, draws, side="right")
            loss = np.minimum(least, self._loss(tries))
            best = int(np.argmin(loss.sum(axis=1)))
            seeds.append(int(tries[best]))
            least = loss[best]
        return seeds

    def _loss(self, seeds):
        """Loss of log likelihood (n_seeds, W) of windows under seeds, times the odds to be drawn."""
        return self.odds * np.maximum(self.own - self.coef[seeds] @ self.s.T, 0.0)
