"""A likelihood of one's own: counts with Gamma priors, outside the package.

Column d of a row of component k is Poisson with rate ``lambda_kd``, and the rates have Gamma priors
of shape ``a_d`` and inverse scale ``b_d``. ``doc/add_a_likelihood.rst`` goes through it. To cluster
counts, take `sklearn_bnp.PoissonObservation`.

    python examples/poisson_likelihood.py
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.observation import Likelihood, ObservationModel

# A column of zeros alone would drive b to infinity.
_SCALE_RANGE = (1e-6, 1e6)


class GammaPrior(NamedTuple):
    """Shapes ``a`` and inverse scales ``b`` of the rates, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class PoissonObservation(ObservationModel):
    """Independent counts, each component with a rate for every column.

    Parameters
    ----------
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Shape a and inverse scale b > 0 of the Gamma prior. If None, a is 1 and b maximises the
        objective (empirical Bayes).
    """

    needs_covariance = False

    def __init__(self, prior=None):
        self.prior = prior

    def bind(self, moments, *, streaming=False):
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        mean = moments.mean * moments.magnitude
        if self.prior is None:  # a first guess: the prior expects the mean of the column
            a, b = np.ones_like(mean), 1.0 / np.maximum(mean, 1.0 / moments.n_rows)
        else:
            a, b = (np.broadcast_to(np.asarray(v, dtype=float), mean.shape) for v in self.prior)
        if not (np.all(a > 0) and np.all(b > 0) and np.all(np.isfinite(a + b))):
            raise ValueError(
                f"prior={self.prior!r} must be two positive numbers (a, b), or two arrays of "
                f"{len(mean)} of them."
            )
        return PoissonLikelihood(GammaPrior(a, b), adapts_prior=self.prior is None)


class PoissonLikelihood(Likelihood):
    """``s(x) = [x, h(x), 1]`` with ``h(x) = -sum_d log x_d!``.

    h depends on the row, not on the component. As a column of the prepared rows it is a statistic
    like any other, whose coefficient is 1 in every component, and the objective is exact.
    """

    def __init__(self, prior, *, adapts_prior):
        self.prior, self.adapts_prior = prior, adapts_prior
        self.n_features = len(prior.a) + 1  # of prepared rows: the counts and h

    def prepare(self, x):
        """Rows ``[x, h(x)]``, in double precision: h may be large."""
        if not (np.all(x >= 0) and np.all(x == np.floor(x))):
            raise ValueError("PoissonObservation needs columns of counts 0, 1, 2, ...")
        return self.prepare_means(x)

    def prepare_means(self, means):
        """The same for rates, which need not be whole."""
        z = np.empty((len(means), self.n_features))
        z[:, :-1] = means
        z[:, -1] = -gammaln(z[:, :-1] + 1.0).sum(axis=1)
        return z

    def _posterior(self, prior, s):
        """Shapes and inverse scales given statistics (..., P); both (..., D)."""
        return prior.a + s[..., :-2], prior.b + s[..., -1:]

    def evidence(self, prior, s):
        """``sum_d c(a + s_d, b + n) - c(a, b)``, with ``c(a, b) = lnG(a) - a log b``, plus h."""
        a, b = self._posterior(prior, s)
        own = gammaln(prior.a) - prior.a * np.log(prior.b)
        return np.sum(gammaln(a) - a * np.log(b) - own, axis=-1) + s[..., -2]

    def coefficients(self, prior, s):
        """``E[log p(x | k)] = sum_d x_d E[log lambda_kd] + h(x) - sum_d E[lambda_kd]``."""
        a, b = self._posterior(prior, s)
        out = np.ones_like(s, dtype=float)
        out[:, :-2] = digamma(a) - np.log(b)
        out[:, -1] = -np.sum(a / b, axis=1)
        return out

    def update_prior(self, prior, s, n_iter):
        """``b_d <- K a_d / sum_k E[lambda_kd]``: the objective's maximum for fixed posteriors."""
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            a, b = self._posterior(prior, s)
            best = len(s) * prior.a / np.sum(a / b, axis=0)
            prior = prior._replace(b=np.clip(best, *_SCALE_RANGE))
        return prior

    def prior_distance(self, old, new):
        """How far the prior has moved, on a log scale."""
        return abs(np.mean(np.log(new.b / old.b)))

    def log_predictive(self, prior, s, z):
        """Negative binomial densities: the rates are integrated out."""
        out = np.empty((len(z), len(s)))
        x, h = z[:, :-1], z[:, -1]
        for k, (a, b) in enumerate(zip(*self._posterior(prior, s), strict=True)):
            constant = np.sum(a * np.log(b / (b + 1.0)) - gammaln(a))
            out[:, k] = gammaln(a + x).sum(axis=1) - x @ np.log(b + 1.0) + h + constant
        return out

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Square roots, whose variance is about the same at any rate; or columns as they are."""
        if whiten:
            return 2.0 * np.sqrt(z[:, :-1] + 0.375)
        a, b = self._posterior(prior, s)
        return z[:, :-1] / np.sqrt(a / b)

    def attributes(self, prior, s):
        """``means_``: expected rates."""
        a, b = self._posterior(prior, s)
        return {"means_": a / b}

    def sample(self, attributes, labels, rng):
        """Rows of counts."""
        return rng.poisson(attributes["means_"][labels]).astype(float)


def chain_rule_error(likelihood, x):
    """``log p(x_1 .. x_n)`` minus the sum of ``log p(x_i | x_1 .. x_i-1)``, which should be 0."""
    z = likelihood.prepare(x)
    s = np.column_stack([z, np.ones(len(z))])
    before = np.cumsum(s, axis=0) - s
    pairs = [(before[i : i + 1], z[i : i + 1]) for i in range(len(z))]
    steps = sum(likelihood.log_predictive(likelihood.prior, *pair).item() for pair in pairs)
    return likelihood.evidence(likelihood.prior, s.sum(axis=0)) - steps


def main():
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.7, 6.0, size=(6, 15))
    labels = rng.choice(6, size=3000, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    X = rng.poisson(rates[labels]).astype(float)

    model = DPMixtureVB(observation=PoissonObservation(), random_state=0, verbose=1).fit(X)
    found = model.predict(X)
    order = [np.bincount(labels[found == k]).argmax() for k in range(model.n_components_)]
    print(f"6 components made, {model.n_components_} found")
    print(f"adjusted Rand index {adjusted_rand_score(labels, found):.4f}")
    print(f"weights {np.round(model.weights_, 3)}")
    print(f"largest error of a rate {np.abs(model.means_ - rates[order]).max():.2f}")
    print(f"heldout score {model.score(rng.poisson(rates[labels])):.3f} nats a row")
    likelihood = PoissonLikelihood(
        GammaPrior(np.full(15, 0.7), np.full(15, 0.2)), adapts_prior=False
    )
    print(f"evidence minus sum of log predictives {chain_rule_error(likelihood, X[:50]):.1e}")


if __name__ == "__main__":
    main()
