"""Checks of a lap under way: trials, findings, samples and proposals."""

from __future__ import annotations

from functools import partial, singledispatch
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ...engine.failures import Attempts, Failures
from ...engine.merge import Merge
from ...engine.trials import AdoptTrial, SplitTrial, UnionTrial
from .expectations import (
    expect,
    expect_count,
    expect_edges,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
)
from .likelihoods import is_ours
from .statistics import Names, check_bag, check_change, check_rows, check_unions

# Every sample has fewer rows.
MOST_ROWS = 2**31


class LapState(NamedTuple):
    """The state of a lap that its trials, observers and collectors must fit.

    Attributes
    ----------
    model : Model
        The model of the slice.
    n_components : int
        Number K of components in the model during the lap.
    names : Names
    params : object
        Parameters of the local steps of the lap.
    """

    model: object
    n_components: int
    names: Names
    params: object


@singledispatch
def check_trial(trial, findings, lap):
    """Raise unless a trial, and its findings, are sound; nothing is known of a user's own."""


@singledispatch
def check_sampling(sampling, lap, uids):
    """Raise unless samples that are being drawn are sound. Each slice registers its own."""


# ---------------------------------------------------------------------- parameters of local steps


@singledispatch
def check_params(params, likelihood, n_components):
    """Raise unless these are parameters of a local step for so many components."""
    # a user's likelihood may have them in single precision
    size = 8 if is_ours(likelihood) else None
    expect_numbers("coefficients", params, (n_components, likelihood.n_statistics), size=size)


# ---------------------------------------------------------------------- trials


@check_trial.register
def _(trial: SplitTrial, findings, lap):
    check_change(trial.removed, trial.created, lap.names)
    expect_count("the number of targets of a split", trial.n_targets, least=1)
    expect(trial.n_targets <= len(trial.removed), "a target of a split does not go")
    expect_numbers(
        "coefficients of a split", trial.coef, (len(trial.created), lap.names.n_statistics)
    )
    same = (trial.removed, trial.created) == (trial.probe.removed, trial.probe.created)
    expect(same and trial.probe.coef is trial.coef, "a split observes something else")
    check_rows(findings, trial.created, lap.names)


@check_trial.register
def _(trial: UnionTrial, findings, lap):
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.probe.removed == trial.removed, "a union observes something else")
    expect_type("whether a union leaves one component", trial.leaves_one, bool)
    check_unions("entropies of a union", findings)


@check_trial.register
def _(trial: AdoptTrial, findings, lap):
    check_change(trial.targets, trial.created, lap.names)
    check_bag("components on trial", trial.initial, lap.names)
    expect(tuple(trial.initial.uids.tolist()) == trial.created, "other components are on trial")
    expect_type("concentrations of components on trial", trial.concentrations or {}, dict)
    for name, value in (trial.concentrations or {}).items():
        expect_type("the name of a concentration", name, str)
        expect_number("a concentration of components on trial", value, least=0.0)


@singledispatch
def check_proposal(proposal):
    """Raise unless a proposal's memories of failures are sound; no more is known of a user's own."""
    expect_type("whether rows have weights", proposal.weighted, bool)
    for memory in vars(proposal).values():
        if isinstance(memory, (Failures, Attempts)):
            expect_number("the change that forgives a failure", memory.change, least=0.0)
            expect_type("a memory of failures", memory._memory, dict)
            _check_names("what was tried", memory._memory)
        if isinstance(memory, Failures):
            expect_count("the patience of a proposal", memory.patience, least=1)
            for failure in memory._memory.values():
                expect(isinstance(failure, tuple) and len(failure) == 2, "a failure is no pair")
                expect_count("how often something failed", failure[0])
                expect_number("the mass of what failed", failure[1])
        if isinstance(memory, Attempts):
            for masses in memory._memory.values():
                _check_numbers("what was involved", masses)


def check_memories_of(*kinds):
    """Let states with proposals of these classes of ours be sound only if all their memories are."""
    for kind in kinds:
        check_proposal.register(kind, partial(check_memories, kind=kind))


def check_memories(proposal, kind):
    """Raise unless a proposal has valid parameters, and memories of the kinds that this class begins with."""
    check_proposal.dispatch(object)(proposal)
    proposal._validate_params()
    fresh = kind()
    fresh.reset()
    for name, like in vars(fresh).items():
        there = name in vars(proposal)
        by_default = type(proposal) is not kind or hasattr(kind, name)
        expect(there or by_default, f"a {proposal.kind} has no {name}")
        if there and name.startswith("_") and like is not None:
            _check_memory(f"{name} of a {proposal.kind}", vars(proposal)[name], like)


check_memories_of(Merge)


def _check_memory(what, value, like):
    """Raise unless a value is of the kind of ``like``: a flag, a counter, a number, or a collection."""
    expect_type(what, value, type(like), *((np.bool_,) if isinstance(like, bool) else ()))
    if isinstance(value, dict):
        _check_numbers(what, value)
    elif isinstance(value, (set, frozenset)):
        _check_names(what, value)
    elif isinstance(value, list):
        for part in value:
            _check_tuple(what, part)
    elif isinstance(value, Integral):
        expect_count(what, value)
    elif isinstance(value, float):
        expect_number(what, value, finite=False)


def _check_names(what, names):
    """Raise unless these are uids, tuples of uids, or words."""
    for name in names:
        parts = name if isinstance(name, tuple) else (name,)
        known = isinstance(name, str) or all(
            isinstance(part, Integral) and part >= 0 for part in parts
        )
        expect(known, f"{what} are not names")


def _check_tuple(what, value):
    """Raise unless this is a finite number, or a tuple of such values."""
    if isinstance(value, tuple):
        for part in value:
            _check_tuple(what, part)
    else:
        expect_number(f"a part of {what}", value)


def _check_numbers(what, values):
    """Raise unless this is a dict of finite numbers by name."""
    expect_type(what, values, dict)
    _check_names(what, values)
    for value in values.values():
        expect_number(f"a number of {what}", value)


# ---------------------------------------------------------------------- samples


def check_keys(what, value, shape):
    """Raise unless these are keys of a weighted sample: numbers from 0 to 2, or infinite."""
    expect_numbers(what, value, shape, least=0.0, finite=False)
    expect(np.all((value <= 2.0) | np.isinf(value)), f"{what} are no keys")


def check_mean_weight(mean_weight):
    """Raise unless the mean weight that samples know of is one."""
    if mean_weight is not None:
        expect_number("the mean weight", mean_weight, least=0.0)


def check_prepared_rows(z, lap):
    """Raise unless these are prepared rows of the model's likelihood, dense or sparse."""
    likelihood = lap.model.likelihood
    _check_rows_of_values("prepared rows", z, likelihood, likelihood.n_features)


def check_pooled_rows(x, likelihood, n_columns):
    """Raise unless these are rows as a user may give them, dense or sparse, with values that are finite."""
    _check_rows_of_values("rows of a pool", x, likelihood, n_columns, kinds="fiub")


def _check_rows_of_values(what, x, likelihood, n_columns, kinds="f"):
    """Raise unless these are rows of finite values of these kinds; NaN stands for what may be missing."""
    if issparse(x):
        expect(x.ndim == 2 and x.shape[1] == n_columns, f"{what} have shape {x.shape}")
        expect_edges("the list of sparse rows", x.indptr, len(x.indices))
        expect_positions("columns of sparse rows", x.indices, (None,), n_columns)
        expect_numbers("sparse rows", x.data, x.indices.shape, kinds=kinds, size=None)
        return
    expect_type(what, x, np.ndarray)
    if x.dtype.kind == "f" and likelihood.has_missing:
        x = np.nan_to_num(x, nan=0.0, posinf=np.inf)
    expect_numbers(what, x, (None, n_columns), kinds=kinds, size=None)
