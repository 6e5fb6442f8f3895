"""Births find clusters of few rows, whatever the family, the precision, the weights and the batches."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import (
    BernoulliObservation,
    Birth,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    PoissonObservation,
    StateBirth,
)
from sklearn_bnp.engine import scheduler
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.likelihood.gaussian import GaussianLikelihood
from sklearn_bnp.mixture import birth
from sklearn_bnp.splits import creation, more_rows
from sklearn_bnp.splits.creation import create
from sklearn_bnp.splits.more_rows import most_rows_of_first
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture
from sklearn_bnp.splits.ways import Search

# Rows of a cluster, clusters and columns. A full covariance has 136 parameters for a cluster of 450 numbers.
ROWS, CLUSTERS, COLUMNS = 30, 10, 15


def few_rows(seed, spread=2.0):
    """Clusters of few rows in many columns, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLUSTERS), ROWS)
    centers = spread * rng.standard_normal((CLUSTERS, COLUMNS))
    return centers[labels] + rng.standard_normal((len(labels), COLUMNS)), labels


def assert_as_good_as_the_truth(X, labels, *, short=5.0, **parameters):
    """A fit from one component ends at most ``short`` nats below one from the true labels."""
    weight = parameters.pop("sample_weight", None)
    own = DPMixtureVB(random_state=0, **parameters).fit(X, sample_weight=weight)
    start = np.eye(labels.max() + 1)[labels]
    truth = DPMixtureVB(random_state=0, init_params=start, **parameters).fit(
        X, sample_weight=weight
    )
    assert own.lower_bound_ > truth.lower_bound_ - short
    return own


def holes(X, seed=1, share=0.1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *itertools.product(["full", "spherical"], [None, "batches"]),
        ("full", "float32"),
        pytest.param("spherical", "float32", marks=pytest.mark.slow),
        ("spherical", "holes"),
        ("spherical", "weights"),
        pytest.param("full", "holes", marks=pytest.mark.slow),
        # Rows of weight 1.5 pay for a tenth cluster, which searches do not look for: see the next test.
        pytest.param("full", "weights", marks=[pytest.mark.slow, pytest.mark.xfail(
            reason="searches count copies of continuous rows once", raises=AssertionError)]),
        *(pytest.param("diag", change, marks=pytest.mark.slow)
          for change in (None, "float32", "holes", "weights", "batches")),
    ],
)  # fmt: skip
def test_few_rows_a_cluster(kind, change):
    X, labels = few_rows(0)
    given = {"observation": GaussianObservation(kind)}
    if change == "float32":
        X = X.astype(np.float32)
    elif change == "holes":
        X = holes(X)
    elif change == "weights":
        given["sample_weight"] = np.full(len(X), 1.5)
    elif change == "batches":
        given["n_batches"] = 7
    found = assert_as_good_as_the_truth(X, labels, **given)
    if kind != "full":  # with full covariances, so few rows do not pay for all clusters
        assert adjusted_rand_score(labels, found.predict(X)) > 0.95


@pytest.mark.extended
@pytest.mark.parametrize("weight", [1.5, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_weights_show_what_rows_show(seed, weight):
    """Rows with weights have the clusters of the rows themselves, as copies have the same noise.

    See doc/units.rst. With full covariances so few rows do not pay for all clusters.
    """
    X, _ = few_rows(seed)
    weights = np.full(len(X), weight)
    model = DPMixtureVB(random_state=0)
    alone = model.fit(X).predict_proba(X)
    found = clone(model).fit(X, sample_weight=weights)
    start = clone(model).set_params(init_params=alone).fit(X, sample_weight=weights)
    assert found.lower_bound_ > start.lower_bound_ - 5.0
    assert alone.shape[1] <= found.n_components_ <= CLUSTERS


def codes(seed):
    """Columns of 0, 1 and 2, whose frequencies differ between eight clusters of few rows."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(8), 25)
    odds = rng.dirichlet(np.full(3, 0.4), size=(8, 20))
    draws = rng.random((len(labels), 20, 1)) > np.cumsum(odds, axis=2)[labels][:, :, :2]
    return draws.sum(axis=2).astype(float), labels


@pytest.mark.extended
@pytest.mark.parametrize("missing", [False, True], ids=["", "holes"])
@pytest.mark.parametrize(
    "observation",
    [
        CategoricalObservation(n_categories=3),
        pytest.param(PoissonObservation(), marks=pytest.mark.slow),
        "multinomial",
        pytest.param(BernoulliObservation(), marks=pytest.mark.slow),
        ColumnObservation([("a", "categorical", slice(0, 10)), ("b", "poisson", slice(10, 20))]),
    ],
    ids=["categorical", "poisson", "multinomial", "bernoulli", "columns"],
)
def test_few_short_rows(observation, missing):
    X, labels = codes(2)
    if isinstance(observation, BernoulliObservation):
        X = np.minimum(X, 1.0)
    if missing and observation == "multinomial":
        pytest.skip("a row of counts of types is whole")
    assert_as_good_as_the_truth(holes(X) if missing else X, labels, observation=observation)


@pytest.mark.extended
def test_streams_of_few_rows():
    """Batches that come one at a time, each with a few rows of all clusters."""
    X, labels = few_rows(3)
    order = np.random.default_rng(0).permutation(len(X))
    model = DPMixtureVB(observation=GaussianObservation("diag"), random_state=0)
    for _ in range(3):
        for part in np.array_split(order, 3):
            model.partial_fit(X[part])
    assert adjusted_rand_score(labels, model.predict(X)) > 0.9


@pytest.fixture
def restricted():
    """`RestrictedMixture` on all rows of a fitted mixture, and responsibilities of too many clusters."""
    X, labels = few_rows(4)
    model = DPMixtureVB(random_state=0, proposals=None).fit(X)._learner_.model
    rng = np.random.default_rng(5)
    z, mass = model.likelihood.prepare(X), rng.uniform(0.5, 1.0, len(X))
    small = RestrictedMixture(model, Sample(z, mass, None), np.empty((0, 136)), True)
    s = np.empty((2 * CLUSTERS, model.likelihood.n_statistics))
    resp = np.eye(2 * CLUSTERS)[2 * labels + rng.integers(2, size=len(X))]
    model.likelihood.summarise(z, resp * mass[:, np.newaxis], s)
    return small, s, resp


def test_collapsed_steps_keep_the_mass(restricted):
    """Statistics are those of the responsibilities, and of all of the sample unless components died."""
    small, s, resp = restricted
    moved, shares = small.collapse(s, resp, 4)
    expected = np.empty_like(moved)
    z, mass, _ = small.sample
    small.model.likelihood.summarise(z, shares * mass[:, np.newaxis], expected)
    assert_allclose(moved, expected, rtol=1e-9, atol=1e-9)
    assert 1 < len(moved) <= len(s)
    assert moved[:, -1].sum() <= mass.sum() + 1e-9
    assert moved[:, -1].min() >= 1.0


def test_rows_leave_halves_of_clusters(restricted):
    """Halves of a cluster hold their own rows under ordinary steps, and mix when rows are left out."""
    small, s, resp = restricted
    _, _, ordinary = small.step(s)
    _, collapsed = small.collapse(s, resp, 1)
    kept = np.sum(ordinary * resp) / len(resp)
    assert kept > 0.75
    assert np.sum(collapsed * resp) / len(resp) < kept - 0.2


class _NotLeftOut(GaussianLikelihood):
    """A family that declares that rows cannot be left out."""

    leaves_out = False

    def log_predictive_without(self, prior, s, z, shares):
        raise AssertionError("asked for what the family has not declared")


class _Imputing(GaussianLikelihood):
    """A family of a user's own that imputes and says no more."""

    imputes = True

    def log_predictive_without(self, prior, s, z, shares):
        raise AssertionError("differences of the evidence of imputed rows are no densities")


@pytest.mark.parametrize("family", [_NotLeftOut, _Imputing])
def test_families_that_do_not_leave_rows_out(family, monkeypatch):
    monkeypatch.setattr("sklearn_bnp.likelihood.gaussian.GaussianLikelihood", family)
    X, _ = few_rows(6, spread=4.0)
    assert DPMixtureVB(random_state=0).fit(X).n_components_ > 1


@pytest.mark.parametrize("n_rows", [100, 3000])
def test_many_seeds_are_tried_first_and_ordinary_ways_later(n_rows):
    """A first birth that fails is tried again in other ways, whatever the size of the sample."""
    X = np.random.default_rng(0).standard_normal((n_rows, 20))
    model = DPMixtureVB(proposals=None).fit(X)._model
    sample, P = Sample(X, np.ones(n_rows), None), model.likelihood.n_statistics
    search = Search(model.likelihood, sample, P, n_others=0, n_seeds=10)
    ways = [search._replace(attempt=attempt).ways() for attempt in range(4)]
    assert max(way.n_seeds for way in ways[0]) > 10 and ways[0][0].n_collapsed
    assert min(way.n_seeds for way in ways[0]) == 10  # few as well: the better split is kept
    assert all(way.n_seeds <= 10 for later in ways[1:] for way in later)
    assert n_rows == 100 or len({later[0] for later in ways[1:]}) == 3


@pytest.fixture
def searched(monkeypatch):
    """Numbers of seeds of all searches, a list that grows; "narrow" is for windows along columns.

    Nothing is narrow along several columns here, so that there are no groups of such rows.
    """
    searched, developed = [], creation.developed

    def counted(small, target, way, rng):
        if not way.grouped:
            searched.append("narrow" if way.narrow else way.n_seeds)
        return developed(small, target, way, rng)

    for module in (creation, more_rows):
        monkeypatch.setattr(module, "developed", counted)
    return searched


def split_of(X, n_others, observation="gaussian"):
    """`create` for all rows as one component of several."""
    model = DPMixtureVB(observation=observation, proposals=None).fit(X)._learner_.model
    sample = Sample(model.likelihood.prepare(X), np.ones(len(X)), None)
    s = np.zeros((n_others + 1, model.likelihood.n_statistics))
    model.likelihood.summarise(sample.z, np.ones((len(X), 1)), s[:1])
    rng = np.random.RandomState(0)
    others = np.repeat(s[:1], n_others, axis=0)
    return create(model, sample, s[0], others, 10, 0, rng, n_rows=len(X))


def test_a_whole_component_is_searched_once(searched):
    """No other way is tried where the first one shows that several components are far worse than one."""
    X = np.random.default_rng(0).standard_normal((1000, 10))
    assert split_of(X, n_others=1) is None
    assert searched == [10, "narrow"]


def test_a_component_in_doubt_is_searched_in_all_ways(searched):
    """Two clusters that hardly pay: the first way is not far from a split."""
    X = np.random.default_rng(0).standard_normal((60, 1))
    assert split_of(X, n_others=4) is None
    assert searched == [10, 2, "narrow"]


def test_a_search_ends_when_two_ways_agree(searched):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2)) + 20.0 * rng.integers(3, size=(1000, 1))
    assert len(split_of(X, n_others=4).s) == 3
    assert searched == [10, 10]


def crowded(n_rows, K, n_columns, seed, spread=0.5):
    """Clusters whose centers are near, told apart by their covariances in many columns; and labels."""
    rng, labels = np.random.default_rng(seed), np.arange(n_rows) % K
    X = spread * rng.normal(size=(K, n_columns))[labels]
    for k in range(K):
        axes = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns) + 0.5 * np.eye(
            n_columns
        )
        X[labels == k] += rng.normal(size=(np.sum(labels == k), n_columns)) @ axes
    return X, labels


@pytest.mark.extended
def test_crowds_of_clusters_in_many_columns_are_found():
    """In 3000 rows each of them has 75, which show blends of all clusters that nothing takes apart later."""
    X, labels = crowded(6000, 40, 16, 0)
    model = assert_as_good_as_the_truth(
        X, labels, short=30.0, proposals=("birth", "merge", "delete")
    )
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("n_rows", "K", "spread", "more"),
    [
        (5000, 5, 4.0, []),  # two ways agree
        (5000, 1, 0.5, []),  # nothing is there
        (3000, 40, 0.5, []),  # there are no more rows
        (5000, 40, 0.5, [300]),
        (20_000, 45, 4.0, [150]),  # clear clusters: twice the rows show hardly more
    ],
)
def test_more_rows_are_looked_at_where_these_may_show_more(searched, n_rows, K, spread, more):
    X, _ = crowded(n_rows, K, 12, 0, spread)
    split = split_of(X, n_others=0)
    if K < 40:
        assert (1 if split is None else len(split.s)) == K
    assert [n for n in searched if n != "narrow" and n > 60] == more


@pytest.mark.extended
def test_more_rows_are_looked_at_if_columns_leave_too_few_seeds_for_twice_the_first(searched):
    """With 110 columns, 6000 rows have no sixty seeds, and 12000 have."""
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(60, 110))
    X = centers[rng.integers(60, size=12_500)] + rng.normal(size=(12_500, 110))
    assert len(split_of(X, 0, GaussianObservation("diag")).s) > 50
    assert [n for n in searched if n != "narrow"][-1] == 12_000 // 110


@pytest.mark.parametrize(
    ("proposal", "few", "many"), [(Birth(), 10_000, 4329), (StateBirth(), 4000, 4000)]
)
def test_rows_of_the_first_sample(proposal, few, many):
    """More than of later ones where there are many statistics, and no more than searches can go through.

    They are a function of the components alone, whatever was asked before.
    """

    def n_rows(n_components, n_statistics):
        return proposal.rows_of_each(StatBag.zeros(np.arange(n_components), n_statistics))

    proposal.reset()
    assert [n_rows(1, 231), n_rows(2, 231), n_rows(1, 231)] == [48_000, many, 48_000]
    assert [n_rows(1, 20), n_rows(2, 20)] == [few, few]


def test_rows_of_a_sample_that_is_limited():
    one = StatBag.zeros(np.arange(1), 231)
    assert Birth(max_rows=50).rows_of_each(one) == 50
    assert most_rows_of_first(231) == 48_000 and most_rows_of_first(10**6) < 100


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_rows_that_find_no_room_are_drawn(monkeypatch):
    """A sample has the order of the data: its first rows would hold some of the clusters alone."""
    samples = []

    def recorded(model, sample, s, others, *args, **kwargs):
        samples.append(np.asarray(sample.z))
        return create(model, sample, s, others, *args, **kwargs)

    monkeypatch.setattr(birth, "create", recorded)
    for name in ("_LEAST_NUMBERS", "_MOST_NUMBERS"):
        # more rows than a search takes, less than it may
        monkeypatch.setattr(scheduler, name, 8 * 15_000)
    X = np.random.default_rng(0).normal(size=(24_000, 8)) + np.repeat([0, 9, 18, 27], 6000)[:, None]
    DPMixtureVB(max_iter=3, proposals=("birth",), random_state=0).fit(X)
    counts = np.histogram(samples[0][:, 0], bins=4)[0]
    assert counts.sum() == 10_000
    assert counts.min() > 2000


def mixed_clusters(n_rows, n_columns, K, seed):
    """Clusters that are far apart, in columns that are mixtures of others; and their labels."""
    rng, labels = np.random.default_rng(seed), np.arange(n_rows) % K
    X = 10.0 * rng.normal(size=(K, n_columns))[labels] + rng.normal(size=(n_rows, n_columns))
    return X @ rng.normal(size=(n_columns, n_columns)), labels


@pytest.mark.extended
def test_clusters_along_few_of_many_axes_are_found():
    """There are 400 rows a cluster for 150 columns, which vary in fewer directions."""
    X, labels = mixed_clusters(1200, 150, 3, 0)
    model = DPMixtureVB(proposals=("birth", "merge", "delete"), random_state=0).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X)) == 1.0


def test_points_column_by_column_are_in_units_of_columns():
    """Also if the axes of internal rows are no columns: of all rows, these units are standard deviations."""
    X, _ = mixed_clusters(300, 6, 3, 1)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])  # does not vary in all directions
    state = DPMixtureVB(1, proposals=None).fit(X)._learner_
    model, totals, likelihood = state.model, state.totals, state.model.likelihood
    assert likelihood.scaling.is_rotated
    z = likelihood.prepare(X)
    points = likelihood.seeding_points(model.prior, totals.s[0], z, whiten=False)
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(pdist(points), pdist(expected), rtol=0.02)


def test_few_seeds_are_tried_where_rows_are_few_for_the_columns():
    """Whatever the ways before have found; there are five rows or more for each seed and column."""
    sample, target = Sample(np.zeros((2000, 100)), np.ones(2000), None), 5151
    likelihood = SimpleNamespace(n_features=100, leaves_out=False)
    for n_others, attempt, n_seeds in ((0, 0, [10, 4]), (0, 1, [10]), (3, 0, [10])):
        found = Search(likelihood, sample, target, n_others, 10, attempt=attempt).ways()
        assert [way.n_seeds for way in found] == n_seeds
    first, last = Search(likelihood, sample, target, 0, 10).ways()
    assert last.always and not first.always
