"""Counts that vary more than Poisson counts: a negative binomial distribution for each column.

The model of a count x of column d in component k is
``p(x) = Gamma(r_d + x) / (Gamma(r_d) x!) p_kd^x (1 - p_kd)^r_d``. Its mean is ``m = r_d p_kd / (1 -
p_kd)``, and its variance ``m + m^2 / r_d``. All components share the size r_d of a column.

Design note
-----------
(a) With a Beta(a, b) prior, the posterior of p_kd is ``Beta(a_d + S_kd, b_d + N_k r_d)``, where S_kd is the
    sum of counts. So ``s(x) = [x, 1]`` is enough for shares and posteriors.
(b) Sizes are part of the prior, and empirical Bayes sets them: they maximise the objective of all data.
    This needs the sum over all rows of ``lnGamma(r + x) - lnGamma(r)`` for any r. It is kept as sums that
    are statistics like others (``size_sums.py``, ``entry_sums.py``), so that trials compare components
    under the sizes that suit them: under the size that suits one component alone, clusters are hard to tell
    apart.
(c) As for Poisson rates, a is 1 unless the user gives a prior, and b is found by empirical Bayes. Then
    ``log(1 + m / r)`` has an exponential prior with the rate b. For large sizes, this is the exponential
    prior of Poisson rates. Size and b are strongly correlated there, so a step changes both.
(d) The factor ``1 / x!`` is in ``log_base``, as it is for `PoissonObservation`. So objectives of both
    families can be compared: with a size without limit, this is the Poisson family.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.special import digamma, polygamma

from .base import LastPrior, Likelihood, ObservationModel
from .counts import (
    ColumnsOfCounts,
    checked_counts,
    checked_means,
    digammas,
    distinct_entries,
    log_rise,
    log_rising_factorials,
    pair_of_priors,
    points_of_counts,
    statistics_as_rows,
    sum_log_factorials,
    sums_over_entries,
)
from .entry_sums import EntrySums
from .leaving_out import pairs_with_shares
from .limits import are_within, as_numbers
from .missing import columns_of
from .size_sums import LEAST_SIZE, MOST_SIZE, GivenSizes, LearnedSizes

_DEFAULT_A = 1.0
# Limits of sizes that are given: beyond, sums of lnGamma lose what tells counts apart.
_GIVEN_SIZES = (1e-6, 1e9)
# Limits of b, for each unit of the size where this is more than 1: a column of zeros would drive b to
# infinity.
_SCALE_RANGE = (1e-6, 1e6)
# A step changes the logarithms of size and b by so much at the most, and is halved so often if it does not
# help.
_LONGEST_STEP, _HALVINGS = 2.0, 8
# From here on, four terms of the asymptotic series of psi are as exact as doubles are.
_LARGE = 200.0
# What is within this factor of a limit is at the limit.
_AT = 1.0 + 1e-9
# A shorter step is taken in any case, as what it gains is lost in rounding. One that is much shorter is none.
_SHORT_STEP, _NO_STEP = 1e-5, 1e-10


class NegativeBinomialPrior(NamedTuple):
    """Pseudo-counts ``a`` and ``b`` of the Beta prior, and sizes ``r``, each (D,)."""

    a: np.ndarray
    b: np.ndarray
    r: np.ndarray


class NegativeBinomialObservation(ObservationModel):
    """Independent columns of counts that vary more than Poisson counts.

    Each component has a mean for each column. The variance of a count with mean m is ``m + m ** 2 / size``.
    All components share the size of a column. Use this model instead of `PoissonObservation` if counts vary
    more within clusters than their means explain, as counts of transcripts, individuals of a species,
    purchases and visits do: a mixture of Poisson components would split such clusters.

    Rows may be sparse (CSR). They stay sparse.

    Parameters
    ----------
    size : float, array-like of shape (n_features,) or {"auto"}, default="auto"
        How many successes the negative binomial distribution waits for, from 1e-6 to 1e9; one number for
        all columns, or one for each. The smaller it is, the more counts vary. With ``"auto"``, the sizes of
        columns maximise the objective (empirical Bayes), from 0.001 to 10000.
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Pseudo-counts (a, b) > 0 of the Beta prior of ``mean / (mean + size)``. If None, a is 1, and b
        maximises the objective, column by column.

    Notes
    -----
    Fitted estimators have ``means_`` and ``sizes_``, both of shape (n_components, n_features). All rows of
    ``sizes_`` are equal. The inverse of a size is often called the dispersion.

    `score_samples` gives the log probability of the counts. The objective (``lower_bound_``) leaves out
    ``-log x!``, which depends on no parameter. It can be compared with that of `PoissonObservation`, which
    is the limit of large sizes. Entries that are missing (NaN) are integrated out.

    References
    ----------
    J. F. Lawless, Negative binomial and mixed Poisson regression, Canadian Journal of Statistics 15, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB
    >>> rng = np.random.default_rng(0)
    >>> p = [4 / (4 + mean) for mean in (2, 12, 80)]
    >>> X = np.concatenate([rng.negative_binomial(4, p[k], size=(200, 5)) for k in range(3)])
    >>> model = DPMixtureVB(observation="negative_binomial", random_state=0).fit(X)
    >>> model.n_components_
    3
    """

    _parameter_constraints = {"size": "no_validation", "prior": "no_validation"}  # ours say more

    def __init__(self, size: float | ArrayLike | str = "auto", *, prior: Any = None) -> None:
        self.size = size
        self.prior = prior

    takes_sparse = allows_missing = True

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        mean = moments.mean * moments.magnitude
        learns_size = isinstance(self.size, str) and self.size == "auto"
        r = _size_of_all(moments) if learns_size else self._given_size(len(mean))
        if self.prior is None:
            a = np.full(mean.shape, _DEFAULT_A)
            b = a / np.log1p(np.maximum(mean, 1.0 / moments.n_rows) / r)
            b = np.clip(b, *_range_of_scales(r))
        else:
            a, b = pair_of_priors(self.prior, len(mean))
        return NegativeBinomialLikelihood(
            NegativeBinomialPrior(a, b, r), columns_of(moments),
            learns_size=learns_size, learns_scale=self.prior is None,
        )  # fmt: skip

    def _given_size(self, n_features):
        r = as_numbers(self.size, n_features)
        if not are_within(r, *_GIVEN_SIZES) or np.shape(self.size) not in ((), (n_features,)):
            least, most = _GIVEN_SIZES
            raise ValueError(
                f"size={self.size!r} must be 'auto', a number from {least:g} to {most:g}, or {n_features} of "
                "them, one for each column."
            )
        return r


def _size_of_all(moments):
    """Sizes (D,) that suit one component, from the means and variances of columns."""
    mean, variance = moments.mean * moments.magnitude, moments.variance * moments.magnitude**2
    extra = np.maximum(variance - mean, 0.0)
    ratio = np.divide(mean**2, extra, out=np.full(mean.shape, MOST_SIZE), where=extra > 0)
    return np.clip(ratio, 0.1, MOST_SIZE / 10.0)


def _range_of_scales(r):
    """The least and the greatest b (D,) for sizes (D,)."""
    return _SCALE_RANGE[0], _SCALE_RANGE[1] * np.maximum(r, 1.0)


class NegativeBinomialLikelihood(EntrySums, ColumnsOfCounts):
    """Statistics are sums for the sizes, ``x`` and 1; see the module's note.

    Parameters
    ----------
    prior : NegativeBinomialPrior
    columns : CompleteColumns or IncompleteColumns, default=None
        As for `ColumnsOfCounts`.
    learns_size, learns_scale : bool
        Whether empirical Bayes sets the sizes, and b.
    """

    fast_unions = True

    def __init__(self, prior, columns=None, *, learns_size, learns_scale):
        super().__init__(prior, columns)
        self.learns_size, self.learns_scale = learns_size, learns_scale
        self.adapts_prior = learns_size or learns_scale
        self.sizes = LearnedSizes() if learns_size else GivenSizes(prior.r)
        self._last_factors = LastPrior()

    # ------------------------------------------------------------------ rows

    @property
    def n_sums(self):
        return self.sizes.n_sums

    def entry_sums(self, column, x):
        return self.sizes.of_counts(column, x)

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with missing entries."""
        plain = super().from_complete(self.plain(s))
        return np.concatenate([s[..., : self.n_entry_sums], plain], axis=-1)

    def prepare(self, x):
        x = self.columns.dense(x)
        return checked_counts(x, "negative_binomial", "give raw counts (not rates or frequencies)")

    def prepare_means(self, means):
        return checked_means(means, "means of counts")

    def log_base(self, x):
        return -sum_log_factorials(self.columns.filled(x))

    def _factors(self, prior):
        """Factors (D * n_sums,) of the sums for the sizes."""
        return self._last_factors(lambda prior: self.sizes.factors(prior.r).reshape(-1), prior)

    # ------------------------------------------------------------------ components

    def _posterior(self, prior, s):
        """Pseudo-counts given statistics (..., P); both (..., D)."""
        s = self.plain(s)
        return prior.a + self.columns.values(s), prior.b + self.columns.counts(s) * prior.r

    def means(self, prior, s):
        a, b = self._posterior(prior, s)
        return prior.r * a / b

    def evidence(self, prior, s):
        plain = self._plain_evidence(prior, statistics_as_rows(self.plain(s)))
        return plain.reshape(s.shape[:-1]) + self._entry_evidence(prior, s)

    def union_evidence(self, prior, s, first, second):
        """Evidence (M,) of unions; the part of the sizes adds up. See `Likelihood`."""
        plain = statistics_as_rows(self.plain(s))
        entries = self._entry_evidence(prior, s)
        both = self._plain_evidence(prior, plain[first] + plain[second])
        return both + entries[first] + entries[second]

    def _entry_evidence(self, prior, s):
        """The part (...) of the evidence that is linear in the sums for the sizes."""
        return s[..., : self.n_entry_sums] @ self._factors(prior)

    def _plain_evidence(self, prior, rows):
        """``sum_d lnB(a + s_d, b + n r) - lnB(a, b)`` of statistics (K, P') without these sums."""
        out = log_rising_factorials(rows, prior.a)
        out += log_rise(prior.b, prior.a).sum()
        a = prior.a + self.columns.values(rows)
        b = np.broadcast_to(prior.b + self.columns.counts(rows) * prior.r, a.shape)
        out -= log_rise(b, a).sum(axis=1)
        return out

    def coefficients(self, prior, s):
        """``E[log p_kd]`` of counts, ``r_d E[log(1 - p_kd)]`` of each entry, and factors of the sums."""
        a, b = self._posterior(prior, s)
        out = np.empty(s.shape)
        out[:, : self.n_entry_sums] = self._factors(prior)
        plain = np.zeros(self.plain(s).shape)
        values = np.ascontiguousarray(self.columns.values(self.plain(s)))
        self.columns.values(plain)[...] = digammas(values, prior.a) - digamma(a + b)
        self.columns.put(plain, -prior.r * _digamma_rise(np.broadcast_to(b, a.shape), a))
        self.plain(out)[...] = plain
        return out

    def attributes(self, prior, s):
        return {"means_": self.means(prior, s), "sizes_": np.tile(prior.r, (len(s), 1))}

    def sample(self, attributes, labels, rng):
        sizes, means = attributes["sizes_"][labels], attributes["means_"][labels]
        return rng.negative_binomial(sizes, sizes / (sizes + means)).astype(float)

    # ------------------------------------------------------------------ densities

    def log_predictive(self, prior, s, z):
        """Beta negative binomial probabilities without the factorials of `log_base`; zeros are skipped."""
        a, b = self._posterior(prior, s)
        r = np.broadcast_to(prior.r, a.shape)
        zero = _log_zero(a, b, r)
        above = a + b + r

        def gains(column, x):
            x = x[:, np.newaxis]
            return log_rise(a[:, column].T, x) - log_rise(above[:, column].T, x)

        out = sums_over_entries(self.columns.filled(z), gains) + self.columns.total(zero, z)
        return out + self._size_term(prior, z)

    def _size_term(self, prior, z):
        """``sum_d lnGamma(r_d + x_d) - lnGamma(r_d)`` of rows as in the objective, (n, 1)."""
        coef = np.zeros((1, self.n_statistics))
        coef[:, : self.n_entry_sums] = self._factors(prior)
        return self.entry_table(coef, z)

    def leaving_out_work(self, z):
        """One for each pair of a column and a count; of sparse rows, zeros count too. See `Likelihood`."""
        if issparse(z):
            return z.shape[0] * z.shape[1]
        return len(distinct_entries(self.columns.filled(z)).values)

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; pseudo-counts lose the share of the entry's value, and of the size."""
        out, size = self.log_predictive(prior, s, z), self._size_term(prior, z)[:, 0]
        a, b = self._posterior(prior, s)
        for i, k, share in pairs_with_shares(shares, self.n_features):
            own = z[i].toarray() if issparse(z) else z[i]
            share = share[:, np.newaxis]
            x, r = self.columns.filled(own).astype(float, copy=False), prior.r
            if self.has_missing:
                r = np.where(np.isnan(own), 0.0, r)
            r = np.broadcast_to(r, x.shape)
            less_a = np.maximum(a[k] - share * x, prior.a)
            less_b = np.maximum(b[k] - share * r, prior.b)
            ratio = log_rise(less_a, x) - log_rise(less_a + less_b + r, x)
            out[i, k] = size[i] + (ratio + _log_zero(less_a, less_b, r)).sum(axis=1)
        return out

    def log_probability(self, prior, s, z):
        return super().log_probability(prior, s, z) + self.log_base(z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Areas of hyperbolic sines of square roots, whose variance is about 1 at any mean; or residuals.

        They are Anscombe's for large sizes, and logarithms for small ones. In Pearson's residuals
        (``whiten`` false), columns that are rare in the component count for more.
        """
        z = self.imputed(prior, s, z)
        if whiten:
            r, scale = prior.r, 2.0 / np.sqrt(polygamma(1, prior.r))
            least = scale * np.arcsinh(np.sqrt(0.375 / r))

            def change(x, column):
                return scale[column] * np.arcsinh(np.sqrt((x + 0.375) / r[column])) - least[column]

            return points_of_counts(z, change, least)
        means = self.means(prior, s[np.newaxis])[0]
        deviation = np.sqrt(means + means**2 / prior.r)
        return points_of_counts(z, lambda x, column: x / deviation[column], -means / deviation)

    # ------------------------------------------------------------------ empirical Bayes

    def update_prior(self, prior, s, n_iter):
        """Newton steps for the logarithms of sizes and of b; see (b) and (c) in the module's note."""
        if not self.adapts_prior or len(s) == 0:
            return prior
        columns = _Columns.of(self, s)
        says_nothing = columns.total.sum(axis=0) == 0
        fixed = np.array([not self.learns_size, not self.learns_scale])[:, np.newaxis]
        fixed = fixed | says_nothing
        value = columns.value(self.sizes, prior)
        for _ in range(n_iter):
            step = columns.step(self.sizes, prior, fixed)
            for _ in range(_HALVINGS):
                if np.abs(step).max() < _NO_STEP:
                    break
                moved = _moved(prior, step)
                new = columns.value(self.sizes, moved)
                taken = (new > value) | (np.abs(step).max(axis=0) < _SHORT_STEP)
                prior = prior._replace(
                    b=np.where(taken, moved.b, prior.b), r=np.where(taken, moved.r, prior.r)
                )
                value, step = np.where(taken, new, value), np.where(taken, 0.0, step / 2.0)
        return prior

    def prior_distance(self, old, new):
        """Mean changes of logarithms of the sizes, and of the means that the prior expects."""
        size = np.abs(np.log(new.r / old.r))
        scale = np.abs(np.log(new.b / new.r) - np.log(old.b / old.r))
        return max(np.mean(size), np.mean(scale))


def _log_zero(a, b, r):
    """``lnB(a, b + r) - lnB(a, b)``: log probabilities of a count of zero, of arrays of one shape.

    The smaller one of a and r is added last, so that large terms do not cancel.
    """
    less, more = np.minimum(a, r), np.maximum(a, r)
    return log_rise(b, less) - log_rise(b + more, less)


def _moved(prior, step):
    """The prior after a step (2, D) of the logarithms of sizes and of b, which stays within limits."""
    r = prior.r
    if step[0].any():
        r = np.where(step[0] == 0.0, r, np.clip(r * np.exp(step[0]), LEAST_SIZE, MOST_SIZE))
    b = np.where(step[1] == 0.0, prior.b, np.clip(prior.b * np.exp(step[1]), *_range_of_scales(r)))
    return prior._replace(b=b, r=r)


class _Columns(NamedTuple):
    """Sums over rows, from which the evidence of each column is found for any sizes and b.

    Attributes
    ----------
    total, n : ndarray, shapes (K, D)
        Sums of counts, and numbers of rows that show the column.
    sums : ndarray, shape (D, n_sums)
        Sums for the sizes, of all components.
    """

    total: np.ndarray
    n: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, likelihood, s):
        """The `_Columns` of components with statistics ``s`` (K, P)."""
        plain = likelihood.plain(s)
        total = np.ascontiguousarray(likelihood.columns.values(plain))
        n = np.array(np.broadcast_to(likelihood.columns.counts(plain), total.shape))
        return cls(total, n, likelihood.sums(s).sum(axis=0))

    def value(self, sizes, prior):
        """The evidence of each column (D,), but for terms of its ``a`` alone."""
        a, b = prior.a + self.total, prior.b + self.n * prior.r
        out = np.einsum("dj,dj->d", self.sums, sizes.factors(prior.r))
        out += len(a) * log_rise(prior.b, prior.a)
        return out - log_rise(b, a).sum(axis=0)

    def step(self, sizes, prior, fixed):
        """A step (2, D) of the logarithms of r and b, Newton's where the evidence is concave.

        Those that are ``fixed`` (2, D) stay as they are, and those at a limit that would go beyond it.
        """
        r, b0 = prior.r, prior.b
        a, b = prior.a + self.total, prior.b + self.n * r
        one, two = -_digamma_rise(b, a), _trigamma(b) - _trigamma(a + b)
        slope, curve = np.zeros((2, len(r))), np.zeros((2, 2, len(r)))
        slope[1] = b0 * (one.sum(axis=0) + len(a) * _digamma_rise(b0, prior.a))
        curve[1, 1] = two.sum(axis=0) - len(a) * (_trigamma(b0) - _trigamma(prior.a + b0))
        curve[1, 1] = b0**2 * curve[1, 1] + slope[1]
        if not fixed[0].all():
            first, second = sizes.slopes(self.sums, r)
            slope[0] = r * (first + np.einsum("kd,kd->d", self.n, one))
            curve[0, 0] = r**2 * (second + np.einsum("kd,kd->d", self.n**2, two)) + slope[0]
            curve[0, 1] = curve[1, 0] = r * b0 * np.einsum("kd,kd->d", self.n, two)
        least, most = _range_of_scales(r)
        at_least = np.array([r <= LEAST_SIZE * _AT, b0 <= least * _AT])
        at_most = np.array([r * _AT >= MOST_SIZE, b0 * _AT >= most])
        fixed = fixed | (at_least & (slope < 0)) | (at_most & (slope > 0))
        slope[fixed] = 0.0
        curve[0, 0][fixed[0]] = curve[1, 1][fixed[1]] = -1.0
        curve[0, 1][fixed.any(axis=0)] = curve[1, 0][fixed.any(axis=0)] = 0.0
        step = _ascent(slope, curve)
        # along a step that is cut short at a limit, the other number would go too far
        limit = np.array(
            [np.where(step[0] > 0, MOST_SIZE, LEAST_SIZE), np.where(step[1] > 0, most, least)]
        )
        room = np.abs(np.log(limit) - np.log([r, b0]))
        return step * np.min(np.minimum(1.0, room / np.maximum(np.abs(step), 1e-300)), axis=0)


def _digamma_rise(b, a):
    """``psi(b + a) - psi(b)``, with no cancellation where b is large; both arrays of one shape."""
    y = np.maximum(b, _LARGE)
    z = y + a
    # differences of the terms of the asymptotic series, DLMF 5.11.2
    rise = np.log1p(a / y) + a / (2.0 * y * z) + (1.0 / y**2 - 1.0 / z**2) / 12.0
    rise -= (1.0 / y**4 - 1.0 / z**4) / 120.0
    return np.where(b < _LARGE, digamma(b + a) - digamma(b), rise)


def _trigamma(x):
    return polygamma(1, x)


def _ascent(slope, curve):
    """A step (2, D) uphill, from slopes (2, D) and second derivatives (2, 2, D)."""
    values, axes = np.linalg.eigh(np.moveaxis(curve, -1, 0))
    # along an axis in which the function is convex, the step is as if it were concave
    along = np.einsum("dij,id->dj", axes, slope) / np.maximum(np.abs(values), 1e-12)
    step = np.ascontiguousarray(np.einsum("dij,dj->id", axes, along))
    longest = np.abs(step).max(axis=0)
    return step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))
