"""Topic models: what never falls, and that verdicts are about that."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.engine.edits import UnionEdit, union_row
from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.engine.trial_gains import Judged, Standing
from sklearn_bnp.engine.trials import Outcome, UnionTrial
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.counts import DocumentCounts
from sklearn_bnp.topics.delete import TopicDelete
from sklearn_bnp.topics.document_terms import log_probability_of_counts
from sklearn_bnp.topics.model import LocalSchedule

from .harness import shuffled
from .topic_harness import (
    assert_same_bag,
    bag_of,
    given,
    soft_resp,
    topic_learner,
)
from .topic_kinds import KINDS, PRIORS
from .topic_shadow import TopicShadow

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


def assert_rises(values):
    """Up to rounding of 1e-9, as for mixtures."""
    values = np.asarray(values)
    falls = np.flatnonzero(np.diff(values) < -1e-9 * np.abs(values[1:]))
    assert len(falls) == 0, f"falls after {falls}: {values[falls]} -> {values[falls + 1]}"


# What a search over the sticks, or over orders of topics, may be short of the best, in nats.
SEARCH = 0.2


def used_by_few(n_docs=30):
    """`Followed` with topics of which the largest is used by few documents, and its responsibilities."""
    corpus = KINDS[0].corpus(np.random.default_rng(0), n_docs)
    few = (corpus.doc < 8)[:, np.newaxis]
    resp = np.where(few, [0.07, 0.03, 0.1, 0.8], [0.7, 0.1, 0.2, 0.0])
    corpus = corpus._replace(batch=corpus.batch._replace(resp=resp))
    return topic_learner(KINDS[0], HDP, corpus, 4, resp=resp)


def test_putting_topics_in_order_costs_nothing():
    """Of a topic that few documents use much and one that all use a little, the second has more weight."""
    follow = used_by_few()
    learner = follow.learner
    learner.begin_lap(follow.corpus.weight.sum())
    learner.visit(follow.source.batch(0), update=False)
    before = learner.model.updated(learner.totals).elbo(learner.totals)
    learner.end_lap(propose=False)
    assert learner.lower_bound >= before - 1e-9 * abs(before)
    assert np.any(np.diff(learner.totals.n) > 0)  # by mass they would have less


def test_order_of_topics_suits_the_sticks():
    """From any order: not worse than that, hardly worse than the best of all, and by weight."""
    follow = used_by_few()
    follow.learner.run_lap(follow.source, propose=False)
    model, totals = follow.learner.model, follow.learner.totals
    before, after = [], []
    for order in itertools.permutations(range(4)):
        given_order = totals.take(np.array(order))
        before.append(model.updated(given_order).elbo(given_order))
        ordered, there = model.in_order(given_order)
        after.append(there.elbo(ordered))
        assert after[-1] >= before[-1] - 1e-9 * abs(before[-1])
        rows = totals.positions(ordered.uids)
        assert sorted(rows) == [0, 1, 2, 3]
        assert_same_bag(ordered, totals.take(rows), rtol=1e-14)
        assert there.uids == tuple(ordered.uids.tolist())
        assert np.all(np.diff(there.allocation.weights(there.sticks)) < 0)
    assert max(before) - min(before) > 10 * SEARCH
    assert max(before) - min(after) < SEARCH


def test_topics_of_equal_weight_lie_by_mass():
    """Where the order is worth nothing: whatever the order before."""
    rng = np.random.default_rng(26)
    for prior in 4 * PRIORS[2:]:
        corpus = KINDS[0].corpus(rng, 12)
        follow = given(KINDS[0], prior, corpus, soft_resp(rng, len(corpus.rows), 4))
        model, totals = follow.learner.model, follow.learner.totals
        by_mass = totals.uids[np.argsort(-totals.n)]
        for order in itertools.permutations(range(4)):
            ordered, there = model.in_order(totals.take(np.array(order)))
            assert_allclose(there.elbo(ordered), model.elbo(totals), rtol=1e-12)
            assert ordered.uids.tolist() == by_mass.tolist()


SEARCHES = [
    pytest.param(lambda: [TopicBirth(min_tokens=20), Merge(max_members=2)], 1, id="up"),
    pytest.param(lambda: [Merge(max_members=2), TopicDelete()], 9, id="down"),
    pytest.param(
        lambda: [TopicBirth(n_seeds=3, min_tokens=20), Merge(max_members=2), TopicDelete()], 4,
        id="both",
    ),
]  # fmt: skip


@pytest.mark.quarter
@pytest.mark.parametrize("proposals, n_components", SEARCHES)
def test_every_lap_with_proposals(kind, prior, proposals, n_components):
    """With warm starts: from lap to lap, at each global step, and at the end of each lap."""
    corpus = kind.corpus(np.random.default_rng(7), 20, spread=1.3)
    follow = topic_learner(
        kind, prior, corpus, n_components, proposals=proposals(), n_batches=3, seed=1
    )
    shadow = TopicShadow(follow)
    for _ in range(6):
        follow.learner.run_lap(follow.source)
    assert_rises(shadow.lap_values)
    for pair in shadow.step_values:
        assert_rises(pair)
    for pair in shadow.end_values:
        assert_rises(pair)


@pytest.mark.parametrize("every, n_restarts", [(1, 5), (2, 5), (100, 0)])
def test_every_visit_after_the_first_lap(kind, prior, every, n_restarts):
    """With warm starts, whether documents start anew as well or not, at a fixed truncation."""
    corpus = kind.corpus(np.random.default_rng(8), 16)
    follow = topic_learner(
        kind, prior, corpus, 5, n_batches=4, schedule=LocalSchedule(True, every, n_restarts)
    )
    learner = follow.learner
    learner.run_lap(follow.source, propose=False)
    first, values = None, [learner.lower_bound]
    for _ in range(4):
        learner.begin_lap()
        for batch in shuffled(learner, follow.source):
            learner.visit(batch)
            values.append(learner.lower_bound)
        assert_rises(values)
        learner.end_lap(propose=False)
        assert_rises([values[-1], learner.lower_bound])
        first, values = values[0] if len(learner.history) == 2 else first, [learner.lower_bound]
    assert values[-1] > first + 1.0


def test_without_warm_starts_only_documents_may_lose(kind, prior):
    """The errata's exception: the local step. Global steps and ends of laps still never lower."""
    corpus = kind.corpus(np.random.default_rng(9), 20, spread=1.5)
    follow = topic_learner(
        kind, prior, corpus, 6, n_batches=3, schedule=LocalSchedule(warm=False),
        proposals=[Merge(max_members=2), TopicDelete()],
    )  # fmt: skip
    shadow = TopicShadow(follow)
    for _ in range(5):
        follow.learner.run_lap(follow.source)
    assert len(shadow.step_values) > 0
    for pair in shadow.step_values:
        assert_rises(pair)
    for pair in shadow.end_values:
        assert_rises(pair)


@pytest.mark.extended
def test_every_verdict_raises_the_objective():
    """Each trial accepted, with the topics settled before and after."""
    gains = []
    for seed, n_components in itertools.product((1, 2, 15), (1, 20, 30)):
        rng = np.random.default_rng(seed)
        corpus = KINDS[0].corpus(rng, 40, spread=1 + seed % 4 * 0.7, mean_length=60)
        proposals = [Merge(max_members=2), TopicDelete()]
        if n_components == 1:
            proposals = [TopicBirth(n_first_seeds=10, min_tokens=20), Merge(max_members=2)]
        follow = topic_learner(
            KINDS[0], HDP, corpus, n_components, proposals=proposals, n_batches=1 + seed % 4,
            seed=seed,
        )  # fmt: skip
        shadow = TopicShadow(follow)
        for _ in range(4):
            follow.learner.run_lap(follow.source)
        gains += [after - before for before, after in shadow.verdicts]
    assert len(gains) > 20
    assert min(gains) > -SEARCH


def test_trials_are_judged_against_topics_that_are_settled():
    """Else what a better order of all topics brings would be to the credit of each of them."""
    kind = KINDS[1]
    corpus = kind.corpus(np.random.default_rng(104), 30)
    follow = topic_learner(
        kind, PRIORS[1], corpus, 20, proposals=[Merge(max_members=2), TopicDelete()], seed=4
    )
    shadow = TopicShadow(follow)
    for _ in range(3):
        follow.learner.run_lap(follow.source)
    assert len(shadow.unsettled) > 0
    assert max(shadow.unsettled) < SEARCH


class Biased(UnionTrial):
    """A merge of which it is known what it brings: its entropy is made up."""

    def __init__(self, removed, created, bag):
        super().__init__("merge", removed, created)
        self.bag = bag

    def outcome(self, totals, findings, rest=None):
        return Outcome(self.bag, UnionEdit(self.removed, self.created, findings))


def merge_that_brings(gain, model, totals, removed, created, value=TopicShadow.settled):
    """`Biased` for two topics by their uids; ``value(model, totals)`` is what it raises by ``gain``."""
    bag = union_row(totals, removed, (created,), 0.0)
    bias = value(model, totals.replaced(removed, bag)) - value(model, totals)
    return Biased(removed, (created,), bag._replace(entropy=np.array([gain - bias])))


def six_topics(kind, prior=HDP):
    """`Followed` with topics of half of the tokens, a quarter, and so on."""
    rng = np.random.default_rng(23)
    corpus = kind.corpus(rng, 30)
    labels = rng.choice(6, size=len(corpus.rows), p=[0.5, 0.25, 0.12, 0.07, 0.04, 0.02])
    return given(kind, prior, corpus, np.eye(6)[labels])


@pytest.mark.parametrize(
    "gain, backwards",
    [
        (-2.0, False),
        (2.0, False),
        (2.0, True),
        (-2.0, True),
    ],
)
def test_verdicts_do_not_depend_on_the_order_of_topics(gain, backwards):
    """A merge that brings 2 nats is accepted as a lap ends, one that costs 2 nats is not."""
    learner = six_topics(KINDS[0]).learner
    proposal = Merge()
    proposal.reset()
    totals = learner.totals
    learner.scheduler.go_on_with([proposal], [])
    trial = merge_that_brings(gain, learner.model, totals, tuple(totals.uids[[1, 3]].tolist()), 9)
    learner.scheduler.trials, learner.scheduler._findings = [trial], [{0: None}]
    if backwards:
        learner.totals = totals.take(np.arange(6)[::-1])
    lap = learner.end_lap(propose=False)
    assert lap.tried == {"merge": 1}
    assert (9 in learner.totals.uids) == (gain > 0)


def value_under_adapted_priors(model, totals):
    """The objective of settled topics under the prior as it stands or the one that suits them."""
    adapted = model.with_adapted_prior(totals, 10)
    return max(TopicShadow.settled(m, totals) for m in (model, adapted))


@pytest.mark.parametrize(
    "gain, before",
    [
        (-2.0, False),
        (2.0, False),
        (2.0, True),
        (-2.0, True),
    ],
)
def test_verdicts_under_an_adapted_prior(gain, before):
    """They too are about topics that are settled, also when another such trial was accepted before."""
    follow = six_topics(KINDS[2])
    model, totals = follow.learner.model, follow.learner.totals
    removed = [tuple(totals.uids[rows].tolist()) for rows in ([0, 3], [1, 4])]
    state = Standing(model, totals, np.inf)

    def accepts(gain, removed, created):
        trial = merge_that_brings(
            gain, state.model, state.totals, removed, created, value_under_adapted_priors
        )
        outcome = trial.outcome(state.totals, {0: None})
        return state.accept_adapted(Judged(trial, removed, outcome, False), 0.0) is not None

    if before:
        assert accepts(300.0, removed[0], 9)
    assert accepts(gain, removed[1], 10) == (gain > 0)


def test_laps_with_adoptions_are_judged_by_what_they_end_with(kind):
    """Not by an objective that still counts retired topics, or has those adopted last."""
    corpus = kind.corpus(np.random.default_rng(24), 24)
    follow = topic_learner(kind, HDP, corpus, 1, proposals=[TopicBirth(min_tokens=20)], n_batches=2)
    learner, values = follow.learner, []
    end = learner._end_trial

    def end_trial(verdict):
        if learner._before is not None:
            totals = learner.totals.take(np.flatnonzero(learner.totals.n > 1e-8))
            values.append((learner.lower_bound, TopicShadow.settled(learner.model, totals)))
        return end(verdict)

    learner._end_trial = end_trial
    for _ in range(4):
        learner.run_lap(follow.source)
    assert len(values) > 0
    for judged, settled in values:
        assert abs(judged - settled) < SEARCH


def test_gain_of_a_replacement_is_no_more_than_it_brings(kind, prior):
    """Candidates may be judged at sticks that are not the best, never at better than the best.

    And near enough to the best for a verdict on three nats.
    """
    rng = np.random.default_rng(10)
    corpus = kind.corpus(rng, 16)
    resp = soft_resp(rng, len(corpus.rows), 5)
    follow = given(kind, prior, corpus, resp)
    model, totals = follow.learner.model, follow.learner.totals
    for removed in ((0,), (1, 3), (0, 2, 4)):
        old = np.isin(np.arange(5), removed)
        for J in (1, 2, 3):
            shares = rng.dirichlet(np.full(J, 0.3), size=len(resp))
            columns = resp[:, old].sum(axis=1, keepdims=True) * shares
            created = np.arange(10, 10 + J)
            new = bag_of(follow, corpus.batch, columns, created)
            new = new._replace(extra=DocumentCounts.of({0: new.extra.parts["all"]}))
            after = totals.replaced(removed, new)
            fixed = model.elbo(after) - model.allocation_term(after)
            fixed -= model.elbo(totals) - model.allocation_term(totals)
            [gain] = model.replacement_gains(totals, [(removed, new)], np.array([fixed]))
            here, there = TopicShadow.settled(model, totals), TopicShadow.settled(model, after)
            assert gain <= there - here + SEARCH
            # with so little else in it that all depends on the sticks
            for nats in (3.0, -3.0):
                bias = np.array([fixed + nats - (there - here)])
                [gain] = model.replacement_gains(totals, [(removed, new)], bias)
                assert (gain > 0) == (nats > 0)


def test_successor_without_mass_changes_nothing():
    """Of the topics that a target is split into, one may have lost all of its mass."""
    rng = np.random.default_rng(25)
    counts, a = rng.gamma(1.0, size=(6, 3)), np.array([0.3, 0.2, 0.1])
    expected = log_probability_of_counts(counts, a)
    wider = np.column_stack([counts, np.zeros(6)]), np.append(a, 0.0)
    assert_allclose(log_probability_of_counts(*wider), expected, rtol=1e-12)
