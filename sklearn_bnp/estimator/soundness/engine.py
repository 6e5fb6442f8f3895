"""Checks of a learner: kernels trust its model and its statistics."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from ...engine.learner import Learner
from ...engine.memo import Memo
from ...engine.scheduler import Scheduler
from ...engine.statistics import UidCounter
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_type,
)
from .laps import LapState, check_params, check_proposal, check_watcher
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


def check_learner(learner, kind, n_columns):
    """Raise unless a `Learner` of this `Kind`, on data of ``n_columns``, is sound."""
    expect_type("the learner", learner, Learner)
    expect_type("the counter of names", learner.new_uids, UidCounter)
    expect_count("the next name", learner.new_uids._next)
    expect_type("the random generator", learner.rng, np.random.RandomState)
    below, likelihood = learner.new_uids._next, learner.model.likelihood
    check_model(learner.model, kind.model, below, n_columns)
    names = Names(likelihood.n_statistics, below, kind.extras, kind.trial_extras)
    check_bag("totals", learner.totals, names)
    check_params(learner.coef, likelihood, len(learner.totals.uids))
    expect_type("the memory of batches", learner.memo, Memo)
    check_memo(learner.memo, names)
    for seeds in learner.seeds:
        check_bag("adopted components", seeds, names)
        learner.totals.positions(seeds.uids)
    expect_number("the mass seen", learner.mass_seen, least=0.0)
    expect_count("the number of steps", learner.n_steps)
    expect_type("batches seen in this lap", learner._seen, set)
    expect_number("seconds", learner._seconds)
    check_history(learner.history)
    if learner._before is not None:
        totals, memo, model, lower_bound = learner._before
        check_bag("totals before the lap", totals, names)
        check_memo(memo, names)
        check_model(model, kind.model, below, n_columns)
        expect_number("the objective before the lap", lower_bound)
    _check_scheduler(learner, LapState(learner.model, len(learner.totals.uids), names))


def check_model(model, model_type, below, n_columns):
    """Raise unless a model of this type is sound."""
    expect_type("the model", model, model_type)
    check_likelihood(model.likelihood, model.prior, n_columns)
    for name, value in vars(model.allocation).items():
        if value is not None:
            expect_number(f"the allocation's {name}", value, least=0.0)
    check_own_model(model, below)


@singledispatch
def check_own_model(model, below):
    """Raise unless the fields that only this class of models has are sound."""


def check_history(history):
    """Raise unless this is a list of records of laps, and all their numbers are finite."""
    expect_type("the history", history, list)
    for lap in history:
        for name, value in lap._asdict().items():
            if not isinstance(value, dict):
                expect_number(f"{name} of a lap", value)


def _check_scheduler(learner, lap):
    scheduler = learner.scheduler
    expect_type("the scheduler", scheduler, Scheduler)
    expect(scheduler.new_uids is learner.new_uids, "the scheduler has another counter of names")
    expect(scheduler.rng is learner.rng, "the scheduler has another random generator")
    expect_number("max_components", scheduler.max_components, least=1, finite=False)
    expect_type("proposals", scheduler.proposals, list)
    for proposal in scheduler.proposals:
        check_proposal(proposal)
    for trial in scheduler.trials:
        check_watcher(trial, lap)
    if scheduler.collector is not None:
        expect(scheduler.collector._rng is learner.rng, "samples are drawn with another generator")
        check_watcher(scheduler.collector, lap)
    if learner.lap_under_way:
        for observer in learner._observers:
            check_watcher(observer, lap)
