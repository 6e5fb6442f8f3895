"""Columns of so many categories that prepared rows are codes: the same family as with one-hot rows."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import issparse
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import (
    HDPHMMVB,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    combine,
)
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood import categorical, counts, seeding

SIZES = np.array([200, 3, 90, 40])
LABELS = np.repeat([0, 1, 2], [250, 150, 100])
# Sums of a few terms in another order.
RTOL = 1e-12


def codes(labels=LABELS, seed=0, sizes=SIZES):
    """Codes (n, D): 8 times of 10, a class gives one of the categories that it has to itself."""
    rng = np.random.default_rng(seed)
    few = np.maximum(sizes // 8, 1)
    own = labels[:, np.newaxis] * few + rng.integers(few, size=(len(labels), len(sizes)))
    anything = rng.integers(sizes, size=own.shape)
    return np.where(rng.random(own.shape) < 0.8, own, anything).astype(float)


def incomplete(x, seed=1):
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.1, np.nan, x)


def both(X, prior=0.7):
    """The likelihood of codes, and the same one with dense one-hot rows."""
    observation = CategoricalObservation(prior, n_categories=SIZES.tolist())
    likelihood = observation.bind(column_moments([Batch(None, X)], covariance=False))
    return likelihood, likelihood.of_vectors()


@pytest.fixture(params=["float64", "float32", "int16", "missing"])
def problem(request):
    """Two likelihoods, their prepared rows, shares and statistics."""
    X = incomplete(codes()) if request.param == "missing" else codes().astype(request.param)
    coded, dense = both(X)
    resp = np.random.default_rng(2).dirichlet(np.ones(3), len(X))
    s = np.empty((3, dense.n_statistics))
    dense.summarise(dense.prepare(X.astype(float)), resp, s)
    return coded, dense, coded.prepare(X), dense.prepare(X), resp, s


# ---------------------------------------------------------------------- the same as one-hot rows


def test_rows_are_codes(problem):
    coded, dense, z, one_hot, _, _ = problem
    assert z.shape == (len(LABELS), 4)
    assert z.dtype == one_hot.dtype
    assert one_hot.shape == (len(LABELS), SIZES.sum())
    assert issparse(coded.one_hot(z))
    assert_array_equal(coded.one_hot(z).toarray(), one_hot)
    assert_array_equal(coded.features(z), dense.features(one_hot))


def test_few_categories_have_dense_rows():
    X = codes(sizes=np.array([32, 32]))
    likelihood = CategoricalObservation(n_categories=32).bind(
        column_moments([Batch(None, X)], covariance=False)
    )
    assert likelihood.prepare(X).shape == (len(X), 64)
    assert likelihood.of_vectors() is likelihood


def test_steps(problem):
    coded, dense, z, one_hot, resp, s = problem
    coef = dense.coefficients(dense.prior, s)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if z.dtype == np.float32 else {"rtol": 1e3 * RTOL}
    assert_allclose(coded.log_table(coef, z), dense.log_table(coef, one_hot), **tolerance)
    rng = np.random.default_rng(3)
    mass, weight = rng.random(len(z)), rng.gamma(1.0, size=len(z))
    for n_nonzero in (None, 2):
        out = []
        for likelihood, rows in ((coded, z), (dense, one_hot)):
            own, entropy, norm = np.empty(s.shape), np.empty(3), np.empty(len(z))
            shares = likelihood.local_step(
                coef, rows, mass, weight, own, entropy, n_nonzero=n_nonzero, log_norm=norm
            )
            out.append((shares, own, entropy, norm))
        for a, b in zip(*out, strict=True):
            assert_allclose(a, b, **{"atol": 1e-12, **tolerance})
    a, b = (
        each.likelihood_table(coef, rows, 1e-80) for each, rows in ((coded, z), (dense, one_hot))
    )
    assert_allclose(a[0], b[0], **tolerance)
    own = np.empty(s.shape)
    coded.summarise(z, resp, own)
    assert_allclose(own, s, rtol=1e-5 if z.dtype == np.float32 else RTOL, atol=RTOL)


def test_densities(problem):
    coded, dense, z, one_hot, resp, s = problem
    prior = dense.prior
    tolerance = {"rtol": 1e-6 if z.dtype == np.float32 else 1e-10}
    assert_allclose(
        coded.log_predictive(prior, s, z), dense.log_predictive(prior, s, one_hot), **tolerance
    )
    assert_allclose(
        coded.log_predictive_without(prior, s, z, resp),
        dense.log_predictive_without(prior, s, one_hot, resp), **tolerance,
    )  # fmt: skip
    i = np.arange(40)
    pairs = i % 3, i, resp[i, i % 3]
    k, i, r = pairs
    assert_allclose(
        coded.change_without(prior, s, k, z, i, r),
        dense.change_without(prior, s, k, one_hot, i, r), **tolerance,
    )  # fmt: skip


@pytest.mark.parametrize("whiten", [True, False])
def test_points(problem, whiten, monkeypatch):
    """Those of few rows are the same; projected ones have squared distances within six sigma."""
    coded, dense, z, one_hot, _, s = problem
    expected = dense.seeding_points(dense.prior, s[0], one_hot, whiten=whiten)
    points = coded.seeding_points(dense.prior, s[0], z, whiten=whiten)
    tolerance = 1e-5 if z.dtype == np.float32 else 1e-12
    assert_allclose(points, expected, rtol=tolerance, atol=tolerance)
    monkeypatch.setattr(counts, "_DENSE_NUMBERS", 0)
    projected = coded.seeding_points(dense.prior, s[0], z, whiten=whiten)
    assert projected.shape == (len(z), counts._PROJECTED)
    assert projected.dtype == z.dtype
    assert projected.flags.c_contiguous
    half = len(z) // 2
    squares = [
        np.sum((p[:half] - p[half:]).astype(float) ** 2, axis=1) for p in (expected, projected)
    ]
    assert_allclose(squares[1], squares[0], rtol=6 * np.sqrt(2 / counts._PROJECTED), atol=1e-10)


# ---------------------------------------------------------------------- fits


@pytest.mark.quarter
@pytest.mark.parametrize("make", [codes, lambda: incomplete(codes())], ids=["complete", "missing"])
@pytest.mark.parametrize("n_batches", [1, 3])
def test_fits(make, n_batches, monkeypatch):
    """The same components and objective as with one-hot rows, but for rounding."""
    X, fits = make(), []
    for few in (categorical._FEW, 1000):
        monkeypatch.setattr(categorical, "_FEW", few)
        model = DPMixtureVB(
            observation=CategoricalObservation(n_categories=SIZES.tolist()), n_batches=n_batches,
            random_state=0,
        )  # fmt: skip
        fits.append(model.fit(X))
    coded, dense = fits
    widths = [model._model.likelihood.n_features for model in fits]
    assert widths == [4, SIZES.sum()]
    assert coded.n_components_ == dense.n_components_ == 3
    assert adjusted_rand_score(LABELS, coded.labels_) > 0.9
    # laps end as soon as they gain little, and rounding may decide which lap is the last
    assert coded.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    assert_array_equal(coded.predict(X), dense.predict(X))
    assert_allclose(coded.score_samples(X), dense.score_samples(X), rtol=1e-3)
    again = pickle.loads(pickle.dumps(coded))
    assert_array_equal(again.predict_proba(X), coded.predict_proba(X))


def test_blocks_of_columns():
    """One block has numbers, another many categories; some entries of both are missing."""
    rng = np.random.default_rng(4)
    size = 3.0 * LABELS[:, np.newaxis] + rng.standard_normal((len(LABELS), 2))
    X = incomplete(np.column_stack([codes(), size]))
    columns = ColumnObservation(
        [
            ("kind", CategoricalObservation(n_categories=SIZES.tolist()), [0, 1, 2, 3]),
            ("size", "gaussian", [4, 5]),
        ]
    )
    model = DPMixtureVB(observation=columns, random_state=0).fit(X)
    assert model._model.likelihood.n_features == 6
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(X)) > 0.95
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("numbers", [2**22, 1000])
def test_means_are_compared_with_one_hot_rows(numbers, monkeypatch):
    """Rows go to the mean that they share most categories with, and not to that with the nearest codes."""
    monkeypatch.setattr(seeding, "_VECTOR_NUMBERS", numbers)
    means = np.array([[50.0, 0, 10, 10], [150.0, 1, 50, 30]])
    rng = np.random.default_rng(5)
    labels = rng.integers(2, size=300)
    X = means[labels]
    X[np.arange(300), rng.integers(4, size=300)] = 0.0
    observation = CategoricalObservation(n_categories=SIZES.tolist())
    given = {"means_init": means, "max_iter": 0, "proposals": None, "observation": observation}
    model = DPMixtureVB(2, **given).fit(X)
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    assert model.probabilities_[:, 0, [50, 150]].argmax(axis=1).tolist() in ([0, 1], [1, 0])


def test_symbols_of_a_sequence():
    states = np.repeat(np.tile([0, 1, 2, 1], 5), 25)
    symbols = codes(states, sizes=np.array([300]))
    model = HDPHMMVB(
        observation=CategoricalObservation(n_categories=300), random_state=0, max_iter=30
    ).fit(symbols)
    assert model.n_components_ == 3
    assert adjusted_rand_score(states, model.predict(symbols)) > 0.95


@pytest.mark.parametrize("kind", [HDPTopicVB, MemoryBoundedTopicVB])
def test_documents_of_rows(kind):
    rng = np.random.default_rng(2)
    labels = np.concatenate([rng.choice(3, 25, p=p) for p in rng.dirichlet(np.ones(3), 40)])
    X, groups = codes(labels), np.repeat(np.arange(40), 25)
    observation = CategoricalObservation(n_categories=SIZES.tolist())
    model = kind(observation=observation)
    if kind is HDPTopicVB:
        model.set_params(random_state=0)
    model.fit(X, groups=groups)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) > 0.9


def test_combined():
    observation = CategoricalObservation(n_categories=SIZES.tolist())
    parts = [
        DPMixtureVB(observation=observation, random_state=0).fit(incomplete(codes(seed=i)))
        for i in range(2)
    ]
    assert combine(parts).n_components_ == 3


# ---------------------------------------------------------------------- memory


@pytest.mark.extended
def test_memory():
    """Rows by categories would be 240 MB, and a sample of them as much again."""
    n, size = 1000, 15_000
    rng = np.random.default_rng(6)
    labels = rng.integers(2, size=n)
    X = labels[:, np.newaxis] * (size // 2) + rng.integers(40, size=(n, 2))
    observation = CategoricalObservation(0.01, n_categories=size)
    model = DPMixtureVB(observation=observation, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X)
        model.predict(X)
        model.score_samples(X)
        fitted = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fitted < 60e6
    assert adjusted_rand_score(labels, model.labels_) > 0.9


def test_sampling_in_blocks_changes_nothing(monkeypatch):
    coded, _ = both(codes())
    attributes = {"probabilities_": np.random.default_rng(7).dirichlet(np.ones(200), size=(3, 4))}
    draws = []
    for numbers in (2**22, 3000):
        monkeypatch.setattr(categorical, "_HELD_NUMBERS", numbers)
        draws.append(coded.sample(attributes, LABELS, np.random.RandomState(0)))
    assert_array_equal(*draws)
    assert draws[0].shape == (len(LABELS), 4)


@pytest.mark.parametrize(
    ("value", "words"), [(-1.0, "holds -1"), (0.5, "holds 0.5"), (200.0, "holds category 200")]
)
def test_wrong_codes(value, words):
    X = codes()
    X[7, 0] = value
    likelihood, _ = both(codes())
    with pytest.raises(ValueError, match=f"Column 0 of X {words}"):
        likelihood.prepare(X)
