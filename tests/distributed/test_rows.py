"""Mixtures of rows in chunks: the same bits wherever chunks lie, and the results of rows in memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from sklearn_bnp import ColumnObservation, DPMixtureVB, GaussianObservation
from tests.estimators import FEW_PROPOSALS, assert_same_state, blobs, public_state
from tests.variants import variants

from .kinds import saved

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

ROWS, LABELS = blobs(700, seed=3)
INCOMPLETE = np.where(np.random.default_rng(2).random(ROWS.shape) < 0.1, np.nan, ROWS)
COUNTS = np.random.default_rng(1).poisson(np.exp(ROWS / 6.0))
WEIGHTS = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 2.0], size=700)
MIXED = np.column_stack([ROWS[:, :2], COUNTS[:, 2]])
COLUMNS = ColumnObservation([("level", "gaussian", [0, 1]), ("counts", "poisson", [2])])
EDGES = [0, 90, 220, 221, 400, 520, 700]
SIZES = tuple(np.diff(EDGES).tolist())

pytestmark = pytest.mark.filterwarnings("ignore:DPMixtureVB did not converge in max_iter=8")

# Name -> (parameters, rows, weights).
KINDS = {
    "gaussian": ({}, ROWS, None),
    "float32": ({}, ROWS.astype(np.float32), None),
    "diag": ({"observation": GaussianObservation("diag")}, ROWS, None),
    "missing": ({}, INCOMPLETE, None),
    "missing_diag": (
        {
            "observation": GaussianObservation("diag"),
            "max_iter": 8,
            "proposals": FEW_PROPOSALS,
        },
        INCOMPLETE,
        WEIGHTS,
    ),
    "weights": ({}, ROWS, WEIGHTS),
    "poisson": ({"observation": "poisson"}, COUNTS, None),
    "negative_binomial": ({"observation": "negative_binomial"}, COUNTS, None),
    "columns": ({"observation": COLUMNS, "proposals": FEW_PROPOSALS}, MIXED, None),
    "l_sparse": ({"n_components": 6, "n_nonzero_resp": 2}, ROWS, None),
    "batches": ({"n_batches": 3, "max_iter": 8}, ROWS, WEIGHTS),
}


# What only one path of the sums has.
NAMES = variants(KINDS, quick=("missing_diag", "columns", "batches"))


def split(x):
    return np.split(x, EDGES[1:-1])


@pytest.mark.extended
@pytest.mark.parametrize("kind", NAMES)
def test_the_same_bits_wherever_chunks_lie(clusters, kind, tmp_path):
    """In this process, on one worker and on two; and from files that are loaded in each visit."""
    params, x, weight = KINDS[kind]
    rows = da.from_array(x, chunks=(SIZES, -1))
    own = None if weight is None else da.from_array(weight, chunks=(SIZES,))
    chunks = [{"X": part} for part in split(x)]
    if weight is not None:
        chunks = [{**c, "sample_weight": w} for c, w in zip(chunks, split(weight), strict=True)]
    files = saved(tmp_path, chunks)
    model = DPMixtureVB(random_state=0, **params)
    fit = partial(model.fit, rows, sample_weight=own)
    expected = public_state(fit())
    assert sum(sum(lap.tried.values()) for lap in expected["history_"]) > 0
    assert_same_state(public_state(model.fit(files)), expected)
    for client in clusters:
        with client.as_current():
            assert_same_state(public_state(fit()), expected)
            assert_same_state(public_state(model.fit(files)), expected)


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    variants(
        [kind for kind in KINDS if kind != "batches"],
        quick=("gaussian", "columns", "missing_diag", "weights"),
    ),
)
def test_as_in_memory(kind):
    """Units are those of all rows, but for rounding, and so is where the fit starts and ends."""
    params, x, weight = KINDS[kind]
    model = DPMixtureVB(random_state=0, **params)
    there = pickle.loads(pickle.dumps(model))
    there.fit(da.from_array(x, chunks=(SIZES, -1)), sample_weight=weight)
    model.set_params(n_batches=1).fit(x, sample_weight=weight)
    assert there.n_components_ == model.n_components_
    # local steps of single precision round as their blocks are cut
    rel = 1e-9 if x.dtype != np.float32 else 1e-6
    assert there.lower_bound_ == pytest.approx(model.lower_bound_, rel=rel)
    assert there.n_features_in_ == 3


@pytest.mark.extended
def test_sparse_chunks_and_delayed_ones(clusters):
    chunks = [dask.delayed(csr_array)(part) for part in split(COUNTS)]
    model = DPMixtureVB(observation="poisson", proposals=FEW_PROPOSALS, random_state=0)
    expected = public_state(model.fit(chunks))
    dense = clone(model).set_params(n_batches=1).fit(csr_array(COUNTS))
    assert dense.lower_bound_ == pytest.approx(expected["lower_bound_"], rel=1e-9)
    with clusters[1].as_current():
        assert_same_state(public_state(model.fit(chunks)), expected)


@pytest.mark.extended
def test_weights_beside_a_list():
    lists = [dask.delayed(part) for part in split(ROWS)]
    model = DPMixtureVB(random_state=0)
    one = public_state(model.fit(lists, sample_weight=split(WEIGHTS)))
    other = model.fit(da.from_array(ROWS, chunks=(SIZES, -1)), sample_weight=WEIGHTS)
    assert_same_state(public_state(other), one)


@pytest.mark.extended
@pytest.mark.parametrize("n_workers", [None, 2])
def test_chunks_of_unknown_sizes_and_empty_ones(clusters, n_workers):
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    few = rows[rows[:, 0] > -4.0]
    assert np.isnan(few.chunks[0]).all()
    marked = np.isin(np.arange(len(ROWS)), np.arange(90, 220), invert=True)
    holey = rows[da.from_array(marked, chunks=(SIZES,))]  # the second chunk is empty
    model, client = DPMixtureVB(random_state=0, n_batches=1), clusters[1] if n_workers else None
    for lazy, rows in ((few, ROWS[ROWS[:, 0] > -4.0]), (holey, ROWS[marked])):
        expected = model.fit(rows).lower_bound_
        if client is None:
            found = model.fit(lazy)
        else:
            with client.as_current():
                found = model.fit(lazy)
        assert found.lower_bound_ == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        model.fit(few, sample_weight=np.ones(100))


@pytest.mark.extended
def test_frames(clusters):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    kinds = np.array(["low", "high", "none"])[LABELS]
    kinds[EDGES[2] : EDGES[3]] = "rare"
    frame = pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1], "kind": kinds})
    observation = ColumnObservation(
        [("level", "gaussian", ["a", "b"]), ("kind", "categorical", ["kind"])]
    )
    model = DPMixtureVB(
        observation=observation, proposals=FEW_PROPOSALS, random_state=0, n_batches=1
    )
    expected = model.fit(frame)
    names, bound, labels = list(frame), expected.lower_bound_, expected.predict(frame)
    categories = expected.categories_["kind"].tolist()
    lazy = dd.from_pandas(frame, npartitions=4)
    here = public_state(model.fit(lazy))
    assert model.feature_names_in_.tolist() == names
    assert model.categories_["kind"].tolist() == categories
    assert model.lower_bound_ == pytest.approx(bound, rel=1e-9)
    np.testing.assert_array_equal(model.predict(lazy).compute(), labels)
    with clusters[1].as_current():
        assert_same_state(public_state(model.fit(lazy)), here)
        parts = [
            dask.delayed(frame.iloc[i : i + 175].reset_index(drop=True)) for i in range(0, 700, 175)
        ]
        assert model.fit(parts).lower_bound_ == pytest.approx(bound, rel=1e-9)


def test_predictions_are_lazy(clusters):
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    model = DPMixtureVB(random_state=0).fit(rows)
    for client in (None, clusters[1]):
        for name in ("predict", "predict_proba", "transform", "score_samples"):
            lazy, expected = getattr(model, name)(rows), getattr(model, name)(ROWS)
            assert isinstance(lazy, da.Array) and lazy.dtype == expected.dtype
            assert lazy.chunks[0] == SIZES and lazy.shape == expected.shape
            found = (
                lazy.compute(scheduler="synchronous")
                if client is None
                else client.compute(lazy).result()
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert model.score(rows) == pytest.approx(model.score(ROWS), rel=1e-12)
    with clusters[0].as_current():
        assert model.score(rows) == pytest.approx(model.score(ROWS), rel=1e-12)
    [first, *_] = dask.compute(*model.predict([dask.delayed(part) for part in split(ROWS)]))
    np.testing.assert_array_equal(first, model.predict(ROWS[:90]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_the_type_of_lazy_predictions(dtype):
    """It is the one of data in memory."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    model = DPMixtureVB(2, proposals=None, max_iter=0).fit(ROWS)
    x = ROWS.astype(dtype)
    frame = pd.DataFrame({"a": x[:, 0], "kind": np.array(["low", "high", "none"])[LABELS]})
    observation = ColumnObservation([("level", "gaussian", "a"), ("kind", "categorical", "kind")])
    of_frames = DPMixtureVB(2, observation=observation, proposals=None, max_iter=0).fit(frame)
    for name in ("predict", "predict_proba", "score_samples"):
        for fitted, here, there in (
            (model, x, da.from_array(x, chunks=(SIZES, -1))),
            (of_frames, frame, dd.from_pandas(frame, npartitions=3)),
        ):
            lazy, expected = getattr(fitted, name)(there), getattr(fitted, name)(here)
            assert lazy.dtype == lazy.compute(scheduler="synchronous").dtype == expected.dtype


@pytest.mark.parametrize("values", [[1, 2, 5], [True, False, True], ["low", "high", "none"]])
def test_lazy_predictions_of_categories(values):
    """Also of those that are numbers, but no codes."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": ROWS[:, 0], "kind": np.array(values)[LABELS]})
    frame["kind"] = pd.Categorical(frame["kind"], categories=list(dict.fromkeys(values)))
    observation = ColumnObservation([("level", "gaussian", "a"), ("kind", "categorical", "kind")])
    model = DPMixtureVB(2, observation=observation, proposals=None, max_iter=0).fit(frame)
    lazy = dd.from_pandas(frame, npartitions=3)
    for name in ("predict", "predict_proba", "score_samples"):
        found = getattr(model, name)(lazy).compute(scheduler="synchronous")
        np.testing.assert_allclose(found, getattr(model, name)(frame), rtol=1e-12)


@pytest.mark.parametrize("name", ["predict", "transform", "score_samples"])
def test_predictions_take_no_weights(name):
    """Not in memory, and not in chunks; but loaders may give them, as they do to `fit`."""
    model = DPMixtureVB(2, proposals=None, max_iter=0).fit(ROWS)
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    method, other = getattr(model, name), {"weights": WEIGHTS}
    for given in ({"sample_weight": WEIGHTS}, other):
        for x in (ROWS, rows):
            with pytest.raises(
                TypeError, match=f"unexpected keyword argument '{next(iter(given))}'"
            ):
                method(x, **given)
    one = [dask.delayed({"X": ROWS, "sample_weight": WEIGHTS})]
    np.testing.assert_allclose(method(one)[0].compute(), method(ROWS))


def test_scores_take_weights():
    model = DPMixtureVB(2, proposals=None, max_iter=0).fit(ROWS)
    score = model.score(ROWS, sample_weight=WEIGHTS)
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    for weight in (WEIGHTS, da.from_array(WEIGHTS, chunks=7)):
        assert model.score(rows, None, weight) == pytest.approx(score, rel=1e-12)
        assert model.score(rows, sample_weight=weight) == pytest.approx(score, rel=1e-12)
    one = [dask.delayed({"X": ROWS, "sample_weight": WEIGHTS})]
    assert model.score(one) == pytest.approx(score, rel=1e-12)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        model.score(rows, weights=WEIGHTS)
    with pytest.raises(ValueError, match="sample_weight 0"):
        model.score(rows, sample_weight=0 * WEIGHTS)


def test_a_delayed_object_is_no_collection():
    """It is one chunk of a list; nobody knows its rows. Weights may be of it if there is one chunk."""
    model = DPMixtureVB(2, proposals=None, max_iter=0, random_state=0)
    one = [dask.delayed(ROWS)]
    expected = public_state(model.fit(one, sample_weight=[WEIGHTS]))
    weight = dask.delayed(WEIGHTS)
    assert_same_state(public_state(model.fit(one, sample_weight=weight)), expected)
    for name in ("fit", "partial_fit", "predict", "transform", "score_samples", "score"):
        with pytest.raises(ValueError, match=r"X is a single delayed object.* \[X\]"):
            getattr(model, name)(*one)
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    with pytest.raises(ValueError, match="sample_weight has 1 chunks, but X has 6"):
        model.fit(rows, sample_weight=weight)


def test_futures_stay_with_their_owner(clusters):
    """They can be given to one call after the other; weights too."""
    client = clusters[1]
    with client.as_current():
        rows = [client.submit(np.array, part, pure=False) for part in split(ROWS)]
        weights = [client.submit(np.array, part, pure=False) for part in split(WEIGHTS)]
        model = DPMixtureVB(2, proposals=None, random_state=0)
        expected = public_state(model.fit(rows, sample_weight=weights))
        assert_same_state(public_state(model.fit(rows, sample_weight=weights)), expected)
        score = model.score(rows)
        assert score == model.score(rows) == pytest.approx(model.score(ROWS), rel=1e-12)
        model.partial_fit(rows, batch_id="more", sample_weight=weights)
        assert {future.status for future in rows + weights} == {"finished"}
        np.testing.assert_array_equal(rows[2].result(), split(ROWS)[2])


def test_predictions_by_classes_that_workers_cannot_import(clusters):
    """They are sent by value, and a class of a function does not say there where it is from."""

    class Own(DPMixtureVB):
        pass

    class OwnObservation(GaussianObservation):
        pass

    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    for own in (Own(3), DPMixtureVB(3, observation=OwnObservation())):
        own.set_params(random_state=0).fit(ROWS)
        found = clusters[0].compute(own.predict(rows)).result(timeout=300)
        np.testing.assert_array_equal(found, own.predict(ROWS))
        with clusters[0].as_current():
            assert own.score(rows) == pytest.approx(own.score(ROWS), rel=1e-12)


def test_what_is_wrong_is_said_with_the_chunk():
    bad = ROWS.copy()
    bad[300, 1] = np.inf
    model = DPMixtureVB(random_state=0).fit(ROWS)
    before = vars(model).copy()
    rows = da.from_array(ROWS, chunks=(SIZES, -1))
    wrong = [
        (da.from_array(bad, chunks=(SIZES, -1)), {}, "Chunk 3: Input X contains infinity"),
        ([dask.delayed(ROWS), dask.delayed(ROWS[:, :2])], {}, "Chunk 1: X has 2 features"),
        (rows[:, 0], {}, "1 dimension"),
        (rows, {"sample_weight": np.ones(3)}, "3 entries"),
        (rows, {"sample_weight": -np.ones(700)}, "Chunk 0: sample_weight holds a negative"),
        (rows, {"sample_weight": np.zeros(700)}, "no rows"),
        ([dask.delayed({"x": ROWS})], {}, "dict"),
    ]
    for x, others, message in wrong:
        with pytest.raises(ValueError, match=message):
            model.fit(x, **others)
        assert vars(model) == before
    for params, message in (
        ({"learning_method": "stochastic"}, "partial_fit"),
        ({"init_params": lambda X, n, rng: X}, "names"),
        ({"batch_size": 10}, "n_batches"),
        ({"warm_start": True}, "partial_fit"),
    ):
        with pytest.raises(ValueError, match=message):
            DPMixtureVB(**params).fit(rows)


@pytest.mark.extended
def test_a_fitted_model_needs_no_dask():
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, *args):\n"
        "        if name.split('.')[0] in ('dask', 'distributed'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import pickle, numpy as np\n"
        "from sklearn_bnp import DPMixtureVB, HDPTopicVB, HDPHMMVB\n"
        "model = pickle.loads(sys.stdin.buffer.read())\n"
        "model.predict(np.zeros((2, 3))); model.partial_fit(np.ones((5, 3)))\n"
        "assert not {'dask', 'distributed'} & set(sys.modules)\n"
    )
    model = DPMixtureVB(random_state=0).fit(da.from_array(ROWS, chunks=(SIZES, -1)))
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(model), check=True, timeout=60)
