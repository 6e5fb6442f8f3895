"""Deletes of topics: documents that use one share it out among their others."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.affinity import reassignment_loss
from ..engine.edits import SplitEdit
from ..engine.failures import Failures
from ..engine.probe import Each, Observer, Probe
from ..engine.proposal import Context, Proposal
from ..engine.statistics import StatBag, added_up
from ..engine.trials import Outcome, Trial
from .counts import BatchCounts, DocumentCounts
from .document_terms import documents_using
from .documents import DocumentSettings
from .local import document_parameters, document_step, document_summary

# Share of the loss of a move to one other topic that a move to several has at the least, and what a
# document may gain by using one topic less.
_OPTIMISM, _NATS_A_DOCUMENT = 0.1, 2.0


@dataclass(frozen=True, eq=False)
class AbsorbProbe(Probe):
    """Documents that use a topic share out what they have of it among others.

    Other documents keep what they have, so that only these need a local step. The finding is the `StatBag`
    of the absorbers afterwards.

    Attributes
    ----------
    target : int
        Uid of the topic that goes.
    absorbers : tuple of int
        Uids of the others.
    theta : ndarray
        From `document_parameters`, of the absorbers.
    doc_prior : ndarray, shape (J,)
        Parameters of the Dirichlet prior of a document's weights of the absorbers.
    """

    target: int
    absorbers: tuple
    theta: np.ndarray
    doc_prior: np.ndarray

    @classmethod
    def observer(cls, probes, task):
        return Each(_AbsorbObserver(probe, task) for probe in probes)

    def added(self, first, second):
        return first.add(second)


class _AbsorbObserver(Observer):
    """Makes the local steps of documents that use the target of one probe."""

    def __init__(self, probe, task):
        self._probe, self._likelihood = probe, task.model.likelihood
        self._settings, self._name = DocumentSettings(n_threads=task.n_threads), task.part.batch_id
        self._s, self._entropy, self._counts, self._docs = 0.0, 0.0, [], []

    def observe(self, block):
        where = {uid: k for k, uid in enumerate(block.uids.tolist())}
        columns = [where[uid] for uid in self._probe.absorbers]
        both = [where[self._probe.target], *columns]
        counts = block.doc_counts[:, columns].copy()
        self._counts.append(counts)
        self._docs.append((block.docs.lengths, block.docs.weight))
        using = block.doc_counts[:, both[0]] > 0
        if not using.any():
            return
        docs, entries = block.docs.chosen(using)
        theta = None if block.theta is None else block.theta[both]
        before = document_summary(self._likelihood, docs, block.resp[entries][:, both], theta)
        mass = block.resp[entries][:, both].sum(axis=1, dtype=np.float64)
        places = None if block.places is None else block.places.of(both, entries)
        after = document_step(
            self._likelihood, self._probe.theta, docs, self._probe.doc_prior, self._settings,
            mass=np.minimum(mass, 1.0), start=np.ascontiguousarray(counts[using]), places=places,
        )  # fmt: skip
        self._s += after.s - before.s[1:]
        self._entropy += after.entropy - before.entropy[1:]
        counts[using] = after.counts

    def finding(self, statistics):
        absorbers = self._probe.absorbers
        old = statistics.positions(absorbers)
        lengths, weight = zip(*self._docs, strict=True)
        part = BatchCounts.of(
            np.concatenate(self._counts), np.concatenate(lengths), absorbers,
            None if weight[0] is None else np.concatenate(weight),
        )  # fmt: skip
        return StatBag(
            np.asarray(absorbers, dtype=np.int64), statistics.s[old] + self._s,
            statistics.entropy[old] + self._entropy, DocumentCounts.of_columns({self._name: part}),
        )  # fmt: skip


class TopicDeleteTrial(Trial):
    """Remove a topic, whose tokens go to absorbers in the documents that use it.

    Parameters
    ----------
    target : int
        Uid of the topic.
    absorbers : list of int
        Uids of the topics that take its tokens.
    theta, doc_prior : ndarray
        As in `AbsorbProbe`.
    """

    kind = "delete"

    def __init__(self, target, absorbers, theta, doc_prior):
        self.target, self.removed = target, (target, *absorbers)
        self.created = tuple(absorbers)  # memories of them stay
        self.probe = AbsorbProbe(target, self.created, theta, doc_prior)

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; None if batches were not observed that use the topic."""
        if rest is not None and rest.n.sum() > 0:
            return None
        edit = SplitEdit(self.removed, self.created, findings)
        return Outcome(added_up(findings.values()), edit)


class TopicDelete(Proposal):
    """Remove a topic; each document shares out its tokens of this topic among others.

    Parameters
    ----------
    max_targets : int, default=10
        The greatest number of topics that are tried in a lap, the smallest first.
    n_absorbers : int, default=10
        How many topics may take over the tokens of a removed one.

    References
    ----------
    Hughes (2016), Sec. 5.5.2.

    Examples
    --------
    >>> from sklearn_bnp import HDPTopicVB, TopicDelete
    >>> model = HDPTopicVB(proposals=("birth", "merge", TopicDelete(max_targets=5)))
    """

    kind = "delete"
    suits = ("topics",)
    _parameter_constraints = {
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        "n_absorbers": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, max_targets: int = 10, n_absorbers: int = 10) -> None:
        self.max_targets = max_targets
        self.n_absorbers = n_absorbers

    def reset(self) -> None:
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.2)

    def plan(self, context: Context) -> list[Any]:
        """A trial for each target, among the absorbers that explain it best."""
        totals, model = context.totals, context.model
        if len(totals.uids) < 3:
            return []
        open_ = sorted(
            (n, uid) for uid, n in totals.sizes.items() if not self._failures.blocked(uid, n)
        )
        if not open_ or context.settling:
            return []
        doc_prior = model.doc_prior(totals)
        loss = reassignment_loss(model, totals)
        np.fill_diagonal(loss, np.inf)
        promise = self._promise(model, totals, loss)
        loss -= np.log(np.maximum(doc_prior, 1e-290))
        trials = []
        for _, uid in open_[: self.max_targets]:
            k = int(totals.positions([uid])[0])
            if promise[k] < 0:
                self._failures.note(uid, totals.n[k])
                continue
            near = np.argsort(loss[k], kind="stable")[: min(self.n_absorbers, len(loss) - 1)]
            prior = doc_prior[near] * (1.0 + doc_prior[k] / doc_prior[near].sum())
            theta = document_parameters(model.likelihood, model.prior, totals.s[near])
            trials.append(TopicDeleteTrial(uid, totals.uids[near].tolist(), theta, prior))
        return trials

    @staticmethod
    def _promise(model, totals, loss):
        """Bounds (K,) on the gains of deletes: the cost of each topic, less what its tokens must lose.

        The data term would regain the divergence of q(phi_k) from its prior. Words would lose what
        separates them from the topic that likes each of them best; rows of data some share of what
        they lose together by a move to one other topic.
        """
        likelihood, prior = model.likelihood, model.prior
        theta = likelihood.coefficients(prior, totals.s)
        cost = np.einsum("kp,kp->k", theta, totals.s) - likelihood.evidence(prior, totals.s)
        if likelihood.words:
            best = np.argmax(theta, axis=0)
            first, second = np.partition(theta, len(theta) - 2, axis=0)[:-3:-1]
            other = np.where(np.arange(len(theta))[:, np.newaxis] == best, second, first)
            least = np.einsum("kp,kp->k", totals.s, np.maximum(theta - other, 0.0))
        else:
            least = _OPTIMISM * totals.n * loss.min(axis=1)
        using = documents_using(model.counts(totals))
        return cost + _NATS_A_DOCUMENT * using - least

    def new_data(self) -> None:
        """Forget failures, since a proposal that failed may succeed on more data."""
        self.reset()

    def last_resort(self) -> None:
        """Nothing is left to try: documents have moved on since deletes failed."""
        self.reset()

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures."""
        self._failures.judged(trial.target, accepted, mass)
