"""Missing values as users meet them: what NaN means to each method, and where it is an error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    BernoulliObservation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    HDPTopicVB,
    NegativeBinomialObservation,
    PoissonObservation,
)
from sklearn_bnp.engine.learner import Learner
from tests.laws.harness import quiet_fit, random_resp
from tests.laws.test_monotone import assert_rises

COLUMNWISE = [
    GaussianObservation("diag"),
    GaussianObservation("diag", zero_mean=True),
    GaussianObservation("spherical"),
    GaussianObservation("spherical", zero_mean=True),
    FixedVarianceGaussianObservation(),
    FixedVarianceGaussianObservation(variance=2.0),
    BernoulliObservation(),
    PoissonObservation(),
    NegativeBinomialObservation(),
]
EVERY = [GaussianObservation(), GaussianObservation(zero_mean=True), *COLUMNWISE]
WITH_MEANS = [model for model in EVERY if not getattr(model, "zero_mean", False)]


def name_of(observation):
    return str(observation).replace("Observation", "")


@pytest.fixture(params=COLUMNWISE, ids=name_of)
def columnwise(request):
    return request.param


@pytest.fixture(params=EVERY, ids=name_of)
def observation(request):
    return request.param


def rows_for(observation, rng, n=80, D=4, share=0.2):
    """Rows that suit an observation model, with missing values, in two clusters, and their labels."""
    labels = np.arange(n) % 2
    x = 3.0 * np.where(labels, 1.0, -1.0)[:, np.newaxis] + rng.standard_normal((n, D))
    if isinstance(observation, BernoulliObservation):
        x = (x > 0).astype(float)
        x = np.where(rng.random(x.shape) < 0.1, 1.0 - x, x)
    if isinstance(observation, (PoissonObservation, NegativeBinomialObservation)):
        x = rng.poisson(np.where(labels, 2.0, 12.0)[:, np.newaxis], size=x.shape).astype(float)
    missing = rng.random(x.shape) < share
    missing[:3] = False
    return np.where(missing, np.nan, x), labels


def given(observation, X, resp, **parameters):
    model = DPMixtureVB(observation=observation, init_params=resp, max_iter=0, **parameters)
    return quiet_fit(model.set_params(proposals=None), X)


# ---------------------------------------------------------------------- what it means


def test_columns_are_as_if_alone(columnwise):
    """The data term is the sum of those of columns, each of the rows that show it."""
    rng = np.random.default_rng(0)
    X, _ = rows_for(columnwise, rng)
    resp = random_resp(rng, len(X), 3)
    if getattr(columnwise, "covariance_type", "") == "spherical":
        pytest.skip("columns share a precision")
    together = given(columnwise, X, resp)
    alone = 0.0
    for column in X.T:
        seen = ~np.isnan(column)
        own = given(columnwise, column[seen, np.newaxis], resp[seen])
        alone += own.elbo_terms_["data"]
    # empirical Bayes stops after the same number of steps in each
    assert_allclose(together.elbo_terms_["data"], alone, rtol=1e-9)


def test_rows_of_the_kernels(columnwise):
    """Squares, values with 0 for missing ones, and which entries are seen."""
    rng = np.random.default_rng(1)
    X, _ = rows_for(columnwise, rng, n=20)
    likelihood = given(columnwise, X, random_resp(rng, 20, 2))._learner_.model.likelihood
    z = likelihood.prepare(X)
    assert_array_equal(np.isnan(z), np.isnan(X))
    for dtype in (np.float64, np.float32):
        rows = likelihood.kernel_rows(z.astype(dtype))
        assert rows.dtype == dtype
        expected = []
        for row in z.astype(dtype):
            seen = ~np.isnan(row)
            x = np.where(seen, row, 0)
            parts = {
                "diag": [x * x], "spherical": [[np.sum(x * x)]], "": []
            }[getattr(columnwise, "covariance_type", "")]  # fmt: skip
            if isinstance(columnwise, FixedVarianceGaussianObservation):
                parts = [x * x] if columnwise.variance is None else [[np.sum(x * x)]]
            parts += [] if getattr(columnwise, "zero_mean", False) else [x]
            expected.append(np.concatenate([*parts, seen]))
        assert_allclose(rows, expected, rtol=1e-6)
        n_others = getattr(likelihood, "n_entry_sums", 0)  # made by no kernel
        assert likelihood.n_statistics == n_others + rows.shape[1] + 1


def test_a_row_of_nothing_says_nothing(observation):
    """It has the weights as its responsibilities, up to their uncertainty, and density 1."""
    rng = np.random.default_rng(2)
    X, _ = rows_for(observation, rng)
    X[[5, 9]] = np.nan
    model = given(observation, X, random_resp(rng, len(X), 2))
    blank = np.full((2, 4), np.nan)
    assert_allclose(model.score_samples(blank), 0.0, atol=1e-12)
    log_weights = model._model.allocation.expected_log_weights(model._statistics[:, -1])
    expected = np.exp(log_weights) / np.exp(log_weights).sum()
    assert_allclose(model.predict_proba(blank), [expected, expected], rtol=1e-12)


def test_blank_rows_change_the_weights_alone(observation):
    """The data term and the components are those of the other rows."""
    rng = np.random.default_rng(3)
    X, _ = rows_for(observation, rng)
    resp = random_resp(rng, len(X), 2)
    resp = resp[:, np.argsort(-resp.sum(axis=0))]
    more = np.vstack([X, np.full((3, 4), np.nan)])
    a = given(observation, X, resp)
    b = given(observation, more, np.vstack([resp, np.tile([1.0, 0.0], (3, 1))]))
    assert_allclose(b.elbo_terms_["data"], a.elbo_terms_["data"], rtol=1e-9)
    assert_allclose(b.means_, a.means_, rtol=1e-9)


@pytest.mark.quarter
@pytest.mark.parametrize("observation", WITH_MEANS, ids=name_of)
def test_missing_values_in_one_component_alone(observation):
    """A column that one cluster never shows does not keep it from being found."""
    rng = np.random.default_rng(4)
    X, labels = rows_for(observation, rng, n=200, share=0.0)
    X[labels == 1, 2] = np.nan
    model = DPMixtureVB(observation=observation, random_state=0).fit(X)
    found = model.predict(X)
    for k in np.unique(found):  # a cluster may be cut, but they are not mixed
        share = np.mean(labels[found == k])
        assert not 0.1 < share < 0.9
    assert model.n_components_ > 1


@pytest.mark.quarter
def test_objective_rises_and_laps_agree(observation):
    rng = np.random.default_rng(5)
    X, _ = rows_for(observation, rng, n=300)
    model = quiet_fit(
        DPMixtureVB(4, observation=observation, n_batches=3, random_state=0, max_iter=25), X
    )
    assert_rises(model.lower_bounds_)


def test_weights_are_repetition(observation):
    rng = np.random.default_rng(6)
    X, _ = rows_for(observation, rng)
    count = rng.integers(1, 4, size=len(X))
    resp, rows = random_resp(rng, len(X), 2), np.repeat(np.arange(len(X)), count)
    model = DPMixtureVB(observation=observation, init_params=resp, max_iter=0, proposals=None)
    a = model.fit(X, sample_weight=count)
    b = given(observation, X[rows], resp[rows])
    assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-9)


# ---------------------------------------------------------------------- complete at first


def test_models_of_complete_data_know_missing_values(observation):
    """Predictions for complete rows and for those with missing values are those of one model."""
    rng = np.random.default_rng(7)
    X, _ = rows_for(observation, rng, share=0.0)
    model = given(observation, X, random_resp(rng, len(X), 2))
    Y = X.copy()
    Y[7, 1] = np.nan
    assert_allclose(model.score_samples(Y)[8:], model.score_samples(X)[8:], rtol=1e-9)
    assert_allclose(model.predict_proba(Y)[8:], model.predict_proba(X)[8:], rtol=1e-9, atol=1e-12)
    assert np.isfinite(model.score_samples(Y)).all()
    assert model.score_samples(Y)[7] != model.score_samples(X)[7]


@pytest.mark.extended
def test_batches_with_missing_values_after_complete_ones(observation):
    """The objective is then that of both, and goes on rising when they are seen again."""
    rng = np.random.default_rng(8)
    X, _ = rows_for(observation, rng, n=200, share=0.0)
    Y, _ = rows_for(observation, rng, n=200)
    model = DPMixtureVB(2, observation=observation, random_state=0)
    model.partial_fit(X, batch_id="a")
    before = model.lower_bound_
    learner = Learner(model._learner_)
    incomplete = learner.model.likelihood.with_missing()
    learner.go_on_with(incomplete, incomplete.from_complete)
    assert_allclose(learner.lower_bound, before, rtol=1e-11)
    assert model._learner_.lower_bound == before
    model._learner_ = learner.state
    model.partial_fit(Y, batch_id="b")
    values = [model.lower_bound_]
    for _ in range(3):
        for name, batch in (("a", X), ("b", Y)):
            model.partial_fit(batch, batch_id=name)
        values.append(model.lower_bound_)
    assert_rises(values)
    assert_allclose(model._statistics[:, -1].sum(), 400, rtol=1e-9)


@pytest.mark.quarter
def test_warm_start_with_missing_values(observation):
    rng = np.random.default_rng(9)
    X, _ = rows_for(observation, rng, share=0.0)
    Y, _ = rows_for(observation, rng)
    model = DPMixtureVB(2, observation=observation, random_state=0, warm_start=True).fit(X)
    assert np.isfinite(model.fit(Y).lower_bound_)


def test_columns_that_depend_on_others_cannot_be_missing():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((100, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    model = DPMixtureVB(random_state=0).fit(X)
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="linear combinations of others"):
        model.predict(X)
    assert np.isfinite(DPMixtureVB(random_state=0).fit(X).lower_bound_)  # missing from the start


# ---------------------------------------------------------------------- sequences and documents


def chain(rng, n=240):
    states = np.repeat(np.arange(n // 20) % 2, 20)
    x = 2.5 * np.where(states, 1.0, -1.0)[:, np.newaxis] + rng.standard_normal((n, 3))
    return x, states


@pytest.mark.extended
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_gaps_of_sequences(covariance_type):
    """Rows of nothing have density 1, and the state before and after them in between."""
    rng = np.random.default_rng(11)
    X, states = chain(rng)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[45:50] = np.nan
    model = HDPHMMVB(2, observation=GaussianObservation(covariance_type), random_state=0).fit(X)
    assert model.n_components_ == 2
    assert_allclose(model.score_samples(X)[45:50], 0.0, atol=1e-12)
    found = model.predict(X)
    agree = np.mean(found == states)
    assert max(agree, 1 - agree) > 0.98
    assert len(set(found[44:51])) == 1
    assert_rises(model.lower_bounds_[1:])
    low = HDPHMMVB(
        2, observation=GaussianObservation(covariance_type), random_state=0, low_memory=True
    )
    assert_allclose(low.fit(X).lower_bound_, model.lower_bound_, rtol=1e-9)
    assert_rows_may_come_at_any_step(model, X[:60])


def assert_rows_may_come_at_any_step(model, X):
    """In a running sequence the last row's probabilities are those of all rows so far together."""
    for step in (1, 2, 7):
        message = None
        for first in range(0, len(X), step):
            proba, message = model.predict_next(X[first : first + step], message)
            if first >= 3:  # before, there may be no row that is modelled
                together = model.predict_proba(X[: first + step])[-1]
                assert_allclose(proba, together, atol=1e-9, err_msg=f"{step} rows, from {first}")


@pytest.mark.parametrize(
    "observation", ["correlated_gaussian", "autoregressive", "autoregressive 2"]
)
def test_running_sequences_with_gaps(observation):
    """A gap may be in the rows that the next one is given, and not in that row itself."""
    X, _ = chain(np.random.default_rng(3))
    observation = AutoregressiveObservation(order=2) if "2" in observation else observation
    model = HDPHMMVB(2, observation=observation, max_iter=5, random_state=0)
    quiet_fit(model, X)
    gaps = X[:60].copy()
    gaps[10], gaps[20:23], gaps[33, 1], gaps[47, 0] = np.nan, np.nan, np.nan, np.nan
    assert_rows_may_come_at_any_step(model, gaps)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_documents_of_incomplete_rows(covariance_type):
    """Deletes of topics, which take off what documents left, raise the objective as they said."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.5, 0.5, 0.5], size=40)
    labels = np.concatenate([rng.choice(3, size=15, p=p) for p in shares])
    X = np.array([[0, 0, 0], [3, 0, 2], [0, 3, -2]])[labels] + rng.standard_normal((600, 3))
    X[rng.random(X.shape) < 0.15] = np.nan
    groups = np.repeat(np.arange(40), 15)
    model = HDPTopicVB(
        9, observation=GaussianObservation(covariance_type), proposals=("birth", "delete"), n_batches=2,
        max_iter=40, random_state=0,
    )  # fmt: skip
    quiet_fit(model, X, groups=groups)
    assert_rises(model.lower_bounds_)
    assert model.n_components_ == 3
    assert sum(lap.accepted.get("delete", 0) for lap in model.history_) > 0
    assert np.isfinite(model.score(X, groups=groups))


def test_constant_columns_with_missing_values():
    """They say nothing of components, and have their own density where they are seen."""
    rng = np.random.default_rng(15)
    X, _ = rows_for(GaussianObservation(), rng)
    constant = np.where(rng.random(len(X)) < 0.3, np.nan, 7.0)
    Y = np.column_stack([X, constant])
    resp = random_resp(rng, len(X), 2)
    for kind in ("full", "diag"):
        a, b = (given(GaussianObservation(kind), x, resp) for x in (X, Y))
        assert_allclose(a.means_, b.means_[:, :4], rtol=1e-9)
        gain = b.score_samples(Y) - a.score_samples(X)
        seen = ~np.isnan(constant)
        assert_allclose(gain[~seen], 0.0, atol=1e-9)
        assert_allclose(gain[seen], gain[seen][0], rtol=1e-9)
        # the objective has the same for each row that shows it
        assert_allclose(b.elbo_terms_["data"] - a.elbo_terms_["data"], gain[seen].sum(), rtol=1e-7)


# ---------------------------------------------------------------------- what is said


def test_tags_follow_the_observation():
    allowed = {
        "gaussian": True, "bernoulli": True, "poisson": True, "fixed_variance_gaussian": True,
        "multinomial": False, "negative_binomial": True,
    }  # fmt: skip
    for name, value in allowed.items():
        for estimator in (DPMixtureVB, HDPHMMVB, HDPTopicVB):
            assert get_tags(estimator(observation=name)).input_tags.allow_nan is value
    assert not get_tags(DPMixtureVB(observation="no such thing")).input_tags.allow_nan


X_NAN = np.array([[1.0, 2.0], [np.nan, 0.0], [3.0, 1.0], [0.0, 2.0], [2.0, 5.0]])


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB])
def test_likelihoods_that_take_no_missing_values(estimator):
    with pytest.raises(ValueError, match="NaN in column 0, but observation='multinomial' takes no"):
        estimator(observation="multinomial").fit(X_NAN)


def test_inf_is_an_error_still(observation):
    X, _ = rows_for(observation, np.random.default_rng(16))
    X[2, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        DPMixtureVB(observation=observation).fit(X)


def test_a_column_of_nothing(observation):
    X, _ = rows_for(observation, np.random.default_rng(17))
    X[:, 2] = np.nan
    for method in ("fit", "partial_fit"):
        model = DPMixtureVB(observation=observation)
        with pytest.raises(ValueError, match="Column 2 of X has no value: all its entries are NaN"):
            getattr(model, method)(X)
    with pytest.raises(ValueError, match="Column 2 of X has no value"):
        HDPHMMVB(observation=observation).fit(X)
    with pytest.raises(ValueError, match="Column 2 of X has no value"):
        HDPTopicVB(observation=observation).fit(X, groups=np.arange(len(X)) // 4)


def test_a_column_of_nothing_in_rows_of_weight():
    X, _ = rows_for(GaussianObservation(), np.random.default_rng(18))
    X[1:, 2] = np.nan
    weight = np.ones(len(X))
    weight[0] = 0.0
    with pytest.raises(ValueError, match=r"Column 2 .*in rows of positive weight"):
        DPMixtureVB().fit(X, sample_weight=weight)


def test_means_init_with_missing_values():
    rng = np.random.default_rng(19)
    for observation in WITH_MEANS:
        X, labels = rows_for(observation, rng)
        means = np.array([np.nanmean(X[labels == k], axis=0) for k in range(2)])
        model = DPMixtureVB(
            2, observation=observation, means_init=means, proposals=None, max_iter=5
        )
        found = quiet_fit(model, X).predict(X)
        assert not 0.15 < np.mean(found == labels) < 0.85
