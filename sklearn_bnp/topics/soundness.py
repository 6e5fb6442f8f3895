"""Checks of the attributes of a fitted `HDPTopicVB`; see `estimator.soundness`."""

from __future__ import annotations

import numpy as np

from ..engine.extra import NoExtra
from ..estimator.soundness import laps, statistics
from ..estimator.soundness.engine import Kind, check_own_model, check_pooled
from ..estimator.soundness.estimators import check_fitted
from ..estimator.soundness.expectations import (
    expect,
    expect_count,
    expect_edges,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
    expect_uids,
)
from ..estimator.soundness.hdp import check_sticks
from ..estimator.soundness.laps import (
    check_mean_weight,
    check_pooled_rows,
    check_sampling,
    check_trial,
)
from ..estimator.soundness.statistics import (
    check_change,
    check_rows,
)
from .batch import DocumentBatch
from .birth import TopicBirth
from .counts import BatchCounts, DocumentCounts
from .delete import TopicDelete, TopicDeleteTrial
from .histograms import MOST_PANEL, N_NODES, Histogram
from .model import TopicModel, TopicParams
from .resettle import Resettle
from .restart import TopicRestart
from .sampling import DocumentSampling

TOPICS = Kind(TopicModel, (NoExtra, DocumentCounts))

check_own_model.register(TopicModel, check_sticks)


def check_topics(estimator):
    """Raise unless a fitted `HDPTopicVB` is sound."""
    check_fitted(estimator, TOPICS)
    _check_heirs(estimator._learner_)
    K = estimator.n_components_
    expect_numbers("the documents' prior", estimator._doc_prior, (K,), least=0.0)
    expect_number("the mean length of documents", estimator._mean_length, least=0.0)
    expect_number("doc_topic_prior_", estimator.doc_topic_prior_, least=0.0)
    expect_number("bound_", estimator.bound_, least=0.0, finite=False)
    prior = getattr(estimator, "topic_word_prior_", None)
    if isinstance(prior, np.ndarray):
        same = np.array_equal(prior, estimator._learner_.model.prior.lam)
        expect(same, "topic_word_prior_ is not the prior of the model")
    expect_numbers("topic_probs_", estimator.topic_probs_, (K,), least=0.0, most=1.0)


def _check_heirs(learner):
    """Raise unless the topics that retire in the local step are those that retire in the model."""
    totals, retired = learner.totals, learner.model.retired or {}
    wanted = [(*totals.positions([gone]), totals.positions(new)) for gone, new in retired.items()]
    same = [
        gone == column and np.array_equal(new, columns)
        for (gone, new), (column, columns) in zip(wanted, learner.coef.heirs, strict=True)
    ]
    expect(all(same), "other topics retire than in the model")


@check_pooled.register
def _(batch: DocumentBatch, likelihood, n_columns):
    if batch.x is None:
        expect_positions("words of a pool", batch.indices, (None,), n_columns)
        n = np.asarray(batch.indices).size
    else:
        check_pooled_rows(batch.x, likelihood, n_columns)
        n = batch.x.shape[0]
    expect_edges("where documents of a pool begin", batch.indptr, n)
    if batch.counts is not None:
        expect_numbers("counts of a pool", batch.counts, (n,), kinds="fiu", least=0.0)
    expect(batch.resp is None, "a pool holds responsibilities")
    if batch.weight is not None:
        expect_numbers("weights of a pool", batch.weight, (len(batch.indptr) - 1,), least=0.0)


@statistics.check_extra.register
def _(counts: DocumentCounts, names):
    expect_uids("histograms of documents", counts.topics, names.below)
    for histogram in (counts.lengths, *counts.topics.values()):
        _check_histogram(histogram)
    expect_number("the number of empty documents", counts.n_empty)
    for part in counts.parts.values():
        expect_type("counts of documents", part, BatchCounts)
        n = len(part.lengths)
        expect_numbers("lengths of documents", part.lengths, (n,), least=0.0)
        if part.weight is not None:
            expect_numbers("weights of documents", part.weight, (n,))
        expect_uids("columns of documents", part.columns, names.below)
        for column in part.columns.values():
            expect_positions("documents that use a topic", column.docs, (None,), n)
            expect(np.all(np.diff(column.docs) > 0), "documents that use a topic are not in order")
            expect_numbers("counts of documents", column.values, column.docs.shape, least=0.0)


@statistics.check_union.register
def _check_histogram(histogram: Histogram):
    """Raise unless a `Histogram` is sound."""
    expect_numbers("a histogram of counts", histogram.weights, (None,))
    expect(len(histogram.weights) % N_NODES == 0, "a histogram of counts lacks nodes")
    expect_count("the first panel of a histogram", histogram.first, least=-MOST_PANEL)
    expect(histogram.last <= MOST_PANEL + 1, "the last panel of a histogram is out of range")


@statistics.check_extra_of_batch.register
def _(counts: DocumentCounts, batch_id):
    # those of a batch in chunks are listed chunk by chunk, by its name and the chunk's number
    own = (
        key == batch_id or (isinstance(key, tuple) and key[0] == batch_id) for key in counts.parts
    )
    expect(any(own), "a batch lacks its own documents")


@laps.check_params.register
def _(params: TopicParams, likelihood, n_components):
    _check_theta(params.theta, likelihood, n_components)
    expect_numbers("the documents' prior", params.prior, (n_components,), least=0.0)
    for gone, heirs in params.heirs:
        expect_positions("topics that go", np.array([gone]), (1,), n_components)
        expect_positions("topics that take their place", heirs, (None,), n_components)


def _check_theta(theta, likelihood, n_components):
    """Raise unless ``theta`` holds the parameters of documents' local step for so many topics."""
    if likelihood.words:
        expect_numbers("weights of words", theta, (likelihood.n_features, n_components), least=0.0)
    else:
        laps.check_params.dispatch(object)(theta, likelihood, n_components)


@check_trial.register
def _(trial: TopicDeleteTrial, findings, lap):
    probe, J = trial.probe, len(trial.created)
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.created == probe.absorbers, "a topic is shared out among others")
    expect(trial.removed == (trial.target, *trial.created), "other topics go than are shared out")
    expect(probe.target == trial.target, "a delete observes another topic")
    _check_theta(probe.theta, lap.model.likelihood, J)
    expect_numbers("the prior of a delete", probe.doc_prior, (J,), least=0.0)
    check_rows(findings, trial.created, lap.names)


laps.check_memories_of(TopicDelete, Resettle, TopicRestart)


@laps.check_proposal.register
def _(proposal: TopicBirth):
    laps.check_memories(proposal, TopicBirth)
    if proposal._size is not None:
        expect_number("the size of a corpus", proposal._size, least=0.0)


@check_sampling.register
def _(sampling: DocumentSampling, lap, uids):
    probe = sampling.probe
    expect_uids("topics to be sampled", probe.uids, lap.names.below)
    expect(set(probe.uids) <= set(uids.tolist()), "topics are sampled that are not there")
    expect_number("the key of documents", probe.threshold, least=0.0, finite=False)
    expect_number("the number of tokens", sampling._n_tokens, least=0.0)
    check_mean_weight(probe.mean_weight)
    for draw in sampling._batches.values():
        expect_number("tokens", draw.n_tokens, least=0.0)
        expect_number("the key of documents", draw.threshold, least=0.0, finite=False)
        for (docs, mass), key in (part for some in draw.parts.values() for part in some):
            _check_documents(docs, lap)
            expect_numbers("shares of entries", mass, docs.counts.shape, least=0.0)
            if key is not None:
                laps.check_keys("keys of documents", key, (len(docs),))


def _check_documents(docs, lap):
    """Raise unless `Documents` are sound."""
    n = len(docs.counts)
    expect_edges("the list of documents", docs.indptr, n)
    expect_numbers("counts of entries", docs.counts, (n,), least=0.0)
    if docs.indices is not None:
        expect_positions("words", docs.indices, (n,), lap.model.likelihood.n_features)
    if docs.z is not None:
        laps.check_prepared_rows(docs.z, lap)
        expect(docs.z.shape[0] == n, "documents have other rows than entries")
    expect((docs.indices is None) != (docs.z is None), "documents have both words and rows")
    if docs.weight is not None:
        expect_numbers("weights of documents", docs.weight, (len(docs),), least=0.0)
