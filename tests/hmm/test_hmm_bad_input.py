"""Bad input to `HDPHMMVB`: an error that names parameter, value and remedy, and a model left as it was."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    Birth,
    Delete,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    Merge,
    StateBirth,
    StateDelete,
    StateMerge,
    TopicBirth,
    TopicDelete,
)
from tests.estimators import BAD_VALUES, assert_same_state, cases, chains, names, public_state

X, _ = chains(4, 30)
ROWS, LENGTHS = np.concatenate(X), [len(x) for x in X]
N, D = ROWS.shape
GROUPS = np.repeat(np.arange(len(X)), LENGTHS)


def with_value(value):
    """The sequences with one of their values replaced."""
    changed = [x.copy() for x in X]
    changed[1][7, 1] = value
    return changed


@pytest.fixture(scope="module")
def fitted():
    return HDPHMMVB(random_state=0).fit(X)


# ---------------------------------------------------------------------- parameters

PARAMETERS = {
    **BAD_VALUES,
    "observation": ["gauss", 3, None, ["gaussian"]],
    "allocation": ["dp", 3, None, ["hdp"]],
    "transition_concentration": [0, -1.0, np.nan, "one", [1.0]],
    "start_concentration": [0, -1.0, np.nan, "one", [1.0]],
    "stickiness": [-1.0, np.nan, None, "very"],
    "weight_concentration_prior": [0, -1.0, np.nan, "one", [1.0]],
    "proposals": ["split", ("birth", "split"), 3, [3], (StateBirth,), {"birth"}, {"birth": 1}],
    "init_params": ["kmeans", 3, None],
    "low_memory": ["yes", 2, None],
    "half_life": [0, 0.4, -1.0, "long"],
    "learning_decay": [0.4, 1.1, "slow"],
}


def test_every_parameter_is_tested():
    assert set(PARAMETERS) == set(HDPHMMVB().get_params(deep=False))


@pytest.mark.parametrize(("name", "value"), cases(PARAMETERS))
def test_parameter_is_refused_by_name(name, value):
    model = HDPHMMVB(**{name: value})
    for method in (model.fit, model.partial_fit):
        with pytest.raises((ValueError, TypeError), match=names(name)):
            method(X)
        assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


@pytest.mark.parametrize("proposal", [Birth(), Delete(), Merge(), TopicBirth(), TopicDelete()])
def test_proposals_of_other_models(proposal):
    with pytest.raises(
        ValueError, match=names("another kind of model", f"State{proposal.kind.title()}()")
    ):
        HDPHMMVB(proposals=(proposal,)).fit(X)


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPTopicVB])
@pytest.mark.parametrize("proposal", [StateBirth(), StateMerge(), StateDelete()])
def test_proposals_of_states_are_for_sequences(estimator, proposal):
    with pytest.raises(ValueError, match=names("another kind of model", repr(proposal))):
        estimator(proposals=(proposal,)).fit(np.abs(ROWS))


def test_two_ways_to_say_how_many_batches():
    with pytest.raises(ValueError, match=names("batch_size=2", "n_batches=3")):
        HDPHMMVB(batch_size=2, n_batches=3).fit(X)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_more_states_than_rows(init):
    with pytest.raises(ValueError, match=names("n_components=11", "10 rows", "fewer")):
        HDPHMMVB(11, init_params=init).fit(X[0][:10])


@pytest.mark.parametrize(
    ("resp", "words"),
    [
        (np.ones((N - 1, 1)), (N, "shape")),
        (np.ones(N), (N, "shape")),
        (np.full((N, 2), 0.6), ("sum to 1.2",)),
        (np.tile([1.5, -0.5], (N, 1)), ("negative", -0.5)),
        (np.full((N, 2), np.nan), ("NaN",)),
        ([np.ones((len(x) + 1, 1)) for x in X], (N, "shape")),
        (lambda X, n, rng: np.ones((3, 1)), (N, "shape")),
    ],
    ids=["rows", "vector", "sum", "negative", "nan", "list", "callable"],
)
def test_responsibilities(resp, words):
    with pytest.raises(ValueError, match=names("init_params", *words)):
        HDPHMMVB(init_params=resp).fit(X)


# ---------------------------------------------------------------------- sequences

BAD_DATA = {
    "empty list": ([], {}, ("empty list",)),
    "empty sequence": ([X[0], X[1][:0]], {}, ("X[1]", "leave out")),
    "no rows": (ROWS[:0], {}, ("0 sample(s)",)),
    "one row": (ROWS[:1], {}, ("n_samples=1", "minimum of 2")),
    "widths": ([X[0], X[1][:, :2]], {}, ("X[1]", "2 features", "X[0] has 3")),
    "rows of unequal lengths": ([[1.0, 2.0], [3.0]], {}, ("X[0]", "(2,)")),
    "vectors of unequal lengths": ([X[0][:, 0], X[1][:, 0]], {}, ("X[0]", "reshape(-1, 1)")),
    "three dimensions": ([X[0], X[1][np.newaxis]], {}, ("X[1]", "n_timesteps")),
    "one vector": (ROWS[:, 0], {}, ("2D", "Reshape")),
    "inf": (with_value(np.inf), {}, ("infinity", "X[1]")),
    "large": (with_value(1e200), {}, ("1e+200", "Rescale")),
    "text": ([X[0], np.full((3, D), "a")], {}, ("strings", "Convert")),
    "complex": ([x + 1j for x in X], {}, ("Complex",)),
    "sparse": ([sparse.csr_matrix(x) for x in X], {}, ("parse",)),
    "both": (ROWS, {"lengths": LENGTHS, "groups": GROUPS}, ("lengths", "groups", "both")),
    "lengths of a list": (X, {"lengths": LENGTHS}, ("lengths", "list", "leave")),
    "groups of a list": (X, {"groups": GROUPS}, ("groups", "list", "leave")),
    "sum": (ROWS, {"lengths": [N - 1]}, ("lengths", N - 1, N)),
    "zero": (ROWS, {"lengths": [0, N]}, ("lengths", "1 or more")),
    "negative": (ROWS, {"lengths": [-1, N + 1]}, ("lengths", "1 or more")),
    "not whole": (ROWS, {"lengths": [0.5, N - 0.5]}, ("lengths", "whole numbers")),
    "of booleans": (ROWS[:2], {"lengths": [True, True]}, ("lengths", "whole numbers")),
    "a number": (ROWS, {"lengths": N}, ("lengths", "list")),
    "of lists": (ROWS, {"lengths": [[1], [2, 3]]}, ("lengths", "list")),
    "no lengths": (ROWS, {"lengths": []}, ("lengths",)),
    "too few groups": (ROWS, {"groups": GROUPS[:-1]}, ("groups", N - 1, N)),
    "nan groups": (
        ROWS,
        {"groups": np.where(GROUPS > 0, GROUPS, np.nan)},
        ("groups", "NaN", "sequence"),
    ),
    "none among groups": (ROWS, {"groups": [*GROUPS[1:], None]}, ("groups", "None", "sequence")),
    "table of groups": (ROWS, {"groups": np.ones((N, 2))}, ("groups", "one id")),
    "mixed groups": (
        ROWS,
        {"groups": np.array([1, "a"] * (N // 2) + [1] * (N % 2), dtype=object)},
        ("groups", "sorted"),
    ),
}

bad_data = pytest.mark.parametrize(("data", "given", "words"), BAD_DATA.values(), ids=BAD_DATA)


@bad_data
@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_predict"])
def test_bad_sequences_leave_a_model_as_it_was(method, data, given, words):
    model = HDPHMMVB(random_state=0)
    with pytest.raises((ValueError, TypeError), match=names(*words)):
        getattr(model, method)(data, **given)
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


@bad_data
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decode", "score", "score_samples"])
def test_bad_sequences_are_not_predicted(method, data, given, words, fitted):
    if words[0] == "n_samples=1":
        pytest.skip("one row may be predicted")
    before = public_state(fitted)
    with pytest.raises((ValueError, TypeError), match=names(*words)):
        getattr(fitted, method)(data, **given)
    assert_same_state(public_state(fitted), before)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score", "decode"])
def test_regressions_of_too_short_sequences(method):
    model = HDPHMMVB(observation="autoregressive", proposals=None, random_state=0).fit(X)
    with pytest.raises(
        ValueError, match=names("Sequence 1 has 1 row", "Autoregressive", "2 or more")
    ):
        getattr(model, method)([X[0], X[1][:1]])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("order", [0, -1, 1.5, "1", None])
def test_orders_of_regressions(order, method):
    """Lags are asked for before the likelihood is made, and are checked before that."""
    model = HDPHMMVB(observation=AutoregressiveObservation(order))
    with pytest.raises(ValueError, match="The 'order' parameter of AutoregressiveObservation"):
        getattr(model, method)(X)


def test_other_columns_than_before(fitted):
    for method in (fitted.predict, fitted.partial_fit, fitted.predict_next):
        with pytest.raises(ValueError, match=names("2 features", "expecting 3")):
            method(X[0][:, :2])
    with pytest.raises(ValueError, match=names("2 features", "expecting 3")):
        fitted.predict([X[0][:, :2], X[1][:, :2]])


def test_another_observation_cannot_go_on():
    model = HDPHMMVB(random_state=0).partial_fit(X[:2])
    before = public_state(model)
    model.set_params(observation="autoregressive")
    with pytest.raises(ValueError, match=names("observation", "partial_fit", "fit")):
        model.partial_fit(X[2:])
    assert_same_state(public_state(model), before)


def test_batches_far_from_the_first():
    model = HDPHMMVB(random_state=0).partial_fit(X[:2])
    before = public_state(model)
    with pytest.raises(ValueError, match=names("standard deviations", "fit")):
        model.partial_fit([x + 1e12 for x in X[2:]])
    assert_same_state(public_state(model), before)


def test_batch_id():
    with pytest.raises(TypeError, match=names("batch_id", "hashable")):
        HDPHMMVB().partial_fit(X, batch_id=[1])


@pytest.mark.parametrize(
    ("name", "value"), [("n_samples", 0), ("n_samples", 1.5), ("n_sequences", 0)]
)
def test_sizes_of_samples(name, value, fitted):
    with pytest.raises(ValueError, match=names(f"{name}={value}", "1 or more")):
        fitted.sample(**{name: value})


def test_messages_of_other_models(fitted):
    _, message = fitted.predict_next(X[0])
    for wrong in (message._replace(proba=np.ones(1)), message._replace(rows=np.ones((0, 7))), 3):
        with pytest.raises(ValueError, match=names("message", "message=None")):
            fitted.predict_next(X[0], wrong)


def test_a_fit_that_fails_leaves_the_last_one(fitted):
    model = HDPHMMVB(random_state=0).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(with_value(np.inf))
    assert_same_state(public_state(model), public_state(fitted))


# ---------------------------------------------------------------------- what is easily confused

TAKE_Y = ["fit", "partial_fit", "fit_predict", "score"]


@pytest.mark.parametrize("method", TAKE_Y)
@pytest.mark.parametrize("form", [list, tuple, np.array, lambda lengths: sum(lengths)])
def test_lengths_are_given_by_name(method, form, fitted):
    """In hmmlearn they are the second argument, which in scikit-learn is y."""
    model = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(ValueError, match=names("y is ignored", "sum to the 127 rows", "lengths=")):
        getattr(model, method)(ROWS, form(LENGTHS))
    with pytest.raises(ValueError, match=names("y is ignored", "each row", N, "lengths=")):
        getattr(model, method)(ROWS, LENGTHS[:-1])
    assert_same_state(public_state(model), public_state(fitted))


@pytest.mark.quarter
@pytest.mark.parametrize("method", TAKE_Y)
def test_labels_are_ignored(method):
    given = {
        "labels": (ROWS, np.arange(N)),
        "strings": (ROWS, ["a"] * N),
        "table": (ROWS, np.ones((N, 2))),
        "one a sequence": (X, [0, 1, 0, 1]),
        "list of labels": (X, [np.zeros(len(x)) for x in X]),
    }
    for data, y in given.values():
        model = HDPHMMVB(max_iter=0, random_state=0).fit(data)
        getattr(model, method)(data, y)
    with pytest.raises(ValueError, match=names("y is ignored", "each sequence", "leave it out")):
        getattr(model, method)(X, np.zeros(N))


@pytest.mark.quarter
@pytest.mark.parametrize("method", TAKE_Y)
def test_labels_of_known_sequences(method, fitted):
    """Who says which rows are a sequence means no lengths by y."""
    groups = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    for given in ({"lengths": LENGTHS}, {"groups": groups}):
        model = HDPHMMVB(max_iter=0, random_state=0).fit(ROWS, **given)
        getattr(model, method)(ROWS, np.arange(len(LENGTHS)), **given)
    pandas = pytest.importorskip("pandas")
    for y in ([np.zeros(3), np.ones(3)], [pandas.Series([1.0, 2.0])] * 2, np.ones((2, 3))):
        with pytest.raises(ValueError, match=names("y is ignored", "each row", "lengths=")):
            getattr(HDPHMMVB(max_iter=0, random_state=0).fit(X), method)(ROWS, y)


VECTORS = [x[:20, 0] for x in X]


@pytest.fixture(scope="module")
def fitted_to_columns():
    return HDPHMMVB(random_state=0).fit([v[:, np.newaxis] for v in VECTORS])


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score", "decode"])
def test_vectors_of_equal_lengths(method, fitted, fitted_to_columns):
    """Sequences of a single feature, or rows of one sequence? Lists of numbers are rows, as ever."""
    vectors = VECTORS
    objects = np.empty(len(X), dtype=object)
    objects[:] = vectors
    for data in (vectors, tuple(vectors), objects):
        model = deepcopy(fitted_to_columns)
        with pytest.raises(ValueError, match=names("X[0]", "reshape(-1, 1)", "np.stack(X)")):
            getattr(model, method)(data)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=names("X[0]", "reshape(-1, 1)", "np.stack(X)")):
        getattr(model, method)([pandas.Series(v) for v in vectors])
    observation = GaussianObservation("diag")  # four rows are too few for full covariances
    rows = HDPHMMVB(observation=observation, max_iter=0, random_state=0).fit(np.stack(vectors))
    getattr(rows, method)([v.tolist() for v in vectors])
    assert rows.n_features_in_ == 20
