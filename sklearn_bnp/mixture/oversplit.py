"""Splits of many components at once, of which those stay that pay.

Design note
-----------
(a) All components are searched together if enough rows of all of them can be looked at. Otherwise
    neighbours are: pools of a few components, which together hold all of them. What is outside of a pool
    stays as it is during the search, and the verdict on the whole data knows of it.
(b) Both kinds of searches are the same, from `Comparison` to trial. They differ in where the rows come from:
    a uniform sample, or the samples of the pool's components.
(c) Work is counted in numbers that a step reads, not in seconds, so that a fit does not depend on the
    machine.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.affinity import nearest, reassignment_loss
from ..engine.agglomeration import agglomerate
from ..engine.proposal import Context
from ..engine.statistics import StatBag
from ..engine.trials import SplitTrial
from .birth import ADAPT_BELOW
from .creation import seeded
from .last_resort import WORTH_A_TRIAL, Comparison, LastResort, affordable_rows, shows_everything
from .pools import Pool, neighbourhoods
from .restricted import most_collapsed

# Work is counted in numbers: a step takes rows x components x (P + this), and a search this beside its steps.
_NUMBERS_BESIDE_P, _NUMBERS_OF_A_SEARCH = 100, 2_000_000
# Numbers that a step of all parts may take.
_MOST_NUMBERS = 200_000_000
# Rows whose responsibility is less do not count as rows of a component when it is deleted.
_LEAST_RESP = 1e-3
# Least mass that anything is divided by.
_LEAST_MASS = 1e-10
# Collapsed and ordinary steps of the parts, and those after each agglomeration.
_COLLAPSED, _STEPS = 4, 6
# Agglomerations of a search, and how many of them are followed by collapsed steps.
_ROUNDS, _COLLAPSED_ROUNDS = 8, 6
# Each part may be joined with so many neighbours.
_N_NEIGHBORS = 10
# Searches of one round, and numbers that all searches of a fit may take, one step counted for each: about
# five seconds. The least number of searches is made all the same.
_LEAST_SEARCHES, _MOST_SEARCHES = 3, 60
_FIT_NUMBERS = 1_500_000_000
# A round ends once so many searches have come back to where they began, and so many more for each search
# that ended elsewhere: then there is hardly anything better. No round ends for this before its searches
# have taken so many numbers.
_RETURNS, _RETURNS_PER_FAILURE = 3, 0.25
_FREE_NUMBERS = 10_000_000
# Components of a pool of neighbours, and searches without a gain after which it is given up. All searches of
# pools may take so many times the numbers of other searches.
_POOL, _PATIENCE_WITH_POOLS, _POOL_NUMBERS = 6, 2, 4
# A delete that is estimated to lose less, in nats, may gain after a few steps.
_NEARLY, _STEPS_AFTER_DELETE = 3.0, 4


class Oversplit(LastResort):
    """Split many components at once, let the parts compete for the rows, and keep what pays.

    A birth looks for new components among the rows of one component. It misses a cluster whose rows are
    spread over several components, since what each of these holds of it is too little to pay for a new
    component. When nothing else is left to try, all components are therefore split into several parts, in a
    sample of all rows. Collapsed steps follow, in which any row may go to any part. Then parts are joined,
    and deleted, for as long as that raises the objective. This is one search. Others follow with other
    seeds, from the best components so far. Every second one splits a random half of the components and
    leaves the others as they are. A round ends when many searches in a row have found nothing better. The
    result replaces all components if that raises the objective of the whole data.

    With many components, many columns or many rows, a search of all components would take too long. Then a
    round goes through pools of six neighbours, and each pool is searched in this way on its own rows.

    Parameters
    ----------
    n_seeds : int, default=3
        Parts that each component is split into, at the most. There are fewer if components and their
        statistics are many.
    patience : int, default=40
        Searches without a gain, one after the other, after which a round ends. It ends earlier if searches
        are costly, or if most of them come back to where they began, and after sixty searches in any case. A
        pool is given up after two.
    max_rows : int, default=10_000
        Rows of a sample, at the most. All rows are taken if there are no more. If components and their
        statistics are many, a sample of all components has fewer rows. If that is less than a quarter of
        all rows, pools are searched instead.
    max_rounds : int, default=12
        How many rounds of searches a fit makes, at the most.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Oversplit
    >>> model = DPMixtureVB(proposals=("birth", "merge", "delete", Oversplit(n_seeds=6)))
    """

    kind = "oversplit"
    _parameter_constraints = {
        **LastResort._parameter_constraints,
        "n_seeds": [Interval(Integral, 2, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
    }
    _moved = 0.02

    def __init__(
        self,
        n_seeds: int = 3,
        patience: int = 40,
        max_rows: int | None = 10_000,
        max_rounds: int = 12,
    ) -> None:
        super().__init__(max_rows, max_rounds)
        self.n_seeds = n_seeds
        self.patience = patience

    def reset(self) -> None:
        """Forget all attempts, and what they have cost."""
        super().reset()
        self._numbers_left = _FIT_NUMBERS

    def wants(self, totals: StatBag) -> list[int]:
        """All components if a round is due: whether pools have to do is known when the lap ends."""
        return totals.uids.tolist() if self._due else []

    def sample_rows(self, n_statistics: int) -> int:
        """Rows to collect of each component, for pools."""
        return max(1, self.max_rows // _POOL)

    def uniform_rows(self, totals: Any) -> int:
        """All rows, or as many as are allowed, if a round is due."""
        return affordable_rows(totals, self.max_rows) if self._due else 0

    def plan(self, context: Context) -> list[Any]:
        """A trial in which all components give way to those of the best search, or such trials of pools."""
        totals, model = context.totals, context.model
        if not self._begins(context) or len(totals.uids) < 2:
            return []
        numbers = _numbers(context.uniform.resp.size, totals)
        n_seeds = min(self.n_seeds, _MOST_NUMBERS // max(1, numbers))
        if n_seeds < 2 or not shows_everything(context.uniform, totals):
            return self._trials_of_pools(context)
        if self._attempts.failed(self.kind, totals.sizes):
            return []
        self._rounds += 1
        self._attempts.begin(self.kind, totals.uids, totals.n)
        few = len(totals.uids) <= ADAPT_BELOW
        everything = Comparison.of_all(model, totals, context.uniform, adapt=few)
        n_most = min(context.max_components, len(everything.resp))
        work = _NUMBERS_OF_A_SEARCH + n_seeds * numbers
        coef, gain = self._best(everything, n_seeds, n_most, work, context.rng)
        return [] if coef is None else [self._trial(context, totals.uids.tolist(), coef, gain)]

    def _trials_of_pools(self, context):
        """A trial for each pool of neighbours in which a search has found something better."""
        totals, trials = context.totals, []
        self._rounds += 1
        loss = reassignment_loss(context.model, totals)
        for positions in neighbourhoods(loss, _POOL, context.rng):
            uids = totals.uids[positions].tolist()
            tried = self._attempts.failed(tuple(uids), totals.sizes)
            if len(uids) < 2 or tried or not context.samples.keys() >= set(uids):
                continue
            self._attempts.begin(tuple(uids), totals.uids[positions], totals.n[positions])
            coef, gain = self._best_of_pool(context, Pool.of(context, positions))
            if coef is not None:
                trials.append(self._trial(context, uids, coef, gain))
        return trials

    def _best_of_pool(self, context, pool):
        """As `_best`, for a pool."""
        numbers = _numbers(len(pool.sample.mass) * len(pool.own), context.totals)
        n_seeds = min(self.n_seeds, _MOST_NUMBERS // numbers)
        work = (_NUMBERS_OF_A_SEARCH + n_seeds * numbers) // _POOL_NUMBERS
        n_most = min(context.max_components - len(pool.others), len(pool.sample.mass))
        if n_seeds < 2 or n_most < 2:
            return None, 0.0
        compared = Comparison(context.model, pool.sample, pool.own, pool.others)
        search = _Search(compared, n_seeds, n_most, context.rng)
        patience = min(self.patience, _PATIENCE_WITH_POOLS)
        while search.n_failures < patience and self._numbers_left >= work:
            self._numbers_left -= int(work)
            search.go_on()
        return search.coef, pool.scale * search.gain

    def _best(self, everything, n_seeds, n_most, numbers, rng):
        """Coefficients (J, P) of the best components that are found, or None, and their gain in nats.

        ``numbers`` is the work of a search.
        """
        search = _Search(everything, n_seeds, n_most, rng)
        for i in range(_MOST_SEARCHES):
            if self._numbers_left < numbers and i >= _LEAST_SEARCHES:
                break
            self._numbers_left = max(self._numbers_left - int(numbers), 0)
            search.go_on()
            n_others = search.n_failures - search.n_returns
            enough = search.n_returns >= _RETURNS + _RETURNS_PER_FAILURE * n_others
            returned = enough and (i + 1) * numbers >= _FREE_NUMBERS
            if search.n_failures == self.patience or returned:
                break
        return search.coef, search.gain

    def _trial(self, context, uids, coef, gain):
        """The trial in which new components replace those of these names."""
        created = context.new_uids(len(coef))
        return SplitTrial(self.kind, uids, created, coef, gain, n_targets=len(uids))


class _Search:
    """Searches for better components, each from the best ones so far.

    Parameters
    ----------
    compared : Comparison
    n_seeds : int
        Parts that each component is split into.
    n_most : int
        Components, at the most.
    rng : numpy.random.RandomState

    Attributes
    ----------
    coef : ndarray, shape (J, P), or None
        Coefficients of the best components; None if they are those that were there before.
    gain : float
        Their gain, in nats on the sample.
    n_failures, n_returns : int
        Searches since the last gain, and those of them that came back to where they began.
    """

    def __init__(self, compared, n_seeds, n_most, rng):
        self._compared, self._n_seeds, self._n_most, self._rng = compared, n_seeds, n_most, rng
        self._best, self._n_searches = compared.s, 0
        self.coef, self.gain = None, 0.0
        self.n_failures = self.n_returns = 0

    def go_on(self):
        """Make one search more: of all components first, then of a random half, and so on in turns."""
        best, compared, rng = self._best, self._compared, self._rng
        everything = self._n_searches % 2 == 0
        self._n_searches += 1
        chosen = np.ones(len(best), dtype=bool) if everything else _half(len(best), rng)
        found = oversplit(compared.small, best, chosen, self._n_seeds, self._n_most, rng)
        s, coef, gain = (best, self.coef, -np.inf) if found is None else compared.settled(found)
        if 1 < len(s) <= self._n_most and gain > self.gain + WORTH_A_TRIAL:
            self._best, self.coef, self.gain = s, coef, gain
            self.n_failures = self.n_returns = 0
            return
        self.n_failures += 1
        self.n_returns += abs(gain - self.gain) <= WORTH_A_TRIAL


def _numbers(n_shares, totals):
    """Numbers that a step of all components reads, where there are so many shares of rows."""
    return n_shares * (totals.s.shape[1] + _NUMBERS_BESIDE_P)


def _half(K, rng):
    """A mask of about half of ``K`` components, and of one at least."""
    chosen = rng.random_sample(K) < 0.5
    chosen[rng.randint(K)] = True
    return chosen


def oversplit(small, s, chosen, n_seeds, n_most, rng):
    """Statistics (J, P) after splits of several components, and joins and deletes of what does not pay.

    They are None if a single component is left.

    Parameters
    ----------
    small : RestrictedMixture
        All components, on a sample of all rows.
    s : ndarray, shape (K, P)
        Statistics of the components as they are.
    chosen : ndarray of bool, shape (K,)
        Which components are split.
    n_seeds : int
        Parts that each of them is split into.
    n_most : int
        Deletes go on until there are no more components than this.
    rng : numpy.random.RandomState
    """
    tol, K = 1e-4 * small.sample.total, len(s)
    s = _parts(small, s, chosen, n_seeds, rng)
    if len(s) < 2:
        return None
    collapses = len(s) <= most_collapsed(small.model.likelihood, small.sample.z)
    s, _, resp = small.step(s)
    s, entropy, resp = _settled(small, s, resp if collapses else None, tol)
    for i in range(_ROUNDS):
        if len(s) < 2:
            return None
        parts = StatBag(np.arange(len(s)), s, entropy)
        near = nearest(reassignment_loss(small.model, parts), _N_NEIGHBORS)
        union_entropy = small.union_entropy(resp)
        tree = agglomerate(s, entropy, union_entropy, small.evidence, small.allocation, near)
        if len(tree.cut) == len(s):
            break
        # the first tree is made of parts that are not yet what they will be
        groups = [list(group) for group in tree.groups(K if i == 0 else 1)]
        s = np.array([s[group].sum(axis=0) for group in groups])
        shares = None
        if collapses and i < _COLLAPSED_ROUNDS:
            shares = np.stack([resp[:, group].sum(axis=1) for group in groups], axis=1)
        s, entropy, resp = _settled(small, s, shares, tol)
    return _Deletes(small, s).made(n_most) if len(s) > 1 else None


def _settled(small, s, resp, tol):
    """Statistics, entropies and responsibilities after steps.

    The first steps are collapsed if there are ``resp``, the responsibilities that ``s`` are statistics of.
    """
    if len(s) > 1 and resp is not None:
        s, _ = small.collapse(s, resp, _COLLAPSED)
    return small.iterate(s, _STEPS, tol) if len(s) > 1 else (s, None, None)


def _parts(small, s, chosen, n_seeds, rng):
    """Statistics (J, P): the components that are not chosen, and seeds among the rows of each other one.

    These are the rows that are most of all the component's.
    """
    _, _, resp = small.step(s)
    owner, parts = resp.argmax(axis=1), [s[~chosen]]
    for k in np.flatnonzero(chosen):
        own = s[k]
        sample = small.sample.rows(np.flatnonzero(owner == k))
        if len(sample.mass):
            seeds = seeded(small.model, sample, own, n_seeds, bool(rng.randint(2)), rng)
            parts.append(seeds * (sample.total / max(seeds[:, -1].sum(), _LEAST_MASS)))
    return np.concatenate(parts)


class _State(NamedTuple):
    """Components as a local step finds them."""

    s: np.ndarray
    entropy: np.ndarray
    resp: np.ndarray
    coef: np.ndarray
    objective: float


class _Deletes:
    """Deletes of components whose rows others take up with a gain; each after a local step of the others."""

    def __init__(self, small, s):
        self.small = small
        self.state = self._stepped(s)

    def _stepped(self, s):
        small, coef = self.small, self.small.coefficients(s)
        s, entropy, resp = small.step(s)
        return _State(s, entropy, resp, coef, small.objective(s, entropy))

    def without(self, j):
        """Statistics (J - 1, P) and gain in nats if component ``j`` is deleted."""
        small, now = self.small, self.state
        step, rows = small.model.likelihood.local_step, small.sample.rows(self._rows(j))
        before, after = np.empty_like(now.s), np.empty_like(now.s[1:])
        was, entropy = np.empty(len(now.s)), np.empty(len(now.s) - 1)
        step(now.coef, *rows, before, was)
        step(np.delete(now.coef, j, axis=0), *rows, after, entropy)
        s = np.delete(now.s - before, j, axis=0) + after
        np.maximum(s[:, -1], 0.0, out=s[:, -1])
        entropy += np.delete(now.entropy - was, j)
        return s, small.objective(s, entropy) - now.objective

    def _rows(self, j):
        """Numbers of the rows that component ``j`` has some part of."""
        return np.flatnonzero(self.state.resp[:, j] > _LEAST_RESP)

    def made(self, n_most):
        """Statistics (J, P) after all deletes that gain, or that leave no more than ``n_most``."""
        if len(self.state.s) < 3:
            return self.state.s
        gains = [self.without(j)[1] for j in range(len(self.state.s))]
        while len(gains) > 2:
            j, needed = int(np.argmax(gains)), len(gains) > n_most
            if gains[j] <= -_NEARLY and not needed:
                break
            s, gains[j] = self.without(j)  # others have gone since
            if gains[j] < max(gains):
                continue
            s, _, _ = self.small.iterate(s, _STEPS_AFTER_DELETE, 0.0)
            state = self._stepped(s)
            if state.objective <= self.state.objective and not needed:
                gains[j] = -np.inf
                continue
            self.state = state
            del gains[j]
            if len(s) < len(gains):  # the steps have lost others
                return self.made(n_most)
        return self.state.s
