"""Columns of categories, and blocks of columns side by side, from rows and weights.

Source of the Dirichlet's expectations: C. M. Bishop, Pattern Recognition and Machine Learning (2006),
App. B.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln


class DirichletCategories:
    """Columns of categories, each with a Dirichlet prior, from one-hot rows, column after column.

    The posterior is a list of the pseudo-counts of each column; a block of zeros is an entry that
    is missing.
    """

    def __init__(self, lam, sizes):
        self.edges = np.cumsum(sizes)[:-1]
        self.prior = self.columns(np.asarray(lam, dtype=float))

    def columns(self, values):
        """What belongs to each column, of pseudo-counts or of prepared rows."""
        return np.split(values, self.edges, axis=-1)

    def posterior(self, z, weight):
        return [lam + weight @ x for lam, x in zip(self.prior, self.columns(z), strict=True)]

    @staticmethod
    def _log_beta(params):
        """Log normaliser of the Dirichlet densities."""
        return sum(gammaln(lam).sum() - gammaln(lam.sum()) for lam in params)

    def evidence(self, z, weight):
        return self._log_beta(self.posterior(z, weight)) - self._log_beta(self.prior)

    def expected_log_lik(self, q, z):
        out = np.zeros(len(z))
        for lam, x in zip(q, self.columns(z), strict=True):
            out += x @ (digamma(lam) - digamma(lam.sum()))
        return out

    def divergence(self, q):
        """KL between Dirichlet densities, summed over columns."""
        out = self._log_beta(self.prior) - self._log_beta(q)
        for lam, prior in zip(q, self.prior, strict=True):
            out += (digamma(lam) - digamma(lam.sum())) @ (lam - prior)
        return out

    def log_predictive(self, q, z):
        out = np.zeros(len(z))
        for lam, x in zip(q, self.columns(z), strict=True):
            for n, row in enumerate(x):
                out[n] += np.sum(row * np.log(lam / lam.sum()))
        return out


class CodedCategories(DirichletCategories):
    """The same from codes (n, D), where a missing entry is NaN."""

    def __init__(self, lam, sizes):
        self.sizes = sizes
        super().__init__(lam, sizes)

    def columns(self, values):
        if values.ndim == 1:  # pseudo-counts
            return super().columns(values)
        each = zip(values.T, self.sizes, strict=True)
        return [(x[:, np.newaxis] == np.arange(size)).astype(float) for x, size in each]


class SideBySide:
    """Twins of blocks of columns, each for its own columns of prepared rows.

    Priors and posteriors are lists of the twins' own.
    """

    def __init__(self, twins, widths):
        self.twins, self.edges = twins, np.cumsum(widths)[:-1]
        self.prior = [twin.prior for twin in twins]

    def parts(self, z):
        """Pairs of twins and their columns of rows."""
        return zip(self.twins, np.split(z, self.edges, axis=1), strict=True)

    def posterior(self, z, weight):
        return [twin.posterior(x, weight) for twin, x in self.parts(z)]

    def evidence(self, z, weight):
        return sum(twin.evidence(x, weight) for twin, x in self.parts(z))

    def expected_log_lik(self, q, z):
        return sum(
            twin.expected_log_lik(own, x) for (twin, x), own in zip(self.parts(z), q, strict=True)
        )

    def divergence(self, q):
        return sum(twin.divergence(own) for twin, own in zip(self.twins, q, strict=True))

    def log_predictive(self, q, z):
        return sum(
            twin.log_predictive(own, x) for (twin, x), own in zip(self.parts(z), q, strict=True)
        )
