"""Counts that vary more than Poisson counts. What holds for all families is in `tests/laws`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import gammaln

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    NegativeBinomialObservation,
    PoissonObservation,
    load,
)
from sklearn_bnp.likelihood import Moments
from sklearn_bnp.likelihood.counts import DistinctEntries
from sklearn_bnp.likelihood.size_sums import LEAST_SIZE, MOST_SIZE, LearnedSizes
from tests.estimators import FEW_PROPOSALS

SIZES = np.array([2.0, 8.0, 0.7, 30.0])
MEANS = np.array([[3.0, 40.0, 5.0, 1.0], [30.0, 4.0, 5.0, 9.0], [3.0, 4.0, 60.0, 30.0]])


def clumps(n=600, seed=0, means=MEANS, sizes=SIZES):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(means), size=n)
    noise = rng.gamma(sizes, 1.0 / sizes, size=(n, len(sizes)))
    return rng.poisson(means[labels] * noise).astype(float), labels


def likelihood_of(X, **parameters):
    moments = Moments(len(X), np.ones(X.shape[1]), X.mean(axis=0), X.var(axis=0), precision=1e-16)
    return NegativeBinomialObservation(**parameters).bind(moments)


def mixture(observation="negative_binomial", **parameters):
    return DPMixtureVB(observation=observation, random_state=0, **parameters)


# ---------------------------------------------------------------------- sums for sizes


def test_sums_give_the_term_of_any_size():
    """To the errors that the module and the page on formulas state."""
    x = np.concatenate([np.arange(113), np.geomspace(113, 1e6, 60).round()])
    r = np.geomspace(LEAST_SIZE, MOST_SIZE, 80)
    sizes = LearnedSizes()
    found = sizes.factors(r) @ sizes.of_counts(None, x).T
    # more exactly than gammaln(r + x) - gammaln(r), which cancels
    steps = np.concatenate([np.zeros((80, 1)), np.log(r[:, np.newaxis] + np.arange(112))], axis=1)
    few = np.abs(found[:, :113] - np.cumsum(steps, axis=1))
    assert few[:, :33].max() < 1e-11  # of sums of 200 nats
    assert few.max() < 2e-10
    exact = gammaln(r[:, np.newaxis] + x) - gammaln(r[:, np.newaxis])
    assert np.abs(found - exact).max() < 5e-8


def test_slopes_are_derivatives():
    sizes, rng = LearnedSizes(), np.random.default_rng(0)
    r, h = np.geomspace(0.01, 9e3, 30), 1e-4
    sums = np.array([sizes.of_counts(None, rng.poisson(m, 50) * 1.0).sum(axis=0) for m in 2.0 * r])

    def values(r):
        return np.einsum("dj,dj->d", sums, sizes.factors(r))

    def differences(function):
        return (function(r * (1.0 + h)) - function(r * (1.0 - h))) / (2.0 * h * r)

    first, second = sizes.slopes(sums, r)
    assert_allclose(first, differences(values), rtol=1e-6)
    assert_allclose(second, differences(lambda r: sizes.slopes(sums, r)[0]), rtol=1e-5)


@pytest.mark.parametrize("prior", [None, (0.5, 2.0)])
def test_sizes_are_those_of_the_greatest_evidence(prior):
    X, labels = clumps()
    likelihood = likelihood_of(X, prior=prior)
    s = np.array([likelihood.features(X[labels == k]).sum(axis=0) for k in range(3)])
    found = likelihood.update_prior(likelihood.prior, s, 20)
    for d in range(4):

        def negated(point, d=d):
            r, b = found.r.copy(), found.b.copy()
            r[d] = np.exp(point[0])
            if prior is None:
                b[d] = np.exp(point[1])
            return -likelihood.evidence(found._replace(r=r, b=b), s).sum()

        starts = [(0.0, 0.0), (3.0, 1.0)]
        best = min(minimize(negated, start, method="Nelder-Mead").fun for start in starts)
        assert likelihood.evidence(found, s).sum() >= -best - 1e-6


def test_columns_without_counts_keep_their_sizes():
    X, _ = clumps(60)
    X[:, 1] = 0.0
    likelihood = likelihood_of(X)
    s = likelihood.features(X).sum(axis=0)[np.newaxis]
    found = likelihood.update_prior(likelihood.prior, s, 10)
    assert found.r[1] == likelihood.prior.r[1] and found.b[1] == likelihood.prior.b[1]


# ---------------------------------------------------------------------- what is found


@pytest.mark.extended
def test_clusters_are_found_from_one_component():
    """As from the true clusters, though all rows in one component call for much smaller sizes."""
    X, labels = clumps(300)
    model = mixture().fit(X)
    other = mixture(init_params=np.eye(3)[labels]).fit(X)
    assert model.n_components_ == other.n_components_ == 3
    assert model.lower_bound_ >= other.lower_bound_ - 0.1
    assert_allclose(np.log(model.sizes_), np.log(np.tile(SIZES, (3, 1))), atol=0.5)
    one = mixture(proposals=None).fit(X)
    assert np.all(one.sizes_[0] < 0.6 * model.sizes_[0])


def test_a_cluster_of_poisson_counts_is_one_component():
    X = np.random.default_rng(0).poisson([2.0, 20.0, 60.0], size=(400, 3)).astype(float)
    model = mixture().fit(X)
    assert model.n_components_ == 1
    assert model.sizes_.min() > 50.0


def test_without_a_limit_of_the_size_it_is_the_poisson_family():
    X, labels = clumps(90)
    given = {"init_params": np.eye(3)[labels], "max_iter": 0, "proposals": None}
    r = 1e9
    poisson = mixture(PoissonObservation((1.0, 0.5)), **given).fit(X)
    model = mixture(NegativeBinomialObservation(r, prior=(1.0, 0.5 * r)), **given).fit(X)
    # terms are of the order of x^2 / r, beside rounding of sums of a thousand times the bound
    assert model.lower_bound_ == pytest.approx(poisson.lower_bound_, rel=1e-6)
    assert_allclose(model.means_, poisson.means_, rtol=1e-6)
    assert_allclose(model.score_samples(X), poisson.score_samples(X), rtol=1e-6)


def test_learned_sizes_have_the_bound_that_they_have_if_given():
    X, labels = clumps(200)
    given = {"init_params": np.eye(3)[labels], "max_iter": 0, "proposals": None}
    learned = mixture(**given).fit(X)
    prior = learned._learner_.model.prior
    observation = NegativeBinomialObservation(prior.r, prior=(prior.a, prior.b))
    model = mixture(observation, **given).fit(X)
    assert model.lower_bound_ == pytest.approx(learned.lower_bound_, rel=1e-9)
    assert_allclose(model.score_samples(X), learned.score_samples(X), rtol=1e-8)


def test_scores_are_probabilities_of_counts():
    """Those of all counts of a column add up to 1."""
    X, _ = clumps(200, means=MEANS[:, :1], sizes=SIZES[:1])
    model = mixture(max_iter=5, proposals=None).fit(X)
    assert np.exp(model.score_samples(np.arange(3000.0)[:, np.newaxis])).sum() == pytest.approx(
        1.0, abs=1e-5
    )


def test_drawn_rows_have_the_variance():
    X, labels = clumps()
    model = mixture(init_params=np.eye(3)[labels], proposals=None).fit(X)
    rows, labels = model.sample(20_000)
    for k in range(3):
        own, mean, r = rows[labels == k], model.means_[k], model.sizes_[k]
        assert_allclose(own.mean(axis=0), mean, rtol=0.1)
        assert_allclose(own.var(axis=0), mean + mean**2 / r, rtol=0.25)


# ---------------------------------------------------------------------- other models, and data in parts


def test_batches_that_are_forgotten_leave_the_sizes_of_the_others():
    X, labels = clumps(300)
    settings = {"init_params": np.eye(3)[labels[:100]], "proposals": None}
    one, two = (mixture(**settings).partial_fit(X[:100], batch_id=0) for _ in range(2))
    one.partial_fit(X[100:200], batch_id=1)
    for _ in range(5):
        for model in (one, two):
            model.partial_fit(X[:100], batch_id=0)
    one.forget(1)
    for _ in range(30):
        for model in (one, two):
            model.partial_fit(X[:100], batch_id=0)
    assert_allclose(one.sizes_[0], two.sizes_[0], rtol=1e-5)


@pytest.mark.extended
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_models_of_groups_and_sequences(form):
    X, labels = clumps(240)
    order = np.argsort(labels, kind="stable")
    X, groups = form(X[order]), np.repeat(np.arange(12), 20)
    settings = {"observation": "negative_binomial", "random_state": 0}
    states = HDPHMMVB(**settings, max_iter=10, proposals=FEW_PROPOSALS).fit(X, groups=groups)
    topics = HDPTopicVB(**settings, max_iter=10).fit(X, groups=groups)
    assert states.n_components_ == topics.n_components_ == 3
    X = X.toarray() if sparse.issparse(X) else X
    epochs = MemoryBoundedTopicVB(observation="negative_binomial").fit(X, groups=groups)
    assert np.isfinite(epochs.lower_bound_)


def test_a_block_of_columns(tmp_path):
    """Beside another block, with a missing entry; saved and loaded."""
    X, labels = clumps(300)
    X = np.column_stack([X, np.random.default_rng(1).normal(3.0 * labels)])
    X[0, 1] = np.nan
    columns = ColumnObservation(
        [("counts", NegativeBinomialObservation(), slice(0, 4)), ("level", "gaussian", [4])]
    )
    model = mixture(columns, init_params=np.eye(3)[labels], proposals=None).fit(X)
    sizes = model.blocks_["counts"]["sizes_"]
    assert sizes.shape == (3, 4)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert_allclose(loaded.blocks_["counts"]["sizes_"], sizes)
    assert_allclose(loaded.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("value", [-2.0, 0.5])
def test_rows_that_are_no_counts_are_refused(value):
    X, _ = clumps(30)
    X[3, 2] = value
    with pytest.raises(ValueError, match=f"X holds {value:g}, but observation='negative_binomial'"):
        mixture().fit(X)
    with pytest.raises(ValueError, match="means_init holds -1, but must hold means of counts"):
        mixture(n_components=2, means_init=-np.ones((2, 4))).fit(np.abs(X).round())


def test_evidence_is_that_of_the_distribution():
    """Of one row, with p integrated out numerically."""
    likelihood = likelihood_of(np.ones((5, 1)), size=2.5, prior=(1.5, 3.0))
    s = likelihood.features(np.array([[7.0]]))
    p = (np.arange(200_000) + 0.5) / 200_000
    mean = np.mean(stats.nbinom(2.5, 1.0 - p).pmf(7) * stats.beta(1.5, 3.0).pdf(p))
    assert likelihood.evidence(likelihood.prior, s)[0] - gammaln(8.0) == pytest.approx(
        np.log(mean), abs=1e-8
    )


def test_distinct_entries_with_and_without_sorting():
    """Small counts are told apart without sorting; the pairs are the same, in the same order."""
    X = np.random.default_rng(0).poisson(0.7, size=(50, 4)).astype(float)
    few, many = DistinctEntries.of(X), DistinctEntries.of(np.where(X.max() == X, 1e9, X))
    assert_array_equal(few.column, many.column)
    assert_array_equal(few.values, np.where(many.values == 1e9, X.max(), many.values))
    assert_array_equal(few.occurrences.toarray(), many.occurrences.toarray())
