"""Merges of two components, and of several at once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from .affinity import near_pairs, union_evidence_gains
from .agglomeration import agglomerate
from .edits import union_row
from .failures import Failures
from .proposal import Context, Proposal
from .trials import UnionTrial
from .unions import GrowingUnions, entropies_of_unions

# Groups of several are tried down to this estimated gain a row: the estimate is from a sample.
_LEAST_GAIN = -0.01
# Relative change of a component's mass after which groups are looked for again.
_MOVED = 0.03


class Merge(Proposal):
    """Join components if their union explains the data as well.

    Parameters
    ----------
    max_members : int or None, default=None
        Largest number of components that one merge may join; no limit if None. Before a fit ends, the union
        of all components is tried as well, if it is better under a prior that suits it.
    pairs_per_component : int, default=3
        How many pairs are tried in a lap, as a multiple of the number of components.
    n_neighbors : int, default=8
        If there are more than four times as many components, a component is joined only with one of its
        ``n_neighbors`` nearest.

    References
    ----------
    Hughes (2016), Sec. 4.1; merges of several are this package's own.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Merge
    >>> model = DPMixtureVB(proposals=("birth", Merge(max_members=2)))
    """

    kind = "merge"
    suits = ("mixture", "topics")
    goes_last = True
    _parameter_constraints = {
        "max_members": [Interval(Integral, 2, None, closed="left"), None],
        "pairs_per_component": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, max_members: int | None = None, pairs_per_component: int = 3, n_neighbors: int = 8
    ) -> None:
        self.max_members = max_members
        self.pairs_per_component = pairs_per_component
        self.n_neighbors = n_neighbors

    def reset(self) -> None:
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.01)
        self._barren = {}  # counts of components when an agglomeration last led to no new trial
        self._last_chance = False

    @property
    def pending(self) -> bool:
        """Whether the union of all components is still to be tried."""
        return self._last_chance

    def plan(self, context: Context) -> list[Any]:
        """Union trials for the best pairs, and for the nodes of an agglomeration."""
        totals = context.totals
        K = len(totals.uids)
        if K < 2:
            self._last_chance = False
            return []
        near = near_pairs(context.model, totals, self.n_neighbors)
        gains = self._pairs(context, near)
        if K > 2 and (self.max_members is None or self.max_members > 2) and self._has_moved(totals):
            several = self._several(context, near)
            gains |= several
            if not several:
                self._barren = totals.sizes
        trials, everything = [], tuple(range(K))
        self._last_chance = self._last_chance and _is_better_as_one(context.model, totals)
        if self._last_chance and context.idle and not context.others_pending:
            # whatever failed before did so under another prior
            uids = sorted(totals.uids.tolist())
            trials = [UnionTrial(self.kind, uids, context.new_uids(1), leaves_one=True)]
            gains.pop(everything, None)
        for members, gain in gains.items():
            removed = tuple(sorted(totals.uids[list(members)].tolist()))
            if not self._failures.blocked(removed, totals.n[list(members)].sum()):
                trials.append(UnionTrial(self.kind, removed, context.new_uids(1), estimate=gain))
        return trials

    def _has_moved(self, totals):
        """Whether a component is new or has changed since an agglomeration led to no trial."""
        return any(
            abs(n - self._barren.get(uid, -n)) > _MOVED * n for uid, n in totals.sizes.items()
        )

    def _pairs(self, context, near):
        """Pairs with the best upper bounds of the gain (4.10), which leave out the falling entropy.

        A dict: positions in ascending order -> upper bound in nats.
        """
        model, totals = context.model, context.totals
        i, j = np.nonzero(np.triu(near, 1))
        pairs = list(zip(i.tolist(), j.tolist(), strict=True))
        gain = union_evidence_gains(model.likelihood, model.prior, totals.s, i, j)
        gain = gain + model.union_gains(totals, pairs)
        best = np.argsort(-gain, kind="stable")[: self.pairs_per_component * len(totals.uids)]
        return {pairs[p]: float(gain[p]) for p in best if gain[p] > 0}

    def _several(self, context, near):
        """Nodes of more than two members, unless the estimate from the uniform sample is a clear loss.

        A dict: positions in ascending order -> estimated gain in nats.
        """
        model, totals = context.model, context.totals
        _, resp, weight = context.uniform
        if len(resp) == 0:
            return {}
        scale, K = totals.n.sum() / context.uniform.total, len(totals.n)

        def union_entropy(unions):
            return scale * entropies_of_unions(resp, weight, unions)

        tree = agglomerate(
            totals.s, union_entropy([(k,) for k in range(K)]), GrowingUnions(union_entropy, K),
            lambda s: model.likelihood.evidence(model.prior, s), model.allocation.elbo, near,
        )  # fmt: skip
        most = len(totals.n) if self.max_members is None else self.max_members
        nodes = [node for node in tree.nodes if 2 < len(node.members) <= most]
        groups = [node.members for node in nodes]
        gains = [node.gain for node in nodes] + model.union_gains(totals, groups)
        return {
            tuple(sorted(group)): float(gain)
            for group, gain in zip(groups, gains, strict=True)
            if gain > _LEAST_GAIN * totals.n[list(group)].sum()
        }

    def last_resort(self) -> None:
        """One component may be better than all, which is tried when no other proposal has anything left."""
        self._last_chance = True

    def new_data(self) -> None:
        """Forget failures: merges that failed may succeed on more rows."""
        self.reset()

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures."""
        if trial.leaves_one:
            self._last_chance = False
        self._failures.judged(trial.removed, accepted, mass)


def _is_better_as_one(model, totals):
    """Whether one component would be better than all, under the prior that suits it.

    Many small components may hold the prior where they need it, so that each step on the way to one
    component is a loss. The statistics of one component are known, and its entropy is 0.
    """
    uids = tuple(totals.uids.tolist())
    one = totals.replaced(uids, union_row(totals, uids, uids[:1], 0.0))
    one, alone = model.in_order(one)
    return alone.alone(one).elbo(one) > model.elbo(totals)
