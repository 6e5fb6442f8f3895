"""Exchanges of states: of two chains, each block of rows takes the better states."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.hmm.creation import statistics_of_labels
from sklearn_bnp.hmm.exchange import exchanged
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.hmm.searches import StateSearch

from .harness import quiet_fit
from .test_state_oversplit import model_and_totals, search_of, toys

# States of four: the true ones, and those that take two for one.
TRUE, ONE_PAIR, OTHER_PAIR, BOTH_PAIRS = (0, 1, 2, 3), (0, 0, 1, 2), (0, 1, 2, 2), (0, 0, 1, 1)


def nested_of(weighted=False):
    """A nested model of four true states, and the true state of each row."""
    rows, labels, _ = toys(seed=2)
    weight = np.linspace(0.5, 2.0, len(rows)) if weighted else None
    model, totals, sample = model_and_totals(rows, labels, weight)
    settings = NestedSettings.of(model, totals, list(range(4)))
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


# ---------------------------------------------------------------------- several fits


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("own", "others"), [(ONE_PAIR, OTHER_PAIR), (OTHER_PAIR, ONE_PAIR)])
def test_states_of_another_fit_are_met(own, others, weighted):
    """What is right in either of two fits stays, whichever is better as a whole."""
    rows, labels, _ = toys(seed=2)
    weight = np.linspace(0.5, 2.0, len(rows)) if weighted else None
    search = search_of(rows, np.array(own)[labels], weight)
    search.meet(model_and_totals(rows, np.array(others)[labels], weight)[1])
    assert len(search.best.s) == 4 and search.gain > 100.0


def test_a_fit_that_is_no_better_changes_nothing():
    rows, labels, _ = toys(seed=2)
    search = search_of(rows, labels)
    for others in (TRUE, BOTH_PAIRS, (0, 0, 0, 0)):
        search.meet(model_and_totals(rows, np.array(others)[labels])[1])
    assert search.best is None and search.gain == 0.0


def one_by_one(rows, n_fits, seed, **params):
    """Bounds of fits that follow each other, as those of ``n_init`` do."""
    rng = np.random.RandomState(seed)
    fits = [HDPHMMVB(random_state=rng, **params) for _ in range(n_fits)]
    return [quiet_fit(fit, rows).lower_bound_ for fit in fits]


@pytest.mark.extended
def test_the_best_of_several_fits_meets_the_others(monkeypatch):
    """Without searches of its own. It never ends lower, and higher where each fit has found a part."""
    monkeypatch.setattr(StateSearch, "go_on", lambda self: setattr(self, "n_failures", 10**6))
    monkeypatch.setattr(StateSearch, "comes_back", True)
    gains = []
    for seed in (0, 3):
        rows, _, _ = toys(n_states=12, seed=seed)
        params = {"n_components": 12, "proposals": ("oversplit",)}
        each = one_by_one(rows, 3, seed, **params)
        together = quiet_fit(HDPHMMVB(n_init=3, random_state=seed, **params), rows)
        assert together.lower_bound_ >= max(each) - 1e-9 * abs(max(each))
        bounds = np.array([lap.lower_bound for lap in together.history_[1:]])
        assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
        gains.append(together.lower_bound_ - max(each))
    assert max(gains) > 20.0


def test_fits_that_cannot_meet_are_compared():
    """The best one is kept as it is: there is nothing that takes over parts of the others."""
    rows, _, _ = toys(n_states=8, lengths=(150,) * 6)
    params = {"n_components": 8, "proposals": ("merge",)}
    each = one_by_one(rows, 3, 0, **params)
    assert len(set(each)) > 1
    best = quiet_fit(HDPHMMVB(n_init=3, random_state=0, **params), rows)
    assert best.lower_bound_ == max(each)


@pytest.mark.parametrize("max_iter", [0, 1])
def test_one_lap_is_too_few_to_meet(max_iter):
    """It is not made, and the model does not hold what others have found."""
    rows, _, _ = toys(seed=2)
    params = {"n_components": 3, "max_iter": max_iter}
    each = one_by_one(rows, 2, 0, **params)
    best = quiet_fit(HDPHMMVB(n_init=2, random_state=0, **params), rows)
    assert best.lower_bound_ == max(each) and best.n_iter_ == 1


def test_nothing_of_the_others_is_kept():
    """Not even if the meeting is over before they were tried. Searches begin anew after it."""
    rows, labels, _ = toys(seed=2)
    model = HDPHMMVB(3, n_init=3, max_iter=2, random_state=0)
    quiet_fit(model, rows)
    [oversplit] = [p for p in model._learner_.schedule.proposals if p.kind == "oversplit"]
    assert oversplit._others == ()
    search = search_of(rows, labels)
    for _ in range(9):
        search.meet(model_and_totals(rows, labels)[1])
    assert search.n_failures == search.n_returns == 0 and not search.comes_back
