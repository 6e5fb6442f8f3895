"""Rows that count several times, by weights or as copies, are no clusters of their own."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, GaussianObservation, Sample
from sklearn_bnp.engine.row_frequencies import copies, frequencies, without_copies

SHAPES = ("full", "diag", "spherical")


def blobs(seed, n_rows=500, n_clusters=5, n_features=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=n_rows)
    X = 4 * rng.normal(size=(n_clusters, n_features))[y] + rng.normal(size=(n_rows, n_features))
    return X, y


def assert_clusters_are_found(shape, X, y, **given):
    model = DPMixtureVB(observation=GaussianObservation(shape), random_state=0).fit(X, **given)
    assert model.n_components_ == 5
    assert adjusted_rand_score(y, model.labels_) > 0.97


@pytest.mark.quarter
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "weights",
    [
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: rng.lognormal(-0.5, 1.0, size=n),
        lambda rng, n: rng.poisson(1.0, size=n).astype(float),
    ],
    ids=["exponential", "lognormal", "bootstrap"],
)
def test_heavy_rows_are_no_clusters(shape, weights):
    X, y = blobs(0)
    assert_clusters_are_found(shape, X, y, sample_weight=weights(np.random.default_rng(1), len(X)))


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_drawn_with_replacement_make_no_clusters(shape):
    X, y = blobs(0)
    rows = np.random.default_rng(1).integers(len(X), size=len(X))
    assert_clusters_are_found(shape, X[rows], y[rows])


def test_rows_drawn_with_replacement_and_missing_values():
    X, y = blobs(0)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    rows = np.random.default_rng(1).integers(len(X), size=len(X))
    assert_clusters_are_found("diag", X[rows], y[rows])


@pytest.mark.extended
@pytest.mark.parametrize("as_weight", [True, False])
def test_many_copies_are_a_cluster(as_weight):
    """Forty rows of a device that stood still, among others that differ."""
    X, _ = blobs(0)
    still = X[:1] + 1.5
    if as_weight:
        rows, weight = np.concatenate([X, still]), np.append(np.ones(len(X)), 40.0)
    else:
        rows, weight = np.concatenate([X, still.repeat(40, axis=0)]), None
    model = DPMixtureVB(random_state=0).fit(rows, sample_weight=weight)
    assert model.n_components_ == 6
    assert np.count_nonzero(model.labels_ == model.labels_[-1]) == len(rows) - len(X)


@pytest.mark.parametrize("n_values", [3, 8])
def test_several_values_that_are_there_often_are_clusters(n_values):
    """Such as both limits of a device and its code for no answer: all rows had ended in one component."""
    rng = np.random.default_rng(0)
    often = rng.normal(size=(n_values, 2)).repeat(60, axis=0)
    model = DPMixtureVB(random_state=0).fit(np.concatenate([rng.normal(size=(300, 2)), often]))
    assert model.n_components_ == n_values + 1


def test_weights_that_sum_to_one_are_warned_of():
    X, _ = blobs(0)
    with pytest.warns(UserWarning, match=r"sums to 1 over all the data.*divide them by their mean"):
        model = DPMixtureVB(random_state=0).fit(X, sample_weight=1.0 / len(X))
    assert model.n_components_ == 1
    DPMixtureVB(random_state=0).fit(X[:5], sample_weight=0.2)  # five rows may well weigh no more


def test_a_component_owns_a_row():
    """A component of a hundredth of a row gained nothing to speak of, where some rows weigh as little."""
    rng = np.random.default_rng(1)
    rates = np.where(np.arange(90)[:, None] % 2, [3.0, 0.2, 0.2], [0.2, 0.2, 3.0])
    X = (rng.poisson(rates.repeat(6, axis=1)) > 1).astype(int)
    weight = np.random.default_rng(0).random(90)
    model = DPMixtureVB(observation="poisson", random_state=0).fit(X, sample_weight=weight)
    assert model.n_components_ == 2


# ---------------------------------------------------------------------- discrete and rounded rows


def discrete_rows(kind, n_rows=500, n_clusters=4):
    """Rows that are hardly ever equal by chance, and their clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_clusters, size=n_rows)
    if kind == "bernoulli":
        return (rng.random((n_rows, 15)) < rng.beta(0.5, 0.5, (n_clusters, 15))[y]).astype(int), y
    if kind == "categorical":
        levels = np.cumsum(rng.dirichlet([0.4] * 4, (n_clusters, 10)), axis=2)[y]
        return (rng.random((n_rows, 10, 1)) > levels).sum(axis=2), y
    if kind == "poisson":
        return rng.poisson(rng.gamma(1.0, 5.0, (n_clusters, 6))[y]), y
    X, y = blobs(0, n_rows, n_clusters, 4)
    return np.round(X), y


KINDS = ("bernoulli", "categorical", "poisson", "gaussian")


@cache
def unweighted(kind):
    """The model of discrete rows that all count once."""
    return DPMixtureVB(observation=kind, random_state=0).fit(discrete_rows(kind)[0])


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [12.0, 500.0, "uneven"])
def test_weights_of_other_units_make_few_components(kind, scale):
    """A row of survey data stands for many people, who need not be equal: 85 components had been found."""
    X, y = discrete_rows(kind)
    weight = scale
    if scale == "uneven":
        weight = 20.0 * np.random.default_rng(1).lognormal(-0.5, 1.0, size=len(X))
    plain = unweighted(kind)
    model = DPMixtureVB(observation=kind, random_state=0).fit(X, sample_weight=weight)
    assert plain.n_components_ <= model.n_components_ <= plain.n_components_ + 6
    agreement = [adjusted_rand_score(y, one.labels_) for one in (model, plain)]
    assert agreement[0] > agreement[1] - 0.2


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_rows_have_units_as_well(sparse):
    X, _ = discrete_rows("poisson")
    X = csr_array(X) if sparse else X
    model = DPMixtureVB(observation="poisson", random_state=0).fit(X, sample_weight=12.0)
    assert model.n_components_ == 4


@pytest.mark.quarter
@pytest.mark.parametrize("n_columns", [4, 10])
def test_tables_of_frequencies_are_the_rows(n_columns):
    """Few cells that are all filled, and many that are mostly empty."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=2000 if n_columns > 4 else 500)
    X = (rng.random((len(y), n_columns)) < rng.beta(0.3, 0.3, (3, n_columns))[y]).astype(int)
    cells, times = np.unique(X, axis=0, return_counts=True)
    model = DPMixtureVB(observation="bernoulli", random_state=0)
    of_rows = clone(model).fit(X)
    of_cells = clone(model).fit(cells, sample_weight=times)
    assert of_rows.n_components_ == of_cells.n_components_
    assert of_cells.lower_bound_ == pytest.approx(of_rows.lower_bound_, abs=2.0)


def drawn_frequencies(n_draws, n_cells=4000):
    """Expectations and frequencies of the cells that occur."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(n_cells, 0.2))
    times = rng.multinomial(n_draws, p)
    return (n_draws * p)[times > 0], times[times > 0].astype(float)


@pytest.mark.parametrize("n_draws", [300, 3000, 30000])
def test_frequencies_stay_and_units_are_found(n_draws):
    expected, times = drawn_frequencies(n_draws)
    number = np.arange(len(times))
    plain = frequencies(times, expected, number)
    assert plain.sum() > 0.75 * times.sum()
    for scale in (1.0, 12.0, 1e4):
        found = frequencies(scale * times, scale * expected, number)
        assert found.sum() == pytest.approx(times.sum(), rel=0.3)


def test_weights_of_rare_rows_are_cut_to_one():
    weight = np.array([0.3, 0.6, 2.0, 0.9, 1.2])
    found = frequencies(weight, np.zeros(5), np.arange(5))
    np.testing.assert_allclose(found, [0.3, 0.6, 1.0, 0.9, 1.0])


def test_a_row_that_weighs_much_is_a_cluster():
    weight = np.append(np.ones(40), 200.0)
    found = frequencies(weight, np.zeros(41), np.arange(41))
    assert found[-1] / found[0] == pytest.approx(200.0)


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize("n_missing", [0, 30])
def test_equal_rows_become_one(n_missing):
    rng = np.random.default_rng(0)
    different = rng.normal(size=(40, 3))
    different.ravel()[rng.choice(different.size, n_missing, replace=False)] = np.nan
    number = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 5, size=40)))
    mass = rng.random(40)
    sample = Sample(different[number], mass[number], None).without_copies()
    order = np.argsort(mass)
    np.testing.assert_array_equal(np.sort(sample.mass), mass[order])
    np.testing.assert_array_equal(sample.z[np.argsort(sample.mass)], different[order])
    np.testing.assert_array_equal(sample.weight, 1.0)


def test_copies_count_as_their_weights_together_but_once_at_the_most():
    z = np.array([[1.0], [2.0], [1.0], [3.0], [4.0], [3.0]])
    sample = Sample(z, np.ones(6), np.array([0.2, 0.7, 0.3, 0.9, 5.0, 0.6])).without_copies()
    np.testing.assert_array_equal(sample.z.ravel(), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(sample.weight, [0.5, 0.7, 1.0, 1.0])


def test_what_counts_twenty_times_as_much_stays_as_it_is():
    z = np.append(np.arange(30.0), np.full(22, 50.0))[:, np.newaxis]
    z[1] = z[0]
    sample = Sample(z, np.ones(52), None).without_copies()
    assert len(sample.z) == 29 + 22
    np.testing.assert_array_equal(sample.weight, 1.0)


def test_a_row_with_gaps_is_a_copy_of_the_frequent_row_that_it_agrees_with():
    """Rows of nothing but zeros are a cluster, whatever entries some of them lack."""
    rng = np.random.default_rng(0)
    zeros = np.zeros((40, 4))
    zeros[rng.random(zeros.shape) < 0.15] = np.nan
    zeros[:, :2] = 0.0  # each shows half of its entries or more
    others = rng.normal(size=(60, 4))
    others[:, 0] = 0.0
    others[::5, 1] = np.nan
    z = rng.permutation(np.concatenate([zeros, others]))
    is_zero = ~(np.abs(z) > 0.0).any(axis=1)
    first, number = copies(z)
    assert len(set(number[is_zero])) == 1
    assert len(first) == 61
    np.testing.assert_array_equal(z[first][number][~np.isnan(z)], z[~np.isnan(z)])
    sample = Sample(z, np.ones(100), None).without_copies()
    assert len(sample.z) == 100
    np.testing.assert_array_equal(sample.weight, 1.0)


def test_a_row_that_shows_little_is_no_copy():
    z = np.zeros((30, 3))
    z[10:, 1:] = np.arange(1, 21)[:, np.newaxis]
    z[20:, 1:] = np.nan
    first, number = copies(z)
    assert len(first) == 1 + 10 + 1
    assert len(set(number[20:])) == 1
    assert set(number[20:]).isdisjoint(number[:20])


@pytest.mark.parametrize("n_heavy", [0, 2])
def test_rows_that_are_there_often_count_in_units_of_the_others(n_heavy):
    """Each of the others is there twice, with a weight of 3."""
    number = np.concatenate(
        [np.arange(30).repeat(2), np.full(200, 30), np.full(80, 31), np.full(50, 32)]
    )
    first = np.searchsorted(number, np.arange(33))
    counts = without_copies(first, number, np.full(len(number), 3.0), n_heavy)
    assert counts[:60].sum() == pytest.approx(30.0)
    np.testing.assert_allclose(counts[60:], 0.5)


def test_samples_of_different_rows_are_left_alone():
    rng = np.random.default_rng(0)
    for weight in (None, rng.random(20)):
        sample = Sample(rng.normal(size=(20, 2)), np.ones(20), weight)
        assert sample.without_copies() is sample


@pytest.mark.extended
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_on_a_grid_count_as_often_as_they_occur(shape):
    """Recorded to a step, equal rows are different ones that lie in one cell."""
    X, _ = blobs(0, n_features=2)
    observation = GaussianObservation(shape)
    coarse = DPMixtureVB(observation=observation, random_state=0).fit(np.round(X))
    assert coarse._learner_.model.likelihood.copies_tell
    fine = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert not fine._learner_.model.likelihood.copies_tell
    exact = GaussianObservation(shape, resolution=0.0)
    exact = DPMixtureVB(observation=exact, random_state=0).fit(np.round(X))
    assert not exact._learner_.model.likelihood.copies_tell
