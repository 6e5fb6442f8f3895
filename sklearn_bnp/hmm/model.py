"""The model of sequences: a likelihood, and a Markov chain whose rows share global weights.

As for documents (topic_model.py), the allocation term has no closed-form optimum in the sticks, which
are therefore part of the model, in the order of the totals' components.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..hdp.order import in_order_of_weights
from .local import LOG_FLOOR, ChainParams, chain_blocks, sequence_pass, summary
from .sampling import RunSampling

# L-BFGS iterations of a global step, and of the judgement of a candidate.
_STEPS, _CANDIDATE_STEPS = 100, 40
# Nats by which better sticks may raise a candidate's objective over those it is first tried with.
_STICK_GAIN = 60.0


class SequenceModel(NamedTuple):
    """What the learner knows of a model of sequences; immutable.

    Attributes
    ----------
    likelihood : Likelihood
    allocation : ChainAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    sticks : Sticks or None
        Global parameters for the components ``uids``.
    uids : tuple of int
    retired : dict
        States that take part in no local step any more -> those that take their place; several
        states with the same heirs left together.
    low_memory : bool
        Hold no table of all rows and states of long sequences.
    """

    likelihood: object
    allocation: object
    prior: object
    sticks: object = None
    uids: tuple = ()
    retired: dict | None = None
    low_memory: bool = False

    # Births are tried in every other round on a new batch; merges tidy up in between.
    stream_rounds = 6
    # How runs are drawn for proposals.
    sampling = RunSampling

    def own_components(self, totals, bag, batch_id, new_uids, n_most, mean_weight):
        """No trials: what a batch gave to a state has transitions to others, and cannot be told apart."""
        return []

    def elbo_terms(self, totals):
        """The objective in three terms, in nats: (6.22) at the optimum of q(phi) and q(pi)."""
        return {
            "data": float(np.sum(self.likelihood.evidence(self.prior, totals.s))),
            "entropy": float(totals.extra.entropy),
            "allocation": self.allocation_term(totals),
        }

    def elbo(self, totals):
        return sum(self.elbo_terms(totals).values())

    def allocation_term(self, totals):
        """What the allocation model adds to the objective, in nats."""
        return float(self.allocation.objective(self._sticks(totals), chain_counts(totals)))

    def coefficients(self, totals):
        """`ChainParams` of the local step."""
        counts, states = chain_counts(totals), np.arange(len(totals.uids))
        groups = {}
        for gone, created in (self.retired or {}).items():
            groups.setdefault(created, []).append(gone)
        for created, gone in groups.items():
            leaving = totals.positions(gone)
            states = np.setdiff1d(states, leaving)
            counts = _inherited(counts, leaving, totals.positions(created), totals.n)
        log_rows = self.allocation.expected_log_rows(self._sticks(totals), counts)
        coef = self.likelihood.coefficients(self.prior, totals.s[states])
        log_rows = log_rows[np.ix_(np.concatenate([[0], states + 1]), states)]
        return ChainParams(np.ascontiguousarray(coef), np.maximum(log_rows, LOG_FLOOR), states)

    def carry(self, statistics, batch_id):
        """Sequences start anew at each visit: there is nothing that a batch is remembered by."""
        return None

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch after its local step."""
        return sequence_pass(
            batch, self.likelihood, params, uids, observers,
            low_memory=self.low_memory, n_threads=n_threads,
        )  # fmt: skip

    def _sticks(self, totals):
        """Sticks in the order of ``totals``; a guess from the masses if they are for others."""
        uids, mass = tuple(totals.uids.tolist()), totals.n
        if self.sticks is not None:
            if self.uids == uids:
                return self.sticks
            weights = dict(zip(self.uids, self.allocation.weights(self.sticks), strict=True))
            if weights.keys() >= set(uids):
                return self.allocation.of_weights(np.array([weights[uid] for uid in uids]))
        return self.allocation.start(mass)

    def weights(self, totals):
        """``E[pi^G]`` (K,) of the states of ``totals``."""
        return self.allocation.weights(self._sticks(totals))

    def mean_rows(self, totals):
        """Expected weights (K + 1, K) of the start and of transitions among the states of ``totals``."""
        return self.allocation.mean_rows(self._sticks(totals), chain_counts(totals))

    def updated(self, totals, max_iter=_STEPS):
        """The model after the global step of the sticks."""
        if not totals.extra.uids or len(totals.uids) == 0:
            return self._replace(sticks=None, uids=())
        sticks, _ = self.allocation.optimise(chain_counts(totals), self._sticks(totals), max_iter)
        return self._replace(sticks=sticks, uids=tuple(totals.uids.tolist()), retired=None)

    def blended(self, totals, rate):
        """The model after a stochastic step at a learning ``rate``: the totals are averages already."""
        return self.updated(totals)

    in_order = in_order_of_weights

    def adopting(self, totals, retired):
        """The model for a lap with states on trial: sticks from masses, some states out."""
        mass = totals.n.copy()
        mass[totals.positions(list(retired))] = 0.0
        sticks = self.allocation.start(mass)
        return self._replace(sticks=sticks, uids=tuple(totals.uids.tolist()), retired=retired)

    def without(self, totals, gone):
        """`StepWithout` the state ``gone``."""
        params = self.adopting(totals, {gone: ()}).coefficients(totals)
        return StepWithout(self.likelihood, params, totals.uids[params.states], self.low_memory)

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements; see `Model.replacement_gains`.

        The change of the entropy comes with the transitions, and is added to ``fixed``. Each candidate
        has sticks of its own: first a guess, and where that leaves the verdict open, the best.
        """
        here = self.allocation_term(totals)
        gains = np.array(fixed, dtype=float)
        weights = self.allocation.weights(self._sticks(totals))
        known = dict(zip(totals.uids.tolist(), weights.tolist(), strict=True))
        for i, (removed, new) in enumerate(replacements):
            there = totals.replaced(removed, new)
            share = sum(known[uid] for uid in removed) / max(len(new.n), 1)
            after = np.array([known.get(uid, share) for uid in there.uids.tolist()])
            order = np.argsort(-after, kind="stable")
            start, counts = (
                self.allocation.of_weights(after[order]),
                chain_counts(there.take(order)),
            )
            rest = fixed[i] + there.extra.entropy - totals.extra.entropy - here
            gain = rest + self.allocation.objective(start, counts)
            if 0 >= gain > -_STICK_GAIN:
                _, value = self.allocation.optimise(counts, start, _CANDIDATE_STEPS)
                gain = rest + value
            gains[i] = gain
        return gains

    def union_gains(self, totals, groups):
        """Estimated change of the allocation term for each pair (of rows) joined."""
        pairs = np.array(groups, dtype=np.intp).reshape(-1, 2)
        return self.allocation.union_gains(self._sticks(totals), chain_counts(totals), pairs)

    def with_adapted_prior(self, totals, n_iter):
        return self._replace(prior=self.likelihood.update_prior(self.prior, totals.s, n_iter))


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
    """Counts (K + 1, K) of starts and transitions of the components of ``totals``, in their order.

    Totals less batches may leave rounding errors below zero, which are large where weights are.
    """
    return np.maximum(totals.extra.listed(totals.uids.tolist()), 0.0)


def _inherited(counts, gone, heirs, mass):
    """Counts with the links of states ``gone`` given to their heirs, in proportion to their masses.

    Transitions among those are left out: the heirs come with transitions among themselves.
    """
    counts = counts.copy()
    into, out_of = counts[:, gone].sum(axis=1), counts[gone + 1].sum(axis=0)
    into[gone + 1] = out_of[gone] = 0.0
    counts[:, gone] = 0.0
    counts[gone + 1] = 0.0
    if len(heirs):
        share = mass[heirs] / max(mass[heirs].sum(), 1e-290)
        counts[:, heirs] += np.multiply.outer(into, share)
        counts[heirs + 1] += np.multiply.outer(share, out_of)
    return counts
