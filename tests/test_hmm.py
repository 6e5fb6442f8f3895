"""`HDPHMMVB`: what goes in, what comes out, and what the results have to do with each other."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation, GaussianObservation

from .estimators import CENTERS, assert_same_state, chains, one_hot, public_state, same_partition

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
        3, observation=observation, proposals=None, random_state=0, max_iter=5, tol=1
    ).fit(X)


def shuffled(seed=0):
    """Rows of the sequences mixed, each sequence's own in order: positions of them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(GROUPS)
    rows = np.empty(len(ROWS), dtype=int)
    for group in np.unique(GROUPS):
        rows[order == group] = np.flatnonzero(group == GROUPS)
    return rows


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
    # kappa = 50 and alpha = 1 are added to each row of about a hundred transitions
    expected = counts[np.ix_(labels, labels)] + 50 * np.eye(K) + model.weights_
    assert_allclose(model.transmat_, expected / expected.sum(axis=1, keepdims=True), atol=0.005)
    starts = np.bincount([path[0] for path in STATES], minlength=K)[labels] + model.weights_
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


def test_max_components():
    model = HDPHMMVB(max_components=2, random_state=0).fit(X)
    assert model.n_components_ == 2


# ---------------------------------------------------------------------- forms of X


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
@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "decode"])
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
    rows = shuffled()
    assert_allclose(call(ROWS[rows], groups=GROUPS[rows]), together[rows], atol=1e-12)
    assert_allclose(call(X[2]), listed[2], atol=1e-12)


def test_groups_need_not_be_neighbours(model):
    rows = shuffled()
    found = HDPHMMVB(random_state=0).fit(ROWS[rows], groups=GROUPS[rows])
    assert found.n_components_ == K
    # rows come in another order, and proposals see other ones: as close as a fit gets
    assert found.lower_bound_ == pytest.approx(model.lower_bound_, abs=2 * model.tol * len(ROWS))


def test_sequences_of_one_row():
    rows = ROWS[:, np.newaxis]
    model = HDPHMMVB(random_state=0).fit(list(rows))
    assert model.n_components_ == K
    assert same_partition(np.concatenate(model.predict(list(rows))), TRUTH)
    assert model._learner_.totals.docs.counts[1:].sum() == 0  # no transitions
    assert model.startprob_ == pytest.approx(np.bincount(model.predict(ROWS)) / len(ROWS), abs=0.01)


# ---------------------------------------------------------------------- responsibilities


@pytest.mark.parametrize("form", ["list", "lengths", "groups", "callable"])
def test_responsibilities_and_no_laps_are_one_global_step(form):
    resp, rows = 0.9 * one_hot(TRUTH) + 0.1 / K, shuffled()
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
    counts = totals.docs.listed(sorted(totals.uids.tolist()))
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


# ---------------------------------------------------------------------- batches


def test_partial_fit_by_content_and_by_name():
    batches = [X[:2], X[2:4], X[4:]]
    found = []
    for named in (False, True):
        model = HDPHMMVB(random_state=0)
        for _ in range(3):
            for i, batch in enumerate(batches):
                model.partial_fit(batch, batch_id=i if named else None)
        assert model._learner_.totals.n.sum() == pytest.approx(len(ROWS))
        assert same_partition(np.concatenate(model.predict(X)), TRUTH)
        assert_allclose(model._learner_.totals.docs.counts[0].sum(), len(X))
        found.append(public_state(model))
    assert_same_state(*found)


def test_partial_fit_of_streams_keeps_no_batch():
    model = HDPHMMVB(memoize=False, random_state=0)
    for x in X:
        model.partial_fit(x)
    assert model._learner_.totals.n.sum() == pytest.approx(len(ROWS))
    assert len(model._learner_.memo) == 1
    before = model._learner_.totals.n.sum()
    model.partial_fit(X[0])  # nobody knows that it was seen
    assert model._learner_.totals.n.sum() == pytest.approx(before + len(X[0]))


def test_partial_fit_goes_on_after_fit(model):
    other = clone(model).fit(X[:4]).partial_fit(X[4:])
    assert other._learner_.totals.n.sum() == pytest.approx(len(ROWS))
    assert same_partition(np.concatenate(other.predict(X)), TRUTH)


def test_priors_of_transitions_may_change_on_the_way():
    model = HDPHMMVB(random_state=0).partial_fit(X[:3])
    model.set_params(stickiness=0.0, allocation="dirichlet").partial_fit(X[3:])
    assert_allclose(model.weights_, 1 / model.n_components_)
    assert np.isfinite(model.lower_bound_)


@pytest.mark.parametrize("kwargs", [{}, {"lengths": LENGTHS[:2]}])
def test_partial_fit_of_the_first_batch_finds_states(kwargs):
    data = np.concatenate(X[:2]) if kwargs else X[:2]
    model = HDPHMMVB(random_state=0).partial_fit(data, **kwargs)
    assert model.n_components_ == K


def test_stochastic():
    model = HDPHMMVB(
        K + 2,
        learning_method="stochastic",
        init_params="k-means++",
        batch_size=2,
        max_iter=20,
        random_state=0,
    ).fit(X)
    assert model.n_components_ == K + 2
    rows = np.bincount(np.concatenate(model.predict(X)), minlength=K + 2)
    assert_array_equal(rows[:K], np.sort(np.bincount(TRUTH))[::-1])
    assert_allclose(model._learner_.totals.n.sum(), len(ROWS))
    assert_allclose(model._learner_.totals.docs.counts[0].sum(), len(X))


def test_stochastic_steps_average_transitions():
    params = {"learning_method": "stochastic", "random_state": 0, "total_samples": 60}
    model = HDPHMMVB(3, init_params=one_hot(TRUTH[: LENGTHS[0]]), **params)
    model.partial_fit(X[0])
    totals = model._learner_.totals
    assert totals.n.sum() == pytest.approx(60 * LENGTHS[0])  # the first step is all there is
    model.partial_fit(X[1])
    rate = (1.0 + 2) ** -0.51
    expected = (1 - rate) * 60 * LENGTHS[1] + rate * 60 * LENGTHS[1]
    totals = model._learner_.totals
    assert totals.n.sum() == pytest.approx(expected)
    # of each sequence one row is a start; before, the sequences stood for as many rows as now
    kept = (1 - rate) * (60 * LENGTHS[1]) / (60 * LENGTHS[0]) * 60
    assert totals.docs.counts[0].sum() == pytest.approx(kept + rate * 60)


# ---------------------------------------------------------------------- scikit-learn


def test_cross_validation_of_a_list_holds_out_whole_sequences():
    cv = KFold(3)
    found = cross_validate(
        HDPHMMVB(random_state=0), X, cv=cv, return_estimator=True, error_score="raise"
    )
    for (train, test), estimator, score in zip(
        cv.split(X), found["estimator"], found["test_score"], strict=True
    ):
        alone = HDPHMMVB(random_state=0).fit([X[i] for i in train])
        assert_same_state(public_state(estimator), public_state(alone))
        assert score == alone.score([X[i] for i in test])


def test_groups_with_metadata_routing_hold_out_whole_sequences():
    rows, cv = shuffled(), GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        model = HDPHMMVB(random_state=0).set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(
            model, ROWS[rows], cv=cv, params={"groups": GROUPS[rows]}, return_estimator=True,
            error_score="raise",
        )  # fmt: skip
    splits = cv.split(ROWS[rows], groups=GROUPS[rows])
    for (train, test), estimator, score in zip(
        splits, found["estimator"], found["test_score"], strict=True
    ):
        train, test = rows[train], rows[test]
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert estimator._learner_.totals.docs.counts[0].sum() == pytest.approx(4)  # sequences
        alone = HDPHMMVB(random_state=0).fit(ROWS[train], groups=GROUPS[train])
        assert_same_state(public_state(estimator), public_state(alone))
        assert score == alone.score(ROWS[test], groups=GROUPS[test])


def test_grid_search_over_the_observation():
    mixing = np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 1.0]])
    rng = np.random.default_rng(0)
    data = [CENTERS[path] + rng.normal(size=(len(path), 3)) @ mixing for path in STATES]
    search = GridSearchCV(
        HDPHMMVB(random_state=0), {"observation__covariance_type": ["spherical", "diag", "full"]},
        cv=2, error_score="raise",
    ).fit(data)  # fmt: skip
    assert search.best_params_ == {"observation__covariance_type": "full"}
    assert same_partition(np.concatenate(search.predict(data)), TRUTH)


def test_pipeline(model):
    pipe = make_pipeline(StandardScaler(), HDPHMMVB(random_state=0))
    states = pipe.fit_predict(ROWS, hdphmmvb__lengths=LENGTHS)
    assert same_partition(states, TRUTH)
    assert pipe.score_samples(ROWS).shape == (len(ROWS),)


def test_clone_and_pickle(model):
    assert not hasattr(clone(model), "transmat_")
    copy = pickle.loads(pickle.dumps(model))
    assert_same_state(public_state(copy), public_state(model))
    assert_array_equal(copy.decode(X[0])[1], model.decode(X[0])[1])
    assert copy.score(X) == model.score(X)
    many = HDPHMMVB(random_state=0, n_batches=6).fit(chains(48)[0])
    assert many.n_components_ == K
    assert len(pickle.dumps(many)) < len(pickle.dumps(model)) + 3000  # history, and no rows


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(x, columns=["a", "b", "c"]) for x in X]
    model = HDPHMMVB(random_state=0).fit(frames)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert [len(part) for part in model.predict(frames)] == LENGTHS
    with pytest.raises(ValueError, match="feature names"):
        model.predict([frames[0], frames[1].rename(columns={"a": "z"})])


def test_single_precision_finds_the_same_states():
    model = HDPHMMVB(random_state=0, observation=GaussianObservation("diag"))
    single = model.fit([x.astype(np.float32) for x in X])
    assert same_partition(np.concatenate(single.predict(X)), TRUTH)
