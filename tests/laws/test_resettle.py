"""Laws of new starts of all documents from the topics as they are."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_bnp import HDPTopicVB, Resettle
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import ScheduleState
from sklearn_bnp.topics.seeding import sharpened, with_total

from .topic_harness import laps_without_proposals

WITHOUT = ("birth", "merge", "delete", "restart")


def unequal_topics(seed, n_topics=8, n_words=200, n_docs=200):
    """Counts of documents of about 60 tokens with a few out of topics of unequal sizes, and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    sizes = 1.0 / np.arange(1, n_topics + 1) ** 1.2
    shares = rng.dirichlet(0.1 * n_topics * sizes / sizes.sum(), n_docs)
    n_tokens = rng.poisson(60, n_docs) + 1
    return np.array(
        [rng.multinomial(n, p) for n, p in zip(n_tokens, shares @ topics, strict=True)]
    ), topics


@pytest.fixture(scope="module")
def settled():
    """The state of a fit without new starts, in two batches, and its source."""
    X, _ = unequal_topics(2)
    model = HDPTopicVB(proposals=WITHOUT, random_state=0).fit(X)
    return laps_without_proposals(model, X)


def with_resettle(state, factors, powers=()):
    """A learner that goes on from a state with a new start that is due."""
    resettle = Resettle(factors, powers)
    resettle.reset()
    resettle.last_resort()
    return Learner(replace(state, schedule=ScheduleState((resettle,))))


@pytest.mark.extended
@pytest.mark.parametrize("seed", [1, 2])
def test_documents_find_the_topics_they_have_left(seed):
    """Fits had ended 30 to 70 nats lower, with the same number of topics."""
    X, topics = unequal_topics(seed)
    given = {"init_params": topics, "n_components": len(topics), "proposals": WITHOUT}
    told = HDPTopicVB(random_state=0, **given).fit(X)
    before = HDPTopicVB(random_state=0, proposals=WITHOUT).fit(X)
    model = HDPTopicVB(random_state=0).fit(X)
    assert model.lower_bound_ > before.lower_bound_ + 20.0
    assert model.lower_bound_ > told.lower_bound_
    assert model.n_components_ == before.n_components_ == len(topics)
    assert model.doc_topic_prior_ > before.doc_topic_prior_


def in_two_languages(seed, n_topics=12, n_words=300, n_docs=400, n_tokens=100):
    """Counts of documents of which each topic has words in two vocabularies, and the topics."""
    rng = np.random.default_rng(seed)
    halves = [rng.dirichlet(np.full(n_words, 0.06), n_topics) for _ in range(2)]
    topics = 0.5 * np.hstack(halves)
    shares = rng.dirichlet(np.full(n_topics, 0.2), n_docs)
    return np.array([rng.multinomial(n_tokens, p) for p in shares @ topics]), topics


@pytest.mark.extended
def test_the_prior_of_topics_is_learned_along():
    """Under a prior that suited blends, new starts were refused: a fit ended .15 % below the truth."""
    X, topics = in_two_languages(seed=1)
    told = HDPTopicVB(len(topics), init_params=topics, random_state=0).fit(X)
    model = HDPTopicVB(random_state=0).fit(X)
    assert model.lower_bound_ > told.lower_bound_ - 5e-4 * abs(told.lower_bound_)


def test_trials_wait_for_documents_and_adapt_the_prior(settled):
    state, source = settled
    learner = with_resettle(state, (5.0,))
    learner.run_lap(source)
    (trial,) = learner.scheduler.trials
    assert trial.adapts
    assert trial.learns
    rises = [0.0, 1.0, 2.0]
    assert trial.goes_on(rises, 2.0 + 29.0)
    assert not trial.goes_on(rises, 2.0 + 31.0)


@pytest.mark.extended
def test_it_begins_with_a_greater_concentration_that_is_learned_on(settled):
    state, source = settled
    learner = with_resettle(state, (3.0,))
    learner.run_lap(source)
    [trial] = learner.scheduler.trials
    before = learner.model.allocation.doc_concentration
    assert trial.concentrations["doc_concentration"] == pytest.approx(3.0 * before)
    np.testing.assert_array_equal(trial.initial.s, learner.totals.s)
    bound = learner.lower_bound
    learner.run_lap(source)
    assert learner.history[-1].accepted == {"resettle": 1}
    assert learner.lower_bound > bound + trial.least_gain
    [record] = learner.history[-1].trials
    assert trial.least_gain < record.gain <= learner.lower_bound - bound
    assert not learner.model.waits
    assert before < learner.model.allocation.doc_concentration < 3.0 * before


def test_smaller_factors_follow_until_all_were_refused(settled):
    state, source = settled
    learner = with_resettle(state, (400.0, 200.0))
    before = learner.model.allocation.doc_concentration
    factors = []
    for _ in range(6):
        learner.run_lap(source)
        factors += [
            t.concentrations["doc_concentration"] / before for t in learner.scheduler.trials
        ]
        [resettle] = learner.scheduler.proposals
    assert factors == pytest.approx([400.0, 200.0], rel=0.05)  # it is learned meanwhile
    assert [lap.accepted for lap in learner.history[-6:]] == [{}] * 6
    resettle.last_resort()  # the same topics: nothing is left to try
    learner.run_lap(source)
    assert not learner.scheduler.trials
    assert not resettle.pending


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_sharper_topics_are_the_same_corpus(power):
    """Words stay as frequent as they are; the odds of two topics in a word are raised to the power."""
    s = with_total(np.random.default_rng(0).gamma(0.5, size=(4, 7)) + 1e-3)
    s[:, 3] = s[:, -1] - s[:, [0, 1, 2, 4, 5, 6]].sum(axis=1)
    out = sharpened(s, power)
    np.testing.assert_allclose(out[:, :-1].sum(axis=0), s[:, :-1].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(out[:, -1], out[:, :-1].sum(axis=1), rtol=1e-12)
    odds = s[1:, :-1] / s[0, :-1]
    np.testing.assert_allclose(out[1:, :-1] / out[0, :-1], odds**power, rtol=1e-10)


def test_words_that_all_topics_share_alike_stay_shared_when_topics_get_sharper():
    words = np.array([[5.0, 3.0, 0.0, 1e-9, -1e-17], [5.0, 1.0, 0.0, 2e-200, 4.0]])
    out = sharpened(with_total(words), 400.0)
    np.testing.assert_allclose(out[:, :-1], [[5, 4, 0, 1e-9, 0], [5, 0, 0, 0, 4]], atol=1e-12)


@pytest.mark.parametrize(
    ("powers", "factors"), [((50.0, 1.5), [1.0, 400.0]), ((2.0, 50.0), [1.0, 1.0, 1.0, 400.0])]
)
def test_sharper_topics_come_first_and_others_follow_if_they_help(settled, powers, factors):
    """A power of 50 is refused: topics too sharp lose documents. One of 2 helps, and is used again."""
    state, source = settled
    learner = with_resettle(state, (400.0,), powers)
    trials, found, rises = [], [], []
    for _ in range(10):
        before, s = learner.model.allocation.doc_concentration, learner.totals.s
        learner.run_lap(source)
        for trial in learner.scheduler.trials:
            trials.append(trial)
            found.append(trial.concentrations["doc_concentration"] / before)
            rises.append(sharpness(trial.initial.s) - sharpness(s))
        if not learner.scheduler.trials:
            learner.scheduler.proposals[0].last_resort()
    assert found == pytest.approx(factors, rel=0.05)  # it is learned meanwhile
    assert min(rises[:-1]) > 0.01 > abs(rises[-1])
    assert trials[0].adapts
    assert trials[0].learns


def sharpness(s):
    """Mean over tokens of the greatest share that a topic has of their word."""
    return s[:, :-1].max(axis=0).sum() / s[:, -1].sum()


def crowded(seed, n_topics=30, n_words=400, n_docs=500, n_tokens=50):
    """Counts of documents of many narrow topics, a few in each, and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.02), n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.05), n_docs)
    return np.array([rng.multinomial(n_tokens, p) for p in shares @ topics]), topics


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, 1])
def test_topics_that_are_blends_of_each_other_part(seed):
    """Each had held a tenth of others, and the bound had ended .3 % below a start from the true ones."""
    X, topics = crowded(seed)
    told = HDPTopicVB(len(topics), init_params=topics, random_state=0).fit(X)
    model = HDPTopicVB(random_state=0).fit(X)
    assert model.lower_bound_ > told.lower_bound_ - 5e-4 * abs(told.lower_bound_)


def test_what_was_refused_leaves_no_trace(settled):
    state, source = settled
    learner = with_resettle(state, (400.0,))
    learner.run_lap(source)
    before = learner.state
    learner.run_lap(source)
    [record] = learner.history[-1].trials
    assert record.verdict == "refused"
    assert record.gain < 0
    np.testing.assert_array_equal(learner.totals.s, before.totals.s)
    assert learner.model.allocation == before.model.allocation
    assert learner.lower_bound == learner.history[-2].lower_bound


def test_small_gains_are_not_worth_new_topics(settled):
    state, source = settled
    learner = with_resettle(state, (5.0,))
    learner.run_lap(source)
    [trial] = learner.scheduler.trials
    trial.least_gain = 1e4
    learner.run_lap(source)
    assert learner.history[-1].tried == {"resettle": 1}
    assert not learner.history[-1].accepted
    assert learner.lower_bound == learner.history[-2].lower_bound


@pytest.mark.quarter
@pytest.mark.parametrize("given", [{"doc_topic_prior": 0.5}, {"allocation": "dirichlet"}])
def test_concentrations_that_are_given_stay(given):
    X, _ = unequal_topics(0)
    model = HDPTopicVB(random_state=0, **given).fit(X)
    assert not any("resettle" in lap.tried for lap in model.history_)


def test_documents_of_rows_stay():
    rng = np.random.default_rng(0)
    X = 6.0 * np.eye(3)[rng.integers(3, size=300)] + rng.normal(size=(300, 3))
    model = HDPTopicVB(observation="gaussian", random_state=0).fit(X, groups=np.arange(300) // 15)
    assert model.n_components_ == 3
    assert not any("resettle" in lap.tried for lap in model.history_)


@pytest.mark.parametrize("name", ["factors", "powers"])
@pytest.mark.parametrize("given", [(1.0,), (2.0, np.inf), ("5",), (np.nan,)])
def test_factors_and_powers_are_numbers_above_one(name, given):
    model = HDPTopicVB(proposals=("birth", Resettle(**{name: given})))
    with pytest.raises(
        ValueError, match=rf"{name} of Resettle must be finite numbers above 1; got"
    ):
        model.fit(unequal_topics(0)[0])


@pytest.mark.extended
def test_a_stream_has_new_starts_when_twice_as_much_has_come():
    """Topics change with each batch; new starts for each would take longer than all laps."""
    X, _ = unequal_topics(1)
    model = HDPTopicVB(random_state=0)
    n_refused, n_laps = [], 0
    for i in range(20):
        model.partial_fit(X[10 * i : 10 * (i + 1)])
        laps, n_laps = model.history_[n_laps:], len(model.history_)
        n_refused.append(
            sum(lap.tried.get("resettle", 0) - lap.accepted.get("resettle", 0) for lap in laps)
        )
    assert 0 < np.count_nonzero(n_refused) <= 5  # batches 1, 2, 4, 8 and 16 at the latest
    assert max(n_refused) <= 4  # each power and each factor once
