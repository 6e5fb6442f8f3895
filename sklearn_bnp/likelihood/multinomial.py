"""Counts of symbols, such as words of documents, with Dirichlet priors.

Design note
-----------
(a) A row is a bag of tokens of V types. Its probability is that of its tokens in one given order, times the
    multinomial coefficient. The coefficient depends on no component and changes no decision, so it is in
    ``log_base``: the objective is a bound for ordered tokens, and only `score_samples` is for bags.
(b) Every step takes lnGamma or psi of all counts and pseudo-counts. `_kernels._counts` computes them in
    vectors, on the rows of statistics as they are.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.utils._param_validation import StrOptions

from .._kernels._counts import (
    digamma_rows,
    exp_digamma_table,
)
from .base import Likelihood, ObservationModel
from .counts import (
    checked_counts,
    distinct_entries,
    log_rise,
    log_rise_of_totals,
    log_rising_factorials,
    log_rising_factorials_of_pairs,
    nonzeros_of_rows,
    points_of_counts,
    statistics_as_rows,
    sum_log_factorials,
    sums_over_entries,
    types_that_occur,
)
from .dirichlet import (
    alone,
    dirichlet_evidence,
    dirichlet_prior,
    first_prior,
    learned,
    with_one_rest,
)
from .leaving_out import pairs_with_shares
from .limits import LEAST, MOST, are_within, as_numbers
from .row_kernels import SparseRows


class MultinomialObservation(ObservationModel):
    """Counts of types; each component has a distribution over the types.

    A row holds how often each of ``n_features`` types occurs: words of a document, species at a
    site, purchases of a customer. Rows may differ in their total, which is taken as given, and may be
    all zero.

    Rows may be sparse (CSR), as from ``CountVectorizer``. They stay sparse, and zeros cost nothing.

    Parameters
    ----------
    prior : float, array-like of shape (n_features,) or "auto", default=0.2
        Pseudo-count > 0 of each type in the Dirichlet prior. The smaller it is, the fewer types a
        component is expected to use. With ``"auto"``, pseudo-counts are ``a + b p`` with the relative
        frequencies p of the types in the data. The evidence of the components learns a and b.

    Notes
    -----
    `score_samples` gives the log probability of the counts. The objective (``lower_bound_``) leaves out the
    multinomial coefficient, which depends on no parameter: as is usual for topic models, it is a bound of the
    probability of the tokens in a given order.

    References
    ----------
    Hughes (2016), Sec. 2.2.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, MultinomialObservation
    >>> model = DPMixtureVB(observation=MultinomialObservation(prior=0.5))
    """

    _parameter_constraints = {"prior": [Real, "array-like", StrOptions({"auto"})]}

    def __init__(self, prior: Any = 0.2) -> None:
        self.prior = prior

    takes_sparse = takes_words = zeros_say_nothing = True

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        mean = moments.mean * moments.magnitude
        if isinstance(self.prior, str) and self.prior == "auto":
            prior = first_prior(mean, streaming=streaming)
            return MultinomialLikelihood(prior, float(mean.sum()))
        lam = as_numbers(self.prior, len(mean))
        if not are_within(lam):
            raise ValueError(
                f"prior={self.prior!r} must be a number from {LEAST:g} to {MOST:g}, the pseudo-count of each "
                f"type, or an array of {len(mean)} of them, or 'auto'."
            )
        return MultinomialLikelihood(dirichlet_prior(lam), float(mean.sum()))


class MultinomialLikelihood(SparseRows, Likelihood):
    """``s(x) = [x, 1]``; the evidence is a ratio of multivariate Beta functions.

    Parameters
    ----------
    prior : DirichletPrior
        Prior of each component's distribution.
    n_tokens : float
        Mean total of a row, which is the total of rows that are drawn.
    learns : bool, default=True
        Whether a prior whose parts are known is learned.
    """

    words = fast_unions = joins_types = adapts_late = True
    standardised = False

    def __init__(self, prior, n_tokens, *, learns=True):
        self.prior = prior
        self.n_features = len(prior.lam)
        self.n_tokens = n_tokens
        self.adapts_prior = learns and prior.about is not None

    def with_one_rest(self, prior, types):
        """The family in which all types but some ``types`` (U,) are one type, the last, and its prior.

        It is for data in which no other type occurs. Statistics are the counts of these types, a zero, and
        the number of rows. Their evidence and coefficients are the same as in the whole vocabulary.
        """
        own = with_one_rest(self.prior, types)
        family = type(self)(own, self.n_tokens, learns=self.adapts_prior)
        return family, with_one_rest(prior, types)

    def learning_nothing(self):
        """A likelihood of this family whose prior stays as it is."""
        return type(self)(self.prior, self.n_tokens, learns=False)

    def expected_rows(self, attributes, shares):
        """Rows of as many tokens as the rows of the data had on average."""
        return self.n_tokens * super().expected_rows(attributes, shares)

    def prepare(self, x):
        return checked_counts(
            x, "multinomial", "give raw counts, as from CountVectorizer (not frequencies or tf-idf)"
        )

    def prepare_means(self, means):
        """Counts of rows of mean total; means may be proportions as well as counts."""
        if not (np.all(means >= 0) and np.all(means.sum(axis=1) > 0)):
            raise ValueError(
                "means_init must hold counts or proportions: zero or more, and not all zero in a row."
            )
        scale = max(self.n_tokens, 1.0) / means.sum(axis=1, keepdims=True)
        return np.ascontiguousarray(means * scale, dtype=np.float64)

    def evidence(self, prior, s):
        rows = statistics_as_rows(s)
        rising = log_rising_factorials(rows, prior.lam)
        return dirichlet_evidence(prior, rising, rows[:, :-1].sum(axis=1)).reshape(s.shape[:-1])

    def union_evidence(self, prior, s, first, second):
        """Evidence (M,) of unions of components; see `Likelihood`."""
        rows, lam = statistics_as_rows(s), prior.lam
        total = rows[:, :-1].sum(axis=1)
        first, second = (np.ascontiguousarray(pairs, dtype=np.intp) for pairs in (first, second))
        some = types_that_occur(rows, self.n_features)
        if some is not None:  # no other adds anything
            rows, lam = np.ascontiguousarray(rows[:, some]), lam[some]
        rising = log_rising_factorials_of_pairs(rows, lam, first, second)
        return dirichlet_evidence(prior, rising, total[first] + total[second])

    def coefficients(self, prior, s):
        """``E[log phi_kv] = psi(lam_v + S_kv) - psi(sum_v lam_v + S_kv)``; the last coefficient is 0."""
        out = np.zeros(s.shape)
        digamma_rows(statistics_as_rows(s), prior.lam, out, 1)
        return out

    def word_table(self, prior, s):
        """``exp E[log phi_kv]`` as a table (V, K); see `Likelihood`."""
        table = np.empty((self.n_features, len(s)))
        exp_digamma_table(statistics_as_rows(s), prior.lam, table, 1)
        return table

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior:
            return prior
        return learned(prior, statistics_as_rows(s), n_iter)

    def prior_alone(self, prior, s):
        return alone(prior, statistics_as_rows(s)) if self.adapts_prior else prior

    def prior_distance(self, old, new):
        """Mean change of the logarithms of the pseudo-counts, in which each counts as often as its type."""
        return np.dot(new.lam, np.abs(np.log(new.lam / old.lam))) / new.total

    def leaving_out_work(self, z):
        return len(distinct_entries(z).values)

    def log_predictive(self, prior, s, z):
        a = prior.lam + s[:, :-1]
        out = sums_over_entries(
            z, lambda column, values: log_rise(a[:, column].T, values[:, np.newaxis])
        )
        n_tokens = z.sum(axis=1, dtype=np.float64)[:, np.newaxis]
        return out - log_rise_of_totals(a.sum(axis=1), n_tokens)

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; the pseudo-count of each type loses what the component has of its count."""
        out, total = self.log_predictive(prior, s, z), s[:, :-1].sum(axis=1)
        for i, k, r in pairs_with_shares(shares, self.n_statistics):
            pair, column, x = nonzeros_of_rows(z, i)
            left = np.maximum(s[k[pair], column] - r[pair] * x, 0.0)
            rises = log_rise(prior.lam[column] + left, x)
            n_tokens = np.bincount(pair, x, minlength=len(r))
            left = np.maximum(total[k] - r * n_tokens, 0.0)
            out[i, k] = np.bincount(pair, rises, minlength=len(r))
            out[i, k] -= log_rise(prior.total + left, n_tokens)
        return out

    def log_probability(self, prior, s, z):
        return super().log_probability(prior, s, z) + self.log_base(z)

    def log_base(self, x):
        return gammaln(x.sum(axis=1, dtype=np.float64) + 1.0) - sum_log_factorials(x)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Square roots of smoothed proportions, whose distances are Hellinger's; or residuals.

        Proportions are smoothed by a prior of the same strength about those of the component, so that
        short rows lie near the component. The Kullback-Leibler divergence is about twice the squared
        Hellinger distance. With ``whiten`` false, points are Pearson's residuals of the proportions, in
        which types that are rare in the component count for more.
        """
        p = (prior.lam + s[:-1]) / (prior.total + s[:-1].sum())
        n_tokens = z.sum(axis=1, dtype=np.float64)[:, np.newaxis]
        scale = np.sqrt((2.0 if whiten else 0.5) * max(n_tokens.mean(), 1.0))
        if whiten:
            added, root = prior.total * p, np.sqrt(prior.total * p)
            return points_of_counts(
                z, lambda x, column: np.sqrt(x + added[column]) - root[column], root,
                row_scale=scale / np.sqrt(n_tokens + prior.total),
            )  # fmt: skip
        root = np.sqrt(p)
        return points_of_counts(
            z, lambda x, column: x / root[column], root,
            row_base=-n_tokens, row_scale=scale / (n_tokens + prior.total),
        )  # fmt: skip

    def attributes(self, prior, s):
        a = prior.lam + s[:, :-1]
        log_p = self.coefficients(prior, s)[:, :-1].copy()
        return {
            "means_": a / a.sum(axis=1, keepdims=True),
            "components_": a,
            "exp_dirichlet_component_": np.exp(log_p),
        }

    def sample(self, attributes, labels, rng):
        """Rows of mean total."""
        n_tokens, out = round(self.n_tokens), np.empty((len(labels), self.n_features))
        for k in np.unique(labels):
            rows = np.flatnonzero(labels == k)
            out[rows] = rng.multinomial(n_tokens, attributes["means_"][k], size=len(rows))
        return out
