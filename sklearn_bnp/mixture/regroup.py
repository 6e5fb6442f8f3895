"""Regroupings: neighbours pooled, and the pool split anew."""

from __future__ import annotations

from itertools import chain, islice
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.affinity import reassignment_loss
from ..engine.agglomeration import agglomerate
from ..engine.last_resort import LastResort
from ..engine.proposal import Context
from ..engine.statistics import StatBag
from ..engine.trials import SplitTrial
from ..likelihood.seeding import summaries
from ..splits.creation import HOPELESS
from ..splits.development import Creation, seeded
from ..splits.restricted_mixture import LEAST_ROWS, RestrictedMixture, most_collapsed
from ..splits.ways import most_seeds
from .comparison import WORTH_A_TRIAL
from .pooled_rows import Pool

# Loss in nats a row, if a component took the rows of another, beyond which the two are no neighbours.
_NEAR = 6.0
# Seeds from which a pool is split, one attempt after the other, each in the other geometry.
_SEEDS = (3, 6, 4)
# Variational steps after seeding, and after agglomeration.
_STEPS, _STEPS_AFTER_CUT = 10, 15
_COLLAPSED, _COLLAPSED_AFTER_CUT = 10, 5
_SELF_FIT = 0.25
# Numbers (rows x seeds x P) of one step in all splits of a round together; at least one split is tried.
_MOST_NUMBERS = 1_000_000_000
# Splits that are tried in any case, of a pool and of a component alone.
_TRIES, _TRIES_ALONE = 1, 2
# Parts of a pool that may be the inner one of two, one around the other.
_INNER = (0.25, 0.55)


class Regroup(LastResort):
    """Pool two or three near components and split the pool anew.

    Two components may divide the rows of two clusters in the wrong way, each with a part of both. Or a narrow
    cluster inside a wide one is cut in halves together with it. No birth and no merge mends this.
    When nothing else is left to try, the nearest components are therefore pooled. Each pool is split from
    several seeds, side by side and one around the other, and components that do not pay are joined.
    They replace the pooled ones if that raises the objective of the whole data. The largest components are
    split in this way, too. With many columns, fewer pools and fewer seeds are tried. A pool is
    given up if its first splits are far worse than the present components.

    Parameters
    ----------
    max_pools : int, default=4
        How many pairs are pooled each time. Half as many pools have a third component, and half as many of
        the largest components are split alone.
    max_rows : int, default=2000
        The greatest number of rows of a component's sample.
    max_rounds : int, default=5
        How many times a fit may pool components.

    References
    ----------
    This proposal is this package's own.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Regroup
    >>> model = DPMixtureVB(proposals=("birth", "merge", "delete", Regroup(max_pools=10)))
    """

    kind = "regroup"
    suits = ("mixture",)
    _parameter_constraints = {
        **LastResort._parameter_constraints,
        "max_pools": [Interval(Integral, 1, None, closed="left")],
    }
    _moved = 0.05

    def __init__(
        self, max_pools: int = 4, max_rows: int | None = 2000, max_rounds: int = 5
    ) -> None:
        super().__init__(max_rows, max_rounds)
        self.max_pools = max_pools

    def wants(self, totals: StatBag) -> list[int]:
        """All components if a round is due: which are near is known only when the lap ends."""
        return totals.uids.tolist() if self._due else []

    def sample_rows(self, n_statistics: int) -> int:
        """Rows to collect of each component."""
        return self.max_rows

    def plan(self, context: Context) -> list[Any]:
        """Split trials in which pooled components give way to those of a new split."""
        totals = context.totals
        if not self._begins(context):
            return []
        self._rounds += 1
        trials, pools = [], self._open_pools(context)
        for pool, n_splits in zip(pools, _splits(context, pools), strict=False):
            self._begin(totals, pool)
            new = _regrouped(context, pool, n_splits)
            if new is not None:
                created = context.new_uids(len(new.coef))
                uids, n = totals.uids[pool].tolist(), len(pool)
                trials.append(SplitTrial(self.kind, uids, created, new.coef, new.gain, n_targets=n))
        return trials

    def _begin(self, totals, pool):
        """Remember that a pool was tried."""
        uids = totals.uids[pool]
        self._attempts.begin(tuple(sorted(uids.tolist())), uids, totals.n[pool])

    def _open_pools(self, context):
        """Positions of the components of each pool that was not tried as it is now, a list of lists."""
        totals, sizes = context.totals, context.totals.sizes

        def is_open(uids):
            return context.samples.keys() >= set(uids) and not self._attempts.failed(uids, sizes)

        pools = self._pools(context.model, totals)
        return [pool for pool in pools if is_open(tuple(sorted(totals.uids[pool].tolist())))]

    def _pools(self, model, totals):
        """Positions of the nearest pairs, of the nearest of these with a third, and of the largest alone."""
        half = (self.max_pools + 1) // 2
        loss = reassignment_loss(model, totals)
        loss = np.minimum(loss, loss.T)
        i, j = np.triu_indices(len(loss), 1)
        order = np.argsort(loss[i, j], kind="stable")[: self.max_pools]
        pairs = [[int(i[o]), int(j[o])] for o in order if loss[i[o], j[o]] <= _NEAR]
        np.fill_diagonal(loss, np.inf)
        pools = list(pairs)
        for pair in pairs[:half] if len(loss) > 2 else []:
            reach = loss[pair].min(axis=0)
            reach[pair] = np.inf
            third = int(np.argmin(reach))
            pool = sorted([*pair, third])
            if reach[third] <= _NEAR and pool not in pools:
                pools.append(pool)
        largest = np.argsort(-totals.n, kind="stable")[:half]
        return pools + [[int(k)] for k in largest]


def _splits(context, pools):
    """Numbers of splits to try of each pool, a list; it ends early if splits are too costly for all."""
    if not pools:
        return []
    n_rows = [sum(context.samples[uid].z.shape[0] for uid in context.totals.uids[p]) for p in pools]
    numbers = max(_SEEDS) * context.totals.s.shape[1] * max(1, *n_rows)
    room = int(max(1, _MOST_NUMBERS // numbers))
    return [max(1, room // len(pools))] * min(room, len(pools))


def _regrouped(context, pool, n_splits):
    """`Creation` of a new split of a pool; None if it is not worth a trial."""
    totals, model = context.totals, context.model
    n_others = len(totals.s) - len(pool)
    room = min(context.max_components - n_others, max(_SEEDS), most_seeds(totals.s.shape[1]))
    if room < 2:
        return None
    sample, scale, own, others = Pool.of(context, pool)
    small = RestrictedMixture(model, sample, others, False, context.n_nonzero)
    now = small.gain(*small.step(own)[:2], model.prior)
    new = resplit(small, own, int(room), n_splits, now, context.rng)
    if new is None:
        return None
    gain = scale * (new.gain - now)
    return new._replace(gain=gain) if gain > WORTH_A_TRIAL else None


def resplit(small, s, n_most, n_splits, now, rng):
    """The best of several splits of a pool into two components or more; None if there is none.

    It is given up where the first ones are far worse than the present components.

    Parameters
    ----------
    small : RestrictedMixture
        Of the pool's rows, beside the components that stay. Its prior does not adapt.
    s : ndarray, shape (J, P)
        Statistics of the pooled components.
    n_most : int
        Seeds, at the most.
    n_splits : int
        Splits to try, at the most.
    now : float
        Gain of the present components over a single one, in nats.
    rng : numpy.random.RandomState
    """
    free = small if small.n_nonzero is None else small.on(small.sample, free=True)
    best, least = None, _TRIES_ALONE if len(s) == 1 else _TRIES
    for i, (seeds, n_seeds) in enumerate(
        islice(_all_seeds(small.model, small.sample, s, n_most, rng), n_splits)
    ):
        if i >= least and best is not None and best.gain < now - HOPELESS:
            break
        new, entropy = _settled(free, seeds, n_seeds)
        if new is not None and small is not free:
            new, entropy = small.refine(new)
        if new is None:
            continue
        gain = small.gain(new, entropy, small.prior)
        if best is None or gain > best.gain:
            best = Creation(new, small.coefficients(new), gain)
    return best


def _all_seeds(model, sample, s, n_most, rng):
    """Statistics of seeds, and their number: side by side, and one around the other.

    A component that is alone was already split side by side by births.
    """
    seeds = _side_by_side(model, sample, s, n_most, rng), _around(model, sample, s)
    return chain(*(seeds[::-1] if len(s) == 1 else seeds))


def _side_by_side(model, sample, s, n_most, rng):
    for attempt, n_seeds in enumerate(_SEEDS):
        n = min(n_seeds, n_most)
        yield seeded(model, sample, s.sum(axis=0), n, attempt % 2 == 1, rng), n


def _around(model, sample, s):
    mass = sample.row_mass
    for density in model.likelihood.log_predictive(model.prior, s, sample.z).T:
        order = np.argsort(-density, kind="stable")
        reach = np.cumsum(mass[order]) / mass.sum()
        for part in _INNER:
            yield _apart(model, sample, mass, order[: np.searchsorted(reach, part)]), 2


def _apart(model, sample, mass, rows):
    """Statistics of the given ``rows`` and of all others; of one of the two if the other owns no row."""
    parts = np.zeros((len(mass), 2))
    parts[:, 1] = 1.0
    parts[rows] = [1.0, 0.0]
    seeds = summaries(model.likelihood, sample.z, parts * mass[:, np.newaxis])
    return seeds[sample.rows_owned(seeds[:, -1], parts) >= LEAST_ROWS]


def _settled(small, s, n_seeds):
    """Statistics and entropies after steps and one agglomeration, which leaves two; or None twice."""
    likelihood, sample = small.model.likelihood, small.sample
    tol = 1e-4 * sample.total
    self_fits = n_seeds * s.shape[1] >= _SELF_FIT * sample.z.shape[0]
    collapse = self_fits and n_seeds <= most_collapsed(likelihood, sample.z)
    if len(s) > 1 and collapse:
        s, _, resp = small.step(s)
        s, _ = small.collapse(s, resp, _COLLAPSED)
    if len(s) < 2:
        return None, None
    s, entropy, resp = small.iterate(s, _STEPS, tol)
    if len(s) > 2:
        unions = small.union_entropy(resp).growing()
        tree = agglomerate(s, entropy, unions, small.evidence, small.allocation)
        cut = tree.cut if len(tree.cut) > 1 else _last_two(len(s), tree.nodes)
        if len(cut) < len(s):
            s = np.array([s[list(group)].sum(axis=0) for group in cut])
            if collapse:
                resp = np.stack([resp[:, list(group)].sum(axis=1) for group in cut], axis=1)
                s, _ = small.collapse(s, resp, _COLLAPSED_AFTER_CUT)
    if len(s) > 1:
        s, entropy, _ = small.iterate(s, _STEPS_AFTER_CUT, 0.1 * tol)
    return (s, entropy) if len(s) > 1 else (None, None)


def _last_two(n, nodes):
    """The two groups of n components before the last union of an agglomeration."""
    groups = [(k,) for k in range(n)]
    for node in nodes[:-1]:
        groups = [g for g in groups if not set(g) <= set(node.members)] + [node.members]
    return groups
