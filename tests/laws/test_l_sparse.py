"""L-sparse responsibilities: after the first lap the objective never falls, whatever L and the proposals.

A trial is judged by responsibilities that the next local step could have. With more components in a row
than L, the verdict promises what that step has to take back.
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import Birth, Delete, HDPTopicVB, Merge, TopicBirth, TopicDelete
from sklearn_bnp.engine.l_sparse import Places, largest_shares
from sklearn_bnp.engine.state import LearnerSettings
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.trials import SplitTrial
from sklearn_bnp.mixture.local import RowBlock
from sklearn_bnp.topics.batch import DocumentBlock
from sklearn_bnp.topics.delete import TopicDeleteTrial
from sklearn_bnp.topics.local import document_summary
from tests.reference import documents, mixtures

from .families import FAMILIES
from .harness import estimator, finding_of, given, learner_for, quiet_fit, random_resp
from .shadow import Shadow, cleared
from .topic_harness import assert_same_bag, documents_of, topic_learner
from .topic_kinds import KINDS, N_TYPES, PRIORS
from .topic_shadow import TopicShadow

# Rounding, as in test_monotone.py: sums of a few hundred terms of the objective's size, to which batches
# were added and from which they were taken a few dozen times. Falls by dense trials were 1e-5 and more.
RTOL = 1e-9

PROPOSALS = {
    "birth": lambda: [Birth()],
    "adopt": lambda: [Birth(strategy="adopt"), Merge()],
    "merge": lambda: [Merge()],
    "delete": lambda: [Delete(max_targets=8)],
    "all": lambda: [Birth(), Merge(), Delete(max_targets=8)],
}
TOPIC_PROPOSALS = {
    "birth": lambda: [TopicBirth(min_tokens=20), Merge(max_members=2)],
    "merge": lambda: [Merge(max_members=2)],
    "delete": lambda: [TopicDelete()],
    "all": lambda: [TopicBirth(n_seeds=4, min_tokens=20), Merge(max_members=2), TopicDelete()],
}
# Proposals that need many components to begin with.
SHRINKING = {"merge", "delete", "all"}
KIND_NAMES = {"full": "gaussian"}
# Families that differ from each other by more than parameters.
EVERY_SORT = [
    "full", "full-zero-mean", "diag", "diag-rounded-missing", "spherical", "spherical-rounded",
    "bernoulli", "multinomial", "poisson", "poisson-missing", "categorical", "columns", "shared-variance",
    "negative-binomial",
]  # fmt: skip


def named(*names):
    return [family for family in FAMILIES if family.name in names]


def check(fitted):
    """No lap after the first is lower than the one before; how many trials were accepted, by kind."""
    bounds = np.asarray(fitted.lower_bounds_)
    falls = np.flatnonzero(np.diff(bounds) < -RTOL * np.abs(bounds[1:]))
    assert len(falls) == 0, f"falls after {falls}: {bounds[falls]} -> {bounds[falls + 1]}"
    return sum((Counter(lap.accepted) for lap in fitted.history_), Counter())


def assert_accepted(accepted, proposals):
    """What a law is about did happen."""
    if proposals == "all":  # each kind has cases of its own, in which no other takes its work away
        assert accepted.total() > 0
    else:
        assert accepted["birth" if proposals == "adopt" else proposals] > 0


def fit_mixture(family, L, proposals, seed, *, weighted, n_batches, spread=2.5):
    """Overlapping clusters, from soft responsibilities at random."""
    rng = np.random.default_rng(seed)
    X, _ = family.rows(rng, 240, spread)
    resp = random_resp(rng, 240, 10 if proposals in SHRINKING else 2)
    model = estimator(
        family, init_params=resp, n_batches=n_batches, n_nonzero_resp=L, random_state=seed,
        proposals=PROPOSALS[proposals](), max_iter=20,
    )  # fmt: skip
    return quiet_fit(model, X, sample_weight=rng.gamma(1.0, size=240) if weighted else None)


def fit_topics(kind, L, proposals, seed, *, weighted, n_batches):
    """Words, or rows in groups."""
    rng = np.random.default_rng(seed)
    corpus = kind.corpus(rng, 30, spread=1 + seed % 4 * 0.7)
    weight = rng.gamma(1.0, size=corpus.n_docs) if weighted else None
    model = HDPTopicVB(
        8 if proposals in SHRINKING else 1, observation=KIND_NAMES.get(kind.name, kind.name),
        n_nonzero_resp=L, n_batches=n_batches, proposals=TOPIC_PROPOSALS[proposals](),
        random_state=seed, max_iter=15,
    )  # fmt: skip
    if kind.name != "words":
        weight = None if weight is None else weight[corpus.doc]
        return quiet_fit(model, corpus.rows, groups=corpus.doc, sample_weight=weight)
    X = np.zeros((corpus.n_docs, N_TYPES))
    np.add.at(X, (corpus.doc, corpus.batch.indices), corpus.weight)
    return quiet_fit(model.set_params(observation="multinomial"), X, sample_weight=weight)


# ---------------------------------------------------------------------- the objective


@pytest.mark.extended
@pytest.mark.parametrize("proposals", ["birth", "all"])
def test_every_lap_of_mixtures(proposals):
    accepted = Counter()
    families = named("spherical", "bernoulli", "poisson")
    for i, (family, L) in enumerate(product(families, (1, 2, 3))):
        fitted = fit_mixture(family, L, proposals, i // 3, weighted=i % 2, n_batches=1 + i % 3)
        accepted += check(fitted)
    assert_accepted(accepted, proposals)


@pytest.mark.extended
@pytest.mark.parametrize("proposals", ["birth", "all"])
def test_every_lap_of_topics(proposals):
    accepted = Counter()
    for i, (kind, L) in enumerate(product(KINDS, (1, 2, 3))):
        fitted = fit_topics(kind, L, proposals, 0, weighted=i % 2, n_batches=1 + i % 3)
        accepted += check(fitted)
    assert_accepted(accepted, proposals)


@pytest.mark.slow
@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("proposals", PROPOSALS)
def test_every_lap_of_mixtures_of_all_families(proposals, L):
    accepted = Counter()
    for family in named(*EVERY_SORT):
        for (seed, spread), (weighted, n_batches) in product(
            ((0, 1.5), (1, 2.5)), ((0, 3), (1, 1))
        ):
            fitted = fit_mixture(
                family, L, proposals, seed, weighted=weighted, n_batches=n_batches, spread=spread
            )
            accepted += check(fitted)
    assert_accepted(accepted, proposals)


@pytest.mark.slow
@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("proposals", TOPIC_PROPOSALS)
def test_every_lap_of_topics_of_all_kinds(kind, proposals, L):
    accepted = Counter()
    for seed, weighted, n_batches in product(range(4), (0, 1), (1, 3)):
        fitted = fit_topics(kind, L, proposals, seed, weighted=weighted, n_batches=n_batches)
        accepted += check(fitted)
    assert_accepted(accepted, proposals)


@pytest.mark.extended
@pytest.mark.parametrize("L", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_streams_of_batches_that_come_again(L):
    """`partial_fit`: once every batch is known, each lap over them is at least as high as the last."""
    accepted = Counter()
    for family in named("spherical", "bernoulli"):
        X, _ = family.rows(np.random.default_rng(L), 240, 2.5)
        model = estimator(family, n_nonzero_resp=L, proposals=PROPOSALS["all"](), random_state=0)
        batches, bounds = np.array_split(X, 3), []
        for i in range(30):
            model.partial_fit(batches[i % 3], batch_id=i % 3)
            if i >= 3:
                bounds.append(model.lower_bound_)
        # new batches leave bounds of entropies behind; in mid-lap, components on trial are left out
        assert np.all(np.diff(bounds) >= -RTOL * np.abs(bounds[1:]))
        accepted += sum((Counter(lap.accepted) for lap in model.history_), Counter())
    assert accepted["birth"] > 0


# ---------------------------------------------------------------------- responsibilities


# three components a row are dealt out as two are; one is a case of its own
@pytest.mark.extended
@pytest.mark.parametrize("L", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("proposals, n_components", [("birth", 2), ("all", 8)])
def test_no_row_has_more_than_L_components(proposals, n_components, L):
    """After each verdict, however many trials were accepted at once."""
    most, several = 0, 0
    for family, seed in product(named("spherical", "multinomial", "poisson"), (4, 5, 8, 10, 12)):
        rng = np.random.default_rng(seed)
        X, _ = family.rows(rng, 150, 2.5)
        learner, source = learner_for(
            family, X, resp=random_resp(rng, 150, n_components), n_batches=2, n_nonzero=L,
            proposals=PROPOSALS[proposals](), weight=rng.gamma(1.0, size=150),
        )  # fmt: skip
        shadow = Shadow(learner)
        for _ in range(5):
            before = len(shadow.accepted)
            learner.run_lap(source)
            several += len(shadow.accepted) - before > 1
            shadow.assert_follows(learner.totals, shadow.totals())
            for resp in shadow.resp.values():
                most = max(most, np.count_nonzero(cleared(resp), axis=1).max())
    assert several > 0
    assert most == L


@pytest.mark.quarter
@pytest.mark.parametrize("L", [1, 2, 3])
def test_no_entry_has_more_than_L_topics(L):
    """After each verdict; and what is remembered is what these responsibilities leave behind."""
    accepted, most = Counter(), 0
    for kind, proposals in product(KINDS, ("delete", "all")):
        corpus = kind.corpus(np.random.default_rng(3), 24, spread=1.5)
        follow = topic_learner(
            kind, PRIORS[0], corpus, 8, proposals=TOPIC_PROPOSALS[proposals](), n_batches=2
        )
        follow.learner.settings = LearnerSettings(n_nonzero=L)
        shadow = TopicShadow(follow)
        for _ in range(4):
            follow.learner.run_lap(follow.source)
            assert_same_bag(follow.learner.totals, shadow.totals())
            most = max(most, np.count_nonzero(shadow.all_resp(), axis=1).max())
        accepted.update(shadow.accepted)
    assert accepted["delete"] > 0 and accepted["merge"] > 0
    assert most == L


@pytest.mark.parametrize("L", [1, 2, 5, 8])
def test_places_are_all_dealt_out(L):
    """However the components of a row are shared out among disjoint trials, these have L places."""
    rng = np.random.default_rng(L)
    resp = largest_shares(random_resp(rng, 60, 6) * (rng.random((60, 6)) < 0.7) + 1e-300, L)
    places, rows = Places(resp, L), np.arange(60)
    for groups in ([[0, 1, 2, 3, 4, 5]], [[3], [0, 4], [1, 2, 5]], [[k] for k in range(6)]):
        of = np.array([places.of(np.array(columns), rows) for columns in groups])
        used = np.array([np.any(resp[:, columns] > 0, axis=1) for columns in groups])
        assert_array_equal(np.sum(of * used, axis=0), L)
        twin = [mixtures.places(resp, columns, L) for columns in groups]
        assert_array_equal(of, np.array(twin))
        assert np.all(of >= np.array([np.sum(resp[:, g] > 0, axis=1) for g in groups]))


def test_given_responsibilities_become_the_nearest_that_are_sparse():
    """The first lap has them, so that no later one starts from denser ones; and not if L is None."""
    rng = np.random.default_rng(11)
    family = named("spherical")[0]
    X, _ = family.rows(rng, 60)
    resp = random_resp(rng, 60, 5)
    for L in (1, 2, 5, None):
        sparse = np.zeros_like(resp)
        for row, shares in zip(sparse, resp, strict=True):
            kept = np.argsort(-shares)[:L]
            row[kept] = shares[kept] / shares[kept].sum()
        fits = [
            estimator(family, init_params=start, n_nonzero_resp=L, max_iter=0, proposals=None).fit(
                X
            )
            for start in (resp, sparse)
        ]
        assert_allclose(fits[0]._statistics, fits[1]._statistics, rtol=1e-12)
        assert_allclose(fits[0].lower_bound_, fits[1].lower_bound_, rtol=1e-12)


# ---------------------------------------------------------------------- trials, by brute force


@pytest.mark.parametrize("L", [1, 2, 3])
def test_split_is_of_the_assignment_it_stands_for(L):
    """Statistics and entropies of successors, and the best there are among all sets of successors."""
    rng = np.random.default_rng(20 + L)
    family = named("spherical")[0]
    X, _ = family.rows(rng, 30)
    weight = rng.gamma(1.0, size=30)
    resp = largest_shares(random_resp(rng, 30, 5), L)
    g = given(family, X, resp, weight)
    coef = g.model.likelihood.coefficients(
        g.model.prior, rng.dirichlet(np.ones(30), 3) @ g.features
    )
    trial = SplitTrial("birth", (10, 13), (20, 21, 22), coef)
    uids = np.arange(10, 15)
    block = RowBlock(g.z, weight, resp, uids, Places(resp, L))
    bag = StatBag(uids, g.s, mixtures.entropies(resp, weight))
    row = finding_of(trial.probe, [block], uids, model=g.model, statistics=bag)
    shares = np.array(
        [
            best_of_all_subsets(row @ coef.T, n)
            for row, n in zip(g.features, mixtures.places(resp, [0, 3], L), strict=True)
        ]
    )
    assigned = resp[:, [0, 3]].sum(axis=1, keepdims=True) * shares
    after = np.hstack([resp[:, [1, 2, 4]], assigned])
    assert np.count_nonzero(after, axis=1).max() <= L
    assert_allclose(
        row.s, (weight[:, np.newaxis] * assigned).T @ g.features, rtol=1e-10, atol=1e-10
    )
    assert_allclose(row.entropy, mixtures.entropies(assigned, weight), rtol=1e-9, atol=1e-10)


def best_of_all_subsets(log_w, n):
    """Shares (J,) with at most n nonzeros that maximise ``sum r (log w - log r)``: every set is tried."""
    best, value = None, -np.inf
    for kept in product((False, True), repeat=len(log_w)):
        if 0 < sum(kept) <= n:
            w = np.where(kept, log_w, -np.inf)
            found = np.logaddexp.reduce(w)
            if found > value + 1e-12:
                best, value = np.exp(w - found), found
    return best


def test_delete_of_a_topic_is_one_of_all_assignments():
    """With one topic a word: among all ways to give words to absorbers, one that is as good as any step."""
    rng = np.random.default_rng(5)
    corpus = KINDS[0].corpus(rng, 8, mean_length=7)
    resp = np.eye(3)[rng.integers(3, size=len(corpus.rows))]
    follow = topic_learner(KINDS[0], PRIORS[0], corpus, 3, resp=resp)
    model, docs = follow.learner.model, documents_of(follow, corpus)
    prior, theta = np.array([0.4, 0.3]), rng.dirichlet(np.ones(2), size=N_TYPES)
    trial = TopicDeleteTrial(7, (8, 9), theta, prior)
    uids, sums = np.array([7, 8, 9]), [document_summary(model.likelihood, docs, resp)]
    block = DocumentBlock(
        docs, 0, docs.entry_weight, resp, sums[0].counts, uids, None, Places(resp, 1)
    )
    bag, part = StatBag(uids, sums[0].s, sums[0].entropy), corpus.batch
    row = finding_of(trial.probe, [block], uids, model=model, part=part, statistics=bag)
    found = row.extra.parts[part.batch_id].dense([8, 9])
    after = np.zeros((len(resp), 2))
    for d in range(len(docs)):
        entries = np.arange(docs.indptr[d], docs.indptr[d + 1])
        if not np.any(resp[entries, 0] > 0):  # keeps what it has
            after[entries] = resp[entries, 1:]
            continue
        c, log_table = docs.counts[entries], np.log(theta[docs.indices[entries]])
        ways = [np.eye(2)[list(way)] for way in product(range(2), repeat=len(entries))]
        same = [way for way in ways if np.allclose(c @ way, found[d], rtol=0, atol=1e-9)]
        scores = [documents.score(log_table, c, prior, way) for way in same]
        after[entries] = same[int(np.argmax(scores))]
    # every document's counts are those of some assignment, and so are the sums of all of them
    expected = document_summary(model.likelihood, docs, after)
    assert_allclose(row.s, expected.s, rtol=0, atol=1e-9)
    assert_allclose(row.entropy, 0.0, atol=1e-12)
    assert_allclose(found, expected.counts, rtol=0, atol=1e-9)
