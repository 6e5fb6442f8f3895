"""Learning from batches that arrive one at a time."""

import pickle

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, Birth, DPMixtureVB, GaussianObservation
from sklearn_bnp.engine import streaming
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import LearnerSettings
from sklearn_bnp.mixture.model import MixtureModel
from tests.estimators import (
    CENTERS,
    FEW_PROPOSALS,
    assert_same_state,
    blobs,
    one_hot,
    public_state,
    same_partition,
)
from tests.variants import variants

X, truth = blobs(600)
BATCHES = np.array_split(X, 6)
K = len(CENTERS)


def mass(model):
    """How many rows the model has statistics of."""
    return model._learner_.totals.n.sum()


def mixture():
    return DPMixtureVB(proposals=FEW_PROPOSALS, random_state=0)


def looped(n_epochs, batches=BATCHES, **params):
    """A model after some epochs over the same batches."""
    model = DPMixtureVB(random_state=0, **params)
    for _ in range(n_epochs):
        for batch in batches:
            model.partial_fit(batch)
    return model


# ---------------------------------------------------------------------- what a batch is


def test_new_batches_add_and_old_ones_are_replaced():
    model = mixture()
    for i, batch in enumerate(BATCHES * 3):
        model.partial_fit(batch)
        assert mass(model) == pytest.approx(min(100.0 * (i + 1), 600.0), abs=1e-6)


@pytest.mark.extended
def test_a_batch_is_known_by_its_content():
    model = mixture().partial_fit(BATCHES[0])
    for same in (BATCHES[0].copy(), np.asfortranarray(BATCHES[0]), BATCHES[0].tolist()):
        assert mass(model.partial_fit(same)) == pytest.approx(100.0)
    for i, other in enumerate([BATCHES[0][::-1], BATCHES[0] + 1e-9, BATCHES[0].astype("f4")]):
        assert mass(model.partial_fit(other)) == pytest.approx(100.0 * (i + 2))
    weight = np.full(100, 2.0)
    for _ in range(2):
        model.partial_fit(BATCHES[0], sample_weight=weight)
        assert mass(model) == pytest.approx(600.0)


def test_a_batch_is_known_by_its_name():
    model = mixture()
    model.partial_fit(BATCHES[0], batch_id="a").partial_fit(BATCHES[0], batch_id="b")
    assert mass(model) == pytest.approx(200.0)
    model.partial_fit(BATCHES[1][:40], batch_id="a")  # other rows under the same name
    assert mass(model) == pytest.approx(140.0)
    model.partial_fit(BATCHES[1], batch_id=("c", 3))
    assert mass(model) == pytest.approx(240.0)


def test_names_may_be_numbers_of_numpy():
    model = mixture()
    for _ in range(2):
        for i in np.arange(2):
            model.partial_fit(BATCHES[i], batch_id=i)
    assert mass(model) == pytest.approx(200.0)


def test_batches_add_to_a_fit():
    model = mixture().fit(X[:300])
    bound = model.lower_bound_
    model.partial_fit(X[300:])
    assert mass(model) == pytest.approx(600.0)
    assert model.lower_bound_ < bound
    assert same_partition(model.predict(X), truth)


def test_one_row_a_batch():
    model = mixture().partial_fit(X[:50])
    for i in range(50, 80):
        model.partial_fit(X[i : i + 1])
    assert mass(model) == pytest.approx(80.0)
    assert np.isfinite(model.score(X))


@pytest.mark.extended
@pytest.mark.parametrize("weighted", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_some_batches_have_weights(weighted):
    """No weights are weights of 1, also among rows that proposals look at together."""
    model, plain = (mixture() for _ in range(2))
    for _ in range(3):
        for i, batch in enumerate(BATCHES):
            weight = np.ones(len(batch)) if i % 2 == weighted else None
            model.partial_fit(batch, sample_weight=weight, batch_id=i)
            plain.partial_fit(batch, batch_id=i)
    assert model.n_components_ == plain.n_components_
    assert model.lower_bound_ == pytest.approx(plain.lower_bound_)


def test_weights_count():
    model = mixture()
    for batch in BATCHES:
        model.partial_fit(batch, sample_weight=np.full(100, 0.5))
    assert mass(model) == pytest.approx(300.0)


# ---------------------------------------------------------------------- what is learned


@pytest.mark.extended
@pytest.mark.parametrize("covariance_type", variants(["full", "diag", "spherical"], slow=("diag",)))
def test_epochs_end_where_fit_ends(covariance_type):
    observation = GaussianObservation(covariance_type)
    model = looped(4, observation=observation)
    reference = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert model.n_components_ == reference.n_components_ == K
    assert same_partition(model.predict(X), truth)
    # the units are those of the first batch, and so is the prior of the means
    assert model.lower_bound_ == pytest.approx(reference.lower_bound_, rel=5e-3)
    assert model.score(X) == pytest.approx(reference.score(X), abs=0.01)


@pytest.mark.extended
def test_epochs_find_what_no_batch_shows(monkeypatch):
    monkeypatch.setattr(MixtureModel, "pool_rows", 1)
    rng = np.random.default_rng(0)
    centers = 8.0 * np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
    rows = centers[rng.integers(16, size=640)] + rng.normal(size=(640, 2))
    reference = DPMixtureVB(random_state=0).fit(rows)
    model = looped(1, np.array_split(rows, 16))  # two or three rows a cluster in each
    assert model.n_components_ < 5
    for _ in range(6):
        for batch in np.array_split(rows, 16):
            model.partial_fit(batch)
    assert model.n_components_ == reference.n_components_ == 16
    assert model.lower_bound_ == pytest.approx(reference.lower_bound_, rel=1e-3)


@pytest.mark.extended
def test_number_of_components_grows_and_shrinks():
    few = DPMixtureVB(random_state=0)
    found = [few.partial_fit(batch).n_components_ for batch in BATCHES]
    assert found[-1] == K
    many = DPMixtureVB(12, proposals=("merge", "delete"), random_state=0)
    for _ in range(4):
        for batch in BATCHES:
            many.partial_fit(batch)
    assert many.n_components_ == K


@pytest.mark.extended
@pytest.mark.parametrize("memoize", [True, False])
def test_data_may_come_sorted(memoize):
    model = DPMixtureVB(memoize=memoize, random_state=0)
    found = []
    for k in range(K):  # one cluster after the other
        for rows in np.array_split(X[truth == k], 3):
            found.append(model.partial_fit(rows).n_components_)
    assert found == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert same_partition(model.predict(X), truth)
    assert mass(model) == pytest.approx(600.0, abs=1e-6)
    assert sum(lap.accepted.get("birth", 0) for lap in model.history_) >= K - 1
    for params in ({"max_components": 2}, {"proposals": "merge"}):
        limited = DPMixtureVB(random_state=0, memoize=memoize, **params)
        for k in range(K):
            limited.partial_fit(X[truth == k])
        assert limited.n_components_ <= params.get("max_components", 1)


@pytest.mark.extended
def test_attributes_are_consistent_after_every_call():
    model = DPMixtureVB(8, random_state=0)
    for _ in range(2):
        for batch in BATCHES:
            model.partial_fit(batch)
            assert np.all(np.diff(model.weights_) <= 0)
            assert model.weights_.sum() == pytest.approx(1.0)
            assert len(model.weights_) == len(model.means_) == model.n_components_
            assert model.predict_proba(X).shape == (600, model.n_components_)
            assert model.lower_bound_ == pytest.approx(sum(model.elbo_terms_.values()), rel=1e-12)
            assert model.n_iter_ == len(model.history_) == model.history_[-1].lap
            nearest = np.linalg.norm(X[:, np.newaxis] - model.means_, axis=2).argmin(axis=1)
            assert np.mean(nearest == model.predict(X)) > 0.8


def test_components_on_trial_count_no_row_twice(monkeypatch):
    monkeypatch.setattr(MixtureModel, "pool_rows", 1)  # so that there are some in later laps
    rng = np.random.default_rng(0)
    centers = 8.0 * np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
    batches = np.array_split(centers[rng.integers(16, size=640)] + rng.normal(size=(640, 2)), 8)
    model = looped(1, batches, proposals=(Birth(strategy="adopt"),))
    bound, on_trial = model.lower_bound_, 0
    for batch in batches * 2:
        model.partial_fit(batch)
        on_trial += len(model._learner_.initial) * model._learner_.lap_under_way
        assert model._statistics[:, -1].sum() == pytest.approx(640.0, abs=1e-6)
        assert model.lower_bound_ > 1.5 * bound
        assert np.isfinite(model.score(batch))
    assert on_trial


def test_fixed_truncation():
    model = looped(2, n_components=5, proposals=None)
    assert model.n_components_ == 5
    assert {lap.n_components for lap in model.history_} == {5}


def test_given_responsibilities_start_the_first_batch():
    resp = one_hot(truth[:100])
    model = DPMixtureVB(init_params=resp, proposals=None, random_state=0).partial_fit(X[:100])
    assert model.n_components_ == K
    assert same_partition(model.predict(X), truth)
    means = DPMixtureVB(K, means_init=CENTERS, proposals=None).partial_fit(X[:100])
    assert same_partition(means.predict(X), truth)


def test_stochastic_batches():
    model = DPMixtureVB(
        K, learning_method="stochastic", means_init=CENTERS, total_samples=600, random_state=0
    )
    for _ in range(3):
        for batch in BATCHES:
            model.partial_fit(batch)
            assert mass(model) == pytest.approx(600.0)
    assert same_partition(model.predict(X), truth)


def test_stochastic_batches_after_a_fit():
    params = {"learning_method": "stochastic", "means_init": CENTERS, "max_iter": 3}
    model = DPMixtureVB(K, random_state=0, **params).fit(X)
    assert mass(model.partial_fit(X[:100])) == pytest.approx(700.0)


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["split", "adopt"])
def test_a_new_batch_may_come_in_the_middle_of_a_lap(strategy):
    proposals = (Birth(strategy=strategy), "merge", "delete")
    model = looped(2, BATCHES[:4], proposals=proposals)
    model.partial_fit(BATCHES[0])
    model.partial_fit(BATCHES[4])
    model.partial_fit(BATCHES[1])
    assert mass(model) == pytest.approx(500.0, abs=1e-6)
    for _ in range(2):
        for batch in BATCHES:
            model.partial_fit(batch)
    assert mass(model) == pytest.approx(600.0, abs=1e-6)
    assert same_partition(model.predict(X), truth)


# ---------------------------------------------------------------------- state


def test_settings_may_change_between_calls(monkeypatch):
    model = looped(1, n_components=4, proposals=None)
    settings, visit = [], Learner.visit

    def noting(self, *args, **kwargs):
        settings.append(self.settings)
        visit(self, *args, **kwargs)

    monkeypatch.setattr(Learner, "visit", noting)
    model.set_params(n_nonzero_resp=1, n_jobs=1, max_components=7).partial_fit(BATCHES[0])
    assert np.count_nonzero(model.predict_proba(X), axis=1).max() == 1
    assert set(settings) == {LearnerSettings(max_components=7, n_nonzero=1, n_threads=1)}


@pytest.mark.extended
@pytest.mark.parametrize("n_before", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_goes_on_the_same_after_a_pickle(n_before):
    stream = [*BATCHES, *BATCHES]
    model = DPMixtureVB(5, random_state=0)
    for batch in stream[:n_before]:
        model.partial_fit(batch)
    copy = pickle.loads(pickle.dumps(model))
    for batch in stream[n_before:]:
        model.partial_fit(batch)
        copy.partial_fit(batch)
        assert_same_state(public_state(copy), public_state(model))


@pytest.mark.extended
def test_batches_of_more_rows_than_a_stream_keeps():
    """No pool holds any of these, and clusters that appear are found in the batch that brings them."""
    rng, found = np.random.default_rng(0), []
    model = DPMixtureVB(random_state=0)
    for n_clusters in (2, 2, K):
        labels = rng.integers(n_clusters, size=MixtureModel.pool_rows + 1)
        model.partial_fit(CENTERS[labels] + rng.normal(size=(len(labels), 3)))
        found.append(model.n_components_)
    assert found == [2, 2, K]
    assert model._learner_.stream.pool == ()


@pytest.mark.extended
def test_memory_stays_flat_without_memo(monkeypatch):
    monkeypatch.setattr(streaming, "_KEPT_LAPS", 10)
    monkeypatch.setattr(MixtureModel, "pool_rows", 200)
    rng = np.random.default_rng(0)
    model = DPMixtureVB(memoize=False, random_state=0)
    sizes = []
    for i in range(18):
        model.partial_fit(CENTERS[rng.integers(K, size=50)] + rng.normal(size=(50, 3)))
        sizes.append(len(pickle.dumps(model)))
        assert mass(model) == pytest.approx(50.0 * (i + 1))
    assert len(model._learner_.memo) == 1 + 4  # the past, and the pool
    assert max(sizes[12:]) < 1.2 * max(sizes[6:12])
    assert model.n_components_ == K
    assert len(model.history_) <= 10
    assert model.n_iter_ >= 18  # laps go on being counted


@pytest.mark.extended
def test_memory_does_not_grow_with_visits():
    model = looped(2)
    model.partial_fit(BATCHES[0])  # a lap begins, and never ends
    sizes = []
    for _ in range(15):
        model.partial_fit(BATCHES[1])
        sizes.append(len(pickle.dumps(model)))
    assert sizes[-1] < 1.1 * sizes[1]


def test_a_model_at_rest_holds_no_rows():
    few, many = (
        mixture().partial_fit(blobs(n)[0], batch_id=0).partial_fit(blobs(n)[0], batch_id=0)
        for n in (300, 3000)
    )
    assert len(pickle.dumps(many)) - many.labels_.nbytes < len(pickle.dumps(few)) + 2000


@pytest.mark.quarter
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB])
def test_a_batch_that_is_refused_changes_nothing(estimator):
    """Not even what the learner takes for rows: its likelihood and the form of its statistics."""
    X = np.random.default_rng(23).normal(size=(60, 3))
    model = estimator(random_state=0).partial_fit(X)
    bad = X.copy()
    bad[1, 0], bad[2, 1] = np.nan, -1e20
    learner = model._learner_
    likelihood, s = learner.model.likelihood, learner.totals.s
    with pytest.raises(ValueError, match="standard deviations away"):
        model.partial_fit(bad)
    assert model._learner_.model.likelihood is likelihood
    assert model._learner_.totals.s is s
    bad[2, 1] = 0.0
    assert model.partial_fit(bad)._learner_.model.likelihood.has_missing


@pytest.mark.extended
@pytest.mark.parametrize("memoize", [True, False])
def test_a_batch_without_news_is_visited_once(memoize, monkeypatch):
    """Laps over the pool become rare, and nothing else is looked at twice."""
    monkeypatch.setattr(MixtureModel, "pool_rows", 500)
    rng = np.random.default_rng(0)
    model, visits, counts = DPMixtureVB(memoize=memoize, random_state=0), [], []
    visit = Learner.visit

    def noting(self, *args, **kwargs):
        visits.append(0)
        visit(self, *args, **kwargs)

    monkeypatch.setattr(Learner, "visit", noting)
    for _ in range(60):
        visits.clear()
        model.partial_fit(CENTERS[rng.integers(K, size=50)] + rng.normal(size=(50, 3)))
        counts.append(len(visits))
    assert model.n_components_ == K
    assert sum(n > 1 for n in counts[20:]) <= 1
    late = CENTERS[0] + 30.0 + rng.normal(size=(50, 3))
    visits.clear()
    model.partial_fit(late)
    assert len(visits) > 1 and model.n_components_ == K + 1
