"""Statistics are sums over rows: batches, weights and repetition change nothing."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.likelihood import OBSERVATIONS
from sklearn_bnp.mixture.local import local_pass

from .families import FAMILIES
from .harness import given, random_resp, totals_of

# Sums of N positive and negative terms in another order: N eps times the sum of absolute values,
# generously.
RTOL = 1e-11


def assert_same_sums(bag, other, size):
    """Equal up to rounding of sums whose absolute values sum to ``size`` (K, P)."""
    assert np.all(np.abs(bag.s - other.s) <= RTOL * size)
    assert_allclose(bag.entropy, other.entropy, rtol=RTOL, atol=RTOL)


def test_every_likelihood_is_registered():
    # a family of lagged rows is tested by a subclass of its own
    tested = {cls for family in FAMILIES for cls in type(family.observation).__mro__}
    assert set(OBSERVATIONS.values()) <= tested


@pytest.mark.parametrize("cuts", [(), (1,), (40, 41, 42), (0, 100, 100), (3, 60, 89)])
def test_additive_over_batches(family, cuts):
    """Any split into batches, even empty ones, of one row, leaves the same totals."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, 100, spread=2.0)
    weight = rng.gamma(1.0, size=100)
    g = given(family, X, random_resp(rng, 100, 3), weight)
    coef, uids = g.model.coefficients(g.totals), np.arange(3)
    whole = local_pass(Batch(0, X, weight), g.model.likelihood, coef, uids)
    edges = [0, *cuts, 100]
    parts = [
        local_pass(Batch(i, X[a:b], weight[a:b]), g.model.likelihood, coef, uids)
        for i, (a, b) in enumerate(pairwise(edges))
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total.add(part)
    size = np.broadcast_to((weight[:, None] * np.abs(g.features)).sum(axis=0), whole.s.shape)
    assert_same_sums(total, whole, size)
    # and taken away again
    rest = total.add(parts[-1], -1.0)
    assert_same_sums(rest.add(parts[-1]), whole, size)


def test_every_row_is_shared_out_once(family):
    """Summed over components, statistics are those of the data, whatever the responsibilities."""
    rng = np.random.default_rng(2)
    X, _ = family.rows(rng, 150, spread=2.0)
    weight = rng.gamma(1.0, size=150)
    g = given(family, X, random_resp(rng, 150, 4), weight)
    bag = local_pass(
        Batch(0, X, weight), g.model.likelihood, g.model.coefficients(g.totals), np.arange(4)
    )
    expected = weight @ g.features
    size = weight @ np.abs(g.features)
    assert np.all(np.abs(bag.s.sum(axis=0) - expected) <= RTOL * size)
    assert np.all(bag.entropy >= 0)
    assert bag.entropy.sum() <= weight.sum() * np.log(4)


def test_weight_is_repetition(family, allocation):
    """Rows of weight w and w rows: evidence, totals and all terms of the objective."""
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 60, spread=2.0)
    resp = random_resp(rng, 60, 3)
    count = rng.integers(1, 5, size=60)
    rows = np.repeat(np.arange(60), count)
    weighted = given(family, X, resp, count.astype(float), allocation)
    repeated = given(family, X[rows], resp[rows], None, allocation)
    a, model_a = totals_of(weighted.estimator)
    b, model_b = totals_of(repeated.estimator)
    assert_allclose(a.n, b.n, rtol=RTOL)
    # means and variances of the columns are found in another order, and so the units: their rounding
    # is magnified by the distance of the data from the origin, in units of their spread
    assert_allclose(a.s, b.s, rtol=1e-9, atol=1e-9 * len(rows))
    assert_allclose(a.entropy, b.entropy, rtol=RTOL)
    assert_allclose(
        model_a.likelihood.evidence(model_a.prior, a.s),
        model_b.likelihood.evidence(model_b.prior, b.s), rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    for name, value in weighted.estimator.elbo_terms_.items():
        assert_allclose(value, repeated.estimator.elbo_terms_[name], rtol=1e-9, atol=1e-9)
    assert_allclose(
        weighted.estimator.score_samples(X),
        repeated.estimator.score_samples(X),
        rtol=1e-7,
        atol=1e-9,
    )


def test_weight_zero_is_absence(family, allocation):
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 80, spread=2.0)
    resp = random_resp(rng, 80, 3)
    weight = rng.gamma(1.0, size=80) * (rng.random(80) < 0.6)
    here = weight > 0
    padded = given(family, X, resp, weight, allocation).estimator
    plain = given(family, X[here], resp[here], weight[here], allocation).estimator
    for name, value in padded.elbo_terms_.items():
        assert_allclose(value, plain.elbo_terms_[name], rtol=1e-9, atol=1e-9)


def test_fractional_weights_interpolate(family):
    """Statistics are linear in the weights, so totals at the mean of two weights are the mean."""
    rng = np.random.default_rng(5)
    X, _ = family.rows(rng, 50)
    resp = random_resp(rng, 50, 2)
    g = given(family, X, resp)
    uids, likelihood = np.arange(2), g.model.likelihood
    u, v = rng.gamma(1.0, size=(2, 50))
    bags = [
        local_pass(Batch(0, X, w, resp), likelihood, np.zeros((2, likelihood.n_statistics)), uids)
        for w in (u, v, 0.5 * (u + v))
    ]
    size = np.broadcast_to((u + v) @ np.abs(g.features), bags[0].s.shape)
    mean = bags[0].add(bags[1])
    mean = mean._replace(s=0.5 * mean.s, entropy=0.5 * mean.entropy)
    assert_same_sums(bags[2], mean, size)


def test_bags_know_components_by_name(family):
    """Listing a bag otherwise, with strangers, loses nothing and invents nothing."""
    rng = np.random.default_rng(6)
    X, _ = family.rows(rng, 50)
    bag = given(family, X, random_resp(rng, 50, 3)).totals
    bag = bag._replace(uids=np.array([4, 9, 2]))
    other = bag.aligned([9, 7, 4, 2])
    assert_array_equal(other.s[[2, 0, 3]], bag.s)
    assert_array_equal(other.entropy[[2, 0, 3]], bag.entropy)
    assert_array_equal(other.s[1], 0.0)
    assert_array_equal(other.aligned(bag.uids).s, bag.s)
    replaced = bag.replaced((9,), other.take([1]))
    assert_array_equal(replaced.uids, [4, 2, 7])
    assert_allclose(replaced.s.sum(axis=0), bag.s[[0, 2]].sum(axis=0), rtol=1e-15)
