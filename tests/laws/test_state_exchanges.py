"""Exchanges of states: of two chains, each block of rows takes the better states."""

import numpy as np
import pytest

from sklearn_bnp.hmm.creation import statistics_of_labels
from sklearn_bnp.hmm.exchange import exchanged
from sklearn_bnp.hmm.nested_chain import NestedChain, NestedModel
from sklearn_bnp.hmm.searches import StateSearch

from .test_state_oversplit import model_and_totals, search_of, toys

# States of four: the true ones, and those that take two for one.
TRUE, ONE_PAIR, OTHER_PAIR, BOTH_PAIRS = (0, 1, 2, 3), (0, 0, 1, 2), (0, 1, 2, 2), (0, 0, 1, 1)


def nested_of(weighted=False):
    """A nested model of four true states, and the true state of each row."""
    rows, labels, _ = toys(seed=2)
    weight = np.linspace(0.5, 2.0, len(rows)) if weighted else None
    model, totals, sample = model_and_totals(rows, labels, weight)
    settings = NestedChain.of(model, totals, list(range(4)))
    return NestedModel(model.likelihood, model.prior, sample, settings), labels


def chain_of(model, labels):
    """The chain of rows with these labels, after three passes."""
    s = statistics_of_labels(model.likelihood, model.sample, labels, labels.max() + 1)
    return model.iterate(model.labelled(s, labels), 3, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("better", "worse", "n_states"),
    [
        (ONE_PAIR, OTHER_PAIR, 4),  # each is right where the other is wrong
        (OTHER_PAIR, ONE_PAIR, 4),
        (BOTH_PAIRS, TRUE, 4),
        (TRUE, BOTH_PAIRS, None),  # no block gains
        (TRUE, TRUE, None),
    ],
)
def test_each_block_takes_the_better_states(better, worse, n_states, weighted):
    model, labels = nested_of(weighted)
    better, worse = (chain_of(model, np.array(of)[labels]) for of in (better, worse))
    before = model.bound(better)
    mixed = exchanged(model, better, worse)
    if n_states is None:
        assert mixed is None
        return
    assert len(mixed.s) == n_states
    assert model.bound(mixed) > before
    found = mixed.resp.argmax(axis=1)
    assert all(np.bincount(found[labels == k]).max() > 0.99 * np.sum(labels == k) for k in range(4))


@pytest.mark.parametrize("seed", range(3))
def test_an_exchange_never_lowers_the_bound(seed):
    """Of chains from random labels."""
    model, labels = nested_of()
    rng = np.random.default_rng(seed)
    one, two = (
        chain_of(
            model, np.where(rng.random(len(labels)) < 0.5, labels, rng.integers(6, size=4)[labels])
        )
        for _ in range(2)
    )
    if model.bound(one) < model.bound(two):
        one, two = two, one
    before = model.bound(one)
    mixed = exchanged(model, one, two)
    assert mixed is None or model.bound(mixed) > before


@pytest.mark.parametrize(
    ("present", "found", "better"), [(ONE_PAIR, OTHER_PAIR, False), (OTHER_PAIR, ONE_PAIR, True)]
)
def test_searches_are_exchanged(present, found, better, monkeypatch):
    """What is right in either set of states stays, whichever is better as a whole."""
    rows, labels, _ = toys(seed=2)
    search, found = search_of(rows, np.array(present)[labels]), np.array(found)[labels]
    monkeypatch.setattr(
        StateSearch, "_settled", lambda self, nested, *_, **__: chain_of(nested, found)
    )
    nested = search._nested()
    assert (search._value(nested, chain_of(nested, found)) > search._before) == better
    search.go_on()
    assert len(search.best.s) == 4 and search.gain > 100.0
    assert search.n_failures == 0
