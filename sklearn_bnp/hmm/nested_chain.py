"""A small hidden Markov model nested in one state of a larger one.

Design note
-----------
(a) The state explains *runs* of consecutive rows; a run of weight w counts as w runs. The nested model has J
    states. The posterior of transitions is always at its optimum given the counts, so that their term is a
    ratio of Gamma functions, and a chain is known by sums: statistics, and counts of transitions. Transitions
    and their priors are in ``nested_links.py``.
(b) A pass is the forward-backward pass of whole sequences (``local.py``), with its floors of logarithms.
    Weights of exits multiply the likelihoods of last rows.
(c) Unions of states are chosen without another pass. Their statistics and counts are sums. Their entropy is
    that of single rows, scaled: this is a fair guess of the entropy of the chain with states renamed, at
    a tenth of the cost. The chain that is chosen so is then judged by a pass.

Symbols are those of ``doc/formulas_chains.rst``; source: Hughes (2016), Sec. 6.5.2.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from ..engine.agglomeration import agglomerate
from ..engine.unions import GrowingUnions, entropies_of_unions
from ..likelihood.seeding import completed_as_one
from .local import filtered, over_sequences, smoothed
from .nested_links import Links, NestedSettings, Surroundings

# Entries of the rows' statistics that are held at a time.
_TILE_ENTRIES = 2**17
# States with fewer rows are dropped.
_LEAST_ROWS = 1.0
# Empirical Bayes: passes from one time to the next, and steps each time.
_ADAPT_EVERY, _ADAPT_STEPS = 3, 2
# Before powers of likelihoods are taken, the mean log likelihood of a row becomes minus this for each column
# that has units.
_SMALL = 2.0


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


def _nothing(unions):
    """Zeros in place of `Surroundings.evidence_of_unions`, where the links of states do not count."""
    return np.zeros(len(unions))


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
        self.settings, self.n_threads, self.lenient = settings, n_threads, lenient
        self.around = self._around_before = Surroundings(settings, sample, likelihood.lags)
        self.adapts = settings.others is not None and likelihood.adapts_prior
        # statistics (1, P) of all rows in one state, if these are not the sum over several states
        self._as_one = None
        if likelihood.imputes and not (lenient and likelihood.lags):
            self._as_one = completed_as_one(likelihood, prior, sample.z, sample.row_mass)

    @classmethod
    def in_place_of(cls, rows, model, totals, sample, n_threads=1):
        """The nested model of a birth: in place of states, positions ``rows`` of totals, on their sample."""
        settings = NestedSettings.of(model, totals, rows)
        return cls(model.likelihood, model.prior, sample, settings, n_threads, lenient=True)

    def on(self, sample):
        """A nested model with the same settings and prior, on another sample of the rows."""
        return NestedModel(
            self.likelihood, self.prior, sample, self.settings, self.n_threads, lenient=self.lenient
        )

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
