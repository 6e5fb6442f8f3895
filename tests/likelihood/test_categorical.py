"""Columns of categories: what is particular to them; laws test the rest."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPHMMVB, CategoricalObservation, ColumnObservation, DPMixtureVB, HDPTopicVB
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.category_codes import CodesOfColumns
from sklearn_bnp.inputs.moments import column_moments

SIZES = np.array([2, 3, 5, 4, 3, 4, 5, 3, 4, 5])
LABELS = np.repeat([0, 1, 2], [200, 120, 80])


def answers(labels, seed=0, sizes=SIZES):
    """Codes (n, D): each class has a usual answer in each column, and gives it 7 times of 10."""
    rng = np.random.default_rng(seed)
    usual = (np.arange(labels.max() + 1)[:, np.newaxis] + np.arange(len(sizes))) % sizes
    return np.where(
        rng.random((len(labels), len(sizes))) < 0.7,
        usual[labels],
        rng.integers(sizes, size=(len(labels), len(sizes))),
    )


def bound(X, **parameters):
    """The likelihood for these rows."""
    observation = CategoricalObservation(**parameters)
    return observation.bind(column_moments([Batch(None, X)], covariance=False))


# ---------------------------------------------------------------------- all three estimators


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_classes_are_found(seed, dtype):
    X = answers(LABELS, seed).astype(dtype)
    model = DPMixtureVB(observation="categorical", random_state=seed).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.95  # some rows are of no clear class
    drawn, labels = model.sample(600, random_state=0)
    assert adjusted_rand_score(labels, model.predict(drawn)) >= 0.95


@pytest.mark.parametrize("size", [2, 5, 20])
def test_one_class_is_left_whole(size):
    rng = np.random.default_rng(size)
    X = rng.choice(size, size=(300, 8), p=rng.dirichlet(np.ones(size)))
    assert DPMixtureVB(observation="categorical", random_state=0).fit(X).n_components_ == 1


@pytest.mark.quarter
@pytest.mark.parametrize(
    "recoded",
    [lambda X: X + 1, lambda X: 10 * X + 10, lambda X: np.where(X == 0, 99, X)],
    ids=["from 1", "tens", "99 for none"],
)
def test_gaps_between_codes_hide_no_class(recoded):
    """Codes that no row holds hardly change the bound; with full pseudo-counts, tens led to one class."""
    X = answers(LABELS)
    plain = DPMixtureVB(observation="categorical", random_state=0).fit(X)
    other = DPMixtureVB(observation="categorical", random_state=0).fit(recoded(X))
    assert other.n_components_ == plain.n_components_ == 3
    assert adjusted_rand_score(plain.labels_, other.labels_) >= 0.98
    assert abs(other.lower_bound_ - plain.lower_bound_) < 1e-3 * abs(plain.lower_bound_)


def test_symbols_of_a_sequence():
    """Integers in one column, as hidden Markov models of symbols have them."""
    states = np.repeat(np.tile([0, 1, 2, 1], 15), 20)
    rng = np.random.default_rng(1)
    symbols = np.where(rng.random(len(states)) < 0.8, 2 * states, rng.integers(6, size=len(states)))
    model = HDPHMMVB(observation="categorical", random_state=0).fit(symbols.reshape(-1, 1))
    assert model.n_components_ == 3
    assert adjusted_rand_score(states, model.predict(symbols.reshape(-1, 1))) >= 0.9
    drawn, _ = model.sample(50, random_state=0)
    assert set(np.unique(drawn)) <= set(range(6))


def test_topics_of_rows():
    rng = np.random.default_rng(2)
    labels = np.concatenate([rng.choice(3, 25, p=p) for p in rng.dirichlet(np.ones(3), 40)])
    X, groups = answers(labels), np.repeat(np.arange(40), 25)
    model = HDPTopicVB(observation="categorical", random_state=0).fit(X, groups=groups)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) >= 0.95


# ---------------------------------------------------------------------- what is exact


def test_two_categories_are_bernoulli():
    """Pseudo-counts of 1 are those of `BernoulliObservation`: the same model."""
    X = answers(LABELS, sizes=np.full(10, 2)).astype(float)
    given = {"init_params": np.eye(3)[LABELS], "max_iter": 0, "proposals": None}
    a, b = (DPMixtureVB(observation=name, **given).fit(X) for name in ("categorical", "bernoulli"))
    assert a.elbo_terms_ == pytest.approx(b.elbo_terms_, rel=1e-12)
    assert_allclose(a.probabilities_[:, :, 1], b.means_, rtol=1e-12)
    assert_allclose(a.score_samples(X), b.score_samples(X), rtol=1e-12)


def test_masses_of_all_rows_sum_to_one():
    X = answers(LABELS)[:, :4]
    model = DPMixtureVB(observation="categorical", random_state=0).fit(X)
    every = np.stack(np.meshgrid(*map(np.arange, SIZES[:4])), axis=-1).reshape(-1, 4)
    assert_allclose(np.exp(model.score_samples(every)).sum(), 1.0, rtol=1e-10)


def test_probabilities():
    """Posterior means, in the order of the weights; categories that a column has not are 0."""
    X = answers(LABELS)[:, :3]
    prior = [0.5, [1.0, 2.0, 3.0], 1.0]
    model = DPMixtureVB(
        observation=CategoricalObservation(prior), init_params=np.eye(3)[LABELS], max_iter=0,
        proposals=None,
    ).fit(X)  # fmt: skip
    assert model.probabilities_.shape == (3, 3, 5)
    assert_allclose(model.probabilities_.sum(axis=2), 1.0, rtol=1e-12)
    for k in range(3):
        for d, lam in enumerate(prior):
            counts = np.bincount(X[k == LABELS, d], minlength=SIZES[d]) + lam
            assert_allclose(model.probabilities_[k, d, : SIZES[d]], counts / counts.sum())
            assert np.all(model.probabilities_[k, d, SIZES[d] :] == 0)


def test_frequencies_of_samples():
    """20,000 rows a class tell a probability to 0.0035; five deviations of it."""
    model = DPMixtureVB(observation="categorical", random_state=0).fit(answers(LABELS))
    attributes = {"probabilities_": model.probabilities_}
    labels = np.repeat(np.arange(3), 20_000)
    drawn = model._model.likelihood.sample(attributes, labels, np.random.RandomState(0))
    for k in range(3):
        found = [np.bincount(x, minlength=5) / 20_000 for x in drawn[labels == k].T.astype(int)]
        assert_allclose(found, model.probabilities_[k], atol=0.018)


def test_missing_entries_are_integrated_out():
    """A row that lacks some columns is as probable as a row of the others alone."""
    X = answers(LABELS).astype(float)
    likelihood, of_rest = bound(X), bound(X[:, 3:])
    resp = np.random.default_rng(3).dirichlet(np.ones(3), len(X))
    s, rest = np.empty((3, likelihood.n_statistics)), np.empty((3, of_rest.n_statistics))
    likelihood.summarise(likelihood.prepare(X), resp, s)
    of_rest.summarise(of_rest.prepare(X[:, 3:]), resp, rest)
    incomplete = X.copy()
    incomplete[:, :3] = np.nan
    z, z_rest = likelihood.prepare(incomplete), of_rest.prepare(X[:, 3:])
    prior, prior_rest = likelihood.prior, of_rest.prior
    assert_allclose(
        likelihood.log_predictive(prior, s, z),
        of_rest.log_predictive(prior_rest, rest, z_rest), rtol=1e-12,
    )  # fmt: skip
    assert_allclose(
        likelihood.features(z) @ likelihood.coefficients(prior, s).T,
        of_rest.features(z_rest) @ of_rest.coefficients(prior_rest, rest).T, rtol=1e-12,
    )  # fmt: skip
    likelihood.summarise(z, resp, s)
    assert_allclose(likelihood.evidence(prior, s), of_rest.evidence(prior_rest, rest), rtol=1e-12)
    points = likelihood.seeding_points(prior, s.sum(axis=0), z)
    assert not points[:, : SIZES[:3].sum()].any()


# ---------------------------------------------------------------------- categories and codes


@pytest.mark.extended
def test_a_number_of_categories_for_each_column_hides_no_class():
    """As the page of columns says: one number for columns of unlike sizes does hide them."""
    rng = np.random.default_rng(0)
    sizes, labels = [50, 200, 8, 3, 2], rng.choice(4, 2500, p=[0.4, 0.3, 0.2, 0.1])
    tables = [rng.dirichlet(np.full(size, 0.5), 4).cumsum(axis=1) for size in sizes]
    X = np.stack([(rng.random((2500, 1)) > t[labels, :-1]).sum(axis=1) for t in tables], axis=1)
    found = [
        DPMixtureVB(observation=CategoricalObservation(n_categories=n), random_state=0).fit(X)
        for n in (sizes, 200)
    ]
    assert [model.n_components_ for model in found] == [4, 1]


@pytest.mark.extended
def test_categories_seen_later_have_to_be_announced():
    X = answers(LABELS)
    X[:100, 2] %= 3
    model = DPMixtureVB(observation="categorical", random_state=0).partial_fit(X[:100])
    before = model.lower_bound_
    late = X[100 + np.flatnonzero(X[100:, 2] > 2)]
    message = rf"Column 2 of X holds category {late[0, 2]}, .*0 to 2; set n_categories"
    for method in (model.predict, model.partial_fit, model.score_samples):
        with pytest.raises(ValueError, match=message):
            method(late)
    assert model.lower_bound_ == before
    for n in (5, SIZES.tolist(), [None, *SIZES[1:].tolist()]):
        observation = CategoricalObservation(n_categories=n)
        model = DPMixtureVB(observation=observation, random_state=0).partial_fit(X[:100])
        assert_array_equal(model.partial_fit(late).predict(late) >= 0, True)
        assert model.probabilities_.shape[2] == 5


@pytest.mark.parametrize(
    ("value", "words"),
    [(-1.0, "holds -1,"), (0.5, "holds 0.5,"), (1e9, "holds values up to 1e+09")],
)
def test_codes_are_whole_numbers_from_0(value, words):
    X = answers(LABELS).astype(float)
    X[7, 3] = value
    with pytest.raises(ValueError, match=rf"Column 3 of X {re.escape(words)}.*OrdinalEncoder"):
        DPMixtureVB(observation="categorical").fit(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"prior": 0.0},
        {"prior": -1.0},
        {"prior": np.nan},
        {"prior": [1.0, 2.0]},
        {"prior": [[1.0, 1.0]] * 10},
        {"n_categories": 0},
        {"n_categories": [2, 3]},
        {"n_categories": [2.5] * 10},
        {"n_categories": 2.5},
    ],
)
def test_bad_parameters(parameters):
    name = next(iter(parameters))
    with pytest.raises(ValueError, match=name):
        DPMixtureVB(observation=CategoricalObservation(**parameters)).fit(answers(LABELS))


def test_columns_of_zeros_have_one_category():
    X = np.column_stack([answers(LABELS), np.zeros(len(LABELS))])
    model = DPMixtureVB(observation="categorical", random_state=0).fit(X)
    assert_array_equal(model.probabilities_[:, 10], [[1.0, 0, 0, 0, 0]] * model.n_components_)


def test_means_init_are_rows():
    model = DPMixtureVB(3, observation="categorical", max_iter=0, proposals=None)
    X = answers(LABELS)
    usual = (np.arange(3)[:, np.newaxis] + np.arange(len(SIZES))) % SIZES
    model.set_params(means_init=usual).fit(X)
    assert adjusted_rand_score(LABELS, model.predict(X)) >= 0.95


def test_categories_of_rows_of_weight_zero():
    """They are there, as a bootstrap by weights leaves them; rows of weight say nothing of them."""
    X = np.random.default_rng(24).integers(3, size=(50, 3)).astype(float)
    X[:, 2] = 0.0
    X[4, 2] = 1.0
    weight = np.ones(50)
    weight[4] = 0.0
    model = DPMixtureVB(observation="categorical", random_state=0).fit(X, sample_weight=weight)
    assert model.probabilities_.shape[1:] == (3, 3)
    assert np.all(model.probabilities_[:, 2, 1] > 0)
    assert np.all(model.probabilities_[:, 2, 2] == 0)


# ---------------------------------------------------------------------- codes that no row holds


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint64])
def test_codes_that_columns_hold(dtype):
    X = np.array([[1, 0], [7, 3], [1, 3]], dtype=dtype)
    found = CodesOfColumns.of(Batch(None, X)).added(CodesOfColumns.of(Batch(None, X[:1] + X[:1])))
    assert [codes.tolist() for codes in found.of_columns] == [[1, 2, 7], [0, 3]]


def test_what_is_no_code_is_left_out():
    X = np.array([[np.nan, -1.0], [2.5, 1e300], [4.0, np.inf]])
    found = CodesOfColumns.of(Batch(None, X)).of_columns
    assert [codes.tolist() for codes in found] == [[4], []]


def pseudo_counts(X, how="fit", **parameters):
    """Pseudo-counts of the first column, after a call of this method."""
    model = DPMixtureVB(observation=CategoricalObservation(**parameters), random_state=0)
    return getattr(model, how)(X)._learner_.model.prior.lam[: X[:, 0].max() + 1]


def test_pseudo_counts_of_codes_that_no_row_holds():
    X = np.array([[1, 0], [3, 1]] * 20)
    assert_allclose(pseudo_counts(X), [0.005, 1.0, 0.005, 1.0])
    assert_allclose(pseudo_counts(X, prior=2.0), [0.01, 2.0, 0.01, 2.0])
    # given numbers are those of what may occur, as are those of the first batch of a stream
    assert_allclose(pseudo_counts(X, n_categories=[4, None]), 1.0)
    assert_allclose(pseudo_counts(X, prior=[[1.0, 2.0, 3.0, 4.0], 1.0]), [1.0, 2.0, 3.0, 4.0])
    assert_allclose(pseudo_counts(X, "partial_fit"), 1.0)


def test_gaps_in_a_block_of_columns():
    X = np.column_stack([np.linspace(0.0, 1.0, 40), np.tile([1, 3], 20)])
    columns = ColumnObservation([("size", "gaussian", [0]), ("kind", "categorical", [1])])
    model = DPMixtureVB(observation=columns, random_state=0).fit(X)
    chances = model.blocks_["kind"]["probabilities_"][0, 0]
    assert chances[[0, 2]].max() < 1e-3
    assert_allclose(chances[[1, 3]], 0.5, atol=1e-3)
