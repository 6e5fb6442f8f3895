"""Splits of many states at once: unions against the slow way, what a search keeps, limits, what it finds."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation, StateOversplit
from sklearn_bnp.hmm import oversplit, searches
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings, Surroundings
from sklearn_bnp.hmm.nested_unions import gains_of_links, joined
from sklearn_bnp.hmm.pair_births import as_they_are
from sklearn_bnp.hmm.sampling import StateSample
from sklearn_bnp.hmm.searches import StateSearch

from . import chain_harness as h
from .harness import quiet_fit
from .test_state_neighbours import SETTINGS, sample_with_neighbours

ALONE = (StateOversplit(),)


def toys(n_states=4, seed=0, lengths=(150,) * 8, spread=6.0, **more):
    """Sequences, the state of each row, and these as responsibilities."""
    rng = np.random.default_rng(seed)
    rows, states = h.toy(rng, n_states=n_states, lengths=lengths, spread=spread, **more)
    return rows, np.concatenate(states), np.eye(n_states)[np.concatenate(states)]


def model_and_totals(rows, labels, weight=None, observation=None):
    """A `SequenceModel` and totals after a lap that starts from labels, and a sample of all rows."""
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"], observation=observation)
    if weight is not None:
        batch = batch._replace(weight=weight)
    shares = np.eye(labels.max() + 1)[labels]
    learner.start(shares.T @ h.features(learner.model.likelihood, batch))
    learner.run_lap(h.source(batch, 1))
    z, indptr = batch.prepared(learner.model.likelihood.prepare)
    return learner.model, learner.totals, StateSample(z, indptr, weight)


def search_of(rows, labels, weight=None, seed=0, n_seeds=3, n_most=50):
    model, totals, sample = model_and_totals(rows, labels, weight)
    rng, all_rows = np.random.RandomState(seed), list(range(len(totals.uids)))
    return StateSearch(model, totals, all_rows, sample, n_seeds, n_most, rng)


# ---------------------------------------------------------------------- unions


def evidence_by_hand(around, links, members):
    """Log evidence of links among unions of so many (J,) of states each, whose prior weights add up."""
    K, out = sum(members), 0.0
    for row, own in zip(links.entries, around.rows, strict=True):
        out += dirichlet(own * members / K, row, own)
    for j, row in enumerate(np.hstack([links.counts, links.exits])):
        prior = np.concatenate([around.alpha * members / K, around.exits])
        prior[j] += around.kappa
        out += dirichlet(prior, row, around.whole)
    return out


def dirichlet(prior, counts, whole):
    each = gammaln(prior + counts) - gammaln(prior)
    return each.sum() + gammaln(whole) - gammaln(whole + counts.sum())


@pytest.mark.parametrize("settings", [SETTINGS, NestedSettings(1.5, 2.0)], ids=["known", "unknown"])
def test_gains_of_links_by_hand(settings):
    """With neighbours around runs, and without."""
    rng = np.random.default_rng(0)
    likelihood, sample, _ = sample_with_neighbours(rng, n_runs=40, n_states=4)
    model = NestedModel(likelihood, likelihood.prior, sample, settings)
    labels = rng.integers(4, size=sample.n_rows)
    chain = model.labelled(np.zeros((4, likelihood.n_statistics)), labels)
    i, j = np.triu_indices(4, 1)
    found, one = gains_of_links(model.around, chain.links, i, j), np.ones(4)
    before = evidence_by_hand(model.around, chain.links, one)
    for a, b, gain in zip(i.tolist(), j.tolist(), found.tolist(), strict=True):
        groups = [(a, b) if k == a else (k,) for k in range(4) if k != b]
        members = np.array([len(group) for group in groups], dtype=float)
        after = evidence_by_hand(model.around, chain.grouped(groups).links, members)
        assert gain == pytest.approx(after - before, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_unions_raise_the_bound(weighted):
    """States cut in three at random become whole again, with all rows."""
    rows, labels, _ = toys()
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 3.0, len(rows)) if weighted else None
    model, _, sample = model_and_totals(rows, labels, weight)
    nested = NestedModel(model.likelihood, model.prior, sample, NestedSettings(1.0, 20.0))
    parts = 3 * labels + rng.integers(3, size=len(labels))
    s = searches.statistics_of_labels(model.likelihood, sample, parts, 12)
    chain = nested.pass_over(nested.labelled(s, parts))
    before, whole = nested.bound(chain), chain.s[:, -1].sum()
    chain = joined(nested, chain)
    assert len(chain.s) == 4 and nested.bound(chain) > before
    assert chain.s[:, -1].sum() == pytest.approx(whole)
    assert chain.resp.shape == (sample.n_rows, 4)
    assert joined(nested, chain) is chain


# ---------------------------------------------------------------------- a search


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_parts_are_of_single_states(share):
    """All states, or the one that is always split; the others stay as they are."""
    rows, labels, _ = toys()
    search = search_of(rows, labels)
    owner = search._now.resp.argmax(axis=1)
    parts = search._parts(share, searches._WINDOWS)
    assert_array_equal(np.unique(parts), np.arange(parts.max() + 1))
    pairs = set(zip(owner.tolist(), parts.tolist(), strict=True))
    assert len(pairs) == parts.max() + 1  # no part is of two states
    of_state = np.bincount([state for state, _ in pairs])
    assert of_state.max() <= 3 and np.count_nonzero(of_state > 1) == (4 if share else 1)


def test_states_as_they_are_are_those_of_the_whole():
    """Of all rows: statistics and transitions are the totals'."""
    rows, labels, _ = toys()
    model, totals, sample = model_and_totals(rows, labels)
    everything = list(range(4))
    nested = NestedModel(
        model.likelihood, model.prior, sample, NestedSettings.of(model, totals, everything)
    )
    chain = as_they_are(totals, everything, sample, nested.around)
    assert_allclose(chain.s, totals.s)
    assert_allclose(chain.links.counts, totals.extra.listed(totals.uids.tolist())[1:])
    assert chain.links.entries.sum() == pytest.approx(len(rows))


def test_a_search_finds_what_is_spread_over_several():
    """Two states are shared out among three wrong ones; all but the true ones have gone in the end."""
    rows, labels, _ = toys(seed=2)
    wrong = np.array([0, 0, 1, 2])[labels]
    wrong[::3] = np.array([0, 1, 2, 1])[labels[::3]]
    search = search_of(rows, wrong)
    for _ in range(6):
        search.go_on()
    assert search.gain > 100.0 and len(search.best.s) == 4
    found = search._now.resp.argmax(axis=1)
    assert all(np.bincount(found[labels == k]).max() > 0.99 * np.sum(labels == k) for k in range(4))
    assert search.best.s[:, -1].sum() == pytest.approx(len(labels))


def test_searches_come_back_from_the_optimum():
    rows, labels, _ = toys()
    search = search_of(rows, labels)
    while not search.comes_back:
        search.go_on()
        assert search.n_failures <= 20
    assert search.best is None and search.gain == 0.0


@pytest.mark.extended
def test_no_more_states_than_allowed():
    rows, labels, _ = toys()
    wrong = np.array([0, 0, 1, 1])[labels]
    search = search_of(rows, wrong, n_most=3)
    for _ in range(4):
        search.go_on()
    assert search.best is None or len(search.best.s) <= 3
    model = HDPHMMVB(init_params=np.eye(2)[wrong], max_components=3, proposals=ALONE)
    assert model.set_params(random_state=0).fit(rows).n_components_ <= 3


# ---------------------------------------------------------------------- in a fit


def oversplits(model):
    return [t for lap in model.history_ for t in lap.trials if t.kind == "oversplit"]


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind", ["gaussian", "correlated_gaussian", "autoregressive", "gaps", "weights"]
)
def test_wrong_states_are_mended(kind):
    """Alone, from states that each have rows of two true ones."""
    rows, labels, _ = toys(seed=2)
    more = {}
    if kind == "gaps":
        gaps = np.random.default_rng(0)
        rows = [np.where(gaps.random(x.shape) < 0.1, np.nan, x) for x in rows]
    if kind == "weights":
        more["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2.0, len(rows))
    observation = "gaussian" if kind in ("gaps", "weights") else kind
    if kind == "autoregressive":
        observation = AutoregressiveObservation(reg_covar=1e-6)
    wrong = np.eye(2)[np.array([0, 1, 0, 1])[labels]]
    model = HDPHMMVB(observation=observation, init_params=wrong, proposals=ALONE, random_state=0)
    model.fit(rows, **more)
    assert any(trial.accepted for trial in oversplits(model))
    truth = HDPHMMVB(observation=observation, init_params=np.eye(4)[labels], proposals=None)
    bound = truth.fit(rows, **more).lower_bound_
    assert model.lower_bound_ > bound - 5.0


@pytest.mark.extended
def test_it_never_lowers_the_bound(monkeypatch):
    """A trial that promises what it cannot keep is taken back."""
    rows, _, truth = toys(spread=1.5)
    settle = StateSearch._settled

    def spoilt(self, nested, labels, *rest, **more):
        return settle(self, nested, np.random.RandomState(0).permutation(labels), *rest, **more)

    monkeypatch.setattr(StateSearch, "_settled", spoilt)
    monkeypatch.setattr(searches, "_LEAST_GAIN", -1e9)
    model = HDPHMMVB(init_params=truth, proposals=ALONE, random_state=0)
    quiet_fit(model.set_params(max_iter=25), rows)
    bounds = np.array([lap.lower_bound for lap in model.history_[1:]])
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    assert oversplits(model)


@pytest.mark.parametrize("max_rows", [2, 300])
def test_pools_of_many_rows(max_rows, monkeypatch):
    """More rows than may be looked at: pools hold each state once, and bits do not depend on threads."""
    rows, _, truth = toys(n_states=9, lengths=(200,) * 6, seed=3)
    chosen, pools_of = [], oversplit.neighbourhoods

    def noted(loss, size, rng):
        chosen.append(pools_of(loss, size, rng))
        return chosen[-1]

    monkeypatch.setattr(oversplit, "neighbourhoods", noted)
    wrong = truth[:, :8] + truth[:, [8]] / 8
    fits = [
        HDPHMMVB(
            init_params=wrong, proposals=(StateOversplit(max_rows=max_rows),), n_jobs=n_jobs,
            random_state=0,
        ).fit(rows)
        for n_jobs in (1, 2)
    ]  # fmt: skip
    assert chosen
    for pools in chosen:
        members = sorted(itertools.chain.from_iterable(pools))
        assert members == list(range(len(members))) and max(map(len, pools)) <= 6
    first, second = fits
    assert first.lower_bound_ == second.lower_bound_
    bounds = np.array([lap.lower_bound for lap in first.history_[1:]])
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))


@pytest.mark.extended
def test_pools_share_the_room():
    """Together they add no more states than are allowed."""
    rows, labels, _ = toys(n_states=20, lengths=(300,) * 8, seed=4)
    wrong = np.eye(12)[labels % 12]
    model = HDPHMMVB(
        init_params=wrong, proposals=(StateOversplit(max_rows=1100),), max_components=14, random_state=0
    )  # fmt: skip
    assert 12 <= model.fit(rows).n_components_ <= 14
    assert max(lap.n_components for lap in model.history_) <= 14
    assert any(trial.accepted for trial in oversplits(model))


def test_an_attempt_is_known_whatever_the_order_of_states():
    """States are listed by their size, which changes."""
    rows, _, truth = toys(seed=2)
    model = HDPHMMVB(init_params=truth, proposals=ALONE, random_state=0).fit(rows)
    [proposal] = model._learner_.schedule.proposals
    assert all(list(key) == sorted(key) for key in proposal._attempts._memory)
    assert proposal._attempts.n_left_alone(model._learner_.totals.sizes) == 1


def test_pools_of_states_that_have_gone_are_left_out():
    """Other proposals may have joined or deleted states since the rows of pools were asked for."""
    rows, labels, _ = toys(n_states=4)
    model, totals, sample = model_and_totals(rows, labels)
    uids = totals.uids.tolist()
    proposal = StateOversplit()
    proposal.reset()
    proposal._pools = [(uids[0], 99), (98, 99)]

    class Late:
        on_trial, max_components = False, 50

    context = Late()
    context.totals, context.model = totals, model
    context.samples = dict.fromkeys(proposal._pools, sample)
    assert proposal.plan(context) == []
    assert not proposal.pending


def test_pools_mend_what_is_wrong():
    rows, labels, truth = toys(n_states=9, lengths=(300,) * 8, seed=4)
    wrong = np.eye(7)[np.minimum(labels, 6)]
    model = HDPHMMVB(
        init_params=wrong, proposals=(StateOversplit(max_rows=1100),), random_state=0
    ).fit(rows)
    assert any(trial.accepted and len(trial.components) < 7 for trial in oversplits(model))
    best = HDPHMMVB(init_params=truth, proposals=None, random_state=0).fit(rows)
    assert model.lower_bound_ > best.lower_bound_ - 5.0


def test_unions_of_many_states_are_work():
    """Where states are many and rows few, their unions take longer than passes over the rows."""
    rows, _, truth = toys()
    totals = HDPHMMVB(init_params=truth, proposals=None).fit(rows)._learner_.totals
    few, many = (oversplit._numbers(400, K, totals) for K in (10, 170))
    assert few < 0.01 * oversplit._MOST_NUMBERS
    assert many > oversplit._MOST_NUMBERS  # pools are searched


def test_numbers_are_limited(monkeypatch):
    """Of a fit, of each later batch of a stream, and of a pass."""
    proposal = StateOversplit()
    proposal.reset()
    proposal._numbers_left = 0
    proposal.new_data()
    assert proposal._numbers_left == StateOversplit._numbers_of_fit // 8
    rows, labels, _ = toys()
    wrong, calls, go_on = np.eye(2)[np.array([0, 1, 0, 1])[labels]], [], StateSearch.go_on

    def counted(self):
        calls.append(len(self._now.s))
        go_on(self)

    monkeypatch.setattr(StateSearch, "go_on", counted)
    monkeypatch.setattr(StateOversplit, "_numbers_of_fit", 0)
    HDPHMMVB(init_params=wrong, proposals=(StateOversplit(max_rounds=1),), random_state=0).fit(rows)
    assert len(calls) == oversplit._LEAST_SEARCHES
    calls.clear()
    rows, _, truth = toys(n_states=9, seed=3)
    pools = HDPHMMVB(init_params=truth, proposals=(StateOversplit(max_rows=300),), random_state=0)
    pools.fit(rows)
    assert not calls


def test_surroundings_are_found_once(monkeypatch):
    """They take a look at all runs of the sample, which stay the same from search to search."""
    rows, labels, _ = toys()
    n_found, init = [], Surroundings.__init__

    def counted(self, *args):
        n_found.append(1)
        init(self, *args)

    monkeypatch.setattr(Surroundings, "__init__", counted)
    search = search_of(rows, labels // 2)
    for _ in range(3):
        search.go_on()
    assert search.best is not None and len(n_found) == 1


def test_a_single_state_has_nothing_to_rearrange():
    rows = [np.random.default_rng(0).normal(size=(200, 2))]
    model = HDPHMMVB(random_state=0).fit(rows)
    assert model.n_components_ == 1 and not oversplits(model)


@pytest.mark.extended
def test_streams_and_pickles():
    """In a stream it goes over what is in the pool, and a pickled stream goes on with the same bits."""
    rows, _, _ = toys(n_states=5, seed=5, lengths=(80,) * 8)
    model, other = (HDPHMMVB(random_state=0) for _ in range(2))
    for x in rows:
        model.partial_fit([x])
        other = pickle.loads(pickle.dumps(other)).partial_fit([x])
    assert model.lower_bound_ == other.lower_bound_ and model.n_components_ == 5
    proposal = StateOversplit()
    proposal.reset()
    proposal.last_resort()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert proposal.pending and proposal.wants_unions(model._learner_.totals)


@pytest.mark.parametrize(
    "parameters", [{"n_seeds": 1}, {"patience": 0}, {"max_rows": 1}, {"max_rounds": 0}]
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        HDPHMMVB(proposals=(StateOversplit(**parameters),)).fit([np.eye(5)])
