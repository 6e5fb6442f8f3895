"""Masked arrays of NumPy: masked values of rows are missing, and nothing else may be masked."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, DPMixtureVB, GaussianObservation, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.inputs.masked_arrays import with_nan
from tests.inputs.test_sparse_formats import Reference

GROUPS = np.arange(40) // 10
ESTIMATORS = {
    "mixture": (DPMixtureVB, {}, {}),
    "sequences": (HDPHMMVB, {}, {}),
    "documents of rows": (HDPTopicVB, {"observation": "gaussian"}, {"groups": GROUPS}),
}
# What it takes to refuse NaN as well.
REFUSING = {
    "multinomial": (DPMixtureVB, {"observation": "multinomial"}, {}),
    "words": (HDPTopicVB, {}, {}),
    "memory-bounded": (MemoryBoundedTopicVB, {}, {"groups": GROUPS}),
}


def masked(dtype=float):
    """Rows of which some values are masked, with nonsense under the mask; and the same with NaN."""
    rng = np.random.default_rng(0)
    X, mask = rng.poisson(3.0, size=(40, 3)).astype(dtype), rng.random((40, 3)) < 0.1
    X[mask] = 99
    return np.ma.masked_array(X, mask), np.where(mask, np.nan, X)


def of(case):
    estimator, settings, given = {**ESTIMATORS, **REFUSING}[case]
    if estimator is not MemoryBoundedTopicVB:
        settings = {"random_state": 0, "proposals": None, **settings}
    return estimator(**settings), given


@pytest.mark.parametrize("dtype", [float, int, np.float32])
@pytest.mark.parametrize("case", ESTIMATORS)
def test_masked_values_are_missing(case, dtype):
    M, X = masked(dtype)
    model, given = of(case)
    X = X.astype(np.float32) if dtype is np.float32 else X
    bound = model.fit(X, **given).lower_bound_
    assert model.fit(M, **given).lower_bound_ == bound
    for method in ("predict", "predict_proba", "score_samples", "score", "transform"):
        found, expected = (getattr(model, method)(x, **given) for x in (M, X))
        assert_array_equal(found, expected)
    for x in (M, X):
        model.partial_fit(x, batch_id=0, **given)
    assert_array_equal(M.mask, np.isnan(X))
    assert np.all(M.data[M.mask] == 99)


@pytest.mark.parametrize("case", ESTIMATORS)
def test_parts_of_data(case):
    """Chunks, rows in a list, and sequences in a list."""
    M, X = masked()
    model, given = of(case)
    bounds = []
    for x in (M, X):
        parts = [{"X": part} for part in (x[:20], x[20:])]
        for part, ids in zip(parts, (GROUPS[:20], GROUPS[20:]), strict=True):
            part.update(dict.fromkeys(given, ids))
        bounds.append(model.fit([Reference(i, part) for i, part in enumerate(parts)]).lower_bound_)
        as_list = [x[:20], x[20:]] if case == "sequences" else list(x)
        bounds.append(model.fit(as_list, **given).lower_bound_)
    assert bounds[:2] == bounds[2:]


def test_the_next_rows_of_a_sequence():
    M, X = masked()
    model = of("sequences")[0].fit(X)
    row = int(np.flatnonzero(M.mask.any(axis=1))[0])
    for x, y in ((M, X), (M[row], X[row])):
        assert_array_equal(model.predict_next(x)[0], model.predict_next(y)[0])


@pytest.mark.parametrize("case", REFUSING)
def test_models_without_missing_values_say_so(case):
    M, X = masked(int)
    model, given = of(case)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(M, **given)
    model.fit(np.nan_to_num(X), **given)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.transform(M, **given)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.partial_fit(M, **given)


def test_arrays_without_masked_values_stay_as_they_are():
    x = np.ma.masked_array(np.arange(6).reshape(3, 2))
    assert type(with_nan(x)) is np.ndarray
    assert with_nan(x).dtype == x.dtype
    assert np.shares_memory(with_nan(x), x.data)
    objects = np.ma.masked_array(np.array([[1, "a"]], dtype=object), [[True, False]])
    assert with_nan(objects).tolist() == [[pytest.approx(np.nan, nan_ok=True), "a"]]


_SECOND = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
_LENGTHS = np.ma.masked_array([20, 20], [False, True])
_WEIGHTS = np.ma.masked_array(np.ones(40), np.arange(40) == 7)


@pytest.mark.parametrize("name, estimator, given, place", [
    ("sample_weight", DPMixtureVB(), {"sample_weight": _WEIGHTS}, "position 7"),
    ("sample_weight", HDPHMMVB(), {"sample_weight": _WEIGHTS}, "position 7"),
    ("sample_weight", MemoryBoundedTopicVB(), {"groups": GROUPS, "sample_weight": _WEIGHTS}, "position 7"),
    ("groups", HDPHMMVB(), {"groups": _WEIGHTS}, "position 7"),
    ("lengths", HDPHMMVB(), {"lengths": _LENGTHS}, "position 1"),
    ("means_init", DPMixtureVB(means_init=_SECOND[np.newaxis]), {}, r"position \(0, 1\)"),
    ("init_params", HDPHMMVB(init_params=_WEIGHTS[:, np.newaxis]), {}, r"position \(7, 0\)"),
    ("init_params", DPMixtureVB(init_params=lambda x, n, rng: _WEIGHTS[:, np.newaxis]), {}, "position"),
    ("topic_word_prior", HDPTopicVB(topic_word_prior=_SECOND), {}, "position 1"),
    ("mean_prior", DPMixtureVB(observation=GaussianObservation(mean_prior=_SECOND)), {}, "position 1"),
])  # fmt: skip
def test_other_arguments_must_be_known(name, estimator, given, place):
    X = np.nan_to_num(masked()[1])
    with pytest.raises(ValueError, match=rf"{name} is a masked array .*{place}.*{name}\.filled\("):
        estimator.fit(X, **given)


def test_weights_beside_chunks_of_dask():
    da = pytest.importorskip("dask.array")
    M, X = masked()
    chunks = da.from_array(X, chunks=(20, 3))
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        DPMixtureVB().fit(chunks, sample_weight=_WEIGHTS)
    model = DPMixtureVB(proposals=None, random_state=0)
    bound = model.fit(chunks).lower_bound_
    lazy = da.concatenate(
        [da.from_array(M[rows], chunks=-1) for rows in (slice(20), slice(20, 40))]
    )
    assert model.fit(lazy).lower_bound_ == pytest.approx(bound, rel=1e-12)


def test_shares_of_topics_must_be_known():
    model = HDPTopicVB(proposals=None, random_state=0).fit(np.nan_to_num(masked()[1]))
    with pytest.raises(ValueError, match="X is a masked array"):
        model.inverse_transform(np.ma.masked_array([[1.0]], [[True]]))
    assert_allclose(model.inverse_transform([[1.0]]), model.means_)
