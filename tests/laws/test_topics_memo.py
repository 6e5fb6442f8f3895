"""What topic models remember of batches is what all responsibilities would give from scratch."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp.engine import learner as learner_module
from sklearn_bnp.engine import random_keys
from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.engine.proposal import Context, Proposal
from sklearn_bnp.engine.scheduler import Accepted
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.trials import AdoptTrial, Policy
from sklearn_bnp.topics import sampling as sampling_module
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.delete import TopicDelete
from sklearn_bnp.topics.documents import EVERYTHING
from sklearn_bnp.topics.sampling import DocumentSampling
from sklearn_bnp.topics.starts import create_topics

from .harness import finding_of, findings_of, shuffled, totals_under
from .topic_harness import assert_same_bag, topic_learner
from .topic_kinds import KINDS, PRIORS
from .topic_shadow import TopicShadow

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


class Adopt(Proposal):
    """Lets every topic give way to copies of itself, each lap."""

    kind = "birth"

    def __init__(self, n_copies=2, retires=True):
        self.n_copies, self.retires = n_copies, retires

    def reset(self):
        self.verdicts = []

    def plan(self, context: Context):
        totals, trials = context.totals, []
        for uid, s in zip(totals.uids.tolist()[:3], totals.s[:3], strict=False):
            shares = context.rng.dirichlet(np.ones(self.n_copies))
            noise = context.rng.uniform(0.8, 1.25, size=(self.n_copies, 1))
            created = context.new_uids(self.n_copies)
            seeds = shares[:, np.newaxis] * s * noise
            trials.append(AdoptTrial(self.kind, uid, created, seeds, retires=self.retires))
        return trials

    def judged(self, trial, accepted, mass, gain):
        self.verdicts.append(accepted)


PROPOSALS = {
    "birth": lambda: [TopicBirth(min_tokens=20), Merge(max_members=2)],
    "merge": lambda: [Merge(max_members=2)],
    "delete": lambda: [TopicDelete()],
    "adopt": lambda: [Adopt(), Merge(max_members=2), TopicDelete()],
    "all": lambda: [TopicBirth(n_seeds=4, min_tokens=20), Merge(max_members=2), TopicDelete()],
}
# Proposals, topics at first, and laps.
SCENARIOS = [("birth", 1, 6), ("merge", 6, 3), ("delete", 6, 3), ("all", 9, 4)]


@pytest.fixture(params=[HDP, DIRICHLET], ids=lambda prior: prior.name)
def prior(request):
    return request.param


def followed(
    kind, prior, *, proposals="all", n_components=6, n_batches=3, seed=1, n_docs=24, **more
):
    """A learner with its shadow."""
    corpus = kind.corpus(np.random.default_rng(seed), n_docs, spread=more.pop("spread", 1.0))
    follow = topic_learner(
        kind, prior, corpus, n_components, proposals=PROPOSALS[proposals](), n_batches=n_batches,
        seed=seed, **more,
    )  # fmt: skip
    return follow, TopicShadow(follow)


def assert_follows(learner, shadow, *, names=()):
    """Totals, the sum of the memory and single batches are what the responsibilities say."""
    assert_same_bag(learner.totals, shadow.totals())
    assert_same_bag(totals_under(learner, learner.memo.copy()), shadow.totals())
    for name in names:
        bag = learner.memo.copy().get(name, learner.totals.uids)
        assert_same_bag(bag, shadow.bag(name).aligned(learner.totals.uids))


# ---------------------------------------------------------------------- laps


@pytest.mark.quarter
@pytest.mark.parametrize("proposals, n_components, n_laps", SCENARIOS)
def test_totals_are_those_of_all_responsibilities(kind, prior, proposals, n_components, n_laps):
    """After each lap: totals, memory, each batch, and the objective summed by hand (5.29).

    With births that are adopted, undone or taken back, merges and deletes.
    """
    follow, shadow = followed(kind, prior, proposals=proposals, n_components=n_components)
    learner = follow.learner
    for _ in range(n_laps):
        learner.run_lap(follow.source)
        assert_follows(learner, shadow, names=range(len(follow.source)))
        assert_allclose(learner.lower_bound, shadow.objective(), rtol=1e-9)


@pytest.mark.parametrize("prior", [PRIORS[1], PRIORS[3]], ids=lambda prior: prior.name)
def test_they_are_so_for_other_parameters(kind, prior):
    follow, shadow = followed(kind, prior, proposals="all", n_components=9)
    for _ in range(4):
        follow.learner.run_lap(follow.source)
        assert_follows(follow.learner, shadow)
        assert_allclose(follow.learner.lower_bound, shadow.objective(), rtol=1e-9)


@pytest.mark.extended
def test_every_kind_of_change_was_followed():
    """So the laws here are not empty: together the scenarios take every way that there is."""
    accepted, retired, taken_back = set(), 0, 0
    for kind in KINDS:
        for proposals, n_components, n_laps in SCENARIOS:
            follow, shadow = followed(kind, HDP, proposals=proposals, n_components=n_components)
            for _ in range(n_laps):
                follow.learner.run_lap(follow.source)
            accepted.update(shadow.accepted)
            retired += shadow.n_retired
            taken_back += shadow.taken_back
    assert accepted == {"merge", "delete", "undo"}
    assert retired > 0
    assert taken_back > 0


@pytest.mark.parametrize("proposals, n_components", [("birth", 1), ("adopt", 4)])
def test_totals_in_the_middle_of_a_lap(kind, proposals, n_components):
    """Batches at different truncations: those not visited yet know nothing of what was adopted."""
    follow, shadow = followed(
        kind, HDP, proposals=proposals, n_components=n_components, n_batches=4
    )
    learner = follow.learner
    learner.run_lap(follow.source)
    n_adoptions = 0
    for _ in range(2):
        learner.begin_lap()
        initial = learner.initial
        n_adoptions += len(initial)
        for batch in shuffled(learner, follow.source):
            learner.visit(batch)
            expected = shadow.totals()
            for rows in initial:  # tokens count twice while the lap goes on
                expected = expected.add(rows.aligned(expected.uids))
            assert_same_bag(learner.totals, expected)
            if not initial:
                assert_allclose(learner.lower_bound, shadow.objective(), rtol=1e-9)
        learner.end_lap()
        assert_follows(learner, shadow)
    assert n_adoptions > 0


@pytest.mark.quarter
@pytest.mark.parametrize("visits", [[0, 1], [2, 0, 2]])
@pytest.mark.parametrize("proposals, n_components", [("birth", 1), ("merge", 6), ("adopt", 5)])
def test_laps_that_leave_batches_out(kind, proposals, n_components, visits):
    """Sums and counts stay exact, and entropies that nobody saw are lower bounds.

    The batches left out keep what a split replaced; whole laps afterwards make all exact again.
    """
    follow, shadow = followed(kind, HDP, proposals=proposals, n_components=n_components, n_docs=15)
    learner = follow.learner
    learner.run_lap(follow.source)
    for _ in range(2):
        learner.begin_lap()
        for i in visits:
            learner.visit(follow.source.batch(i))
        learner.end_lap()
        expected, total = shadow.totals(), totals_under(learner, learner.memo.copy())
        for bag in (learner.totals, total):
            assert_same_bag(bag, expected, entropy=False)
            slack = 1e-9 * expected.n.sum()
            assert np.all(bag.entropy <= expected.entropy + slack)
        by_hand = shadow.objective()
        assert learner.lower_bound <= by_hand + 1e-10 * abs(by_hand)
    for _ in range(2):
        learner.run_lap(follow.source)
    assert_follows(learner, shadow, names=range(3))
    assert_allclose(learner.lower_bound, shadow.objective(), rtol=1e-9)


def test_tokens_are_neither_lost_nor_invented(kind):
    """Each document's counts sum to its length through any proposals; nothing is negative."""
    follow, _ = followed(kind, HDP, proposals="all", n_components=9)
    corpus, learner = follow.corpus, follow.learner
    lengths = np.bincount(corpus.doc, corpus.weight, minlength=corpus.n_docs)
    for _ in range(5):
        learner.run_lap(follow.source)
        totals = learner.totals
        uids = totals.uids.tolist()
        counts = [totals.extra.parts[i].dense(uids) for i in range(len(follow.source))]
        assert_allclose(np.concatenate(counts).sum(axis=1), lengths, rtol=1e-9)
        assert_allclose(sum(c.sum(axis=0) for c in counts), totals.n, rtol=1e-9)
        assert np.all(totals.n > 0) and np.all(totals.entropy >= -1e-9)


def test_names_are_never_used_again(kind):
    follow, _ = followed(kind, HDP, proposals="all", n_components=9)
    gone, before = set(), set()
    for _ in range(5):
        follow.learner.run_lap(follow.source)
        uids = follow.learner.totals.uids.tolist()
        now = set(uids)
        assert len(now) == len(uids)
        assert now.isdisjoint(gone)
        gone |= before - now
        before = now


# ---------------------------------------------------------------------- trials


def test_trials_know_what_they_would_leave_behind(kind, prior):
    """Successors of each merge and delete, accepted or not, are those of the responsibilities."""
    follow, shadow = followed(kind, prior, proposals="all", n_components=7)
    learner, seen = follow.learner, []
    for _ in range(4):
        learner.begin_lap()
        for batch in shuffled(learner, follow.source):
            learner.visit(batch, update=len(shadow.lap_values) > 0)
        for trial in learner.scheduler.trials:
            if trial.policy is Policy.WITH_LAP:
                continue
            totals = shadow.totals()  # without what adoptions count twice
            outcome = trial.outcome(totals, findings_of(learner, trial))
            found, implied = outcome.successors, shadow.implied(Accepted(trial, outcome))
            assert_same_bag(found, implied, mass=totals.n.sum())
            seen.append("undo" if trial.policy is Policy.UNDO else trial.kind)
            old = totals.take(totals.positions(trial.removed))
            tokens = old.s.sum(axis=0)
            assert_allclose(found.s.sum(axis=0), tokens, atol=1e-9 * np.abs(totals.s).sum())
            for name, part in found.extra.parts.items():
                had = old.extra.parts[name].dense(trial.removed)
                has = part.dense(trial.created)
                assert_allclose(has.sum(axis=1), had.sum(axis=1), atol=1e-9)
                if trial.kind == "delete":  # documents without the target stay as they are
                    same = had[:, trial.removed.index(trial.target)] == 0
                    assert_allclose(has[same], had[same][:, 1:], rtol=1e-12)
        learner.end_lap()
    assert {"merge", "delete"} <= set(seen)


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("n_copies", [1, 3])
def test_retired_topics_keep_nothing(kind, prior, n_components, n_copies):
    """After the lap in which others take their place they have no mass at all, in no document."""
    corpus = kind.corpus(np.random.default_rng(3), 24)
    follow = topic_learner(
        kind, prior, corpus, n_components, proposals=[Adopt(n_copies)], n_batches=3
    )
    learner, shadow = follow.learner, TopicShadow(follow)
    learner.run_lap(follow.source)
    learner.run_lap(follow.source, propose=False)
    for _ in range(2):
        learner.scheduler.trials = learner.scheduler.proposals[0].plan(
            learner._context({}, (np.empty((0, 0)), np.empty((0, 0))))
        )
        targets = [trial.target for trial in learner.scheduler.trials]
        learner.begin_lap()
        for batch in shuffled(learner, follow.source):
            learner.visit(batch)
        rows = learner.totals.positions(targets)
        # up to the rounding with which batches were added and taken away
        assert_allclose(learner.totals.s[rows], 0.0, atol=1e-9 * np.abs(learner.totals.s).sum())
        for i in range(len(follow.source)):
            bag = learner.memo.get(i, learner.totals.uids)
            assert not bag.s[rows].any() and not bag.entropy[rows].any()
            assert not set(targets) & bag.extra.parts[i].columns.keys()
        learner.add_up_anew()
        learner.end_lap(propose=False)
        assert_follows(learner, shadow, names=range(3))
        assert_allclose(learner.lower_bound, shadow.objective(), rtol=1e-9)
        if not shadow.retired:  # taken back
            assert set(targets) <= set(learner.totals.uids.tolist())
        else:
            assert not set(targets) & set(learner.totals.uids.tolist())


def test_adoption_without_retirement(kind):
    """Then documents go over to the new topics, or do not, as they like."""
    corpus = kind.corpus(np.random.default_rng(3), 24)
    follow = topic_learner(kind, HDP, corpus, 2, proposals=[Adopt(2, retires=False)], n_batches=3)
    shadow = TopicShadow(follow)
    for _ in range(4):
        follow.learner.run_lap(follow.source)
        assert_follows(follow.learner, shadow, names=range(3))
        assert_allclose(follow.learner.lower_bound, shadow.objective(), rtol=1e-9)
    verdicts = follow.learner.scheduler.proposals[0].verdicts
    assert verdicts
    assert np.all(np.diff(shadow.lap_values) >= -1e-9 * np.abs(shadow.lap_values[1:]))


def test_lap_taken_back_leaves_everything_as_it_was(kind, prior, monkeypatch):
    """Totals, memory, sticks and objective; so many copies of the true topics lose, at first."""
    monkeypatch.setattr(learner_module, "MOST_PASSES", 1)
    corpus = kind.corpus(np.random.default_rng(4), 24)
    resp = 0.8 * np.eye(3)[corpus.labels] + 0.2 / 3
    follow = topic_learner(kind, prior, corpus, 3, proposals=[Adopt(30)], n_batches=3, resp=resp)
    learner, shadow = follow.learner, TopicShadow(follow)
    for _ in range(6):
        learner.run_lap(follow.source, propose=False)
    learner.scheduler.trials = learner.scheduler.proposals[0].plan(
        learner._context({}, (np.empty((0, 0)), np.empty((0, 0))))
    )
    before, value = learner.totals, learner.lower_bound
    learner.run_lap(follow.source, propose=False)
    assert shadow.taken_back == 1
    assert_same_bag(learner.totals, before, rtol=1e-14)
    assert_follows(learner, shadow, names=range(3))
    # the totals may differ in the last digits, as above, and the bound sums terms as large as itself
    assert learner.lower_bound >= value - 1e-13 * abs(value)
    assert_allclose(learner.lower_bound, value, rtol=1e-5)  # sticks may only get better


# ---------------------------------------------------------------------- samples for births


class Block:
    """Documents of entries (types) under given responsibilities, as observers see them."""

    def __init__(self, follow, batch, resp, uids):
        self.docs = batch.documents(
            0, len(batch.indptr) - 1, follow.learner.model.likelihood.prepare
        )
        self.first, self.weight, self.resp, self.uids = 0, self.docs.counts, resp, uids
        doc = np.repeat(np.arange(len(self.docs)), np.diff(batch.indptr))
        self.doc_counts = np.zeros((len(self.docs), resp.shape[1]))
        np.add.at(self.doc_counts, doc, self.weight[:, np.newaxis] * resp)


def collected(follow, resp, wanted):
    """Samples of ``wanted`` from all batches of a source."""
    K = resp.shape[1]
    totals = StatBag.zeros(np.arange(K), 2)
    totals.s[:, -1] = follow.corpus.weight @ resp
    sampling = DocumentSampling(dict.fromkeys(wanted), totals)
    start = 0
    for number, batch in enumerate(follow.source.batches()):
        rows = slice(start, start + batch.n_entries)
        block = Block(follow, batch, resp[rows], np.arange(K))
        sampling.take(number, finding_of(sampling.probe, [block], block.uids, seed=(0, number)))
        start += batch.n_entries
    return sampling.samples()


def test_samples_are_what_documents_have(kind):
    """All documents with more than a word of a topic, or half a row, and its shares in them."""
    corpus = kind.corpus(np.random.default_rng(5), 24)
    follow = topic_learner(kind, HDP, corpus, 3, n_batches=3)
    resp = np.random.default_rng(6).dirichlet([0.2, 0.5, 1.0], size=len(corpus.rows))
    samples = collected(follow, resp, [0, 2])
    assert samples.keys() == {0, 2}
    counts = np.zeros((corpus.n_docs, 3))
    np.add.at(counts, corpus.doc, corpus.weight[:, np.newaxis] * resp)
    least = 0.5 if corpus.batch.indices is None else 1.0
    for k, sample in samples.items():
        using = counts[:, k] > least
        assert len(sample.docs) == using.sum()
        expected = corpus.weight * resp[:, k] * using[corpus.doc]
        assert_allclose(sample.total, expected.sum(), rtol=2e-3)  # shares of 1e-3 and less are out
        assert sample.total <= expected.sum() * (1 + 1e-12)
        of_doc = [
            (sample.mass * sample.docs.counts)[a:b].sum() for a, b in pairwise(sample.docs.indptr)
        ]
        assert_allclose(
            of_doc, np.bincount(corpus.doc, expected, minlength=corpus.n_docs)[using], rtol=1e-2
        )


def test_samples_that_outgrow_their_room_are_cut(kind, monkeypatch):
    """Documents of many tokens are all there at first; the ones that stay are whole."""
    corpus = kind.corpus(np.random.default_rng(5), 24)
    follow = topic_learner(kind, HDP, corpus, 3, n_batches=3)
    resp = np.random.default_rng(6).dirichlet([0.2, 0.5, 1.0], size=len(corpus.rows))
    whole = collected(follow, resp, [EVERYTHING])[EVERYTHING]
    n = len(whole.mass)
    monkeypatch.setattr(sampling_module, "_MOST_ENTRIES", n)  # fewer than tokens, with weights
    assert len(collected(follow, resp, [EVERYTHING])[EVERYTHING].mass) == n
    monkeypatch.setattr(sampling_module, "_MOST_ENTRIES", n // 4)
    some = collected(follow, resp, [EVERYTHING])[EVERYTHING]
    assert 0 < len(some.mass) <= random_keys.OUTGROWN * (n // 4)
    lengths = set(np.round(whole.docs.lengths, 9))
    assert lengths.issuperset(np.round(some.docs.lengths, 9))


def test_sample_of_everything(kind):
    """Documents as they are, of more than one token; none if a batch was left out."""
    corpus = kind.corpus(np.random.default_rng(5), 24)
    follow = topic_learner(kind, HDP, corpus, 3, n_batches=3)
    resp = np.random.default_rng(6).dirichlet([0.2, 0.5, 1.0], size=len(corpus.rows))
    samples = collected(follow, resp, [1, EVERYTHING])
    assert samples.keys() == {1, EVERYTHING}
    sample, lengths = samples[EVERYTHING], np.bincount(corpus.doc, corpus.weight)
    assert_allclose(sample.docs.lengths, lengths[lengths > 1])
    assert_array_equal(sample.mass, 1.0)
    few = follow.source.batches
    follow.source.batches = lambda: list(few())[1:]
    assert collected(follow, resp, [1, EVERYTHING]).keys() == {1}


@pytest.mark.parametrize("position", [0, 1, 3])
def test_document_with_many_small_shares(position):
    """More than a token of a topic in all, but no entry with a share above the least."""
    corpus = KINDS[0].corpus(np.random.default_rng(7), 4)
    counts = np.array([30.0, 40.0] * 4)
    resp = np.full((8, 2), 0.5)
    counts[2 * position : 2 * position + 2] = 5000.0
    resp[2 * position : 2 * position + 2, 0] = 5e-4
    resp[:, 1] = 1.0 - resp[:, 0]
    batch = corpus.batch._replace(
        indptr=np.arange(0, 9, 2), counts=counts, indices=np.tile([0, 5], 4).astype(np.int32)
    )
    corpus = corpus._replace(
        batch=batch, rows=np.eye(12)[batch.indices], weight=counts, doc=np.repeat(np.arange(4), 2)
    )
    follow = topic_learner(KINDS[0], HDP, corpus, 2, resp=resp)
    sample = collected(follow, resp, [0])[0]
    create_topics(follow.learner.model, sample, 0.5, 4, np.random.RandomState(0))
    assert np.all(np.diff(sample.docs.indptr) > 0)
