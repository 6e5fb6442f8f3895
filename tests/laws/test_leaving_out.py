"""Predictive densities of rows without what they add to components, against twins that never saw the row."""

import gc
from weakref import ref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sklearn_bnp.likelihood.counts import distinct_entries, sums_over_entries
from sklearn_bnp.likelihood.leaving_out import LEAST_SHARE, change_of_evidence
from tests.reference.leaving_out import predictive_without

from .families import FAMILIES
from .harness import features_of, given, random_resp
from .test_densities import ridge_cost

GAUSSIAN = [f for f in FAMILIES if f.name in ("full", "diag", "spherical", "full-zero-mean")]


@pytest.fixture
def posterior(family):
    """A `Given` of three components, one of them of few rows."""
    rng = np.random.default_rng(5)
    X, _ = family.rows(rng, 30, spread=2.0)
    resp = random_resp(rng, 30, 3, concentration=0.1)
    resp[3] = 1.0 / 3.0
    return given(family, X, resp)


def table(g, shares=None):
    shares = g.resp * g.weight[:, np.newaxis] if shares is None else shares
    likelihood = g.model.likelihood
    return likelihood.log_predictive_without(g.model.prior, g.s, g.z, shares)


def most_of_ridge(g):
    """The most that blurring one row more or less changes any density (n, K)."""
    out = np.empty(g.resp.shape)
    for k in range(out.shape[1]):
        for i in range(len(out)):
            others = g.weight * g.resp[:, k] * (np.arange(len(out)) != i)
            out[i, k] = ridge_cost(g.twin, g.twin.posterior(g.z, others), g.z)
    return out


def test_rows_are_left_out(posterior):
    """A table entry is the twin's density given all other rows."""
    g = posterior
    assert g.model.likelihood.leaves_out
    expected = predictive_without(g.twin, g.z, g.weight[:, np.newaxis] * g.resp, LEAST_SHARE)
    assert np.all(np.abs(table(g) - expected) <= 1e-8 + 2 * most_of_ridge(g))
    assert np.abs(table(g) - table(g, np.zeros_like(g.resp))).max() > 0.01  # it does matter


def test_a_row_of_weight_w_takes_w_out(family):
    rng = np.random.default_rng(6)
    X, _ = family.rows(rng, 25, spread=2.0)
    weight = rng.choice([0.5, 1.0, 3.0], 25)
    g = given(family, X, random_resp(rng, 25, 2), weight)
    expected = predictive_without(g.twin, g.z, weight[:, np.newaxis] * g.resp, LEAST_SHARE)
    most = np.maximum(weight, 1.0)[:, np.newaxis] * most_of_ridge(g)
    assert np.all(np.abs(table(g) - expected) <= 1e-8 + 2 * most)


def test_nothing_taken_out(posterior):
    """Shares of zero: the ordinary predictive densities."""
    g = posterior
    plain = g.model.likelihood.log_predictive(g.model.prior, g.s, g.z)
    assert_allclose(table(g, np.zeros_like(g.resp)), plain, rtol=1e-10, atol=1e-10)


def test_single_precision(posterior):
    """Rows and shares in float32: the same to the digits that their statistics have."""
    g = posterior
    expected = table(g)
    single = g.model.likelihood.log_predictive_without(
        g.model.prior, g.s, g.z.astype(np.float32), g.resp.astype(np.float32)
    )
    assert_allclose(single, expected, rtol=1e-3, atol=1e-2)


def test_closed_forms_agree_with_the_evidence(posterior):
    """The default of a family that a user writes: a difference of evidences."""
    g = posterior
    likelihood, prior = g.model.likelihood, g.model.prior
    i, k = np.nonzero(g.resp > LEAST_SHARE)
    change = change_of_evidence(likelihood, prior, g.s[k], g.z[i], g.resp[i, k])
    plain = likelihood.log_predictive(prior, g.s, g.z)
    assert np.all(
        np.abs(plain[i, k] + change - table(g)[i, k]) <= 1e-7 + 4 * most_of_ridge(g)[i, k]
    )


@pytest.mark.filterwarnings("ignore:Half of the values in column .* of X lie between")
@pytest.mark.parametrize("family", GAUSSIAN, ids=lambda family: family.name)
def test_components_of_one_row(family):
    """A component that holds one row alone is the prior without it, however far out the row is."""
    rng = np.random.default_rng(7)
    X, _ = family.rows(rng, 20)
    X[0] = X.mean(axis=0) + 1e3 * X.std(axis=0)
    g = given(family, X, np.eye(20)[:, :2] + np.r_[0, 0, np.ones(18)][:, None] * [0, 1])
    prior = g.model.likelihood.log_predictive(g.model.prior, 0 * g.s[:1], g.z[:1])[0, 0]
    assert_allclose(table(g)[0, 0], prior, rtol=1e-3)
    assert np.isfinite(table(g)).all()


def test_order_of_rows_does_not_matter(posterior):
    g = posterior
    order = np.random.default_rng(8).permutation(len(g.z))
    likelihood = g.model.likelihood
    moved = likelihood.log_predictive_without(g.model.prior, g.s, g.z[order], g.resp[order])
    assert_allclose(moved, table(g)[order], rtol=1e-9, atol=1e-9)
    moved = features_of(likelihood, g.z[order])  # products of matrices may round by place
    assert_allclose(moved, g.features[order], rtol=1e-12, atol=1e-12)


def test_sums_over_many_distinct_counts():
    """Rows in blocks, where nearly every count is one of its own, add up to the same sums."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 10**6, size=(500, 60)).astype(float)
    scale = rng.uniform(size=(60, 3))
    sums = sums_over_entries(counts, lambda column, x: np.log(x)[:, np.newaxis] * scale[column])
    assert_allclose(sums, np.log(counts) @ scale, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_entries_are_looked_up_once_and_forgotten_with_the_rows(sparse):
    counts = np.random.default_rng(0).poisson(1.0, size=(40, 7)).astype(float)
    rows = csr_array(counts) if sparse else counts
    found = distinct_entries(rows)
    assert distinct_entries(rows) is found
    dense = np.zeros(counts.shape)
    for j, (column, value) in enumerate(zip(found.column, found.values, strict=True)):
        dense[:, column] += value * found.occurrences[:, [j]].toarray()[:, 0]
    assert_allclose(dense, counts)
    assert distinct_entries(2.0 * rows).values.min() == 2.0
    entries = ref(distinct_entries(rows).values)
    del found, rows, counts
    gc.collect()
    assert entries() is None
