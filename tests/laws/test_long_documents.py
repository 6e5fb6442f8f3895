"""Laws of long documents of few words: they end with the topics that they have, and not with more."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_bnp import AdoptTrial, HDPTopicVB, TopicRestart
from sklearn_bnp.topics.documents import EVERYTHING, Documents
from sklearn_bnp.topics.fewer_topics import SettlingTrial, are_long
from sklearn_bnp.topics.sampling import DocumentSample

from .test_topic_restarts import with_restarts
from .topic_harness import laps_without_proposals

TOPICS = np.kron(np.eye(3), np.full(3, 1 / 3))


def corpus_of(n_tokens, seed=0, n_docs=30):
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_tokens, rng.dirichlet(np.full(3, 0.3), size=n_docs) @ TOPICS)


def sample_of(X):
    X = sparse.csr_matrix(X)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    docs = Documents(indptr, X.data.astype(float), indices)
    return DocumentSample(docs, np.ones(X.nnz))


@pytest.fixture(scope="module")
def too_many():
    """The state of a fit that began with 9 topics, three for each true one, and its source."""
    X = corpus_of(30_000)
    shares = np.array([[1.0, 0.02, 0.0], [1.0, 0.0, 0.02], [1.0, 0.01, 0.01]])
    start = np.vstack([np.roll(shares, k, axis=1) for k in range(3)]) @ TOPICS
    model = HDPTopicVB(9, init_params=start, proposals=None, random_state=0).fit(X)
    return laps_without_proposals(model, X)


@pytest.mark.extended
def test_fits_end_with_the_topics_that_there_are():
    """Without fewer topics on trial they end with 7, and 180 nats below a fit from the true topics."""
    X = corpus_of(30_000, n_docs=12)
    model = HDPTopicVB(random_state=0).fit(X)
    true = HDPTopicVB(3, init_params=TOPICS, proposals=None).fit(X)
    assert model.n_components_ == 3
    assert model.lower_bound_ > true.lower_bound_ - 50
    bounds = np.array(model.lower_bounds_)
    assert np.all(np.diff(bounds) > -1e-9 * np.abs(bounds[1:]))


def test_fewer_topics_take_the_place_of_all_if_the_objective_rises(too_many):
    state, source = too_many
    learner = with_restarts(state)
    learner.run_lap(source)
    [trial] = learner.scheduler.trials
    assert isinstance(trial, SettlingTrial)
    assert set(trial.targets) == set(learner.totals.uids.tolist())
    np.testing.assert_allclose(trial.initial.s[:, -1].sum(), learner.totals.n.sum())
    before = learner.lower_bound
    learner.run_lap(source)
    assert learner.history[-1].accepted == {"restart": 1}
    assert learner.lower_bound > before + 100
    assert len(learner.totals.uids) == 3


def test_fewer_topics_that_are_refused_leave_no_trace(too_many, monkeypatch):
    """They are not looked for again among the same topics, and blends have their turn."""
    state, source = too_many
    learner = with_restarts(state)
    learner.run_lap(source)
    before = learner.state
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: np.inf)
    learner.run_lap(source)
    assert learner.history[-1].accepted == {}
    after = learner.state
    order = before.totals.positions(after.totals.uids)
    assert np.array_equal(after.totals.s, before.totals.s[order])
    learner.scheduler.last_resort()
    learner.run_lap(source)
    [trial] = learner.scheduler.trials
    assert type(trial) is AdoptTrial
    assert len(trial.created) == len(learner.totals.uids)


def test_documents_are_drawn_only_if_they_are_long(too_many):
    state, _ = too_many
    restart = TopicRestart()
    restart.reset()
    assert restart.wants(state.totals) == []
    restart.last_resort()
    assert restart.wants(state.totals) == [EVERYTHING]
    short = HDPTopicVB(3, init_params=TOPICS, proposals=None).fit(corpus_of(80))
    assert not are_long(short._learner_.totals)
    assert restart.wants(short._learner_.totals) == []


def test_documents_of_rows_are_not_drawn(monkeypatch):
    """Fewer topics are looked for among words only; copies of all rows would be drawn for nothing."""
    rng, drawn = np.random.default_rng(0), []
    wants = TopicRestart.wants
    monkeypatch.setattr(
        TopicRestart, "wants", lambda self, totals: drawn.extend(own := wants(self, totals)) or own
    )
    X = 5.0 * np.eye(4)[rng.integers(4, size=900), :2] * [1.0, -1.0] + rng.normal(size=(900, 2))
    model = HDPTopicVB(observation="gaussian", random_state=0).fit(X, groups=np.arange(900) // 300)
    assert are_long(model._learner_.totals)
    assert model.n_components_ == 3
    assert drawn == []


def test_a_thinned_sample_has_few_tokens_for_each_entry():
    X = np.array([[1000, 3000, 0], [4, 0, 2], [0, 50, 0]])
    thin = sample_of(X).thinned(5.0)
    tokens = thin.mass * thin.docs.counts
    np.testing.assert_allclose(tokens, [2.5, 7.5, 4.0, 2.0, 5.0])
    again = thin.thinned(5.0)
    np.testing.assert_allclose(again.mass, thin.mass)


def test_topics_that_have_risen_settle_before_the_next_lap():
    trial = SettlingTrial("restart", 0, (1, 2), np.ones((2, 4)))
    assert trial.is_unsettled([-100.0])
    assert trial.is_unsettled([-100.0, -97.9])
    assert not trial.is_unsettled([-100.0, -98.1])
    assert not AdoptTrial("restart", 0, (1, 2), np.ones((2, 4))).is_unsettled([-100.0, -50.0])
