"""Checks of a lap under way: trials, findings, samples and proposals."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ...engine.failures import Attempts, Failures
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
from .statistics import Names, check_bag, check_change, check_rows, check_values

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
    size = (
        8 if is_ours(likelihood) else None
    )  # a user's likelihood may have them in single precision
    expect_numbers("coefficients", params, (n_components, likelihood.n_statistics), size=size)


# ---------------------------------------------------------------------- trials


@check_trial.register
def _(trial: SplitTrial, findings, lap):
    check_change(trial.removed, trial.created, lap.names)
    expect(trial.target in trial.removed, "the target of a split does not go")
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
    check_values("entropies of a union", findings)


@check_trial.register
def _(trial: AdoptTrial, findings, lap):
    check_change(trial.targets, trial.created, lap.names)
    check_bag("components on trial", trial.initial, lap.names)
    expect(tuple(trial.initial.uids.tolist()) == trial.created, "other components are on trial")


@singledispatch
def check_proposal(proposal):
    """Raise unless a proposal's memory of failures holds numbers."""
    for memory in vars(proposal).values():
        if isinstance(memory, Failures):
            expect_number("the change that forgives a failure", memory.change, least=0.0)
            expect_count("the patience of a proposal", memory.patience)
            for times, mass in memory._memory.values():
                expect_count("how often something failed", times)
                expect_number("the mass of what failed", mass)
        if isinstance(memory, Attempts):
            expect_number("the change that forgives an attempt", memory.change, least=0.0)
            for masses in memory._memory.values():
                for mass in masses.values():
                    expect_number("the mass of what was involved", mass)


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
    width = lap.model.likelihood.n_features
    if issparse(z):
        expect(z.ndim == 2 and z.shape[1] == width, f"prepared rows have shape {z.shape}")
        expect_edges("the list of sparse rows", z.indptr, len(z.indices))
        expect_positions("columns of sparse rows", z.indices, (None,), width)
        expect_numbers("sparse rows", z.data, z.indices.shape, size=None)
        return
    expect_type("prepared rows", z, np.ndarray)
    known = np.nan_to_num(z, nan=0.0, posinf=np.inf) if lap.model.likelihood.has_missing else z
    expect_numbers("prepared rows", known, (None, width), size=None)
