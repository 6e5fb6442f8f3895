"""The model of sequences: a likelihood, and a Markov chain whose rows share global weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from ..engine.model import BaseModel
from ..hdp.model import HierarchicalModel
from .local import LOG_FLOOR, ChainParams, chain_blocks, sequence_pass, summary
from .sampling import RunSampling
from .unions import GroupsEdit
from .weights import TINY


@dataclass(frozen=True, eq=False)
class SequenceModel(HierarchicalModel, BaseModel):
    """The model of sequences: a likelihood, and a chain whose rows share global weights; immutable.

    Parameters
    ----------
    likelihood : Likelihood
    allocation : ChainAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    sticks : Sticks or None
        Global parameters of the states ``uids``.
    uids : tuple of int
    retired : dict or None
        States that take part in no local step any more -> states that take their place. Several states
        with the same heirs left together.
    low_memory : bool
        Hold no table of all rows and states of long sequences.
    """

    low_memory: bool = False

    stick_gain, candidate_steps = 60.0, 40
    # Births are tried in every other round on a new batch of a stream; merges tidy up in between.
    stream_rounds = 6
    settled_gain = 0.0
    # One sequence rarely pays for a state, and the others cannot tell one that they have not met alone.
    pool_rows = 20_000
    sampling = RunSampling

    @staticmethod
    def _entropy(totals):
        return float(totals.extra.entropy)  # of joint posteriors, with no share for each state

    def coefficients(self, totals):
        """`ChainParams` of the local step."""
        counts, states = self.counts(totals), np.arange(len(totals.uids))
        groups = {}
        for gone, created in (self.retired or {}).items():
            groups.setdefault(created, []).append(gone)
        if groups:
            both = [
                (totals.positions(gone), totals.positions(heirs)) for heirs, gone in groups.items()
            ]
            states = np.setdiff1d(states, np.concatenate([gone for gone, _ in both]))
            counts = _inherited(counts, both, totals.n)
        log_rows = self.allocation.expected_log_rows(self.current_sticks(totals), counts)
        coef = self.likelihood.coefficients(self.prior, totals.s[states])
        log_rows = log_rows[np.ix_(np.concatenate([[0], states + 1]), states)]
        return ChainParams(np.ascontiguousarray(coef), np.maximum(log_rows, LOG_FLOOR), states)

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch after its local step; of the settings, only ``n_threads`` is used."""
        return sequence_pass(
            batch, self.likelihood, params, uids, observers,
            low_memory=self.low_memory, n_threads=n_threads,
        )  # fmt: skip

    def mean_rows(self, totals):
        """Expected weights (K + 1, K) of the start and of transitions among the states of ``totals``."""
        return self.allocation.mean_rows(self.current_sticks(totals), self.counts(totals))

    def union_gains(self, totals, groups):
        """Estimated change of the allocation term by each union of two states (rows of ``totals``)."""
        pairs = np.array(groups, dtype=np.intp).reshape(-1, 2)
        return self.allocation.union_gains(self.current_sticks(totals), self.counts(totals), pairs)

    def least_union_entropies(self, bag, i, j):
        """Lower bounds (M,) from the number of states that become one; see `unions.least_change`."""
        both = (bag.n[i] > 0) & (bag.n[j] > 0)
        least = -np.log(2.0) * (bag.n[i] + bag.n[j])
        return np.where(both, np.maximum(least, -max(0.0, bag.extra.entropy)), 0.0)

    def union_slack(self, bag, i, j):
        """Nats (M,) up to the entropy of saying which of both states it was, in rows of either.

        The chain of renamed states is Markov with the same marginals of pairs of rows. It exceeds the entropy
        of the chain before by no more than what the earlier row's name leaves open of its state.
        """
        both = np.maximum(bag.n[i], 0.0), np.maximum(bag.n[j], 0.0)
        most = entr(both[0]) + entr(both[1]) - entr(both[0] + both[1])
        return np.maximum(most, 0.0) - self.least_union_entropies(bag, i, j)

    def blind_union(self, groups):
        """All unions at once, with a bound of the change of the entropy."""
        return GroupsEdit(tuple(groups), {})

    def without(self, totals, gone):
        """`StepWithout` the state ``gone``."""
        params = self.adopting(totals, {gone: ()}).coefficients(totals)
        return StepWithout(self.likelihood, params, totals.uids[params.states], self.low_memory)

    # ------------------------------------------------------------------ counts and sticks

    def counts(self, totals):
        return chain_counts(totals)

    def _has_counts(self, totals):
        return bool(totals.extra.uids)

    def _sticks_of_masses(self, totals, mass):
        return self.allocation.start(mass)

    def _sticks_of_weights(self, totals, weights):
        return self.allocation.of_weights(weights)

    def _guessed_weights(self, totals, weights, removed, new):
        """States that stay keep their weights; new ones have equal shares of those that go."""
        known = dict(zip(totals.uids.tolist(), weights.tolist(), strict=True))
        share = sum(known[uid] for uid in removed) / max(len(new.n), 1)
        uids = [uid for uid in known if uid not in removed] + new.uids.tolist()
        return np.array([known.get(uid, share) for uid in uids])

    @staticmethod
    def _gain_of_extra(before, after):
        return after.extra.entropy - before.extra.entropy


class StepWithout(NamedTuple):
    """Local and summary step of sequences without one of the states; it can be pickled."""

    likelihood: object
    params: object
    uids: np.ndarray
    low_memory: bool

    def __call__(self, rows, n_threads=1):
        """`StatBag` of `PreparedRows`."""
        blocks = chain_blocks(
            rows, self.likelihood, self.params, low_memory=self.low_memory, n_threads=n_threads
        )
        return summary(blocks, self.likelihood, self.uids, self.params.coef)


def chain_counts(totals):
    """Counts (K + 1, K) of starts and transitions of the states of ``totals``, in their order.

    Rounding may leave numbers below 0 where batches were subtracted, and not small ones if weights are large.
    """
    return np.maximum(totals.extra.listed(totals.uids.tolist()), 0.0)


def _inherited(counts, groups, mass):
    """Counts with the transitions of states that go given to their heirs.

    Heirs bring transitions among themselves, and may bring some with other states. They get what these
    lack of the transitions of the states that go: in proportion to what they bring, and a little to masses.

    Parameters
    ----------
    counts : ndarray, shape (K + 1, K)
    groups : list of pairs of ndarray of intp
        Positions of states that go together, and of their heirs.
    mass : ndarray, shape (K,)
    """
    # a state that is new itself is entered from as the one that it is made of
    counts, known = counts.copy(), counts.copy()
    for gone, heirs in groups:
        known[heirs + 1] += counts[gone + 1].sum(axis=0)
    for gone, heirs in groups:
        into = counts[:, gone].sum(axis=1)
        into[gone + 1] = into[heirs + 1] = 0.0
        counts[:, heirs] += _shared(into, counts[:, heirs], known[:, heirs], mass[heirs])
        counts[:, gone] = 0.0
    for gone, heirs in groups:
        out_of = counts[gone + 1].sum(axis=0)
        out_of[heirs] = 0.0
        own = counts[heirs + 1].T
        counts[heirs + 1] += _shared(out_of, own, own, mass[heirs]).T
        counts[gone + 1] = 0.0
    return counts


def _shared(total, own, known, mass):
    """Shares (n, J) of ``total`` (n,), less what is in ``own`` (n, J), in proportion to ``known`` (n, J)."""
    lacking = np.maximum(total - own.sum(axis=1), 0.0)[:, np.newaxis]
    share = known + mass / max(mass.sum(), TINY)
    return lacking * share / np.maximum(share.sum(axis=1, keepdims=True), TINY)
