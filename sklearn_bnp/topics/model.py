"""The model of documents: a likelihood, and weights of topics that documents share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from ..engine.model import BaseModel
from ..hdp.model import HierarchicalModel
from .batch import document_pass
from .document_terms import count_columns, lengths_of
from .documents import COUNT_TOL, MAX_ITER, DocumentSettings
from .local import document_parameters
from .sampling import DocumentSampling
from .union_sums import union_gains_of_documents


class TopicParams(NamedTuple):
    """Parameters of the local step.

    Attributes
    ----------
    theta : ndarray
        Parameters of the topics, from `document_parameters`.
    prior : ndarray, shape (K,)
        Parameters of the Dirichlet prior of a document's weights; 0 for retired topics.
    heirs : list of pairs
        Column of a retired topic, and columns of the topics that share its counts.
    """

    theta: np.ndarray
    prior: np.ndarray
    heirs: list

    def starting_counts(self, counts):
        """Counts (n_docs, K) to start from, given ``counts`` of the last visit, which are overwritten."""
        for gone, heirs in self.heirs:
            share = self.prior[heirs] / self.prior[heirs].sum()
            counts[:, heirs] += counts[:, [gone]] * share
            counts[:, gone] = 0.0
        return counts


class LocalSchedule(NamedTuple):
    """Laps in which documents start anew and try restarts; in other laps they only go on.

    They also start anew in laps with new components.

    Attributes
    ----------
    warm : bool
        Start from the counts that a document had when it was last visited, and keep these if a new
        start is worse: then the objective never falls.
    every : int
        Documents start anew in every so many laps.
    n_restarts : int
        Restarts of each document when it starts anew.
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


@dataclass(frozen=True, eq=False)
class TopicModel(HierarchicalModel, BaseModel):
    """The model of documents: a likelihood, and weights of topics that documents share; immutable.

    Parameters
    ----------
    likelihood : Likelihood
    allocation : DocumentAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    sticks : Sticks or None
        Global parameters of the topics ``uids``.
    uids : tuple of int
    retired : dict or None
        Topics that take part in no local step any more -> topics that take their place.
    local : LocalSchedule
        When documents start anew.
    """

    local: LocalSchedule = field(default_factory=LocalSchedule)

    stick_gain, candidate_steps = 30.0, 30
    # Births are tried in every other round on a new batch of a stream; merges tidy up in between.
    stream_rounds = 4
    settled_gain = 10.0
    # Entries, of which a document has many; the first few documents show blends of topics.
    pool_rows = 1_000_000
    sampling = DocumentSampling
    leaves_behind = True

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
        """Counts that the documents of a part of a batch start from, `BatchCounts`; None if it is new."""
        part = None if statistics is None else statistics.extra.parts.get(batch_id)
        return part if self.local.warm else None

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch; documents go on from the counts in ``carry``, or start anew."""
        how = self.local.settings(self.retired is not None or lap % self.local.every == 0)
        how = how._replace(n_nonzero=n_nonzero, n_threads=n_threads)
        return document_pass(batch, self.likelihood, params, uids, observers, carry, how)

    def doc_prior(self, totals):
        """Parameters (K,) of the Dirichlet prior of a document's weights."""
        return self.allocation.prior(self.current_sticks(totals))

    def blended(self, totals, rate):
        """The model after a global step of stochastic learning.

        The documents of ``totals`` are those of one batch. The weights of topics that are best for these are
        averaged with the weights before, so that a topic does not vanish with a batch that lacks it.
        """
        now, uids = self.updated(totals), totals.uids.tolist()
        before, names = self.sticks, self.uids
        if before is None:  # the first step: weights are guessed from masses
            before, names = self.current_sticks(totals), uids
        known = dict(zip(names, self.allocation.weights(before).tolist(), strict=True))
        weights = np.array([known[uid] for uid in uids] + [self.allocation.rest(before)])
        return now._replace(sticks=self.allocation.averaged(weights, now.sticks, rate))

    def with_adapted_prior(self, totals, n_iter):
        """The model after steps of empirical Bayes; where topics have to settle first, itself."""
        if self.waits and self.likelihood.adapts_late:
            return self
        return super().with_adapted_prior(totals, n_iter)

    def replacement_gains(self, totals, replacements, fixed):
        light = [(removed, _without_documents(new)) for removed, new in replacements]
        return super().replacement_gains(_without_documents(totals), light, fixed)

    # ------------------------------------------------------------------ counts and sticks

    def counts(self, totals):
        return count_columns(totals)

    def _has_counts(self, totals):
        return totals.extra is not NO_EXTRA

    def _sticks_of_masses(self, totals, mass):
        return self.allocation.start(mass, max(1.0, lengths_of(totals).total))

    _sticks_of_weights = _sticks_of_masses

    def _guessed_weights(self, totals, weights, removed, new):
        """Topics that come share the weights of those that go in proportion to their masses."""
        gone = np.isin(totals.uids, removed)
        share = weights[gone].sum() / max(new.n.sum(), 1e-290)
        return np.concatenate([weights[~gone], share * new.n])

    def union_slack(self, bag, i, j):
        """Nats (M,); infinite if documents are gone, of which some may use both topics."""
        gone = bag.extra is NO_EXTRA or bag.extra.unseen(bag.uids.tolist())
        return np.full(len(i), np.inf) if gone else super().union_slack(bag, i, j)

    def union_gains(self, totals, groups):
        """Estimated change of the allocation term by each union of two topics (rows of ``totals``)."""
        pairs = np.array(groups, dtype=np.intp).reshape(-1, 2)
        gains = partial(union_gains_of_documents, totals, pairs)
        sticks = self.current_sticks(totals)
        return self.allocation.union_gains(gains, count_columns(totals), sticks)


def _without_documents(bag):
    """A `StatBag` of which histograms are known alone: to change the columns of all batches takes time."""
    return bag if bag.extra is NO_EXTRA else bag._replace(extra=bag.extra.summed())
