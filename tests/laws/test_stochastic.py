"""Stochastic inference: totals of the right mass on the way, and exact ones at the end."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPHMMVB, DPMixtureVB, GaussianObservation, HDPTopicVB
from sklearn_bnp.engine.stochastic import (
    fit_stochastic,
    start_from_responsibilities,
    stochastic_step,
)
from sklearn_bnp.inputs.batches import ArraySource
from tests.reference import mixtures

from . import chain_harness
from .harness import estimator, features_of, learner_for, random_resp, totals_of
from .shadow import Shadow


def test_final_objective_is_exact(family, allocation):
    """The last lap is a local step on everything: objective, sums and entropies from scratch."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, 200)
    learner, source = learner_for(
        family, X, resp=random_resp(rng, 200, 4), n_batches=5, weight=rng.gamma(1.0, size=200),
        allocation=allocation,
    )  # fmt: skip
    shadow = Shadow(learner)
    laps = []
    fit_stochastic(learner, source, 3, 0.7, 10.0, laps.append)
    assert len(laps) == 4
    expected = shadow.totals()
    shadow.assert_follows(learner.totals, expected)
    assert_allclose(learner.lower_bound, learner.model.elbo(expected), rtol=1e-10)
    # and that is the objective summed by hand
    (resp,) = [np.concatenate([shadow.resp[i] for i in sorted(shadow.resp)])]
    resp = resp[:, np.argsort(-(source.weight @ resp), kind="stable")]
    z = learner.model.likelihood.prepare(X)
    by_hand = mixtures.elbo(
        family.twin(learner.model.likelihood, learner.model.prior), allocation.twin(4), z, resp,
        source.weight,
    )  # fmt: skip
    assert_allclose(learner.lower_bound, by_hand, rtol=1e-10)


def test_estimator_reports_it(family):
    rng = np.random.default_rng(2)
    X, _ = family.rows(rng, 200)
    model = estimator(
        family,
        n_components=4,
        learning_method="stochastic",
        n_batches=4,
        max_iter=5,
        random_state=0,
    ).fit(X)
    totals, inside = totals_of(model)
    assert_allclose(totals.n.sum(), 200.0, rtol=1e-12)
    assert_allclose(model.lower_bound_, inside.elbo(totals), rtol=1e-12)
    assert model.n_components_ == 4
    assert_allclose(model.lower_bounds_[-1], model.lower_bound_, rtol=1e-12)


@pytest.mark.parametrize("total", [None, 1000.0])
def test_totals_have_the_mass_of_the_population(family, total):
    """At each step, whatever the size of the batch; of what was seen so far, if that is not known."""
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 200)
    learner, source = learner_for(
        family, X, resp=random_resp(rng, 200, 3), weight=rng.gamma(1.0, size=200)
    )
    seen = 0.0
    for rows in np.split(np.arange(200), [20, 110, 120]):
        stochastic_step(learner, source.rows(rows), total, 0.7, 1.0)
        seen += source.weight[rows].sum()
        assert_allclose(learner.totals.n.sum(), seen if total is None else total, rtol=1e-10)
        assert np.all(learner.totals.entropy >= 0)


def of_rows(rng, n):
    return rng.normal(size=(n, 2)) + 8.0 * rng.integers(0, 3, size=(n, 1)), np.ones(n)


def of_documents(rng, n):
    X = rng.multinomial(30, rng.dirichlet(np.ones(8), size=n))
    return X, X.sum(axis=1)


def of_sequences(rng, n):
    rows, _ = chain_harness.toy(rng, lengths=rng.integers(1, 12, size=n))
    return rows, np.array([len(x) for x in rows])


@pytest.mark.parametrize("begun_by", ["fit", "partial_fit"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "batch"),
    [(DPMixtureVB, of_rows), (HDPTopicVB, of_documents), (HDPHMMVB, of_sequences)],
)
def test_streams_that_change_their_method_keep_their_mass(kind, batch, weighted, begun_by):
    """What was remembered before stochastic steps, or was seen in them, counts on after them."""
    rng = np.random.default_rng(10)
    model, expected = kind(3, proposals=None, max_iter=3, random_state=0), 0.0
    methods = [*3 * ["memoized"], *3 * ["stochastic"], *2 * ["memoized"], *2 * ["stochastic"]]
    for i, (method, n) in enumerate(zip(methods, [20, 30, 5, 4, 25, 1, 8, 2, 12, 3], strict=True)):
        X, sizes = batch(rng, n)
        weight = rng.gamma(1.0, size=n) if weighted else np.ones(n)
        expected += (weight * sizes).sum()
        model.set_params(learning_method=method)
        learn = model.fit if i == 0 and begun_by == "fit" else model.partial_fit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learn(X, sample_weight=weight if weighted else None)
        totals, _ = totals_of(model)
        assert_allclose(totals.n.sum(), expected, rtol=1e-9)
        assert np.all(totals.entropy >= 0)


def test_a_step_after_memoized_batches_averages_with_them():
    """The statistics of all that was remembered are kept in part, and the batch stands for the rest."""
    rng = np.random.default_rng(11)
    old, new = of_rows(rng, 90)[0], of_rows(rng, 10)[0]
    model = DPMixtureVB(random_state=0, learning_offset=3.0, learning_decay=0.6)
    model.partial_fit(old[:50]).partial_fit(old[50:])
    before, inside = totals_of(model)
    features = features_of(inside.likelihood, inside.likelihood.prepare(new))
    resp, _ = mixtures.responsibilities(features @ model._learner_.coef.T)
    rate = 4.0**-0.6
    expected = (1 - rate) * 100 / 90 * before.s + rate * 100 / 10 * resp.T @ features
    model.set_params(learning_method="stochastic").partial_fit(new)
    after, _ = totals_of(model)
    order = after.positions(before.uids)
    assert_allclose(after.s[order], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_steps_average_what_batches_say(family):
    """(3.52): totals are a convex combination of the batch's, scaled up, and of those before.

    The statistics that the fit was started from, scaled to the population, are the first of these.
    """
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 120)
    learner, source = learner_for(family, X, resp=random_resp(rng, 120, 3), n_batches=4)
    features = features_of(learner.model.likelihood, learner.model.likelihood.prepare(X))
    decay, offset, total = 0.6, 2.0, 150.0
    expected = learner.totals.s * (total / learner.totals.n.sum())
    for step, rows in enumerate(np.split(np.arange(120), 4), start=1):
        resp, _ = mixtures.responsibilities(features[rows] @ learner.coef.T)
        of_batch = total / len(rows) * resp.T @ features[rows]
        rate = (offset + step) ** -decay
        expected = (1 - rate) * expected + rate * of_batch
        stochastic_step(learner, source.rows(rows), total, decay, offset)
        size = np.abs(expected).max()
        assert_allclose(learner.totals.s, expected, rtol=1e-9, atol=1e-9 * size)


def test_given_responsibilities_are_the_start(family):
    """Averages start from their statistics on all the data in `fit`, on the first batch in a stream."""
    rng = np.random.default_rng(5)
    X, _ = family.rows(rng, 120)
    resp = random_resp(rng, 120, 3)
    learner, source = learner_for(family, X, resp=resp)
    started = learner.totals
    for batches in (
        [source.rows(slice(None))],
        [source.rows(slice(0, 50)), source.rows(slice(50, 120))],
    ):
        edges = np.cumsum([0] + [batch.n_entries for batch in batches])
        batches = [
            batch._replace(resp=resp[a:b])
            for batch, a, b in zip(batches, edges[:-1], edges[1:], strict=True)
        ]
        start_from_responsibilities(learner, batches)
        size = np.abs(started.s).max()
        assert_allclose(learner.totals.s, started.s, rtol=1e-9, atol=1e-9 * size)
        assert_allclose(learner.totals.entropy, mixtures.entropies(resp, np.ones(120)), rtol=1e-9)
    given = ArraySource(X, None, 4, resp)
    assert_array_equal(given.rows(np.array([3, 7])).resp, resp[[3, 7]])
    assert all(batch.resp is not None for batch in given.shuffled(np.random.RandomState(0)))


# Every start below is the truth, and each batch lacks most components.
N_TRUE = 20


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(6)
    centers = 8.0 * rng.normal(size=(N_TRUE, 4))
    labels = rng.permutation(np.repeat(np.arange(N_TRUE), 60))
    return centers[labels] + rng.normal(size=(len(labels), 4)), labels, centers


@pytest.mark.parametrize("start", ["means_init", "responsibilities"])
@pytest.mark.parametrize("batch_size", [10, 20, 100])
def test_clusters_of_the_start_are_kept(clusters, start, batch_size):
    X, labels, centers = clusters
    given = (
        {"means_init": centers}
        if start == "means_init"
        else {"init_params": np.eye(N_TRUE)[labels]}
    )
    model = DPMixtureVB(
        N_TRUE, proposals=None, learning_method="stochastic", batch_size=batch_size, max_iter=2,
        random_state=0, **given,
    ).fit(X)  # fmt: skip
    assert adjusted_rand_score(labels, model.predict(X)) > 0.99


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_clusters_of_the_start_are_kept_in_a_stream(clusters, covariance_type):
    """The first batch has rows of a few clusters only; the others start from their means alone."""
    X, labels, centers = clusters
    model = DPMixtureVB(
        N_TRUE, observation=GaussianObservation(covariance_type=covariance_type), proposals=None,
        learning_method="stochastic", means_init=centers, random_state=0,
    )  # fmt: skip
    for first in range(0, len(X), 20):
        model.partial_fit(X[first : first + 20])
    assert adjusted_rand_score(labels, model.predict(X)) > 0.99


@pytest.mark.parametrize("n_batches", [10, 40])
def test_states_of_the_start_are_kept(n_batches):
    rng = np.random.default_rng(7)
    rows, states = chain_harness.toy(rng, n_states=6, lengths=[50] * 40, spread=5.0, n_features=3)
    resp = np.eye(6)[np.concatenate(states)]
    model = HDPHMMVB(
        6, proposals=None, learning_method="stochastic", n_batches=n_batches, max_iter=2,
        init_params=resp, random_state=0,
    ).fit(rows)  # fmt: skip
    found = np.concatenate(model.predict(rows))
    assert adjusted_rand_score(np.concatenate(states), found) > 0.97


@pytest.mark.parametrize("allocation", ["hdp", "dirichlet"])
def test_topics_of_the_start_are_kept(allocation):
    """A batch of five documents lacks topics, which neither their words nor their shares forget."""
    rng = np.random.default_rng(8)
    topics = np.kron(np.eye(10), np.full(5, 0.2))
    shares = rng.dirichlet(np.full(10, 0.1), size=200)
    X = np.array([rng.multinomial(60, share @ topics) for share in shares])
    model = HDPTopicVB(
        10, proposals=None, allocation=allocation, learning_method="stochastic", batch_size=5,
        max_iter=2, init_params=topics + 1e-3, random_state=0,
    ).fit(X)  # fmt: skip
    distance = np.abs(model.means_[:, np.newaxis] - topics).sum(axis=2) / 2
    assert distance.min(axis=0).max() < 0.1


def test_shares_of_topics_are_averaged_whatever_their_order():
    """A step at a small rate leaves each topic its share, also if topics change places."""
    rng = np.random.default_rng(9)
    topics = np.kron(np.eye(5), np.full(4, 0.25))
    X = rng.multinomial(40, rng.dirichlet([3.0, 2.0, 1.0, 0.2, 0.1], size=100) @ topics)
    fitted = HDPTopicVB(5, proposals=None, init_params=topics, max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = fitted.fit(X)._learner_
    model = learner.model
    before = dict(zip(model.uids, model.allocation.weights(model.sticks), strict=True))
    for order in (np.arange(5), np.array([3, 0, 4, 2, 1])):
        totals = learner.totals.take(order)
        after = model.blended(totals, 1e-9)
        expected = [before[uid] for uid in totals.uids.tolist()]
        assert_allclose(after.allocation.weights(after.sticks), expected, rtol=1e-5)


@pytest.mark.parametrize("Estimator", [DPMixtureVB, HDPTopicVB, HDPHMMVB])
def test_one_component_that_stays_alone_is_warned_of(Estimator):
    """No proposal is made, so that a start from one is of no use, unless there were to be no proposals."""
    X = np.random.default_rng(0).poisson(3.0, size=(40, 3))
    settings = {"learning_method": "stochastic", "max_iter": 2, "n_batches": 1, "random_state": 0}
    for learn in ("fit", "partial_fit"):
        with pytest.warns(UserWarning, match="Give n_components"):
            getattr(Estimator(**settings), learn)(X)
        getattr(Estimator(proposals=None, **settings), learn)(X)
        getattr(Estimator(n_components=2, **settings), learn)(X)
