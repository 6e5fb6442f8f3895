"""Frames of pandas and polars: names of columns, and categories that are not numbers."""

import datetime
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_bnp import (
    HDPHMMVB,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from tests.estimators import FEW_PROPOSALS

LABELS = np.random.default_rng(9).permutation(np.repeat([0, 1, 2], [150, 100, 50]))
CENTERS = np.array([[0.0, 3.0], [4.0, 0.0], [-4.0, -3.0]])
KINDS = np.array(["red", "green", "blue"])


def table(labels=LABELS, seed=0):
    """Columns by name: a note on each row, numbers, and a category."""
    rng = np.random.default_rng(seed)
    x = CENTERS[labels] + rng.standard_normal((len(labels), 2))
    kind = np.where(rng.random(len(labels)) < 0.8, labels, rng.integers(3, size=len(labels)))
    return {
        "note": [f"row {i}" for i in range(len(labels))],
        "width": x[:, 0],
        "kind": KINDS[kind].tolist(),
        "height": x[:, 1],
        "broken": kind == 1,
    }


def numbers(labels=LABELS, seed=0):
    """The same as an array; codes are in sorted order."""
    columns = table(labels, seed)
    codes = np.searchsorted(np.sort(KINDS), columns["kind"])
    zeros = np.zeros(len(labels))
    return np.column_stack([zeros, columns["width"], codes, columns["height"], columns["broken"]])


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    """pandas or polars."""
    return pytest.importorskip(request.param)


def as_categories(frames, frame, name, categories):
    """The frame with a dtype of categories in a column."""
    if frames.__name__ == "pandas":
        return frame.assign(**{name: frames.Categorical(frame[name], categories=categories)})
    return frame.with_columns(frames.col(name).cast(frames.Enum(categories)))


def with_kind(frames, frame, kind):
    """The frame with this kind in all rows."""
    if frames.__name__ == "pandas":
        return frame.assign(kind=kind)
    return frame.with_columns(frames.lit(kind).alias("kind"))


BY_NAME = [("size", "gaussian", ["width", "height"]), ("kind", "categorical", "kind")]
BY_NUMBER = [("size", "gaussian", [1, 3]), ("kind", "categorical", [2])]


def mixture(blocks=BY_NAME):
    observation = ColumnObservation(blocks)
    return DPMixtureVB(observation=observation, proposals=FEW_PROPOSALS, random_state=0)


# ---------------------------------------------------------------------- columns


@pytest.mark.quarter
@pytest.mark.parametrize(
    "blocks",
    [
        BY_NAME,
        BY_NUMBER,
        [("size", "gaussian", ("width", "height")), ("kind", "categorical", slice("kind", "kind"))],
        [
            ("size", "gaussian", lambda X: [X.columns[1], X.columns[3]]),
            ("kind", "categorical", [False, False, True, False, False]),
        ],
    ],
)
def test_frames_are_arrays_with_names(frames, blocks):
    """Other columns may hold anything."""
    frame, X = frames.DataFrame(table()), numbers()
    expected = mixture(BY_NUMBER).fit(X)
    model = mixture(blocks).fit(frame)
    # arrays whose columns lie otherwise in memory may be summed in another order
    assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-12)
    assert_array_equal(model.predict(frame), expected.predict(X))
    assert_allclose(model.score_samples(frame), expected.score_samples(X), rtol=1e-12)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.categories_.keys() == {"kind"}
    assert model.categories_["kind"].tolist() == sorted(KINDS)
    assert not hasattr(expected, "categories_")
    assert frame["kind"][0] in KINDS  # what the user has stays as it was


def test_column_selectors():
    pandas = pytest.importorskip("pandas")
    numeric = make_column_selector(dtype_include="float")
    blocks = [("size", "gaussian", numeric), ("kind", "categorical", make_column_selector("kind"))]
    model = mixture(blocks).fit(pandas.DataFrame(table()))
    expected = mixture(BY_NUMBER).fit(numbers())
    assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-12)
    assert clone(model).fit(pandas.DataFrame(table())).n_components_ == 3


def test_functions_without_a_name_go_on(frames):
    model = mixture([("size", "gaussian", lambda X: ["width", "height"])])
    frame = frames.DataFrame(table())
    model.partial_fit(frame).partial_fit(frame)
    model.set_params(observation__size__covariance_type="diag")
    with pytest.raises(ValueError, match="differs from that of the fit"):
        model.partial_fit(frame)


def test_whole_frames_of_categories(frames):
    columns = table()
    frame = frames.DataFrame({name: columns[name] for name in ("kind", "broken")})
    model = DPMixtureVB(observation="categorical", random_state=0).fit(frame)
    assert model.probabilities_.shape == (model.n_components_, 2, 3)
    assert model.categories_.keys() == {"kind"}  # booleans are codes already


@pytest.mark.quarter
def test_frames_of_numbers_are_left_alone(frames):
    columns = table()
    frame = frames.DataFrame({name: columns[name] for name in ("width", "height")})
    model = DPMixtureVB(random_state=0).fit(frame)
    X = numbers()[:, [1, 3]]
    expected = DPMixtureVB(random_state=0).fit(X)
    assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-12)
    assert not hasattr(model, "_reading")


# ---------------------------------------------------------------------- categories


def test_codes_are_those_of_fit(frames):
    """A frame with fewer categories, or with a dtype of them in another order, means the same."""
    model = mixture().fit(frames.DataFrame(table()))
    frame = frames.DataFrame(table(LABELS[LABELS > 0], seed=1))
    X = numbers(LABELS[LABELS > 0], seed=1)
    expected = mixture(BY_NUMBER).fit(numbers()).predict(X)
    assert_array_equal(model.predict(frame), expected)
    other = as_categories(frames, frame, "kind", ["red", "blue", "green"])
    assert_array_equal(model.predict(other), expected)
    assert model.predict(with_kind(frames, frame, "red")).shape == (150,)


@pytest.mark.quarter
def test_declared_categories_may_come_later(frames):
    names = ["red", "green", "blue", "black"]
    frame = as_categories(frames, frames.DataFrame(table()), "kind", names)
    model = mixture().partial_fit(frame[:200])
    assert model.categories_["kind"].tolist() == names
    assert model.blocks_["kind"]["probabilities_"].shape == (model.n_components_, 1, 4)
    black = as_categories(frames, with_kind(frames, frame[200:], "black"), "kind", names)
    model.partial_fit(black)
    assert model.blocks_["kind"]["probabilities_"][:, 0, 3].max() > 0.05


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_declared_categories_may_be_times(unit):
    """NumPy has those to the nanosecond as whole numbers, which are not what rows hold."""
    pandas = pytest.importorskip("pandas", minversion="2.0")  # others know nanoseconds alone
    days = pandas.to_datetime(["2020-01-03", "2020-01-01", "2020-01-02"]).as_unit(unit)
    kind = np.array(table()["kind"])
    codes = np.searchsorted(np.sort(KINDS), kind)
    declared = pandas.Categorical.from_codes(codes, categories=days)
    assert declared.categories.dtype == f"datetime64[{unit}]"
    model = mixture().fit(pandas.DataFrame({**table(), "kind": declared}))
    assert model.categories_["kind"].tolist() == list(days)
    expected = mixture(BY_NUMBER).fit(numbers())
    assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-12)
    plain = pandas.DataFrame({**table(), "kind": days[codes]})  # the same values as no categories
    assert_array_equal(model.predict(plain), expected.predict(numbers()))


def test_categories_never_seen(frames):
    frame = frames.DataFrame(table())
    model = mixture().fit(frame)
    before = model.lower_bound_
    pattern = re.escape("Column 'kind' of X holds 'black', a category that was not there in fit")
    for method in (model.predict, model.score_samples, model.partial_fit):
        with pytest.raises(ValueError, match=pattern):
            method(with_kind(frames, frame, "black"))
    assert model.lower_bound_ == before


def test_of_many_categories_a_few_are_named(frames):
    """So that the remedy after them can be found."""
    kinds = [f"kind {i % 150:03}" for i in range(len(LABELS))]
    frame = frames.DataFrame({**table(), "kind": kinds})
    model = mixture().fit(frame)
    with pytest.raises(ValueError, match=r"'kind 009', \.\.\.\], 150 in all\. Declare") as error:
        model.predict(with_kind(frames, frame, "black"))
    assert "kind 010" not in str(error.value)
    wide = frames.DataFrame({f"column {i:02}": np.zeros(5) for i in range(40)})
    with pytest.raises(
        ValueError, match=r"'column 09', \.\.\.\], 40 in all\. Did you mean 'column 3"
    ):
        mixture([("size", "gaussian", "column 3")]).fit(wide)


@pytest.mark.quarter
@pytest.mark.parametrize("kind", [5, 2.0, True])
def test_numbers_in_place_of_strings(frames, kind):
    """They may be what the strings say, or codes: nobody knows which. Arrays hold codes."""
    names = np.array(["10", "2", "1"])[LABELS].tolist()
    frame = frames.DataFrame({**table(), "kind": names})
    model = mixture().fit(frame)
    before = model.lower_bound_
    other = with_kind(frames, frame, kind)
    remedy = "astype(str)" if frames.__name__ == "pandas" else "cast(str)"
    pattern = f"Column 'kind' of X .* holds the number {kind!r}.* '10'.*frame['kind'].{remedy}"
    pattern = ".*".join(map(re.escape, pattern.split(".*")))
    for method in (model.predict, model.score_samples, model.score, model.partial_fit):
        with pytest.raises(ValueError, match=pattern):
            method(other)
    assert model.lower_bound_ == before
    if kind != 5:
        return
    whole = frames.DataFrame({**table(), "kind": names})[["width", "kind"]]
    sequences = HDPHMMVB(
        observation=ColumnObservation([("size", "gaussian", ["width"]), ("kind", "categorical", "kind")]),
        max_iter=0,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"Column 'kind' of X .* holds the number 5"):
        sequences.fit([whole, with_kind(frames, whole, kind)])


def test_strings_are_converted_as_the_message_says(frames):
    numbers_ = np.array([10, 2, 1])[LABELS]
    frame = frames.DataFrame({**table(), "kind": numbers_.astype(str).tolist()})
    model = mixture().fit(frame)
    if frames.__name__ == "pandas":
        other = frame.assign(kind=numbers_)
        other["kind"] = other["kind"].astype(str)
    else:
        other = frame.with_columns(frames.Series("kind", numbers_).cast(str))
    assert_array_equal(model.predict(other), model.predict(frame))
    X = np.column_stack([numbers()[:, [0, 1]], np.array([1, 2, 0])[LABELS], numbers()[:, [3, 4]]])
    with pytest.warns(UserWarning, match="feature names"):
        found = model.predict(X)  # codes
    assert_array_equal(found, model.predict(frame))


def test_columns_without_any_number(frames):
    """pandas has columns of None in floating point."""
    frame = frames.DataFrame(table())
    model = mixture().fit(frame)
    nothing = [float("nan") if frames.__name__ == "pandas" else None] * len(LABELS)
    if frames.__name__ == "pandas":
        other = frame.assign(kind=nothing)
    else:
        other = frame.with_columns(frames.Series("kind", nothing, dtype=frames.Float64))
    assert_array_equal(model.predict(other), model.predict(with_kind(frames, frame, None)))


def test_numbers_as_categories():
    """A column whose categories are numbers goes on to take numbers."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**table(), "kind": pandas.Categorical(LABELS)})
    model = mixture().fit(frame)
    assert model.categories_["kind"].tolist() == [0, 1, 2]
    assert_array_equal(model.predict(frame.assign(kind=LABELS)), model.predict(frame))


@pytest.mark.parametrize("dtype", [int, float])
def test_numbers_are_looked_up_among_categories_that_are_numbers(frames, dtype):
    """In any order, and wherever they begin: they are no codes."""
    names, kinds = ["30", "10", "20"], np.array([30, 10, 20])[LABELS]
    of_pandas = frames.__name__ == "pandas"
    if of_pandas:
        declared = frames.Categorical(kinds, categories=[30, 10, 20])
    else:
        declared = frames.Series("kind", kinds.astype(str)).cast(frames.Enum(names))
    frame = frames.DataFrame({**table(), "kind": declared})
    model = mixture().fit(frame)
    plain = frames.DataFrame({**table(), "kind": kinds.astype(dtype)})
    if not of_pandas:  # categories of polars are strings
        with pytest.raises(ValueError, match="Column 'kind' of X has dtype"):
            model.predict(plain)
        return
    assert model.categories_["kind"].tolist() == [30, 10, 20]
    assert_array_equal(model.predict(plain), model.predict(frame))
    with pytest.raises(
        ValueError, match=r"Column 'kind' of X holds 40.*, a category that was not there"
    ):
        model.predict(plain.assign(kind=kinds + 10))


def test_another_fit_forgets_categories(frames):
    model = mixture().fit(frames.DataFrame(table()))
    model.set_params(observation=ColumnObservation(BY_NUMBER)).fit(numbers())
    assert not hasattr(model, "categories_")
    assert model.predict(numbers()).shape == LABELS.shape


def test_arrays_for_categories_that_are_numbers(frames):
    """They may hold categories or codes; where these differ, nobody knows which."""
    pd = pytest.importorskip("pandas")
    codes = np.random.default_rng(0).integers(2, size=(80, 2))
    for categories, are_codes in (([0, 1], True), ([1, 0], False), ([2, 7], False)):
        values = np.array(categories)[codes]
        kind = pd.CategoricalDtype(categories)
        frame = pd.DataFrame(values, columns=["a", "b"]).astype(kind)
        model = DPMixtureVB(observation="categorical", random_state=0).fit(frame)
        drawn, _ = model.sample(50)
        assert np.isfinite(model.score(pd.DataFrame(drawn.astype(int), columns=["a", "b"])))
        if are_codes:
            with pytest.warns(match="feature names"):
                assert model.score(values) == pytest.approx(model.score(frame))
        else:
            before = pickle.dumps(model)
            for call in (model.score, model.predict, model.partial_fit):
                with pytest.raises(ValueError, match=r"column 'a' .*categories.*give a frame"):
                    call(values)
            assert pickle.dumps(model) == before


def test_a_failed_fit_keeps_what_was_known(frames):
    frame = frames.DataFrame(table())
    model = mixture().fit(frame)
    with pytest.raises(ValueError, match=r"Column 'note' of X has dtype"):
        model.set_params(observation="gaussian").fit(frame)
    model.set_params(observation=ColumnObservation(BY_NAME))
    assert model.categories_["kind"].tolist() == sorted(KINDS)
    assert model.predict(frame).shape == LABELS.shape


# ---------------------------------------------------------------------- bad input


def test_unknown_names(frames):
    frame = frames.DataFrame(table())
    for columns in ("depth", ["width", "depth"], slice("width", "depth")):
        with pytest.raises(
            ValueError, match=r"Column 'depth' is not in X; its columns are \['note'"
        ):
            mixture([("size", "gaussian", columns)]).fit(frame)
    with pytest.raises(ValueError, match="Column 'width' is in block 'a' and in block 'b'"):
        mixture([("a", "gaussian", "width"), ("b", "poisson", [1])]).fit(frame)
    with pytest.raises(ValueError, match="Block 'none' has no columns"):
        mixture([("none", "gaussian", lambda X: [])]).fit(frame)


def test_columns_in_another_order(frames):
    frame = frames.DataFrame(table())
    model = mixture().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list(frame.columns)[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "kind"]])


def test_frames_without_rows(frames):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        mixture().fit(frames.DataFrame(table())[:0])


def test_columns_without_a_category(frames):
    frame = with_kind(frames, frames.DataFrame(table()), None)
    with pytest.raises(ValueError, match="Column 'kind' of X holds no category at all"):
        mixture().fit(frame)


@pytest.mark.parametrize(
    "value", [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2), datetime.timedelta(1), "x"]
)
@pytest.mark.parametrize("observation", ["gaussian", ColumnObservation(BY_NAME)])
def test_columns_that_are_no_numbers(frames, value, observation):
    """A date is days or microseconds, as the library has it: nobody said which."""
    columns = table()
    if observation == "gaussian":
        columns = {"height": columns["height"]}
    model = DPMixtureVB(observation=observation, max_iter=0)
    frame = frames.DataFrame({**columns, "width": [value] * len(LABELS)})
    with pytest.raises(ValueError, match=r"Column 'width' of X has dtype .* must be numbers"):
        model.fit(frame)
    good = frames.DataFrame({**columns, "width": table()["width"]})
    model.fit(good)
    with pytest.raises(ValueError, match="Column 'width' of X has dtype"):
        model.predict(frame)
    assert model.predict(good).shape == LABELS.shape


def test_values_that_are_no_categories(frames):
    values = [[1], [2]] * (len(LABELS) // 2)
    frame = frames.DataFrame({**table(), "kind": values})
    with pytest.raises(ValueError, match=r"Column 'kind' of X .* cannot be categories: unhashable"):
        mixture().fit(frame)


@pytest.mark.extended
@pytest.mark.parametrize("dtype", ["object", "Float64"])
def test_missing_numbers_of_pandas(dtype):
    """pandas.NA is not observed, and numbers may be objects."""
    pandas = pytest.importorskip("pandas")
    columns = {name: table()[name] for name in ("width", "height")}
    frame = pandas.DataFrame(columns, dtype=dtype)
    frame.iloc[3, 1] = pandas.NA
    X = np.column_stack(list(columns.values()))
    X[3, 1] = np.nan
    model = DPMixtureVB(random_state=0)
    assert_allclose(model.fit(frame).score_samples(frame), clone(model).fit(X).score_samples(X))


def test_names_that_stand_twice():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(numbers()[:, [1, 3]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Column 'a' is in X more than once"):
        mixture([("size", "gaussian", "a")]).fit(frame)


# ---------------------------------------------------------------------- with others


@pytest.mark.extended
def test_sequences(frames):
    """Lists of frames: categories are those of all of them."""
    states = np.repeat(np.tile([0, 1, 2, 1], 6), 15)
    parts = [
        frames.DataFrame(table(states[rows], seed))
        for seed, rows in enumerate(np.split(np.arange(360), 3))
    ]
    model = HDPHMMVB(observation=ColumnObservation(BY_NAME), random_state=0).fit(parts)
    assert model.n_components_ == 3
    assert adjusted_rand_score(states, np.concatenate(model.predict(parts))) >= 0.99
    assert model.categories_["kind"].tolist() == sorted(KINDS)
    one = with_kind(frames, parts[0], "red")
    again = HDPHMMVB(observation=ColumnObservation(BY_NAME), random_state=0).fit([one, *parts])
    assert again.categories_["kind"].tolist() == sorted(KINDS)
    whole = HDPHMMVB(observation=ColumnObservation(BY_NAME), random_state=0)
    whole.fit(frames.DataFrame(table(states)), lengths=[120] * 3)
    assert whole.n_components_ == 3


def test_documents_of_rows(frames):
    groups = np.arange(len(LABELS)) % 20
    model = HDPTopicVB(observation=ColumnObservation(BY_NAME), random_state=0)
    model.fit(frames.DataFrame(table()), groups=groups)
    assert model.n_components_ == 3
    found = model.predict(frames.DataFrame(table()), groups=groups)
    assert adjusted_rand_score(LABELS, found) >= 0.99


@pytest.mark.quarter
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB, HDPTopicVB])
def test_samples_hold_the_categories(frames, estimator):
    """Samples can be put into a frame, which the model explains like those of the fit."""
    columns = table()
    model = estimator(observation=ColumnObservation(BY_NAME), random_state=0)
    groups = {"groups": np.arange(len(LABELS)) // 30} if estimator is HDPTopicVB else {}
    model.fit(frames.DataFrame(columns), **groups)
    size = {"n_tokens": 60} if estimator is HDPTopicVB else {"n_samples": 60}
    drawn, _ = model.sample(**size, random_state=0)
    assert drawn.dtype == object
    names = list(columns)
    assert set(drawn[:, names.index("kind")]) == set(KINDS)
    frame = frames.DataFrame({name: drawn[:, d].tolist() for d, name in enumerate(names)})
    whole = {"groups": np.zeros(60)} if groups else {}
    assert np.isfinite(model.score(frame, **whole))


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB, HDPTopicVB, MemoryBoundedTopicVB])
def test_lazy_frames(estimator):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"width": table()["width"], "height": table()["height"]})
    with pytest.raises(
        ValueError, match=r"X is a LazyFrame, which is computed later: give X.collect"
    ):
        estimator().fit(frame.lazy())


def test_categories_that_are_allowed_for_have_no_names(frames):
    """They were never observed, and so a sample that holds one is missing there."""
    frame = frames.DataFrame({"kind": table()["kind"]})
    observation = CategoricalObservation(n_categories=9, prior=10.0)
    model = DPMixtureVB(observation=observation, random_state=0).fit(frame)
    drawn, _ = model.sample(200, random_state=0)
    assert set(drawn[:, 0]) == {*KINDS, None}
    assert np.isfinite(model.score(frames.DataFrame({"kind": drawn[:, 0].tolist()})))


def test_epochs_in_bounded_memory(frames):
    """Blocks by name are those of the arrays, and the second epoch goes on from the first."""
    frame, X = frames.DataFrame(table()), numbers()
    model = MemoryBoundedTopicVB(observation=ColumnObservation(BY_NAME))
    expected = MemoryBoundedTopicVB(observation=ColumnObservation(BY_NUMBER))
    for _ in range(2):
        model.partial_fit(frame, groups=np.zeros(len(X)))
        expected.partial_fit(X, groups=np.zeros(len(X)))
    assert model.history_[-1].n_components == expected.n_components_ == 3
    assert model.n_rows_ == 2 * len(X)
    one = np.zeros(len(X))
    assert_array_equal(model.predict(frame, groups=one), expected.predict(X, groups=one))
    assert model.categories_["kind"].tolist() == sorted(KINDS)


@pytest.mark.extended
def test_pipeline_and_grid_search(frames):
    pipe = make_pipeline(FunctionTransformer(), mixture())
    search = GridSearchCV(
        pipe,
        {"dpmixturevb__observation__size__covariance_type": ["spherical", "full"]},
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(frames.DataFrame(table()))
    assert search.best_estimator_[-1].categories_["kind"].tolist() == sorted(KINDS)
    assert adjusted_rand_score(LABELS, search.predict(frames.DataFrame(table()))) >= 0.99


@pytest.mark.parametrize(
    "others, dtype",
    [
        ({}, np.float64),
        ({"n": np.int8}, np.float64),
        ({"n": bool}, np.float64),
        ({"n": np.float64}, np.float64),
        ({"n": np.float32}, np.float32),
        ({"n": np.float32, "m": np.float64}, np.float64),
    ],
)
def test_the_precision_of_a_frame_is_that_of_its_floats(frames, others, dtype):
    """Whether there are texts beside them or not; categories alone are as precise as an array of codes."""
    codes = np.random.default_rng(0).integers(2, size=60)
    columns = {name: codes.astype(kind) for name, kind in others.items()}
    columns |= {"a": np.array(["x", "y"])[codes], "b": np.array(["u", "v"])[codes[::-1]]}
    frame = frames.DataFrame(columns)
    blocks = [("c", "categorical", ["a"])]
    if others:
        blocks.append(("n", "gaussian", list(others)))
    observation = ColumnObservation(blocks)
    model = DPMixtureVB(2, observation=observation, proposals=None, random_state=0).fit(frame)
    assert model.transform(frame).dtype == model.predict_proba(frame).dtype == dtype


def test_texts_and_their_codes_are_learned_alike():
    """To the last bit: neither is in single precision."""
    pandas = pytest.importorskip("pandas")
    codes = np.random.default_rng(0).integers(3, size=(80, 2))
    texts = pandas.DataFrame(np.array(["a", "b", "c"])[codes], columns=["p", "q"])
    model = DPMixtureVB(2, observation="categorical", proposals=None, random_state=0)
    other = clone(model).fit(codes)
    model.fit(texts)
    assert model.lower_bound_ == other.lower_bound_
    assert_array_equal(model.transform(texts), other.transform(codes))


@pytest.mark.parametrize("observation", ["bernoulli", "categorical"])
def test_booleans_that_are_missing(observation):
    polars = pytest.importorskip("polars")
    columns = {"u": [True, False, None] * 20, "v": [True, True, False] * 20}
    model = DPMixtureVB(observation=observation, random_state=0).fit(polars.DataFrame(columns))
    numbers = np.array([[np.nan if v is None else float(v) for v in c] for c in columns.values()]).T
    same = DPMixtureVB(observation=observation, random_state=0).fit(numbers)
    assert model.lower_bound_ == pytest.approx(same.lower_bound_)
