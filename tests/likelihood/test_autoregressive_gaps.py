"""Autoregression in sequences with gaps: what lacks an entry is left to the chain."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation
from sklearn_bnp.hmm.weights import DirichletChains
from sklearn_bnp.likelihood.autoregressive_gaps import blanked
from sklearn_bnp.likelihood.lags import lagged
from tests.laws import chain_harness as h
from tests.laws.harness import quiet_fit
from tests.laws.test_chains import log_evidence
from tests.laws.test_monotone import assert_rises

ANGLES = np.array([0.3, 2.0, 1.1])


def rotations(seed=0, lengths=(150, 200, 170), stay=0.95):
    """Sequences of a point that goes round at three speeds, and the speed at each time."""
    rng, rows, states = np.random.default_rng(seed), [], []
    for length in lengths:
        x, k = 1.0 + 0.0j, rng.integers(3)
        z, path = [], []
        for _ in range(length):
            k = k if rng.random() < stay else rng.integers(3)
            x = 0.99 * np.exp(1j * ANGLES[k]) * x + 0.1 * complex(*rng.normal(size=2))
            z.append([x.real, x.imag])
            path.append(k)
        rows.append(np.array(z))
        states.append(np.array(path))
    return rows, states


def with_gaps(rows, share=0.05, seed=0):
    """Copies in which a share of the rows is missing, and here and there one entry."""
    rng, out = np.random.default_rng(seed), []
    for x in rows:
        y = x.copy()
        y[rng.random(len(y)) < share] = np.nan
        y[rng.random(y.shape) < 0.2 * share] = np.nan
        out.append(y)
    return out


@pytest.fixture(scope="module")
def gapped():
    rows, states = rotations()
    return with_gaps(rows), states


@pytest.mark.parametrize("order", [1, 2])
def test_what_is_left_to_the_chain(gapped, order):
    """Evidence, densities and log weights are of rows that show all of themselves and of their past."""
    y = gapped[0][0]
    rows, _ = lagged(y, np.array([0, len(y)]), order)
    whole = ~np.isnan(rows).any(axis=1)
    shown = np.convolve(np.isnan(y).any(axis=1), np.ones(order + 1))[order : len(y)] == 0
    np.testing.assert_array_equal(whole, shown)
    assert np.isnan(blanked(rows)[~whole]).all()
    complete = AutoregressiveObservation(order).bind(h.moments_of(rows[whole]))
    incomplete, prior = complete.with_missing(), complete.prior
    z, own = incomplete.prepare(rows), complete.prepare(rows[whole])
    shares = np.random.default_rng(1).dirichlet(np.ones(3), size=len(z))
    s, t = (np.empty((3, q.n_statistics)) for q in (incomplete, complete))
    incomplete.summarise(z, shares, s)
    complete.summarise(own, shares[whole], t)
    assert_allclose(s[:, :-1], t, rtol=1e-12, atol=1e-12)
    assert_allclose(s[:, -1], shares.sum(axis=0), rtol=1e-12)
    assert_allclose(s, shares.T @ incomplete.features(z), rtol=1e-9, atol=1e-9)
    assert_allclose(incomplete.evidence(prior, s), complete.evidence(prior, t), rtol=1e-12)
    coef = incomplete.coefficients(prior, s)
    coef[:, -1] += [0.5, -1.0, 0.25]
    assert_allclose(
        incomplete.log_table(coef, z), incomplete.features(z) @ coef.T, rtol=1e-9, atol=1e-9
    )
    density = incomplete.log_predictive(prior, s, z)
    assert_allclose(density[whole], complete.log_predictive(prior, t, own), rtol=1e-12)
    assert np.all(density[~whole] == 0.0)
    assert np.isfinite(incomplete.seeding_points(prior, s[0], z)).all()


@pytest.mark.parametrize("seed", range(3))
def test_bound_is_below_the_evidence_summed_over_all_paths(seed):
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n, 1)) for n in (6, 4)]
    rows[0][2] = np.nan
    allocation = DirichletChains(1.5, 0.7, 2.0)
    learner, batch = h.learner_of(rows, allocation, observation=AutoregressiveObservation())
    likelihood, prior = learner.model.likelihood, learner.model.prior
    s = likelihood.features(batch.prepared(likelihood.prepare)[0])
    assert np.sum(s[:, -2] == 0) == 2  # the gap, and the row after it
    learner.start(np.random.default_rng(seed).dirichlet([0.3, 0.3], len(s)).T @ s)
    learner.fit(h.source(batch, 1), 30, 0.0)
    exact = log_evidence(likelihood, prior, allocation, s, batch.edges, 2)
    assert exact - 12.0 < learner.lower_bound <= exact + 1e-9


@pytest.mark.parametrize("n_batches", [1, 3])
def test_states_are_found(gapped, n_batches):
    X, states = gapped
    model = HDPHMMVB(observation="autoregressive", n_batches=n_batches, random_state=0).fit(X)
    assert model.n_components_ == 3
    found, truth = np.concatenate(model.predict(X)), np.concatenate(states)
    assert adjusted_rand_score(truth, found) > 0.9
    assert_rises(model.lower_bounds_[1:])
    low = HDPHMMVB(
        observation="autoregressive", n_batches=n_batches, low_memory=True, random_state=0
    )
    assert_allclose(low.fit(X).lower_bound_, model.lower_bound_, rtol=1e-9)
    for rows, density in zip(X, model.score_samples(X), strict=True):
        late = np.isnan(lagged(rows, np.array([0, len(rows)]), 1)[0]).any(axis=1)
        assert np.isnan(density[1:][late]).all()
        assert np.isfinite(density[1:][~late]).all()
    each = np.concatenate(model.score_samples(X))
    assert_allclose(model.score(X), each[~np.isnan(each)].mean(), rtol=1e-12)
    assert_allclose(model._score_sums(X)[0] / model._score_sums(X)[1], model.score(X), rtol=1e-12)
    with pytest.raises(ValueError, match=r"X has no row to score.*Fill values in"):
        model.score(
            np.where(np.arange(20) % 2, np.nan, 1.0)[:, np.newaxis] + np.zeros(X[0].shape[1])
        )


def test_complete_rows_are_as_ever():
    """A model that knows gaps says of complete sequences what the other one says, and learns from both."""
    rows, states = rotations()
    model = HDPHMMVB(observation="autoregressive", random_state=0).fit(rows[:2])
    n_components = model.n_components_
    before = model.score(rows[2])
    model.partial_fit(with_gaps(rows[2:]))
    assert model.n_components_ == n_components
    assert model.score(rows[2]) > before - 0.05
    # a sequence of nothing else, with no weight to speak of: it counts as a start and as transitions
    gaps, weight = [*rows, np.full((4, 2), np.nan)], [1.0, 1.0, 1.0, 1e-9]
    start = np.vstack([0.7 * np.eye(3)[np.concatenate(states)] + 0.1, np.full((4, 3), 1 / 3)])
    n_rows = sum(map(len, rows))
    a, b = (
        quiet_fit(
            HDPHMMVB(
                observation="autoregressive", proposals=None, init_params=resp, random_state=0
            ),
            x, sample_weight=w,
        )
        for x, resp, w in ((rows, start[:n_rows], None), (gaps, start, weight))
    )  # fmt: skip
    for own, other in zip(a.score_samples(rows), b.score_samples(rows), strict=True):
        assert_allclose(own, other, atol=1e-8)


def test_tag_and_errors():
    assert get_tags(HDPHMMVB(observation="autoregressive")).input_tags.allow_nan
    X = np.full((20, 2), np.nan)
    X[::2] = 1.0  # no two rows one after the other
    with pytest.raises(ValueError, match="has no 2 successive rows without NaN"):
        HDPHMMVB(observation="autoregressive").fit(X)


@pytest.mark.parametrize("name", ["autoregressive", "correlated_gaussian"])
def test_few_rows_that_can_be_modelled(name):
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[::3, 0] = np.nan
    model = HDPHMMVB(observation=name, proposals=None, max_iter=5, random_state=0)
    with pytest.warns(UserWarning, match=r"models 20 of 59 rows.*Fill values in.*'gaussian'"):
        model.fit(X)


@pytest.mark.parametrize("name", ["autoregressive", "correlated_gaussian"])
def test_weights_of_sequences_with_gaps_at_a_warm_start(name):
    rows, _ = rotations()
    rows = [r[:40].copy() for r in rows[:3]]
    rows[0][5, 0] = np.nan
    model = HDPHMMVB(observation=name, warm_start=True, proposals=None, max_iter=3, random_state=0)
    weight = [1.0, 2.0, 1.0]
    first = quiet_fit(model, rows, sample_weight=weight).lower_bound_
    assert quiet_fit(model, rows, sample_weight=weight).lower_bound_ >= first - 1e-6
