"""The registry: each likelihood and allocation, with data it suits and its twin in `tests.reference`.

To test a new likelihood, give it a line in ``FAMILIES``; every law then runs on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from sklearn_bnp.observation import (
    OBSERVATIONS,
    AutoregressiveObservation,
    CategoricalObservation,
    ColumnObservation,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    ObservationModel,
)
from tests.reference.allocations import DirichletProcess, FiniteDirichlet
from tests.reference.autoregressive import MatrixNormalWishart
from tests.reference.categories import DirichletCategories, SideBySide
from tests.reference.families import (
    BetaBernoulli,
    DirichletMultinomial,
    NormalGamma,
    NormalWishart,
)
from tests.reference.holes import ByColumn, SharedPrecision
from tests.reference.known_noise import GammaPoisson, KnownVariance


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


# ---------------------------------------------------------------------- data

_SHARES = (0.5, 0.33, 0.17)


def labels_of(rng, n):
    """Labels with fixed shares, in random order; each label appears."""
    edges = np.round(np.cumsum((0.0, *_SHARES)) * n).astype(int)
    return rng.permutation(np.repeat(np.arange(3), np.diff(edges)))


def clouds(rng, n, spread=1.0):
    """Three tilted clouds; columns of different scales, far from the origin."""
    labels = labels_of(rng, n)
    centers = np.array([[3.0, 0.0, 0.0], [-2.0, 3.0, 0.0], [-2.0, -3.0, 1.0]])
    tilt = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, -0.3], [0.0, 0.0, 0.9]])
    x = centers[labels] + 0.7 * spread * rng.standard_normal((n, 3)) @ tilt
    return x * [1.0, 20.0, 0.05] + [7.0, -300.0, 0.2], labels


def balls(rng, n, spread=1.0):
    """Three round clouds of different sizes."""
    labels = labels_of(rng, n)
    centers = np.array([[3.0, 0.0, 0.0], [-2.0, 3.0, 0.0], [-2.0, -3.0, 1.0]])
    size = np.array([0.8, 0.5, 1.0])[labels, np.newaxis]
    return centers[labels] + spread * size * rng.standard_normal((n, 3)) + 5.0, labels


def rounded_clouds(rng, n, spread=1.0):
    """Clouds recorded to a step; the second column is recorded as it is."""
    x, labels = clouds(rng, n, spread)
    step = np.array([0.5, 1e-9, 0.025])
    return np.round(x / step) * step, labels


def rounded_balls(rng, n, spread=1.0):
    """Balls recorded to a step in one column."""
    x, labels = balls(rng, n, spread)
    return np.column_stack([x[:, :2], np.round(2.0 * x[:, 2]) / 2.0]), labels


def flat_clouds(rng, n, spread=1.0):
    """Three clouds about the origin, each wide in a direction of its own."""
    labels = labels_of(rng, n)
    sizes = np.array([[3.0, 0.3, 0.3], [0.3, 3.0, 0.3], [0.3, 0.3, 3.0]]) ** (1.0 / spread)
    return sizes[labels] * rng.standard_normal((n, 3)), labels


def shells(rng, n, spread=1.0):
    """Three round clouds about the origin, in many columns, that differ in size alone."""
    labels = labels_of(rng, n)
    sizes = np.array([1.0, 6.0, 30.0]) ** (1.0 / spread)
    return sizes[labels, np.newaxis] * rng.standard_normal((n, 8)), labels


def switches(rng, n, spread=1.0):
    """Three patterns of twelve binary columns."""
    labels = labels_of(rng, n)
    on = np.kron(np.eye(3), np.ones(4)).astype(bool)[labels]
    p = np.where(on, 1.0 - 0.1 * spread, 0.1 * spread)
    return (rng.random((n, 12)) < p).astype(float), labels


def bags(rng, n, spread=1.0):
    """20 to 60 tokens of twelve types, a third of which each cluster prefers; one type is rare."""
    labels = labels_of(rng, n)
    usual = np.append(np.full(11, 1.0), 0.01)
    phi = 0.15 * spread * usual / usual.sum() + (1.0 - 0.15 * spread) * np.kron(
        np.eye(3), np.array([0.4, 0.3, 0.2, 0.1])
    )
    return rng.multinomial(rng.integers(20, 61, size=n), phi[labels]).astype(float), labels


def tallies(rng, n, spread=1.0):
    """Three patterns of six columns of counts, of which some are seldom counted."""
    labels = labels_of(rng, n)
    rates = np.array([0.5, 4.0] * 3) * (1.0 + 5.0 / spread * np.kron(np.eye(3), np.ones(2)))
    return rng.poisson(rates[labels]).astype(float), labels


# Categories of the columns of `answers`.
N_ANSWERS = np.array([2, 3, 4, 2, 3, 4, 3, 2])


def answers(rng, n, spread=1.0):
    """Three patterns of eight columns of categories; each category occurs."""
    labels = labels_of(rng, n)
    x = np.empty((n, len(N_ANSWERS)))
    for d, size in enumerate(N_ANSWERS):
        usual = (labels * (1 + d % 2) + d) % size
        x[:, d] = np.where(rng.random(n) < 0.15 * spread, rng.integers(size, size=n), usual)
        x[rng.permutation(n)[:size], d] = np.arange(size)
    return x, labels


def mixed(rng, n, spread=1.0):
    """Clouds, answers and tallies of the same three clusters, one column beside another."""
    labels = labels_of(rng, n)
    x = np.empty((n, 6))
    for rows, to, of in (
        (clouds, [0, 4], [0, 1]),
        (answers, [1, 2], [2, 1]),
        (tallies, [3, 5], [0, 3]),
    ):
        found, own = rows(rng, 8 * n, spread)
        for k in range(3):  # shares are fixed: there are more than enough of each
            x[np.ix_(labels == k, to)] = found[own == k][: np.sum(labels == k)][:, of]
    for d, size in ((1, 4), (2, 3)):
        x[rng.permutation(n)[:size], d] = np.arange(size)
    return x, labels


def swings(order):
    """Lagged rows of three regressions: a turn, a pull to a point, and a drift with little noise."""
    turn = np.array([[0.6, 0.7], [-0.7, 0.6]])
    pull, drift = np.diag([0.2, -0.5]), np.eye(2)
    intercepts = np.array([[0.0, 1.0], [4.0, -2.0], [-2.0, -1.5]])

    def rows(rng, n, spread=1.0):
        labels = labels_of(rng, n)
        past = rng.normal(1.0, 2.0, size=(n, order, 2))
        now = np.einsum("nij,nj->ni", np.stack([turn, pull, drift])[labels], past[:, 0])
        now += 0.3 * (past[:, -1] - past[:, 0]) + intercepts[labels]
        noise = np.array([0.4, 0.3, 0.2])[labels, np.newaxis] * rng.standard_normal((n, 2))
        now += spread * noise @ np.array([[1.0, 0.5], [0.0, 0.8]])
        sequence = np.concatenate([now[:, np.newaxis], past], axis=1) * [1.0, 20.0] + [7.0, -300.0]
        return sequence.reshape(n, -1), labels

    return rows


def with_holes(rows):
    """The same rows, of which 15 % of the entries are missing, and one row altogether.

    Three rows show each column at the least.
    """

    def some(rng, n, spread=1.0):
        x, labels = rows(rng, n, spread)
        hole = rng.random(x.shape) < 0.15
        hole[:, np.sum(~hole, axis=0) < 3] = False
        x[hole] = np.nan
        if n > 20:
            x[17] = np.nan
        return x, labels

    return some


# ---------------------------------------------------------------------- twins


def log_volume(likelihood, n_features):
    """Log of |dz / dx| of `prepare`, which is affine."""
    corners = likelihood.prepare(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return np.linalg.slogdet(corners[1:] - corners[0])[1]


def gaussian(covariance_type, zero_mean, rows, n_features, *, affine, **parameters):
    """A variant of the Gaussian likelihood; its twin reads the prior, and the ridge.

    That the ridge is what reg_covar and resolution promise is a law of its own, in test_resolution.py.
    """
    observation = GaussianObservation(covariance_type, zero_mean=zero_mean, **parameters)

    def twin(likelihood, prior):
        volume, ridge = log_volume(likelihood, n_features), likelihood.ridge
        if covariance_type == "full":
            return NormalWishart(prior.m, prior.kappa, prior.nu, prior.b, ridge, volume)
        size = 1 if covariance_type == "diag" else n_features
        return NormalGamma(prior.m, prior.kappa, prior.nu, prior.b, ridge, n_features, size, volume)

    name = f"{covariance_type}{'-zero-mean' if zero_mean else ''}"
    return Family(name, observation, rows, twin, affine, not zero_mean, adapts="b")


def bernoulli(name, **parameters):
    observation = OBSERVATIONS["bernoulli"](**parameters)
    return Family(name, observation, switches, lambda likelihood, prior: BetaBernoulli(*prior))


def multinomial(name, **parameters):
    observation = OBSERVATIONS["multinomial"](**parameters)
    return Family(
        name, observation, bags, lambda likelihood, prior: DirichletMultinomial(prior.lam)
    )


def poisson(name, adapts="", **parameters):
    observation = OBSERVATIONS["poisson"](**parameters)
    return Family(
        name, observation, tallies, lambda likelihood, prior: GammaPoisson(*prior), adapts=adapts
    )


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


def columns(name, adapts, **parameters):
    """Blocks of three kinds whose columns lie between each other."""
    observation = ColumnObservation(
        [
            ("size", GaussianObservation(**parameters), [4, 0]),
            ("kind", CategoricalObservation(n_categories=[4, 3]), slice(1, 3)),
            ("tally", "poisson", [3, 5]),
        ]
    )
    size = gaussian(parameters.get("covariance_type", "full"), False, clouds, 2, affine="")

    def twin(likelihood, prior):
        of_size, of_kind, of_tally = prior
        twins = [
            size.twin(likelihood.blocks[0].likelihood, of_size),
            DirichletCategories(*of_kind, [4, 3]),
            GammaPoisson(*of_tally),
        ]
        return SideBySide(twins, [2, 7, 2])

    return Family(name, observation, mixed, twin, adapts=adapts)


def volumes(likelihood, n_features):
    """Log of dz / dx of each column of `prepare`."""
    corners = likelihood.prepare(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return np.log(np.diagonal(corners[1:] - corners[0]))


def holes(family, n_features):
    """A family of independent columns, whose rows have holes; twins are of columns, one by one."""
    observation, spherical = family.observation, "spherical" in family.name

    def twin(likelihood, prior):
        volume = volumes(likelihood, n_features)
        if spherical:
            return SharedPrecision(*prior, likelihood.ridge, volume)
        if isinstance(observation, GaussianObservation):
            m = [None] * n_features if prior.m is None else prior.m[:, np.newaxis]
            columns = zip(m, prior.b, likelihood.ridge, volume, strict=True)
            return ByColumn(
                [NormalGamma(m, prior.kappa, prior.nu, b, r, 1, 1, v) for m, b, r, v in columns]
            )
        if isinstance(observation, FixedVarianceGaussianObservation):
            fields = [np.broadcast_to(v, n_features) for v in (*prior, likelihood.ridge)]
            columns = zip(*fields, volume, strict=True)
            return ByColumn([KnownVariance([m], [s], [v], [r], u) for m, s, v, r, u in columns])
        single = BetaBernoulli if "bernoulli" in family.name else GammaPoisson
        return ByColumn([single([a], [b]) for a, b in zip(*prior, strict=True)])

    return family._replace(name=f"{family.name}-holes", rows=with_holes(family.rows), twin=twin)


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
    return Family(name, observation, swings(order), twin, "columns", True, order)


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
    bernoulli("bernoulli"),
    bernoulli("bernoulli-prior", prior=(np.linspace(0.3, 2.0, 12), 0.7)),
    multinomial("multinomial"),
    autoregressive("autoregressive", 1),
    autoregressive("autoregressive-2-ridge", 2, reg_covar=0.01),
    multinomial("multinomial-prior", prior=np.linspace(0.1, 1.5, 12)),
    poisson("poisson", adapts="b"),
    poisson("poisson-prior", prior=(np.linspace(0.5, 2.0, 6), 0.3)),
    categorical("categorical"),
    categorical("categorical-prior", prior=np.linspace(0.3, 2.0, 8).tolist()),
    columns("columns", "2.b"),
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
_HOLED = {
    "diag-rounded": 3, "diag-zero-mean": 3, "spherical": 3, "spherical-zero-mean": 8,
    "bernoulli-prior": 12, "poisson": 6, "shared-variance": 3, "fixed-variance": 3,
}  # fmt: skip
FAMILIES += [holes(family, _HOLED[family.name]) for family in FAMILIES if family.name in _HOLED]


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
]
