"""A likelihood of one's own, for waiting times: Gamma densities of known shape, with Gamma priors."""

from collections import namedtuple

import numpy as np
from scipy.special import betaln, digamma, gammaln

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.likelihood import Likelihood, ObservationModel

GammaPrior = namedtuple("GammaPrior", "a b")  # shapes and inverse scales of the rates, each (D,)


class WaitingTimeObservation(ObservationModel):
    """Independent columns of times until the c-th event, where c is the parameter ``shape``."""

    def __init__(self, shape=1.0, prior=(1.0, 1.0)):
        self.shape, self.prior = shape, prior

    def bind(self, moments, *, streaming=False):
        a, b = (np.broadcast_to(np.asarray(v, float), moments.mean.shape) for v in self.prior)
        if not (self.shape > 0 and np.all(a > 0) and np.all(b > 0)):
            raise ValueError(f"shape={self.shape!r} and prior={self.prior!r} must be positive.")
        return WaitingTimeLikelihood(self.shape, GammaPrior(a, b))


class WaitingTimeLikelihood(Likelihood):
    """``s(x) = [x, h(x), 1]`` with ``h(x) = sum_d (c - 1) log x_d - lnGamma(c)``."""

    standardised = False  # times stay as they are

    def __init__(self, shape, prior):
        self.shape, self.prior, self.n_features = shape, prior, len(prior.a) + 1

    def prepare(self, x):
        if not np.all(x > 0):
            raise ValueError(f"X holds {np.min(x):g}; times must be positive. Leave such rows out.")
        h = np.sum((self.shape - 1.0) * np.log(x) - gammaln(self.shape), axis=1)
        return np.column_stack([x, h]).astype(np.float64)

    def posterior(self, prior, s):
        """Shapes and inverse scales (..., D) of the rates given statistics (..., P)."""
        return prior.a + self.shape * s[..., -1:], prior.b + s[..., :-2]

    def evidence(self, prior, s):
        a, b = self.posterior(prior, s)
        before = gammaln(prior.a) - prior.a * np.log(prior.b)
        return np.sum(gammaln(a) - a * np.log(b) - before, axis=-1) + s[..., -2]

    def coefficients(self, prior, s):
        a, b = self.posterior(prior, s)
        log_rate = np.sum(digamma(a) - np.log(b), axis=1)
        return np.column_stack([-a / b, np.ones(len(s)), self.shape * log_rate])

    def log_predictive(self, prior, s, z):
        a, b = (v[np.newaxis] for v in self.posterior(prior, s))
        c, x = self.shape, z[:, np.newaxis, :-1]
        density = (c - 1) * np.log(x) + a * np.log(b) - (a + c) * np.log(b + x) - betaln(a, c)
        return density.sum(axis=2)

    def seeding_points(self, prior, s, z, *, whiten=True):
        a, b = self.posterior(prior, s)
        return np.log(z[:, :-1]) if whiten else z[:, :-1] * (a / b)

    def attributes(self, prior, s):
        a, b = self.posterior(prior, s)
        return {"means_": self.shape * b / a}

    def sample(self, attributes, labels, rng):
        return rng.gamma(self.shape, attributes["means_"][labels] / self.shape)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    means = rng.gamma(0.7, 6.0, size=(6, 15))
    X = rng.gamma(2.0, means[rng.choice(6, size=3000)] / 2.0)
    model = DPMixtureVB(observation=WaitingTimeObservation(shape=2.0), random_state=0).fit(X)
    print(f"6 components made, {model.n_components_} found; {model.score(X):.3f} nats a row")
