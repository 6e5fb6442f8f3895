"""Merges of states of hidden Markov models: pairs, and several pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from .._kernels._chain_entropies import coarse_entropies
from .._kernels.threads import threads_for_renaming
from ..engine.affinity import union_evidence_gains
from ..engine.failures import Failures
from ..engine.probe import Observer, Probe
from ..engine.proposal import Context
from ..engine.trials import Expectation, Outcome, Policy, Trial
from .second_try import SecondTries
from .unions import GroupsEdit, least_change, union_rows

# Pairs by the gain of the data term, a multiple of the number of states, that the rest is found for.
_SCREENED = 6
# Steps times pairs that estimates may take, or pairs for each step if there are many; and the fewest steps.
_WORK, _PAIRS_A_STEP, _LEAST_STEPS = 100_000, 50, 500
# Nats, and a share of the change of the entropy, by which estimates may be wrong: responsibilities
# move before a pair is judged.
_NATS, _SHARE = 10.0, 0.1
# Share of the rows of its states that a merge has to have observed before it may be given up, and the share
# of the change of the entropy that its expected gain may then be wrong by, beside as many nats.
_LEAST_SEEN, _LATER_SHARE = 0.05, 0.3


@dataclass(frozen=True, eq=False)
class CoarseningProbe(Probe):
    """The change of the entropy if groups of states become one each: a number of either sign.

    Attributes
    ----------
    groups : tuple of pairs
        Uids that go, and the uid that takes their place.
    """

    groups: tuple

    @classmethod
    def observer(cls, probes, task):
        return _CoarseningObserver(probes, task.n_threads)


class _CoarseningObserver(Observer):
    """Changes of the entropy under many coarsenings at once, from the marginals of pairs of rows."""

    wants_alpha = True

    def __init__(self, probes, n_threads):
        self._probes, self._n_threads = probes, n_threads
        self._change = np.zeros(len(probes))

    def observe(self, block):
        where = {uid: k for k, uid in enumerate(block.uids.tolist())}
        maps = np.tile(np.arange(len(where), dtype=np.intp), (len(self._probes), 1))
        for labels, probe in zip(maps, self._probes, strict=True):
            for members, _ in probe.groups:
                columns = [where[uid] for uid in members]
                labels[columns] = columns[0]
        self._change += block_changes(block, maps, self._n_threads)

    def finish(self, statistics):
        return self._change.tolist()


def _members(totals, pair):
    """Uids of a pair of rows of ``totals``."""
    return tuple(sorted(totals.uids[pair].tolist()))


def block_changes(block, maps, n_threads):
    """Change (P,) of a `ChainBlock`'s share of the entropy when states are renamed by ``maps`` (P, K).

    A chain's entropy is that of its rows to t, and of those from t on, less that of row t, which
    both have. So if the sequence goes on, there are the rows of the block, its last one and the one
    after it, and both of these once too often.
    """

    def changes(alpha, resp, indptr, weight):
        out, n = np.empty(len(maps)), threads_for_renaming(len(resp), len(maps), n_threads)
        coarse_entropies(alpha, resp, indptr, block.trans, maps, out, n, weight, True)
        return out

    own = changes(block.alpha, block.resp, block.indptr, block.weight)
    if block.after is None:
        return own
    alpha = np.concatenate([block.alpha[-1:], block.after])  # the last one's is not looked at
    resp = np.concatenate([block.resp[-1:], block.after])
    pair, each = (np.array(edges, dtype=np.int64) for edges in ([0, 2], [0, 1, 2]))
    both = None if block.weight is None else np.repeat(block.weight, 2)  # it is one sequence
    return own + changes(alpha, resp, pair, block.weight) - changes(alpha, resp, each, both)


class CoarseningTrial(Trial):
    """Several disjoint groups of states that become one each.

    Joining one group alters what another does to the entropy: the change is that of all together, and
    no other trial is accepted with this one. It may be of either sign.
    """

    kind = "merge"
    policy = Policy.ALONE
    unites = foretells = True

    def __init__(self, groups, estimate=None):
        self.groups, self.estimate = tuple(groups), estimate
        self.removed = tuple(uid for members, _ in self.groups for uid in members)
        self.created = tuple(created for _, created in self.groups)
        self.probe = CoarseningProbe(self.groups)

    def expected(self, totals, observed, findings):
        """`Expectation` if the entropy changes in proportion to the mass of the states."""
        rows = totals.positions(self.removed)
        mass, seen = totals.n[rows].sum(), observed.n[rows].sum()
        if seen < _LEAST_SEEN * mass:
            return None
        change = mass / seen * sum(findings.values())
        successors = union_rows(totals, self.groups, change)
        return Expectation(successors, _NATS + _LATER_SHARE * abs(change))

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; of batches that were not observed, with the bound of the entropy."""
        change = sum(findings.values())
        if rest is not None:
            change += least_change(rest, self.groups)
        return Outcome(union_rows(totals, self.groups, change), GroupsEdit(self.groups, findings))


class StateMerge(SecondTries):
    """Join states whose union explains the sequences as well.

    The gain of a merge is estimated for all pairs, from the totals and from a sample of
    steps between rows. In one lap the exact change of the entropy is found for each of the most promising
    pairs, and the best pair is joined if the objective of the whole data rises. All other pairs that would
    have raised it are then tried together.

    Such a merge is judged without moving rows between states. When nothing else is left to try, the best
    pairs are therefore tried again, one at a time. A lap begins with one state in place of two, and all rows
    may move. Up to thirty passes more follow as long as the objective of the whole data rises fast. All is
    taken back unless the objective is higher than before.

    Parameters
    ----------
    pairs_per_component : int, default=1
        How many pairs are looked at in a lap, as a multiple of the number of states.
    max_second_tries : int, default=3
        How many pairs are tried again, each time that nothing else is left to try; 0 for none.
        Those come first that are estimated to lose least for each row of the smaller state.

    References
    ----------
    Hughes (2016), Sec. 6.5.1, with exact entropies in place of the bound.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateMerge
    >>> model = HDPHMMVB(proposals=("birth", StateMerge(pairs_per_component=3)))
    """

    kind = "merge"
    wants_steps = True
    _parameter_constraints = {
        "pairs_per_component": [Interval(Integral, 1, None, closed="left")],
        **SecondTries._parameter_constraints,
    }

    def __init__(self, pairs_per_component: int = 1, max_second_tries: int = 3) -> None:
        super().__init__(max_second_tries)
        self.pairs_per_component = pairs_per_component

    def reset(self) -> None:
        """Forget all failures."""
        super().reset()
        self._failures = Failures(change=0.02)
        self._promising = []

    def plan(self, context: Context) -> list[Any]:
        """Trials for the best pairs, and for all at once that would have been accepted."""
        totals = context.totals
        if len(totals.uids) < 2 or context.partial:
            self._n_left = 0  # laps would not go over all rows
        if len(totals.uids) < 2:
            return []
        trials = []
        for pair, gain in self._pairs(context):
            members = _members(totals, pair)
            trials.append(CoarseningTrial([(members, context.new_uids(1)[0])], gain))
        several = self._disjoint(set(totals.uids.tolist()))
        if len(several) > 1:
            trials.append(CoarseningTrial([(g, context.new_uids(1)[0]) for g in several]))
        self._promising = []
        if self._n_left and context.idle and not trials:
            return self._second_try(context, self._losses(context))
        return trials

    def _losses(self, context):
        """Estimated loss in nats of each pair (tuple of uids) whose data term speaks for it most."""
        pairs, gain = self._screened(context)
        gain += self._enough(context.uniform, pairs).changes(
            context.totals.uids[pairs], context.n_threads
        )
        return {
            _members(context.totals, pair): -float(g) for pair, g in zip(pairs, gain, strict=True)
        }

    @staticmethod
    def _enough(steps, pairs):
        """Steps for estimates of so many pairs, fewer where pairs are many."""
        work = max(_WORK, _PAIRS_A_STEP * steps.n_steps)
        return steps.thinned(max(_LEAST_STEPS, work // max(1, len(pairs))))

    @staticmethod
    def _screened(context):
        """The pairs (i, j) with the best data terms, and the gain of each but for the entropy."""
        model, totals = context.model, context.totals
        K = len(totals.uids)
        i, j = np.triu_indices(K, 1)
        gain = union_evidence_gains(model.likelihood, model.prior, totals.s, i, j)
        screened = np.argsort(-gain, kind="stable")[: _SCREENED * K]
        pairs = np.column_stack([i, j])[screened]
        return pairs, gain[screened] + model.union_gains(totals, pairs)

    def _pairs(self, context):
        """The best pairs (i, j) by estimates of the gain, of those that may have one and did not fail.

        A list of pairs and their estimates, in nats.
        """
        totals = context.totals
        pairs, gain = self._screened(context)
        failed = [self._failures.blocked(_members(totals, p), totals.n[p].sum()) for p in pairs]
        pairs, gain = pairs[~np.array(failed)], gain[~np.array(failed)]
        steps = context.uniform
        # the bound of what the entropy may rise by is found in less time than the estimate
        most = steps.most(totals.uids[pairs], context.n_threads)
        open_ = np.flatnonzero(gain + most + steps.error(most) + _NATS > 0)
        pairs = pairs[open_]
        steps = self._enough(steps, pairs)
        change = steps.changes(totals.uids[pairs], context.n_threads)
        gain = gain[open_] + change
        slack = _NATS + _SHARE * np.abs(change) + steps.error(change)
        best = np.argsort(-gain, kind="stable")[: self.pairs_per_component * len(totals.uids)]
        return [(pairs[p], float(gain[p])) for p in best if gain[p] + slack[p] > 0]

    def _disjoint(self, present):
        """Groups that would have raised the objective, the best first, each state in one at most."""
        chosen, used = [], set()
        for _, members in sorted(self._promising, reverse=True):
            if used.isdisjoint(members) and present.issuperset(members):
                chosen.append(members)
                used.update(members)
        return chosen

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures, and what was only in the way of something better."""
        super().judged(trial, accepted, mass, gain)
        if trial.policy is Policy.WITH_LAP or accepted or len(trial.groups) > 1:
            return
        if gain > 0:
            self._promising.append((gain, trial.groups[0][0]))
        else:
            self._failures.note(trial.groups[0][0], mass)
