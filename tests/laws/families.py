"""The registry: each likelihood and allocation, with data it suits and its twin in `tests.reference`.

To test a new likelihood, give it a line in ``FAMILIES``; every law then runs on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import block_diag

from sklearn_bnp.likelihood import (
    OBSERVATIONS,
    AutoregressiveObservation,
    CategoricalObservation,
    ColumnObservation,
    CorrelatedGaussianObservation,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    ObservationModel,
)
from sklearn_bnp.mixture.weights import PitmanYorAllocation
from tests.reference.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from tests.reference.autoregressive import CorrelatedNormalWishart, MatrixNormalWishart
from tests.reference.categories import CodedCategories, DirichletCategories, SideBySide
from tests.reference.families import (
    BetaBernoulli,
    DirichletMultinomial,
    NormalGamma,
    NormalWishart,
)
from tests.reference.known_noise import GammaPoisson, KnownVariance
from tests.reference.missing import ByColumn, SharedPrecision
from tests.reference.overdispersed import BetaNegativeBinomial

from .rows import (
    N_ANSWERS,
    answers,
    bags,
    balls,
    clouds,
    clumps,
    flat_clouds,
    mixed,
    rounded_balls,
    rounded_clouds,
    shells,
    swings,
    switches,
    tallies,
    transformed_tallies,
    with_missing,
)


class Family(NamedTuple):
    """A likelihood to test.

    Attributes
    ----------
    name : str
    observation : ObservationModel
    rows : callable
        ``rows(rng, n, spread=1.0)`` -> (X, labels): n rows in three clusters, nearer to each other for
        a greater spread; about half, a third and a sixth of them.
    twin : callable
        ``twin(likelihood, prior)`` -> twin for prepared rows.
    affine : str
        Which changes of the columns change nothing: "columns", "common" to all, or "" for none.
    shift : bool
        Whether the columns may also be shifted.
    lags : int
        Rows hold a row of a sequence and as many before it, which have the same columns.
    adapts : str
        Field of the prior that empirical Bayes sets; "" if there is none. Where priors come side by
        side, the place of one of them goes before: "2.b".
    """

    name: str
    observation: ObservationModel
    rows: Callable
    twin: Callable
    affine: str = ""
    shift: bool = False
    lags: int = 0
    adapts: str = ""


# ---------------------------------------------------------------------- twins


def log_volume(likelihood, n_features):
    """Log of |dz / dx| of `prepare`, which is affine."""
    corners = likelihood.prepare(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return np.linalg.slogdet(corners[1:] - corners[0])[1]


def cells_of(likelihood):
    """The function from prepared rows to the variances (n, D) of their cells, entry by entry."""
    blur = getattr(likelihood, "blur", None)

    def variances(z):
        out = np.zeros(z.shape)
        for own in () if blur is None else blur.cells:
            for row, x in zip(out, z[:, own.column], strict=True):
                row[own.column] = 0.0 if np.isnan(x) else own.variance[np.sum(own.edges < x)]
        return out

    return variances


def columns_of(blur, n_features):
    """The same function for each column alone."""

    def of_column(d):
        return lambda z: blur(np.where(np.arange(n_features) == d, z, 0.0))[:, d : d + 1]

    return [of_column(d) for d in range(n_features)]


def gaussian(covariance_type, zero_mean, rows, n_features, *, affine, **parameters):
    """A variant of the Gaussian likelihood; its twin reads the prior, and the ridge.

    That the ridge is what reg_covar and resolution promise is a law of its own, in test_resolution.py.
    """
    observation = GaussianObservation(covariance_type, zero_mean=zero_mean, **parameters)

    def twin(likelihood, prior):
        volume, own = log_volume(likelihood, n_features), (*prior, likelihood.ridge)
        blur = cells_of(likelihood)
        if covariance_type == "full":
            return NormalWishart(*own, volume, blur)
        size = 1 if covariance_type == "diag" else n_features
        return NormalGamma(*own, n_features, size, volume, blur)

    name = f"{covariance_type}{'-zero-mean' if zero_mean else ''}"
    return Family(name, observation, rows, twin, affine, not zero_mean, adapts="b")


def bernoulli(name, **parameters):
    observation = OBSERVATIONS["bernoulli"](**parameters)
    return Family(name, observation, switches, lambda likelihood, prior: BetaBernoulli(*prior))


def multinomial(name, adapts="", **parameters):
    observation = OBSERVATIONS["multinomial"](**parameters)
    return Family(
        name, observation, bags, lambda likelihood, prior: DirichletMultinomial(prior.lam),
        adapts=adapts,
    )  # fmt: skip


def poisson(name, adapts="", **parameters):
    observation = OBSERVATIONS["poisson"](**parameters)
    return Family(
        name, observation, tallies, lambda likelihood, prior: GammaPoisson(*prior), adapts=adapts
    )


def negative_binomial(name, adapts="", **parameters):
    observation = OBSERVATIONS["negative_binomial"](**parameters)
    return Family(
        name, observation, clumps, lambda likelihood, prior: BetaNegativeBinomial(*prior),
        adapts=adapts,
    )  # fmt: skip


def fixed_variance(name, rows, *, affine="", adapts="", **parameters):
    def twin(likelihood, prior):
        return KnownVariance(*prior, likelihood.ridge, log_volume(likelihood, 3))

    observation = FixedVarianceGaussianObservation(**parameters)
    return Family(name, observation, rows, twin, affine, bool(affine), adapts=adapts)


def categorical(name, **parameters):
    observation = CategoricalObservation(n_categories=N_ANSWERS.tolist(), **parameters)
    return Family(
        name, observation, answers, lambda likelihood, prior: DirichletCategories(*prior, N_ANSWERS)
    )


def many_categories(name):
    """So many categories that prepared rows are codes; most of them never occur."""
    sizes = (N_ANSWERS + 40).tolist()
    observation = CategoricalObservation(0.5, n_categories=sizes)
    return Family(
        name, observation, answers, lambda likelihood, prior: CodedCategories(*prior, sizes)
    )


def columns(name, adapts, sizes=(4, 3), **parameters):
    """Blocks of three kinds whose columns lie between each other."""
    kind = CodedCategories if np.mean(sizes) > 32 else DirichletCategories
    width = 2 if kind is CodedCategories else sum(sizes)
    observation = ColumnObservation(
        [
            ("size", GaussianObservation(**parameters), [4, 0]),
            ("kind", CategoricalObservation(n_categories=list(sizes)), slice(1, 3)),
            ("tally", "poisson", [3, 5]),
        ]
    )
    size = gaussian(parameters.get("covariance_type", "full"), False, clouds, 2, affine="")

    def twin(likelihood, prior):
        of_size, of_kind, of_tally = prior
        twins = [
            size.twin(likelihood.blocks[0].likelihood, of_size),
            kind(*of_kind, sizes),
            GammaPoisson(*of_tally),
        ]
        return SideBySide(twins, [2, width, 2])

    return Family(name, observation, mixed, twin, adapts=adapts)


def volumes(likelihood, n_features):
    """Log of dz / dx of each column of `prepare`."""
    corners = likelihood.prepare(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return np.log(np.diagonal(corners[1:] - corners[0]))


def incomplete(family, n_features):
    """A family of independent columns, whose rows have missing values; twins are of columns, one by one."""
    observation, spherical = family.observation, "spherical" in family.name

    def twin(likelihood, prior):
        volume = volumes(likelihood, n_features)
        if spherical:
            return SharedPrecision(*prior, likelihood.ridge, volume)
        if isinstance(observation, GaussianObservation):
            m = [None] * n_features if prior.m is None else prior.m[:, np.newaxis]
            each = (
                m,
                prior.b,
                likelihood.ridge,
                volume,
                columns_of(cells_of(likelihood), n_features),
            )
            return ByColumn(
                [
                    NormalGamma(m, prior.kappa, prior.nu, b, r, 1, 1, v, blur)
                    for m, b, r, v, blur in zip(*each, strict=True)
                ]
            )
        if isinstance(observation, FixedVarianceGaussianObservation):
            fields = [np.broadcast_to(v, n_features) for v in (*prior, likelihood.ridge)]
            columns = zip(*fields, volume, strict=True)
            return ByColumn([KnownVariance([m], [s], [v], [r], u) for m, s, v, r, u in columns])
        single = {
            "bernoulli": BetaBernoulli,
            "poisson": GammaPoisson,
            "negative": BetaNegativeBinomial,
        }
        column = single[family.name.partition("-")[0]]
        return ByColumn([column(*([v] for v in own)) for own in zip(*prior, strict=True)])

    return family._replace(name=f"{family.name}-missing", rows=with_missing(family.rows), twin=twin)


class OfLaggedRows(AutoregressiveObservation):
    """For mixtures of rows that are lagged already, whose order says nothing more."""

    lags = 0


def autoregressive(name, order, **parameters):
    def twin(likelihood, prior):
        corners = np.vstack([np.zeros(2 * (order + 1)), np.eye(2, 2 * (order + 1))])
        z = likelihood.prepare(corners)[:, -2:]
        volume = np.linalg.slogdet(z[1:] - z[0])[1]
        coef = np.column_stack([prior.coef, np.zeros(2)])
        gram = block_diag(prior.gram, prior.kappa)
        ridge = likelihood.ridge[-2:]
        return MatrixNormalWishart(coef, gram, prior.nu, prior.b, ridge, volume)

    observation = OfLaggedRows(order, **parameters)
    return Family(name, observation, swings(order), twin, "columns", True, order, adapts="b")


class OfCorrelatedRows(CorrelatedGaussianObservation):
    """For mixtures of rows that come with the row before them."""

    lags = 0


def correlated(name, adapts, **parameters):
    """Rows that never start anew; new starts have laws of their own, in test_new_starts.py."""

    def twin(likelihood, prior):
        corners = np.vstack([np.zeros(4), np.eye(2, 4)])
        z = likelihood.prepare(corners)[:, :2]
        volume = np.linalg.slogdet(z[1:] - z[0])[1]
        return CorrelatedNormalWishart(*prior[:5], likelihood.rows.ridge, volume)

    observation = OfCorrelatedRows(restart_probability=0, **parameters)
    return Family(name, observation, swings(1), twin, "columns", True, 1, adapts)


FAMILIES = [
    gaussian("full", False, clouds, 3, affine="columns"),
    gaussian("full", True, flat_clouds, 3, affine="columns"),
    gaussian("diag", False, clouds, 3, affine="columns"),
    gaussian("diag", True, flat_clouds, 3, affine="columns"),
    gaussian("spherical", False, balls, 3, affine="common"),
    gaussian("spherical", True, shells, 8, affine="common"),
    # a ridge that is felt: the laws must hold with it as without
    gaussian("full", False, clouds, 3, affine="columns", reg_covar=0.01)._replace(
        name="full-ridge"
    ),
    *(
        gaussian(kind, False, rows, 3, affine=affine, resolution="auto")._replace(
            name=f"{kind}-rounded"
        )
        for kind, rows, affine in (
            ("full", rounded_clouds, "columns"),
            ("diag", rounded_clouds, "columns"),
            ("spherical", rounded_balls, "common"),
        )
    ),
    *(
        gaussian(kind, False, transformed_tallies, 3, affine=affine)._replace(name=f"{kind}-cells")
        for kind, affine in (("full", "columns"), ("diag", "columns"), ("spherical", "common"))
    ),
    bernoulli("bernoulli"),
    bernoulli("bernoulli-prior", prior=(np.linspace(0.3, 2.0, 12), 0.7)),
    multinomial("multinomial"),
    autoregressive("autoregressive", 1),
    autoregressive("autoregressive-2-ridge", 2, reg_covar=0.01, coef_precision_prior="auto"),
    correlated("correlated", "phi"),
    correlated(
        "correlated-ridge",
        "",
        autocorrelation=0.6,
        covariance_prior="data",
        mean_precision_prior=0.01,
        reg_covar=0.01,
    ),
    multinomial("multinomial-prior", prior=np.linspace(0.1, 1.5, 12)),
    multinomial("multinomial-auto", adapts="about", prior="auto"),
    poisson("poisson", adapts="b"),
    poisson("poisson-prior", prior=(np.linspace(0.5, 2.0, 6), 0.3)),
    negative_binomial("negative-binomial", adapts="r"),
    negative_binomial("negative-binomial-given", size=np.linspace(0.5, 3.0, 6), prior=(0.7, 0.4)),
    categorical("categorical"),
    categorical("categorical-prior", prior=np.linspace(0.3, 2.0, 8).tolist()),
    many_categories("categorical-many"),
    columns("columns", "2.b"),
    columns("columns-many", "2.b", (50, 20)),
    columns("columns-diag", "0.b", covariance_type="diag"),
    fixed_variance("shared-variance", clouds, affine="columns", adapts="variance"),
    fixed_variance("shared-variance-rounded", rounded_clouds, affine="columns", adapts="variance"),
    fixed_variance(
        "fixed-variance",
        clouds,
        variance=[0.5, 160.0, 0.002],
        mean_prior=[7.0, -250.0, 0.0],
        mean_variance_prior=[4.0, 3e4, 0.02],
    ),
]
_INCOMPLETE = {
    "diag-rounded": 3, "diag-cells": 3, "diag-zero-mean": 3, "spherical": 3, "spherical-zero-mean": 8,
    "bernoulli-prior": 12, "poisson": 6, "negative-binomial": 6, "shared-variance": 3, "fixed-variance": 3,
}  # fmt: skip
FAMILIES += [
    incomplete(family, _INCOMPLETE[family.name])
    for family in FAMILIES
    if family.name in _INCOMPLETE
]


# The others differ from one of these by parameters, by rows or by formulas that laws of densities and of
# statistics check: long laws run on them if slow tests do.
LEADING = {"full", "diag-rounded", "bernoulli", "autoregressive", "columns", "spherical-missing"}
LEADING_FAMILIES = [
    pytest.param(f, marks=() if f.name in LEADING else (pytest.mark.slow,), id=f.name)
    for f in FAMILIES
]


# ---------------------------------------------------------------------- allocations


class Allocation(NamedTuple):
    """Prior of the weights to test: parameters of the estimator, and ``twin(K)``."""

    name: str
    parameters: dict
    twin: Callable


def _parameters(allocation, concentration=None):
    return {"allocation": allocation, "weight_concentration_prior": concentration}


ALLOCATIONS = [
    Allocation("dp", _parameters("dp"), lambda K: DirichletProcess(1.0)),
    Allocation("dp-5", _parameters("dp", 5.0), lambda K: DirichletProcess(5.0)),
    Allocation("dirichlet", _parameters("dirichlet"), lambda K: FiniteDirichlet(1.0 / K, K)),
    Allocation("dirichlet-2", _parameters("dirichlet", 2.0), lambda K: FiniteDirichlet(2.0, K)),
    Allocation(
        "pitman-yor-.6", _parameters(PitmanYorAllocation(0.5, 0.6)), lambda K: PitmanYor(0.5, 0.6)
    ),
    Allocation("pitman-yor", _parameters("pitman-yor"), lambda K: PitmanYor(1.0, None)),
]
# Those of weights without end, and those over the components there are.
PROCESSES, FINITE = [*ALLOCATIONS[:2], *ALLOCATIONS[4:]], ALLOCATIONS[2:4]
