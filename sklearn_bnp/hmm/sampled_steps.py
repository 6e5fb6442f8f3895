"""Steps of sequences from one row to the next, drawn for estimates of entropies after merges.

Design note
-----------
(a) When states i and j of a Markov chain z become one, y = g(z), and y is taken for a Markov chain too,
    the entropy ``H(z_1) + sum_t H(z_{t+1} | z_t)`` changes by the sum over steps of

        x_t = H(y_{t+1} | y_t) - H(z_{t+1} | z_t) = I(y_{t+1}; z_t | y_t) - H(z_{t+1} | y_{t+1}, z_t),

    of which the first step has ``-H(z_1 | y_1)`` more. It may be of either sign.
(b) With ``b_t = H(z_t | y_t)``, a step has ``-b_{t+1} <= x_t <= b_t``. Where the largest r of row t is
    1 - u, b_t is no more than ``f(u) = u (1 - log u)``, whichever states i and j are. So steps between
    rows that are sure matter little, and ``|x_t| <= v_t = f(u_t) + f(u_{t+1})`` tells how little.
(c) Steps are drawn by priority sampling (Duffield, Lund, Thorup 2007): those with the greatest
    ``v_t / uniform number`` are kept. With the threshold tau below which they were not, ``sum
    max(1, tau / v_t) x_t`` is an unbiased estimate; no step has more than tau in it that was not certain
    to be kept, so that its variance is at most tau times ``sum |x_t|``. It is exact if all are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._chain_entropies import coarse_entropies
from .._kernels.threads import threads_for_renaming

# Rows surer than this say nothing. Of those that are drawn smaller r are left out: 1.4e-5 nats each.
_SURE, _LEAST_SHARE = 1e-12, 1e-6
# Steps that are held on the way, times those that are kept in the end.
_SPARE = 1.5
# Standard deviations of the sampling that estimates may be wrong by.
_DEVIATIONS = 1.0


class _Drawn(NamedTuple):
    """Steps from a block, probabilities in single precision.

    Attributes
    ----------
    alpha : ndarray, shape (m, K)
        Filtered probabilities of the rows that steps begin with.
    resp : ndarray, shape (m, 2, K)
        Responsibilities of both rows. A sequence of one row goes on to the first state.
    begins : ndarray of bool, shape (m,)
        Whether the sequence begins here.
    weight, size, priority : ndarray, shape (m,)
        How often the step counts; the bound of what it changes, so often; and the rank.
    trans : ndarray, shape (K, K)
    """

    alpha: np.ndarray
    resp: np.ndarray
    begins: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    priority: np.ndarray
    trans: np.ndarray

    def those(self, kept):
        """The steps ``kept`` (m,)."""
        return self if kept.all() else type(self)(*(x[kept] for x in self[:-1]), self.trans)


class StepObserver:
    """Draws steps while blocks pass by.

    Parameters
    ----------
    n_steps : int
        The most that are kept in the end.
    threshold : float
        Steps of lower priority are not wanted.
    rng : numpy.random.RandomState
        For these draws alone: how sure rows are has no say in what else is drawn.
    """

    def __init__(self, n_steps, threshold, rng):
        self.n_steps, self._rng = n_steps, rng
        self._steps = Steps(np.empty(0, dtype=np.int64), (), threshold)

    def observe(self, block):
        """Draw from a `ChainBlock` with alpha."""
        self._steps = self._steps._replace(uids=block.uids)
        if len(block.resp) == 0:
            return
        unsure = 1.0 - block.resp.max(axis=1)
        after = 0.0 if block.after is None else 1.0 - block.after.max()
        unsure_next = np.append(unsure[1:], after)
        begins, ends = _ends(block)
        unsure_next[ends] = 0.0
        # the last row of a sequence begins no step, but for the only one
        steps = np.flatnonzero((unsure + unsure_next > _SURE) & (~ends | begins))
        weight = np.ones(len(steps))
        if block.weight is not None:
            weight = np.repeat(block.weight, np.diff(block.indptr))[steps]
        size = weight * (_most(unsure[steps]) + _most(unsure_next[steps]))
        priority = size / (1.0 - self._rng.random_sample(len(steps)))
        own = self._steps.within(self.n_steps, priority)
        kept = priority > own.threshold
        steps = steps[kept]
        if len(steps):
            drawn = _Drawn(
                block.alpha[steps].astype(np.float32), _rows(block, steps, ends[steps]),
                begins[steps], weight[kept], size[kept], priority[kept], block.trans,
            )  # fmt: skip
            own = own._replace(parts=(*own.parts, drawn))
        self._steps = own

    def finding(self, statistics):
        """`Steps` of the part."""
        return self._steps.within(self.n_steps)


class Steps(NamedTuple):
    """Steps drawn from all sequences.

    Attributes
    ----------
    uids : ndarray, shape (K,)
        States that the columns stand for by now, of which several may be the same.
    parts : tuple
    threshold : float
        Bound of what a step that was not certain to be kept stands for, in nats.
    """

    uids: np.ndarray
    parts: tuple = ()
    threshold: float = 0.0

    def after(self, trial):
        """The steps after an accepted trial: states of a union have its name; other trials leave none."""
        if not trial.unites:
            return NO_STEPS
        names = {uid: created for members, created in trial.groups for uid in members}
        uids = np.array([names.get(uid, uid) for uid in self.uids.tolist()], dtype=np.int64)
        return self._replace(uids=uids)

    def listed(self, uids, wanted):
        """The steps themselves, whose states have names: the order of components is nothing to them."""
        return self

    def above(self, threshold):
        """The steps of greater priority than a threshold that is no lower."""
        if threshold == self.threshold:
            return self
        return self._replace(parts=tuple(_above(self.parts, threshold)), threshold=threshold)

    def joined(self, other):
        """These steps and others, of the same states."""
        least = max(self.threshold, other.threshold)
        parts = (*self.above(least).parts, *other.above(least).parts)
        return Steps(other.uids if len(other.uids) else self.uids, parts, least)

    def within(self, n_steps, new=()):
        """The steps, thinned out to ``n_steps`` if there are far more, with those of ``new`` priorities."""
        priority = np.concatenate([new, *(part.priority for part in self.parts)])
        if np.count_nonzero(priority > self.threshold) <= _SPARE * n_steps:
            return self
        return self.above(max(self.threshold, _first_out(priority, n_steps)))

    @property
    def n_steps(self):
        """The number of steps."""
        return sum(len(part.priority) for part in self.parts)

    def thinned(self, n_steps):
        """No more than ``n_steps`` of these."""
        priority = np.concatenate([[], *(part.priority for part in self.parts)])
        return self.above(max(self.threshold, _first_out(priority, n_steps)))

    def most(self, groups, n_threads=1):
        """Estimated upper bounds (P,) of the entropy's rise if each of the groups of states becomes one."""
        maps, out = self._maps(groups), np.zeros(len(groups) + 1)
        for part in self.parts:
            out -= self._sums(part, maps, 1, n_threads)
        return np.maximum(out[:-1] - out[-1], 0.0)

    def changes(self, groups, n_threads=1):
        """Estimated changes (P,) of the entropy if each of the groups of states becomes one."""
        maps, out = self._maps(groups), np.zeros(len(groups) + 1)
        for part in self.parts:
            out += self._sums(part, maps, 2, n_threads)
            out -= self._sums(part.those(~part.begins), maps, 1, n_threads)
        return out[:-1] - out[-1]

    def error(self, change):
        """Sampling error to allow for in an estimated change, in nats."""
        return _DEVIATIONS * np.sqrt(self.threshold * (np.abs(change) + self.threshold))

    def _maps(self, groups):
        """Renamings (P + 1, K), the last one of nothing but what has a new name already."""
        _, labels = np.unique(self.uids, return_inverse=True)
        maps = np.tile(labels.astype(np.intp), (len(groups) + 1, 1))
        for names, members in zip(maps, groups, strict=False):
            columns = np.isin(self.uids, members)
            names[columns] = names[columns].min(initial=len(names))
        return maps

    def _sums(self, part, maps, n_rows, n_threads):
        """Weighted sums (P + 1,) of what is changed for the first ``n_rows`` rows of each step."""
        m, out = len(part.weight), np.empty(len(maps))
        weight = part.weight * np.maximum(1.0, self.threshold / part.size)
        resp = part.resp[:, :n_rows].astype(np.float64).reshape(m * n_rows, maps.shape[1])
        alpha = np.repeat(part.alpha.astype(np.float64), n_rows, axis=0)  # of second rows unused
        edges = np.arange(0, m * n_rows + 1, n_rows, dtype=np.int64)
        n_threads = threads_for_renaming(m * n_rows, len(maps), n_threads)
        coarse_entropies(alpha, resp, edges, part.trans, maps, out, n_threads, weight, True)
        return out


NO_STEPS = Steps(np.empty(0, dtype=np.int64))


def _first_out(priority, n):
    """The greatest priority but for the ``n`` greatest; 0 if there are no more."""
    place = len(priority) - n - 1
    return float(np.partition(priority, place)[place]) if place >= 0 else 0.0


def _above(parts, threshold):
    """Steps of greater priority than ``threshold``, without parts that have none."""
    thinner = [part.those(part.priority > threshold) for part in parts]
    return [part for part in thinner if len(part.priority)]


def _most(unsure):
    """f(u) of the design note; u is 0 or less by rounding where a row is sure."""
    u = np.maximum(unsure, 1e-300)
    return u * (1.0 - np.log(u))


def _ends(block):
    """Whether sequences begin, and end, with each row (n,) of a block."""
    begins, ends = np.zeros((2, len(block.resp)), dtype=bool)
    begins[block.indptr[:-1]] = True
    begins[0] = block.part.offset == 0
    ends[block.indptr[1:] - 1] = True
    ends[-1] = block.after is None
    return begins, ends


def _rows(block, steps, alone):
    """Responsibilities (m, 2, K) of the rows of steps; those that are ``alone`` have no second one."""
    out = np.zeros((len(steps), 2, block.resp.shape[1]), dtype=np.float32)
    out[:, 0] = block.resp[steps]
    inside = ~alone & (steps + 1 < len(block.resp))
    out[inside, 1] = block.resp[steps[inside] + 1]
    out[alone, 1, 0] = 1.0
    if block.after is not None:
        out[~alone & ~inside, 1] = block.after[0]
    out[out < _LEAST_SHARE] = 0.0
    return out
