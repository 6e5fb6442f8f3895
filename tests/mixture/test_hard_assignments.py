"""Searches for components where each row is in one of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.splits.creation import create
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture
from tests.laws.families import FAMILIES
from tests.laws.harness import estimator, quiet_fit

OBSERVATION = GaussianObservation("diag", zero_mean=True)


def scales(n_rows=240, seed=0):
    """Rows around zero in four columns, in three clusters that differ in the columns' scales."""
    rng = np.random.default_rng(seed)
    each = np.exp(rng.normal(size=(3, 4)))
    return rng.normal(size=(n_rows, 4)) * each[np.arange(n_rows) % 3]


@pytest.mark.extended
@pytest.mark.parametrize(
    "name, seed",
    [("full-zero-mean", 5), ("diag-zero-mean-missing", 4), ("shared-variance-rounded", 4)],
)
def test_one_start_is_as_good_as_several(name, seed):
    """Clusters that overlap much: others pay if rows are shared than if each is in one component."""
    family = next(family for family in FAMILIES if family.name == name)
    X, _ = family.rows(np.random.default_rng(seed), 240, spread=2.0)

    def bound(n_components):
        model = estimator(family, n_components=n_components, n_batches=3, n_nonzero_resp=1)
        return quiet_fit(model.set_params(random_state=0), X).lower_bound_

    assert bound(1) > max(bound(3), bound(5)) - 2.0


def test_a_gain_is_that_of_hard_assignments():
    """The gain that a search promises is recomputed from assignments of rows."""
    X = scales(600)
    learner = DPMixtureVB(observation=OBSERVATION, proposals=None).fit(X)._learner_
    model, totals = learner.model, learner.totals
    sample = Sample(model.likelihood.prepare(X), np.ones(len(X)), None)
    rng = np.random.RandomState(0)
    found = create(model, sample, totals.s[0], totals.s[:0], 10, 0, rng, n_nonzero=1)
    resp = model.likelihood.local_step(found.coef, sample.z, None, None, None, None, n_nonzero=1)
    assert np.all(np.count_nonzero(resp, axis=1) == 1)
    s = np.zeros_like(found.s)
    model.likelihood.summarise(sample.z, resp, s)
    single, allocation = totals.s[:1], model.allocation.elbo
    gain = model.likelihood.evidence(model.prior, s).sum() + allocation(s[:, -1])
    gain -= model.likelihood.evidence(model.prior, single)[0] + allocation(single[:, -1])
    assert len(s) > 1 and found.gain > 0
    # the assignments are those of one step after the search's last
    assert_allclose(gain, found.gain, atol=1.0)


@pytest.mark.parametrize("n_nonzero, limit", [(None, None), (1, 1), (2, None), (8, None)])
def test_searches_keep_to_single_components_alone(n_nonzero, limit):
    model = DPMixtureVB(proposals=None).fit(scales())._learner_.model
    small = RestrictedMixture(model, None, np.empty((0, 9)), False, n_nonzero)
    assert small.n_nonzero == limit
    assert small.on(None, free=True).n_nonzero is None
    assert small.on(None, free=False).n_nonzero == limit
