"""Checks of a learner: kernels trust its model and its statistics."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ...engine.memo import Memo
from ...engine.state import LearnerState, PoolSize, ScheduleState, StreamState
from ...engine.trial_records import TrialRecord
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_type,
)
from .laps import LapState, check_params, check_proposal, check_sampling, check_trial
from .likelihoods import check_likelihood
from .statistics import Names, check_bag, check_memo


class Kind(NamedTuple):
    """The classes that a learner of one slice is made of.

    Attributes
    ----------
    model : type
        Class of the model.
    extras : tuple of type
        Classes that the ``extra`` of statistics may have.
    trial_extras : tuple of type
        Further classes that it may have in the statistics that a trial collects.
    """

    model: type
    extras: tuple
    trial_extras: tuple = ()


def check_learner(state, kind, n_columns):
    """Raise unless a `LearnerState` of this `Kind`, on data of ``n_columns``, is sound."""
    expect_type("the state of the fit", state, LearnerState)
    expect_count("the next name", state.next_uid)
    expect_count("the seed", state.seed)
    below, likelihood = state.next_uid, state.model.likelihood
    check_model(state.model, kind.model, below, n_columns)
    names = Names(likelihood.n_statistics, below, kind.extras, kind.trial_extras)
    check_bag("totals", state.totals, names)
    check_params(state.coef, likelihood, len(state.totals.uids))
    expect_type("the memory of batches", state.memo, Memo)
    check_memo(state.memo, names)
    expect_type("initial statistics", state.initial, tuple)
    for rows in state.initial:
        check_bag("components on trial", rows, names)
        state.totals.positions(rows.uids)
    expect_number("the mass seen", state.mass_seen, least=0.0)
    _check_stream(state, n_columns)
    for name in ("n_steps", "n_batches", "n_passes"):
        expect_count(name, getattr(state, name))
    expect_type("batches seen in this lap", state.seen, frozenset)
    expect_number("seconds", state.seconds)
    expect_type("the laps", state.history, tuple)
    check_history(list(state.history))
    expect_count("the lap of the proposals' last chance", state.retried)
    expect_type("whether a fit is finishing", state.finishing, bool)
    expect(state.retried <= state.n_laps, "the proposals' last chance is yet to come")
    if state.before is not None:
        totals, memo, model, lower_bound = state.before
        check_bag("totals before the lap", totals, names)
        check_memo(memo, names)
        check_model(model, kind.model, below, n_columns)
        expect_number("the objective before the lap", lower_bound)
    lap = LapState(state.model, len(state.totals.uids), names, state.coef)
    _check_schedule(state.schedule, lap, state.totals.uids)


def check_model(model, model_type, below, n_columns):
    """Raise unless a model of this type is sound."""
    expect_type("the model", model, model_type)
    check_likelihood(model.likelihood, model.prior, n_columns)
    if isinstance(model.allocation, BaseEstimator):
        model.allocation._validate_params()
    else:
        for name, value in vars(model.allocation).items():
            if value is not None:
                expect_number(f"the allocation's {name}", value, least=0.0)
    check_own_model(model, below)


def _check_stream(state, n_columns):
    expect(state.evidence is None, "the evidence of components was kept")
    stream = state.stream
    expect_type("the state of the stream", stream, StreamState)
    expect_type("the pool", stream.pool, tuple)
    for batch in stream.pool:
        check_pooled(batch, state.model.likelihood, n_columns)
        expect(batch.batch_id in state.memo, "a batch of the pool is not in memory")
    if stream.size is not None:
        found = PoolSize.of(stream.pool, state.model.likelihood.n_features)
        expect(np.allclose(stream.size, found), "the size of the pool is wrong")
    for name in ("came", "learned", "news"):
        expect_number(f"the mass that {name}", getattr(stream, name), least=0.0)
    expect_count("batches since the last laps", stream.n_unlearned)


@singledispatch
def check_pooled(batch, likelihood, n_columns):
    """Raise unless a batch of a pool is sound; only slices whose models have pools register one."""
    raise ValueError(f"a pool holds a {type(batch).__name__}")


@singledispatch
def check_own_model(model, below):
    """Raise unless the fields that only this class of models has are sound."""


def check_history(history):
    """Raise unless this is a list of records of laps, and all their numbers are finite."""
    expect_type("the history", history, list)
    for lap in history:
        for name, value in lap._asdict().items():
            if not isinstance(value, (dict, tuple)):
                expect_number(f"{name} of a lap", value)
        for record in getattr(lap, "trials", ()):
            _check_record(record)


def _check_record(record):
    """Raise unless this is the record of a trial, with numbers that are finite or None."""
    expect_type("the record of a trial", record, TrialRecord)
    expect_type("the kind of a trial", record.kind, str)
    expect_type("the verdict on a trial", record.verdict, str)
    for name in ("gain", "estimate"):
        value = getattr(record, name)
        if value is not None:
            expect_number(f"the {name} of a trial", value)
    for names in (record.components, record.created):
        expect_type("the components of a trial", names, tuple)
        for uid in names:
            expect_count("a component of a trial", uid)


def _check_schedule(schedule, lap, uids):
    expect_type("the schedule", schedule, ScheduleState)
    for what in ("proposals", "trials", "findings"):
        expect_type(what, getattr(schedule, what), tuple)
    for proposal in schedule.proposals:
        check_proposal(proposal)
    expect(len(schedule.trials) == len(schedule.findings), "there are other findings than trials")
    for trial, findings in zip(schedule.trials, schedule.findings, strict=True):
        expect_type("what a trial has found", findings, dict)
        check_trial(trial, findings, lap)
        if trial.estimate is not None:
            expect_number("the gain that is expected of a trial", trial.estimate)
    expect_count("numbers of samples", schedule.sample_values)
    expect_count("numbers of a row", schedule.values_per_row, least=1)
    if schedule.mean_weight is not None:
        expect_number("the mean weight", schedule.mean_weight, least=0.0)
    if schedule.sampling is not None:
        expect(type(schedule.sampling) is lap.model.sampling, "samples are those of another model")
        check_sampling(schedule.sampling, lap, uids)
