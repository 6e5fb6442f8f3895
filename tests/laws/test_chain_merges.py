"""Laws of merges of states: verdicts are exact, whatever entropies do, and none that pays is missed."""

import itertools

import numpy as np
import pytest

from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.task import LocalTask, run
from sklearn_bnp.hmm import local
from sklearn_bnp.hmm.local import emission_table
from sklearn_bnp.hmm.merge import CoarseningTrial
from sklearn_bnp.hmm.sampled_steps import NO_STEPS
from sklearn_bnp.hmm.sampling import RunSampling
from sklearn_bnp.hmm.transitions import Transitions
from sklearn_bnp.hmm.unions import GroupsEdit, least_change
from tests.reference import chains

from . import chain_harness as h
from .harness import findings_of

GROUPS = [(((0, 1), 9),), (((1, 2), 9),), (((0, 3), 8), ((1, 2), 9)), (((0, 1, 2, 3), 9),)]


class Patient(CoarseningTrial):
    """A merge that is not given up before it has observed all batches."""

    foretells = False


def tracks(rng, *, n_ties=40, n_sure=80, apart=10.0):
    """Short sequences of which none tells its track, a c e or b d f; long ones show a, b, e and f.

    With c and d as one, nothing is known any more of which way each short sequence came: the
    transitions lose a bit a sequence, and the entropy gains it.
    """
    places = np.array([[0.0, 0.0], [0.0, 20.0], [0.0, 40.0]])
    short = [places + 0.1 * rng.normal(size=(3, 2)) for _ in range(n_ties)]
    long = []
    for y, x in itertools.product((0.0, 40.0), (-apart, apart)):
        rows = np.column_stack([np.full(n_sure, x), np.full(n_sure, y)])
        noise = rng.normal(size=rows.shape)
        long.append(rows + np.where(x < 0, -1, 1) * np.abs(noise) * [1, 0] + noise * [0, 1])
    # every row has its mirror image, so that neither track is the better one
    short += [x * [-1, 1] for x in short]
    long[1::2] = [x * [-1, 1] for x in long[::2]]
    return short + long


def on_tracks(*, proposals=("merge",), **settings):
    """A learner that knows the states a to f of `tracks`, not where short sequences go; and a batch."""
    rows = tracks(np.random.default_rng(0), **settings)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"], proposals=proposals)
    y, x = np.round(batch.x[:, 1] / 20.0).astype(int), batch.x[:, 0]
    sure = np.abs(x) > 2.0
    shares = np.zeros((len(x), 6))
    shares[np.arange(len(x)), 2 * y] = np.where(sure, x < 0, 0.5)
    shares[np.arange(len(x)), 2 * y + 1] = np.where(sure, x > 0, 0.5)
    n = np.count_nonzero(np.diff(batch.indptr) == 3)
    counts = np.zeros((7, 6))
    counts[0, [0, 1]] = 0.5 * n + 1
    counts[0, [4, 5]] = 1
    for a, b in ((0, 2), (1, 3), (2, 4), (3, 5)):
        counts[a + 1, b] = 0.5 * n
    for k in (0, 1, 4, 5):
        counts[k + 1, k] = np.diff(batch.indptr).max() - 1
    s = shares.T @ h.features(learner.model.likelihood, batch)
    uids = np.array(learner.new_uids(6))
    totals = StatBag(uids, s, np.zeros(6), Transitions(tuple(uids.tolist()), counts))
    learner.coef = learner.model.updated(totals).coefficients(totals)
    learner.totals = StatBag.zeros(uids, s.shape[1])
    return learner, batch


def exact_gains(learner, source):
    """Pair of uids -> what joining it would add to the objective, by a lap that tries all of them."""
    uids = learner.totals.uids.tolist()
    trials = [Patient([(p, 10**6)]) for p in itertools.combinations(sorted(uids), 2)]
    learner.scheduler.drop_trials()
    learner.scheduler.trials = trials
    learner.begin_lap()
    for part in source.batches():
        learner.visit(part, update=False)
    totals, model, gains = learner.totals, learner.model.updated(learner.totals), {}
    totals, model = model.in_order(totals)
    own = model.likelihood.evidence(model.prior, totals.s)
    for trial in trials:
        successors = trial.outcome(totals, findings_of(learner, trial)).successors
        fixed = model.likelihood.evidence(model.prior, successors.s).sum()
        fixed -= own[totals.positions(trial.removed)].sum()
        [gain] = model.replacement_gains(totals, [(trial.removed, successors)], [fixed])
        gains[trial.removed] = gain
    return gains


def posteriors_of(learner, batch):
    """Twin: a posterior of each sequence, and rows of s(x)."""
    likelihood, params = learner.model.likelihood, learner.coef
    z, indptr = batch.prepared(likelihood.prepare)
    log_table = np.log(emission_table(likelihood, params.coef, z))
    return [
        chains.by_recursion(log_table[a:b], params.log_rows[0], params.log_rows[1:])
        for a, b in itertools.pairwise(indptr)
    ], h.features(likelihood, batch)


def merged_by_hand(posteriors, s, groups, uids):
    """Twin: `StatBag` of merged pair marginals, with the entropy of their Markov chain."""
    new = [uid for uid in uids if not any(uid in members for members, _ in groups)]
    new += [created for _, created in groups]
    names = np.array([
        next((created for members, created in groups if uid in members), uid) for uid in uids
    ])  # fmt: skip
    member = (names[:, np.newaxis] == new).astype(float)
    counts = np.zeros((len(new) + 1, len(new)))
    for q in posteriors:
        counts[0] += q.resp[0] @ member
        counts[1:] += member.T @ q.pairs.sum(axis=0) @ member
    entropy = sum(chains.coarse_entropy(q, names) for q in posteriors)
    resp = np.concatenate([q.resp for q in posteriors]) @ member
    return StatBag(
        np.array(new), resp.T @ s, np.zeros(len(new)), Transitions(tuple(new), counts, entropy)
    )


@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("name", h.ALLOCATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_successors_have_the_objective_of_the_merged_posterior(name, n_batches, seed):
    rows, _ = h.toy(np.random.default_rng(seed), lengths=(12, 25, 1, 9, 30), spread=0.7 + seed)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS[name])
    h.start(learner, batch, 4, seed)
    learner.run_lap(h.source(batch, 1))
    trials = [Patient(groups) for groups in GROUPS]
    check_trials(learner, batch, trials, n_batches)


@pytest.mark.parametrize("n_batches", [1, 3])
def test_so_they_have_where_the_entropy_rises(n_batches):
    learner, batch = on_tracks(proposals=())
    trials = [Patient(groups) for groups in (*GROUPS, (((2, 3), 9),))]
    check_trials(learner, batch, trials, n_batches)
    changes = [sum(findings_of(learner, trial).values()) for trial in trials]
    assert changes[-1] > 0.6 * 80  # nats: .69 a short sequence
    assert changes[-2] < 0


def check_trials(learner, batch, trials, n_batches):
    """A lap over the batches; then all trials against the twin's objectives."""
    uids = learner.totals.uids.tolist()
    posteriors, s = posteriors_of(learner, batch)
    learner.memo = type(learner.memo)()
    learner.totals = StatBag.zeros(learner.totals.uids, s.shape[1])
    learner.scheduler.trials = trials
    learner.begin_lap()
    for part in h.source(batch, n_batches).batches():
        learner.visit(part, update=False)
    model, totals = learner.model._replace(sticks=None, uids=()), learner.totals
    for trial in trials:
        findings = findings_of(learner, trial)
        assert len(findings) == n_batches
        found = totals.replaced(trial.removed, trial.outcome(totals, findings).successors)
        expected = merged_by_hand(posteriors, s, trial.groups, uids)
        assert model.elbo(found) == pytest.approx(model.elbo(expected), rel=1e-9)
        terms, twin = model.elbo_terms(found), model.elbo_terms(expected)
        assert terms["entropy"] == pytest.approx(twin["entropy"], rel=1e-9, abs=1e-8)
        for seen in range(n_batches):
            told = merged_in_part(learner, trial, seen)
            assert model.elbo(told) <= model.elbo(expected) + 1e-8


def merged_in_part(learner, trial, n_seen):
    """Totals as the trial would have them, had it seen some of the batches alone."""
    some = dict(itertools.islice(findings_of(learner, trial).items(), n_seen))
    rest = learner.memo.rest(some, np.array(trial.removed))
    outcome = trial.outcome(learner.totals, some, rest)
    return learner.totals.replaced(trial.removed, outcome.successors)


def test_bound_of_the_change_is_never_above_it():
    """And is met where two states share all rows and tell nothing of the past."""
    rng, slack = np.random.default_rng(1), []
    for seed in range(20):
        rows, _ = h.toy(rng, lengths=(6, 1, 9), spread=rng.exponential())
        learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"])
        h.start(learner, batch, 4, seed)
        posteriors, s = posteriors_of(learner, batch)
        uids = learner.totals.uids.tolist()
        before = merged_by_hand(posteriors, s, (), uids)
        for groups in GROUPS:
            after = merged_by_hand(posteriors, s, groups, uids)
            slack.append(after.extra.entropy - before.extra.entropy - least_change(before, groups))
    assert min(slack) >= -1e-9
    halves = StatBag(
        np.arange(2), np.full((2, 1), 5.0), np.zeros(2),
        Transitions((0, 1), np.array([[0.5, 0.5], [2.25, 2.25], [2.25, 2.25]]), 10 * np.log(2.0)),
    )  # fmt: skip
    assert least_change(halves, (((0, 1), 2),)) == pytest.approx(-10 * np.log(2.0))


def test_merge_that_pays_because_the_entropy_rises_is_made():
    learner, batch = on_tracks()
    source, pair = h.source(batch, 2), (2, 3)
    gains = exact_gains(on_tracks()[0], source)
    assert [key for key, gain in gains.items() if gain > 0] == [pair]
    learner.run_lap(source)
    totals, model = learner.totals, learner.model
    where = totals.positions(pair)
    own = model.likelihood.evidence(model.prior, totals.s[where]).sum()
    both = model.likelihood.evidence(model.prior, totals.s[where].sum(axis=0, keepdims=True))[0]
    room = both - own + model.union_gains(totals, [where])[0]
    assert room < -20.0  # nats, but for the entropy
    assert [trial.groups[0][0] for trial in learner.scheduler.trials] == [pair]
    lap = learner.run_lap(source)
    assert lap.accepted == {"merge": 1}
    assert not set(pair) & set(learner.totals.uids.tolist())
    assert learner.totals.extra.entropy > totals.extra.entropy + 40.0


@pytest.mark.parametrize("name", h.ALLOCATIONS)
def test_fit_leaves_no_merge_that_pays(name):
    """Where it is the price of a state that decides, too."""
    toy = {"n_states": 6, "lengths": (150, 100), "spread": 1.5, "n_features": 3, "stay": 0.5}
    rows, _ = h.toy(np.random.default_rng(2), **toy)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS[name], proposals=("merge",))
    h.start(learner, batch, 9)
    source = h.source(batch, 2)
    learner.fit(source, 100, 1e-3)
    assert learner.converged
    gains = exact_gains(learner, source)
    assert max(gains.values(), default=0.0) <= 0.0


# ---------------------------------------------------------------------- steps that are drawn


def drawn(learner, batch, n_steps, *, n_batches=1, low_memory=False, seed=0):
    """`Steps` of a pass, exact changes for all pairs, and the pairs."""
    model, uids = learner.model._replace(low_memory=low_memory), learner.totals.uids
    pairs = list(itertools.combinations(uids.tolist(), 2))
    trials = [CoarseningTrial([(pair, 99)]) for pair in pairs]
    sampling, changes = RunSampling({(): n_steps}, learner.totals), np.zeros(len(pairs))
    for i, part in enumerate(h.source(batch, n_batches).batches()):
        probes = (*(trial.probe for trial in trials), sampling.probe)
        task = LocalTask(model, learner.coef, uids, part, probes, seed=(seed, i))
        *found, steps = run(task).findings
        changes += found
        sampling.take(i, steps)
    return sampling.uniform(), changes, pairs


def soft(seed=5, **toy):
    """A learner whose states overlap, and its batch."""
    rows, _ = h.toy(np.random.default_rng(seed), spread=1.0, **toy)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    h.start(learner, batch, 5)
    learner.run_lap(h.source(batch, 1))
    return learner, batch


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 1.0, 0.7, 3.0])], ids=["1", "w"])
def test_all_steps_make_estimates_exact(low_memory, weight, monkeypatch):
    """Of batches, sequences in parts, sequences of one row; and after some states have become one."""
    learner, batch = soft(lengths=(40, 1, 2, 90, 33))
    batch = batch._replace(weight=weight)
    monkeypatch.setattr(local, "PART_ROWS", 11)
    monkeypatch.setattr(local, "LOW_MEMORY_ROWS", 7)
    steps, exact, pairs = drawn(learner, batch, 1000, n_batches=2, low_memory=low_memory)
    assert steps.threshold == 0.0
    np.testing.assert_allclose(steps.changes(pairs), exact, atol=2e-3)
    np.testing.assert_array_equal(steps.error(exact), 0.0)
    assert np.all(np.abs(exact) <= steps.most(pairs) + 1e-2)
    i, j, k = learner.totals.uids[:3].tolist()
    joined = CoarseningTrial([((i, j), 50)])
    three = steps.changes([(i, j, k)])[0]
    assert steps.after(joined).changes([(50, k)])[0] == pytest.approx(
        three - steps.changes([(i, j)])[0]
    )
    assert steps.changes([]).shape == (0,)


def test_some_steps_make_estimates_that_are_right_on_average():
    learner, batch = soft(lengths=(400, 300))
    found, errors = [], []
    for seed in range(40):
        steps, exact, pairs = drawn(learner, batch, 60, n_batches=3, seed=seed)
        assert sum(len(part.weight) for part in steps.parts) == 60
        found.append(steps.changes(pairs))
        errors.append(steps.error(found[-1]))
        fewer = drawn(learner, batch, 90, n_batches=3, seed=seed)[0].thinned(60)
        np.testing.assert_array_equal(fewer.changes(pairs), found[-1])
    found = np.array(found)
    spread = found.std(axis=0)
    assert np.all(np.abs(found.mean(axis=0) - exact) < 4 * spread / np.sqrt(40) + 0.1)
    assert spread.max() > 1.0
    assert np.mean(np.abs(found - exact) <= np.array(errors) + 0.1) > 0.98


def test_batch_that_is_seen_again_replaces_its_steps():
    learner, batch = soft(lengths=(30, 20))
    steps, _, pairs = drawn(learner, batch, 1000)
    sampling = RunSampling({(): 1000}, learner.totals)
    for seed in range(2):
        probes = (sampling.probe,)
        task = LocalTask(
            learner.model, learner.coef, learner.totals.uids, batch, probes, seed=(seed,)
        )
        sampling.take("a", *run(task).findings)
    np.testing.assert_allclose(sampling.uniform().changes(pairs), steps.changes(pairs))


def test_no_steps_know_of_no_change():
    np.testing.assert_array_equal(NO_STEPS.changes([(0, 1), (2, 3)]), 0.0)
    np.testing.assert_array_equal(NO_STEPS.most([(0, 1)]), 0.0)


def test_an_edit_of_a_bag_without_rows_leaves_none():
    """The past of a stream whose batches are all in its pool; it adds up with batches as before."""
    edit = GroupsEdit((((0, 2), 5),), {})
    empty = edit.replay(StatBag.zeros([0, 1, 2], 4), "past")
    other = Transitions((1, 5), np.ones((3, 2)), 2.0)
    other = StatBag(empty.uids, np.ones((2, 4)), np.zeros(2), other)
    assert empty.uids.tolist() == [1, 5] and not empty.s.any()
    assert empty.add(other).extra.entropy == 2.0
    np.testing.assert_array_equal(empty.add(other).extra.listed((1, 5)), 1.0)
