"""Laws of streams of short sequences, which are kept for a while so that laps go over many of them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.hmm.model import SequenceModel
from tests.estimators import FEW_PROPOSALS

from . import chain_harness as h
from .harness import assert_totals_are_the_memory, rises_over_pools

N = 40


def short(seed=0, n=N, **toy):
    """Many short sequences of states of which each visits few, with their states."""
    rng = np.random.default_rng(seed)
    return h.toy(rng, n_states=6, lengths=(30,) * n, spread=5.0, stay=0.9, **toy)


def states(**settings):
    return HDPHMMVB(proposals=FEW_PROPOSALS, random_state=0, **settings)


def streamed(model, rows, n_epochs=1, per_batch=1):
    for _ in range(n_epochs):
        for i in range(0, len(rows), per_batch):
            model.partial_fit(rows[i : i + per_batch], batch_id=i)
    return model


@pytest.mark.extended
@pytest.mark.parametrize("per_batch", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_sequences_one_at_a_time_are_as_good_as_a_fit(per_batch):
    rows, _ = short()
    fit, stream = HDPHMMVB(random_state=0).fit(rows), HDPHMMVB(random_state=0)
    stream = streamed(stream, rows, per_batch=per_batch)
    assert stream.n_components_ == fit.n_components_ == 6
    pairs = zip(
        np.concatenate(fit.predict(rows)), np.concatenate(stream.predict(rows)), strict=True
    )
    assert len(set(pairs)) <= 2 * 6  # the same states but for single rows
    size = sum(len(x) for x in rows)
    assert stream.score(rows) > fit.score(rows) - 0.02
    assert_allclose(stream._learner_.totals.n.sum(), size, rtol=1e-9)


@pytest.mark.extended
@pytest.mark.parametrize("memoize", [True, False])
def test_totals_are_the_memory(memoize, monkeypatch):
    """Whatever is in the pool, each row counts once, and the bound is that of the totals."""
    monkeypatch.setattr(SequenceModel, "pool_rows", 90)  # the oldest leave it
    rows, _ = short(1)
    model, sizes = states(memoize=memoize), []
    for i, x in enumerate(rows[:7]):
        model.partial_fit([x])
        state = model._learner_
        assert_totals_are_the_memory(model)
        assert_allclose(state.totals.n.sum(), 30.0 * (i + 1), rtol=1e-9)
        sizes.append(len(state.stream.pool))
        assert len(state.memo) == (min(i + 1, 3) + (i >= 3) if not memoize else i + 1)
    assert sizes == [1, 2, *[3] * 5]
    assert model.n_components_ > 1


@pytest.mark.quarter
@pytest.mark.parametrize("memoize", [True, False])
def test_sequences_of_more_rows_than_the_pool_has_room_for(memoize, monkeypatch):
    """Each is learned from, and its rows are not kept."""
    monkeypatch.setattr(SequenceModel, "pool_rows", 25)
    rows, _ = short(1)
    model = states(memoize=memoize)
    for i, x in enumerate(rows[:9]):
        model.partial_fit([x])
        state = model._learner_
        assert state.stream.pool == ()
        assert_allclose(state.totals.n.sum(), 30.0 * (i + 1), rtol=1e-9)
    assert model.n_components_ > 1


@pytest.mark.extended
def test_rows_of_a_pool_are_its_own():
    """The user's array may be filled anew."""
    rows, _ = short(2)
    buffer, given, copied = np.empty_like(rows[0]), states(), states()
    for x in rows[:4]:
        buffer[:] = x
        given.partial_fit(buffer)
        copied.partial_fit(x.copy())
    assert given.lower_bound_ == copied.lower_bound_
    assert given.n_components_ > 1


@pytest.mark.extended
def test_a_pool_is_left_when_batches_return():
    rows, _ = short(3)
    model = streamed(states(), rows[:6])
    assert len(model._learner_.stream.pool) == 6
    model.partial_fit([rows[0]], batch_id=0)
    assert model._learner_.stream.pool == ()
    bounds = [model.partial_fit([rows[i]], batch_id=i).lower_bound_ for i in [*range(6)] * 3]
    assert np.diff(bounds[5:]).min() >= -1e-9 * abs(bounds[-1])


@pytest.mark.extended
@pytest.mark.parametrize("weighted", [False, True])
def test_pickled_between_sequences(weighted):
    rows, _ = short(4)
    model, other = states(), states()
    for i, x in enumerate(rows[:4]):
        weight = {"sample_weight": [1.0 + i % 3]} if weighted else {}
        model = pickle.loads(pickle.dumps(model)).partial_fit([x], **weight)
        other.partial_fit([x], **weight)
    assert model.lower_bound_ == other.lower_bound_
    assert model.n_components_ > 1


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    [
        "autoregressive",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("missing", "float32", "low_memory", "finite")
        ),
    ],
)
def test_pools_of_any_kind(kind, monkeypatch):
    """The bound rises with every lap over a pool, whatever the rows are like."""
    rows, _ = short(5, n=6)
    settings = {
        "autoregressive": {"observation": "autoregressive"},
        "low_memory": {"low_memory": True},
        "finite": {"allocation": "dirichlet"},
    }.get(kind, {})
    rng = np.random.default_rng(6)
    if kind == "float32":
        rows = [x.astype(np.float32) for x in rows]
    if kind == "missing":
        rows = [np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in rows]
    rises = rises_over_pools(monkeypatch)
    model = streamed(states(**settings), rows)
    assert len(rises) > 5
    assert min(rises) >= (-1e-5 if kind == "float32" else -1e-9)
    n_rows = sum(len(x) - (kind == "autoregressive") for x in rows)
    assert_allclose(model._learner_.totals.n.sum(), n_rows)
