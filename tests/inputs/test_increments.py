"""Noise within states, told by increments of sequences: what was drawn is found, in any units."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, ColumnObservation, DPMixtureVB, GaussianObservation
from sklearn_bnp.inputs.increments import Increments
from tests.benchmarks.chains import sticky_path

N_STATES, N_FEATURES = 5, 3


def sequences(seed, *, stay=0.9, memory=0.0, n=12, length=300, spread=8.0):
    """Rows (n * length, D) about levels of states, where sequences begin, and the noise's variances."""
    rng = np.random.RandomState(seed)
    levels = spread * rng.normal(size=(N_STATES, N_FEATURES))
    scale = rng.uniform(0.5, 2.0, N_FEATURES)
    rows = []
    for _ in range(n):
        noise = rng.normal(size=(length, N_FEATURES))
        for t in range(1, length):
            noise[t] = memory * noise[t - 1] + np.sqrt(1 - memory**2) * noise[t]
        rows.append(levels[sticky_path(rng, N_STATES, length, stay)] + scale * noise)
    return np.concatenate(rows), length * np.arange(n + 1), scale**2


def noise_of(x, indptr, weight=None):
    magnitude = np.nanmax(np.abs(x), axis=0)
    found = Increments.of(x, indptr, weight, magnitude).noise(np.nanvar(x / magnitude, axis=0))
    return found.variance * magnitude**2, found.memory


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("stay", [0.7, 0.9, 0.99, 1.0])
def test_noise_is_found(stay, memory):
    """Four thousand pairs tell a variance to some 10 %; changes between near states add to the memory."""
    for seed in range(3):
        x, indptr, variance = sequences(seed, stay=stay, memory=memory)
        found, phi = noise_of(x, indptr)
        assert abs(phi - memory) < (0.1 if stay > 0.8 else 0.25)
        np.testing.assert_allclose(found * (1 - phi), variance * (1 - memory), rtol=0.3)


def test_units_do_not_matter():
    x, indptr, _ = sequences(0)
    units = np.array([1e-6, 1.0, 1e9])
    one, other = noise_of(x, indptr), noise_of(x * units, indptr)
    np.testing.assert_allclose(other[0], one[0] * units**2, rtol=1e-9)
    assert other[1] == pytest.approx(one[1], abs=1e-9)


def test_a_sequence_of_weight_two_counts_twice():
    x, indptr, _ = sequences(0, n=4, length=100)
    weight = np.array([1.0, 2.0, 1.0, 3.0])
    copies = np.repeat(np.arange(4), weight.astype(int))
    repeated = np.concatenate([x[indptr[i] : indptr[i + 1]] for i in copies])
    one = noise_of(x, indptr, weight)
    other = noise_of(repeated, 100 * np.arange(len(copies) + 1))
    # magnitudes and variances only scale and cap what is found
    np.testing.assert_allclose(other[0], one[0], rtol=1e-9)
    assert other[1] == pytest.approx(one[1], abs=1e-9)


def test_missing_entries_are_left_out():
    x, indptr, variance = sequences(0, stay=0.95)
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    found, memory = noise_of(x, indptr)
    assert memory < 0.1
    np.testing.assert_allclose(found, variance, rtol=0.3)


def test_no_increment_crosses_sequences():
    x = np.arange(9.0)[:, np.newaxis] ** 2
    got = Increments.of(x, np.array([0, 4, 5, 9]), None, np.ones(1))
    np.testing.assert_array_equal(got.first.ravel(), np.diff(x.ravel())[[0, 1, 5, 6]])
    np.testing.assert_array_equal(got.second.ravel(), np.diff(x.ravel())[[1, 2, 6, 7]])


@pytest.mark.parametrize("x", [np.zeros((50, 2)), np.random.default_rng(0).normal(size=(8, 2))])
def test_too_little_to_go_by(x):
    """Constant rows and a handful of rows say nothing; the prior is then that of all rows."""
    assert Increments.of(x, np.array([0, len(x)]), None, np.ones(2)).noise(x.var(axis=0)) is None
    model = HDPHMMVB(random_state=0).fit([x, x])
    assert np.all(np.isfinite(model.covariances_))


def prior_of(model):
    return model._learner_.model.prior


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_prior_begins_with_the_noise_within_states(kind):
    """States of independent noise keep their variances; noise with a memory meets the wide prior.

    What is learned is no less, and no more than suits states of many rows.
    """
    for memory, wide in ((0.0, False), (0.8, True)):
        x, indptr, variance = sequences(1, memory=memory)
        if kind == "spherical":
            x, variance = x / np.sqrt(variance), np.ones(N_FEATURES)
        parts = np.split(x, indptr[1:-1])
        model = HDPHMMVB(
            observation=GaussianObservation(kind), proposals=("birth", "merge", "delete"),
            random_state=0,
        ).fit(parts)  # fmt: skip
        prior, likelihood = prior_of(model), model._learner_.model.likelihood
        first, learned = (
            np.diag(p.b) if kind == "full" else p.b for p in (likelihood.prior, prior)
        )
        expected = np.mean(first) / likelihood.shape.mean_factor(prior.nu)
        assert np.all(learned >= first)
        if wide:
            assert expected == pytest.approx(1.0)
            continue
        assert model.n_components_ == N_STATES
        scaled = np.mean(variance / likelihood.scaling.scale**2)
        assert expected == pytest.approx(scaled, rel=0.3)
        assert np.mean(learned) < 1.3 * prior.nu * scaled
        found = model.covariances_
        if kind == "full":
            found = np.diagonal(found, axis1=1, axis2=2)
        found = np.atleast_2d(found.T).T.mean(axis=0)
        np.testing.assert_allclose(found, variance[: len(found)], rtol=0.2)


@pytest.mark.extended
def test_blocks_of_columns_have_the_noise_of_their_own():
    x, indptr, _ = sequences(2)
    counts = np.random.default_rng(0).poisson(3.0, (len(x), 1))
    parts = np.split(np.column_stack([x, counts]), indptr[1:-1])
    blocks = [("level", "gaussian", [0, 1, 2]), ("counts", "poisson", [3])]
    mixed = HDPHMMVB(observation=ColumnObservation(blocks), random_state=0).fit(parts)
    alone = HDPHMMVB(random_state=0).fit([part[:, :3] for part in parts])
    one, other = mixed._learner_.model, alone._learner_.model
    first = one.likelihood.blocks[0].likelihood.prior
    np.testing.assert_allclose(first.b, other.likelihood.prior.b, rtol=1e-9)
    # what is learned is by the same states
    assert mixed.n_components_ == alone.n_components_
    np.testing.assert_allclose(one.prior[0].b, other.prior.b, rtol=0.01)


def test_rows_without_an_order_are_refused():
    observation = GaussianObservation(covariance_prior="increments")
    with pytest.raises(ValueError, match=r"covariance_prior='increments' is for sequences.*'data'"):
        DPMixtureVB(observation=observation).fit(np.random.default_rng(0).normal(size=(50, 2)))
