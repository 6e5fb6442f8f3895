"""Splits of all components at once: each delete against the slow way, limits, and what they are for."""

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, Oversplit
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.mixture import oversplit
from sklearn_bnp.mixture.restricted import RestrictedMixture
from tests.benchmarks.one_start_mixtures import gaussian

from .harness import learner_for, quiet_fit, random_resp

N_ROWS = 120


@pytest.fixture
def whole(leading_family):
    """All components of a family, on a sample of all rows, and their statistics."""
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, N_ROWS, spread=1.5)
    weight = rng.choice([0.5, 1.0, 3.0], size=N_ROWS)
    resp = random_resp(rng, N_ROWS, 4)
    learner, source = learner_for(leading_family, X, resp=resp, weight=weight)
    learner.run_lap(source)
    likelihood = learner.model.likelihood
    sample = Sample(likelihood.prepare(X), np.ones(N_ROWS), weight)
    return RestrictedMixture(
        learner.model, sample, learner.totals.s[:0], adapt=False
    ), learner.totals.s


def test_a_delete_is_a_local_step_of_the_others(whole, monkeypatch):
    monkeypatch.setattr(oversplit, "_LEAST_RESP", 0.0)
    small, s = whole
    deletes = oversplit._Deletes(small, s)
    now, z, mass, weight = deletes.state, *small.sample
    for j in range(len(s)):
        after, entropy = np.empty_like(s[1:]), np.empty(len(s) - 1)
        rest = np.delete(now.coef, j, axis=0)
        small.model.likelihood.local_step(rest, z, mass, weight, after, entropy)
        found, gain = deletes.without(j)
        np.testing.assert_allclose(found, after, rtol=1e-8, atol=1e-7)
        slow = small.objective(after, entropy) - now.objective
        assert gain == pytest.approx(slow, abs=1e-7 * abs(now.objective))


def test_deletes_raise_the_objective_or_keep_the_limit(whole):
    small, s = whole
    begin = oversplit._Deletes(small, s).state.objective
    free = oversplit._Deletes(small, s).made(10)
    assert oversplit._Deletes(small, free).state.objective >= begin - 1e-9 * abs(begin)
    assert len(oversplit._Deletes(small, s).made(2)) == 2


def test_a_search_keeps_all_rows(whole):
    small, s = whole
    found = oversplit.oversplit(small, s, 3, 10, np.random.RandomState(0))
    assert found[:, -1].sum() == pytest.approx(s[:, -1].sum())
    parts = oversplit._parts(small, s, 3, np.random.RandomState(0))
    assert 2 <= len(parts) <= 3 * len(s)
    assert parts[:, -1].sum() == pytest.approx(s[:, -1].sum())


def test_collapsed_steps_begin_with_the_statistics_of_their_responsibilities(whole, monkeypatch):
    """They take each row out of the component that holds it: it has to hold what they take."""
    small, s = whole
    collapse, seen = RestrictedMixture.collapse, []

    def checked(self, s, resp, n_steps):
        z, mass, weight = self.sample
        if not self.model.likelihood.imputes:  # which completes rows under other coefficients
            found, own = np.empty_like(s), mass if weight is None else mass * weight
            self.model.likelihood.summarise(z, resp * own[:, np.newaxis], found)
            np.testing.assert_allclose(found, s, rtol=1e-7, atol=1e-6)
        seen.append(len(s))
        return collapse(self, s, resp, n_steps)

    monkeypatch.setattr(RestrictedMixture, "collapse", checked)
    oversplit.oversplit(small, s, 3, 10, np.random.RandomState(0))
    assert seen or not small.model.likelihood.leaves_out


@pytest.mark.parametrize(("most_numbers", "n_seeds"), [(0, None), (3, 3), (10**9, 6)])
def test_its_cost_is_bounded(most_numbers, n_seeds, monkeypatch):
    """Parts are fewer where statistics are many, and nothing is tried with less than two."""
    seen, search = [], oversplit.oversplit

    def counted(small, s, n_seeds, n_most, rng):
        seen.append(n_seeds)
        return search(small, s, n_seeds, n_most, rng)

    data = gaussian(226)
    resp = np.eye(data.y.max() + 1)[data.y]
    numbers = resp.size * 6  # of a step of all components: two columns have six statistics
    monkeypatch.setattr(oversplit, "_MOST_NUMBERS", most_numbers * numbers)
    monkeypatch.setattr(oversplit, "oversplit", counted)
    model = DPMixtureVB(init_params=resp, proposals=(Oversplit(patience=2),), random_state=0)
    quiet_fit(model, data.X)
    assert set(seen) == ({n_seeds} if n_seeds else set())


@pytest.mark.parametrize("n_most", [8, 12])
def test_there_are_no_more_components_than_allowed(n_most):
    data = gaussian(244)
    model = DPMixtureVB(max_components=n_most, random_state=0)
    quiet_fit(model, data.X)
    assert max(lap.n_components for lap in model.history_) <= n_most


def test_clusters_that_are_spread_over_several_components_are_found():
    """27 clusters of 44 rows each in 8 columns, of which births and other last resorts leave some apart."""
    data = gaussian(249)
    truth = DPMixtureVB(init_params=np.eye(27)[data.y], random_state=0)
    best = quiet_fit(truth, data.X).lower_bound_
    gaps = []
    for seed in range(2):
        model = quiet_fit(DPMixtureVB(random_state=seed), data.X)
        gaps.append(model.lower_bound_ - best)
        for trial in (trial for lap in model.history_ for trial in lap.trials):
            if trial.kind == "oversplit":  # it was searched for in all rows, and nearly to its end
                assert trial.verdict == "accepted" and trial.gain > 0.5 * trial.estimate
    assert np.mean(gaps) > -15.0  # -32 without
