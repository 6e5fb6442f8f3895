"""Checks of a likelihood and its prior: kernels trust their shapes."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from ...likelihood.autoregressive import AutoregressiveLikelihood
from ...likelihood.autoregressive_gaps import GappedRegression
from ...likelihood.base import LastPrior
from ...likelihood.categorical import CategoricalLikelihood, CodedCategories
from ...likelihood.cells import Blur, CellRows, Cells
from ...likelihood.column_likelihood import ColumnLikelihood
from ...likelihood.correlated_rows import CorrelatedGaussian
from ...likelihood.counts import ColumnsOfCounts
from ...likelihood.covariance_shapes import SHAPES
from ...likelihood.dirichlet import AboutFrequencies
from ...likelihood.fixed_variance import FixedVarianceLikelihood, IncompleteFixedVariance
from ...likelihood.full_gaussian_missing import IncompleteFullGaussian
from ...likelihood.gaussian import GaussianLikelihood
from ...likelihood.gaussian_missing import IncompleteColumnsGaussian
from ...likelihood.multinomial import MultinomialLikelihood
from ...likelihood.negative_binomial import NegativeBinomialLikelihood
from ...likelihood.new_starts import RestartingGaussian
from ...likelihood.size_sums import GivenSizes, LearnedSizes
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_same_form,
    expect_type,
)


def check_likelihood(likelihood, prior, n_columns):
    """Raise unless a likelihood is for rows of ``n_columns``, and ``prior`` has the form of its prior."""
    check_own(likelihood, n_columns)
    check_prior(likelihood, prior)


@singledispatch
def check_prior(likelihood, prior):
    """Raise unless a prior has the form of the likelihood's own; a user's likelihoods are not checked."""
    if is_ours(likelihood):
        expect_same_form("the prior", prior, likelihood.prior)
        for name in ("kappa", "nu", "spread", "variance", "r"):  # of which logarithms are taken
            if hasattr(prior, name):
                expect(np.min(getattr(prior, name)) > 0, f"the prior's {name} is not positive")


def is_ours(likelihood):
    """Whether a likelihood is an instance of one of our classes."""
    return check_own.dispatch(type(likelihood)) is not check_own.dispatch(object)


@singledispatch
def check_own(likelihood, n_columns):
    """Raise unless a likelihood's attributes fit together; a user's own classes are not checked."""


@check_own.register
def _(likelihood: GaussianLikelihood, n_columns):
    D = likelihood.n_features
    _check_scaling(likelihood.scaling, n_columns, D)
    _check_shape(likelihood.shape, D)
    expect(
        likelihood.quadratic == likelihood.shape.quadratic, "the layout of statistics is another"
    )
    expect_type("linear", likelihood.linear, bool)
    for name in ("adapts_prior", "scale_is_given", "scale_only_rises", "adapts_kappa"):
        expect_type(name, getattr(likelihood, name), bool)
    # models that were saved before kappa was learned do not have it
    if "scale_is_given" in vars(likelihood):
        learns = likelihood.adapts_kappa or not likelihood.scale_is_given
        expect(likelihood.adapts_prior == learns, "what is learned of the prior is not clear")
    expect(
        likelihood.linear or not likelihood.adapts_kappa, "there are no means to learn a prior of"
    )
    expect_numbers("ridge", likelihood.ridge, (D,), least=0.0)
    expect_number("row_constant", likelihood.row_constant)
    _check_last(likelihood)
    _check_blur(likelihood, likelihood.scaling, likelihood.quadratic, n_columns)
    check_prior(likelihood, likelihood.prior)
    m, kappa, nu, b = likelihood.prior
    expect((m is not None) == likelihood.linear, "the prior's mean is not of this family")
    if m is not None:
        expect_numbers("the prior's mean", m, (D,))
    expect_number("the prior's kappa", kappa, least=0.0)
    expect_number("the prior's nu", nu, least=0.0)
    expect_numbers("the prior's scale", b, np.shape(likelihood.shape.constant(np.ones(D))))


@check_own.register
def _(likelihood: IncompleteColumnsGaussian, n_columns):
    complete, D = likelihood.complete, likelihood.n_features
    _check_made_of(likelihood, complete, n_columns, ("scaling", "shape", "n_features"))
    expect(likelihood.has_mean == complete.linear, "has_mean is of another family")
    expect(likelihood.n_squares == (1 if likelihood.pools else D), "n_squares is of another family")
    expect(likelihood.pools == (complete.shape.rows_a_point > 1), "pools is of another family")
    _check_blur(likelihood, complete.scaling, complete.quadratic, n_columns)
    expect_numbers("ridge", likelihood.ridge, (D,), least=0.0)
    _check_constants(likelihood.constants, n_columns, D)


@check_own.register
def _(likelihood: IncompleteFullGaussian, n_columns):
    D = likelihood.n_features
    _check_made_of(likelihood, likelihood.complete, n_columns, ("scaling", "n_features"))
    expect_numbers("ridge", likelihood.ridge, (D,), least=0.0)
    expect_numbers("the precision of all data", likelihood.whole, (D, D))
    expect_number("others", likelihood.others)
    _check_blur(likelihood, likelihood.scaling, likelihood.complete.quadratic, n_columns)
    for name, value, found in zip(
        "ij", np.triu_indices(D), (likelihood.i, likelihood.j), strict=True
    ):
        expect_positions(name, found, value.shape, D)
        expect(np.array_equal(value, found), f"{name} are not the places of a triangle")
    _check_constants(likelihood.constants, n_columns, D)


@check_own.register
def _(likelihood: FixedVarianceLikelihood, n_columns):
    D = likelihood.n_features
    _check_scaling(likelihood.scaling, n_columns, D)
    for name in ("adapts_prior", "adapts_spread", "variance_is_given"):
        expect_type(name, getattr(likelihood, name), bool)
    expect_numbers("ridge", likelihood.ridge, (D,), least=0.0)
    expect_number("row_constant", likelihood.row_constant)
    check_prior(likelihood, likelihood.prior)
    m, spread, variance = likelihood.prior
    expect_numbers("the prior's mean", m, (D,))
    expect_numbers("the prior's spread", spread, (D,), least=0.0)
    expect_numbers("variance", variance, (D if likelihood.adapts_variance else 1,), least=0.0)
    fresh = type(likelihood).__new__(type(likelihood))
    learned = {
        "adapts_variance": likelihood.adapts_variance,
        "adapts_spread": likelihood.adapts_spread,
    }
    if isinstance(likelihood, IncompleteFixedVariance):
        fresh.__init__(likelihood.scaling, likelihood.prior, np.ones(n_columns), **learned)
        expect(likelihood.n_squares == fresh.n_squares, "n_squares is of another family")
        _check_constants(likelihood.constants, n_columns, D)
    else:
        fresh.__init__(likelihood.scaling, likelihood.prior, **learned)
    expect(likelihood.quadratic == fresh.quadratic, "the layout of statistics is another")


@check_own.register
def _(likelihood: AutoregressiveLikelihood, n_columns):
    lags, n_lagged, D = likelihood.lags, likelihood.n_lagged, likelihood.scaling.n_features
    expect_count("lags", lags, least=1)
    expect(lags == likelihood.scaling.lags, "there are other lags than in the units")
    expect(n_lagged == lags * D, f"n_lagged is {n_lagged}, not {lags * D}")
    expect(likelihood.n_features == n_lagged + D, "n_features is not that of lagged rows")
    own = likelihood.scaling.n_columns
    expect(
        n_columns in (own, (lags + 1) * own), f"the likelihood has {own} columns, not {n_columns}"
    )
    for scaling in (likelihood.scaling.levels, likelihood.scaling.steps):
        _check_scaling(scaling, own, D)
    _check_shape(likelihood.shape, D)
    for name in ("adapts_prior", "adapts_scale", "adapts_coef"):
        expect_type(name, getattr(likelihood, name), bool)
    learns = likelihood.adapts_scale or likelihood.adapts_coef
    expect(likelihood.adapts_prior == learns, "what is learned of the prior is not clear")
    expect_numbers("ridge", likelihood.ridge, (n_lagged + D,), least=0.0)
    expect_number("row_constant", likelihood.row_constant)
    _check_last(likelihood)
    prior = likelihood.prior
    expect_numbers("the prior's coefficients", prior.coef, (D, n_lagged))
    expect_numbers("the prior's gram", prior.gram, (n_lagged, n_lagged))
    expect_numbers("the prior's scale", prior.b, (D, D))
    expect_numbers("the prior's joint scale", prior.joint, (n_lagged + D, n_lagged + D))
    expect_number("the prior's kappa", prior.kappa, least=0.0)
    expect_number("the prior's nu", prior.nu, least=0.0)


@check_own.register
def _(likelihood: CorrelatedGaussian, n_columns):
    rows, D = likelihood.rows, likelihood.rows.n_features
    own = len(rows.scaling.shift)
    expect(n_columns in (own, 2 * own), f"the likelihood has {own} columns, not {n_columns}")
    check_own(rows, own)
    check_prior(rows, type(rows.prior)(*likelihood.prior[:4]))
    known = {"autocorrelation", "restart_probability"}
    expect(known.issuperset(likelihood.learned), "parameters are learned that there are not")
    fresh = CorrelatedGaussian(rows, likelihood.prior, likelihood.learned)
    _check_as_made(likelihood, fresh)
    m, kappa, nu, b, phi, epsilon = likelihood.prior
    expect_numbers("the prior's mean", m, (D,))
    for name, value in {"kappa": kappa, "nu": nu, "correlation": phi, "restart": epsilon}.items():
        expect_number(f"the prior's {name}", value, least=0.0)
    expect(phi < 1.0 and epsilon < 1.0, "the dynamics are no correlation and no probability")
    expect_numbers("the prior's scale", b, np.shape(rows.shape.constant(np.ones(D))))
    _check_last(likelihood)


@check_own.register
def _(likelihood: RestartingGaussian, n_columns):
    check_own(likelihood.continuing, n_columns)
    expect_number("typical", likelihood.typical, least=0.0)
    expect(likelihood.typical < 1.0, "the typical correlation is no correlation")
    _check_as_made(likelihood, RestartingGaussian(likelihood.continuing, likelihood.typical))


@check_own.register
def _(likelihood: GappedRegression, n_columns):
    _check_made_of(likelihood, likelihood.complete, n_columns, ("lags", "n_features"))


@check_own.register
def _(likelihood: ColumnsOfCounts, n_columns):
    _check_columns_of_counts(likelihood, n_columns)


@check_own.register
def _(likelihood: NegativeBinomialLikelihood, n_columns):
    _check_columns_of_counts(likelihood, n_columns)
    check_prior(likelihood, likelihood.prior)
    for name in ("learns_size", "learns_scale", "adapts_prior"):
        expect_type(name, getattr(likelihood, name), bool)
    learns = likelihood.learns_size or likelihood.learns_scale
    expect(likelihood.adapts_prior == learns, "what is learned of the prior is not clear")
    expect_numbers("sizes", likelihood.prior.r, (n_columns,), least=0.0)
    expect_type(
        "sums for sizes", likelihood.sizes, LearnedSizes if likelihood.learns_size else GivenSizes
    )
    if not likelihood.learns_size:
        same = np.array_equal(likelihood.sizes.r, likelihood.prior.r)
        expect(same, "sizes that are given are not those of the prior")
    expect_type("what is kept of the last prior", likelihood._last_factors, LastPrior)
    expect(likelihood._last_factors._last == (None, None), "factors were kept of a prior")


def _check_columns_of_counts(likelihood, n_columns):
    """Raise unless the prior of `ColumnsOfCounts` has two numbers for each of so many columns."""
    expect(
        likelihood.n_features == n_columns, f"the likelihood has {likelihood.n_features} columns"
    )
    for name in ("a", "b"):
        expect_numbers(
            f"the prior's {name}", getattr(likelihood.prior, name), (n_columns,), least=0.0
        )
    if likelihood.columns.has_missing:
        expect(n_columns == likelihood.columns.D, "missing entries are of other columns")


@check_own.register
def _(likelihood: MultinomialLikelihood, n_columns):
    expect(
        likelihood.n_features == n_columns, f"the likelihood has {likelihood.n_features} columns"
    )
    expect_numbers("the prior's pseudo-counts", likelihood.prior.lam, (n_columns,), least=0.0)
    expect_number("the prior's total", likelihood.prior.total, least=0.0)
    expect_number("n_tokens", likelihood.n_tokens, least=0.0)
    expect_type("adapts_prior", likelihood.adapts_prior, bool)
    about = likelihood.prior.about
    if about is None:
        expect(not likelihood.adapts_prior, "a prior is learned whose parts are not known")
        return
    expect_type("parts of the prior", about, AboutFrequencies)
    expect_numbers("frequencies of types", about.p, (n_columns,), least=0.0)
    for name in ("even", "strength"):
        expect_number(f"the prior's {name}", getattr(about, name), least=0.0)


@check_own.register
def _(likelihood: CategoricalLikelihood, n_columns):
    _check_categories(likelihood, n_columns, likelihood.n_features)


@check_own.register
def _(likelihood: CodedCategories, n_columns):
    expect(
        likelihood.n_features == n_columns, f"the likelihood has {likelihood.n_features} columns"
    )
    _check_categories(likelihood, n_columns, len(likelihood.prior.lam))


def _check_categories(likelihood, n_columns, n_categories):
    """Raise unless columns have so many categories in all."""
    sizes = likelihood.sizes
    expect_positions("numbers of categories", sizes, (n_columns,), n_categories + 1, least=1)
    expect(sizes.sum() == n_categories, f"there are {sizes.sum()} categories, not {n_categories}")
    expect_positions("starts of categories", likelihood.starts, (n_columns,), n_categories)
    expect(
        np.array_equal(likelihood.starts, np.cumsum(sizes) - sizes), "starts are those of others"
    )
    expect_numbers("the prior's pseudo-counts", likelihood.prior.lam, (n_categories,), least=0.0)


@check_own.register
def _(likelihood: ColumnLikelihood, n_columns):
    expect(likelihood.n_columns == n_columns, f"the likelihood has {likelihood.n_columns} columns")
    z = s = 0
    for block in likelihood.blocks:
        expect_positions(f"columns of block {block.name!r}", block.columns, (None,), n_columns)
        check_own(block.likelihood, len(block.columns))
        ends = z + block.likelihood.n_features, s + block.likelihood.n_statistics - 1
        expect(
            (block.z, block.s) == (slice(z, ends[0]), slice(s, ends[1])),
            f"block {block.name!r} has another place among the statistics",
        )
        z, s = ends
    expect((likelihood.n_features, likelihood.n_statistics) == (z, s + 1), "blocks do not add up")
    check_prior(likelihood, likelihood.prior)
    for block in likelihood._complete or ():
        check_own(block.likelihood, len(block.columns))


@check_prior.register
def _(likelihood: ColumnLikelihood, prior):
    n_blocks = len(likelihood.blocks)
    expect_type("the blocks' prior", prior, tuple)
    expect(len(prior) == n_blocks, f"there are priors of {len(prior)} blocks, not {n_blocks}")
    for block, own in zip(likelihood.blocks, prior, strict=True):
        check_prior(block.likelihood, own)


def _check_scaling(scaling, n_columns, n_features):
    """Raise unless `Scaling` are of rows of ``n_columns``, which they make ``n_features`` of."""
    expect_numbers("shift", scaling.shift, (n_columns,))
    expect_numbers("scale", scaling.scale, (n_columns,), least=0.0)
    expect(np.all(scaling.scale > 0), "scale is zero")
    expect_numbers("ridge", scaling.ridge, (n_features,), least=0.0)
    expect_number("floor", scaling.floor, least=0.0)
    expect_number("left_out", scaling.left_out)
    if scaling.basis is None:
        expect(n_features == n_columns, f"the likelihood has {n_features} columns, not {n_columns}")
    else:
        expect_numbers("basis", scaling.basis, (n_columns, n_features))
    if scaling.kept is not None:
        expect_positions("kept", scaling.kept, (n_features,), n_columns)


def _check_blur(likelihood, scaling, quadratic, n_columns):
    """Raise unless a likelihood in cells has some, and the places that these have among its statistics."""
    if not isinstance(likelihood, CellRows):
        expect("blur" not in vars(likelihood), "there are cells, which the likelihood does not use")
        return
    blur = likelihood.blur
    expect_type("blur", blur, Blur)
    expect_type("cells", blur.cells, list)
    expect(len(blur.cells) > 0, "there are no cells")
    kept = range(n_columns) if scaling.kept is None else scaling.kept
    for own in blur.cells:
        expect_type("a column's cells", own, Cells)
        expect_count("the column of cells", own.column)
        expect(own.column in kept, "there are cells of a column that is not in the model")
        expect_numbers("variances of cells", own.variance, (len(own.edges) + 1,), least=0.0)
        expect_numbers("edges of cells", own.edges, (len(own.variance) - 1,))
        expect(np.all(np.diff(own.edges) >= 0), "edges of cells are not sorted")
        expect_number("the mean variance of cells", own.mean, least=0.0)
    fresh = Blur(blur.cells, scaling, quadratic)
    expect(vars(blur).keys() == vars(fresh).keys(), "blur lacks attributes")
    for name in ("is_rotated", "axes", "places", "squares"):
        value, own = vars(fresh)[name], vars(blur)[name]
        same = type(own) is type(value) and np.array_equal(own, value)
        expect(same, f"{name} of blur are not those of its cells")


def _check_shape(shape, n_features):
    """Raise unless a shape of covariances is for so many columns."""
    fresh = type(shape)(n_features)
    expect(type(shape) in SHAPES.values(), f"shape is a {type(shape).__name__}")
    expect(vars(shape).keys() == vars(fresh).keys(), "shape lacks attributes")
    for name, value in vars(fresh).items():
        expect_same_form(name, vars(shape)[name], value)
        expect(np.array_equal(vars(shape)[name], value), f"{name} is of another number of columns")


def _check_as_made(likelihood, fresh):
    """Raise unless plain attributes of a likelihood are those of one made of the same parts."""
    expect(vars(likelihood).keys() == vars(fresh).keys(), "the likelihood lacks attributes")
    for name, value in vars(fresh).items():
        if isinstance(value, (np.ndarray, tuple, int, float)) and name != "prior":
            own = vars(likelihood)[name]
            same = type(own) is type(value) and np.array_equal(own, value)
            expect(same, f"{name} is not that of the likelihood's parts")


def _check_last(likelihood):
    """Raise unless the cache of the last prior is empty, as it is whenever a model is saved."""
    expect_type("what is kept of the last prior", likelihood._last_norm, LastPrior)
    expect(likelihood._last_norm._last == (None, None), "a normaliser was kept of a prior")


def _check_made_of(likelihood, complete, n_columns, same):
    """Raise unless a likelihood for incomplete rows fits the one for complete rows that it holds."""
    check_own(complete, n_columns)
    expect_same_form("the prior for incomplete rows", likelihood.prior, complete.prior)
    for name in (*same, "adapts_prior"):
        one, other = getattr(likelihood, name), getattr(complete, name)
        expect(one is other or one == other, f"{name} are not those of complete rows")


def _check_constants(constants, n_columns, n_features):
    """Raise unless `EntryConstants` are for so many columns."""
    n_left = n_columns - n_features
    expect_numbers("constants of entries", constants.each, (n_features,))
    expect_positions("columns left out", constants.left_out, (n_left,), n_columns)
    expect_numbers("constants of columns left out", constants.others, (n_left,))
    expect_number("constants of rows", constants.row)
