"""What must hold of a learner, whose model and statistics kernels trust."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ...engine.learner import Learner
from ...engine.memo import Memo
from ...engine.scheduler import Scheduler
from ...engine.statistics import UidCounter
from ...hdp.sticks import Sticks
from ...topics.model import TopicParams
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_type,
    expect_uids,
)
from .laps import LapState, check_params, check_proposal, check_watcher
from .likelihoods import check_likelihood
from .statistics import ANY_DOCS, Names, check_bag, check_memo


def check_learner(learner, model_type, groups, n_columns):
    """Raise unless a `Learner` of a kind of model, on data of ``n_columns``, is sound.

    ``groups`` says what statistics keep of rows that belong together, see `ANY_DOCS`.
    """
    expect_type("the learner", learner, Learner)
    expect_type("the counter of names", learner.new_uids, UidCounter)
    expect_count("the next name", learner.new_uids._next)
    expect_type("the random generator", learner.rng, np.random.RandomState)
    below, likelihood = learner.new_uids._next, learner.model.likelihood
    check_model(learner.model, model_type, below, n_columns)
    names = Names(likelihood.n_statistics, below, ANY_DOCS[groups])
    check_bag("totals", learner.totals, names)
    check_params(learner.coef, likelihood, len(learner.totals.uids))
    expect_type("the memory of batches", learner.memo, Memo)
    check_memo(learner.memo, names)
    if isinstance(learner.coef, TopicParams):
        _check_heirs(learner)
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
        check_model(model, model_type, below, n_columns)
        expect_number("the objective before the lap", lower_bound)
    _check_scheduler(learner, LapState(learner.model, len(learner.totals.uids), names))


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
    if "sticks" not in model_type._fields:
        return
    expect_uids("names of sticks", model.uids, below)
    if model.sticks is not None:
        expect_type("sticks", model.sticks, Sticks)
        K = len(model.uids)
        expect_numbers("means of sticks", model.sticks.rho, (K,), least=0.0, most=1.0)
        expect_numbers("counts of sticks", model.sticks.omega, (K,), least=0.0, finite=False)
    for gone, heirs in (model.retired or {}).items():
        expect_uids("components that retire", (gone,), below)
        expect_uids("components that take their place", heirs, below)


def _check_heirs(learner):
    """Raise unless topics that retire are those of the model."""
    totals, retired = learner.totals, learner.model.retired or {}
    wanted = [(*totals.positions([gone]), totals.positions(new)) for gone, new in retired.items()]
    same = [
        gone == column and np.array_equal(new, columns)
        for (gone, new), (column, columns) in zip(wanted, learner.coef.heirs, strict=True)
    ]
    expect(all(same), "other topics retire than in the model")


def check_history(history):
    """Raise unless these are records of laps, all of whose numbers are such."""
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
