"""A small hidden Markov model nested in one state of a larger one.

Design note
-----------
(a) The state explains *runs* of consecutive rows; a run of weight w counts as w runs. The nested model has J
    states. The posterior of transitions is always at its optimum given the counts, so that their term is a
    ratio of Gamma functions, and a chain is known by sums: statistics, and counts of transitions.
(b) A run is entered from the state of the row before it, and left for the state of the row after it. These
    *neighbours* are taken as known, and stay as they are. So two states with the same emissions are worth a
    split if they come after, or before, different states. The row of transitions from a neighbour gives out
    among the J successors what it gave to the target: that has the prior Dir(alpha/J). The row of a successor
    has alpha/J for each successor, kappa more on the diagonal, and alpha beta_c for each neighbour c.
(c) The global weights of the successors would be smaller than 1/J. But these weights are found anew once the
    successors are part of the whole, and under very small ones transitions that a start does not use stay
    dead (``restart.py``). If no neighbour is known, all runs are entered from one place.
(d) A pass is the forward-backward pass of whole sequences (``local.py``), with its floors of logarithms.
    Weights of exits multiply the likelihoods of last rows.
(e) Where all states are nested, there are no others, and the concentrations of the whole model that are
    learned may suit the nested states instead. Those of the states that are there now hold others back: a
    chain of states that last one row each is unlikely under the stickiness of the one that they replace,
    which may be a thousand times as large. So they move as far as concentrations may be learned at all. Where
    rows depend on rows before, they move little. Some fits of correlated noise otherwise end with further
    states, whose stickiness is below 1, at a slightly higher bound.
(f) Unions of states are chosen without another pass. Their statistics and counts are sums. Their entropy is
    that of single rows, scaled: this is a fair guess of the entropy of the chain with states renamed, at
    a tenth of the cost. The chain that is chosen so is then judged by a pass.

Symbols are those of ``doc/formulas_chains.rst``; source: Hughes (2016), Sec. 6.5.2.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ..engine.agglomeration import agglomerate
from ..engine.unions import GrowingUnions, entropies_of_unions
from ..hdp.weights import LEAST_LEARNED, MOST_LEARNED
from ..likelihood.ascent import ascended
from ..likelihood.seeding import completed_as_one
from .local import LOG_FLOOR, filtered, over_sequences, smoothed
from .sampling import EDGE, UNKNOWN
from .weights import TINY, log_rising_factorial

# Entries of the rows' statistics that are held at a time.
_TILE_ENTRIES = 2**17
# States with fewer rows are dropped.
_LEAST_ROWS = 1.0
# Empirical Bayes: passes from one time to the next, and steps each time.
_ADAPT_EVERY, _ADAPT_STEPS = 3, 2
# Before powers of likelihoods are taken, the mean log likelihood of a row becomes minus this for each column
# that has units.
_SMALL = 2.0
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
    """What the nested model takes over from the whole model: priors, and states that stay.

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


def _nothing(unions):
    """Zeros in place of `Surroundings.evidence_of_unions`, where the links of states do not count."""
    return np.zeros(len(unions))


def _named(values):
    """Different values as a list, and the position of each (n,) in it."""
    names, place = np.unique(values, return_inverse=True)
    return names.tolist(), place


class Chain(NamedTuple):
    """Statistics of the nested states, as a pass finds them or as a start for one.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Sums of s(x) over the rows of each state.
    links : Links
        Expected transitions.
    entropy : float
        Entropy of the joint posterior of the states.
    resp : ndarray, shape (n, J), or None
        Responsibilities; None unless the chain comes right from a pass.
    """

    s: np.ndarray
    links: Links
    entropy: float = 0.0
    resp: np.ndarray | None = None

    def grouped(self, groups, entropy=0.0):
        """The chain of unions of states (lists of their indices)."""
        share = np.zeros((len(groups), len(self.s)))
        for i, group in enumerate(groups):
            share[i, list(group)] = 1.0
        return Chain(share @ self.s, self.links.grouped(share), entropy)

    def taken(self, keep):
        """The states ``keep`` alone, to start a pass from."""
        return self.grouped([(k,) for k in keep])


def feature_tiles(likelihood, z, edges):
    """Pairs (slice of rows, their s(x)) that cover all rows, each cut at one of the ``edges``."""
    P = likelihood.n_statistics
    most = max(1, _TILE_ENTRIES // P)
    lo = 0
    while lo < z.shape[0]:
        i = np.searchsorted(edges, lo + most, side="right") - 1
        hi = int(edges[i] if edges[i] > lo else edges[i + 1])
        yield slice(lo, hi), likelihood.features(z[lo:hi])
        lo = hi


class NestedModel:
    """Passes and bounds of a nested chain on one sample; only priors change.

    Where statistics of a row depend on the state that explains it, gains are those over one state that
    explains all rows by itself. With ``lenient``, rows that depend on rows before are an exception: gains
    are over the sum of the nested states, which is worse. The dynamics of one state suit new ones badly, and
    the few passes of a birth do not change them enough. The lap that judges the birth does.

    Attributes
    ----------
    prior : object
        The likelihood's prior.
    around : Surroundings
        Neighbours of runs, and concentrations of transitions.
    adapts : bool
        Whether the likelihood's prior adapts to the states.
    """

    def __init__(self, likelihood, prior, sample, settings, n_threads=1, *, lenient=False):
        self.likelihood, self.prior, self.sample = likelihood, prior, sample
        self.settings, self.n_threads = settings, n_threads
        self.around = self._around_before = Surroundings(settings, sample, likelihood.lags)
        self.adapts = settings.others is not None and likelihood.adapts_prior
        # statistics (1, P) of all rows in one state, if these are not the sum over several states
        self._as_one = None
        if likelihood.imputes and not (lenient and likelihood.lags):
            self._as_one = completed_as_one(likelihood, prior, sample.z, sample.row_mass)

    def within(self, around):
        """A copy in other `Surroundings`, such as those that another copy has learned."""
        nested = copy(self)
        nested.around = around
        return nested

    def evidence(self, s):
        return self.likelihood.evidence(self.prior, s)

    def adapt(self, s, n_steps):
        """Empirical Bayes on the states that stay and on the nested ones with statistics ``s``."""
        if self.adapts:
            everything = np.concatenate([self.settings.others, s])
            self.prior = self.likelihood.update_prior(self.prior, everything, n_steps)

    @property
    def learns(self):
        """Whether concentrations are learned."""
        return bool(self.around.concentrations)

    def learn(self, links):
        """Let the concentrations suit these links, where they are learned."""
        self.around = self.around.suited(links)

    def bound(self, chain):
        """Objective of the nested model alone, without the states that stay."""
        term = self.around.evidence(chain.links)
        return float(self.evidence(chain.s).sum() + term + chain.entropy)

    def gain(self, chain, before):
        """Change of the objective if the nested states replace the one state under the prior ``before``.

        Its transitions are under the concentrations of the whole model. It completes missing entries by
        itself, so that it is the same state whatever the nested ones are.
        """
        whole = chain.grouped([range(len(chain.s))])
        one = whole.s if self._as_one is None else self._as_one
        gain = self.bound(chain) - self.likelihood.evidence(before, one)[0]
        gain -= self._around_before.evidence(whole.links)
        others = self.settings.others
        if self.prior is not before and len(others):
            gain += self.evidence(others).sum() - self.likelihood.evidence(before, others).sum()
        return float(gain)

    def pass_over(self, chain, powers=None):
        """The chain after a forward-backward pass with the parameters of ``chain``.

        If ``powers`` (J,) are given, each state's likelihood of a row is taken to its power. Before that, all
        likelihoods are divided by one number if any columns have units, so that nothing depends on these.
        """
        likelihood, around, weight = self.likelihood, self.around, self.sample.weight
        z, indptr = self.sample.z, self.sample.indptr
        coef = likelihood.coefficients(self.prior, chain.s)
        logs = around.expected_logs(chain.links)
        trans, first = np.exp(logs.counts), np.exp(logs.entries)[around.enters]
        weights = coef if powers is None else self._tempered(coef, chain.s, powers)
        passed = filtered(
            z, indptr, likelihood, weights, first, trans, self.n_threads, last=self._last(logs)
        )
        sums = smoothed(passed, trans, None, weight, self.n_threads)
        resp, s = passed.alpha, np.empty((len(coef), likelihood.n_statistics))
        shares = resp if weight is None else self.sample.row_weight[:, np.newaxis] * resp
        likelihood.summarise(z, shares, s, coef=coef)
        links = self._links(sums, resp)
        paths = over_sequences(sums.log_z, weight) - over_sequences(sums.data, weight)
        entropy = paths - np.vdot(links.counts, logs.counts) - np.vdot(links.entries, logs.entries)
        return Chain(s, links, float(entropy), resp)

    def _tempered(self, coef, s, powers):
        """Coefficients (J, P) of likelihoods that are taken to powers (J,), up to a common constant.

        Densities depend on the units of columns, and so would the share of the rows that a state with a small
        power gets. All likelihoods are therefore first divided by a number, after which the mean log
        likelihood of a row is ``-_SMALL`` for each column that has units. If no column has, as with counts,
        likelihoods are probabilities, and stay as they are.
        """
        tempered = powers[:, np.newaxis] * coef
        n_features = self.likelihood.n_features
        n_with_units = np.count_nonzero(np.broadcast_to(self.likelihood.standardised, n_features))
        if n_with_units:
            log_divisor = np.vdot(coef, s) / s[:, -1].sum() + _SMALL * n_with_units
            tempered[:, -1] += (1.0 - powers) * log_divisor
        return tempered

    def _last(self, logs):
        """Weights (n_runs, J) of the states of last rows by where runs go, or None if that is not known."""
        if not self.around.after:
            return None
        weights = np.vstack([np.exp(logs.exits.T), np.ones(len(logs.exits))])
        return weights[self.around.leaves]

    def _links(self, sums, resp):
        """`Links` of a pass with the sums of `smoothed` and responsibilities (n, J)."""
        last = resp[self.sample.indptr[1:] - 1]
        return self.around.links(sums.counts[1:], sums.start, last, self.sample.weight)

    def labelled(self, s, labels):
        """The `Chain` of rows that belong to one state each: ``labels`` (n,), statistics ``s`` (J, P)."""
        J, sample = len(s), self.sample
        weight, later = sample.row_weight, np.ones(sample.n_rows, dtype=bool)
        later[sample.indptr[:-1]] = False
        later = np.flatnonzero(later)
        times = None if weight is None else weight[later]
        counts = np.bincount(J * labels[later - 1] + labels[later], times, minlength=J * J)
        counts = counts.reshape(J, J).astype(float)
        first, last = (
            np.eye(J)[labels[rows]] for rows in (sample.indptr[:-1], sample.indptr[1:] - 1)
        )
        return Chain(s, self.around.links(counts, first, last, sample.weight))

    def iterate(self, chain, n_steps, tol):
        """Up to ``n_steps`` passes; states with hardly a row are dropped on the way.

        If fewer than two states are left there is no pass over them.
        """
        last = -np.inf
        for i in range(n_steps):
            chain = self.pass_over(chain)
            keep = np.flatnonzero(self.sample.rows_owned(chain.s[:, -1], chain.resp) >= _LEAST_ROWS)
            if len(keep) < len(chain.s):
                chain, last = chain.taken(keep), -np.inf
                if len(keep) < 2:
                    return chain
                continue
            if (i + 1) % _ADAPT_EVERY == 0:
                self.adapt(chain.s, _ADAPT_STEPS)
            value = self.bound(chain)
            if value - last < tol:
                break
            last = value
        return self.pass_over(chain) if chain.resp is None else chain

    def cut(self, chain, by_links=False):
        """The best of the chains of two or more states that agglomeration of ``chain`` leads through.

        The pair is joined first whose union loses the least evidence per row: of the rows, and, with
        ``by_links``, of the states before and after as well. Bounds of unions are estimates.
        """
        groups = [(k,) for k in range(len(chain.s))]
        links = partial(self.around.evidence_of_unions, chain.links) if by_links else _nothing
        growing = GrowingUnions(links, len(groups))
        tree = agglomerate(chain.s, links(groups), growing, self.evidence, lambda n: 0.0)
        unions = [node.members for node in tree.nodes]
        entropies = entropies_of_unions(
            chain.resp, self.sample.row_weight, groups + unions, self.n_threads
        )
        by_row = dict(zip(groups + unions, entropies.tolist(), strict=True))
        alone = sum(by_row[group] for group in groups)
        share = chain.entropy / alone if alone > 0 else 0.0
        sums = [chain.s[list(union)].sum(axis=0) for union in unions]
        evidence = self.evidence(np.vstack([chain.s, *sums]))
        evidence = dict(zip(groups + unions, evidence.tolist(), strict=True))
        best, value = chain, self.bound(chain)
        for union in unions[:-1]:
            groups = [g for g in groups if g[0] not in union] + [union]
            merged = chain.grouped(groups, share * sum(by_row[group] for group in groups))
            bound = sum(evidence[group] for group in groups) + merged.entropy
            bound += self.around.evidence(merged.links)
            if bound > value:
                best, value = merged, bound
        return best

    def pruned(self, chain, n_tries):
        """The chain without small states whose rows do better with the others.

        Rows that fit none of the states may end together as a wide state of their own, which no union
        mends.
        """
        i = 0  # rank, by size, of the state that is tried next
        for _ in range(n_tries):
            if i >= len(chain.s) or len(chain.s) < 3:
                break
            order = np.argsort(chain.s[:, -1], kind="stable")
            fewer = self.iterate(chain.taken(np.sort(np.delete(order, i))), 2, 0.0)
            if fewer.resp is not None and self.bound(fewer) > self.bound(chain):
                chain, i = fewer, 0
            else:
                i += 1
        return chain
