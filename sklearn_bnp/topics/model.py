"""The model of documents: a likelihood, and weights of components that documents share.

The allocation term of the objective is a function of the sticks and of the documents' counts; it has
no closed-form optimum. The sticks are therefore part of the model, in the order of the totals'
components, and the objective is that at the sticks as they stand: a bound at any time, and never
lowered by the global step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..hdp.order import in_order_of_weights
from .batch import document_pass
from .document_terms import CountColumns
from .documents import COUNT_TOL, MAX_ITER, DocumentSettings
from .local import document_parameters
from .sampling import DocumentSampling

# L-BFGS iterations of a global step, and of the judgement of a candidate.
_STEPS, _CANDIDATE_STEPS = 100, 30
# Nats by which better sticks may raise a candidate's objective over those it is first tried with.
_STICK_GAIN = 30.0


class TopicParams(NamedTuple):
    """Parameters of the local step.

    Attributes
    ----------
    theta : ndarray
        From `Likelihood.document_parameters`.
    prior : ndarray, shape (K,)
        Parameters of the Dirichlet prior of a document's weights; 0 for components that are retired.
    heirs : list of pairs
        Column of a retired component, and columns of those that share what documents had of it.
    """

    theta: np.ndarray
    prior: np.ndarray
    heirs: list

    def starting_counts(self, counts):
        """Counts (n_docs, K) to start from, given those of the last visit."""
        for gone, heirs in self.heirs:
            share = self.prior[heirs] / self.prior[heirs].sum()
            counts[:, heirs] += counts[:, [gone]] * share
            counts[:, gone] = 0.0
        return counts


class TopicModel(NamedTuple):
    """What the learner knows of a model of documents; immutable.

    Attributes
    ----------
    likelihood : Likelihood
    allocation : DocumentAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    local : LocalSchedule
    sticks : Sticks or None
        Global parameters for the components ``uids``.
    uids : tuple of int
    retired : dict
        Components that take part in no local step any more -> those that take their place.
    """

    likelihood: object
    allocation: object
    prior: object
    local: object
    sticks: object = None
    uids: tuple = ()
    retired: dict | None = None

    # Births are tried in every other round on a new batch; merges tidy up in between.
    stream_rounds = 4
    # How pseudo-documents are drawn for proposals.
    sampling = DocumentSampling

    def own_components(self, totals, bag, batch_id, new_uids, n_most, mean_weight):
        """No trials: births let documents think again over all topics, and find what is new in a batch."""
        return []

    def elbo_terms(self, totals):
        """The objective in three terms, in nats: (5.29) at the optimum of q(phi) and q(pi_d)."""
        return {
            "data": float(np.sum(self.likelihood.evidence(self.prior, totals.s))),
            "entropy": float(np.sum(totals.entropy)),
            "allocation": self.allocation_term(totals),
        }

    def elbo(self, totals):
        return sum(self.elbo_terms(totals).values())

    def allocation_term(self, totals):
        """What the allocation model adds to the objective, in nats."""
        return float(self.allocation.objective(self._sticks(totals), columns(totals)))

    def coefficients(self, totals):
        """`TopicParams` of the local step."""
        theta = document_parameters(self.likelihood, self.prior, totals.s)
        prior = self.doc_prior(totals)
        heirs = []
        for gone, created in (self.retired or {}).items():
            [column] = totals.positions([gone])
            prior[column] = 0.0
            heirs.append((column, totals.positions(created)))
        return TopicParams(theta, prior, heirs)

    def carry(self, statistics, batch_id):
        """Counts (n_docs, K) that the documents of a batch start from; None if it is new."""
        part = None if statistics is None else statistics.extra.parts.get(batch_id)
        return part if self.local.warm else None

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch after its local step; ``carry`` has the counts that documents start from."""
        how = self.local.settings(self.retired is not None or lap % self.local.every == 0)
        how = how._replace(n_nonzero=n_nonzero, n_threads=n_threads)
        return document_pass(batch, self.likelihood, params, uids, observers, carry, how)

    def _sticks(self, totals):
        """Sticks in the order of ``totals``; a guess from the masses if they are for others."""
        uids, mass = tuple(totals.uids.tolist()), totals.n
        if self.sticks is not None:
            if self.uids == uids:
                return self.sticks
            weights = dict(zip(self.uids, self.allocation.weights(self.sticks), strict=True))
            if weights.keys() >= set(uids):
                mass = np.array([weights[uid] for uid in uids])
        return self.allocation.start(mass, max(1.0, n_docs(totals)))

    def doc_prior(self, totals):
        """Parameters (K,) of the Dirichlet prior of a document's weights."""
        return self.allocation.prior(self._sticks(totals))

    def updated(self, totals, max_iter=_STEPS):
        """The model after the global step of the sticks."""
        if not totals.extra.parts or len(totals.uids) == 0:
            return self._replace(sticks=None, uids=())
        sticks, _ = self.allocation.optimise(columns(totals), self._sticks(totals), max_iter)
        return self._replace(sticks=sticks, uids=tuple(totals.uids.tolist()), retired=None)

    def blended(self, totals, rate):
        """The model after a stochastic step at a learning ``rate``.

        The documents of ``totals`` are those of one batch. The shares of topics that are best for these are
        averaged with the shares before, so that a topic does not vanish with a batch that lacks it.
        """
        now, uids = self.updated(totals), totals.uids.tolist()
        before, names = self.sticks, self.uids
        if before is None:  # the first step: what masses tell
            before, names = self._sticks(totals), uids
        known = dict(zip(names, self.allocation.weights(before).tolist(), strict=True))
        weights = np.array([known[uid] for uid in uids] + [self.allocation.rest(before)])
        return now._replace(sticks=self.allocation.averaged(weights, now.sticks, rate))

    in_order = in_order_of_weights

    def adopting(self, totals, retired):
        """The model for a lap with components on trial: sticks from masses, some components out."""
        mass = totals.n.copy()
        mass[totals.positions(list(retired))] = 0.0
        sticks = self.allocation.start(mass, max(1.0, n_docs(totals)))
        return self._replace(sticks=sticks, uids=tuple(totals.uids.tolist()), retired=retired)

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements; see `Model.replacement_gains`.

        Each candidate has sticks of its own: first a guess, and where that leaves the verdict open,
        the best.
        """
        here = self.allocation_term(totals)
        gains = np.array(fixed, dtype=float)
        weights = self.allocation.weights(self._sticks(totals))
        for i, (removed, new) in enumerate(replacements):
            gone = np.isin(totals.uids, removed)
            share = weights[gone].sum() / max(new.n.sum(), 1e-290)
            after = np.concatenate([weights[~gone], share * new.n])
            order = np.argsort(-after, kind="stable")
            there = columns(totals.replaced(removed, new).take(order))
            start = self.allocation.start(after[order], there.n_docs)
            gain = fixed[i] + self.allocation.objective(start, there) - here
            if 0 >= gain > -_STICK_GAIN:
                _, value = self.allocation.optimise(there, start, _CANDIDATE_STEPS)
                gain = fixed[i] + value - here
            gains[i] = gain
        return gains

    def union_gains(self, totals, groups):
        """Estimated change of the allocation term for each pair (of rows) joined, to choose candidates by."""
        pairs = np.array(groups, dtype=np.intp).reshape(-1, 2)
        docs, sticks = document_numbers(totals), self._sticks(totals)
        return self.allocation.union_gains(pairs, docs, columns(totals), sticks)

    def nested_union_gains(self, pairs, counts, a, n_docs, weight=None):
        """Change of the documents' terms for each pair of nested topics joined; dense counts (n, K).

        ``a`` (K,) are their parameters in the documents' prior; ``n_docs`` may count others, without
        them. ``weight`` (n,) are the documents' weights.
        """
        topics, docs = np.nonzero(counts.T)
        ends = np.searchsorted(topics, np.arange(counts.shape[1] + 1)).astype(np.intp)
        lengths = np.array([0.0]), np.array([n_docs])
        times = None if weight is None else weight[docs]
        there = CountColumns(counts[docs, topics], ends, times, n_docs, lengths)
        return self.allocation.nested_union_gains(pairs, docs, there, a)

    def nested_terms(self, counts, a, weight=None):
        """Documents' terms of nested topics; see `DocumentAllocation.nested_terms`."""
        return self.allocation.nested_terms(counts, a, weight)

    def with_adapted_prior(self, totals, n_iter):
        return self._replace(prior=self.likelihood.update_prior(self.prior, totals.s, n_iter))


class LocalSchedule(NamedTuple):
    """When documents start anew and try restarts; in other laps they only go on.

    They do so every second lap, and when new components have come.

    Attributes
    ----------
    warm : bool
        Start from the counts that a document had when it was last visited, and keep these if a new
        start is worse: then the objective never falls.
    every : int
        Laps between new starts.
    n_restarts : int
        Of each document, when it starts anew.
    max_iter, tol : int, float
        Of a document's iterations, as in `DocumentSettings`.
    """

    warm: bool = True
    every: int = 2
    n_restarts: int = 5
    max_iter: int = MAX_ITER
    tol: float = COUNT_TOL

    def settings(self, fresh):
        """`DocumentSettings` of a lap in which documents start anew, or only go on."""
        fresh = fresh or not self.warm
        return DocumentSettings(
            self.warm, fresh, self.max_iter, self.tol, self.n_restarts if fresh else 0
        )  # fmt: skip


def n_docs(totals):
    """Documents that have any tokens."""
    return float(sum(p.times(p.lengths > 0).sum() for p in totals.extra.parts.values()))


def columns(totals):
    """`CountColumns` of the components of ``totals``, in their order."""
    parts = list(totals.extra.parts.values())
    uids = totals.uids.tolist()
    values, sizes, weights = [], [], []
    plain = all(part.is_plain for part in parts)
    for uid in uids:
        size = 0
        for part in parts:
            column = part.columns.get(uid)
            if column is not None:
                values.append(column.values)
                size += len(column.values)
                if not plain:
                    weights.append(part.times(column.docs))
        sizes.append(size)
    lengths = np.concatenate([p.lengths[p.lengths > 0] for p in parts] or [np.empty(0)])
    times = np.concatenate([p.times(p.lengths > 0) for p in parts] or [np.empty(0)])
    different, which = np.unique(lengths, return_inverse=True)
    return CountColumns(
        np.concatenate(values) if values else np.empty(0),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        None if plain else np.concatenate(weights) if weights else np.empty(0),
        float(times.sum()),
        (different, np.bincount(which, times, minlength=len(different))),
    )


def document_numbers(totals):
    """The documents (nnz,) of the counts in `columns`, numbered over all batches."""
    parts = list(totals.extra.parts.values())
    first = np.cumsum([0] + [len(part.lengths) for part in parts])
    found = [
        part.columns[uid].docs + start
        for uid in totals.uids.tolist()
        for part, start in zip(parts, first, strict=False)
        if uid in part.columns
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)
