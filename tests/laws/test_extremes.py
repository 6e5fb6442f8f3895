"""Extreme parameters, weights and values: refused by name, or learned from with finite results.

Nothing else may come of them: no error of arithmetic, no NaN, and no warning (they are errors here) but of
a few values that hide all others.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.likelihood import (
    AutoregressiveObservation,
    BernoulliObservation,
    CategoricalObservation,
    ColumnObservation,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    MultinomialObservation,
    NegativeBinomialObservation,
    PoissonObservation,
)
from sklearn_bnp.likelihood.limits import LEAST, MOST
from tests.estimators import chains, documents

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:X holds numbers that are not whole",
    "ignore:memory_bound=150 has room", "ignore:Nine of ten values in column",
    "ignore:sample_weight sums to .* They count no more than a single row",
    "ignore:HDPTopicVB ends with one topic",
)  # fmt: skip

# The broad test goes through all of them, at the limits and on either side.
ALL_VALUES = [
    5e-324, 1e-307, 1e-200, 1e-150, LEAST, 1e-50, 1e-20, 1e-10, 1e-6,
    1e7, MOST, 1e15, 1e20, 1e50, 1e100, 1e150, 1e200, 1e300, 1.7e308,
]  # fmt: skip
FEW_VALUES = [1e-307, LEAST, MOST, 1e300]

SEQUENCES, _ = chains(3, 20)
ROWS, LENGTHS = np.concatenate(SEQUENCES), [len(x) for x in SEQUENCES]
N, D = ROWS.shape
GROUPS = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
COUNTS, _ = documents(15, n_tokens=20)
WHOLE = np.abs(np.rint(ROWS))

# Likelihoods and rows for them.
ROWS_OF = {
    "full": (GaussianObservation(), ROWS),
    "diag": (GaussianObservation("diag"), ROWS),
    "spherical": (GaussianObservation("spherical"), ROWS),
    "zero-mean": (GaussianObservation(zero_mean=True), ROWS),
    "fixed-variance": (FixedVarianceGaussianObservation(), ROWS),
    "bernoulli": (BernoulliObservation(), (ROWS > 0).astype(float)),
    "poisson": (PoissonObservation(), WHOLE),
    "negative-binomial": (NegativeBinomialObservation(), WHOLE),
    "multinomial": (MultinomialObservation(), WHOLE),
    "categorical": (CategoricalObservation(), np.minimum(WHOLE, 3.0)),
    "autoregressive": (AutoregressiveObservation(), ROWS),
    "autoregressive-2": (AutoregressiveObservation(2), ROWS),
}


def scaled(value, array):
    """The product, infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return value * np.asarray(array, dtype=float)


def covariances(observation, value):
    shape = getattr(observation, "covariance_type", "full")
    whole = {"full": np.eye(D), "diag": np.ones(D), "spherical": 1.0}[shape]
    return scaled(value, whole) if shape != "spherical" else float(value)


def both_and_each(observation, value):
    return [(value, value), (value, 1.0), (1.0, value)]


# Parameters of the likelihoods, and a list of what they are for an extreme value.
PRIORS = {
    GaussianObservation: {
        "mean_prior": lambda o, v: [np.full(D, v)],
        "mean_precision_prior": lambda o, v: [v],
        "degrees_of_freedom_prior": lambda o, v: [v],
        "covariance_prior": lambda o, v: [covariances(o, v)],
        "reg_covar": lambda o, v: [v],
        "resolution": lambda o, v: [v],
    },
    FixedVarianceGaussianObservation: {
        "variance": lambda o, v: [v, [v, 1.0, 1.0]],
        "mean_prior": lambda o, v: [np.full(D, v)],
        "mean_variance_prior": lambda o, v: [v],
    },
    BernoulliObservation: {"prior": both_and_each},
    PoissonObservation: {"prior": both_and_each},
    NegativeBinomialObservation: {"prior": both_and_each, "size": lambda o, v: [v, [v, 1.0, 1.0]]},
    MultinomialObservation: {"prior": lambda o, v: [v, [v, 1.0, 1.0]]},
    CategoricalObservation: {"prior": lambda o, v: [v]},
    AutoregressiveObservation: {
        "coef_prior": lambda o, v: [np.full((D, o.order * D), v)],
        "coef_precision_prior": lambda o, v: [v],
        "degrees_of_freedom_prior": lambda o, v: [v],
        "covariance_prior": lambda o, v: [covariances(o, v)],
        "reg_covar": lambda o, v: [v],
    },
}

# Estimators of rows, and what else is given with these.
ESTIMATORS = {
    "mixture": (DPMixtureVB(2, max_iter=3, random_state=0), {}),
    "finite mixture": (DPMixtureVB(2, allocation="dirichlet", max_iter=3, random_state=0), {}),
    "states": (HDPHMMVB(2, max_iter=3, random_state=0), {"lengths": LENGTHS}),
    "finite states": (
        HDPHMMVB(2, allocation="dirichlet", max_iter=3, random_state=0),
        {"lengths": LENGTHS},
    ),
    "topics of rows": (HDPTopicVB(2, max_iter=3, random_state=0), {"groups": GROUPS}),
    "bounded": (MemoryBoundedTopicVB(150), {"groups": GROUPS}),
}

_STATES = ("transition_concentration", "start_concentration", "stickiness")
# Parameters of the estimators that are numbers without a largest one.
PARAMETERS = {
    "mixture": ("weight_concentration_prior", "tol"),
    "finite mixture": ("weight_concentration_prior",),
    "states": ("weight_concentration_prior", "tol", *_STATES),
    "finite states": _STATES,
    "bounded": (
        "target_points", "target_documents", "doc_topic_prior_shape", "doc_topic_prior_rate", "tol",
    ),
}  # fmt: skip
OF_WORDS = ("topic_word_prior", "doc_topic_prior", "weight_concentration_prior", "doc_tol", "tol")

everything = pytest.mark.parametrize(
    ("values", "calls"),
    [
        pytest.param(FEW_VALUES, ["fit"], id="few"),
        pytest.param(ALL_VALUES, ["fit", "partial_fit"], id="all", marks=pytest.mark.slow),
    ],
)


def not_finite(value):
    """Whether a fitted attribute holds a number that is none."""
    if isinstance(value, dict):
        return any(not_finite(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return any(not_finite(v) for v in value)
    array = np.asarray(value)
    return array.dtype.kind == "f" and not np.isfinite(array).all()


def wrong(model, name, value, calls, X, **given):
    """What came of it that should not have, for each of the calls."""
    for call in calls:
        told = f"{type(model).__name__}.{call}, {name}={value!r:.50}: "
        try:
            fitted = getattr(clone(model), call)(X, **given)
        except ValueError as error:
            if name not in str(error):
                yield f"{told}does not name it: {error}"
        except Exception as error:
            yield f"{told}{error!r}"
        else:
            # a perplexity may overflow where the objective does not
            public = {n: v for n, v in vars(fitted).items() if n.endswith("_") and n[0] != "_"}
            bad = [n for n, v in public.items() if n != "bound_" and not_finite(v)]
            if bad:
                yield f"{told}{bad} are not finite"


def takes(estimator, family):
    return family[:14] != "autoregressive" or estimator.endswith("states")


@pytest.mark.quarter
@everything
@pytest.mark.parametrize("family", ROWS_OF)
def test_priors(family, values, calls):
    observation, X = ROWS_OF[family]
    found = []
    estimators = ["mixture", "states", "topics of rows", "bounded"]
    estimators = [name for name in estimators if takes(name, family)]
    for estimator in estimators if values is ALL_VALUES else estimators[:1]:
        model, given = ESTIMATORS[estimator]
        for name, settings in PRIORS[type(observation)].items():
            for value in values:
                for setting in settings(observation, value):
                    own = clone(observation).set_params(**{name: setting})
                    model = clone(model).set_params(observation=own)
                    found += wrong(model, name, setting, calls, X, **given)
    assert found == []


@pytest.mark.quarter
@everything
@pytest.mark.parametrize("estimator", PARAMETERS)
@pytest.mark.parametrize("family", ["diag", "poisson"])
def test_parameters_of_estimators(estimator, family, values, calls):
    model, given = ESTIMATORS[estimator]
    observation, X = ROWS_OF[family]
    found = []
    for name in PARAMETERS[estimator]:
        for value in values:
            own = clone(model).set_params(**{name: value, "observation": observation})
            found += wrong(own, name, value, calls, X, **given)
    assert found == []


@pytest.mark.quarter
@everything
@pytest.mark.parametrize("allocation", ["hdp", "dirichlet"])
def test_parameters_of_topics(allocation, values, calls):
    found = []
    for name in OF_WORDS:
        for value in values:
            arrays = [value, [value] + [1.0] * 11] if name == "topic_word_prior" else [value]
            for setting in arrays:
                model = HDPTopicVB(2, allocation=allocation, max_iter=3, random_state=0)
                found += wrong(model.set_params(**{name: setting}), name, setting, calls, COUNTS)
    assert found == []


@everything
@pytest.mark.parametrize("estimator", ["mixture", "states", "topics"])
def test_rates_of_stochastic_fits(estimator, values, calls):
    model, given = ESTIMATORS.get(estimator, (HDPTopicVB(2, max_iter=3, random_state=0), {}))
    X, found = COUNTS if estimator == "topics" else ROWS, []
    for value in values:
        settings = {"learning_offset": value}
        if value > 1:
            settings["total_samples"] = int(value)
        for name, setting in settings.items():
            own = clone(model).set_params(learning_method="stochastic", **{name: setting})
            found += wrong(own, name, setting, [*calls, "partial_fit"], X, **given)
    assert found == []


def weights_like(value, n):
    """All the same, one unlike the others, and every other one."""
    one, other = np.ones(n), np.ones(n)
    one[0] = other[::2] = value
    return [np.full(n, value), one, other]


@pytest.mark.quarter
@everything
@pytest.mark.parametrize("family", ROWS_OF)
def test_weights(family, values, calls):
    observation, X = ROWS_OF[family]
    found = []
    estimators = [name for name in ESTIMATORS if name != "bounded" and takes(name, family)]
    # of sequences, whose births go through copies of weighted ones, it takes long
    if values is FEW_VALUES:
        estimators = [name for name in estimators if name == "mixture"]
    for estimator in estimators:
        model, given = ESTIMATORS[estimator]
        model = clone(model).set_params(observation=observation)
        for value in values:
            for weight in weights_like(value, len(LENGTHS)):
                given = {**given, "sample_weight": weight[GROUPS]}
                found += wrong(model, "sample_weight", value, calls, X, **given)
    assert found == []


LARGE = np.random.default_rng(0).poisson(3e7, size=(60, 2)).astype(float)
BESIDE = np.hstack([ROWS[:60, :1], LARGE])


def beside_counts(first, counts):
    return ColumnObservation([("first", first, [0]), ("counts", counts, [1, 2])]), BESIDE


ROWS_TO_WEIGH = {
    **ROWS_OF,
    "large poisson": (PoissonObservation(), LARGE),
    "large negative binomial": (NegativeBinomialObservation(), LARGE),
    "large multinomial": (MultinomialObservation(), LARGE),
    "gaussian and large": beside_counts(GaussianObservation(), PoissonObservation()),
    "fixed and large": beside_counts(
        FixedVarianceGaussianObservation(1.0), MultinomialObservation()
    ),
}


@pytest.mark.parametrize("family", ROWS_TO_WEIGH)
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB])
def test_weights_of_one_refuse_nothing(estimator, family):
    """What fits without weights fits with equal ones, and so does a second batch like the first."""
    observation, X = ROWS_TO_WEIGH[family]
    if observation.lags and estimator is DPMixtureVB:
        pytest.skip("rows have no order")
    model = estimator(observation=observation, proposals=None, max_iter=2, random_state=0)
    plain = clone(model).fit(X)
    weighted = clone(model).fit(X, sample_weight=np.ones(len(X)))
    np.testing.assert_allclose(weighted.lower_bound_, plain.lower_bound_, rtol=1e-9)
    plain.partial_fit(X).partial_fit(X[::-1], sample_weight=np.ones(len(X)))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("dtype", "far"),
    [
        (np.float32, 1e9),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in ((np.float32, 1e14), (np.float64, 1e9), (np.float64, 1e100))
        ),
    ],
)
@pytest.mark.parametrize(
    "family",
    [
        *(
            pytest.param(f, marks=pytest.mark.slow)
            for f in ("full", "spherical", "diag", "zero-mean")
        ),
        "fixed-variance",
    ],
)
def test_far_rows_of_weight_zero_count_for_nothing(family, dtype, far):
    observation, X = ROWS_OF[family]
    X, weight = X.astype(dtype), np.ones(N)
    X[0], weight[0] = far, 0.0
    model = DPMixtureVB(observation=observation, max_iter=2, random_state=0)
    for call in ("fit", "partial_fit"):
        without = getattr(clone(model), call)(X[1:])
        found = getattr(clone(model), call)(X, sample_weight=weight)
        np.testing.assert_allclose(found.lower_bound_, without.lower_bound_, rtol=1e-5)
        found.partial_fit(X[::-1], sample_weight=weight[::-1])
        with pytest.raises(ValueError, match="standard deviations away"):
            found.partial_fit(X)


def values_like(value, X):
    """All rows, one number, the first row, and a column."""
    one, first, column = (np.array(X, dtype=float) for _ in range(3))
    one[7, 1] = first[0] = value
    column[:, 1] = scaled(value, column[:, 1])
    return [scaled(value, X), one, first, column]


@pytest.mark.quarter
@everything
@pytest.mark.parametrize("family", ROWS_OF)
def test_values(family, values, calls):
    observation, X = ROWS_OF[family]
    found = []
    estimators = [name for name in ESTIMATORS if takes(name, family)]
    for estimator in estimators if values is ALL_VALUES else estimators[:1]:
        model, given = ESTIMATORS[estimator]
        model = clone(model).set_params(observation=observation)
        for value in values:
            for rows in values_like(value, X):
                found += wrong(model, "X", value, calls, rows, **given)
    assert found == []


@pytest.mark.extended
@everything
@pytest.mark.parametrize("init_params", ["random", "k-means++", "anchor"])
def test_counts_of_words(init_params, values, calls):
    found = []
    for allocation in ("hdp", "dirichlet"):
        model = HDPTopicVB(
            2, allocation=allocation, init_params=init_params, max_iter=3, random_state=0
        )
        for value in values:
            for counts in values_like(value, COUNTS):
                found += wrong(model, "X", value, calls, counts)
            for weight in weights_like(value, len(COUNTS)):
                given = {"sample_weight": weight}
                found += wrong(model, "sample_weight", value, calls, COUNTS, **given)
    assert found == []


@everything
def test_where_components_start(values, calls):
    found = []
    for value in values:
        for observation, X in ROWS_OF.values():
            if observation.lags:
                continue
            means = np.zeros((2, D))
            means[0] = value
            model = DPMixtureVB(2, observation=observation, means_init=means, max_iter=3)
            found += wrong(model, "means_init", value, calls, X)
        topics = np.ones((2, COUNTS.shape[1]))
        topics[0] = scaled(value, np.arange(1, 1 + COUNTS.shape[1]))
        model = HDPTopicVB(init_params=topics, max_iter=3)
        found += wrong(model, "init_params", value, calls, COUNTS)
    assert found == []


# ---------------------------------------------------------------------- the guard


class Broken(GaussianObservation):
    """A likelihood some of whose results are not finite, once they are to be so."""

    field = None

    def bind(self, moments, *, streaming=False):
        likelihood = super().bind(moments, streaming=streaming)
        whole = getattr(likelihood, self.field)

        def broken(prior, s):
            out = whole(prior, s)
            if self.field == "evidence":
                return out + np.inf
            return {**out, "means_": np.where(np.arange(D) == 1, np.nan, out["means_"])}

        setattr(likelihood, self.field, broken)
        return likelihood


@pytest.mark.quarter
@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if "finite" not in name])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_nothing_else_is_published(estimator, call, monkeypatch):
    """What no limit foresaw: an error says what is not finite, and all is as it was."""
    model, given = ESTIMATORS[estimator]
    model = clone(model).set_params(observation=Broken())
    for field, word in {"attributes": "parameters", "evidence": "objective"}.items():
        monkeypatch.setattr(Broken, "field", field)
        with pytest.raises(FloatingPointError, match=word), np.errstate(invalid="ignore"):
            getattr(model, call)(ROWS, **given)
        assert not [name for name in vars(model) if name.endswith("_")]
