"""Models of different rows become one, from their statistics alone.

Design note
-----------
(a) Each part, a model with its rows, is as a batch that will not be seen again. Its components have names
    that no other part knows. All of them together are a model of all rows, whose objective is known exactly.
(b) Unions follow. A component of one part has no share of the rows of another. The union of components of
    different parts is therefore, within each part, the same component under another name: its statistics
    are sums, and the objective after it is exact. Where a union has two components of one part, a lower
    bound stands for its entropy there.
(c) Unions of many pairs are made at once, and judged together: those of states pay only together, as the
    rows of transitions agree when all states have met their likes. Each pair of which the estimated
    gain is small, or negative, is then left out again if the objective is higher without it.
(d) The parts are taken in an order of their own, the largest first, so that the result does not depend on
    the order in which they are given.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from .affinity import near_pairs, union_evidence_gains
from .scheduler import resolution
from .statistics import StatBag

# Steps of empirical Bayes on all statistics, and the most times that these and unions take turns.
_ADAPT_STEPS, _MOST_ROUNDS = 20, 10
# Pairs are neighbours if one component is among so many nearest ones of the other; see `near_pairs`.
_N_NEIGHBORS = 8
# Estimated gain in nats up to which a pair is judged by itself.
_DOUBT = 50.0


def canonical_order(bags):
    """Indices of the totals of parts, the largest first, whatever the order in which they are given."""
    return sorted(
        range(len(bags)), key=lambda i: (-bags[i].n.sum(), len(bags[i].n), bags[i].s.tobytes())
    )


def combine_parts(learner, bags):
    """Let a new learner have the components of several parts, joined where that raises the objective.

    Parameters
    ----------
    learner : Learner
        It has a model, which knows none of the components, and no statistics.
    bags : list of StatBag
        The totals of each part, in the model's units.
    """
    combined = _Combined.of(learner.model, _with_own_names(bags, learner.new_uids))
    n_parts = len(combined.totals.uids)
    for _ in range(_MOST_ROUNDS):
        combined = combined.adapted()
        before = len(combined.totals.uids)
        combined = _united(combined)
        if len(combined.totals.uids) == before:
            break
    learner.totals, learner.model = combined.totals, combined.model
    learner.forget_batches()
    lap = learner.end_lap(propose=False)
    n_unions = n_parts - len(combined.totals.uids)
    learner.history[-1] = lap._replace(accepted={"merge": n_unions} if n_unions else {})
    _count_as_learned(learner)


def keep_sums(learner):
    """Let a learner keep one sum in place of its batches, and no rows; its model stays as it is.

    A single part is the model of all its rows already. Unions, and priors that are learned on, would make
    another one of it.

    Parameters
    ----------
    learner : Learner
        Nothing is on trial.
    """
    learner.forget_batches()
    learner.scheduler.drop_samples()
    learner.history[:] = [
        lap._replace(
            n_components=len(learner.totals.uids), lower_bound=learner.lower_bound,
            tried={}, accepted={}, trials=(),
        )
        for lap in learner.history[-1:]
    ]  # fmt: skip
    _count_as_learned(learner)


def _count_as_learned(learner):
    """Let a stream that goes on from here take all rows for known ones."""
    mass = learner.totals.n.sum()
    learner.stream = learner.stream._replace(came=mass, learned=mass)


def _with_own_names(bags, new_uids):
    """The bags with names of components, and of batches, that no other of them has."""
    out = []
    for i, bag in enumerate(bags):
        uids = new_uids(len(bag.uids))
        names = dict(zip(bag.uids.tolist(), uids, strict=True))
        out.append(bag._replace(uids=np.array(uids, np.int64), extra=bag.extra.owned(i)))
        out[-1] = out[-1]._replace(extra=out[-1].extra.renamed(names))
    return out


class _Combined(NamedTuple):
    """Parts under one set of components.

    Attributes
    ----------
    model : Model
    bags : list of StatBag
        Statistics of each part, which lists its own components alone.
    totals : StatBag
        Their sum, in the model's order.
    value : float
        The objective, in nats.
    """

    model: object
    bags: list
    totals: StatBag
    value: float

    @classmethod
    def of(cls, model, bags):
        totals, model = model.in_order(_total(bags))
        return cls(model, bags, totals, model.elbo(totals))

    def adapted(self):
        """After steps of empirical Bayes."""
        model = self.model.with_adapted_prior(self.totals, _ADAPT_STEPS)
        return self._replace(model=model, value=model.elbo(self.totals))

    def joined(self, pairs):
        """After unions of disjoint pairs (rows of the totals), each of which has the name of the first."""
        uids = self.totals.uids
        names = {int(uids[j]): int(uids[i]) for i, j in pairs}
        return self.of(self.model, [_renamed(self.model, bag, names) for bag in self.bags])


def _total(bags):
    """Sum of bags, each of which lists some of the components."""
    uids = list(dict.fromkeys(uid for bag in bags for uid in bag.uids.tolist()))
    total = StatBag.zeros(uids, bags[0].s.shape[1])
    where = {uid: k for k, uid in enumerate(uids)}
    for bag in bags:
        rows = [where[uid] for uid in bag.uids.tolist()]
        total.s[rows] += bag.s
        total.entropy[rows] += bag.entropy
    return total._replace(
        extra=reduce(lambda one, other: one.joined(other), (b.extra for b in bags))
    )


def _renamed(model, bag, names):
    """The statistics of one part with components under other names; those of one name become one."""
    own = {uid: names.get(uid, uid) for uid in bag.uids.tolist()}
    members = {}
    for uid, name in own.items():
        members.setdefault(name, []).append(uid)
    unions = [(tuple(some), name) for name, some in members.items() if len(some) > 1]
    if unions:
        bag = model.blind_union(unions).replay(bag, None)
        own = {uid: own.get(uid, uid) for uid in bag.uids.tolist()}
    uids = np.array(list(own.values()), dtype=np.int64)
    return bag._replace(uids=uids, extra=bag.extra.renamed(own))


class _Candidate(NamedTuple):
    """A pair of components that may become one.

    Attributes
    ----------
    pair : tuple of int
        Rows of the totals.
    alone : float
        Estimated change of the objective, in nats, if all other components stay as they are.
    at_best : float
        The same without the term of the weights, in which unions of other pairs may make up for a loss.
    key : frozenset
        Names and masses of both, by which a failure is remembered.
    """

    pair: tuple
    alone: float
    at_best: float
    key: frozenset


def _candidates(combined):
    """Disjoint `_Candidate` pairs, the best first."""
    model, totals = combined.model, combined.totals
    i, j = np.nonzero(np.triu(near_pairs(model, totals, _N_NEIGHBORS), 1))
    gain = union_evidence_gains(model.likelihood, model.prior, totals.s, i, j)
    for bag in combined.bags:
        gain += model.least_union_entropies(bag.aligned(totals.uids), i, j)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    alone = gain + model.union_gains(totals, pairs)
    names = list(totals.sizes.items())
    out, used = [], set()
    for p in np.argsort(-alone, kind="stable").tolist():
        if used.isdisjoint(pairs[p]) and (alone[p] > 0 or gain[p] > 0):
            key = frozenset(names[k] for k in pairs[p])
            out.append(_Candidate(pairs[p], float(alone[p]), float(gain[p]), key))
            used.update(pairs[p])
    return out


def _united(combined):
    """The parts after unions, as long as these raise the objective."""
    failed = set()
    while len(combined.totals.uids) > 1:
        found = _candidates(combined)
        sure = [one.pair for one in found if one.alone > _DOUBT]
        doubtful = [one for one in found if 0 < one.alone <= _DOUBT and one.key not in failed]
        after = _joined_if_better(combined, sure) or _joined_singly(combined, doubtful, failed)
        if after is None:
            together = [one.pair for one in found if one.at_best > 0]
            after = _without_losers(combined, together)
        if after is None:
            return combined
        combined = after
    return combined


def _joined_if_better(combined, pairs):
    """After unions of the pairs, or of the better half of them, and so on; None if none is better."""
    least = combined.value + resolution(combined.model, combined.totals)
    while pairs:
        after = combined.joined(pairs)
        if after.value > least:
            return after
        pairs = pairs[: len(pairs) // 2]
    return None


def _joined_singly(combined, candidates, failed):
    """After unions of those pairs each of which raises the objective; None if none does.

    The keys of the others are added to ``failed``.
    """
    least = combined.value + resolution(combined.model, combined.totals)
    better = []
    for one in candidates:
        after = combined.joined([one.pair])
        if after.value > least:
            better.append((after.value, one.pair))
        else:
            failed.add(one.key)
    pairs = [pair for _, pair in sorted(better, reverse=True)]
    return _joined_if_better(combined, pairs)


def _without_losers(combined, pairs):
    """After unions of the pairs together, less those without which the objective is higher; or None."""
    after = _joined_if_better(combined, pairs) if len(pairs) > 1 else None
    if after is None:
        return None
    pairs = pairs[: len(combined.totals.uids) - len(after.totals.uids)]
    for pair in reversed(pairs.copy()):
        fewer = [one for one in pairs if one != pair]
        other = combined.joined(fewer)
        if other.value > after.value + resolution(other.model, other.totals):
            pairs, after = fewer, other
    return after
