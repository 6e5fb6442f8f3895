"""Statistics of one fitted likelihood in the units of another one of the same family.

Design note
-----------
Prepared rows of real values are ``z = (x - shift) / scale``, column by column. In other units they are
``a z + c``, with ``a = scale / scale'`` and ``c = (shift - shift') / scale'``. Sums of z, and of products of
two columns, follow from those that there are. No row is needed. Counts and categories have no units.
Entries that were imputed under full covariances are not known, and stay in the units that they have.

Statistics of rows in cells (`cells.py`) have the variances of these in their squares. Where only one of two
likelihoods has cells, each row gives or takes their mean variance.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from .._kernels._responsibilities import Quadratic
from .categorical import CategoricalLikelihood
from .cells import CellRows
from .column_likelihood import ColumnLikelihood
from .counts import ColumnsOfCounts
from .fixed_variance import FixedVarianceLikelihood, IncompleteFixedVariance
from .gaussian import GaussianLikelihood
from .gaussian_missing import IncompleteColumnsGaussian
from .multinomial import MultinomialLikelihood
from .scaling import Scaling

# Relative difference of two constants that are the same, but for the rounding of their means.
_ROUNDING = 1e-9
_BEGIN_AS_COPIES = "Let all models begin as copies of one that has learned from a first batch"


def in_units_of(likelihood, target, s):
    """Statistics (K, P) of a likelihood in the units of ``target``, a likelihood of the same family.

    Raises ValueError if they cannot be given in these.
    """
    if target.has_missing and not likelihood.has_missing and likelihood.allows_missing:
        complete, likelihood = likelihood, likelihood.with_missing()
        s = likelihood.from_complete(s) if likelihood is not complete else s
    if _family(likelihood) is not _family(target):
        if likelihood.has_missing == target.has_missing:
            raise ValueError(f"its rows have distributions of another kind. {_BEGIN_AS_COPIES}")
        raise ValueError(
            "some models have learned from rows with missing values, and the others cannot do without any "
            f"column. {_BEGIN_AS_COPIES} with missing values, or fit them to rows without missing entries"
        )
    if _in_cells(likelihood) and not _in_cells(target):
        s = _with_mean_variance(likelihood.blur, s, -1.0)
    out = _converted(likelihood, target, s)
    if _in_cells(target) and not _in_cells(likelihood):
        out = _with_mean_variance(target.blur, out, 1.0)
    return out


def _in_cells(likelihood):
    return isinstance(likelihood, CellRows)


def _family(likelihood):
    """The class of a likelihood, or the one that it is without cells."""
    own = likelihood.of_vectors()
    return next(cls for cls in type(own).__mro__ if not issubclass(cls, CellRows))


def _with_mean_variance(blur, s, sign):
    """Statistics (K, P) of rows that have the mean variance of cells more, or less."""
    out = s.copy()
    blur.add(out, sign * s[:, -1:] * [own.mean for own in blur.cells])
    return out


@singledispatch
def _converted(likelihood, target, s):
    """Statistics in the units of a ``target`` of the same type."""
    _require_same_columns(likelihood, target)
    if _same_units(likelihood, target):
        return s
    if likelihood.has_missing:
        raise ValueError(
            "once a model with full covariances, or of rows that depend on rows before, has learned from "
            "rows with missing values, sums cannot be given in the units of other data than those from which "
            f"they are. {_BEGIN_AS_COPIES} with missing values, or fit them to rows without missing entries"
        )
    raise ValueError(
        "its statistics cannot be given in the units of other data than those from which they are. "
        f"{_BEGIN_AS_COPIES}"
    )


def _same_units(likelihood, target):
    """Whether two scaled likelihoods of one type have the same units."""
    here, there = (getattr(each, "scaling", None) for each in (likelihood, target))
    if not (isinstance(here, Scaling) and isinstance(there, Scaling)):
        return here is not None and _same_values(here, there)
    return _same_axes(here, there) and (
        np.array_equal(here.shift, there.shift) and np.array_equal(here.scale, there.scale)
    )


def _same_values(one, other):
    """Whether two scalings, such as those of rows and of steps between them, have the same fields."""
    if isinstance(one, tuple):
        return type(one) is type(other) and all(map(_same_values, one, other))
    return np.array_equal(one, other)


def _same_axes(one, other):
    return (one.basis is None) == (other.basis is None) and (
        one.basis is None or np.array_equal(one.basis, other.basis)
    )


def _require_same_columns(likelihood, target):
    """Raise unless the statistics of two likelihoods of one type are of the same columns."""
    if likelihood.n_statistics != target.n_statistics:
        raise ValueError(_differences(likelihood, target))


def _differences(likelihood, target):
    """Words of an error: which columns one of two likelihoods left out as constant, and the other did not."""
    own, its = (_left_out(getattr(each, "scaling", None)) for each in (likelihood, target))
    if own is None or its is None or own == its:
        return (
            "combinations of columns that are constant in its data vary in those of another model, or the "
            f"other way round. {_BEGIN_AS_COPIES} in which all of them vary, or leave out columns that "
            "follow from others"
        )
    d = min(own ^ its)
    found = (
        "is constant in its data, so that it has left it out, but varies in those of another model"
    )
    if d in its:
        found = (
            "varies in its data, but is constant in those of another model, which has left it out"
        )
    return f"column {d} {found}. {_BEGIN_AS_COPIES} in which it varies, or leave the column out"


def _left_out(scaling):
    """The columns that a scaling leaves out; None if it leaves out directions, or is of another kind."""
    if not isinstance(scaling, Scaling) or (scaling.basis is not None and scaling.kept is None):
        return None
    columns = range(len(scaling.shift))
    return set(columns) - set(columns if scaling.kept is None else scaling.kept.tolist())


@_converted.register(ColumnsOfCounts)
@_converted.register(MultinomialLikelihood)
def _counts(likelihood, target, s):
    """Counts have no units."""
    return s


@_converted.register
def _(likelihood: CategoricalLikelihood, target, s):
    """Counts of categories, with zeros for those that only ``target`` has."""
    more = np.flatnonzero(likelihood.sizes > target.sizes)
    if len(more):
        d = int(more[0])
        raise ValueError(
            f"column {d} has codes from 0 to {likelihood.sizes[d] - 1}, and in another model only to "
            f"{target.sizes[d] - 1}. Fit all models with the same n_categories"
        )
    out = np.zeros((len(s), target.n_statistics))
    before = np.arange(likelihood.n_statistics - 1)
    out[:, before + np.repeat(target.starts - likelihood.starts, likelihood.sizes)] = s[:, :-1]
    out[:, -1] = s[:, -1]
    return out


@_converted.register
def _(likelihood: ColumnLikelihood, target, s):
    out = np.empty((len(s), target.n_statistics))
    out[:, -1] = s[:, -1]
    for mine, its in zip(likelihood.blocks, target.blocks, strict=True):
        if mine.name != its.name or not np.array_equal(mine.columns, its.columns):
            raise ValueError(
                f"block {mine.name!r} has the columns {mine.columns.tolist()}, and in another model "
                f"{its.columns.tolist()}. Fit all models with the same blocks"
            )
        own = np.column_stack([s[:, mine.s], s[:, -1]])
        try:
            out[:, its.s] = in_units_of(mine.likelihood, its.likelihood, own)[:, :-1]
        except ValueError as error:
            where = f"in block {mine.name!r}, whose X is X[:, {mine.columns.tolist()}]"
            raise ValueError(f"{where}, {error}") from error
    return out


@_converted.register(GaussianLikelihood)
@_converted.register(FixedVarianceLikelihood)
def _complete_rows(likelihood, target, s):
    """Statistics ``[squares | sums, unless the mean is 0 | 1]``."""
    n_sums = likelihood.scaling.n_features if likelihood.linear else 0
    return _moved(likelihood, target, s, s.shape[1] - 1 - n_sums, slice(-1, None))


@_converted.register(IncompleteColumnsGaussian)
@_converted.register(IncompleteFixedVariance)
def _rows_with_gaps(likelihood, target, s):
    """Statistics ``[squares | sums, unless the mean is 0 | counts of entries | 1]``."""
    counts = slice(-1 - likelihood.scaling.n_features, -1)
    return _moved(likelihood, target, s, likelihood.n_squares, counts)


def _moved(likelihood, target, s, n_squares, counts):
    """Statistics ``[squares | sums, unless the mean is 0 | counts | ...]`` in the units of a ``target``.

    There are so many squares of columns, or products of two of them, and ``counts`` is a slice.
    """
    _require_same_columns(likelihood, target)
    if _same_units(likelihood, target):
        return s
    a, c = _change(likelihood, target)
    out = s.copy()
    n, squares, sums = out[:, counts], out[:, :n_squares], out[:, n_squares : counts.start]
    linear = sums if sums.shape[1] else np.zeros((len(s), len(a)))
    if likelihood.quadratic == Quadratic.FULL:
        i, j = np.triu_indices(len(a))
        m = a * linear
        squares[...] = a[i] * a[j] * squares + m[:, i] * c[j] + c[i] * m[:, j] + c[i] * c[j] * n
    else:
        _move_squares(squares, linear, n, a, c)
    sums[...] = (a * linear + c * n)[:, : sums.shape[1]]
    return out


def _change(likelihood, target):
    """Factors ``a`` and constants ``c`` (D,) with which ``a z + c`` are rows z in other units."""
    here, there = likelihood.scaling, target.scaling
    if not _same_axes(here, there) or (here.basis is not None and here.kept is None):
        raise ValueError(_differences(likelihood, target))
    a, c = here.scale / there.scale, (here.shift - there.shift) / there.scale
    if here.kept is not None:
        _require_same_constants(here, there)
        a, c = a[here.kept], c[here.kept]
    return a, c


def _move_squares(squares, linear, n, a, c):
    """Make squares (K, D), or their sums over columns (K, 1), those of ``a z + c``.

    Sums of z are ``linear`` (K, D), and counts ``n`` are (K, 1), or (K, D) if columns differ in them.
    """
    added = 2.0 * a * c * linear + c**2 * n
    if squares.shape[1] == len(a):
        squares[...] = a**2 * squares + added
        return
    if not np.allclose(a, a[0], rtol=1e-12, atol=0):
        raise ValueError(
            "its columns have other units than those of another model, and with spherical covariances only "
            f"the sum of their squares is known. {_BEGIN_AS_COPIES}"
        )
    squares[...] = a[0] ** 2 * squares + added.sum(axis=1, keepdims=True)


def _require_same_constants(here, there):
    """Raise ValueError unless columns that are left out have the same value in both."""
    differ = ~np.isclose(here.shift, there.shift, rtol=_ROUNDING, atol=0.0)
    differ[here.kept] = False
    if differ.any():
        d = int(np.flatnonzero(differ)[0])
        raise ValueError(
            f"column {d} was constant in each, with different values, {here.shift[d]:g} and "
            f"{there.shift[d]:g}, so that neither knows how it varies. {_BEGIN_AS_COPIES} in which it "
            "varies, or leave it out"
        )
