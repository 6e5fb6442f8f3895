"""A prior of mixture weights of one's own: a finite mixture whose number of components is Poisson.

``K - 1`` has a Poisson distribution, and given K the weights have a symmetric Dirichlet distribution (a
"mixture of finite mixtures"). ``doc/add_a_prior_of_weights.rst`` goes through it.

    python examples/own_prior.py
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.utils._param_validation import Interval

from sklearn_bnp import DPMixtureVB, MixtureAllocation

POSITIVE = Interval(Real, 0, None, closed="neither")


class PoissonAllocation(MixtureAllocation):
    """Finite mixtures with a Poisson prior of their number of components.

    Parameters
    ----------
    rate : float, default=1.0
        Expected number of components beyond the first.
    concentration : float, default=1.0
        Parameter of the Dirichlet distribution, for each component.
    """

    _parameter_constraints = {"rate": [POSITIVE], "concentration": [POSITIVE]}

    def __init__(self, rate=1.0, concentration=1.0):
        self.rate = rate
        self.concentration = concentration

    def elbo(self, n):
        """``log p(K)``, plus the term of a Dirichlet distribution over K components."""
        present, a = ~np.isnan(n), self.concentration
        K, total = present.sum(axis=-1), np.nansum(n, axis=-1)
        log_p = (K - 1) * np.log(self.rate) - self.rate - gammaln(K)
        each = np.where(present, gammaln(a + np.nan_to_num(n)) - gammaln(a), 0.0)
        return log_p + each.sum(axis=-1) + gammaln(K * a) - gammaln(K * a + total)

    def expected_log_weights(self, n):
        """The posterior is a Dirichlet distribution with parameters ``concentration + n``."""
        a = self.concentration + n
        return digamma(a) - digamma(a.sum())

    def weights(self, n):
        a = self.concentration + n
        return a / a.sum()


def clusters(n_rows, rng):
    """Two large clusters, and a few rows of a third one at the edge of the first."""
    labels = rng.choice(3, size=n_rows, p=[0.6, 0.39, 0.01])
    return rng.normal(np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 3.5]])[labels])


def main():
    X = clusters(600, np.random.default_rng(0))
    for rate in (1e-3, 1.0, 10.0):
        model = DPMixtureVB(allocation=PoissonAllocation(rate), random_state=0).fit(X)
        shown = ", ".join(f"{weight:.3f}" for weight in model.weights_)
        print(f"rate {rate:<6g} K={model.n_components_}  ELBO {model.lower_bound_:.1f}  {shown}")


if __name__ == "__main__":
    main()
