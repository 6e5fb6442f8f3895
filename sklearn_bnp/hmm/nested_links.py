"""Transitions into, among and out of the states of a nested chain, and their priors.

Design note
-----------
(a) The runs that a state explains are entered from the state of the row before, and left for the state of the
    row after. These *neighbours* are taken as known, and stay as they are. So two states with the same
    emissions are worth a split if they come after, or before, different states. The row of transitions from a
    neighbour gives out among the J successors what it gave to the target: that has the prior Dir(alpha/J).
    The row of a successor has alpha/J for each successor, kappa more on the diagonal, and alpha beta_c for
    each neighbour c. If no neighbour is known, all runs are entered from one place.
(b) The global weights of the successors would be smaller than 1/J. But these weights are found anew once the
    successors are part of the whole, and under very small ones transitions that a start does not use stay
    dead (``restart.py``).
(c) Where all states are nested, there are no others, and the concentrations of the whole model that are
    learned may suit the nested states instead. Those of the states that are there now hold others back: a
    chain of states that last one row each is unlikely under the stickiness of the one that they replace,
    which may be a thousand times as large. So they move as far as concentrations may be learned at all. Where
    rows depend on rows before, they move little. Some fits of correlated noise otherwise end with further
    states, whose stickiness is below 1, at a slightly higher bound.

Symbols are those of ``doc/formulas_chains.rst``; source: Hughes (2016), Sec. 6.5.2.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ..hdp.weights import LEAST_LEARNED, MOST_LEARNED
from ..likelihood.ascent import ascended
from .local import LOG_FLOOR
from .sampling import EDGE, UNKNOWN
from .weights import TINY, log_rising_factorial

# Least slope, in nats for a factor e, that moves a concentration that is learned, and L-BFGS iterations.
_LEAST_SLOPE, _ITERATIONS = 0.1, 20
# Where rows depend on rows before, a search changes concentrations by no more than this factor.
_MOST_MOVED_WITH_LAGS = 7.0
# Concentrations of `NestedSettings` that may be learned, in the order of `Surroundings.concentrations`.
_LEARNED = ("concentration", "stickiness")


class Links(NamedTuple):
    """Expected numbers of steps into, among, and out of the nested states.

    Attributes
    ----------
    counts : ndarray, shape (J, J)
        Transitions within runs.
    entries : ndarray, shape (E, J)
        First states of runs, by the neighbour before.
    exits : ndarray, shape (J, X)
        Last states of runs, by the neighbour after.
    """

    counts: np.ndarray
    entries: np.ndarray
    exits: np.ndarray

    def grouped(self, share):
        """`Links` of unions of states; ``share`` (J', J) is 1 where a state is part of a union."""
        return Links(share @ self.counts @ share.T, self.entries @ share.T, share @ self.exits)

    def scaled(self, scale):
        """`Links` in which each transition counts ``scale`` times."""
        return Links(*(scale * part for part in self))

    @property
    def leaving(self):
        """Steps (J, J + X) from each of the states."""
        return np.hstack([self.counts, self.exits]) if self.exits.size else self.counts


class DirichletRows:
    """Dirichlet priors of rows of counts.

    Parameters
    ----------
    a : ndarray, shape (R, C)
        Parameters.
    total : ndarray, shape (R,), or float
        Sum of the parameters of each row, and of those of columns that are not there.
    """

    def __init__(self, a, total):
        self.a, self.total = np.maximum(a, TINY), np.maximum(total, TINY)
        self._log_gamma, self._log_gamma_of_total = gammaln(self.a), gammaln(self.total)

    def log_evidence(self, counts):
        """Log evidence of ``counts`` (R, C)."""
        each = gammaln(counts + self.a) - self._log_gamma
        rows = gammaln(counts.sum(axis=1) + self.total) - self._log_gamma_of_total
        return float(each.sum() - rows.sum())

    def expected_logs(self, counts):
        """``E[log pi]`` (R, C) given ``counts``, no less than `LOG_FLOOR`."""
        total = digamma(counts.sum(axis=1) + self.total)
        return np.maximum(digamma(counts + self.a) - total[:, np.newaxis], LOG_FLOOR)


class LinkPriors(NamedTuple):
    """Priors of the links of a number of states.

    Attributes
    ----------
    leaving : DirichletRows
        Of the rows of `Links.leaving`.
    entries : DirichletRows
        Of the rows of `Links.entries`.
    """

    leaving: DirichletRows
    entries: DirichletRows

    def log_evidence(self, links):
        """Log evidence of `Links`."""
        into = self.entries.log_evidence(links.entries)
        return into + self.leaving.log_evidence(links.leaving)

    def expected_logs(self, links):
        """``E[log pi]`` of `Links`, no less than `LOG_FLOOR`."""
        leaving, J = self.leaving.expected_logs(links.leaving), len(links.counts)
        # without gaps, which may change the last bit of the exponentials that are taken of them
        counts, exits = np.ascontiguousarray(leaving[:, :J]), np.ascontiguousarray(leaving[:, J:])
        return Links(counts, self.entries.expected_logs(links.entries), exits)


class NestedSettings(NamedTuple):
    """What a nested model of some states has from the whole model: its priors, and the states that stay.

    Attributes
    ----------
    concentration : float
        The alpha of the rows of transitions.
    stickiness : float
        The kappa of the rows of transitions.
    others : ndarray, shape (K - 1, P), or None
        Statistics of the states that stay. A prior that is learned adapts to these and to the
        new states together. None leaves the prior as it is.
    start_concentration : float or None
        The alpha of the first rows of sequences; None if it is that of the others.
    weights : dict or None
        Global weights of the states that stay by uid. None if no neighbour is known.
    learned : tuple of str
        Which of ``"concentration"`` and ``"stickiness"`` may suit the nested states instead. None of them
        may if there are other states, whose transitions depend on them as well.
    """

    concentration: float
    stickiness: float
    others: np.ndarray | None = None
    start_concentration: float | None = None
    weights: dict | None = None
    learned: tuple = ()

    @classmethod
    def of(cls, model, totals, rows):
        """Settings for states nested in ``rows``, positions in ``totals``, of a `SequenceModel`."""
        own, uids = model.allocation, totals.uids.tolist()
        weights = dict(zip(uids, model.weights(totals).tolist(), strict=True))
        for row in rows:
            del weights[uids[row]]
        learned = () if weights else tuple(name for name in _LEARNED if name in model.learned)
        return cls(
            own.concentration, own.stickiness, np.delete(totals.s, rows, axis=0),
            own.start_concentration, weights or None, learned,
        )  # fmt: skip


class Surroundings:
    """The neighbours of a sample's runs, and the priors of links with them.

    Parameters
    ----------
    settings : NestedSettings
    sample : StateSample
    lags : int
        How many rows before it each row depends on.

    Attributes
    ----------
    before, after : list of int
        The neighbours that runs are entered from (E,) and left for (X,).
    enters, leaves : ndarray of int, shape (n_runs,)
        Positions of the neighbours of runs in ``before``, and in ``after``, or -1.
    rows : ndarray, shape (E,)
        Sums of the Dirichlet parameters of entries.
    exits : ndarray, shape (X,)
        Dirichlet parameters of exits.
    alpha, kappa : float
        Concentration and stickiness of transitions.
    whole : float
        Sum of the Dirichlet parameters of a row of transitions.
    """

    def __init__(self, settings, sample, lags=0):
        self._learned = np.array([name in settings.learned for name in _LEARNED])
        first = np.array([settings.concentration, settings.stickiness])
        self._least, self._most = np.full(2, LEAST_LEARNED), np.full(2, MOST_LEARNED)
        if lags:
            self._least, self._most = first / _MOST_MOVED_WITH_LAGS, first * _MOST_MOVED_WITH_LAGS
        n_runs, weights = len(sample.indptr) - 1, settings.weights
        around = sample.neighbours
        if weights is None or around is None:
            weights, around = {}, np.full((n_runs, 2), UNKNOWN)
        self.before, self.enters = _named(around[:, 0])
        after = np.unique(around[:, 1])
        self.after = [uid for uid in after.tolist() if uid not in (EDGE, UNKNOWN)]
        place = {uid: i for i, uid in enumerate(self.after)}
        self.leaves = np.array([place.get(uid, -1) for uid in around[:, 1].tolist()], dtype=np.intp)
        alpha, start = settings.concentration, settings.start_concentration
        self.alpha, self.kappa = alpha, settings.stickiness
        rows = [start if uid == EDGE and start is not None else alpha for uid in self.before]
        self.rows = np.array(rows)
        self.exits = alpha * np.array([weights[uid] for uid in self.after])
        self.whole = alpha + self.kappa + alpha * sum(weights.values())
        # 1 where a run has a neighbour, (E, n_runs) and (X, n_runs)
        self._into = np.eye(len(self.before))[:, self.enters]
        self._out = np.eye(len(self.after) + 1)[:-1, self.leaves]
        self._priors = {}  # by the number of states, for as long as the concentrations are the same

    @property
    def concentrations(self):
        """Values of what is learned by name; empty if nothing is."""
        there = zip(_LEARNED, (self.alpha, self.kappa), self._learned.tolist(), strict=True)
        return {name: float(value) for name, value, is_learned in there if is_learned}

    def suited(self, links):
        """The `Surroundings` with concentrations that suit some `Links`, if they are learned.

        Their evidence is never lower. There are no neighbours.
        """
        names = self._learned
        if not names.any():
            return self
        here = np.array([self.alpha, self.kappa])
        best, start = (self.evidence(links), self), np.log(here[names])

        def at(logs):
            values = here.copy()
            values[names] = np.exp(logs)
            there = self._with(*values.tolist())
            return there.evidence(links), there._slopes(links)[names], there

        least, most = np.log(self._least[names]), np.log(self._most[names])
        least, most = np.minimum(start, least), np.maximum(start, most)
        return ascended(at, start, least, most, best, max_iter=_ITERATIONS, slope=_LEAST_SLOPE)[1]

    def _with(self, alpha, kappa):
        """A copy with other concentrations, where there are no neighbours."""
        there = copy(self)
        there.alpha, there.kappa, there.whole, there._priors = alpha, kappa, alpha + kappa, {}
        return there

    def _slopes(self, links):
        """Derivatives (2,) of the evidence by the logarithms of concentration and stickiness."""
        J, counts = len(links.counts), links.counts
        prior = self.priors(J).leaving.a
        each = digamma(counts + prior) - digamma(prior)
        rows = digamma(counts.sum(axis=1) + self.whole) - digamma(self.whole)
        by_alpha = each.sum() / J - rows.sum()
        by_kappa = np.trace(each) - rows.sum()
        return np.array([self.alpha * by_alpha, self.kappa * by_kappa])

    def links(self, counts, first, last, weight=None):
        """`Links` with the shares (n_runs, J) that states have of first and last rows, and counts (J, J)."""
        if weight is not None:
            first, last = weight[:, np.newaxis] * first, weight[:, np.newaxis] * last
        return Links(counts, self._into @ first, (self._out @ last).T)

    def priors(self, n_states):
        """`LinkPriors` of so many states."""
        if n_states not in self._priors:
            J = n_states
            inside = self.alpha / J + self.kappa * np.eye(J)
            leaving = np.hstack([inside, np.tile(self.exits, (J, 1))])
            entries = np.repeat(self.rows[:, np.newaxis] / J, J, axis=1)
            self._priors[J] = LinkPriors(
                DirichletRows(leaving, self.whole), DirichletRows(entries, self.rows)
            )
        return self._priors[n_states]

    def evidence(self, links):
        """Log evidence of `Links`."""
        return self.priors(len(links.counts)).log_evidence(links)

    def evidence_of_unions(self, links, unions):
        """Log evidence (M,) of the links of some unions, to order them by.

        A union is a tuple of states. It is the evidence of the links into the union, and of those out of it,
        if all other states stay as they are. Priors are averaged over the states.
        """
        J = len(links.counts)
        prior, share = self.priors(J), np.zeros((len(unions), J))
        for i, union in enumerate(unions):
            share[i, list(union)] = 1.0
        into, rise = np.vstack([links.counts, links.entries]), log_rising_factorial
        out = share @ links.leaving
        terms = rise(out, prior.leaving.a.mean(axis=0)).sum(axis=1)
        terms -= rise(out.sum(axis=1), self.whole)
        before = np.vstack([prior.leaving.a[:, :J], prior.entries.a]).mean(axis=1)
        terms += rise(share @ into.T, share.sum(axis=1, keepdims=True) * before).sum(axis=1)
        return terms

    def expected_logs(self, links):
        """``E[log pi]`` of `Links`, no less than `LOG_FLOOR`."""
        return self.priors(len(links.counts)).expected_logs(links)


def _named(values):
    """Different values as a list, and the position of each (n,) in it."""
    names, place = np.unique(values, return_inverse=True)
    return names.tolist(), place
