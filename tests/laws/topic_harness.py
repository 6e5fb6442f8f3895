"""Topic models for laws: corpora, learners, and a shadow that keeps what they do not keep."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sklearn_bnp.allocation.documents import DirichletDocuments, HDPDocuments
from sklearn_bnp.core.batches import Batch, column_moments
from sklearn_bnp.core.document_collector import DocumentCollector
from sklearn_bnp.core.document_counts import NO_DOCUMENTS, DocumentCounts, Part
from sklearn_bnp.core.documents import DocumentBatch, DocumentSource
from sklearn_bnp.core.learner import Learner
from sklearn_bnp.core.stats import StatBag
from sklearn_bnp.core.topic_model import LocalSchedule, TopicModel
from sklearn_bnp.observation.multinomial import MultinomialLikelihood, dirichlet_prior
from sklearn_bnp.proposals.base import UndoTrial
from tests.reference import mixtures, topics
from tests.reference.families import DirichletMultinomial

from .families import FAMILIES
from .harness import features_of

N_TYPES = 12

# ---------------------------------------------------------------------- the registry


class Corpus(NamedTuple):
    """Documents for a learner, and as the twins see them.

    Attributes
    ----------
    batch : DocumentBatch
        All of them.
    rows, weight, doc : ndarray, shapes (n, D), (n,) and (n,)
        Entries as rows, how often each occurs, and its document.
    labels : ndarray, shape (n,)
        The true topics.
    """

    batch: DocumentBatch
    rows: np.ndarray
    weight: np.ndarray
    doc: np.ndarray
    labels: np.ndarray

    @property
    def n_docs(self):
        return len(self.batch.indptr) - 1

    def part(self, docs):
        """A corpus of these documents, in this order."""
        indptr = self.batch.indptr
        entries = np.concatenate([np.arange(indptr[d], indptr[d + 1]) for d in docs] + [[]]).astype(
            int
        )
        sizes = np.diff(indptr)[docs]
        fields = (self.batch.counts, self.batch.indices, self.batch.x, self.batch.resp)
        batch = DocumentBatch(
            self.batch.batch_id, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            *(None if f is None else f[entries] for f in fields),
        )  # fmt: skip
        doc = np.repeat(np.arange(len(docs)), sizes)
        return Corpus(batch, self.rows[entries], self.weight[entries], doc, self.labels[entries])


class Kind(NamedTuple):
    """What documents consist of: ``corpus(rng, n_docs, mean_length)``, and how the model sees it."""

    name: str
    corpus: Callable
    likelihood: Callable
    twin: Callable


class Prior(NamedTuple):
    """A prior of documents and, for K topics, its twin."""

    name: str
    allocation: object
    twin: Callable


def _shares(rng, n_docs, mean_length):
    """Lengths, of which the third and the last are zero, and topics of the tokens."""
    lengths = rng.poisson(mean_length, n_docs)
    if n_docs > 3:
        lengths[[2, -1]] = 0
    pi = rng.dirichlet([0.5, 0.35, 0.2], size=n_docs)
    labels = [rng.choice(3, size=T, p=p) for T, p in zip(lengths, pi, strict=True)]
    return lengths, np.concatenate(labels).astype(int)


def words(rng, n_docs=40, mean_length=40, spread=1.0):
    """Twelve types, of which each of three topics prefers four; each type once a document, counted."""
    lengths, labels = _shares(rng, n_docs, mean_length)
    phi = 0.15 * spread / 12 + (1.0 - 0.15 * spread) * np.kron(np.eye(3), [0.4, 0.3, 0.2, 0.1])
    tokens = np.array([rng.choice(N_TYPES, p=phi[z]) for z in labels], dtype=int)
    doc = np.repeat(np.arange(n_docs), lengths)
    table = np.zeros((n_docs, N_TYPES))
    np.add.at(table, (doc, tokens), 1.0)
    doc, types = np.nonzero(table)
    counts = table[doc, types]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(doc, minlength=n_docs))]).astype(np.int64)
    batch = DocumentBatch("all", indptr, counts, types.astype(np.int32))
    # the usual topic of a type: tokens of one type share responsibilities
    return Corpus(batch, topics.one_hot(types, N_TYPES), counts, doc, types // 4)


def rows_of(family):
    """Documents of rows of a family of the registry of mixtures."""

    def corpus(rng, n_docs=40, mean_length=20, spread=1.0):
        lengths, labels = _shares(rng, n_docs, mean_length)
        pool, found = family.rows(rng, 12 * len(labels) + 60, spread)
        rows = np.empty((len(labels), pool.shape[1]))
        for k in range(3):
            rows[labels == k] = pool[found == k][: np.sum(labels == k)]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        doc = np.repeat(np.arange(n_docs), lengths)
        return Corpus(DocumentBatch("all", indptr, x=rows), rows, np.ones(len(rows)), doc, labels)

    return corpus


def _likelihood_of_words(corpus):
    return MultinomialLikelihood(dirichlet_prior(np.full(N_TYPES, 0.2)), 40.0)


def _likelihood_of_rows(family):
    def likelihood(corpus):
        moments = column_moments(
            [Batch(None, corpus.rows)], covariance=family.observation.needs_covariance
        )
        return family.observation.bind(moments)

    return likelihood


def _named(name):
    return next(family for family in FAMILIES if family.name == name)


KINDS = [
    Kind("words", words, _likelihood_of_words, lambda lik, prior: DirichletMultinomial(prior.lam)),
    *(
        Kind(name, rows_of(_named(name)), _likelihood_of_rows(_named(name)), _named(name).twin)
        for name in ("full", "bernoulli")
    ),
]

PRIORS = [
    Prior("hdp", HDPDocuments(1.0, 1.0), lambda K: topics.HDP(1.0, 1.0)),
    Prior("hdp-3", HDPDocuments(3.0, 0.4), lambda K: topics.HDP(3.0, 0.4)),
    Prior("dirichlet", DirichletDocuments(0.5), lambda K: topics.LDA(0.5, K)),
    Prior("dirichlet-auto", DirichletDocuments(), lambda K: topics.LDA(None, K)),
]


# ---------------------------------------------------------------------- learners


class Overheard:
    """A likelihood that also notes the responsibilities of restricted local steps."""

    def __init__(self, likelihood):
        self._likelihood, self.resp = likelihood, []

    def __getattr__(self, name):
        return getattr(self._likelihood, name)

    def document_step(self, *args, **kwargs):
        if kwargs.get("mass") is None:
            return self._likelihood.document_step(*args, **kwargs)
        step = self._likelihood.document_step(*args, **{**kwargs, "want_resp": True})
        self.resp.append(step.resp)
        return step


class Followed(NamedTuple):
    """A learner before its first lap, the batches that it is to visit, and the corpus."""

    learner: Learner
    source: DocumentSource
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
    return TopicModel(likelihood, prior.allocation, likelihood.prior, schedule or LocalSchedule())


def topic_learner(
    kind, prior, corpus, n_components, *, proposals=(), n_batches=1, seed=0, schedule=None, resp=None,
    max_components=np.inf,
):  # fmt: skip
    """A learner that starts from soft random responsibilities, or from ``resp``."""
    model = model_of(kind, prior, corpus, schedule)
    learner = Learner(
        model, list(proposals), np.random.RandomState(seed), max_components=max_components,
        collector_type=DocumentCollector,
    )  # fmt: skip
    source = DocumentSource(corpus.batch, n_batches)
    followed = Followed(learner, source, corpus, kind, prior)
    if resp is None:
        concentration = 0.5 * np.arange(1, n_components + 1)
        resp = np.random.default_rng(seed).dirichlet(concentration, size=len(corpus.rows))
    features = features_of(model.likelihood, followed.prepared())
    learner.start((corpus.weight[:, np.newaxis] * resp).T @ features)
    return followed


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


# ---------------------------------------------------------------------- the shadow


class _Recorder:
    """Observer that keeps the responsibilities of a batch."""

    def __init__(self):
        self.blocks = []

    def observe(self, block):
        assert block.first == sum(len(b.docs) for b in self.blocks)
        self.blocks.append(block)

    def close(self, batch_id, bag):
        pass


class TopicShadow:
    """Follows the learner of a `Followed` from now on; keeps all responsibilities.

    What the local step finds is taken from the learner, as blocks show it; every sum, and every
    replacement of components, is made here anew.

    Attributes
    ----------
    resp, uids : dict
        Batch id -> responsibilities (n, K), and components of their columns.
    lap_values, step_values : list
        The objective after each lap, and pairs around each global step of a visit.
    end_values : list
        Pairs of it around the end of each lap without adoptions.
    verdicts : list
        Pairs around each trial accepted, settled.
    unsettled : list
        Nats by which the totals that trials were judged against are short of being settled.
    accepted : list of str
        Kinds of trials carried out.
    retired : list
        Uids that adoptions put out of use, lap by lap.
    n_retired : int
        Over all laps.
    taken_back : int
        Laps.
    """

    def __init__(self, followed):
        self.followed, self.learner = followed, followed.learner
        self.resp, self.uids, self.lap_values = {}, {}, []
        self.step_values, self.end_values, self.verdicts, self.accepted = [], [], [], []
        self.unsettled = []
        self.retired, self.n_retired, self.taken_back = [], 0, 0
        self.batches = {b.batch_id: b for b in followed.source.batches()}
        learner = self.learner
        self._begin, self._visit, self._end = learner.begin_lap, learner.visit, learner.end_lap
        self._judge = learner.scheduler.judge
        learner.begin_lap, learner.visit = self.begin_lap, self.visit
        learner.end_lap, learner.scheduler.judge = self.end_lap, self.judge

    # ------------------------------------------------------------------ what the learner does

    def begin_lap(self, *args, **kwargs):
        learner = self.learner
        self._before = learner.memo, dict(self.resp), dict(self.uids)
        self._objective_before = learner.lower_bound if len(learner.memo) else None
        self._begin(*args, **kwargs)
        self._visiting = None
        self._deletes = {}
        for trial in learner.scheduler.trials:
            if trial.kind == "delete":
                self._overhear(trial)

    def _overhear(self, trial):
        """Note what a delete's restricted local steps find, batch by batch."""
        likelihood, observe = self.learner.model.likelihood, trial.observe

        def overheard(block):
            likelihood.resp.clear()
            observe(block)
            found = self._deletes.setdefault((id(trial), self._visiting), [])
            found.extend(likelihood.resp)

        trial.observe = overheard

    def visit(self, batch, **kwargs):
        learner, recorder = self.learner, _Recorder()
        learner._observers.append(recorder)
        uids, model, self._visiting = learner.totals.uids.copy(), learner.model, batch.batch_id
        self._visit(batch, **kwargs)
        learner._observers.remove(recorder)
        blocks = recorder.blocks
        assert all(np.array_equal(block.uids, uids) for block in blocks)
        self.resp[batch.batch_id] = np.concatenate([block.resp for block in blocks]).astype(float)
        self.uids[batch.batch_id] = uids
        if model.uids == learner.model.uids and model.sticks is not None:
            self.step_values.append((model.elbo(learner.totals), learner.lower_bound))

    def end_lap(self, *args, **kwargs):
        learner = self.learner
        memo, adopting = learner.memo, learner._before is not None
        self.retired = [t.target for t in learner.scheduler.adoptions if t.retires and adopting]
        before = learner.lower_bound
        lap = self._end(*args, **kwargs)
        if learner.memo is not memo:
            _, self.resp, self.uids = self._before
            self.retired, self.taken_back = [], self.taken_back + 1
        self.n_retired += len(self.retired)
        self.lap_values.append(lap.lower_bound)
        if not adopting:
            self.end_values.append((before, lap.lower_bound))
        return lap

    def judge(self, model, totals, memo):
        if len(self.learner.scheduler.trials) > len(self.learner.scheduler.adoptions):
            self.unsettled.append(self.settled(model, totals) - model.elbo(totals))
        verdict = self._judge(model, totals, memo)
        values = [self.settled(model, totals)] if verdict.accepted else []
        for trial in verdict.accepted:
            totals = totals.replaced(trial.removed, self.implied(trial))
            values.append(self.settled(model, totals))
            for name in self.resp:
                columns = self.successors(name, trial)
                if columns is not None:
                    old = np.isin(self.uids[name], trial.removed)
                    self.resp[name] = np.hstack([self.resp[name][:, ~old], columns])
                    self.uids[name] = np.concatenate([self.uids[name][~old], trial.created])
            self.accepted.append("undo" if isinstance(trial, UndoTrial) else trial.kind)
        self.verdicts += pairwise(values)
        return verdict

    @staticmethod
    def settled(model, totals):
        """The objective at the best sticks: of the order given, of that by mass, and by weight."""
        weights = model.allocation.weights(model.updated(totals).sticks)
        orders = np.arange(len(weights)), np.argsort(-totals.n), np.argsort(-weights)
        ordered = [totals.take(order) for order in orders]
        return max(model.updated(other).elbo(other) for other in ordered)

    # ------------------------------------------------------------------ replacements

    def successors(self, name, trial):
        """Responsibilities (n, J) of a trial's created components, None if it did not see the batch.

        A union holds its members'. In documents that use a delete's target, what they have of it and
        of the absorbers is shared out by the local step that was overheard; others keep what they
        have.
        """
        batch, uids, resp = self.batches[name], self.uids[name].tolist(), self.resp[name]
        if trial.kind != "delete":
            return resp[:, np.isin(uids, trial.removed)].sum(axis=1, keepdims=True)
        if name not in trial.seen:
            return None
        absorbers = [uid for uid in trial.removed if uid != trial.target]
        new = resp[:, [uids.index(uid) for uid in absorbers]].copy()
        n_docs = len(batch.indptr) - 1
        doc = np.repeat(np.arange(n_docs), np.diff(batch.indptr))
        target = weight_of(batch) * resp[:, uids.index(trial.target)]
        using = np.bincount(doc, target, minlength=n_docs) > 0
        found = self._deletes.get((id(trial), name), [])
        if found:
            new[using[doc]] = np.concatenate(found)
        return new

    def implied(self, trial):
        """`StatBag` of a trial's created components over all batches that it saw."""
        created = np.array(trial.created)
        out = StatBag.zeros(created, self.learner.totals.s.shape[1])
        for name, batch in self.batches.items():
            columns = self.successors(name, trial) if name in self.resp else None
            if columns is not None:
                out = out.add(bag_of(self.followed, batch, columns, created))
        return out

    # ------------------------------------------------------------------ what should be

    def bag(self, name):
        """`StatBag` of a batch from its responsibilities."""
        return bag_of(self.followed, self.batches[name], self.resp[name], self.uids[name])

    def totals(self, names=None):
        """Sum of the batches ``names``, or of all, as the learner's components."""
        uids = self.learner.totals.uids
        out = StatBag.zeros(uids, self.learner.totals.s.shape[1])
        for name in self.resp if names is None else names:
            out = out.add(self.bag(name).aligned(uids))
        return out

    def all_resp(self):
        """Responsibilities (n, K) of the corpus, as the learner's components, in order."""
        uids = self.learner.totals.uids.tolist()
        out = []
        for name in range(len(self.followed.source)):
            here = self.uids[name].tolist()
            resp = np.zeros((len(self.resp[name]), len(uids)))
            for k, uid in enumerate(uids):
                if uid in here:
                    resp[:, k] = self.resp[name][:, here.index(uid)]
            out.append(resp)
        return np.concatenate(out)

    def objective(self):
        """By hand, from all responsibilities, at the learner's sticks."""
        return objective_by_hand(self.followed, self.all_resp(), self.learner.totals.uids)


def weight_of(batch):
    """How often each entry of a batch occurs."""
    return np.ones(batch.n_entries) if batch.counts is None else batch.counts.astype(float)


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
    s = (weight[:, np.newaxis] * resp).T @ features_of(likelihood, z)
    counts = topics.document_counts(resp, weight, doc, n_docs)
    part = Part.of(counts, np.bincount(doc, weight, minlength=n_docs), list(uids))
    return StatBag(
        np.asarray(uids),
        s,
        mixtures.entropies(resp, weight),
        DocumentCounts({batch.batch_id: part}),
    )


def assert_same_bag(bag, expected, *, rtol=1e-9, entropy=True, mass=0.0):
    """Statistics, entropies and counts of documents, to rounding of the whole, or of ``mass`` tokens."""
    assert bag.uids.tolist() == expected.uids.tolist()
    size = np.abs(expected.s).sum(axis=0) + max(mass, np.abs(expected.s[:, -1]).sum())
    assert np.all(np.abs(bag.s - expected.s) <= rtol * size)
    if entropy:
        assert np.all(np.abs(bag.entropy - expected.entropy) <= rtol * size[-1])
    assert_same_documents(bag.docs, expected.docs, bag.uids.tolist(), rtol * size[-1])


def assert_same_documents(docs, expected, uids, atol):
    if docs is NO_DOCUMENTS or expected is NO_DOCUMENTS:
        assert docs is expected
        return
    assert docs.parts.keys() == expected.parts.keys()
    for name, part in docs.parts.items():
        other = expected.parts[name]
        np.testing.assert_allclose(part.lengths, other.lengths, rtol=1e-12)
        np.testing.assert_allclose(part.dense(uids), other.dense(uids), atol=atol)
        for column in part.columns.values():
            assert np.all(column.values > 0) and np.all(np.diff(column.docs) > 0)
