"""Laws of the states around runs: samples, nested models, groups of visits, heirs, what is found."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.task import LocalTask
from sklearn_bnp.engine.trials import AdoptTrial
from sklearn_bnp.estimator.soundness.laps import LapState, check_sampling
from sklearn_bnp.estimator.soundness.statistics import Names
from sklearn_bnp.hmm.creation import create_states
from sklearn_bnp.hmm.model import chain_counts
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import Links, NestedSettings, Surroundings
from sklearn_bnp.hmm.sampling import EDGE, UNKNOWN, RunProbe, RunSampling, StateSample
from sklearn_bnp.hmm.transitions import Transitions
from sklearn_bnp.hmm.visits import _dependence, _Mixture, visit_groups
from tests.reference import chains
from tests.variants import variants

from . import chain_harness as h

# Neighbours 7 and 9 with these global weights; the target has the rest.
SETTINGS = NestedSettings(1.5, 2.0, None, 0.8, {7: 0.3, 9: 0.2})


def sample_with_neighbours(rng, n_runs=12, n_states=2, spread=1.0, weighted=False):
    """Likelihood, and a `StateSample` of short runs in a line with neighbours of all kinds."""
    rows, labels = h.toy(rng, n_states=n_states, lengths=rng.integers(1, 5, n_runs), spread=spread)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"])
    z, indptr = batch.prepared(learner.model.likelihood.prepare)
    kinds = np.array(list(itertools.product([7, 9, EDGE, UNKNOWN], repeat=2)))
    around = kinds[rng.integers(len(kinds), size=n_runs)]
    weight = rng.uniform(0.5, 3.0, n_runs) if weighted else None
    sample = StateSample(z, indptr, weight, around)
    return learner.model.likelihood, sample, np.concatenate(labels)


def links_by_hand(model, resp, pairs):
    """`Links` of responsibilities (n, J), with transitions (J, J) within runs."""
    sample, around = model.sample, model.around
    J, n_runs = resp.shape[1], len(sample.indptr) - 1
    weight = np.ones(n_runs) if sample.weight is None else sample.weight
    entries = np.zeros((len(around.before), J))
    exits = np.zeros((J, len(around.after)))
    for d in range(n_runs):
        before, after = sample.neighbours[d].tolist()
        entries[around.before.index(before)] += weight[d] * resp[sample.indptr[d]]
        if after in (7, 9):
            exits[:, around.after.index(after)] += weight[d] * resp[sample.indptr[d + 1] - 1]
    return Links(pairs, entries, exits)


def dirichlet(prior, counts):
    """Log evidence of one row of counts."""
    value = np.sum(gammaln(prior + counts) - gammaln(prior))
    return value + gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())


def priors_by_hand(around, J):
    """Dirichlet parameters: of each row of entries, and of each state's row of all steps and the rest."""
    alpha, kappa, start, weights = 1.5, 2.0, 0.8, {7: 0.3, 9: 0.2}
    entries = [np.full(J, (start if uid == EDGE else alpha) / J) for uid in around.before]
    exits = [alpha * weights[uid] for uid in around.after]
    rest = alpha * sum(w for uid, w in weights.items() if uid not in around.after)
    rows = []
    for j in range(J):
        inside = np.full(J, alpha / J)
        inside[j] += kappa
        rows.append(np.concatenate([inside, exits, [rest]] if rest else [inside, exits]))
    return entries, rows


def evidence_by_hand(around, links):
    J = len(links.counts)
    entries, rows = priors_by_hand(around, J)
    value = sum(dirichlet(a, n) for a, n in zip(entries, links.entries, strict=True))
    for a, n in zip(rows, np.hstack([links.counts, links.exits]), strict=True):
        value += dirichlet(a, np.append(n, np.zeros(len(a) - len(n))))
    return value


# ---------------------------------------------------------------------- what is collected


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_neighbours_are_the_states_of_the_rows_around(rate):
    """By hand, from the states of all rows; a run of two states has no neighbour among these."""
    rows, states = h.toy(
        np.random.default_rng(1), n_states=4, lengths=(40, 3, 1) * 8, stay=0.6, spread=2.0
    )
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    s = h.features(learner.model.likelihood, batch)
    learner.start(np.eye(4)[np.concatenate(states)].T @ s)
    learner.run_lap(h.source(batch, 1))
    totals = learner.totals
    a, b, c, _ = totals.uids.tolist()
    wanted = {(c,): rate * totals.n[2], (a, b): rate * totals.n[:2].sum()}
    sampling = RunSampling(wanted, totals)
    task = LocalTask(learner.model, learner.coef, totals.uids, batch)
    seen = []

    class Noting:
        wants_alpha = False

        def observe(self, block):
            seen.append(block.resp.copy())

        def revisit(self, rows):
            pass

    observer = RunProbe.observer([sampling.probe], task)
    bag = learner.model.local_pass(batch, learner.coef, totals.uids, [observer, Noting()])
    sampling.take(0, observer.finish(bag)[0])
    names = Names(s.shape[1], int(totals.uids.max()) + 1, ())
    check_sampling(sampling, LapState(learner.model, 4, names, learner.coef), totals.uids)
    resp = np.concatenate(seen)
    z, _ = batch.prepared(learner.model.likelihood.prepare)
    place = {row.tobytes(): t for t, row in enumerate(z)}
    begins, ends = set(batch.indptr[:-1].tolist()), set((batch.indptr[1:] - 1).tolist())
    for uids, sample in sampling.samples().items():
        own = np.atleast_1d(uids).tolist()
        assert len(sample.neighbours) == len(sample.indptr) - 1 > 5
        for i, (lo, hi) in enumerate(itertools.pairwise(sample.indptr)):
            first, last = (place[sample.z[t].tobytes()] for t in (lo, hi - 1))
            for side, t, edges, step in ((0, first, begins, -1), (1, last, ends, 1)):
                uid = EDGE if t in edges else totals.uids[resp[t + step].argmax()]
                assert sample.neighbours[i, side] == (UNKNOWN if uid in own else uid)
        assert EDGE in sample.neighbours and sample.neighbours.max() >= 0


def test_neighbours_that_are_gone_are_not_known():
    sample = StateSample(
        np.zeros((3, 1)), np.arange(4), None, np.array([[EDGE, 3], [4, 5], [3, EDGE]])
    )
    assert sample.among([3, 4]).neighbours.tolist() == [[EDGE, 3], [4, UNKNOWN], [3, EDGE]]


# ---------------------------------------------------------------------- nested models


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_and_its_bound_by_hand(weighted):
    """Recursions in logarithms over each run, which starts and ends as its neighbours say."""
    likelihood, sample, labels = sample_with_neighbours(np.random.default_rng(2), weighted=weighted)
    model = NestedModel(likelihood, likelihood.prior, sample, SETTINGS)
    around, J = model.around, 2
    hard = np.eye(J)[labels]
    weight = np.ones(len(sample.indptr) - 1) if sample.weight is None else sample.weight
    features = likelihood.features(sample.z)
    chain = model.labelled((hard * sample.row_mass[:, np.newaxis]).T @ features, labels)
    counts = np.zeros((J, J))
    for w, (lo, hi) in zip(weight, itertools.pairwise(sample.indptr), strict=True):
        np.add.at(counts, (labels[lo : hi - 1], labels[lo + 1 : hi]), w)
    for got, expected in zip(chain.links, links_by_hand(model, hard, counts), strict=True):
        assert_allclose(got, expected)
    found = model.pass_over(chain)

    entries, rows = priors_by_hand(around, J)
    table = features @ likelihood.coefficients(likelihood.prior, chain.s).T
    log_first = [
        digamma(a + n) - digamma(np.sum(a + n))
        for a, n in zip(entries, chain.links.entries, strict=True)
    ]
    leaving = np.hstack([chain.links.counts, chain.links.exits])
    log_rows = np.array([
        digamma(a[: len(n)] + n) - digamma(a.sum() + n.sum())
        for a, n in zip(rows, leaving, strict=True)
    ])  # fmt: skip
    resp, pairs, entropy = [], np.zeros((J, J)), 0.0
    for w, (lo, hi), (before, after) in zip(
        weight, itertools.pairwise(sample.indptr), sample.neighbours.tolist(), strict=True
    ):
        log_table = table[lo:hi].copy()
        if after in around.after:
            log_table[-1] += log_rows[:, J + around.after.index(after)]
        first = log_first[around.before.index(before)]
        posterior = chains.by_recursion(log_table, first, log_rows[:, :J])
        resp.append(posterior.resp)
        pairs += w * posterior.pairs.sum(axis=0)
        entropy += w * chains.coarse_entropy(posterior, np.arange(J))
    resp = np.concatenate(resp)
    assert_allclose(found.resp, resp, atol=1e-9)
    for got, expected in zip(found.links, links_by_hand(model, resp, pairs), strict=True):
        assert_allclose(got, expected, atol=1e-9)
    assert_allclose(found.entropy, entropy, rtol=1e-8, atol=1e-8)
    bound = likelihood.evidence(likelihood.prior, found.s).sum() + found.entropy
    bound += evidence_by_hand(around, found.links)
    assert_allclose(model.bound(found), bound, rtol=1e-9)
    one = found.grouped([range(J)])
    gain = bound - likelihood.evidence(likelihood.prior, one.s)[0]
    assert_allclose(model.gain(found, likelihood.prior), gain - evidence_by_hand(around, one.links))


@pytest.mark.parametrize("seed", range(3))
def test_passes_never_lower_the_bound(seed):
    rng = np.random.default_rng(seed)
    likelihood, sample, labels = sample_with_neighbours(rng, n_runs=200, n_states=3)
    model = NestedModel(likelihood, likelihood.prior, sample, SETTINGS)
    labels = np.where(rng.random(len(labels)) < 0.3, rng.integers(3, size=len(labels)), labels)
    chain = model.labelled(np.eye(3)[labels].T @ likelihood.features(sample.z), labels)
    bounds = []
    for _ in range(12):
        chain = model.pass_over(chain)
        bounds.append(model.bound(chain))
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])
    assert bounds[-1] > bounds[0]


def test_bound_is_below_the_exact_evidence():
    """Against a sum over all labels of seven rows in two states."""
    rng = np.random.default_rng(3)
    rows, _ = h.toy(rng, lengths=(3, 2, 1, 1))
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"])
    likelihood = learner.model.likelihood
    z, indptr = batch.prepared(likelihood.prepare)
    around = np.array([[7, 9], [9, 7], [7, 9], [EDGE, 7]])
    model = NestedModel(
        likelihood, likelihood.prior, StateSample(z, indptr, None, around), SETTINGS
    )

    def labelled(labels):
        return model.labelled(np.eye(2)[labels].T @ likelihood.features(z), labels)

    labels = [np.array(labels) for labels in itertools.product(range(2), repeat=7)]
    exact = np.logaddexp.reduce([model.bound(labelled(each)) for each in labels])
    reached = []
    for each in labels:
        chain = labelled(each)
        bounds = [model.bound(chain)]
        for _ in range(3):
            chain = model.pass_over(chain)
            bounds.append(model.bound(chain))
        assert np.diff(bounds).min() >= -1e-9
        reached.append(bounds[-1])
    # the best path alone is no less than one in 2^7, and passes add to it
    assert exact - 7 * np.log(2.0) < max(reached) < exact


def test_unknown_neighbours_change_nothing():
    """No neighbour, or one that says nothing: all runs are entered from one place."""
    likelihood, sample, labels = sample_with_neighbours(np.random.default_rng(4), n_runs=40)
    nothing = sample._replace(neighbours=np.full_like(sample.neighbours, UNKNOWN))
    bounds = []
    for some, settings in [
        (sample._replace(neighbours=None), SETTINGS._replace(weights=None)),
        (sample, SETTINGS._replace(weights=None)),
        (nothing, NestedSettings(1.5, 2.0, weights={})),
    ]:
        model = NestedModel(likelihood, likelihood.prior, some, settings)
        assert model.around.before == [UNKNOWN] and model.around.after == []
        s = np.eye(2)[labels].T @ likelihood.features(sample.z)
        bounds.append(model.bound(model.pass_over(model.labelled(s, labels))))
    assert bounds[0] == bounds[1] == bounds[2]


# ---------------------------------------------------------------------- groups of visits


WEIGHTS = {0: 0.2, 1: 0.2, 3: 0.2, 4: 0.2}


def around_of(pairs):
    """`Surroundings` of runs of one row with these neighbours (n_runs, 2)."""
    sample = StateSample(np.zeros((len(pairs), 1)), np.arange(len(pairs) + 1), None, pairs)
    return Surroundings(NestedSettings(1.0, 5.0, None, 1.0, WEIGHTS), sample)


def visits(rng, n_runs, way):
    """Runs from 0 to 3 and from 1 to 4, but (1 - way) of them to either; their kinds."""
    kind = rng.integers(2, size=n_runs)
    after = np.where(rng.random(n_runs) < way, kind, rng.integers(2, size=n_runs))
    return around_of(np.column_stack([kind, 3 + after])), kind


@pytest.mark.parametrize("way, right", [(1.0, 1.0), (0.6, 0.75)])
def test_visits_of_two_kinds_are_told_apart(way, right):
    around, kind = visits(np.random.default_rng(5), 400, way)
    groups = visit_groups(around, np.ones(400, dtype=int), None, 10)
    assert set(groups) == {0, 1}
    assert max(np.mean(groups == kind), np.mean(groups != kind)) >= right


def test_lengths_tell_visits_apart():
    """Where sequences go does not depend on where they come from, but on how long they stay."""
    rng = np.random.default_rng(5)
    kind = rng.integers(2, size=400)
    pairs = np.column_stack([rng.integers(2, size=400), 3 + kind])
    lengths = np.where(kind, 1, rng.integers(4, 9, size=400))
    groups = visit_groups(around_of(pairs), lengths, None, 10)
    assert max(np.mean(groups == kind), np.mean(groups != kind)) == 1.0


@pytest.mark.parametrize("n_most", [1, 10])
def test_visits_of_one_kind_are_not(n_most):
    rng = np.random.default_rng(6)
    around, _ = visits(rng, 400, 0.0 if n_most > 1 else 1.0)
    assert not visit_groups(around, rng.geometric(0.5, 400), None, n_most).any()


def test_weights_of_runs_are_copies():
    rng = np.random.default_rng(7)
    around, _ = visits(rng, 200, 0.5)
    times, lengths = rng.integers(1, 4, size=200), rng.geometric(0.5, 200)
    copies = np.repeat(np.arange(200), times)
    other = around_of(np.column_stack([around.enters, 3 + around.leaves])[copies])
    own = visit_groups(around, lengths, times.astype(float), 10)
    assert own.any()
    assert_array_equal(own[copies], visit_groups(other, lengths[copies], None, 10))


@pytest.mark.parametrize("way", [0.3, 0.6, 1.0])
def test_no_mixture_gains_more_than_the_dependence_of_marks(way):
    """So that nothing is lost where this is less than the cost, and the search goes on where it is more."""
    rng = np.random.default_rng(8)
    around, _ = visits(rng, 300, way)
    lengths = rng.geometric(0.3, 300)
    codes = np.column_stack([around.enters, around.leaves, np.minimum(np.log2(lengths), 5)])
    kinds, number = np.unique(codes.astype(int), axis=0, return_counts=True)
    most = _dependence(kinds, number.astype(float))
    marks = [np.equal.outer(kinds[:, i], np.arange(n)) for i, n in enumerate((2, 2, 6))]
    marks = [mark.astype(float) for mark in marks]
    mixture = _Mixture(number.astype(float), marks, around.rows, around.exits, np.ones(6))
    one = mixture.bound(np.ones((len(kinds), 1)))
    gains = [mixture.after(start, 30) for side in range(3) for start in mixture.starts(side, 4)]
    gains = [mixture.bound(resp) - one for resp in gains]
    assert max(gains) <= most
    assert visit_groups(around, lengths, None, 10, 0.99 * most).any() == (max(gains) > 0)
    assert not visit_groups(around, lengths, None, 10, most).any()


@pytest.mark.parametrize("seed", range(3))
def test_steps_never_lower_the_bound_of_visits(seed):
    rng = np.random.default_rng(seed)
    kinds = np.array(list(itertools.product(range(3), range(-1, 2), range(2))))
    marks = [
        np.equal.outer(kinds[:, i], np.arange(n)).astype(float) for i, n in enumerate((3, 2, 2))
    ]
    number = rng.integers(30, size=len(kinds)).astype(float)
    mixture = _Mixture(number, marks, np.full(3, 0.8), np.array([0.3, 0.6]), np.ones(2))
    starts = [resp for side in range(3) for resp in mixture.starts(side, 3)]
    for resp in (rng.dirichlet(np.ones(3), len(kinds)), *starts):
        bounds = []
        for _ in range(15):
            bounds.append(mixture.bound(resp))
            resp = mixture.step(resp)
            assert_allclose(resp.sum(axis=1), 1.0)
        assert np.diff(bounds).min() >= -1e-9


# ---------------------------------------------------------------------- heirs


def test_heirs_keep_the_links_that_they_bring():
    """What they bring is not counted twice; what it lacks is shared out as they share what they bring."""
    rows, _ = h.toy(np.random.default_rng(8), n_states=4, lengths=(80,) * 6, stay=0.6)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    h.start(learner, batch, 4)
    for _ in range(3):
        learner.run_lap(h.source(batch, 1))
    totals, model = learner.totals, learner.model
    old, uids = chain_counts(totals), totals.uids.tolist()
    one, two = learner.new_uids(2), learner.new_uids(2)
    # the heirs of the first state know how they follow the others, those of the second do not
    links = np.zeros((7, 6))
    listed = (*one, *uids)
    links[1 + 2 + np.arange(4), 0] = 0.75 * old[1:, 0]
    links[1 + 2 + np.arange(4), 1] = 0.25 * old[1:, 0]
    links[3, :2] = 0.0
    links[1:3, 3:] = np.array([[0.1], [0.9]]) * old[1, 1:]
    trials = [
        AdoptTrial(
            "birth",
            uids[0],
            one,
            totals.s[[0, 0]] / 2,
            retires=True,
            extra=Transitions(listed, links),
        ),
        AdoptTrial("birth", uids[1], two, totals.s[[1, 1]] / 2, retires=True),
    ]
    both = totals
    for trial in trials:
        both = StatBag(
            np.concatenate([both.uids, trial.initial.uids]),
            np.concatenate([both.s, trial.initial.s]),
            np.concatenate([both.entropy, trial.initial.entropy]),
            both.extra.joined(trial.initial.extra),
        )
    seen = []
    adopting = model.adopting(both, {uids[0]: tuple(one), uids[1]: tuple(two)})

    class Spy:
        def expected_log_rows(self, sticks, counts):
            seen.append(counts)
            return model.allocation.expected_log_rows(sticks, counts)

    adopting._replace(allocation=Spy()).coefficients(both)
    [new] = seen
    a, b, stay = both.positions(one), both.positions(two), both.positions(uids[2:])
    # into and out of the states that stay: as was brought
    assert_allclose(new[np.ix_(stay + 1, a)], np.outer(old[3:, 0], [0.75, 0.25]))
    assert_allclose(new[np.ix_(a + 1, stay)], np.outer([0.1, 0.9], old[1, 2:]))
    # the heirs of both: each follows the others as the state that it is made of did, and nothing is lost
    assert_allclose(new[np.ix_(a + 1, b)].sum(), old[1, 1])
    assert_allclose(new[np.ix_(b + 1, a)].sum(), old[2, 0])
    assert_allclose(new[np.ix_(a + 1, b)].sum(axis=1), np.array([0.1, 0.9]) * old[1, 1])
    assert_allclose(new[np.ix_(b + 1, a)].sum(axis=0), np.array([0.75, 0.25]) * old[2, 0], rtol=0.1)
    assert_allclose(new[0].sum(), old[0].sum())
    gone = both.positions(uids[:2])
    assert not new[gone + 1].any() and not new[:, gone].any()


# ---------------------------------------------------------------------- what is found


def ring(rng, n_rows, stay):
    """Rows of A B1 C B2 A ..., forward from A to C, and back: B1 and B2 share their emissions."""
    states = np.repeat(np.arange(n_rows) % 4, rng.geometric(1.0 - stay, n_rows))[:n_rows]
    means = np.array([[-4.0, 0.0], [0.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    return means[states] + rng.normal(size=(n_rows, 2)), states


@pytest.mark.extended
@pytest.mark.parametrize(
    ("stay", "seed"), variants(itertools.product([0.5, 0.7], range(2)), quick=((0.5, 0), (0.7, 1)))
)
def test_states_of_the_same_emissions_are_found(stay, seed):
    """A start from one state ends no lower than a start from the true states, with all four."""
    rng = np.random.default_rng(seed)
    made = [ring(rng, 500, stay) for _ in range(8)]
    rows, states = [x for x, _ in made], np.concatenate([z for _, z in made])
    found = HDPHMMVB(random_state=seed).fit(rows)
    told = HDPHMMVB(4, init_params=np.eye(4)[states], random_state=seed, proposals=None).fit(rows)
    assert found.n_components_ == 4
    assert found.lower_bound_ > told.lower_bound_ - 1.0


def test_creation_knows_states_by_their_neighbours():
    """Without neighbours nothing tells the halves of a cloud apart."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(600, 2))
    likelihood = h.learner_of([x], h.ALLOCATIONS["plain"])[0].model.likelihood
    z = likelihood.prepare(x)
    prior = likelihood.update_prior(likelihood.prior, likelihood.features(z).sum(axis=0)[None], 20)
    around = np.array([[7, 9], [9, 7]])[np.arange(300) % 2]
    sample = StateSample(z, np.arange(0, 601, 2), None, around)
    nested = NestedModel(likelihood, prior, sample, SETTINGS, lenient=True)
    found = create_states(nested, 10, np.random.RandomState(0))
    blind = nested.on(sample._replace(neighbours=None))
    assert create_states(blind, 10, np.random.RandomState(0)) is None
    assert len(found.s) == 2 and found.gain > 50.0
    assert_allclose(found.links.entries.max(axis=1), 150.0, atol=1.0)
    assert_allclose(found.links.exits.max(axis=0), 150.0, atol=1.0)
