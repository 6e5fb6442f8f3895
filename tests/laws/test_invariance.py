"""What must not matter: order of rows, components and batches, units, threads, ways of computing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from .families import ALLOCATIONS, LEADING_FAMILIES
from .harness import estimator, learner_for, quiet_fit, random_resp, totals_under

FITTED = (
    "weights_", "means_", "probabilities_", "coef_", "intercept_", "covariances_", "precisions_",
    "lower_bounds_",
)  # fmt: skip


def assert_identical(a, b):
    """Fitted attributes equal to the last bit."""
    assert a.n_components_ == b.n_components_
    for name in FITTED:
        if hasattr(a, name):
            assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for ours, theirs in zip(a.history_, b.history_, strict=True):
        assert (ours.tried, ours.accepted) == (theirs.tried, theirs.accepted)


@pytest.mark.quarter
@pytest.mark.parametrize("n_components", [1, 6])
def test_one_batch_is_the_full_algorithm(leading_family, n_components):
    rng = np.random.default_rng(1)
    X, _ = leading_family.rows(rng, 150)
    settings = {"n_components": n_components, "max_iter": 8, "random_state": 0}
    fits = [
        quiet_fit(estimator(leading_family, **settings, **method), X)
        for method in ({"learning_method": "full"}, {"n_batches": 1})
    ]
    assert_identical(*fits)


@pytest.mark.parametrize("n_nonzero_resp", [None, 2])
def test_threads_change_no_bit(leading_family, n_nonzero_resp):
    """Several chunks of rows, several batches, proposals of all kinds."""
    rng = np.random.default_rng(2)
    X, _ = leading_family.rows(rng, 2100)
    fits = [
        quiet_fit(
            estimator(
                leading_family, n_components=5, n_batches=2, max_iter=4, random_state=0, n_jobs=n_jobs,
                n_nonzero_resp=n_nonzero_resp,
            ), X,
        )
        for n_jobs in (1, 3)
    ]  # fmt: skip
    assert sum(sum(lap.tried.values()) for lap in fits[0].history_) > 0
    assert_identical(*fits)
    assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def component_means(fitted, row):
    """Means of the components; of autoregressive ones after the lags of a lagged row.

    Of categories, their probabilities.
    """
    if hasattr(fitted, "probabilities_"):
        return fitted.probabilities_
    if not hasattr(fitted, "coef_"):
        return fitted.means_
    return fitted.intercept_ + fitted.coef_ @ row[-fitted.coef_.shape[2] :]


def few_laps(family, X, resp, allocation=ALLOCATIONS[0]):
    """A fixed number of components from given responsibilities, full data."""
    return quiet_fit(
        estimator(
            family, allocation, init_params=resp, proposals=None, learning_method="full", max_iter=6,
            tol=0.0, random_state=0,
        ), X,
    )  # fmt: skip


# Six laps magnify the rounding of sums in another order, but not by much: the data are fitted well.
RTOL = 1e-8


def test_order_of_components(family, allocation):
    """Components have no order but the one in which they were given, and it means nothing."""
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 150)
    resp, order = random_resp(rng, 150, 4), np.array([2, 0, 3, 1])
    a = few_laps(family, X, resp, allocation)
    b = few_laps(family, X, resp[:, order], allocation)
    assert_allclose(a.lower_bounds_, b.lower_bounds_, rtol=RTOL)
    assert_allclose(a.weights_[order], b.weights_, rtol=1e-6)
    a_means, b_means = (component_means(fitted, X[0]) for fitted in (a, b))
    assert_allclose(a_means[order], b_means, rtol=1e-6, atol=1e-6 * np.nanmax(np.abs(X)))
    assert_array_equal(a.predict(X), order[b.predict(X)])


def test_order_of_rows(family):
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 150)
    resp, order = random_resp(rng, 150, 4), rng.permutation(150)
    a = few_laps(family, X, resp)
    b = few_laps(family, X[order], resp[order])
    assert_allclose(a.lower_bounds_, b.lower_bounds_, rtol=RTOL)
    assert_array_equal(a.predict(X), b.predict(X))


def test_order_of_batches_in_the_first_lap(family):
    """Parameters rest until every batch was seen, so any order leaves the same totals."""
    rng = np.random.default_rng(5)
    X, _ = family.rows(rng, 150)
    resp = random_resp(rng, 150, 4)
    ends = []
    for order in ([0, 1, 2, 3, 4], [3, 0, 4, 2, 1]):
        learner, source = learner_for(family, X, resp=resp, n_batches=5)
        learner.begin_lap(source.total_weight)
        for i in order:
            learner.visit(source.batch(i), update=False)
        ends.append((learner.totals, totals_under(learner, learner.memo)))
    for a, b in zip(ends[0], ends[1], strict=True):
        assert_allclose(a.s, b.s, rtol=1e-9, atol=1e-9 * np.abs(a.s).max())
        assert_allclose(a.entropy, b.entropy, rtol=1e-10)


def test_number_of_batches_in_the_first_lap(family):
    rng = np.random.default_rng(6)
    X, _ = family.rows(rng, 160)
    resp = random_resp(rng, 160, 3)
    bounds = []
    for n_batches in (1, 4, 160):
        learner, source = learner_for(family, X, resp=resp, n_batches=n_batches)
        learner.run_lap(source, propose=False)
        bounds.append(learner.lower_bound)
    assert_allclose(bounds, bounds[0], rtol=1e-10)


@pytest.mark.quarter
def test_same_seed_same_fit(leading_family):
    rng = np.random.default_rng(7)
    X, _ = leading_family.rows(rng, 120)
    a, b = (quiet_fit(estimator(leading_family, n_batches=3, random_state=3), X) for _ in range(2))
    assert_identical(a, b)


# ---------------------------------------------------------------------- units


def assert_same_estimates(a, b):
    """Proposals promise the same gains in both fits, before anything is judged."""
    for one, other in zip(a.history_, b.history_, strict=True):
        assert [t.kind for t in one.trials] == [t.kind for t in other.trials]
        promised, others = (
            [np.nan if t.estimate is None else t.estimate for t in lap.trials]
            for lap in (one, other)
        )
        assert_allclose(promised, others, rtol=1e-4, atol=1e-4)


AFFINE = [param for param in LEADING_FAMILIES if param.values[0].affine]


@pytest.mark.extended
@pytest.mark.parametrize("family", AFFINE)
# "mixed" has columns four decades up as well as down
@pytest.mark.parametrize(
    "decades", [*(pytest.param(d, marks=pytest.mark.slow) for d in (-4, 4)), "mixed"]
)
def test_units_of_columns_do_not_matter(family, decades):
    """Scales over eight decades, and shifts of up to 50 deviations: the same clustering.

    The objective is of densities: it changes by the log of the volume element, once a row
    for each entry that is seen.
    """
    rng = np.random.default_rng(8)
    X, _ = family.rows(rng, 120)
    D, times = X.shape[1] // (1 + family.lags), 1 + family.lags
    if decades == "mixed":
        scale = 10.0 ** np.linspace(-4, 4, D) if family.affine == "columns" else np.full(D, 30.0)
    else:
        scale = np.full(D, 10.0**decades)
    shift = (
        rng.uniform(-50, 50, D) * np.nanstd(X[:, :D], axis=0) * scale
        if family.shift
        else np.zeros(D)
    )
    Y = X * np.tile(scale, times) + np.tile(shift, times)
    a, b = (
        quiet_fit(estimator(family, n_components=2, n_batches=2, random_state=0), data)
        for data in (X, Y)
    )
    assert a.n_components_ == b.n_components_ > 1
    assert_same_estimates(a, b)
    assert_array_equal(a.predict(X), b.predict(Y))
    assert_allclose(a.weights_, b.weights_, rtol=1e-6)
    volume = ~np.isnan(X[:, :D]) @ np.log(scale)
    assert_allclose(b.lower_bound_ + volume.sum(), a.lower_bound_, rtol=1e-7)
    assert_allclose(b.score_samples(Y) + volume, a.score_samples(X), rtol=1e-5, atol=1e-5)
    b_means = (component_means(b, Y[0]) - shift) / scale
    assert_allclose(b_means, component_means(a, X[0]), rtol=1e-6, atol=1e-6 * np.nanmax(np.abs(X)))


def test_single_precision_finds_the_same_clusters(family):
    """Rows in float32: labels are the same, the objective to the digits that float32 has."""
    rng = np.random.default_rng(9)
    X, _ = family.rows(rng, 240, spread=0.7)
    X = X.astype(np.float32).astype(np.float64)
    resp = random_resp(rng, 240, 3)
    a, b = few_laps(family, X, resp), few_laps(family, X.astype(np.float32), resp)
    assert_array_equal(a.predict(X), b.predict(X.astype(np.float32)))
    assert_allclose(a.lower_bounds_, b.lower_bounds_, rtol=1e-4)
