"""Evidence of counts under priors that are worth far more than the data: nothing may cancel."""

from math import fsum, log, log1p

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import (
    BernoulliObservation,
    CategoricalObservation,
    DPMixtureVB,
    MultinomialObservation,
    PoissonObservation,
)

COUNTS = np.random.default_rng(0).integers(0, 300, size=(4, 5)).astype(float)
COUNTS[0] = 0.0
ROWS = COUNTS.sum(axis=1)  # of each component, as many as it has tokens
PRIORS = [1.0, 5e5, 1e6, 1e9, 1e12]


def rise(a, n):
    """lnGamma(a + n) - lnGamma(a) of a whole number n."""
    return fsum(log(a + i) for i in range(int(n)))


def of_types(a, counts):
    return fsum(rise(a, n) for n in counts) - rise(a * len(counts), counts.sum())


def of_ones(a, counts, n):
    return fsum(rise(a, x) + rise(a, n - x) - rise(2 * a, n) for x in counts)


def of_poisson(a, counts, n):
    return fsum(rise(a, x) - a * log1p(n / a) - x * log(a + n) for x in counts)


FAMILIES = {
    "multinomial": (MultinomialObservation, lambda a, x, n: of_types(a, x)),
    "categorical": (lambda a: CategoricalObservation(a, n_categories=5), None),
    "bernoulli": (lambda a: BernoulliObservation((a, a)), of_ones),
    "poisson": (lambda a: PoissonObservation((a, a)), of_poisson),
}


def likelihood_of(observation, x):
    return DPMixtureVB(observation=observation, proposals=None).fit(x)._model.likelihood


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_evidence_is_exact(family, prior):
    make, exact = FAMILIES[family]
    x, s = (COUNTS > 9).astype(float), np.column_stack([COUNTS, ROWS])
    if family == "categorical":  # one column of five categories
        x, exact = np.arange(5.0)[:, np.newaxis], FAMILIES["multinomial"][1]
    likelihood = likelihood_of(make(prior), x)
    wanted = [exact(prior, counts, n) for counts, n in zip(COUNTS, ROWS, strict=True)]
    assert_allclose(likelihood.evidence(likelihood.prior, s), wanted, rtol=1e-10, atol=1e-7)


@pytest.mark.parametrize("prior", PRIORS)
def test_unions_and_predictions(prior):
    likelihood = likelihood_of(MultinomialObservation(prior), COUNTS)
    s, given = np.column_stack([COUNTS, ROWS]), likelihood.prior
    first, second = np.array([0, 1, 2]), np.array([1, 3, 3])
    unions = likelihood.union_evidence(given, s, first, second)
    assert_allclose(unions, likelihood.evidence(given, s[first] + s[second]), rtol=1e-12)
    row = COUNTS[1:2]
    more = likelihood.evidence(given, s + np.append(row, 1.0)) - likelihood.evidence(given, s)
    assert_allclose(likelihood.log_predictive(given, s, row)[0], more, rtol=1e-9)


def test_number_of_components():
    """Under a prior of equal shares that no data can change, all rows are alike."""
    x = np.random.default_rng(1).poisson(np.repeat([[9, 1, 1], [1, 1, 9]], 50, axis=0))
    model = DPMixtureVB(observation=MultinomialObservation(1e12), random_state=0).fit(x)
    assert model.elbo_terms_["data"] == pytest.approx(-x.sum() * log(3), rel=1e-8)
