"""Streams whose batches come back: the first epoch ends with all that came learned from, as by a fit."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB


def _rows(rng):
    return rng.normal(rng.choice([-6.0, 0.0, 6.0], size=(40, 1)), size=(40, 2))


def _documents(rng):
    likely = rng.permuted(np.tile([0.2, 0.2, 0.2, 0.2, 0.1, 0.1], (2, 1)), axis=1)
    return rng.poisson(10.0 * likely[rng.integers(2, size=10)])


def _sequences(rng):
    return [rng.normal(np.repeat([0.0, 8.0, 0.0, -8.0], 10))[:, np.newaxis]]


_STREAMS = [(DPMixtureVB, _rows), (HDPTopicVB, _documents), (HDPHMMVB, _sequences)]


def _n_unlearned(model):
    return model._learner_.stream.n_unlearned


@pytest.mark.parametrize(("kind", "draw"), _STREAMS)
def test_batch_that_comes_back_finds_all_others_learned_from(kind, draw):
    """Laps over the pool are not due with each batch, and so not after the last one."""
    rng, parts, model = np.random.default_rng(0), [], kind(random_state=0)
    while len(parts) < 3 or _n_unlearned(model) == 0:
        assert len(parts) < 12
        parts.append(draw(rng))
        model.partial_fit(parts[-1], batch_id=len(parts) - 1)
    before, n_laps = model.lower_bound_, model.history_[-1].lap
    model.partial_fit(parts[0], batch_id=0)
    assert _n_unlearned(model) == 0
    assert model.history_[-1].lap > n_laps
    assert model.lower_bound_ >= before - 1e-9 * abs(before)
    n_laps = model.history_[-1].lap
    for i in range(1, len(parts)):  # the rest of the lap over all batches
        model.partial_fit(parts[i], batch_id=i)
    assert model.history_[-1].lap == n_laps + 1


@pytest.mark.parametrize(("kind", "draw"), _STREAMS)
def test_pool_that_lacks_some_batches_is_left_at_once(kind, draw):
    """If new batches and known ones take turns, each new one is not searched by itself."""
    rng = np.random.default_rng(1)
    parts, model = [draw(rng) for _ in range(6)], kind(random_state=0)
    for i in range(4):
        model.partial_fit(parts[i], batch_id=i)
    model.partial_fit(parts[0], batch_id=0)
    model.partial_fit(parts[4], batch_id=4)
    n_laps = model.history_[-1].lap
    model.partial_fit(parts[0], batch_id=0)
    assert model.history_[-1].lap == n_laps
