"""Bad input: an error that names parameter, value and remedy, and a model left as it was."""

import datetime
import re
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest

from sklearn_bnp import (
    HDPHMMVB,
    BernoulliObservation,
    Birth,
    Delete,
    DirichletAllocation,
    DPAllocation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Merge,
    MixtureAllocation,
    NegativeBinomialObservation,
    PitmanYorAllocation,
    PoissonObservation,
)
from sklearn_bnp.likelihood import ObservationModel
from tests.estimators import BAD_VALUES, assert_same_state, blobs, cases, names, public_state

X, _ = blobs(60)
N, D = X.shape
BINARY = (X > 0).astype(float)


def with_value(value):
    """The rows with one of their values replaced."""
    rows = X.copy()
    rows[7, 1] = value
    return rows


# ---------------------------------------------------------------------- parameters

PARAMETERS = {
    **BAD_VALUES,
    "observation": ["gauss", 3, None, GaussianObservation, ["gaussian"]],
    "allocation": ["hdp", 3, None, ["dp"], PitmanYorAllocation, GaussianObservation()],
    "weight_concentration_prior": [0, -1.0, np.nan, np.inf, "one", [1.0]],
    "proposals": ["split", ("birth", "split"), 3, [3], (Birth,), {"birth"}, {"birth": 1}],
    "n_nonzero_resp": [0, 1.5, "all"],
    "init_params": ["kmedoids", 3, None],
    "means_init": ["zeros", 3],
    "half_life": [0, 0.4, -1.0, "long"],
    "learning_decay": [0.5, 1.1, "slow"],
}


def test_every_parameter_is_tested():
    assert set(PARAMETERS) == set(DPMixtureVB().get_params(deep=False))


@pytest.mark.parametrize(("name", "value"), cases(PARAMETERS))
def test_parameter_is_refused_by_name(name, value):
    model = DPMixtureVB(**{name: value})
    shown = [] if isinstance(value, (list, tuple, set, dict, type)) else [value]
    with pytest.raises(ValueError, match=names(name, *shown)):
        model.fit(X)
    with pytest.raises(ValueError, match=names(name)):
        model.partial_fit(X)
    assert not hasattr(model, "n_features_in_")  # as unfitted as before


NESTED = {
    GaussianObservation: {
        "covariance_type": ["tied", 3, None, ["full"]],
        "zero_mean": ["no", 3, None],
        "mean_prior": [1.0, "zeros", [0.0] * (D + 1), [np.nan] * D, np.zeros((D, 1))],
        "mean_precision_prior": [0, -1.0, np.nan, "weak", [1.0]],
        "degrees_of_freedom_prior": [D - 1, np.nan, "few", [D]],
        "covariance_prior": [
            1.0, "unit", np.eye(D + 1), -np.eye(D), np.ones((D, D)), np.full((D, D), np.nan),
            np.diag([1.0] * (D - 1) + [0.0]), np.triu(np.ones((D, D))),
        ],
        "reg_covar": [0, -1e-6, 2.0, np.nan, "small", None],
        "resolution": [-1.0, np.nan, "fine", [1.0] * (D + 1), [-1.0] * D, [np.nan] * D],
    },
    BernoulliObservation: {
        "prior": [1.0, (1.0,), (0, 1), (1, -1), "flat", (1, [1, 2]), (np.nan, 1), (1, 2, 3)],
    },
    PoissonObservation: {
        "prior": [1.0, (1.0,), (0, 1), (1, -1), "flat", (1, [1, 2]), (np.inf, 1), (1, 2, 3)],
    },
    NegativeBinomialObservation: {
        "size": [0, -1.0, np.nan, np.inf, "large", None, [1.0] * (D + 1), [1.0, 0.0, 1.0], np.eye(D)],
        "prior": [1.0, (0, 1), (1, -1), "flat", (1, [1, 2]), (np.inf, 1)],
    },
    FixedVarianceGaussianObservation: {
        "variance": [0.0, -1.0, np.nan, np.inf, "data", [1.0] * (D + 1), [1.0, 0.0, 1.0], np.eye(D)],
        "mean_prior": [1.0, "zeros", [0.0] * (D + 1), [np.nan] * D, np.zeros((D, 1))],
        "mean_variance_prior": [0.0, -1.0, np.nan, "wide", [1.0] * (D + 1), np.eye(D)],
    },
    DPAllocation: {"concentration": [0, -1.0, np.nan, np.inf, "one", None, [1.0]]},
    DirichletAllocation: {"concentration": [0, -1.0, np.nan, np.inf, "one", [1.0]]},
    PitmanYorAllocation: {
        "concentration": [0, -1.0, np.nan, np.inf, "one", None, [1.0]],
        "discount": [-0.1, 1.0, 2, np.nan, "learned", None, [0.5]],
    },
    Birth: {
        "strategy": ["move", 3],
        "n_seeds": [0, 2.5, "ten"],
        "max_rows": [0, 2.5, "all"],
        "max_targets": [0, -1, "all"],
        "patience": [0, "long"],
        "min_rows": [-1.0, "few"],
    },
    Merge: {
        "max_members": [0, 1, "all"],
        "pairs_per_component": [0, -1, "all"],
        "n_neighbors": [0, "all"],
    },
    Delete: {"max_targets": [0, -1, "all"], "n_absorbers": [0, "all"], "n_steps": [0, "all"]},
}  # fmt: skip


def test_every_nested_parameter_is_tested():
    for part, table in NESTED.items():
        assert set(table) == set(part().get_params(deep=False)), part.__name__


@pytest.mark.parametrize("part", NESTED, ids=lambda part: part.__name__)
def test_nested_parameter_is_refused_by_name(part):
    model = DPMixtureVB(4, random_state=0)
    rows = X if part in (GaussianObservation, FixedVarianceGaussianObservation) else BINARY
    accepted = []
    for name, values in NESTED[part].items():
        for value in values:
            component = part(**{name: value})
            if issubclass(part, ObservationModel):
                model.set_params(observation=component)
            elif issubclass(part, MixtureAllocation):
                model.set_params(allocation=component)
            else:
                model.set_params(proposals=[component])
            try:
                model.fit(rows)
                accepted.append(f"{name}={value!r}: fitted")
            except ValueError as error:
                if not re.search(names(name), str(error)):
                    accepted.append(f"{name}={value!r}: {error}")
            except Exception as error:
                accepted.append(f"{name}={value!r}: {error!r}")
    assert accepted == []


@pytest.mark.parametrize(
    ("covariance_type", "value"),
    [("diag", np.eye(D)), ("diag", [1.0, 1.0, 0.0]), ("diag", 1.0), ("spherical", 0.0),
     ("spherical", [1.0] * D), ("spherical", np.nan)],
    ids=str,
)  # fmt: skip
def test_covariance_prior_of_other_shapes(covariance_type, value):
    observation = GaussianObservation(covariance_type, covariance_prior=value)
    with pytest.raises(ValueError, match="covariance_prior"):
        DPMixtureVB(observation=observation).fit(X)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_columns", [2, 3, 10])
def test_singular_covariance_prior(n_columns, scale):
    """Its least eigenvalue is 0 but for rounding, of either sign."""
    rng = np.random.default_rng(0)
    x = scale * rng.uniform(0.1, 9.0, n_columns) * rng.normal(size=(40, n_columns))
    direction = rng.normal(size=n_columns)
    for prior in (np.ones((n_columns, n_columns)), np.multiply.outer(direction, direction)):
        observation = GaussianObservation(covariance_prior=prior)
        with pytest.raises(ValueError, match="covariance_prior must be symmetric and positive"):
            DPMixtureVB(observation=observation).fit(x)
        nearly = GaussianObservation(covariance_prior=prior + 1e-8 * np.eye(n_columns))
        assert np.isfinite(DPMixtureVB(observation=nearly, max_iter=0).fit(x).lower_bound_)


class BadWeights(DPAllocation):
    """A prior of a user's own, one of whose methods is wrong."""

    def __init__(self, wrong="elbo"):
        super().__init__()
        self.wrong = wrong

    def elbo(self, n):
        right = super().elbo(n)
        wrong = {
            "elbo": right[..., np.newaxis], "nan": right + n.sum(axis=-1), "absent": right - n.shape[-1],
        }  # fmt: skip
        return wrong.get(self.wrong, right)

    def expected_log_weights(self, n):
        return super().expected_log_weights(n)[1 if self.wrong == "expected_log_weights" else 0 :]

    def weights(self, n):
        return super().weights(n) * (np.inf if self.wrong == "weights" else 1.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [("elbo", ["elbo", "shape (2,)"]), ("nan", ["elbo", "finite"]), ("absent", ["elbo", "nan"]),
     ("expected_log_weights", ["expected_log_weights", "shape (3,)"]), ("weights", ["weights", "finite"])],
)  # fmt: skip
def test_priors_of_weights_that_are_wrong(wrong, words):
    assert DPMixtureVB(allocation=BadWeights("nothing"), max_iter=0).fit(X).n_iter_ == 1
    model = DPMixtureVB(allocation=BadWeights(wrong))
    with pytest.raises(ValueError, match=names("allocation=BadWeights(", *words)):
        model.fit(X)
    assert not hasattr(model, "n_components_")


def test_concentration_of_an_allocation_that_is_an_object():
    model = DPMixtureVB(allocation=PitmanYorAllocation(2.0), weight_concentration_prior=3.0)
    remedy = names("weight_concentration_prior=3.0", "allocation__concentration", "=None")
    with pytest.raises(ValueError, match=remedy):
        model.fit(X)
    with pytest.raises(ValueError, match=remedy):
        model.partial_fit(X)


def test_parameters_that_exclude_each_other():
    with pytest.raises(ValueError, match=names("batch_size=5", "n_batches=3", "set one")):
        DPMixtureVB(batch_size=5, n_batches=3).fit(X)
    with pytest.raises(ValueError, match=names("n_components=61", "n_samples=60", "fewer")):
        DPMixtureVB(61).fit(X)
    with pytest.raises(ValueError, match=names("n_components=6", "n_samples=5", "fewer")):
        DPMixtureVB(6).partial_fit(X[:5])
    with pytest.raises(ValueError, match=names("proposals", "birth", "twice", "once")):
        DPMixtureVB(proposals=("birth", Birth())).fit(X)


@pytest.mark.parametrize(
    ("resp", "words"),
    [
        (np.ones((N + 1, 2)) / 2, [N + 1, "one row"]),
        (np.ones(N), [(N,), "n_components"]),
        (np.full((N, 2), 0.4), ["row 0", "0.8", "divide"]),
        (np.tile([1.5, -0.5], (N, 1)), ["-0.5", "[0, 1]"]),
        (np.full((N, 2), np.nan), ["NaN"]),
        ([["a", "b"]] * N, ["numbers"]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_responsibilities(resp, words):
    for init_params in (resp, lambda rows, n_components, random_state: resp):
        with pytest.raises(ValueError, match=names("init_params", *words)):
            DPMixtureVB(init_params=init_params).fit(X)


@pytest.mark.parametrize(
    "means", [np.zeros(D), np.zeros((1, D)), np.zeros((2, D + 1)), np.full((2, D), np.inf)]
)
def test_initial_means(means):
    with pytest.raises(ValueError, match="means_init"):
        DPMixtureVB(2, means_init=means).fit(X)


# ---------------------------------------------------------------------- data

ROWS = {
    "infinite": (with_value(-np.inf), ["X", "infinity"]),
    "beyond 1e150": (with_value(2e150), ["X", "2e+150", "Rescale"]),
    "beyond 1e150, negative": (with_value(-1e300), ["X", "1e+300", "Rescale"]),
    "sum overflows": (np.full((4, D), 1e308), ["X", "1e+308", "Rescale"]),
    "one column": (X[:, 0], ["2D array"]),
    "three axes": (X[np.newaxis], ["dim 3"]),
    "strings": (np.array([["a", "b", "c"]] * 3), ["strings", "not numbers"]),
    "complex": (X * 1j, ["Complex"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum"]),
    "no columns": (X[:, :0], ["0 feature(s)", "minimum"]),
}


@pytest.mark.parametrize(("rows", "words"), ROWS.values(), ids=ROWS)
def test_rows(rows, words):
    fitted = DPMixtureVB(2, proposals=None, random_state=0).fit(X)
    before = public_state(fitted)
    for method in ("fit", "partial_fit", "predict", "score_samples"):
        with pytest.raises(ValueError, match=names(*words)):
            getattr(fitted, method)(rows)
        assert_same_state(public_state(fitted), before)
    with pytest.raises(ValueError, match=names(*words)):
        DPMixtureVB().partial_fit(rows)


def test_lists_that_are_no_rows():
    with pytest.raises(ValueError, match=names("X is a list", "1 to 2 entries", "np.nan")):
        DPMixtureVB().fit([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match=names("X is a list", "shape (60, 3)", "np.concatenate")):
        DPMixtureVB().fit([X, X])


@pytest.mark.parametrize(
    "value", [datetime.date(2020, 1, 2), datetime.timedelta(1), 1j, "red", [1.0], {"a": 1}], ids=str
)
def test_objects_that_are_no_numbers(value):
    """The first one is named, with the remedy, and scikit-learn's or NumPy's words for it."""
    rows = X.astype(object)
    rows[3, 1] = value
    groups = np.arange(N) % 5
    said = names("X", repr(value), "row 3, column 1", "must be numbers", "days since", "(")
    models = [
        (DPMixtureVB(max_iter=0, proposals=None), {}),
        (HDPHMMVB(max_iter=0, proposals=None), {}),
        (HDPTopicVB(observation="gaussian", max_iter=0, proposals=None), {"groups": groups}),
        (MemoryBoundedTopicVB(), {"groups": groups}),
    ]
    for model, given in models:
        with pytest.raises((TypeError, ValueError), match=said):
            model.fit(rows, **given)
        model.fit(X, **given)
        with pytest.raises((TypeError, ValueError), match=said):
            model.predict(rows, **given)
    listed = HDPHMMVB(max_iter=0, proposals=None)
    with pytest.raises((TypeError, ValueError), match=said):
        listed.fit([rows, X])
    with pytest.raises((TypeError, ValueError), match=said):
        HDPTopicVB().fit(rows)


def test_objects_that_are_numbers():
    rows = X.astype(object)
    model = DPMixtureVB(random_state=0).fit(X)
    assert model.score(rows) == model.score(X)


def test_one_row():
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=names("1 sample(s)", "minimum of 2")):
            getattr(DPMixtureVB(), method)(X[:1])


COUNTS = np.arange(12).reshape(3, 4) % 5
FEW = {
    "rows": (DPMixtureVB, X[:2], {}, "n_samples=2", "rows"),
    "documents": (HDPTopicVB, COUNTS[:1], {}, "1 document with words", "documents"),
    "anchors": (HDPTopicVB, np.eye(4), {"init_params": "anchor"}, "0 word types", "documents"),
    "rows of documents": (HDPTopicVB, X[:2], {"observation": "gaussian"}, "n_samples=2", "rows"),
    "rows of sequences": (HDPHMMVB, X[:2], {}, "2 rows of X", "rows"),
}
FIXED = [
    {"learning_method": "stochastic", "memoize": False},
    {"learning_method": "stochastic"},
    {"proposals": None},
    {"proposals": ("merge", "delete")},
]


@pytest.mark.parametrize(("estimator", "rows", "given", "there", "units"), FEW.values(), ids=FEW)
def test_fewer_units_than_components(estimator, rows, given, there, units):
    """Without births the remedy is not to start from fewer components, in the hope of others."""
    groups = {"groups": np.zeros(len(rows))} if "observation" in given else {}
    for fixed in FIXED:
        model = estimator(3, **given, **fixed)
        more = (f"more {units}", "first batch", "lower n_components")
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=names("n_components=3", there, *more)) as found:
                method(rows, **groups)
            assert "births find" not in str(found.value)
    with pytest.raises(ValueError, match=names("n_components=3", there, "fewer", "births find")):
        estimator(3, **given).partial_fit(rows, **groups)


def test_squares_that_underflow():
    rows = X * [1.0, 1e-200, 1.0]
    with pytest.raises(ValueError, match=names("Column 1 of X", "e-199", "Rescale")):
        DPMixtureVB().fit(rows)


def test_sparse_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=names("Sparse", "toarray")):
        DPMixtureVB().fit(sparse.csr_matrix(X))


WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(N - 1)], ["-1", "zero or more"]),
    "all zero": (np.zeros(N), ["zero", "rescale"]),
    "zero": (0.0, ["zero", "rescale"]),
    "vanishing": (np.full(N, 1e-12), ["6e-11", "rescale"]),
    "overflowing": (np.full(N, 1e308), ["inf", "rescale"]),
    "nan": (np.full(N, np.nan), ["NaN"]),
    "too few": (np.ones(N - 1), [(N - 1,), (N,)]),
    "two columns": (np.ones((N, 2)), [(N, 2), (N,)]),
    "strings": (["a"] * N, ["numbers"]),
}


@pytest.mark.quarter
@pytest.mark.parametrize(("weight", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_sample_weight(weight, words):
    fitted = DPMixtureVB(random_state=0).fit(X)
    before = public_state(fitted)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=names("sample_weight", *words)):
            getattr(fitted, method)(X, sample_weight=weight)
    assert_same_state(public_state(fitted), before)


def test_bernoulli_wants_binary_columns():
    model = DPMixtureVB(observation="bernoulli", random_state=0)
    with pytest.raises(ValueError, match=names("bernoulli", "0 and 1", "Binarizer")):
        model.fit(X)
    model.partial_fit(BINARY[:30])
    before = public_state(model)
    batch = np.repeat(BINARY, 200, axis=0)
    batch[-1, -1] = 0.5  # found in the last block
    with pytest.raises(ValueError, match="Binarizer"):
        model.partial_fit(batch)
    assert_same_state(public_state(model), before)
    alone = DPMixtureVB(observation="bernoulli", random_state=0).partial_fit(BINARY[:30])
    for either in (model, alone):
        either.partial_fit(BINARY[30:])
    assert_same_state(public_state(model), public_state(alone))


# ---------------------------------------------------------------------- calls


def test_another_width():
    model = DPMixtureVB(random_state=0).fit(X)
    before = public_state(model)
    for method in ("partial_fit", "predict", "predict_proba", "score_samples", "transform"):
        with pytest.raises(ValueError, match=names("X has 2 features", "3 features")):
            getattr(model, method)(X[:, :2])
    with pytest.raises(ValueError, match=names("X has 2 features", "3 features")):
        model.set_params(warm_start=True).fit(X[:, :2])
    assert_same_state(public_state(model), before)
    model.set_params(warm_start=False).fit(X[:, :2])
    assert model.n_features_in_ == 2


def test_failure_leaves_names_of_features():
    pandas = pytest.importorskip("pandas")
    model = DPMixtureVB(random_state=0).fit(pandas.DataFrame(X, columns=["a", "b", "c"]))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(pandas.DataFrame(X[:, :2], columns=["x", "y"]), sample_weight=-np.ones(N))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3


def test_interruption_leaves_the_model():
    model = DPMixtureVB(random_state=0).fit(X)
    before = public_state(model)

    def interrupt(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(init_params=interrupt).fit(X[:, :2])
    assert_same_state(public_state(model), before)
    assert model.predict(X).shape == (N,)


@pytest.mark.parametrize("call", ["partial_fit", "warm_start=True"])
def test_another_observation_in_mid_course(call):
    model = DPMixtureVB(observation=GaussianObservation("diag"), random_state=0).fit(X)
    before = public_state(model)
    model.set_params(observation__reg_covar=1e-3, warm_start=True)
    with pytest.raises(ValueError, match=names("observation", "0.001", call, "begin anew")):
        model.partial_fit(X) if call == "partial_fit" else model.fit(X)
    assert_same_state(public_state(model), before)


def test_batch_id():
    with pytest.raises(TypeError, match=names("batch_id=[1]", "hashable", "tuple")):
        DPMixtureVB().partial_fit(X, batch_id=[1])
    nans = [float("nan"), np.datetime64("NaT"), Decimal("NaN"), (1, np.float32("nan"))]
    with suppress(ImportError):
        import pandas

        nans += [pandas.NaT, pandas.NA, (0, pandas.NA)]
    for nan in nans:
        with pytest.raises(ValueError, match=names("batch_id", "not equal to itself")):
            DPMixtureVB().partial_fit(X, batch_id=nan)


@pytest.mark.quarter
@pytest.mark.parametrize("n_samples", [0, -1, 1.5, "one", None, 10**20])
def test_sample(n_samples):
    model = DPMixtureVB(random_state=0).fit(X)
    remedy = "at most" if n_samples == 10**20 else "1 or more"
    with pytest.raises(ValueError, match=names("n_samples", n_samples, remedy)):
        model.sample(n_samples)


def test_nested_parameters():
    with pytest.raises(ValueError, match=names("covariance", "GaussianObservation", "reg_covar")):
        DPMixtureVB().set_params(observation__covariance="full")
    with pytest.raises(ValueError, match=names("observation='gauss'", "gaussian")):
        DPMixtureVB(observation="gauss").set_params(observation__covariance_type="full")


NO_PARTS = {
    "topics": (
        HDPTopicVB(),
        "allocation__discount",
        ["allocation='hdp'", "of its own", "doc_topic"],
    ),
    "states": (
        HDPHMMVB(),
        "allocation__discount",
        ["allocation='hdp'", "of its own", "stickiness"],
    ),
    "seed": (DPMixtureVB(), "random_state__seed", ["random_state=None", "of its own", "n_init"]),
    "misspelt": (
        DPMixtureVB(allocation="pitman_yor"),
        "allocation__discount",
        ["'allocation' parameter", "'pitman_yor'", "Did you mean 'pitman-yor'"],
    ),
    "no allocation": (
        DPMixtureVB(allocation=None),
        "allocation__discount",
        ["Got None", "pitman-yor"],
    ),
    "class": (
        DPMixtureVB(allocation=DPAllocation),
        "allocation__concentration",
        ["is a class", "DPAllocation()"],
    ),
    "class of rows": (
        MemoryBoundedTopicVB(observation=PoissonObservation),
        "observation__prior",
        ["is a class", "PoissonObservation()"],
    ),
    "no observation": (
        HDPHMMVB(observation=None),
        "observation__prior",
        ["observation=None", "Use"],
    ),
    "another allocation": (DPMixtureVB(), "allocation__discount", ["'discount'", "DPAllocation"]),
    "another observation": (DPMixtureVB(), "observation__lags", ["'lags'", "GaussianObservation"]),
}


@pytest.mark.parametrize(("estimator", "name", "words"), NO_PARTS.values(), ids=NO_PARTS)
def test_nested_parameters_that_there_are_not(estimator, name, words):
    before = estimator.get_params(deep=False)
    with pytest.raises(ValueError, match=names(*words)):
        estimator.set_params(max_components=3, **{name: 0.5})
    after = estimator.get_params(deep=False)
    assert all(after[key] is value for key, value in before.items())
