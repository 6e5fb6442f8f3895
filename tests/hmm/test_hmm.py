"""`HDPHMMVB`: what goes in, what comes out, and what the results have to do with each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation
from tests.estimators import (
    CENTERS,
    assert_same_state,
    chains,
    one_hot,
    public_state,
    same_partition,
    shuffled_groups,
)

X, STATES = chains()
ROWS, LENGTHS = np.concatenate(X), [len(x) for x in X]
TRUTH = np.concatenate(STATES)
GROUPS = np.repeat(np.array(["e", "b", "f", "a", "c", "d"]), LENGTHS)
K = len(CENTERS)


@pytest.fixture(scope="module")
def model():
    return HDPHMMVB(random_state=0).fit(X)


@pytest.fixture(scope="module")
def regression():
    observation = AutoregressiveObservation(order=2)
    return HDPHMMVB(
        3, observation=observation, proposals=None, random_state=0, max_iter=20, tol=1
    ).fit(X)


# ---------------------------------------------------------------------- what is found


def test_finds_the_states_and_sorts_them(model):
    assert model.n_components_ == K
    assert model.converged_
    assert same_partition(np.concatenate(model.predict(X)), TRUTH)
    sizes = np.bincount(np.concatenate(model.predict(X)))
    assert_array_equal(np.sort(sizes)[::-1], sizes)
    labels = [int(np.argmin(np.sum((CENTERS - mean) ** 2, axis=1))) for mean in model.means_]
    assert sorted(labels) == list(range(K))
    counts = np.zeros((K, K))
    for path in STATES:
        np.add.at(counts, (path[:-1], path[1:]), 1)
    # kappa and alpha, which were learned, are added to each row of about a hundred transitions
    expected = counts[np.ix_(labels, labels)] + model.stickiness_ * np.eye(K)
    expected += model.transition_concentration_ * model.weights_
    assert_allclose(model.transmat_, expected / expected.sum(axis=1, keepdims=True), atol=0.005)
    starts = np.bincount([path[0] for path in STATES], minlength=K)[labels].astype(float)
    starts += model.start_concentration_ * model.weights_
    assert_allclose(model.startprob_, starts / starts.sum(), atol=1e-3)


def test_attributes_are_distributions_and_sums(model):
    assert_allclose(model.transmat_.sum(axis=1), 1.0)
    assert model.startprob_.sum() == pytest.approx(1.0)
    assert 0 < model.weights_.sum() < 1  # some is left for states never seen
    assert model.lower_bound_ == pytest.approx(sum(model.elbo_terms_.values()))
    assert model.lower_bounds_[-1] == pytest.approx(model.lower_bound_)
    assert model.n_features_in_ == CENTERS.shape[1]
    assert model.covariances_.shape == (K, 3, 3)


def test_finite_model():
    model = HDPHMMVB(
        K, allocation="dirichlet", proposals=None, random_state=1, init_params="k-means++"
    ).fit(X)
    assert same_partition(np.concatenate(model.predict(X)), TRUTH)
    assert_allclose(model.weights_, 1 / K)


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("observation", ["gaussian", "autoregressive"])
@pytest.mark.parametrize("n", [1, 4, 30])
def test_a_fixed_number_of_states_stays(init, observation, n):
    model = HDPHMMVB(
        n,
        observation=observation,
        proposals=None,
        init_params=init,
        max_iter=2,
        tol=1e9,
        random_state=0,
    ).fit(X)
    assert model.n_components_ == n
    assert model.transmat_.shape == (n, n)
    assert np.isfinite(model.lower_bound_)


@pytest.mark.extended
def test_max_components():
    model = HDPHMMVB(max_components=2, random_state=0).fit(X)
    assert model.n_components_ == 2


# ---------------------------------------------------------------------- forms of X


@pytest.mark.extended
def test_forms_of_sequences_are_one(model):
    expected = public_state(model)
    boxed = np.empty(len(X), dtype=object)
    boxed[:] = X
    for given in (tuple(X), boxed, [x.tolist() for x in X]):
        assert_same_state(public_state(HDPHMMVB(random_state=0).fit(given)), expected)
    for named in ({"lengths": LENGTHS}, {"lengths": np.array(LENGTHS)}, {"groups": GROUPS}):
        found = HDPHMMVB(random_state=0).fit(ROWS, **named)
        assert_same_state(public_state(found), expected)


def test_a_stack_is_as_many_sequences():
    stack = np.stack([x[:30] for x in X])
    expected = HDPHMMVB(random_state=0).fit(list(stack))
    found = HDPHMMVB(random_state=0).fit(stack)
    assert_same_state(public_state(found), public_state(expected))
    assert_array_equal(found.predict(stack), expected.predict(list(stack)))


def test_one_array_is_one_sequence():
    one, listed = HDPHMMVB(random_state=0).fit(X[0]), HDPHMMVB(random_state=0).fit([X[0]])
    assert_same_state(public_state(one), public_state(listed))
    assert_array_equal(one.predict(X[0]), listed.predict([X[0]])[0])


@pytest.mark.parametrize("fitted", ["model", "regression"])
@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "transform", "score_samples", "decode"]
)
def test_results_are_in_the_form_of_the_rows(fitted, method, request):
    model = request.getfixturevalue(fitted)
    call = getattr(model, method)
    if method == "decode":

        def call(*args, **kwargs):
            return model.decode(*args, **kwargs)[1]

    listed = call(X)
    assert [len(part) for part in listed] == LENGTHS
    together = np.concatenate(listed)
    # blocks of sequences differ, and with them the order of sums in products
    assert_allclose(call(ROWS, lengths=LENGTHS), together, atol=1e-12)
    rows = shuffled_groups(GROUPS)
    assert_allclose(call(ROWS[rows], groups=GROUPS[rows]), together[rows], atol=1e-12)
    assert_allclose(call(X[2]), listed[2], atol=1e-12)


def test_groups_need_not_be_neighbours(model):
    rows = shuffled_groups(GROUPS)
    found = HDPHMMVB(random_state=0).fit(ROWS[rows], groups=GROUPS[rows])
    assert found.n_components_ == K
    # rows come in another order, and proposals see other ones: as close as a fit gets
    assert found.lower_bound_ == pytest.approx(model.lower_bound_, abs=2 * model.tol * len(ROWS))


def test_sequences_of_one_row():
    rows = ROWS[:, np.newaxis]
    model = HDPHMMVB(random_state=0).fit(list(rows))
    assert model.n_components_ == K
    assert same_partition(np.concatenate(model.predict(list(rows))), TRUTH)
    assert model._learner_.totals.extra.counts[1:].sum() == 0  # no transitions
    assert model.startprob_ == pytest.approx(np.bincount(model.predict(ROWS)) / len(ROWS), abs=0.01)


# ---------------------------------------------------------------------- responsibilities


@pytest.mark.parametrize("form", ["list", "lengths", "groups", "callable"])
def test_responsibilities_and_no_laps_are_one_global_step(form):
    resp, rows = 0.9 * one_hot(TRUTH) + 0.1 / K, shuffled_groups(GROUPS)
    data, kwargs = (ROWS[rows], {"groups": GROUPS[rows]}) if form == "groups" else (X, {})
    init = {
        "list": np.split(resp, np.cumsum(LENGTHS)[:-1]), "groups": resp[rows], "lengths": resp,
        "callable": lambda given, n, rng: resp,
    }[form]  # fmt: skip
    model = HDPHMMVB(K, init_params=init, max_iter=0, n_batches=2, random_state=0)
    if form == "lengths":
        data, kwargs = ROWS, {"lengths": LENGTHS}
    model.fit(data, **kwargs)
    means = (resp.T @ ROWS / resp.sum(axis=0)[:, np.newaxis])[np.argsort(-resp.sum(axis=0))]
    assert_allclose(model.means_, means, atol=2e-3)  # of a prior worth 0.01 rows
    parts = np.split(resp, np.cumsum(LENGTHS)[:-1])
    totals = model._learner_.totals
    counts = totals.extra.listed(sorted(totals.uids.tolist()))
    assert_allclose(counts[0], sum(part[0] for part in parts))
    assert_allclose(counts[1:], sum(part[:-1].T @ part[1:] for part in parts))
    assert model.elbo_terms_["entropy"] == pytest.approx(-np.sum(resp * np.log(resp)))
    # the posterior of the states can only be better
    laps = clone(model).set_params(max_iter=9, proposals=None).fit(data, **kwargs)
    assert laps.lower_bound_ > model.lower_bound_ + 1.0


def test_given_rows_of_a_regression_say_nothing():
    resp = one_hot(TRUTH)
    other = resp.copy()
    other[np.concatenate([[0], np.cumsum(LENGTHS)[:-1]])] = [0.2, 0.3, 0.5]
    bounds = [
        HDPHMMVB(observation="autoregressive", init_params=r, max_iter=0).fit(X).lower_bound_
        for r in (resp, other)
    ]
    assert bounds[0] == bounds[1]


# ---------------------------------------------------------------------- states and densities


def all_paths(n, k):
    return np.stack(np.meshgrid(*[np.arange(k)] * n, indexing="ij"), axis=-1).reshape(-1, n)


def joint(model, x):
    """Log density of x with each of all paths, from the public attributes and the rows' densities."""
    likelihood, prior = model._model.likelihood, model._model.prior
    each = likelihood.log_predictive(prior, model._statistics, likelihood.prepare(x))
    each = each + likelihood.log_base(x)[:, np.newaxis]
    paths = all_paths(len(x), model.n_components_)
    logs = np.log(model.startprob_)[paths[:, 0]] + each[np.arange(len(x)), paths].sum(axis=1)
    for t in range(1, len(x)):
        logs += np.log(model.transmat_)[paths[:, t - 1], paths[:, t]]
    return paths, logs


def test_scores_and_paths_by_brute_force(model):
    x = np.linspace(CENTERS[0], CENTERS[1], 6) + 0.3
    paths, logs = joint(model, x)
    assert model.score_samples(x).sum() == pytest.approx(logsumexp(logs), rel=1e-10)
    for t in range(1, len(x)):  # each row given those before it
        before = logsumexp(joint(model, x[:t])[1])
        now = logsumexp(joint(model, x[: t + 1])[1])
        assert model.score_samples(x)[t] == pytest.approx(now - before, abs=1e-9)
    log_prob, states = model.decode(x)
    assert log_prob == pytest.approx(logs.max(), rel=1e-10)
    assert_array_equal(states, paths[logs.argmax()])
    both = model.decode([x, x[::-1]])
    assert both[0] == pytest.approx(log_prob + joint(model, x[::-1])[1].max(), rel=1e-10)


def test_score_is_the_mean_over_modelled_rows(model, regression):
    assert model.score(X) == pytest.approx(np.concatenate(model.score_samples(X)).mean())
    logs = regression.score_samples(X)
    assert all(np.isnan(part[:2]).all() and np.isfinite(part[2:]).all() for part in logs)
    assert regression.score(X) == pytest.approx(np.nanmean(np.concatenate(logs)))


def test_regressions_repeat_the_first_modelled_state(regression):
    for name in ("predict", "predict_proba"):
        for part in getattr(regression, name)(X):
            assert_array_equal(part[0], part[2])
            assert_array_equal(part[1], part[2])


def test_probabilities(model):
    resp = np.concatenate(model.predict_proba(X))
    assert_allclose(resp.sum(axis=1), 1.0)
    assert_array_equal(resp.argmax(axis=1), np.concatenate(model.predict(X)))
    total = model._learner_.totals.s[:, -1]
    assert_allclose(np.sort(resp.sum(axis=0)), np.sort(total), rtol=1e-3)  # the fit has converged


def test_fit_predict():
    model = HDPHMMVB(random_state=0)
    first = model.fit_predict(ROWS, lengths=LENGTHS)
    assert_array_equal(first, model.predict(ROWS, lengths=LENGTHS))


@pytest.mark.parametrize("fitted", ["model", "regression"])
@pytest.mark.parametrize("step", [1, 2, 7])
def test_messages_carry_the_sequence(fitted, step, request):
    model, x = request.getfixturevalue(fitted), X[1]
    message = None
    for start in range(0, len(x), step):
        proba, message = model.predict_next(x[start : start + step], message)
        known = start + step >= 3
        end = min(start + step, len(x))
        expected = model.predict_proba(x[:end])[-1] if known else None
        if known:
            assert_allclose(proba, expected, atol=1e-9)
    # one row at a time
    alone, message = model.predict_next(x[0])
    assert alone.shape == (model.n_components_,)
    assert alone.sum() == pytest.approx(1.0)
    assert_allclose(model.predict_next(x[1:], message)[0], model.predict_proba(x)[-1], atol=1e-9)


def test_the_next_rows_may_be_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[0], columns=[f"column {d}" for d in range(X[0].shape[1])])
    model = HDPHMMVB(proposals=None).fit(frame)
    expected = model.predict_proba(frame)[-1]
    assert_allclose(model.predict_next(frame)[0], expected, atol=1e-9)
    for _, row in frame.iterrows():  # a row keeps the names of its columns
        proba, message = model.predict_next(row)
    assert proba.shape == expected.shape and message.rows.shape == (0, X[0].shape[1])


def test_before_a_regression_begins_there_is_the_start(regression):
    proba, message = regression.predict_next(X[0][0])
    assert_array_equal(proba, regression.startprob_)
    assert message.proba is None
    assert_array_equal(message.rows, X[0][:1])


def test_sample(model, regression):
    x, states = model.sample(2000, random_state=0)
    assert x.shape == (2000, 3)
    assert same_partition(model.predict(x), states)
    share = np.mean(states[1:] == states[:-1])
    stay = np.bincount(states, minlength=K) / 2000 @ np.diagonal(model.transmat_)
    assert share == pytest.approx(stay, abs=0.03)  # four deviations of 2000 flips
    xs, paths = model.sample(5, n_sequences=3, random_state=0)
    assert [part.shape for part in xs] == [(5, 3)] * 3
    assert [part.shape for part in paths] == [(5,)] * 3
    assert np.isfinite(regression.sample(50, random_state=0)[0]).all()
    assert_array_equal(model.sample(4)[0], model.sample(4)[0])
