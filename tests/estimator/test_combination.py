"""Mixtures that were fitted apart become one: their statistics add up, and nothing else is needed."""

import re
from copy import deepcopy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import sklearn_bnp
from sklearn_bnp import (
    BernoulliObservation,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    PitmanYorAllocation,
    combine,
)
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.likelihood.change_of_units import in_units_of
from sklearn_bnp.mixture.local import local_pass
from tests.estimators import FEW_PROPOSALS, blobs, names, same_partition

N = 240
ROWS, LABELS = blobs(N, seed=3)
ROWS = 3.0 * ROWS + 10.0
GAPPY = np.where(np.random.default_rng(0).random(ROWS.shape) < 0.1, np.nan, ROWS)
CODES = np.digitize(ROWS, [0.0, 20.0])
COUNTS = np.random.default_rng(1).poisson(np.array([[1.0, 9.0], [9.0, 1.0], [20.0, 20.0]])[LABELS])
MIXED = np.column_stack([ROWS[:, :2], CODES[:, 2]])

FAMILIES = {
    "full": ("gaussian", ROWS, {"observation__covariance_type": "full"}),
    "diag": ("gaussian", ROWS, {"observation__covariance_type": "diag"}),
    "spherical": ("gaussian", ROWS, {"observation__covariance_type": "spherical"}),
    "zero mean": ("gaussian", ROWS, {"observation__zero_mean": True}),
    "constant column": ("gaussian", np.column_stack([ROWS, np.full(N, 7.0)]), {}),
    "fixed variance": ("fixed_variance_gaussian", ROWS, {}),
    "variance": ("fixed_variance_gaussian", ROWS, {"observation__variance": 9.0}),
    "diag, gaps": ("gaussian", GAPPY, {"observation__covariance_type": "diag"}),
    "spherical, gaps": ("gaussian", GAPPY, {"observation__covariance_type": "spherical"}),
    "diag, zero mean, gaps": (
        "gaussian",
        GAPPY,
        {"observation__covariance_type": "diag", "observation__zero_mean": True},
    ),
    "fixed variance, gaps": ("fixed_variance_gaussian", GAPPY, {}),
    "variance, gaps": ("fixed_variance_gaussian", GAPPY, {"observation__variance": 9.0}),
    "poisson": ("poisson", COUNTS, {}),
    "negative binomial": ("negative_binomial", COUNTS, {}),
    "multinomial": ("multinomial", COUNTS, {}),
    "bernoulli": (BernoulliObservation(), (CODES > 1).astype(float), {}),
    "categorical": (CategoricalObservation(n_categories=3), CODES, {}),
    "columns": (
        ColumnObservation(
            [("a", "gaussian", [0, 1]), ("b", CategoricalObservation(n_categories=3), [2])]
        ),
        MIXED,
        {},
    ),
    "columns, gaps": (
        ColumnObservation(
            [("a", "fixed_variance_gaussian", [0, 1]), ("b", GaussianObservation("diag"), [2])]
        ),
        GAPPY,
        {},
    ),
    "Pitman-Yor": ("gaussian", ROWS, {"allocation": "pitman-yor"}),
}
every_family = pytest.mark.parametrize("name", FAMILIES)


@cache
def fitted(name, first=0, last=N):
    """The model of some of the rows; not to be changed."""
    observation, x, params = FAMILIES[name]
    model = DPMixtureVB(observation=observation, proposals=FEW_PROPOSALS, random_state=0)
    model.set_params(**params)
    return model.fit(x[first:last])


def parts_of(name, n_parts=3):
    """Models of parts of the data of different sizes, so that their units differ."""
    cuts = [0, *(N * np.arange(1, n_parts) ** 2 // n_parts**2), N]
    return [fitted(name, a, b) for a, b in pairwise(cuts)]


def in_units(target, models):
    """Statistics (K, P) of the components of all models in the units of a likelihood."""
    return np.concatenate(
        [in_units_of(model._model.likelihood, target, model._statistics) for model in models]
    )


@pytest.mark.quarter
@every_family
def test_statistics_in_other_units_are_those_of_the_rows(name):
    """Sums over all rows do not depend on components: they are those that one component would have."""
    x = FAMILIES[name][1]
    first, other = fitted(name, 0, 60), fitted(name, 60, N)
    target = first._model.likelihood
    found = in_units(target, [other]).sum(axis=0)
    nothing = np.zeros((1, target.n_statistics))
    expected = local_pass(Batch(None, x[60:]), target, nothing, np.array([0])).s[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.quarter
@every_family
def test_statistics_add_up(name):
    models = parts_of(name)
    model = combine(models)
    before = in_units(model._model.likelihood, models)
    np.testing.assert_allclose(
        model._statistics.sum(axis=0), before.sum(axis=0), rtol=1e-12, atol=1e-9 * N
    )
    assert model.n_components_ <= len(before)


@every_family
def test_the_bound_is_that_of_all_rows_and_never_below_that_side_by_side(name):
    models = parts_of(name)
    combined = combine(models)
    s = in_units(combined._model.likelihood, models)
    entropy = np.concatenate([_entropies(model) for model in models])
    model = models[-1]._model  # the largest
    bag = StatBag(np.arange(len(s)), s, entropy)
    bag, model = model.in_order(bag)
    own = combined._learner_.model.elbo(combined._learner_.totals)
    assert combined.lower_bound_ == pytest.approx(own, rel=1e-12)
    assert own >= model.elbo(bag) - 1e-9 * abs(own)


def _entropies(model):
    """Entropies of components as they are published."""
    totals = model._learner_.totals
    by_mass = {round(n, 9): h for n, h in zip(totals.n, totals.entropy, strict=True)}
    return np.array([by_mass[round(n, 9)] for n in model._statistics[:, -1]])


def test_unions_across_models_keep_the_objective_exact():
    """The entropy of a union of components of different models is the sum of their entropies."""
    models = parts_of("full")
    model = combine(models)
    unions = model.history_[-1].accepted["merge"]
    assert unions == sum(one.n_components_ for one in models) - model.n_components_
    total = sum(one._learner_.totals.entropy.sum() for one in models)
    assert model._learner_.totals.entropy.sum() == pytest.approx(total, rel=1e-12)


@every_family
def test_a_model_with_itself(name):
    """Every component finds its double, and all statistics are twice what they were."""
    one = fitted(name)
    two = combine([one, one])
    assert two.n_components_ == one.n_components_
    np.testing.assert_allclose(two._statistics, 2.0 * one._statistics, rtol=1e-12)
    np.testing.assert_allclose(two._learner_.totals.n.sum(), 2.0 * N)


@pytest.mark.parametrize("name", ["full", "columns", "poisson"])
def test_clusters_are_those_of_a_fit_of_all(name):
    x, whole, model = FAMILIES[name][1], fitted(name), combine(parts_of(name))
    assert model.n_components_ == whole.n_components_
    assert same_partition(model.predict(x), whole.predict(x))
    assert model.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-3)
    assert model.score(x) == pytest.approx(whole.score(x), rel=1e-3)


def test_clusters_that_only_one_model_has_stay():
    models = [
        DPMixtureVB(random_state=0).fit(ROWS[np.isin(LABELS, labels)])
        for labels in ([0, 1], [1, 2])
    ]
    model = combine(models)
    assert [one.n_components_ for one in models] == [2, 2]
    assert model.n_components_ == 3
    weights = np.bincount(LABELS[np.isin(LABELS, [0, 1])], minlength=3)
    weights += np.bincount(LABELS[np.isin(LABELS, [1, 2])], minlength=3)
    np.testing.assert_allclose(np.sort(model._statistics[:, -1]), np.sort(weights), atol=0.5)


@every_family
def test_the_result_goes_on_and_is_saved(name, tmp_path):
    x, model = FAMILIES[name][1], combine(parts_of(name))
    model.save(tmp_path / "model.bnp")
    loaded = sklearn_bnp.load(tmp_path / "model.bnp")
    for one in (model, loaded):
        one.partial_fit(x[:50])
        assert one._learner_.totals.n.sum() == pytest.approx(N + 50)
    assert loaded.lower_bound_ == model.lower_bound_
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))


def test_nothing_that_is_given_changes():
    models = [DPMixtureVB(random_state=0, warm_start=True).fit(x) for x in np.array_split(ROWS, 3)]
    before = [model.lower_bound_ for model in models]
    learners = [model._learner_ for model in models]
    model = combine(iter(models))
    assert [model.lower_bound_ for model in models] == before
    assert all(model._learner_ is learner for model, learner in zip(models, learners, strict=True))
    assert not hasattr(model, "_paused")
    assert combine(models).lower_bound_ == model.lower_bound_


@pytest.mark.extended
def test_streams_in_the_middle_of_a_lap():
    streams = []
    for rows in np.array_split(ROWS, 2):
        stream = DPMixtureVB(random_state=0)
        for i in (0, 1, 2, 0):
            stream.partial_fit(rows[i::3], batch_id=i)
        streams.append(stream)
    model = combine(streams)
    assert model._learner_.totals.n.sum() == pytest.approx(N)
    assert model.n_components_ == 3


@pytest.mark.quarter
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_missing_values(covariance_type):
    """A model of complete rows is brought to the form for incomplete ones.

    Statistics of full covariances have imputed entries, which have no form in other units.
    """
    plain = DPMixtureVB(observation=GaussianObservation(covariance_type), random_state=0)
    plain.set_params(proposals=FEW_PROPOSALS)
    model = clone(plain).fit(ROWS[:120])
    gappy = clone(plain).fit(ROWS[:120]).partial_fit(GAPPY[120:])
    both = combine([model, gappy])
    assert both._model.likelihood.has_missing
    assert both.n_components_ == 3
    others = [gappy, clone(plain).fit(GAPPY[120:])]
    if covariance_type == "diag":
        assert combine(others).n_components_ == 3
        return
    with pytest.raises(ValueError, match=names("models[1]", "units", "copies")) as error:
        combine(others)
    assert re.search(
        r"missing values.*first batch with missing values.*without missing", str(error.value)
    )
    assert not re.search("Gaussian|Incomplete", str(error.value))


@pytest.mark.quarter
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_copies_that_learn_on_are_combined(covariance_type):
    """The remedy for missing values that the message and the guide name."""
    observation = GaussianObservation(covariance_type)
    first = DPMixtureVB(observation=observation, proposals=FEW_PROPOSALS, random_state=0)
    first.partial_fit(GAPPY[:100])
    parts = [deepcopy(first).partial_fit(x) for x in (ROWS[100:200], GAPPY[200:])]
    assert combine(parts).n_components_ == 3


def test_models_that_cannot_do_without_a_column():
    """They were fitted to rows on a plane; the message has no names of our classes."""
    flat = np.column_stack([ROWS, ROWS.sum(axis=1)])
    gappy = np.column_stack([GAPPY, ROWS[:, 0] - ROWS[:, 1] ** 2])
    models = [DPMixtureVB(proposals=None).fit(x) for x in (flat, gappy)]
    with pytest.raises(
        ValueError, match=r"models\[0\].*missing values.*linear combinations"
    ) as error:
        combine(models)
    assert ".." not in str(error.value)


def answers(*codes, n=60):
    """Two columns of the ``codes`` of the first, a list for each of several parts of the data."""
    rng = np.random.default_rng(0)
    parts = [np.column_stack([rng.permutation(np.resize(own, n)) for _ in "ab"]) for own in codes]
    for part, own in zip(parts, codes, strict=True):
        part[:, 1] = np.minimum(part[:, 1], own[1])
    return [part.astype(float) for part in parts]


CODES_FOUND = {
    "other gaps": answers([0, 1, 3], [0, 2, 3]),
    "gaps in all": answers([0, 1, 9], [0, 2, 9], [1, 5, 9]),
    "more of one": answers([0, 1], [0, 1, 2, 5]),
    "fewer of the largest": answers([0, 1, 1, 0], [0, 3], [0, 7]),
    "many of one": answers([0, 1], np.arange(0, 180, 3)),
    "many": answers(np.arange(100), np.arange(70, 140)),
}


@pytest.mark.parametrize("in_columns", [False, True])
@pytest.mark.parametrize("case", CODES_FOUND)
def test_codes_that_were_found_apart(case, in_columns, tmp_path):
    """The combined model has the codes and pseudo-counts that it would have found itself."""
    parts, observation = CODES_FOUND[case], CategoricalObservation()
    if in_columns:
        blocks = [("a", observation, [0]), ("b", observation, [1])]
        observation = ColumnObservation([*blocks, ("c", "poisson", [2])])
        parts = [np.column_stack([part, np.arange(len(part)) % 3]) for part in parts]
    model = DPMixtureVB(observation=observation, proposals=None, random_state=0)
    whole = clone(model).fit(np.concatenate(parts))
    one = combine([clone(model).fit(part) for part in parts])
    other = combine([clone(model).fit(part) for part in parts[::-1]])
    wanted = repr(whole._learner_.model.likelihood.prior)
    for found in (one, other):
        assert repr(found._learner_.model.likelihood.prior) == wanted
        assert repr(found._learner_.model.prior) == wanted
        assert type(found._model.likelihood) is type(whole._model.likelihood)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_)
    rows = np.concatenate(parts)
    path = tmp_path / "model.bnp"
    one.save(path)
    wanted = one.score_samples(rows)
    if one.n_components_ == 1:  # parts that differ much have a component each
        assert one.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-10)
        wanted = whole.score_samples(rows)
    for found in (one, other, sklearn_bnp.load(path)):
        assert np.allclose(found.score_samples(rows), wanted)
    assert one.partial_fit(rows).n_features_in_ == rows.shape[1]


def test_a_limit_below_the_number_of_the_start():
    """Parameters of the start have no part in what is combined, nor in a warm start."""
    models = [DPMixtureVB(n_components=2, random_state=0).fit(ROWS[i::2]) for i in range(2)]
    found = combine([model.set_params(max_components=1) for model in models])
    assert found.n_components_ == combine(models[::-1]).n_components_ >= 2
    one = DPMixtureVB(n_components=2, random_state=0).fit(ROWS[LABELS == 0])
    assert one.n_components_ == 1
    assert one.set_params(max_components=1, warm_start=True).fit(ROWS).n_components_ == 1


# ---------------------------------------------------------------------- refusals


def test_what_cannot_be_combined():
    one = fitted("full", 0, 60)
    with pytest.raises(ValueError, match="must hold a fitted model"):
        combine([])
    with pytest.raises(TypeError, match=names("models[1]", "HDPTopicVB")):
        combine([one, HDPTopicVB()])
    with pytest.raises(ValueError, match="not fitted"):
        combine([one, DPMixtureVB()])
    with pytest.raises(ValueError, match=names("models[1]", "columns", "4", "3")):
        combine([one, fitted("constant column")])
    with pytest.raises(ValueError, match=names("models[1]", "observation", "diag")):
        combine([one, fitted("diag")])
    with pytest.raises(ValueError, match=names("models[1]", "allocation", "Pitman")):
        combine([one, DPMixtureVB(allocation=PitmanYorAllocation(0.5)).fit(ROWS)])


BLOCKS = ColumnObservation([("a", "gaussian", [0]), ("b", "gaussian", [1, 2, 3])])


@pytest.mark.parametrize(
    ("observation", "column"),
    [
        ("gaussian", "column 3"),
        (GaussianObservation("diag"), "column 3"),
        ("fixed_variance_gaussian", "column 3"),
        (BLOCKS, "column 2"),  # of its block, which is named
    ],
    ids=str,
)
def test_other_constant_columns(observation, column):
    """The error names the column, and says in whose data it is constant, and what to do."""
    varying = np.column_stack([ROWS, np.full(N, 7.0)])
    constant = varying.copy()
    varying[0, -1] = 8.0
    model = DPMixtureVB(observation=observation, proposals=None, random_state=0)
    for larger, other, told in (
        (varying, constant[1:], f"{column} is constant in its data"),
        (constant, varying[:-1], f"{column} varies in its data"),
    ):
        told = names("models[1]", told, "leave the column out")
        with pytest.raises(ValueError, match=told) as error:
            combine([clone(model).fit(rows) for rows in (larger, other)])
        assert (observation is BLOCKS) == ("block 'b'" in str(error.value))


def test_columns_that_are_constant_elsewhere():
    """As many columns are left out in each, but not the same."""
    models = [
        DPMixtureVB(proposals=None, random_state=0).fit(np.insert(rows, at, 7.0, axis=1))
        for at, rows in ((1, ROWS), (2, ROWS[1:]))
    ]
    with pytest.raises(ValueError, match=names("models[1]", "column 1", "varies", "constant")):
        combine(models)


def test_other_dependent_columns():
    """Directions have no numbers: the error says what they are."""
    rows = np.column_stack([ROWS, ROWS[:, 0] + np.random.default_rng(0).normal(size=N)])
    dependent = np.column_stack([ROWS, 2.0 * ROWS[:, 0]])
    model = DPMixtureVB(proposals=None, random_state=0)
    with pytest.raises(
        ValueError, match=names("models[1]", "combinations of columns", "leave out")
    ):
        combine([clone(model).fit(x) for x in (rows, dependent[1:])])


@pytest.mark.parametrize(
    "observation", ["gaussian", GaussianObservation("diag"), "fixed_variance_gaussian"]
)
def test_columns_that_are_constant_with_other_values(observation):
    """Such as one that says where the rows are from: neither model knows how it varies."""
    models = [
        DPMixtureVB(observation=observation, proposals=FEW_PROPOSALS, random_state=0).fit(
            np.insert(ROWS, 1, value, axis=1)
        )
        for value in (0.1, 0.1, 2.5)
    ]
    assert combine(models[:2]).n_components_ >= 1
    with pytest.raises(ValueError, match=names("models[1]", "column 1 was constant", "0.1", "2.5")):
        combine(models[1:])


def test_frames_with_other_names_or_categories():
    pd = pytest.importorskip("pandas")
    one, other = (pd.DataFrame(ROWS, columns=list(columns)) for columns in ("abc", "abd"))
    with pytest.raises(ValueError, match=names("models[1]", "names of columns", "d")):
        combine([DPMixtureVB(random_state=0).fit(one), DPMixtureVB(random_state=0).fit(other)])
    frames = [pd.DataFrame({"a": list(values) * 20}) for values in ("uvw", "uv")]
    model = DPMixtureVB(observation="categorical", random_state=0)
    with pytest.raises(ValueError, match=names("models[1]", "same categories", "CategoricalDtype")):
        combine([clone(model).fit(frame) for frame in frames])
    frames = [frame.astype(pd.CategoricalDtype(list("uvw"))) for frame in frames]
    assert combine([clone(model).fit(frame) for frame in frames]).n_components_ >= 1
