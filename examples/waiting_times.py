"""A likelihood of one's own: waiting times with Gamma priors, outside the package.

Column d of a row of component k has a Gamma density of known shape c and rate ``lambda_kd``: with c = 1
the times between events, in general the times until the c-th. The rates have Gamma priors
of shape ``a_d`` and inverse scale ``b_d``. ``doc/add_a_likelihood.rst`` goes through it.

    python examples/waiting_times.py
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.likelihood import Likelihood, ObservationModel


class GammaPrior(NamedTuple):
    """Shapes ``a`` and inverse scales ``b`` of the rates, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class WaitingTimeObservation(ObservationModel):
    """Independent columns of times, each component with a rate for every column.

    Parameters
    ----------
    shape : float, default=1.0
        Shape c > 0 of the times; 1 for exponential ones.
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Shape a and inverse scale b > 0 of the Gamma prior. If None, a is 1 and b maximises the
        objective (empirical Bayes).
    """

    def __init__(self, shape=1.0, *, prior=None):
        self.shape = shape
        self.prior = prior

    def bind(self, moments, *, streaming=False):
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        if not self.shape > 0:
            raise ValueError(f"shape={self.shape!r} must be a positive number.")
        mean = moments.mean * moments.magnitude
        if self.prior is None:  # a first guess: the prior expects times like the mean of the column
            a, b = np.ones_like(mean), mean / self.shape
        else:
            a, b = (np.broadcast_to(np.asarray(v, dtype=float), mean.shape) for v in self.prior)
        if not (np.all(a > 0) and np.all(b > 0) and np.all(np.isfinite(a + b))):
            raise ValueError(
                f"prior={self.prior!r} must be two positive numbers (a, b), or two arrays of "
                f"{len(mean)} of them."
            )
        return WaitingTimeLikelihood(self.shape, GammaPrior(a, b), adapts_prior=self.prior is None)


class WaitingTimeLikelihood(Likelihood):
    """``s(x) = [x, h(x), 1]`` with ``h(x) = sum_d (c - 1) log x_d - log Gamma(c)``.

    h depends on the row, not on the component. As a column of the prepared rows it is a statistic
    like any other, whose coefficient is 1 in every component, and the objective is exact.
    """

    def __init__(self, shape, prior, *, adapts_prior):
        self.shape, self.prior, self.adapts_prior = shape, prior, adapts_prior
        self.n_features = len(prior.a) + 1  # of prepared rows: the times and h

    def prepare(self, x):
        """Rows ``[x, h(x)]``, in double precision: h may be large."""
        if not np.all(x > 0):
            raise ValueError("WaitingTimeObservation needs columns of times, greater than 0")
        z = np.empty((len(x), self.n_features))
        z[:, :-1] = x
        z[:, -1] = np.sum((self.shape - 1.0) * np.log(x) - gammaln(self.shape), axis=1)
        return z

    def farthest(self, z):
        """Times are what they are: no number of standard deviations."""
        return 0.0

    def _posterior(self, prior, s):
        """Shapes and inverse scales given statistics (..., P); both (..., D)."""
        return prior.a + self.shape * s[..., -1:], prior.b + s[..., :-2]

    def evidence(self, prior, s):
        """``sum_d k(a + c n, b + s_d) - k(a, b)``, with ``k(a, b) = lnG(a) - a log b``, plus h."""
        a, b = self._posterior(prior, s)
        own = gammaln(prior.a) - prior.a * np.log(prior.b)
        return np.sum(gammaln(a) - a * np.log(b) - own, axis=-1) + s[..., -2]

    def coefficients(self, prior, s):
        """``E[log p(x | k)] = -sum_d x_d E[lambda_kd] + h(x) + c sum_d E[log lambda_kd]``."""
        a, b = self._posterior(prior, s)
        out = np.ones_like(s, dtype=float)
        out[:, :-2] = -a / b
        out[:, -1] = self.shape * np.sum(digamma(a) - np.log(b), axis=1)
        return out

    def update_prior(self, prior, s, n_iter):
        """``b_d <- K a_d / sum_k E[lambda_kd]``: the objective's maximum for fixed posteriors."""
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            a, b = self._posterior(prior, s)
            prior = prior._replace(b=len(s) * prior.a / np.sum(a / b, axis=0))
        return prior

    def prior_distance(self, old, new):
        """How far the prior has moved, on a log scale."""
        return abs(np.mean(np.log(new.b / old.b)))

    def log_predictive(self, prior, s, z):
        """Beta prime densities: the rates are integrated out."""
        c, x = self.shape, z[:, :-1]
        out = np.empty((len(z), len(s)))
        for k, (a, b) in enumerate(zip(*self._posterior(prior, s), strict=True)):
            density = (c - 1.0) * np.log(x) + a * np.log(b) - (a + c) * np.log(b + x)
            out[:, k] = np.sum(density - betaln(a, c), axis=1)
        return out

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Logarithms, whose variance is the same at any rate; or columns in units of their means."""
        if whiten:
            return np.log(z[:, :-1])
        a, b = self._posterior(prior, s)
        return z[:, :-1] * (a / b)

    def attributes(self, prior, s):
        """``means_``: times that are expected at the expected rates."""
        a, b = self._posterior(prior, s)
        return {"means_": self.shape * b / a}

    def sample(self, attributes, labels, rng):
        """Rows of times."""
        return rng.gamma(self.shape, attributes["means_"][labels] / self.shape)


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
    means = rng.gamma(0.7, 6.0, size=(6, 15))
    labels = rng.choice(6, size=3000, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    X = rng.gamma(2.0, means[labels] / 2.0)

    observation = WaitingTimeObservation(shape=2.0)
    model = DPMixtureVB(observation=observation, random_state=0, verbose=1).fit(X)
    found = model.predict(X)
    order = [np.bincount(labels[found == k]).argmax() for k in range(model.n_components_)]
    print(f"6 components made, {model.n_components_} found")
    print(f"adjusted Rand index {adjusted_rand_score(labels, found):.4f}")
    print(f"weights {np.round(model.weights_, 3)}")
    print(f"largest error of a mean {np.abs(model.means_ / means[order] - 1.0).max():.1%}")
    print(f"heldout score {model.score(rng.gamma(2.0, means[labels] / 2.0)):.3f} nats a row")
    likelihood = WaitingTimeLikelihood(
        2.0, GammaPrior(np.full(15, 0.7), np.full(15, 0.2)), adapts_prior=False
    )
    print(f"evidence minus sum of log predictives {chain_rule_error(likelihood, X[:50]):.1e}")


if __name__ == "__main__":
    main()
