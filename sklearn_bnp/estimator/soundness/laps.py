"""What must hold of a lap under way: of trials, of what watches on their behalf, and of samples."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ...engine.failures import Failures
from ...engine.proposal import AdoptTrial, SplitTrial, UnionObserver, UnionTrial
from ...hmm import delete as hmm_delete
from ...hmm.local import ChainParams
from ...hmm.merge import CoarseningObserver, CoarseningTrial
from ...hmm.sampling import RunCollector
from ...hmm.steps import StepPool
from ...mixture.sampling import Collector
from ...topics import delete as topics_delete
from ...topics.birth import TopicBirth
from ...topics.model import TopicParams
from ...topics.sampling import DocumentCollector
from .expectations import (
    expect,
    expect_count,
    expect_edges,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
    expect_uids,
)
from .likelihoods import is_ours
from .statistics import Names, check_bag, check_change, check_rows, check_values

# No sample has so many rows.
_MOST_ROWS = 2**31


class LapState(NamedTuple):
    """What the parts of a lap have in common.

    Attributes
    ----------
    model : MixtureModel, TopicModel or SequenceModel
    n_components : int
        Those in the model during the lap, K.
    names : Names
    """

    model: object
    n_components: int
    names: Names


@singledispatch
def check_watcher(watcher, lap):
    """Raise unless a trial, or what observes blocks, is sound; nothing is known of those of a user."""


# ---------------------------------------------------------------------- parameters of local steps


@singledispatch
def check_params(params, likelihood, n_components):
    """Raise unless the parameters of a local step are those of so many components."""
    size = 8 if is_ours(likelihood) else None  # local steps bring them to the precision of rows
    expect_numbers("coefficients", params, (n_components, likelihood.n_statistics), size=size)


@check_params.register
def _(params: TopicParams, likelihood, n_components):
    check_theta(params.theta, likelihood, n_components)
    expect_numbers("the documents' prior", params.prior, (n_components,), least=0.0)
    for gone, heirs in params.heirs:
        expect_positions("topics that go", np.array([gone]), (1,), n_components)
        expect_positions("topics that take their place", heirs, (None,), n_components)


@check_params.register
def _(params: ChainParams, likelihood, n_components):
    K = len(params.states)
    check_params.dispatch(object)(params.coef, likelihood, K)
    expect_numbers("weights of transitions", params.log_rows, (K + 1, K))
    expect_positions("states of the local step", params.states, (K,), n_components)


def check_theta(theta, likelihood, n_components):
    """Raise unless parameters of documents' local step are those of so many topics."""
    if likelihood.words:
        expect_numbers("weights of words", theta, (likelihood.n_features, n_components), least=0.0)
    else:
        check_params.dispatch(object)(theta, likelihood, n_components)


# ---------------------------------------------------------------------- trials and observers


@check_watcher.register
def _(trial: SplitTrial, lap):
    J, P = len(trial.created), lap.names.n_statistics
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.target in trial.removed, "the target of a split does not go")
    expect(trial.likelihood is lap.model.likelihood, "a split is of another likelihood")
    expect_numbers("coefficients of a split", trial.coef, (J, P))
    expect_numbers("sums of a split", trial._s, (J, P))
    expect_numbers("entropies of a split", trial._entropy, (J,))
    expect_number("the rest of a split", trial._rest)
    check_rows(trial.rows, trial.created, lap.names)


@check_watcher.register
def _(trial: UnionTrial, lap):
    check_change(trial.removed, trial.created, lap.names)
    check_values("entropies of a union", trial.entropies)


@check_watcher.register
def _(trial: AdoptTrial, lap):
    check_change(trial.targets, trial.created, lap.names)
    check_bag("adopted components", trial.seeds, lap.names)
    expect(tuple(trial.seeds.uids.tolist()) == trial.created, "other components were adopted")


@check_watcher.register
def _(trial: CoarseningTrial, lap):
    check_change(trial.removed, trial.created, lap.names)
    members = tuple(uid for group, _ in trial.groups for uid in group)
    expect(members == trial.removed, "other states go than are in the groups")
    check_values("changes of the entropy", trial.changes)


@check_watcher.register
def _(trial: hmm_delete.DeleteTrial, lap):
    step = trial._local_step
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.removed == (trial.target, *trial.created), "other states go than are shared out")
    expect(step.likelihood is lap.model.likelihood, "a delete is of another likelihood")
    expect_uids("states that stay", step.uids, lap.names.below)
    check_params(step.params, step.likelihood, lap.n_components)
    expect(len(step.uids) == len(step.params.states), "a delete has parameters of other states")
    check_rows(trial.rows, trial.created, lap.names)


@check_watcher.register
def _(trial: topics_delete.DeleteTrial, lap):
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.created == trial._absorbers, "a topic is shared out among others")
    expect(trial.removed == (trial.target, *trial.created), "other topics go than are shared out")
    expect(trial._model.likelihood is lap.model.likelihood, "a delete is of another likelihood")
    check_theta(trial._theta, lap.model.likelihood, len(trial.created))
    expect_numbers("the prior of a delete", trial._prior, (len(trial.created),), least=0.0)
    expect(not trial._counts and not trial._docs, "a delete has documents of a batch that is over")
    check_rows(trial.rows, trial.created, lap.names)


@check_watcher.register
def _(observer: UnionObserver, lap):
    expect_numbers("entropies of unions", observer._entropy, (len(observer.trials),))
    if observer._members is None:
        return
    expect_positions("members of unions", observer._members, (None,), lap.n_components)
    expect_edges("the list of unions", observer._indptr, len(observer._members))
    expect(len(observer._indptr) == len(observer.trials) + 1, "there are more unions than trials")


@check_watcher.register
def _(observer: CoarseningObserver, lap):
    expect_numbers("changes of entropies", observer._change, (len(observer.trials),), finite=False)


@singledispatch
def check_proposal(proposal):
    """Raise unless what a proposal remembers of its failures are numbers."""
    for memory in vars(proposal).values():
        if isinstance(memory, Failures):
            expect_number("the change that forgives a failure", memory.change, least=0.0)
            expect_count("the patience of a proposal", memory.patience)
            for times, mass in memory._memory.values():
                expect_count("how often something failed", times)
                expect_number("the mass of what failed", mass)


@check_proposal.register
def _(proposal: TopicBirth):
    check_proposal.dispatch(object)(proposal)
    if proposal._size is not None:
        expect_number("the size of a corpus", proposal._size, least=0.0)


# ---------------------------------------------------------------------- samples


@check_watcher.register
def _(collector: Collector, lap):
    n = len(collector.uids)
    expect_uids("components to be collected", collector.uids, lap.names.below)
    expect_positions("columns to be collected", collector._columns, (n,), lap.n_components)
    _check_mean_weight(collector)
    for samples, n_samples, of_all in (
        (collector._samples, n, False),
        (collector._uniform, 1, True),
    ):
        expect_positions("budgets of samples", samples._budget, (n_samples,), _MOST_ROWS)
        _check_keys("keys of samples", samples.threshold, (n_samples,))
        expect(not samples._open, "rows are of a batch that is over")
        for rows in (rows for batch in samples._batches.values() for rows in batch):
            shape = rows.key.shape if not of_all else (len(rows.key), lap.n_components)
            _check_rows(rows.z, lap)
            expect_numbers("shares of rows", rows.share, shape, size=None, least=0.0)
            if rows.weight is not None:
                expect_numbers("weights of rows", rows.weight, rows.key.shape, least=0.0)
            _check_keys("keys of rows", rows.key, (rows.z.shape[0],))
            expect_positions("whose rows were collected", rows.column, rows.key.shape, n_samples)


@check_watcher.register
def _(collector: DocumentCollector, lap):
    expect_uids("topics to be collected", collector._columns, lap.names.below)
    columns = np.array(list(collector._columns.values()), dtype=np.intp)
    expect_positions("columns to be collected", columns, columns.shape, lap.n_components)
    expect_number("the key of documents", collector._threshold, least=0.0, finite=False)
    expect_number("the number of tokens", collector._n_tokens, least=0.0)
    _check_mean_weight(collector)
    expect(not collector._parts, "documents are of a batch that is over")
    check_values("tokens", collector._tokens)
    for parts in collector._batches.values():
        for (docs, mass), key in (part for some in parts.values() for part in some):
            _check_documents(docs, lap)
            expect_numbers("shares of entries", mass, docs.counts.shape, least=0.0)
            if key is not None:
                _check_keys("keys of documents", key, (len(docs),))


@check_watcher.register
def _(collector: RunCollector, lap):
    expect(collector._budget.keys() == collector._threshold.keys(), "budgets are of other states")
    for uids, budget in collector._budget.items():
        expect_uids("states to be collected", uids, lap.names.below)
        expect_number("the budget of runs", budget, least=0.0)
        expect_number("the key of runs", collector._threshold[uids], least=0.0, finite=False)
    _check_mean_weight(collector)
    expect(not collector._parts and not collector._owners, "runs are of a batch that is over")
    for parts in collector._batches.values():
        for uids, (z, lengths, weight, key) in parts.items():
            expect(uids in collector._budget, "runs are of states that nobody wants")
            _check_rows(z, lap)
            expect_positions("lengths of runs", lengths, (None,), z.shape[0] + 1)
            expect(lengths.sum() == z.shape[0], "runs do not add up to their rows")
            if weight is not None:
                expect_numbers("weights of runs", weight, lengths.shape, least=0.0)
            if key is not None:
                _check_keys("keys of runs", key, lengths.shape)
    if collector._pool is not None:
        _check_steps(collector._pool, lap)


def _check_steps(pool, lap):
    """Raise unless steps that were drawn from sequences are sound."""
    expect_type("the pool of steps", pool, StepPool)
    expect_number("the number of steps", pool.n_steps, least=0, most=_MOST_ROWS)
    expect_number("the priority of steps", pool._threshold, least=0.0)
    expect_type("the pool's random generator", pool._rng, np.random.RandomState)
    expect(not pool._drawn, "steps are of a batch that is over")
    expect_uids("states of steps", pool._uids, lap.names.below)
    K = len(pool._uids)
    for part in (part for parts in pool._batches.values() for part in parts):
        m = len(part.priority)
        expect_numbers("filtered probabilities of steps", part.alpha, (m, K), size=4, least=0.0)
        expect_numbers("responsibilities of steps", part.resp, (m, 2, K), size=4, least=0.0)
        expect_numbers("where sequences begin", part.begins, (m,), kinds="b", size=1)
        for name in ("weight", "size", "priority"):
            expect_numbers(f"the {name} of steps", getattr(part, name), (m,), least=0.0)
        expect_numbers("transitions of steps", part.trans, (K, K), least=0.0)


def _check_keys(what, value, shape):
    """Raise unless these are keys: uniform numbers over odds of a half at the least, or infinite."""
    expect_numbers(what, value, shape, least=0.0, finite=False)
    expect(np.all((value <= 2.0) | np.isinf(value)), f"{what} are no keys")


def _check_mean_weight(collector):
    """Raise unless the mean weight that a collector knows of is one."""
    if collector._mean_weight is not None:
        expect_number("the mean weight", collector._mean_weight, least=0.0)


def _check_rows(z, lap):
    """Raise unless these are prepared rows."""
    width = lap.model.likelihood.n_features
    if issparse(z):
        expect(z.ndim == 2 and z.shape[1] == width, f"prepared rows have shape {z.shape}")
        expect_edges("the list of sparse rows", z.indptr, len(z.indices))
        expect_positions("columns of sparse rows", z.indices, (None,), width)
        expect_numbers("sparse rows", z.data, z.indices.shape, size=None)
        return
    expect_type("prepared rows", z, np.ndarray)
    known = np.nan_to_num(z, nan=0.0, posinf=np.inf) if lap.model.likelihood.holes else z
    expect_numbers("prepared rows", known, (None, width), size=None)


def _check_documents(docs, lap):
    """Raise unless `Documents` are sound."""
    n = len(docs.counts)
    expect_edges("the list of documents", docs.indptr, n)
    expect_numbers("counts of entries", docs.counts, (n,), least=0.0)
    if docs.indices is not None:
        expect_positions("words", docs.indices, (n,), lap.model.likelihood.n_features)
    if docs.z is not None:
        _check_rows(docs.z, lap)
        expect(docs.z.shape[0] == n, "documents have other rows than entries")
    expect((docs.indices is None) != (docs.z is None), "documents have both words and rows")
    if docs.weight is not None:
        expect_numbers("weights of documents", docs.weight, (len(docs),), least=0.0)
