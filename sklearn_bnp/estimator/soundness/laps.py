"""Checks of a lap under way: trials, observers, collectors of samples, and proposals."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ...engine.failures import Failures
from ...engine.proposal import AdoptTrial, SplitTrial, UnionObserver, UnionTrial
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
    """

    model: object
    n_components: int
    names: Names


@singledispatch
def check_watcher(watcher, lap):
    """Raise unless a trial, an observer or a collector is sound. A user's own classes are not checked."""


# ---------------------------------------------------------------------- parameters of local steps


@singledispatch
def check_params(params, likelihood, n_components):
    """Raise unless these are parameters of a local step for so many components."""
    size = (
        8 if is_ours(likelihood) else None
    )  # a user's likelihood may have them in single precision
    expect_numbers("coefficients", params, (n_components, likelihood.n_statistics), size=size)


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
def _(observer: UnionObserver, lap):
    expect_numbers("entropies of unions", observer._entropy, (len(observer.trials),))
    if observer._members is None:
        return
    expect_positions("members of unions", observer._members, (None,), lap.n_components)
    expect_edges("the list of unions", observer._indptr, len(observer._members))
    expect(len(observer._indptr) == len(observer.trials) + 1, "there are more unions than trials")


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


# ---------------------------------------------------------------------- samples


def check_keys(what, value, shape):
    """Raise unless these are keys of a weighted sample: numbers from 0 to 2, or infinite."""
    expect_numbers(what, value, shape, least=0.0, finite=False)
    expect(np.all((value <= 2.0) | np.isinf(value)), f"{what} are no keys")


def check_mean_weight(collector):
    """Raise unless the mean weight of rows that a collector knows, if any, is a number."""
    if collector._mean_weight is not None:
        expect_number("the mean weight", collector._mean_weight, least=0.0)


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
    known = np.nan_to_num(z, nan=0.0, posinf=np.inf) if lap.model.likelihood.holes else z
    expect_numbers("prepared rows", known, (None, width), size=None)
