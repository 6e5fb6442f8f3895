"""Checks of the attributes of a fitted `HDPHMMVB`; see `estimator.soundness`."""

from __future__ import annotations

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
    MOST_ROWS,
    check_keys,
    check_mean_weight,
    check_params,
    check_pooled_rows,
    check_prepared_rows,
    check_sampling,
    check_trial,
)
from ..estimator.soundness.statistics import (
    check_change,
    check_rows,
    check_values,
)
from .batch import SequenceBatch
from .birth import StateBirth
from .delete import StateDelete, StateDeleteTrial
from .local import ChainParams
from .merge import CoarseningTrial, StateMerge
from .model import SequenceModel
from .oversplit import StateOversplit
from .restart import RestartTrial, StateRestart
from .sampled_steps import Steps
from .sampling import UNKNOWN, Runs, RunSampling
from .transitions import Transitions, TransitionUnions
from .unions import GroupsEdit

SEQUENCES = Kind(SequenceModel, (NoExtra, Transitions), (TransitionUnions,))

check_own_model.register(SequenceModel, check_sticks)
laps.check_memories_of(StateBirth, StateDelete, StateMerge, StateOversplit, StateRestart)


def check_chains(estimator):
    """Raise unless a fitted `HDPHMMVB` is sound."""
    check_fitted(estimator, SEQUENCES)
    K = estimator.n_components_
    check_params(estimator._coef, estimator._model.likelihood, K)
    expect_numbers("startprob_", estimator.startprob_, (K,), least=0.0)
    expect_numbers("transmat_", estimator.transmat_, (K, K), least=0.0)
    expect_numbers("weights_", estimator.weights_, (K,), least=0.0)
    for name in ("transition_concentration_", "start_concentration_", "stickiness_"):
        expect_number(name, getattr(estimator, name), least=0.0)
    if "labels_" in estimator._published:
        labels = estimator.labels_
        for states in labels if isinstance(labels, list) else [labels]:
            expect_positions("labels_", states, (None,), K)


@check_pooled.register
def _(batch: SequenceBatch, likelihood, n_columns):
    check_pooled_rows(batch.x, likelihood, n_columns)
    expect_edges("where sequences of a pool begin", batch.indptr, batch.x.shape[0])
    expect_count("the lags of a pool", batch.lags)
    expect(batch.resp is None, "a pool holds responsibilities")
    if batch.weight is not None:
        expect_numbers("weights of a pool", batch.weight, (len(batch.indptr) - 1,), least=0.0)


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


@check_trial.register
def _(trial: CoarseningTrial, findings, lap):
    check_change(trial.removed, trial.created, lap.names)
    members = tuple(uid for group, _ in trial.groups for uid in group)
    expect(members == trial.removed, "other states go than are in the groups")
    expect(trial.probe.groups == trial.groups, "a merge observes something else")
    check_values("changes of the entropy", findings)


@check_trial.register
def _(trial: StateDeleteTrial, findings, lap):
    step = trial.probe.step
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.removed == (trial.target, *trial.created), "other states go than are shared out")
    expect(step.likelihood is lap.model.likelihood, "a delete is of another likelihood")
    expect_uids("states that stay", step.uids, lap.names.below)
    expect(tuple(step.uids.tolist()) == trial.created, "a delete observes other states")
    check_params(step.params, step.likelihood, lap.n_components)
    expect(len(step.uids) == len(step.params.states), "a delete has parameters of other states")
    check_rows(findings, trial.created, lap.names)


@check_trial.register
def _(trial: RestartTrial, findings, lap):
    statistics.check_bag("what a restart adds", trial.initial, lap.names)
    expect_uids("states of a restart", trial.targets, lap.names.below)


@check_sampling.register
def _(sampling: RunSampling, lap, uids):
    probe = sampling.probe
    expect(probe.budget.keys() == probe.threshold.keys(), "budgets are of other states")
    for wanted, budget in probe.budget.items():
        expect_uids("states to be sampled", wanted, lap.names.below)
        expect(set(wanted) <= set(uids.tolist()), "states are sampled that are not there")
        expect_number("the budget of runs", budget, least=0.0)
    check_mean_weight(probe.mean_weight)
    expect_number("the number of steps", probe.n_steps, least=0, most=MOST_ROWS)
    expect_number("the priority of steps", probe.step_threshold, least=0.0)
    for threshold in (probe.threshold, *(d.threshold for d in sampling._batches.values())):
        expect(threshold.keys() == probe.budget.keys(), "keys are of other states")
        for key in threshold.values():
            expect_number("the key of runs", key, least=0.0, finite=False)
    own = uids[lap.params.states].tolist()  # the states that rows are in during this lap
    for draw in sampling._batches.values():
        expect(draw.runs.keys() <= probe.budget.keys(), "runs are of states that nobody wants")
        for runs in (runs for some in draw.runs.values() for runs in some):
            _check_runs(runs, lap)
        _check_steps(draw.steps, lap)
        expect(draw.steps.uids.tolist() in ([], own), "steps are between other states")


def _check_runs(runs, lap):
    """Raise unless `Runs` are sound."""
    expect_type("runs", runs, Runs)
    z, lengths, neighbours, weight, key = runs
    check_prepared_rows(z, lap)
    expect_positions("lengths of runs", lengths, (None,), z.shape[0] + 1)
    expect(lengths.sum() == z.shape[0], "runs do not add up to their rows")
    m = len(lengths)
    expect_positions("neighbours of runs", neighbours, (m, 2), lap.names.below, least=UNKNOWN)
    if weight is not None:
        expect_numbers("weights of runs", weight, lengths.shape, least=0.0)
    if key is not None:
        check_keys("keys of runs", key, lengths.shape)


def _check_steps(steps, lap):
    """Raise unless `Steps` that were drawn from sequences are sound."""
    expect_type("steps", steps, Steps)
    expect_number("the priority of steps", steps.threshold, least=0.0)
    expect_uids("states of steps", steps.uids, lap.names.below)
    K = len(steps.uids)
    for part in steps.parts:
        m = len(part.priority)
        expect_numbers("filtered probabilities of steps", part.alpha, (m, K), size=4, least=0.0)
        expect_numbers("responsibilities of steps", part.resp, (m, 2, K), size=4, least=0.0)
        expect_numbers("where sequences begin", part.begins, (m,), kinds="b", size=1)
        for name in ("weight", "size", "priority"):
            expect_numbers(f"the {name} of steps", getattr(part, name), (m,), least=0.0)
        expect_numbers("transitions of steps", part.trans, (K, K), least=0.0)
