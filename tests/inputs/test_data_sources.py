"""Data of any type, layout, scale and size, and data that leave little to model."""

from functools import cache

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, GaussianObservation
from tests.estimators import (
    CENTERS,
    FEW_PROPOSALS,
    assert_same_state,
    blobs,
    public_state,
    same_partition,
)

X, truth = blobs(300)
K = len(CENTERS)
OBSERVATIONS = {
    "full": GaussianObservation("full"),
    "diag": GaussianObservation("diag"),
    "spherical": GaussianObservation("spherical"),
    "zero mean": GaussianObservation(zero_mean=True),
}


@pytest.fixture(
    params=[
        pytest.param(o, id=name, marks=[pytest.mark.slow] if name == "diag" else [])
        for name, o in OBSERVATIONS.items()
    ]
)
def observation(request):
    return request.param


def fitted(rows, observation="gaussian", **params):
    """A fit whose every method gives finite numbers."""
    model = DPMixtureVB(observation=observation, random_state=0, **params).fit(rows)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.score_samples(rows)).all()
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, atol=1e-5)
    assert np.isfinite(model.sample(20)[0]).all()
    for name in ("means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert np.isfinite(getattr(model, name)).all(), name
    return model


@cache
def reference(name):
    """The fit of the plain rows under one of the observation models."""
    return fitted(X, OBSERVATIONS[name])


def reference_of(observation):
    return reference(next(name for name, value in OBSERVATIONS.items() if value is observation))


# ---------------------------------------------------------------------- types


@pytest.mark.quarter
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", ">f4", "g"])
def test_any_type_of_real_number(dtype):
    rows = X.astype(dtype)
    model = fitted(rows, proposals=FEW_PROPOSALS)
    assert same_partition(model.predict(rows), truth)
    assert model.lower_bound_ == pytest.approx(reference("full").lower_bound_, rel=1e-3)
    assert model.means_.dtype == np.float64


def test_any_type_of_integer():
    rows = np.round(5.0 * X + 60.0)
    expected = fitted(rows, proposals=FEW_PROPOSALS)
    for dtype in ("i8", "i2", "u1"):
        model = fitted(rows.astype(dtype), proposals=FEW_PROPOSALS)
        assert same_partition(model.predict(rows.astype(dtype)), truth), dtype
        assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-9), dtype


def test_booleans():
    rows = np.repeat([[True, False, True], [False, True, False]], [30, 20], axis=0)
    assert np.bincount(fitted(rows).predict(rows)).tolist() == [30, 20]
    model = DPMixtureVB(observation="bernoulli", random_state=0).fit(rows)
    assert np.bincount(model.predict(rows)).tolist() == [30, 20]


@pytest.mark.quarter
def test_single_precision_stays(observation):
    seen = set()
    rows = X.astype(np.float32)
    model = DPMixtureVB(observation=observation, random_state=0).fit(rows)
    likelihood = model._learner_.model.likelihood
    prepare = likelihood.prepare

    def watched(x):
        z = prepare(x)
        seen.add((x.dtype, z.dtype))
        return z

    likelihood.prepare = watched
    assert model.predict_proba(rows).dtype == np.float32
    model.partial_fit(rows)
    assert seen == {(np.dtype("f4"), np.dtype("f4"))}
    assert model.n_components_ == reference_of(observation).n_components_
    assert model.transform(X).dtype == np.float64


# ---------------------------------------------------------------------- layout


@pytest.mark.extended
def test_layout_does_not_matter():
    expected = fitted(X, proposals=FEW_PROPOSALS)
    wide = np.zeros((600, 6))
    wide[::2, ::2] = X
    layouts = {
        "Fortran": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "reversed twice": X[::-1][::-1],
        "list": X.tolist(),
        "read-only": X.copy(),
    }
    layouts["read-only"].flags.writeable = False
    for name, rows in layouts.items():
        model = DPMixtureVB(proposals=FEW_PROPOSALS, random_state=0).fit(rows)
        assert np.array_equal(model.predict(rows), expected.predict(X)), name
        assert np.array_equal(model.score_samples(rows), model.score_samples(X)), name
        # the order of the sums in the moments of the columns follows the layout
        assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-12), name


@pytest.mark.quarter
def test_data_are_not_changed(observation):
    rows, weight = X.copy(), np.ones(len(X))
    model = DPMixtureVB(observation=observation, random_state=0).fit(rows, sample_weight=weight)
    model.partial_fit(rows, sample_weight=weight)
    model.predict(rows)
    model.score_samples(rows)
    assert np.array_equal(rows, X)
    assert np.array_equal(weight, np.ones(len(X)))


def test_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = DPMixtureVB(random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    assert np.array_equal(model.predict(frame), DPMixtureVB(random_state=0).fit_predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    out = model.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == [f"dpmixturevb{k}" for k in range(K)]
    assert np.array_equal(out.to_numpy(), model.predict_proba(frame))
    weight = pandas.Series(np.ones(300), index=np.arange(300)[::-1])
    assert model.partial_fit(frame, sample_weight=weight).n_components_ == K


# ---------------------------------------------------------------------- scales


@pytest.mark.quarter
@pytest.mark.parametrize("scale", [1e-140, 1e148])
def test_scale_does_not_matter(scale, observation):
    unscaled = reference_of(observation)
    model = fitted(X * scale, observation)
    assert np.array_equal(model.predict(X * scale), unscaled.predict(X))
    # densities change by the Jacobian
    expected = unscaled.lower_bound_ - X.size * np.log(scale)
    assert model.lower_bound_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.extended
def test_values_up_to_the_limit(observation):
    rows = X / np.abs(X).max() * 1e150
    expected = reference_of(observation).predict(X)
    assert np.array_equal(fitted(rows, observation).predict(rows), expected)
    model = DPMixtureVB(observation=observation, random_state=0)
    for batch in np.array_split(rows, 3):
        model.partial_fit(batch)
    assert np.isfinite(model.lower_bound_)


def test_columns_of_very_different_scales():
    rows = X * np.array([1e100, 1.0, 1e-100]) + np.array([0.0, 1e6, 0.0])
    for covariance_type in ("full", "diag"):
        assert same_partition(fitted(rows, OBSERVATIONS[covariance_type]).predict(rows), truth)


def test_single_precision_near_its_limits():
    rows = (X / np.abs(X).max() * 3e38).astype(np.float32)
    assert same_partition(fitted(rows).predict(rows), truth)


@pytest.mark.extended
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_far_from_all_that_was_seen(dtype, observation):
    rows = X.astype(dtype)
    model = DPMixtureVB(observation=observation, random_state=0).fit(rows)
    far = np.array([[1e30, -1e30, 1.0], [-3e37, 0.0, 0.0]], dtype=dtype)
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0, atol=1e-5)
    assert np.isfinite(model.score_samples(far)).all()
    assert model.score_samples(far).max() < model.score_samples(rows).min()
    # learning from them is another thing
    before = public_state(model)
    with pytest.raises(ValueError, match=r"standard deviations away .* begin anew"):
        model.partial_fit(np.concatenate([rows, far]))
    with pytest.raises(ValueError, match=r"standard deviations away .* begin anew"):
        model.set_params(warm_start=True).fit(np.concatenate([rows, far]))
    assert_same_state(public_state(model), before)
    for distance in (1e4, 1e6):
        batch = np.concatenate([rows, far / 3e37 * distance])
        for _ in range(2):
            model.partial_fit(batch.astype(dtype), batch_id=distance)
        assert np.isfinite(model.score_samples(rows)).all()
    assert model._learner_.totals.n.sum() == pytest.approx(300 + 2 * 302)


# ---------------------------------------------------------------------- little to model


@pytest.mark.extended
def test_constant_columns(observation):
    for value in (0.0, -1e8):
        rows = np.column_stack([X, np.full(len(X), value)])
        model = fitted(rows, observation)
        if not observation.zero_mean and observation.covariance_type != "spherical":
            assert same_partition(model.predict(rows), truth)
            np.testing.assert_allclose(model.means_[:, 3], value, atol=1e-3 * abs(value) + 1e-3)


@pytest.mark.quarter
def test_duplicate_columns(observation):
    rows = np.column_stack([X, X[:, 0], 2.0 * X[:, 1]])
    model = fitted(rows, observation)
    if observation.covariance_type == "full" and not observation.zero_mean:
        assert same_partition(model.predict(rows), truth)


@pytest.mark.parametrize("value", [0.0, 2.5, -1e100])
def test_identical_rows(observation, value):
    rows = np.full((50, 3), value)
    model = fitted(rows, observation)
    assert model.n_components_ == 1
    assert fitted(rows, observation, n_components=5).n_components_ == 1
    streamed = DPMixtureVB(observation=observation).partial_fit(rows[:20]).partial_fit(rows)
    assert streamed.n_components_ == 1


@pytest.mark.parametrize("rows", [np.full((50, 3), 2.5), np.repeat(np.eye(3), 20, axis=0)])
@pytest.mark.parametrize("init_params", ["k-means++", "random"])
@pytest.mark.parametrize("allocation", ["dp", "dirichlet"])
def test_fixed_truncation_keeps_its_components(observation, rows, init_params, allocation):
    """Also where fewer rows differ."""
    settings = {"proposals": None, "init_params": init_params, "allocation": allocation}
    model = fitted(rows, observation, n_components=5, **settings)
    assert model.n_components_ == len(model.weights_) == len(model.means_) == 5
    assert model.weights_.min() > 0
    stochastic = {**settings, "learning_method": "stochastic", "max_iter": 2}
    assert fitted(rows, observation, n_components=5, **stochastic).n_components_ == 5
    streamed = DPMixtureVB(5, observation=observation, **settings, random_state=0)
    assert streamed.partial_fit(rows[:7]).partial_fit(rows).n_components_ == 5


def test_two_distinct_rows():
    rows = np.repeat([[0.0, 0.0], [1.0, 1.0]], [20, 30], axis=0)
    model = fitted(rows)
    assert np.bincount(model.predict(rows)).tolist() == [30, 20]


@pytest.mark.filterwarnings("ignore:X has .* too few rows")
@pytest.mark.parametrize("n_rows", [2, 3, 8])
def test_fewer_rows_than_columns(observation, n_rows):
    rows = np.random.default_rng(0).normal(size=(n_rows, 20))
    model = fitted(rows, observation)
    assert 1 <= model.n_components_ <= n_rows
    assert model.covariances_.shape[0] == model.n_components_


def test_as_many_components_as_rows(observation):
    model = fitted(X[:6], observation, n_components=6, proposals=None)
    assert model.n_components_ == 6


def test_one_column(observation):
    model = fitted(X[:, :1], observation)
    assert model.means_.shape == (model.n_components_, 1)


def test_most_weights_zero(observation):
    weight = np.zeros(len(X))
    weight[:2] = 1.0
    model = DPMixtureVB(4, observation=observation, random_state=0).fit(X, sample_weight=weight)
    assert np.isfinite(model.score(X))
    weight[1] = 0.0
    with pytest.warns(UserWarning, match="sums to 1 over all the data"):
        model.fit(X, sample_weight=weight)
    assert np.isfinite(model.score(X))


def test_copies_of_memory_maps_are_in_memory(tmp_path):
    """They keep the class of a memory map, but not its file."""
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = DPMixtureVB(proposals=None, random_state=0)
    assert len(model.fit(mapped.astype(float)).labels_) == len(X)
    assert not hasattr(model.fit(mapped[:]), "labels_")
