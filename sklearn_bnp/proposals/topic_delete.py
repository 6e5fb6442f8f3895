"""Deletes of topics: documents that use one share it out among their others."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..core.corpus import Documents, Settings
from ..core.document_counts import DocumentCounts, Part
from ..core.stats import SplitEdit, StatBag
from .affinity import reassignment_loss
from .base import Failures, Proposal


class DeleteTrial:
    """A topic and some absorbers give way to the absorbers, in documents that use the topic.

    Other documents keep what they have, so that only these need a local step.
    """

    kind = "delete"

    def __init__(self, target, absorbers, created, model, theta, doc_prior):
        self.target, self.removed, self.created = target, (target, *absorbers), tuple(created)
        self._absorbers = absorbers
        self._model, self._theta, self._prior = model, theta, doc_prior
        self.rows = {}
        self._start()

    def _start(self):
        self._s, self._entropy, self._counts, self._lengths = 0.0, 0.0, [], []

    def observe(self, block):
        """One block's documents: a local step restricted to the absorbers."""
        where = {uid: k for k, uid in enumerate(block.uids.tolist())}
        columns = [where[uid] for uid in self._absorbers]
        both = [where[self.target], *columns]
        counts = block.doc_counts[:, columns].copy()
        self._counts.append(counts)
        self._lengths.append(block.docs.lengths)
        using = block.doc_counts[:, both[0]] > 0
        if not using.any():
            return
        docs, entries = _chosen(block.docs, using)
        before = self._model.likelihood.document_summary(docs, block.resp[entries][:, both])
        mass = block.resp[entries][:, both].sum(axis=1, dtype=np.float64)
        after = self._model.likelihood.document_step(
            self._theta, docs, self._prior, Settings(), mass=np.minimum(mass, 1.0),
            start=np.ascontiguousarray(counts[using]),
        )  # fmt: skip
        self._s += after.s - before.s[1:]
        self._entropy += after.entropy - before.entropy[1:]
        counts[using] = after.counts

    def close(self, batch_id, bag):
        """End of a batch with statistics ``bag``."""
        uids = np.asarray(self.created, dtype=np.int64)
        old = bag.positions(self._absorbers)
        part = Part.of(np.concatenate(self._counts), np.concatenate(self._lengths), self.created)
        self.rows[batch_id] = StatBag(
            uids, bag.s[old] + self._s, bag.entropy[old] + self._entropy,
            DocumentCounts({batch_id: part}),
        )  # fmt: skip
        self._start()

    @property
    def seen(self):
        """Batches observed."""
        return self.rows.keys()

    def successors(self, totals, rest=None):
        """Statistics of the absorbers afterwards; None if batches were not observed that use the topic."""
        if rest is not None and rest.n.sum() > 0:
            return None
        bags = list(self.rows.values())
        out = bags[0]
        for bag in bags[1:]:
            out = out.add(bag)
        return out

    def edit(self):
        return SplitEdit(self.removed, self.created, self.rows)


def _chosen(docs, keep):
    """The documents ``keep`` (boolean), and their entries."""
    sizes = np.diff(docs.indptr)
    entries = np.flatnonzero(np.repeat(keep, sizes))
    indptr = np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64)
    fields = (None if f is None else np.ascontiguousarray(f[entries]) for f in docs[1:])
    return Documents(indptr, *fields), entries


class TopicDelete(Proposal):
    """Remove a topic; each document shares out what it had of it among other topics.

    Parameters
    ----------
    max_targets : int, default=10
        Targets a lap, the smallest topics first.
    n_absorbers : int, default=10
        Topics that may absorb a target.

    References
    ----------
    Hughes (2016), Sec. 5.5.2.

    Examples
    --------
    >>> from sklearn_bnp import HDPTopicVB, TopicDelete
    >>> model = HDPTopicVB(proposals=("birth", "merge", TopicDelete(max_targets=5)))
    """

    kind = "delete"
    _parameter_constraints = {
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        "n_absorbers": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, max_targets=10, n_absorbers=10):
        self.max_targets = max_targets
        self.n_absorbers = n_absorbers

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.2)

    def plan(self, context):
        """A trial for each target, among the absorbers that explain it best."""
        totals, model = context.totals, context.model
        if len(totals.uids) < 3:
            return []
        open_ = sorted(
            (n, uid)
            for uid, n in zip(totals.uids.tolist(), totals.n.tolist(), strict=True)
            if not self._failures.blocked(uid, n)
        )
        if not open_:
            return []
        doc_prior = model.doc_prior(totals)
        loss = reassignment_loss(model, totals) - np.log(np.maximum(doc_prior, 1e-290))
        np.fill_diagonal(loss, np.inf)
        trials = []
        for _, uid in open_[: self.max_targets]:
            k = int(totals.positions([uid])[0])
            near = np.argsort(loss[k], kind="stable")[: min(self.n_absorbers, len(loss) - 1)]
            prior = doc_prior[near] * (1.0 + doc_prior[k] / doc_prior[near].sum())
            theta = model.likelihood.document_parameters(model.prior, totals.s[near])
            trials.append(
                DeleteTrial(
                    uid, totals.uids[near].tolist(), context.new_uids(len(near)), model, theta, prior
                )
            )
        return trials

    def judged(self, trial, accepted, mass):
        """Remember failures."""
        if not accepted:
            self._failures.note(trial.target, mass)
