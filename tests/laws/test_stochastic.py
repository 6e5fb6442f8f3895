"""Stochastic inference: totals of the right mass on the way, and exact ones at the end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.core.stochastic import fit_stochastic, stochastic_step
from tests.reference import mixtures

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


def test_steps_average_what_batches_say(family):
    """(3.52): totals are a convex combination of the batch's, scaled up, and of those before."""
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 120)
    learner, source = learner_for(family, X, resp=random_resp(rng, 120, 3), n_batches=4)
    features = features_of(learner.model.likelihood, learner.model.likelihood.prepare(X))
    decay, offset, total = 0.6, 2.0, 120.0
    expected = None
    for step, rows in enumerate(np.split(np.arange(120), 4), start=1):
        resp, _ = mixtures.responsibilities(features[rows] @ learner.coef.T)
        of_batch = total / len(rows) * resp.T @ features[rows]
        rate = (offset + step) ** -decay
        expected = of_batch if expected is None else (1 - rate) * expected + rate * of_batch
        stochastic_step(learner, source.rows(rows), total, decay, offset)
        size = np.abs(expected).max()
        assert_allclose(learner.totals.s, expected, rtol=1e-9, atol=1e-9 * size)
