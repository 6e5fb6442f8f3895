"""Blocks of columns: their parameters, their columns, and what of them is additive; laws test the rest."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
)

LABELS = np.repeat([0, 1, 2], [150, 100, 50])
CENTERS = np.array([[0.0, 3.0], [4.0, 0.0], [-4.0, -3.0]])
RATES = np.array([2.0, 10.0, 30.0])


def mixed(labels, seed=0):
    """Columns: a number, a category, a number, a count, and one that says nothing."""
    rng = np.random.default_rng(seed)
    n = len(labels)
    x = CENTERS[labels] + rng.standard_normal((n, 2))
    kind = np.where(rng.random(n) < 0.8, labels, rng.integers(3, size=n))
    return np.column_stack([x[:, 0], kind, x[:, 1], rng.poisson(RATES[labels]), rng.normal(size=n)])


def blocks():
    return [
        ("size", "gaussian", [0, 2]),
        ("kind", "categorical", [1]),
        ("tally", "poisson", slice(3, 4)),
    ]


def fitted(observation, X, **parameters):
    return DPMixtureVB(observation=observation, random_state=0, **parameters).fit(X)


def one_step(observation, X):
    """One global step on the true labels, for comparisons to the last digits."""
    return fitted(observation, X, init_params=np.eye(3)[LABELS], max_iter=0, proposals=None)


# ---------------------------------------------------------------------- all three estimators


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters_are_found(dtype):
    X = mixed(LABELS).astype(dtype)
    model = fitted(ColumnObservation(blocks()), X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.99
    drawn, labels = model.sample(600, random_state=0)
    assert_array_equal(np.isnan(drawn).all(axis=0), [False] * 4 + [True])  # in no block
    assert_array_equal(drawn[:, [1, 3]], np.rint(drawn[:, [1, 3]]))
    drawn[:, 4] = 0.0
    assert adjusted_rand_score(labels, model.predict(drawn)) >= 0.99


def test_one_cluster_is_left_whole():
    X = mixed(np.zeros(400, dtype=int))
    assert fitted(ColumnObservation(blocks()), X).n_components_ == 1


def test_topics_of_rows():
    rng = np.random.default_rng(1)
    labels = np.concatenate([rng.choice(3, 25, p=p) for p in rng.dirichlet(np.ones(3), 40)])
    X, groups = mixed(labels), np.repeat(np.arange(40), 25)
    model = HDPTopicVB(observation=ColumnObservation(blocks()), random_state=0)
    model.fit(X, groups=groups)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) >= 0.99


@pytest.mark.extended
def test_states_of_sequences():
    labels = np.repeat(np.tile([0, 1, 2, 1], 10), 15)
    X = mixed(labels)
    model = HDPHMMVB(observation=ColumnObservation(blocks()), random_state=0)
    model.fit([X[:300], X[300:]])
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, np.concatenate(model.predict([X[:300], X[300:]]))) >= 0.99
    # states have the defaults for sequences, block by block
    assert model._model.likelihood.blocks[0].likelihood.scale_only_rises


@pytest.mark.extended
def test_streams():
    order = np.random.default_rng(2).permutation(len(LABELS))
    X = mixed(LABELS)
    model = DPMixtureVB(observation=ColumnObservation(blocks()), random_state=0)
    for _ in range(3):
        for part in np.array_split(order, 4):
            model.partial_fit(X[part])
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.99


# ---------------------------------------------------------------------- blocks add up


def with_a_fifth_missing(X, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


@pytest.mark.extended
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_clusters_are_found_with_missing_values(covariance_type):
    """Blocks integrate out what they miss; a model of complete rows knows rows with missing values, too."""
    observation = ColumnObservation(blocks()).set_params(size=GaussianObservation(covariance_type))
    X = mixed(LABELS)
    incomplete = with_a_fifth_missing(X)
    model = fitted(observation, incomplete)
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(incomplete)) > 0.9
    # the first lap's parameters are not yet the best for any responsibilities
    assert np.all(np.diff(model.lower_bounds_[1:]) > -1e-6)
    complete = fitted(observation, X)
    assert adjusted_rand_score(LABELS, complete.predict(incomplete)) > 0.9
    assert np.all(np.isfinite(complete.score_samples(incomplete)))


@pytest.mark.extended
def test_states_are_found_with_missing_values():
    rng = np.random.default_rng(0)
    paths = [np.repeat(rng.integers(3, size=8), 25) for _ in range(5)]
    X = [with_a_fifth_missing(mixed(path, seed=i), seed=i) for i, path in enumerate(paths)]
    model = HDPHMMVB(observation=ColumnObservation(blocks()), random_state=0).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(np.concatenate(paths), np.concatenate(model.predict(X))) > 0.95


def test_topics_are_found_with_missing_values():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 20)
    labels = np.concatenate([rng.choice(3, 20, p=p) for p in rng.dirichlet(np.full(3, 0.3), 30)])
    X = with_a_fifth_missing(mixed(labels))
    model = HDPTopicVB(observation=ColumnObservation(blocks()), random_state=0)
    assert model.fit(X, groups=groups).n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) > 0.85


@pytest.mark.extended
def test_missing_values_come_later_in_a_stream():
    X = mixed(LABELS)[np.random.default_rng(2).permutation(len(LABELS))]
    model = DPMixtureVB(observation=ColumnObservation(blocks()), random_state=0)
    model.partial_fit(X[:150])
    model.partial_fit(with_a_fifth_missing(X[150:]))
    assert model.n_components_ == 3
    assert np.isfinite(model.lower_bound_)


def test_columns_that_are_independent_anyway_may_be_in_any_blocks():
    X = mixed(LABELS)[:, [0, 2, 4]]
    diag = GaussianObservation("diag")
    whole = one_step(diag, X)
    apart = one_step(ColumnObservation([("a", diag, [2, 0]), ("b", clone(diag), [1])]), X)
    assert apart.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-12)
    assert apart.elbo_terms_["entropy"] == whole.elbo_terms_["entropy"]
    assert_allclose(apart.means_, whole.means_, rtol=1e-10)
    assert_allclose(apart.score_samples(X), whole.score_samples(X), rtol=1e-10)
    assert_allclose(apart.predict_proba(X), whole.predict_proba(X), rtol=1e-8, atol=1e-12)


def test_each_block_has_the_attributes_that_it_would_have_alone():
    X = mixed(LABELS)
    model = one_step(ColumnObservation(blocks()), X)
    data = 0.0
    for name, observation, columns in blocks():
        alone = one_step(observation, X[:, columns])
        data += alone.elbo_terms_["data"]
        assert model.blocks_[name].keys() <= vars(alone).keys()
        for attribute, value in model.blocks_[name].items():
            assert_allclose(value, getattr(alone, attribute), rtol=1e-10, err_msg=attribute)
        if hasattr(alone, "means_"):
            assert_allclose(model.means_[:, columns], alone.means_, rtol=1e-10)
    assert model.elbo_terms_["data"] == pytest.approx(data, rel=1e-12)
    assert np.isnan(model.means_[:, [1, 4]]).all()


@pytest.mark.extended
def test_columns_in_no_block_are_not_there():
    X = mixed(LABELS)
    a = fitted(ColumnObservation(blocks()), X)
    b = fitted(ColumnObservation(blocks()), X[:, :4])
    assert a.lower_bound_ == pytest.approx(b.lower_bound_, rel=1e-12)
    assert a.n_features_in_ == 5


@pytest.mark.extended
def test_units_of_numbers_do_not_matter():
    X = mixed(LABELS)
    Y = X * [1e4, 1.0, 1e-3, 1.0, 1.0] + [7.0, 0.0, -2.0, 0.0, 0.0]
    a, b = (fitted(ColumnObservation(blocks()), data) for data in (X, Y))
    assert_array_equal(a.predict(X), b.predict(Y))
    assert b.lower_bound_ + 300 * np.log(10.0) == pytest.approx(a.lower_bound_, rel=1e-8)


def test_missing_categories_beside_numbers():
    """Of a row whose category is not known the numbers are left: the likelihood of these alone."""
    X = mixed(LABELS)
    model = one_step(ColumnObservation(blocks()[:2]), X)
    alone = one_step("gaussian", X[:, [0, 2]])
    X[:, 1] = np.nan
    likelihood, prior = model._model.likelihood, model._model.prior
    each = likelihood.log_predictive(prior, model._statistics, likelihood.prepare(X))
    expected = alone._model.likelihood.log_predictive(
        alone._model.prior, alone._statistics, alone._model.likelihood.prepare(X[:, [0, 2]])
    )
    assert_allclose(each, expected, rtol=1e-10)


# ---------------------------------------------------------------------- parameters


def test_nested_parameters():
    observation = ColumnObservation(blocks())
    model = DPMixtureVB(observation=observation)
    model.set_params(observation__size__covariance_type="diag", observation__kind__prior=0.5)
    assert observation.blocks[0][1].covariance_type == "diag"
    assert observation.get_params()["kind__prior"] == 0.5
    assert observation.blocks[2] == blocks()[2]
    model.set_params(observation__tally="gaussian")
    assert observation.blocks[2] == ("tally", "gaussian", slice(3, 4))
    assert model.get_params()["observation__kind"] is observation.blocks[1][1]
    new = {"blocks": blocks(), "size__reg_covar": 1e-3}
    assert observation.set_params(**new).get_params()["size__reg_covar"] == 1e-3
    with pytest.raises(ValueError, match="nothing"):
        observation.set_params(nothing__prior=1.0)


def test_clone():
    observation = ColumnObservation([("size", GaussianObservation("diag"), np.array([0, 2]))])
    model = fitted(observation, mixed(LABELS))
    copy = clone(model)
    assert copy.observation.blocks[0][1] is not observation.blocks[0][1]
    assert copy.fit(mixed(LABELS)).lower_bound_ == model.lower_bound_


@pytest.mark.extended
def test_grid_search():
    """Correlated numbers: full covariances predict them better."""
    X = mixed(LABELS)
    X[:, 2] = X[:, 2] / 3.0 + X[:, 0]
    search = GridSearchCV(
        DPMixtureVB(
            observation=ColumnObservation(blocks()), proposals=("birth", "merge"), random_state=0
        ),
        {"observation__size__covariance_type": ["diag", "full"], "observation__kind__prior": [1.0]},
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(X)
    assert search.best_params_["observation__size__covariance_type"] == "full"


def test_pipeline():
    pipe = make_pipeline(FunctionTransformer(lambda X: X[:, ::-1]), DPMixtureVB(random_state=0))
    back = [("size", "gaussian", [-1, -3]), ("kind", "categorical", -2), ("tally", "poisson", 1)]
    pipe.set_params(dpmixturevb__observation=ColumnObservation(back))
    assert adjusted_rand_score(LABELS, pipe.fit_predict(mixed(LABELS))) >= 0.99


def test_continuing_needs_the_same_blocks():
    X = mixed(LABELS)
    model = DPMixtureVB(observation=ColumnObservation(blocks()), random_state=0).partial_fit(X)
    model.partial_fit(X)
    model.set_params(observation__kind__prior=0.3)
    with pytest.raises(ValueError, match="differs from that of the fit"):
        model.partial_fit(X)


# ---------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    "columns",
    [[0, 2], (0, 2), np.array([0, 2]), [-5, -3], slice(0, 3, 2), [True, False, True, False, False]],
    ids=str,
)
def test_ways_to_name_columns(columns):
    X = mixed(LABELS)
    a, b = (one_step(ColumnObservation([("g", "gaussian", c)]), X) for c in ([0, 2], columns))
    assert a.lower_bound_ == pytest.approx(b.lower_bound_, rel=1e-12)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([], "blocks=[] must be a list of"),
        ("gaussian", "blocks='gaussian' must be a list"),
        ([("g", "gaussian")], "must be a list of"),
        ([(3, "gaussian", [0])], "must be a list of"),
        ([("g", "gaussian", [0]), ("g", "poisson", [3])], "2 blocks have the name 'g'"),
        ([("g__a", "gaussian", [0])], "must not contain __"),
        ([("g", "gauss", [0])], "Block 'g' has observation='gauss', which is not known"),
        ([("g", GaussianObservation, [0])], "Block 'g' has observation="),
        ([("g", GaussianObservation("round"), [0])], "covariance_type"),
        ([("g", AutoregressiveObservation(), [0])], "explains each row by those before it"),
        ([("x", ColumnObservation([("p", "gaussian", [1])]), [0, 2])], "Block 'x' has a ColumnObservation"),
        ([("x", ColumnObservation([("p", "gaussian", [1])]), [0, 2])], "list its blocks in the outer one"),
        ([("g", "gaussian", [])], "Block 'g' has no columns: columns=[] of n_features=5"),
        ([("g", "gaussian", slice(7, None))], "Block 'g' has no columns"),
        ([("g", "gaussian", [0, 5])], "names column 5, but X has 5 columns"),
        ([("g", "gaussian", [-6])], "names column -6"),
        ([("g", "gaussian", [0, 0])], "Column 0 is in block 'g' and in block 'g'"),
        ([("g", "gaussian", [0]), ("h", "poisson", [3, -5])], "in block 'g' and in block 'h'"),
        ([("g", "gaussian", [True, False])], "holds 2 booleans, but X has 5 columns"),
        ([("g", "gaussian", [0.5])], "must be whole numbers"),
        ([("g", "gaussian", [True, 2, 0, 1, 1])], "must be whole numbers"),
        ([("g", "gaussian", "a")], "columns='a' are for frames"),
        ([("g", "gaussian", slice("a", "b"))], "are for frames"),
        ([("g", "gaussian", lambda X: [0])], "are for frames"),
        ([("p", "poisson", [3, 0])], "In block 'p', whose X is X[:, [3, 0]]: X holds -"),
        ([("c", CategoricalObservation([1.0, 2.0]), [1])], "In block 'c', whose X is X[:, [1]]: prior="),
    ],
)  # fmt: skip
def test_bad_blocks(bad, words):
    model = DPMixtureVB(observation=ColumnObservation(bad))
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(mixed(LABELS))
    assert not hasattr(model, "weights_")


def test_categories_not_seen_in_fit():
    X = mixed(LABELS)
    model = fitted(ColumnObservation(blocks()), X)
    X[3, 1] = 3.0
    with pytest.raises(
        ValueError, match=r"In block 'kind', whose X is X\[:, \[1\]\]: Column 0 of X"
    ):
        model.predict(X)


def test_one_model_in_two_blocks():
    model = GaussianObservation("diag")
    columns = ColumnObservation([("a", model, [0]), ("b", model, [1])])
    X = np.random.default_rng(25).normal(size=(40, 2))
    stream = DPMixtureVB(observation=columns, random_state=0).partial_fit(X[:20])
    assert stream.partial_fit(X[20:]).n_components_ >= 1
    stream.set_params(observation__a__covariance_type="full")
    with pytest.raises(ValueError, match="differs from that of the fit"):
        stream.partial_fit(X)


def test_blocks_within_blocks_are_refused_of_frames():
    """Where the inner one would look up names in the whole frame, and take positions in its own columns."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(mixed(LABELS), columns=list("abcde"))
    inner = ColumnObservation([("p", "gaussian", ["c"])])
    model = DPMixtureVB(observation=ColumnObservation([("x", inner, ["b", "c", "d"])]))
    with pytest.raises(ValueError, match="Block 'x' has a ColumnObservation as its model"):
        model.fit(frame)
    assert not hasattr(model, "weights_")
