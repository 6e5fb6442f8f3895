"""Streams: sums stay exact, entropies that cannot be known are bounded, and the objective with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import Birth, Delete, DPMixtureVB, Merge
from sklearn_bnp.engine.streaming import StreamSettings, stream_batch
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.mixture.model import MixtureModel

from .harness import estimator, learner_for, quiet_fit, totals_of, totals_under
from .shadow import Shadow

# New batches, a lap and a half over old ones, a new one in the middle of a lap, two laps.
VISITS = [0, 1, 0, 1, 0, 2, 1, 0, 3, *range(4), *range(4)]


class Stream:
    """A learner that is given batches one at a time, and its shadow."""

    def __init__(self, family, *, seed=1, n_batches=4, n_rows=50, birth="split"):
        rng = np.random.default_rng(seed)
        X, labels = family.rows(rng, n_batches * n_rows)
        # clusters come one after the other, so that new batches hold what old ones did not
        X = X[np.argsort(labels + rng.uniform(0, 1.5, size=len(X)))]
        self.weight = rng.gamma(1.0, size=len(X))
        self.birth = birth
        self.learner, _ = learner_for(
            family, X[:n_rows], resp=np.ones((n_rows, 1)),
            proposals=[Birth(strategy=birth), Merge(), Delete()],
        )  # fmt: skip
        self.shadow = Shadow(self.learner)
        self.batches = [
            Batch(i, X[rows], self.weight[rows])
            for i, rows in enumerate(np.split(np.arange(len(X)), n_batches))
        ]

    def visit(self, i, **kwargs):
        """One call; what it does with the batch in hand, again and again, only raises the objective."""
        self.shadow.values.clear()
        stream_batch(self.learner, self.batches[i], **kwargs)
        if self.birth == "split":
            values = np.array([*self.shadow.values, self.learner.lower_bound])
            assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))

    def assert_bounded(self):
        """Sums as from scratch; entropies, and so the objective, not above."""
        learner, shadow = self.learner, self.shadow
        expected = shadow.totals()
        shadow.assert_follows(learner.totals, expected, entropy=False)
        slack = 1e-9 * (1.0 + expected.entropy) + shadow.entropy_slack
        assert np.all(learner.totals.entropy <= expected.entropy + slack)
        exact = learner.model.elbo(expected)
        assert learner.lower_bound <= exact + 1e-9 * abs(exact) + 100 * shadow.entropy_slack
        return exact


@pytest.mark.quarter
@pytest.mark.parametrize("birth", ["split", "adopt"])
def test_objective_of_a_stream_is_a_bound(leading_family, birth):
    stream = Stream(leading_family, birth=birth)
    for i in VISITS:
        stream.visit(i)
        if birth == "adopt" and stream.learner.lap_under_way:
            continue  # components on trial count their rows twice until the lap ends
        stream.assert_bounded()
        # totals are the memory's, with its bounds
        memory = totals_under(stream.learner, stream.learner.memo)
        size = np.abs(memory.s) + 1.0
        assert np.all(np.abs(stream.learner.totals.s - memory.s) <= 1e-8 * size)
        assert_allclose(stream.learner.totals.entropy, memory.entropy, rtol=1e-9, atol=1e-8)
    if birth == "split":
        # births by the scheduler, or components that a batch was given as its own
        assert len(stream.learner.totals.uids) > 1


@pytest.mark.quarter
def test_whole_laps_make_the_bound_exact(leading_family):
    """Every batch was visited since its last bound, so nothing is unknown any more."""
    stream = Stream(leading_family)
    for i in [*range(4), *range(4)]:
        stream.visit(i)
    exact = stream.assert_bounded()
    assert_allclose(stream.learner.lower_bound, exact, rtol=1e-9, atol=1e-6)


@pytest.mark.quarter
def test_old_batches_only_raise_the_objective(leading_family):
    """Laps over batches in memory are memoized inference, with proposals and with bounds."""
    stream = Stream(leading_family, seed=2)
    for i in range(4):
        stream.visit(i)
    values = [stream.learner.lower_bound]
    for i in [*range(4), *reversed(range(4)), *range(4)]:
        stream.visit(i)
        values.append(stream.learner.lower_bound)
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))
    # of some families all was found on the way, and nothing is left to rise
    assert values[-1] > values[0] or len(stream.learner.totals.uids) > 1


@pytest.mark.quarter
@pytest.mark.parametrize("pool_rows", [1, 100])
def test_stream_without_memory(leading_family, pool_rows, monkeypatch):
    """Totals of all rows ever seen, none twice; the objective stays a bound."""
    monkeypatch.setattr(MixtureModel, "pool_rows", pool_rows)
    stream = Stream(leading_family, seed=3)
    for i in range(4):
        stream.visit(i, settings=StreamSettings(memoize=False))
        stream.assert_bounded()
        n_kept = pool_rows // 50  # batches whose rows are at hand; the others are one sum
        assert len(stream.learner.memo) == (i + 1 if i < n_kept else n_kept + 1)
    n = stream.learner.totals.n.sum()
    assert_allclose(n, stream.weight.sum(), rtol=1e-10)


@pytest.mark.quarter
@pytest.mark.parametrize("memoize", [True, False])
def test_batches_of_more_rows_than_the_pool_has_room_for(leading_family, memoize, monkeypatch):
    """Each is learned from, with laps over it alone now and then, and its rows are not kept."""
    monkeypatch.setattr(MixtureModel, "pool_rows", 40)
    stream = Stream(leading_family, seed=5)
    for i in range(4):
        stream.visit(i, settings=StreamSettings(memoize=memoize))
        stream.assert_bounded()
        state = stream.learner.stream
        assert state.pool == () and state.size is None
        assert len(stream.learner.memo) == (i + 1 if memoize else 1)
    assert_allclose(stream.learner.totals.n.sum(), stream.weight.sum(), rtol=1e-10)
    # Laps over 50 rows, and few of them, do not pay for a second component of correlated rows; nor do all
    # 200 rows for one of hundreds of categories.
    few = leading_family.name in {"correlated-ridge", "categorical-many"}
    assert (len(stream.learner.totals.uids) > 1) != few


@pytest.mark.extended
def test_batch_seen_again_replaces_what_it_left(leading_family):
    """Through the estimator: the mass of the model is that of the rows, each once."""
    rng = np.random.default_rng(4)
    X, _ = leading_family.rows(rng, 180)
    model = estimator(leading_family, random_state=0)
    for part in [*np.split(X, 3), *np.split(X, 3)]:
        model.partial_fit(part)
        totals, inside = totals_of(model)
        assert_allclose(model.lower_bound_, inside.elbo(totals), rtol=1e-12)
    assert_allclose(totals.n.sum(), 180.0, rtol=1e-12)
    assert_allclose(sum(model.elbo_terms_.values()), model.lower_bound_, rtol=1e-12)
    features_sum = totals.s.sum(axis=0)
    fresh = estimator(leading_family, random_state=0)
    fresh.partial_fit(X[:60], batch_id="a").partial_fit(X[60:], batch_id="b")
    assert_allclose(totals_of(fresh)[0].s.sum(axis=0), features_sum, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("birth", ["split", "adopt"])
def test_attributes_are_those_of_the_memory(birth, monkeypatch):
    """In the middle of a lap as well, all that is published counts each row once.

    Three clusters that overlap: without a pool, a split is found only when a lap over all batches was made.
    """
    monkeypatch.setattr(MixtureModel, "pool_rows", 1)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.6, size=(150, 2)) for c in (-1.8, 0, 1.8)])
    rng.shuffle(X)
    model = DPMixtureVB(proposals=(Birth(strategy=birth), "merge"), random_state=0)
    on_trial = 0
    for _ in range(4):
        for i, part in enumerate(np.split(X, 5)):
            model.partial_fit(part, batch_id=i)
            state = model._learner_
            on_trial += state.lap_under_way and len(state.initial)
            memory = totals_under(state, state.memo.copy())
            assert_allclose(model.lower_bound_, state.model.elbo(memory), rtol=1e-9)
            weights = state.model.allocation.weights(memory.n)
            assert_allclose(model.weights_, np.sort(weights)[::-1], rtol=1e-7, atol=1e-9)
    assert model.n_components_ > 1
    assert (on_trial > 0) == (birth == "adopt")


@pytest.mark.extended
def test_name_of_a_batch_is_its_content_unless_given(leading_family):
    """The same rows twice count once by default, and twice under two names."""
    rng = np.random.default_rng(5)
    X, _ = leading_family.rows(rng, 60)
    once = estimator(leading_family, random_state=0).partial_fit(X).partial_fit(X.copy())
    assert_allclose(totals_of(once)[0].n.sum(), 60.0, rtol=1e-12)
    twice = (
        estimator(leading_family, random_state=0)
        .partial_fit(X, batch_id=1)
        .partial_fit(X, batch_id=2)
    )
    assert_allclose(totals_of(twice)[0].n.sum(), 120.0, rtol=1e-12)


@pytest.mark.quarter
def test_fit_goes_on_as_a_stream(leading_family):
    """After `fit`, new batches add to its data, with or without a memory of them."""
    rng = np.random.default_rng(6)
    X, _ = leading_family.rows(rng, 150)
    for memoize in (True, False):
        model = estimator(leading_family, random_state=0, memoize=memoize, max_iter=5)
        quiet_fit(model, X[:100]).partial_fit(X[100:125]).partial_fit(X[125:])
        assert_allclose(totals_of(model)[0].n.sum(), 150.0, rtol=1e-10)
