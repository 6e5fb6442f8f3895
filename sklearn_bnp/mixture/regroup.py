"""Regroupings: neighbours pooled, and the pool split anew."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.affinity import reassignment_loss
from ..engine.agglomeration import agglomerate
from ..engine.failures import Attempts
from ..engine.proposal import Proposal
from ..engine.samples import Sample
from ..engine.trials import SplitTrial
from ..inputs.rows import stacked
from .creation import Creation, _seeded
from .restricted import RestrictedMixture

# Loss in nats a row, if a component took the rows of another, beyond which the two are no neighbours.
_NEAR = 6.0
# Seeds from which a pool is split, one attempt after the other, each in the other geometry.
_SEEDS = (3, 6, 4)
# Variational steps after seeding, and after agglomeration.
_STEPS, _STEPS_AFTER_CUT = 10, 15
_COLLAPSED, _COLLAPSED_AFTER_CUT = 10, 5
_SELF_FIT = 0.25
# A trial is worth its cost if the estimated loss is below so many nats, or so many a row.
_LOSS, _LOSS_A_ROW = 5.0, 0.005
# Relative change of a component's mass after which a pool is tried again.
_MOVED = 0.05


class Regroup(Proposal):
    """Pool two or three near components and split the pool anew.

    Two components may share the rows of two clusters in the wrong way, each with a part of both; or a narrow
    cluster inside a wide one is cut in halves together with it. No birth and no merge leads out of this.
    When nothing else is left to try, the nearest components are therefore pooled. Each pool is split from
    several seeds, and agglomeration finds how many components stay. They replace the pooled ones, if that
    raises the objective of the whole data.

    Parameters
    ----------
    max_pools : int, default=4
        Pairs that are pooled each time; half as many of them are tried together with a third component.
    max_rows : int, default=2000
        Rows of a component's sample, at the most.
    max_rounds : int, default=5
        How often a fit pools components, at the most.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Regroup
    >>> model = DPMixtureVB(proposals=("birth", "merge", "delete", Regroup(max_pools=10)))
    """

    kind = "regroup"
    suits = ("mixture",)
    _parameter_constraints = {
        "max_pools": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, max_pools=4, max_rows=2000, max_rounds=5):
        self.max_pools = max_pools
        self.max_rows = max_rows
        self.max_rounds = max_rounds

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._attempts = Attempts(change=_MOVED)
        self._due, self._rounds = False, 0

    def wants(self, totals):
        """All components if a round is due: which are near is known only when the lap ends."""
        return totals.uids.tolist() if self._due and len(totals.uids) > 1 else []

    def sample_rows(self, n_statistics):
        """Rows to collect of each component."""
        return self.max_rows

    def plan(self, context):
        """Split trials in which pooled components give way to those of a new split."""
        totals = context.totals
        if not self._due or len(totals.uids) < 2 or context.partial:
            return []
        self._due = False
        if self._rounds >= self.max_rounds:
            return []
        self._rounds += 1
        sizes = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        trials = []
        for pool in self._pools(context.model, totals):
            uids = totals.uids[pool]
            key = tuple(sorted(uids.tolist()))
            if self._attempts.failed(key, sizes) or any(uid not in context.samples for uid in key):
                continue
            self._attempts.begin(key, uids, totals.n[pool])
            coef = self._split(context, pool)
            if coef is not None:
                created = context.new_uids(len(coef))
                trials.append(SplitTrial(self.kind, uids.tolist(), created, coef))
        return trials

    def _pools(self, model, totals):
        """Positions of the nearest pairs, and of the nearest of these with a third."""
        loss = reassignment_loss(model, totals)
        loss = np.minimum(loss, loss.T)
        i, j = np.triu_indices(len(loss), 1)
        order = np.argsort(loss[i, j], kind="stable")[: self.max_pools]
        pairs = [[int(i[o]), int(j[o])] for o in order if loss[i[o], j[o]] <= _NEAR]
        np.fill_diagonal(loss, np.inf)
        pools = list(pairs)
        for pair in pairs[: (self.max_pools + 1) // 2]:
            reach = loss[pair].min(axis=0)
            reach[pair] = np.inf
            third = int(np.argmin(reach))
            pool = sorted([*pair, third])
            if reach[third] <= _NEAR and pool not in pools:
                pools.append(pool)
        return pools

    def _split(self, context, pool):
        """Coefficients (J, P) of a new split of a pool, None if it promises less than the present one."""
        totals, model = context.totals, context.model
        samples = [context.samples[uid] for uid in totals.uids[pool].tolist()]
        sample, scale = pooled(samples, totals.n[pool])
        whole, others = totals.s[pool].sum(axis=0), np.delete(totals.s, pool, axis=0)
        room = context.max_components - len(others)
        new = resplit(model, sample, whole, others, min(room, max(_SEEDS)), context.rng)
        if new is None or len(new.coef) > room:
            return None
        evidence, own = model.likelihood.evidence, sample.mass
        now = (
            evidence(model.prior, totals.s[pool]).sum()
            - evidence(model.prior, whole[np.newaxis])[0]
        )
        now += totals.entropy[pool].sum()
        spread = own * np.log(np.where(own > 0, own, 1.0))
        now += scale * (spread.sum() if sample.weight is None else spread @ sample.weight)
        now += model.allocation.elbo(totals.n) - model.allocation.elbo(
            np.append(others[:, -1], whole[-1])
        )
        least = now - _LOSS - _LOSS_A_ROW * totals.n[pool].sum()
        same = scale < 1.001 and abs(scale * new.gain - now) < 0.05
        return None if scale * new.gain < least or same else new.coef

    def last_resort(self):
        """Nothing is left to try but this."""
        self._due = True

    def new_data(self):
        """New rows may belong together in another way."""
        self.reset()

    def prior_changed(self):
        """Under another prior a pool may be split in another way."""
        self._attempts.clear()

    def judged(self, trial, accepted, mass, gain):
        """After a success, neighbours are pooled again."""
        self._due |= accepted


def pooled(samples, n):
    """Sample of several components of masses ``n`` as one, and the mass that one of its rows stands for.

    The rows of components whose samples are denser get less weight.
    """
    rate = np.array([sample.total for sample in samples]) / n
    weight = np.repeat(rate.min() / rate, [len(sample.mass) for sample in samples])
    if samples[0].weight is not None:
        weight *= np.concatenate([sample.weight for sample in samples])
    z, mass = stacked([sample.z for sample in samples]), np.concatenate([s.mass for s in samples])
    sample = Sample(z, mass, weight if np.any(weight != 1.0) else None).standing_for(n.sum())
    return sample, n.sum() / sample.total


def resplit(model, sample, whole, others, n_most, rng):
    """The best of several splits of a sample into two components or more; None if there is none."""
    best = None
    for attempt, n_seeds in enumerate(_SEEDS):
        small = RestrictedMixture(model, sample, others, adapt=False)
        s = _seeded(model, sample, whole, min(n_seeds, n_most), attempt % 2 == 1, rng)
        s, entropy = _settled(small, s, n_seeds)
        if s is None:
            continue
        gain = small.gain(s, entropy, model.prior)
        if best is None or gain > best.gain:
            best = Creation(s, small.coefficients(s), gain)
    return best


def _settled(small, s, n_seeds):
    """Statistics and entropies after steps and one agglomeration, which leaves two; or None twice."""
    likelihood, sample = small.model.likelihood, small.sample
    tol = 1e-4 * sample.total
    collapse = likelihood.leaves_out and n_seeds * s.shape[1] >= _SELF_FIT * sample.z.shape[0]
    if len(s) > 1 and collapse:
        s, _, resp = small.step(s)
        s, _ = small.collapse(s, resp, _COLLAPSED)
    if len(s) < 2:
        return None, None
    s, entropy, resp = small.iterate(s, _STEPS, tol)
    if len(s) > 2:
        tree = agglomerate(s, entropy, small.union_entropy(resp), small.evidence, small.allocation)
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
