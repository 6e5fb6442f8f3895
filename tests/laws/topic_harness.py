"""Topic models for laws: learners, and what their statistics and objective should be."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sklearn_bnp.engine.extra import NO_EXTRA
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.memo import Memo
from sklearn_bnp.engine.state import ScheduleState
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.inputs.groups import GroupSource
from sklearn_bnp.topics import delete as topic_delete
from sklearn_bnp.topics.corpus import check_corpus
from sklearn_bnp.topics.counts import BatchCounts, DocumentCounts
from sklearn_bnp.topics.local import document_step
from sklearn_bnp.topics.model import LocalSchedule, TopicModel
from tests.reference import mixtures, topics

from .harness import features_of, fresh_learner, random_resp
from .topic_kinds import Corpus, Kind, Prior


class Overheard:
    """A likelihood that also notes the responsibilities of restricted local steps."""

    def __init__(self, likelihood):
        self._likelihood, self.resp = likelihood, []

    def __getattr__(self, name):
        return getattr(self._likelihood, name)


def laps_without_proposals(model, X):
    """The state of a learner after three laps from a fitted model, in two batches, and its source."""
    corpus = check_corpus(model, X, None, model._observation, reset=False)
    source = GroupSource(corpus.documents, 2)
    learner = Learner(replace(model._learner_, schedule=ScheduleState(), memo=Memo()))
    for _ in range(3):
        learner.run_lap(source, propose=False)
    return learner.state, source


def _overheard(likelihood, *args, **kwargs):
    """The local step of documents, whose responsibilities an `Overheard` likelihood notes."""
    if not isinstance(likelihood, Overheard):
        return document_step(likelihood, *args, **kwargs)
    step = document_step(likelihood, *args, **{**kwargs, "want_resp": True})
    likelihood.resp.append(step.resp)
    return step


topic_delete.document_step = _overheard  # that of the restricted steps


class Followed(NamedTuple):
    """A learner before its first lap, the batches that it is to visit, and the corpus."""

    learner: Learner
    source: GroupSource
    corpus: Corpus
    kind: Kind
    prior: Prior

    @property
    def twin(self):
        """Twin of the likelihood under the prior as it stands."""
        model = self.learner.model
        return self.kind.twin(model.likelihood, model.prior)

    def prepared(self, corpus=None):
        """Entries as prepared rows."""
        rows = (self.corpus if corpus is None else corpus).rows
        if self.kind.name == "words":
            return rows
        return self.learner.model.likelihood.prepare(rows)


def model_of(kind, prior, corpus, schedule=None):
    likelihood = Overheard(kind.likelihood(corpus))
    schedule = schedule or LocalSchedule()
    return TopicModel(likelihood, prior.allocation, likelihood.prior, local=schedule)


def topic_learner(
    kind, prior, corpus, n_components, *, proposals=(), n_batches=1, seed=0, schedule=None, resp=None,
    max_components=np.inf,
):  # fmt: skip
    """A learner that starts from soft random responsibilities, or from ``resp``."""
    model = model_of(kind, prior, corpus, schedule)
    learner = fresh_learner(model, proposals, seed, max_components=max_components)
    source = GroupSource(corpus.batch, n_batches)
    followed = Followed(learner, source, corpus, kind, prior)
    if resp is None:
        concentration = 0.5 * np.arange(1, n_components + 1)
        resp = np.random.default_rng(seed).dirichlet(concentration, size=len(corpus.rows))
    features = features_of(model.likelihood, followed.prepared())
    learner.start((corpus.weight[:, np.newaxis] * resp).T @ features)
    return followed


def soft_resp(rng, n, K):
    """Responsibilities with many exact zeros."""
    resp = random_resp(rng, n, K) * (rng.random((n, K)) < 0.6)
    resp[:, -1] += resp.sum(axis=1) == 0
    return resp / resp.sum(axis=1, keepdims=True)


def documents_of(follow, corpus):
    """`Documents` of a corpus, as the learner's likelihood takes them."""
    batch = corpus.batch
    return batch.documents(0, corpus.n_docs, follow.learner.model.likelihood.prepare)


def given(kind, prior, corpus, resp, n_batches=1):
    """`Followed` after a global step on given responsibilities."""
    followed = topic_learner(
        kind, prior, corpus._replace(batch=corpus.batch._replace(resp=resp)), resp.shape[1],
        resp=resp, n_batches=n_batches,
    )  # fmt: skip
    followed.learner.run_lap(followed.source, propose=False)
    return followed


def objective_by_hand(followed, resp, uids):
    """Sum of `topics.elbo_terms` under the learner's sticks; columns of ``resp`` are named ``uids``."""
    learner, corpus = followed.learner, followed.corpus
    order = [uids.tolist().index(uid) for uid in learner.totals.uids.tolist()]
    model, twin = learner.model, followed.prior.twin(len(order))
    assert model.uids == tuple(learner.totals.uids.tolist())
    terms = topics.elbo_terms(
        followed.twin, twin, followed.prepared(), corpus.weight, corpus.doc, corpus.n_docs,
        resp[:, order], model.sticks,
    )  # fmt: skip
    return sum(terms.values())


def weight_of(batch):
    """How often each entry of a batch occurs."""
    return np.ones(batch.n_entries) if batch.counts is None else batch.counts.astype(float)


def times_of(batch):
    """How many documents each document of a batch stands for."""
    return np.ones(len(batch.indptr) - 1) if batch.weight is None else batch.weight


def bag_of(followed, batch, resp, uids):
    """`StatBag` of a batch under given responsibilities, from the definitions."""
    likelihood = followed.learner.model.likelihood
    if batch.indices is None:
        z = likelihood.prepare(np.asarray(batch.x))
    else:
        z = topics.one_hot(batch.indices, likelihood.n_features)
    weight = weight_of(batch)
    n_docs = len(batch.indptr) - 1
    doc = np.repeat(np.arange(n_docs), np.diff(batch.indptr))
    in_sums = weight * times_of(batch)[doc]
    s = (in_sums[:, np.newaxis] * resp).T @ features_of(likelihood, z)
    counts = topics.document_counts(resp, weight, doc, n_docs)
    lengths = np.bincount(doc, weight, minlength=n_docs)
    part = BatchCounts.of(counts, lengths, list(uids), batch.weight)
    return StatBag(
        np.asarray(uids),
        s,
        mixtures.entropies(resp, in_sums),
        DocumentCounts.of({batch.batch_id: part}),
    )


def assert_same_bag(bag, expected, *, rtol=1e-9, entropy=True, mass=0.0):
    """Statistics, entropies and counts of documents, to rounding of the whole, or of ``mass`` tokens."""
    assert bag.uids.tolist() == expected.uids.tolist()
    size = np.abs(expected.s).sum(axis=0) + max(mass, np.abs(expected.s[:, -1]).sum())
    assert np.all(np.abs(bag.s - expected.s) <= rtol * size)
    if entropy:
        assert np.all(np.abs(bag.entropy - expected.entropy) <= rtol * size[-1])
    assert_same_documents(bag.extra, expected.extra, bag.uids.tolist(), rtol * size[-1])


def assert_same_documents(docs, expected, uids, atol):
    if docs is NO_EXTRA or expected is NO_EXTRA:
        assert docs is expected
        return
    assert docs.parts.keys() == expected.parts.keys()
    for name, part in docs.parts.items():
        other = expected.parts[name]
        np.testing.assert_allclose(part.lengths, other.lengths, rtol=1e-12)
        np.testing.assert_allclose(part.dense(uids), other.dense(uids), atol=atol)
        for column in part.columns.values():
            assert np.all(column.values > 0) and np.all(np.diff(column.docs) > 0)
