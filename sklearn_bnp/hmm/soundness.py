"""Checks of the attributes of a fitted `HDPHMMVB`; see `estimator.soundness`."""

from __future__ import annotations

import numpy as np

from ..engine.extra import NoExtra
from ..estimator.soundness import laps, statistics
from ..estimator.soundness.engine import Kind, check_own_model
from ..estimator.soundness.estimators import check_fitted
from ..estimator.soundness.expectations import (
    expect,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
    expect_uids,
)
from ..estimator.soundness.hdp import check_sticks
from .delete import DeleteTrial
from .local import ChainParams
from .merge import CoarseningObserver, CoarseningTrial
from .model import SequenceModel
from .sampling import RunCollector
from .steps import StepPool
from .transitions import Transitions, TransitionUnions
from .unions import GroupsEdit

SEQUENCES = Kind(SequenceModel, (NoExtra, Transitions), (TransitionUnions,))

check_own_model.register(SequenceModel, check_sticks)


def check_chains(estimator):
    """Raise unless a fitted `HDPHMMVB` is sound."""
    check_fitted(estimator, SEQUENCES)
    K = estimator.n_components_
    laps.check_params(estimator._params, estimator._model.likelihood, K)
    expect(len(estimator._params.coef) == K, "there are parameters of other states")
    expect_numbers("startprob_", estimator.startprob_, (K,), least=0.0)
    expect_numbers("transmat_", estimator.transmat_, (K, K), least=0.0)
    expect_numbers("weights_", estimator.weights_, (K,), least=0.0)


@statistics.check_extra.register
def _(transitions: Transitions, names):
    K = len(transitions.uids)
    expect_uids("states of transitions", transitions.uids, names.below)
    expect_numbers("transitions", transitions.counts, (K + 1, K))
    expect_number("the entropy of chains", transitions.entropy)


@statistics.check_extra.register
def _(unions: TransitionUnions, names):
    _check_groups(unions.groups, names)


@statistics.check_edit.register
def _(edit: GroupsEdit, names):
    _check_groups(edit.groups, names)
    statistics.check_values("changes of the entropy", edit.changes)


def _check_groups(groups, names):
    """Raise unless groups of states that become one, pairs (members, created), are sound."""
    members = [uid for group, _ in groups for uid in group]
    expect_uids("states that become one", members, names.below)
    expect_uids("unions of states", [created for _, created in groups], names.below)


@laps.check_params.register
def _(params: ChainParams, likelihood, n_components):
    K = len(params.states)
    laps.check_params.dispatch(object)(params.coef, likelihood, K)
    expect_numbers("weights of transitions", params.log_rows, (K + 1, K))
    expect_positions("states of the local step", params.states, (K,), n_components)


@laps.check_watcher.register
def _(trial: CoarseningTrial, lap):
    statistics.check_change(trial.removed, trial.created, lap.names)
    members = tuple(uid for group, _ in trial.groups for uid in group)
    expect(members == trial.removed, "other states go than are in the groups")
    statistics.check_values("changes of the entropy", trial.changes)


@laps.check_watcher.register
def _(observer: CoarseningObserver, lap):
    expect_numbers("changes of entropies", observer._change, (len(observer.trials),), finite=False)


@laps.check_watcher.register
def _(trial: DeleteTrial, lap):
    step = trial._local_step
    statistics.check_change(trial.removed, trial.created, lap.names)
    expect(trial.removed == (trial.target, *trial.created), "other states go than are shared out")
    expect(step.likelihood is lap.model.likelihood, "a delete is of another likelihood")
    expect_uids("states that stay", step.uids, lap.names.below)
    laps.check_params(step.params, step.likelihood, lap.n_components)
    expect(len(step.uids) == len(step.params.states), "a delete has parameters of other states")
    statistics.check_rows(trial.rows, trial.created, lap.names)


@laps.check_watcher.register
def _(collector: RunCollector, lap):
    expect(collector._budget.keys() == collector._threshold.keys(), "budgets are of other states")
    for uids, budget in collector._budget.items():
        expect_uids("states to be collected", uids, lap.names.below)
        expect_number("the budget of runs", budget, least=0.0)
        expect_number("the key of runs", collector._threshold[uids], least=0.0, finite=False)
    laps.check_mean_weight(collector)
    expect(not collector._parts and not collector._owners, "runs are of a batch that is over")
    for parts in collector._batches.values():
        for uids, (z, lengths, weight, key) in parts.items():
            expect(uids in collector._budget, "runs are of states that nobody wants")
            laps.check_prepared_rows(z, lap)
            expect_positions("lengths of runs", lengths, (None,), z.shape[0] + 1)
            expect(lengths.sum() == z.shape[0], "runs do not add up to their rows")
            if weight is not None:
                expect_numbers("weights of runs", weight, lengths.shape, least=0.0)
            if key is not None:
                laps.check_keys("keys of runs", key, lengths.shape)
    if collector._pool is not None:
        _check_steps(collector._pool, lap)


def _check_steps(pool, lap):
    """Raise unless a pool of steps, which were drawn from sequences, is sound."""
    expect_type("the pool of steps", pool, StepPool)
    expect_number("the number of steps", pool.n_steps, least=0, most=laps.MOST_ROWS)
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
