"""Searches for better components: splits of many at once, of which those stay that pay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.affinity import loss_of_statistics, nearest
from ..engine.agglomeration import agglomerate
from ..engine.grouping import Parts, best_grouping
from ..engine.last_resort import often_came_back
from ..splits.development import seeded
from ..splits.restricted_mixture import most_collapsed
from ..splits.slabs import NARROW_ADAPT, grouped_seeds, narrow_rows, statistics_apart
from .comparison import WORTH_A_TRIAL
from .exchange import exchanged

# Rows whose responsibility is less do not count as rows of a component when it is deleted.
_LEAST_RESP = 1e-3
# Least mass that anything is divided by.
_LEAST_MASS = 1e-10
# Collapsed and ordinary steps of the parts, and those after each agglomeration.
_COLLAPSED, _STEPS = 4, 6
# Agglomerations of a search, and how many of them are followed by collapsed steps.
_ROUNDS, _COLLAPSED_ROUNDS = 8, 6
# Each part may be joined with so many neighbours. So many ascents follow that of the agglomeration's groups.
_N_NEIGHBORS, _N_ASCENTS = 10, 8
# Steps end when they gain less than the first of these a row, in nats: what differs by no more may be the
# same. No search is worth a trial that gains less than the second.
_STEP_TOL, _LEAST_GAIN = 1e-4, 1e-5
# A component costs about P / 2 log(rows of it) nats. A delete that is estimated to lose no more than so many
# times this is tried, and deletes end once they have lost so many times this. So many steps follow each.
_REACH, _PATIENCE, _STEPS_AFTER_DELETE = 4.0, 1.0, 4


class Search:
    """Searches for better components, each from the best ones so far.

    There are three kinds, in turns: all components are split; a random half of them is; and parts are seeded
    among all rows, whatever the components. In every second turn, rows of a component that are narrow along a
    column are a part, and all rows are grouped by the columns along which they are narrow (``slabs.py``). The
    prior then adapts to the parts, too, if there are few components: a prior that suits the present ones may
    not suit better ones. If a search fails, blocks of rows in which it has found better components take
    these.

    Parameters
    ----------
    compared : Comparison
    n_seeds, n_most : int
        Parts that each component is split into; components, at the most.
    rng : numpy.random.RandomState

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the best components so far, on the sample.
    coef : ndarray, shape (J, P), or None
        Their coefficients; None if they are those that were there before.
    gain : float
        Their gain, in nats on the sample.
    n_failures, n_returns : int
        Searches since the last gain, and those of them that came back to where they began.
    """

    def __init__(self, compared, n_seeds, n_most, rng):
        self._compared, self._n_seeds, self._n_most, self._rng = compared, n_seeds, n_most, rng
        self.s, self._n_searches = compared.s, 0
        total = compared.small.sample.total
        self._least, self._same = (max(WORTH_A_TRIAL, x * total) for x in (_LEAST_GAIN, _STEP_TOL))
        self.coef, self.gain = None, 0.0
        self.n_failures = self.n_returns = 0

    @property
    def comes_back(self):
        """Whether so many searches have come back to where they began that little is left to find."""
        return often_came_back(self.n_returns, self.n_failures)

    def go_on(self):
        """Make one search more, of another kind each time."""
        best, compared, K = self.s, self._compared, len(self.s)
        turn, kind = divmod(self._n_searches, 3)
        chosen = (np.ones(K, dtype=bool), _half(K, self._rng), None)[kind]
        self._n_searches += 1
        # every second search keeps to the limit of components that share a row, if it is one
        small = compared.restricted(adapt=turn % 2 == 1, limited=self._n_searches % 2 == 0)
        narrow = kind != 1 and turn % 2 == 1
        found = oversplit(small, best, chosen, self._n_seeds, self._n_most, self._rng, narrow)
        s, coef, gain = (best, None, -np.inf) if found is None else compared.settled(found)
        returned = abs(gain - self.gain) <= self._same
        if found is not None and gain < self.gain - self._least:
            found = exchanged(compared.small, best, s)
            s, coef, gain = (s, coef, gain) if found is None else compared.settled(found)
        if 1 < len(s) <= self._n_most and gain > self.gain + self._least:
            self.s, self.coef, self.gain = s, coef, gain
            self.n_failures = self.n_returns = 0
            return
        self.n_failures += 1
        self.n_returns += returned


def _half(K, rng):
    """A mask of about half of ``K`` components, and of one at least."""
    chosen = rng.random_sample(K) < 0.5
    chosen[rng.randint(K)] = True
    return chosen


def oversplit(small, s, chosen, n_seeds, n_most, rng, narrow=False):
    """Statistics (J, P) after splits of several components, and joins and deletes of what does not pay.

    They are None if a single component is left.

    Parameters
    ----------
    small : RestrictedMixture
        All components, on a sample of all rows.
    s : ndarray, shape (K, P)
        Statistics of the components as they are.
    chosen : ndarray of bool, shape (K,), or None
        Which components are split. If None, parts are seeded among all rows, whatever the components.
    n_seeds : int
        Parts that each of them is split into.
    n_most : int
        Deletes go on until there are no more components than this.
    rng : numpy.random.RandomState
    narrow : bool, default=False
        Whether rows of a component that are narrow along a column are a part, and whether parts of all rows
        are groups that are narrow along the same columns, if there are such.
    """
    tol, K = _STEP_TOL * small.sample.total, len(s)
    s = _parts(small, s, chosen, n_seeds, rng, narrow)
    if len(s) < 2:
        return None
    if narrow:
        small.adapt(s, NARROW_ADAPT)
    collapses = len(s) <= most_collapsed(small.model.likelihood, small.sample.z)
    s = _first_steps(small, s, collapses)
    s, entropy, resp = _settled(small, s, tol)
    for i in range(_ROUNDS):
        if len(s) < 2:
            return None
        groups = _groups(small, s, entropy, resp, K if i == 0 else 1, rng)
        if len(groups) == len(s):
            break
        s = np.array([s[list(group)].sum(axis=0) for group in groups])
        if collapses and i < _COLLAPSED_ROUNDS and len(s) > 1:
            resp = np.stack([resp[:, list(group)].sum(axis=1) for group in groups], axis=1)
            s = small.collapse(s, resp, _COLLAPSED, overwrites=True)[0]
        resp = None  # these tables are large
        s, entropy, resp = _settled(small, s, tol)
    return _Deletes(small, s).made(n_most) if len(s) > 1 else None


def _groups(small, s, entropy, resp, n_least, rng):
    """Groups of parts, a list of tuples: a cut of the agglomeration, after changes of single parts' groups.

    The cut has no fewer groups than ``n_least``. Parts that no union of two pays for stay as they are.
    """
    near = nearest(loss_of_statistics(small.model.likelihood, small.model.prior, s), _N_NEIGHBORS)
    union_entropy = small.union_entropy(resp)
    unions = union_entropy.growing()
    tree = agglomerate(s, entropy, unions, small.evidence, small.allocation, near)
    if len(tree.cut) == len(s):
        return tree.cut
    parts = Parts(s, entropy, union_entropy, small.evidence, small.allocation, near)
    return best_grouping(parts, tree.groups(n_least), _N_ASCENTS, rng)


def _first_steps(small, s, collapses):
    """Statistics after an ordinary step of parts, and collapsed ones if these are possible."""
    s, _, resp = small.step(s)
    return small.collapse(s, resp, _COLLAPSED, overwrites=True)[0] if collapses else s


def _settled(small, s, tol):
    """Statistics, entropies and responsibilities after ordinary steps; None twice for a single component."""
    return small.iterate(s, _STEPS, tol) if len(s) > 1 else (s, None, None)


def _parts(small, s, chosen, n_seeds, rng, narrow=False):
    """Statistics (J, P) of parts: of those components that are chosen, or of all rows together.

    Seeds are among the rows that are most of all the component's. Components that are not chosen stay.
    """
    if chosen is None:
        whole = s.sum(axis=0)
        groups = grouped_seeds(small, small.sample, whole, n_seeds * len(s)) if narrow else s[:0]
        if len(groups) > 1:
            return groups * (small.sample.total / max(groups[:, -1].sum(), _LEAST_MASS))
        return _split(small, small.sample, whole, n_seeds * len(s), rng)
    _, _, resp = small.step(s)
    owner, parts = resp.argmax(axis=1), [s[~chosen]]
    for k in np.flatnonzero(chosen):
        own = small.sample.rows(np.flatnonzero(owner == k))
        inside = narrow_rows(small, own, s[k], rng) if narrow else None
        if inside is not None:
            parts.append(statistics_apart(small, own, inside))
        elif len(own.mass):
            parts.append(_split(small, own, s[k], n_seeds, rng))
    return np.concatenate(parts)


def _split(small, sample, target, n_seeds, rng):
    """Statistics (J, P) of parts from seeds among rows, in a random one of two geometries.

    Together they have the mass of the rows.
    """
    seeds = seeded(small.model, sample, target, n_seeds, bool(rng.randint(2)), rng)
    return seeds * (sample.total / max(seeds[:, -1].sum(), _LEAST_MASS))


class _State(NamedTuple):
    """Components as a local step finds them."""

    s: np.ndarray
    entropy: np.ndarray
    resp: np.ndarray
    coef: np.ndarray
    objective: float


class _Deletes:
    """Deletes of components whose rows others take up, each with a few steps of the others after it.

    Where components overlap much, others take up the rows well only after several steps, and some clusters
    are in many parts, of which each delete prepares the next. Deletes therefore go on although they lose,
    and the best components on the way count.
    """

    def __init__(self, small, s):
        self.small = small
        self.state = self._stepped(s)

    def _stepped(self, s):
        small, coef = self.small, self.small.coefficients(s)
        s, entropy, resp = small.step(s)
        return _State(s, entropy, resp, coef, small.objective(s, entropy))

    @property
    def _cost_of_one(self):
        """Nats by which a component has to fit its rows better than others to pay, about."""
        J, P = self.state.s.shape
        return 0.5 * P * np.log(max(self.small.sample.total / J, 2.0))

    def without(self, j):
        """Statistics (J - 1, P) and gain in nats if component ``j`` is deleted."""
        small, now = self.small, self.state
        step, rows = small.model.likelihood.local_step, small.sample.rows(self._rows(j))
        before, after = np.empty_like(now.s), np.empty_like(now.s[1:])
        was, entropy = np.empty(len(now.s)), np.empty(len(now.s) - 1)
        step(now.coef, *rows, before, was, n_nonzero=small.n_nonzero)
        left = np.delete(now.coef, j, axis=0)
        step(left, *rows, after, entropy, n_nonzero=small.n_nonzero)
        s = np.delete(now.s - before, j, axis=0) + after
        np.maximum(s[:, -1], 0.0, out=s[:, -1])
        entropy += np.delete(now.entropy - was, j)
        return s, small.objective(s, entropy) - now.objective

    def _rows(self, j):
        """Numbers of the rows that component ``j`` has some part of."""
        return np.flatnonzero(self.state.resp[:, j] > _LEAST_RESP)

    def made(self, n_most):
        """Statistics (J, P) of the best components on a way of deletes, with no more than ``n_most`` on it.

        Two components are left in any case.
        """
        best, cost, gains = self.state, self._cost_of_one, []
        while len(self.state.s) > 2:
            if len(gains) != len(self.state.s):  # at the beginning, or steps have lost others
                gains = [self.without(j)[1] for j in range(len(self.state.s))]
            j, needed = int(np.argmax(gains)), len(best.s) > n_most
            if gains[j] <= -_REACH * cost and not needed:
                break
            s, gains[j] = self.without(j)  # others have gone since
            if gains[j] < max(gains):
                continue
            s, _, _ = self.small.iterate(s, _STEPS_AFTER_DELETE, 0.0)
            self.state = self._stepped(s)
            del gains[j]
            if self.state.objective > best.objective or needed:
                best = self.state
            elif self.state.objective < best.objective - _PATIENCE * cost:
                break
        return best.s
