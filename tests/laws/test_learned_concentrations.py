"""Laws of concentrations that are learned: of documents about the corpus, and of the rows of chains."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklearn_bnp import HDPHMMVB, GaussianObservation, HDPTopicVB
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import Snapshot
from sklearn_bnp.hmm.setup import with_present_parameters
from sklearn_bnp.hmm.weights import HDPChains
from sklearn_bnp.topics.weights import HDPDocuments
from tests.variants import variants

from . import chain_harness as h
from .test_chain_allocation import random_counts as random_transitions
from .test_hdp_topic_allocation import columns_of, random_counts

# The most that a concentration moves in a step, and in a lap, as a logarithm.
STEP, LAP = 0.75, 1.5
# Slopes below this move nothing, in nats.
SLOPE = 0.1
ROWS = ("concentration", "start_concentration", "stickiness")


def documents(seed):
    return HDPDocuments(1.0, 1.0), columns_of(random_counts(np.random.default_rng(seed), 80, 4))


def transitions(seed):
    return HDPChains(1.0, 1.0, 1.0, 5.0), random_transitions(np.random.default_rng(seed), 5)


CASES = [(documents, ("doc_concentration",)), (transitions, ROWS), (transitions, ROWS[:1])]


@pytest.mark.parametrize(("case", "names"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_a_step_never_lowers_the_objective(case, names, seed):
    """It is a bounded step in what is learned, repeated steps end, and there no other value is better."""
    allocation, counts = case(seed)
    sticks, _ = allocation.optimise(counts)
    for _ in range(40):
        better = allocation.with_learned(names, sticks, counts)
        if better is allocation:
            break
        assert better.objective(sticks, counts) > allocation.objective(sticks, counts)
        for field in fields(allocation):
            moved = abs(np.log(getattr(better, field.name) / getattr(allocation, field.name)))
            assert moved <= (STEP + 1e-9 if field.name in names else 0.0)
        allocation = better
    assert better is allocation
    value = allocation.objective(sticks, counts)
    for name in names:
        for factor in (0.8, 1.25):
            other = replace(allocation, **{name: factor * getattr(allocation, name)})
            assert other.objective(sticks, counts) < value + SLOPE * abs(np.log(factor))


def test_a_concentration_that_data_do_not_tell_stays():
    """A single first state says nothing of how first states differ between sequences."""
    counts = np.array([[1.0, 0.0], [300.0, 20.0], [20.0, 300.0]])
    allocation = HDPChains(1.0, 1.0, 1.0, 5.0)
    sticks, _ = allocation.optimise(counts)
    better = allocation.with_learned(ROWS, sticks, counts)
    assert better.start_concentration == 1.0
    assert better.stickiness > 5.0


# ---------------------------------------------------------------------- models


def sequences(seed, n=8, length=60):
    return h.toy(np.random.default_rng(seed), lengths=(length,) * n, spread=5.0)[0]


def corpus(seed, n_docs=150, n_tokens=30):
    """Documents that mostly have one of three topics each."""
    rng = np.random.default_rng(seed)
    topics = np.kron(np.eye(3), np.full(5, 0.2))
    shares = rng.dirichlet(np.full(3, 0.1), size=n_docs)
    return np.array([rng.multinomial(n_tokens, p @ topics) for p in shares])


def hmm(**parameters):
    return HDPHMMVB(random_state=0, **parameters)


def topics(**parameters):
    return HDPTopicVB(random_state=0, **parameters)


NAMES = {
    "doc_topic_prior": ("doc_topic_prior_", topics, corpus),
    "transition_concentration": ("transition_concentration_", hmm, sequences),
    "start_concentration": ("start_concentration_", hmm, sequences),
    "stickiness": ("stickiness_", hmm, sequences),
}


@pytest.mark.extended
@pytest.mark.parametrize("parameter", NAMES)
def test_a_number_is_kept_and_auto_is_learned(parameter):
    attribute, make, data = NAMES[parameter]
    X = data(0)
    learned = make().fit(X)
    assert learned.n_components_ == 3
    value = getattr(learned, attribute)
    first = 5.0 if parameter == "stickiness" else 1.0
    assert value != first
    given = make(**{parameter: 2.0 * first}).fit(X)
    assert getattr(given, attribute) == 2.0 * first
    # the best value is at least as good as any other, up to what steps leave undone
    assert learned.lower_bound_ > given.lower_bound_ - 0.5
    assert getattr(clone(learned), parameter) == "auto"


@pytest.mark.parametrize("make", [hmm, topics])
def test_one_component_learns_nothing(make):
    X = corpus(1) if make is topics else sequences(1)
    model = make(proposals=None).fit(X)
    if make is topics:
        assert model.doc_topic_prior_ == 1.0
    else:
        learned = (model.transition_concentration_, model.start_concentration_, model.stickiness_)
        assert learned == (1.0, 1.0, 5.0)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("make", "n_components"), variants(product([hmm, topics], [1, 6]), slow=((topics, 1), (hmm, 6)))
)
def test_bounds_never_fall_and_steps_are_bounded(make, n_components):
    """Lap by lap, in three batches; `partial_fit` with the same batches makes laps as `fit` does."""
    X = corpus(2) if make is topics else sequences(2)
    model, attributes = make(n_components=n_components, n_batches=3, tol=1e-7), []
    model.fit(X)
    attributes = [a for a, other, _ in NAMES.values() if other is make]
    bounds = np.array([lap.lower_bound for lap in model.history_])
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])

    stream = make(n_components=n_components)
    batches = [X[i::3] for i in range(3)]
    for i, batch in enumerate(batches):
        stream.partial_fit(batch, batch_id=i)
    before, bounds = None, []
    for _ in range(8):
        for i, batch in enumerate(batches):
            stream.partial_fit(batch, batch_id=i)
        values = np.log([getattr(stream, a) for a in attributes])
        if before is not None:
            assert np.abs(values - before).max() <= LAP + 1e-9
        before = values
        bounds.append(stream.lower_bound_)
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])
    assert stream.n_components_ == model.n_components_


@pytest.mark.filterwarnings("ignore:HDPTopicVB ends with one topic")
def test_births_that_come_to_nothing_leave_no_trace():
    """Of words without topics; components on trial learn, and what they learned goes with them."""
    X = np.random.default_rng(8).poisson(2.0, (60, 20))
    model = topics().fit(X)
    assert model.n_components_ == 1
    assert model.doc_topic_prior_ == 1.0
    assert not any(lap.accepted for lap in model.history_)


def test_topics_settle_first_in_fits_that_start_from_several():
    X = corpus(3)
    for laps in range(1, 4):
        with pytest.warns(ConvergenceWarning):
            model = topics(n_components=3, proposals=None, max_iter=laps, tol=0.0).fit(X)
        assert model.doc_topic_prior_ == 1.0
    assert topics(n_components=3, proposals=None).fit(X).doc_topic_prior_ != 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_lap_that_changes_nothing_is_the_end_even_if_no_gain_is_too_small(dtype):
    """With ``tol=0``: the concentration is learned, and the fit does not go on to ``max_iter``."""
    rng = np.random.default_rng(0)
    labels = np.arange(1200) // 60 % 6
    X = (rng.normal(size=(6, 3)) * 1000.0)[labels] + rng.normal(size=(1200, 3))
    model = HDPTopicVB(
        6, observation=GaussianObservation("diag"), init_params=np.eye(6)[labels],
        proposals=None, tol=0.0, max_iter=200, random_state=0,
    ).fit(X.astype(dtype), groups=np.arange(1200) // 300)  # fmt: skip
    assert model.doc_topic_prior_ != 1.0
    assert model.n_iter_ < 200


@pytest.mark.parametrize("make", [hmm, topics])
def test_components_in_another_order_keep_their_weights(make):
    """Sticks start from masses only where a component is new or retires."""
    data = sequences if make is hmm else corpus
    learner = make().fit(data(4))._learner_
    others = learner.totals.take(np.arange(len(learner.totals.uids))[::-1])
    there = learner.model.adopting(others, {})
    assert there.allocation_term(others) >= learner.model.allocation_term(others)
    again = there.adopting(learner.totals, {})
    loss = learner.model.allocation_term(learner.totals) - again.allocation_term(learner.totals)
    assert loss < 1e-4


def test_a_lap_taken_back_restores_what_was_learned():
    """Birth laps that fail leave the concentrations of before, as they leave all else."""
    learner = Learner(hmm().fit(sequences(4))._learner_)
    before = learner.model
    learner._before = Snapshot(learner.totals, learner.memo.copy(), before, np.inf)
    poorer = replace(before.allocation, stickiness=0.1)
    _, learner.model = before._replace(allocation=poorer).in_order(learner.totals)
    assert learner.model.allocation.stickiness != before.allocation.stickiness
    scheduler = learner.scheduler
    learner._end_trial(scheduler.judge(learner.model, learner.totals, learner.memo))
    assert learner.model is before


def test_partial_fit_goes_on_with_what_was_learned():
    X = sequences(5)
    model = hmm().fit(X[:4])
    learned = model.stickiness_, model.transition_concentration_
    model.partial_fit(X[4:])
    now = model.stickiness_, model.transition_concentration_
    assert np.abs(np.log(now) - np.log(learned)).max() <= 6 * LAP
    assert model.set_params(stickiness=3.0).partial_fit(X[:1], batch_id="other").stickiness_ == 3.0


def test_grid_search_may_compare_auto_with_numbers():
    search = GridSearchCV(topics(), {"doc_topic_prior": ["auto", 0.1]}, cv=2)
    search.fit(corpus(6, n_docs=40))
    assert search.best_params_["doc_topic_prior"] in ("auto", 0.1)


def test_finite_priors_learn_nothing():
    model = hmm(n_components=3, allocation="dirichlet").fit(sequences(7))
    values = model.transition_concentration_, model.start_concentration_, model.stickiness_
    assert values == (1.0, 1.0, 50.0)
    lda = topics(n_components=4, allocation="dirichlet", proposals=None).fit(corpus(7))
    assert lda.doc_topic_prior_ == 0.25


def levels_of_three_states():
    rng = np.random.RandomState(0)
    level = 6.0 * (np.arange(80) // 20 % 3)[:, np.newaxis]
    return [level + rng.normal(size=(80, 2)) for _ in range(6)]


def test_stochastic_steps_learn_no_concentrations():
    """They know no objective to learn by, and keep the values of priors that do not learn."""
    model = HDPHMMVB(3, learning_method="stochastic", n_batches=3, max_iter=5, random_state=0).fit(
        levels_of_three_states()
    )
    found = model.transition_concentration_, model.start_concentration_, model.stickiness_
    assert found == (1.0, 1.0, 50.0)


@pytest.mark.parametrize(
    "given",
    [{"stickiness": 1000.0}, {"weight_concentration_prior": 1.5}],
    ids=lambda g: next(iter(g)),
)
def test_a_number_set_on_the_way_leaves_what_others_have_learned(given):
    model = HDPHMMVB(random_state=0).fit(levels_of_three_states())
    before = model._learner_.model
    after = with_present_parameters(before, model.set_params(**given)._chain_prior(), False)
    assert after.allocation != before.allocation
    for name in after.learned:
        assert getattr(after.allocation, name) == getattr(before.allocation, name)
    assert after.learned == tuple(name for name in before.learned if name not in given)
