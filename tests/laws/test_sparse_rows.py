"""Sparse rows are rows: whatever a likelihood says of a dense one it says of the same one in CSR."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inputs.batches import ArraySource, Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood import counts

from .families import FAMILIES
from .harness import given, random_resp

# Sparse rows have no missing values.
SPARSE = [f for f in FAMILIES if f.observation.takes_sparse and not f.name.endswith("-missing")]
# Sums of some ten terms in another order, and of those over 200 rows.
RTOL = 1e-12


@pytest.fixture(params=SPARSE, ids=lambda family: family.name)
def family(request):
    return request.param


@pytest.fixture
def problem(family):
    """A model, dense and sparse prepared rows, and responsibilities."""
    rng = np.random.default_rng(0)
    X, _ = family.rows(rng, 200, spread=2.0)
    resp = random_resp(rng, 200, 3)
    g = given(family, X, resp)
    return g.model, g.totals, X, g.model.likelihood.prepare(csr_array(X)), resp


def test_there_are_such_families():
    assert {type(f.observation).__name__ for f in SPARSE} >= {
        "BernoulliObservation", "MultinomialObservation", "NegativeBinomialObservation", "PoissonObservation"
    }  # fmt: skip


def test_prepared_rows_stay_sparse(problem):
    model, _, X, z, _ = problem
    assert issparse(z)
    assert_array_equal(z.toarray(), model.likelihood.prepare(X))


def test_steps(problem):
    model, totals, X, z, resp = problem
    likelihood, coef = model.likelihood, model.coefficients(totals)
    rng = np.random.default_rng(1)
    mass, weight = rng.random(200), rng.gamma(1.0, size=200)
    for settings in ({}, {"n_nonzero": 2}):
        out = []
        for rows in (likelihood.prepare(X), z):
            s, entropy, norm = np.empty(totals.s.shape), np.empty(3), np.empty(200)
            r = likelihood.local_step(
                coef, rows, mass, weight, s, entropy, log_norm=norm, **settings
            )
            out.append((r, s, entropy, norm))
        for a, b in zip(*out, strict=True):
            assert_allclose(b, a, rtol=1e3 * RTOL, atol=RTOL)
    tables = [likelihood.likelihood_table(coef, rows, 1e-80) for rows in (likelihood.prepare(X), z)]
    for a, b in zip(*tables, strict=True):
        assert_allclose(b, a, rtol=1e3 * RTOL)
    sums = np.empty((2, *totals.s.shape))
    likelihood.summarise(likelihood.prepare(X), resp, sums[0])
    likelihood.summarise(z, resp, sums[1])
    assert_allclose(sums[1], sums[0], rtol=RTOL, atol=RTOL)
    assert_array_equal(likelihood.features(z), likelihood.features(likelihood.prepare(X)))


def test_densities(problem):
    model, totals, X, z, _ = problem
    likelihood, prior = model.likelihood, model.prior
    dense = likelihood.log_predictive(prior, totals.s, likelihood.prepare(X))
    assert_allclose(likelihood.log_predictive(prior, totals.s, z), dense, rtol=RTOL)
    assert_allclose(likelihood.log_base(csr_array(X)), likelihood.log_base(X), rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("whiten", [True, False])
def test_points_of_many_columns_keep_their_distances(problem, whiten, monkeypatch):
    """Those of few columns are the same; projected ones have squared distances within six sigma."""
    model, totals, X, z, _ = problem
    likelihood, prior, s = model.likelihood, model.prior, totals.s[0]
    dense = likelihood.seeding_points(prior, s, likelihood.prepare(X), whiten=whiten)
    points = likelihood.seeding_points(prior, s, z, whiten=whiten)
    assert_array_equal(points, dense)
    monkeypatch.setattr(counts, "_DENSE_NUMBERS", 0)
    projected = likelihood.seeding_points(prior, s, z, whiten=whiten)
    assert projected.shape == (200, counts._PROJECTED)
    squares = [np.sum((p[:100] - p[100:]) ** 2, axis=1) for p in (dense, projected)]
    assert_allclose(squares[1], squares[0], rtol=6 * np.sqrt(2 / counts._PROJECTED), atol=1e-12)


def test_moments(problem):
    *_, X, _, _ = problem
    weight = np.random.default_rng(2).gamma(1.0, size=len(X))
    X = np.column_stack([X, np.zeros(len(X))])
    dense, sparse = (
        column_moments(
            [Batch(0, x[:70], weight[:70]), Batch(1, x[70:], weight[70:])], covariance=False
        )
        for x in (X, csr_array(X))
    )
    assert_array_equal(sparse.magnitude, dense.magnitude)
    assert_allclose(sparse.mean, dense.mean, rtol=RTOL)
    assert_allclose(sparse.covariance, dense.covariance, rtol=1e-9, atol=RTOL)
    assert (sparse.n_rows, sparse.precision) == (dense.n_rows, dense.precision)


def test_sources(problem):
    *_, X, _, _ = problem
    for i in range(3):
        batch = ArraySource(csr_array(X), None, 3).batch(i)
        assert_array_equal(batch.x.toarray(), ArraySource(X, None, 3).batch(i).x)
    one, other = Batch(0, csr_array(X)), Batch(0, csr_array(X)[::-1][::-1])
    assert one.content_hash() == other.content_hash()
    assert one.content_hash() != Batch(0, csr_array(X[::-1])).content_hash()


@pytest.mark.quarter
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"n_batches": 3},
        pytest.param({"n_components": 5}, marks=pytest.mark.slow),
        {"learning_method": "stochastic", "n_components": 3},
    ],
    ids=str,
)
def test_fits(family, settings):
    """The same components, proposals and objective, but for rounding."""
    X, _ = family.rows(np.random.default_rng(3), 300)
    weight = np.random.default_rng(4).integers(1, 3, size=300).astype(float)
    dense, sparse = (
        DPMixtureVB(observation=family.observation, random_state=0, max_iter=40, **settings).fit(
            x, sample_weight=weight
        )
        for x in (X, csr_array(X))
    )
    assert sparse.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-10)
    assert_array_equal(sparse.predict(csr_array(X)), dense.predict(X))
    assert_allclose(sparse.score_samples(csr_array(X)), dense.score_samples(X), rtol=1e-8)
    assert_allclose(sparse.predict_proba(X), dense.transform(csr_array(X)), rtol=1e-5, atol=1e-9)
