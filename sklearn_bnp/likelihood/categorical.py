"""Columns of categories with Dirichlet priors.

Design note
-----------
(a) A prepared row is the one-hot code of all its columns, side by side, and ``s(x) = [one-hot, 1]``. So the
    local step and the summary step are matrix products, as for the families of counts.
    Where columns have many categories, most of it would be zeros, and rows are of another kind (e).
(b) How many rows show a column is the sum of its own block of counts, and not the last statistic. A missing
    entry (NaN) is a block of zeros, and is thus integrated out exactly.
(c) Codes need not be without gaps: answers may go from 1 to 5, and 99 may stand for none. With a full
    pseudo-count for each of V codes, a component of N rows would pay about ``log(1 + N / V)`` nats for each
    code that no row holds. So such codes have next to no pseudo-count, which leaves them possible in new
    rows. The first batch of a stream does not tell which codes will occur.
(d) Models that are combined may have found other codes in their data. The combined one has the codes of all,
    and pseudo-counts as if it had found them itself.
(e) Rows of `CodedCategories` are the codes themselves, one number a column, and NaN for a missing entry. A
    one-hot row of 60,000 categories would take 480 kB. A step turns its rows into sparse one-hot rows, with
    one entry for each observed code, and goes on as the layout `SparseRows` does. These rows live as long as
    the step. Codes are no vectors: their differences mean nothing. Who needs vectors takes `of_vectors`.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import digamma

from ..inputs.category_codes import LARGEST_CODE
from .base import Likelihood, ObservationModel
from .counts import (
    log_ratio,
    log_rise_of_totals,
    log_rising_factorials,
    nonzeros_of_rows,
    points_of_counts,
    statistics_as_rows,
)
from .leaving_out import pairs_with_shares
from .limits import LEAST, MOST, are_within
from .row_kernels import SparseRows

# Columns have few categories if they have no more than this on average. For more, dense one-hot rows take two
# to twenty times as long as codes; for 16, nearly as long.
_FEW = 32
# Pseudo-counts of codes that no row holds have this sum, in units of the pseudo-count of a category.
_UNSEEN = 0.01
# So many numbers of a table with one for each row and category are held when rows are drawn.
_HELD_NUMBERS = 2**22
# Single precision holds all whole numbers up to this one.
_LARGEST_SINGLE = 2**24


class CategoryPrior(NamedTuple):
    """Pseudo-counts ``lam`` (V,) of the categories of all columns, one column after another."""

    lam: np.ndarray


class CategoricalObservation(ObservationModel):
    """Independent columns of categories; each component has a distribution for each column.

    An entry is the code of its category, a whole number from 0. Missing entries are NaN. Columns of a
    pandas or polars frame may hold categories of any kind, such as strings. They are given codes in the
    order of their dtype, or else in sorted order, and the estimator has them as ``categories_``. A
    mixture with this observation model is known as latent class analysis.

    Parameters
    ----------
    prior : float or list of array-likes, default=1.0
        Pseudo-count > 0 of each category in the Dirichlet priors: one for all columns, or for each
        column a number or an array with one for each of its categories. If the number of categories is
        found in the data of `fit`, codes that no row holds have one hundredth of a number, all of a column
        together.
    n_categories : int or list of (int or None), default=None
        How many categories each column has: one number for all columns, or one for each. Each category that
        is given has a pseudo-count, so give a number for each column if they differ much. If None, it is
        one more than the greatest code in the data of `fit`, or in the first batch of `partial_fit`. In
        mixtures, rows of weight 0 have labels and count as well; leave them out if their categories must not
        matter.

    References
    ----------
    Hughes (2016), Sec. 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.binomial(3, p, size=(100, 5)) for p in (0.1, 0.9)])
    >>> model = DPMixtureVB(observation="categorical", random_state=0).fit(X)
    >>> model.n_components_, model.probabilities_.shape
    (2, (2, 5, 4))
    """

    _parameter_constraints = {
        "prior": [Real, "array-like"],
        "n_categories": [Integral, "array-like", None],
    }

    def __init__(self, prior: Any = 1.0, *, n_categories: ArrayLike | None = None) -> None:
        self.prior = prior
        self.n_categories = n_categories

    allows_missing = needs_codes = True

    def for_frame(self, frame: Any, columns: Any) -> ObservationModel:
        """The model with numbers of categories; see `ObservationModel.for_frame`."""
        found, given = frame.categories(columns), self.n_categories
        if given is None:
            return CategoricalObservation(self.prior, n_categories=found)
        return self

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        sizes = self._sizes(moments)
        lam = self._pseudo_counts(sizes)
        if moments.codes is not None and not streaming:
            self._lessen_unseen(lam, sizes, moments.codes)
        return _family(CategoryPrior(lam), sizes)

    def _given_sizes(self, D):
        """``n_categories`` as a list with one for each of D columns, if it has the right length."""
        given = self.n_categories
        return [given] * D if given is None or np.ndim(given) == 0 else list(given)

    def _sizes(self, moments):
        """Number of categories of each column (D,)."""
        D = len(moments.mean)
        given = self._given_sizes(D)
        if len(given) != D or not all(
            v is None or (isinstance(v, Integral) and v >= 1) for v in given
        ):
            raise ValueError(
                f"n_categories={self.n_categories!r} must be a whole number, 1 or more, or a list of "
                f"{D} of them, one for each column; None stands for the number found in the data."
            )
        largest = moments.largest
        found = [v is None for v in given]
        if np.any(largest[found] > LARGEST_CODE):
            d = int(np.flatnonzero((largest > LARGEST_CODE) & found)[0])
            raise ValueError(
                f"Column {d} of X holds values up to {largest[d]:g}, but observation='categorical' takes "
                "codes of categories from 0; recode it, as sklearn.preprocessing.OrdinalEncoder does, or "
                "set n_categories."
            )
        return np.array(
            [int(x) + 1 if v is None else int(v) for x, v in zip(largest, given, strict=True)]
        )

    def _pseudo_counts(self, sizes):
        """Pseudo-counts (V,) of the categories of all columns."""
        given = self.prior
        each = [given] * len(sizes) if isinstance(given, Real) else list(given)
        try:
            lam = np.concatenate(
                [
                    np.broadcast_to(np.asarray(v, dtype=float), size)
                    for v, size in zip(each, sizes, strict=True)
                ]
            )
        except (TypeError, ValueError):
            lam = np.array([np.nan])
        if not are_within(lam):
            raise ValueError(
                f"prior={given!r} must be a number from {LEAST:g} to {MOST:g}, or a list with one for each "
                f"of {len(sizes)} columns, or in their place arrays of {sizes.tolist()} numbers, one a "
                "category."
            )
        return lam

    def _lessen_unseen(self, lam, sizes, codes):
        """Lessen pseudo-counts (V,) of codes that no row holds, where a column has one number for all codes.

        Numbers of categories that were given are those of codes that may occur.
        """
        D = len(sizes)
        each = [self.prior] * D if isinstance(self.prior, Real) else self.prior
        columns = np.split(lam, np.cumsum(sizes)[:-1])
        for own, prior, size, held in zip(columns, each, self._given_sizes(D), codes, strict=True):
            if size is None and np.ndim(prior) == 0:
                unseen = np.ones(len(own), dtype=bool)
                unseen[held] = False
                own[unseen] *= _share_of_unseen(unseen)


def _family(prior, sizes):
    """The likelihood of columns with so many categories (D,), in the layout of rows that suits them."""
    kind = CategoricalLikelihood if sizes.mean() <= _FEW else CodedCategories
    return kind(prior, sizes)


def _share_of_unseen(unseen):
    """Pseudo-count of each code of a column that is ``unseen`` (V,), in units of that of a category."""
    return _UNSEEN / max(1, np.count_nonzero(unseen))


class CategoricalLikelihood(Likelihood):
    """``s(x) = [one-hot, 1]``; see the module's note.

    Parameters
    ----------
    prior : CategoryPrior
        Prior of each component's distributions.
    sizes : ndarray of int, shape (D,)
        Number of categories of each column.
    """

    has_missing = True
    standardised = False

    def __init__(self, prior, sizes):
        self.prior, self.sizes = prior, sizes
        self.starts = np.cumsum(sizes) - sizes  # of the columns' blocks
        self.n_features = len(prior.lam)

    def spanning(self, prior, others):
        """The family of the codes that any of these likelihoods knows; see `Likelihood`."""
        every = (self, *others)
        if all(np.array_equal(self.prior.lam, other.prior.lam) for other in others):
            return self, prior
        sizes = np.max([each.sizes for each in every], axis=0)
        parts = [np.split(each.prior.lam, each.starts[1:]) for each in every]
        columns = [
            _pseudo_counts_of_all(own, size)
            for own, size in zip(zip(*parts, strict=True), sizes, strict=True)
        ]
        family = _family(CategoryPrior(np.concatenate(columns)), sizes)
        return family, family.prior

    def prepare(self, x):
        """One-hot rows (n, V), with a block of zeros for a missing entry."""
        with np.errstate(invalid="ignore"):  # of NaN
            codes = x.astype(np.intp)
        plain = (codes == x) & (codes >= 0) & (codes < self.sizes)
        dtype = np.float32 if x.dtype in (np.float32, np.float16) else np.float64
        z = np.zeros((len(x), self.n_features), dtype=dtype)
        places = np.arange(len(x))[:, np.newaxis] * self.n_features + self.starts + codes
        if not plain.all():
            self._check_codes(x)
            places = places[plain]
        z.reshape(-1)[places] = 1.0
        return z

    def imputed(self, prior, s, z):
        """Rows as they are: a block of zeros is not NaN; see `Likelihood`."""
        return z

    def prepare_means(self, means):
        """One-hot rows of means, which are codes of categories."""
        try:
            return self.prepare(means)
        except ValueError as error:
            raise ValueError(f"means_init must hold codes of categories: {error}") from error

    def _check_codes(self, x):
        """Raise unless rows (n, D) hold codes that the columns have, or NaN."""
        wrong = (x < 0) | (x >= self.sizes)
        if x.dtype.kind == "f":
            wrong |= (x != np.rint(x)) & (x == x)
        if not wrong.any():
            return
        row, d = np.argwhere(wrong)[0]
        value, last = x[row, d], self.sizes[d] - 1
        if value != np.rint(value) or value < 0:
            raise ValueError(
                f"Column {d} of X holds {value:g}, but observation='categorical' takes codes of "
                "categories, which are whole numbers from 0; recode it, as "
                "sklearn.preprocessing.OrdinalEncoder does."
            )
        raise ValueError(
            f"Column {d} of X holds category {value:g}, but its categories were found or set to go from "
            f"0 to {last}; set n_categories to allow for those that are seen later."
        )

    def _sums(self, values):
        """Sums of values (..., V) over the block of their column, (..., V)."""
        return np.repeat(np.add.reduceat(values, self.starts, axis=-1), self.sizes, axis=-1)

    def evidence(self, prior, s):
        """``sum_d lnB(lam_d + s_d) - lnB(lam_d)`` with the multivariate Beta function."""
        rows = statistics_as_rows(s)
        total, counts = (
            np.add.reduceat(v, self.starts, axis=-1) for v in (prior.lam, rows[:, :-1])
        )
        of_totals = log_rise_of_totals(total, counts).sum(axis=-1)
        return (log_rising_factorials(rows, prior.lam) - of_totals).reshape(s.shape[:-1])

    def coefficients(self, prior, s):
        """``E[log phi_kdv] = psi(lam_dv + S_kdv) - psi(sum_v lam_dv + S_kdv)``; the last one is 0."""
        a = prior.lam + s[:, :-1]
        out = np.zeros(s.shape)
        out[:, :-1] = digamma(a) - digamma(self._sums(a))
        return out

    def _means(self, prior, s):
        """Expected probabilities (..., V)."""
        a = prior.lam + s[..., :-1]
        return a / self._sums(a)

    def log_predictive(self, prior, s, z):
        return z @ np.log(self._means(prior, s)).T

    def change_without(self, prior, s, k, z, i, r):
        """The category of each observed entry, and all categories of its column, are fewer by r."""
        pair, place, _ = nonzeros_of_rows(z, i)
        less, component = r[pair], k[pair]
        of_column = self._sums(s[:, :-1])[component, place]
        terms = log_ratio(s[component, place], prior.lam[place], less)
        terms -= log_ratio(of_column, self._sums(prior.lam)[place], less)
        return np.bincount(pair, terms, minlength=len(r))

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Pearson's residuals, which are 0 for missing entries; or the one-hot rows themselves.

        Squared distances of residuals are those of chi-square, for which rare categories count for more.
        """
        if not whiten:
            return z
        p = self._means(prior, s)
        present = self._sums(z)
        return np.ascontiguousarray((z - present * p) / np.sqrt(p), dtype=z.dtype)

    def attributes(self, prior, s):
        """Probabilities (K, D, V), which are 0 beyond the categories that a column has."""
        out = np.zeros((len(s), len(self.sizes), self.sizes.max()))
        out[:, np.arange(self.sizes.max()) < self.sizes[:, np.newaxis]] = self._means(prior, s)
        return {"probabilities_": out}

    def expected_rows(self, attributes, shares):
        """Codes (n, D) of the most probable categories."""
        probabilities = attributes["probabilities_"]
        _, D, V = probabilities.shape
        out, size = np.empty((len(shares), D)), max(1, _HELD_NUMBERS // V)
        for lo in range(0, len(shares), size):
            for d in range(D):
                found = shares[lo : lo + size] @ probabilities[:, d]
                out[lo : lo + size, d] = found.argmax(axis=1)
        return out

    def sample(self, attributes, labels, rng):
        """Codes, by inverting the distribution functions."""
        every = np.cumsum(attributes["probabilities_"], axis=2)
        _, D, V = every.shape
        u, out = rng.random((len(labels), D, 1)), np.empty((len(labels), D))
        for lo in range(0, len(labels), max(1, _HELD_NUMBERS // (D * V))):
            rows = slice(lo, lo + max(1, _HELD_NUMBERS // (D * V)))
            reached = every[labels[rows]]
            out[rows] = np.sum(reached[..., :-1] <= u[rows] * reached[..., -1:], axis=2)
        return out


def _pseudo_counts_of_all(parts, size):
    """Pseudo-counts (size,) of a column's categories, from those of likelihoods that found their codes apart.

    A code that any of them has found has a whole pseudo-count. If the user gave the number of codes or their
    pseudo-counts, those of all likelihoods are the same.
    """
    if all(np.array_equal(own, parts[0]) for own in parts):
        return parts[0]
    whole = max(own.max() for own in parts)
    unseen = np.ones(size, dtype=bool)
    for own in parts:
        unseen[: len(own)] &= own < whole
    return np.where(unseen, _share_of_unseen(unseen), 1.0) * whole


class CodedCategories(SparseRows, CategoricalLikelihood):
    """The family of `CategoricalLikelihood`, whose prepared rows are codes (n, D); see the module's note.

    It has the same parameters.
    """

    def __init__(self, prior, sizes):
        super().__init__(prior, sizes)
        self.n_features = len(sizes)

    @property
    def n_kernel_columns(self):
        """Columns of one-hot rows."""
        return len(self.prior.lam)

    def of_vectors(self):
        """The family for dense one-hot rows, which have means and distances. Codes have none."""
        return CategoricalLikelihood(self.prior, self.sizes)

    # ------------------------------------------------------------------ rows

    def prepare(self, x):
        """Rows of codes (n, D), NaN for missing entries."""
        self._check_codes(x)
        single = x.dtype in (np.float32, np.float16) and self.sizes.max() <= _LARGEST_SINGLE
        return np.ascontiguousarray(x, dtype=np.float32 if single else np.float64)

    def one_hot(self, z):
        """Sparse one-hot rows (n, V) of codes, without an entry where a code is missing."""
        seen = z == z
        if seen.all():
            columns = (z.astype(np.int64) + self.starts).reshape(-1)
            ends = np.arange(0, z.size + 1, z.shape[1])
        else:
            columns = (np.where(seen, z, 0.0).astype(np.int64) + self.starts)[seen]
            ends = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        ones = np.ones(len(columns), dtype=z.dtype)
        return csr_array((ones, columns, ends), shape=(len(z), self.n_kernel_columns))

    def kernel_rows(self, z):
        """Dense one-hot rows, of which `features` are made; the steps take sparse ones."""
        return self.one_hot(z).toarray()

    def log_table(self, coef, z):
        table = self.one_hot(z) @ coef[:, :-1].T.astype(z.dtype, copy=False)
        table += coef[:, -1].astype(z.dtype, copy=False)
        return table

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        super().summarise(self.one_hot(z), shares, s, coef=coef, sparse=sparse)

    def _share(self, coef, z, how):
        super()._share(coef, self.one_hot(z), how)

    # ------------------------------------------------------------------ components

    def log_predictive(self, prior, s, z):
        return super().log_predictive(prior, s, self.one_hot(z))

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; each pair takes a few numbers for each column, however many categories."""
        out = self.log_predictive(prior, s, z)
        of_columns = np.add.reduceat(s[:, :-1], self.starts, axis=1)
        pseudo = np.add.reduceat(prior.lam, self.starts)
        for i, k, r in pairs_with_shares(shares, len(self.sizes)):
            codes, less = z[i], r[:, np.newaxis]
            seen = codes == codes
            place = np.where(seen, codes, 0.0).astype(np.intp) + self.starts
            change = log_ratio(s[k[:, np.newaxis], place], prior.lam[place], less)
            change -= log_ratio(of_columns[k], pseudo, less)
            out[i, k] += np.sum(change, axis=1, where=seen)
        return out

    def change_without(self, prior, s, k, z, i, r):
        return super().change_without(prior, s, k, self.one_hot(z), i, r)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """The points of dense one-hot rows; of many rows, projections whose distances are nearly the same."""
        rows, V = self.one_hot(z), self.n_kernel_columns
        if not whiten:
            return points_of_counts(rows, lambda x, column: x, np.zeros(V))
        root = np.sqrt(self._means(prior, s))
        ends = np.append(self.starts, V)
        of_columns = csr_array((-root, np.arange(V), ends), shape=(len(self.sizes), V))
        return points_of_counts(
            rows,
            lambda x, column: x / root[column],
            of_columns,
            row_base=(z == z).astype(np.float64),
        )
