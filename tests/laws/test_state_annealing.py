"""Annealed states: passes with powers of likelihoods, and what they find that splits do not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import BernoulliObservation, ColumnObservation, GaussianObservation
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.hmm.searches import StateSearch
from tests.reference.chains import by_recursion

from .test_state_exchanges import chain_of
from .test_state_oversplit import model_and_totals, search_of, toys


def nested_of(rows, labels, weight=None, observation=None):
    model, _, sample = model_and_totals(rows, labels, weight, observation)
    nested = NestedModel(model.likelihood, model.prior, sample, NestedSettings(1.0, 20.0))
    return nested, chain_of(nested, labels)


@pytest.mark.parametrize("weighted", [False, True])
def test_powers_of_one_change_nothing(weighted):
    rows, labels, _ = toys(spread=2.0)
    weight = np.linspace(0.5, 2.0, len(rows)) if weighted else None
    nested, chain = nested_of(rows, labels, weight)
    plain, same = nested.pass_over(chain), nested.pass_over(chain, np.ones(4))
    assert_array_equal(same.resp, plain.resp)
    assert_array_equal(same.s, plain.s)


def test_without_likelihoods_rows_do_not_matter():
    """With powers of zero, responsibilities are those of a chain that sees no rows."""
    rows, labels, _ = toys(spread=2.0, lengths=(40,) * 3)
    nested, chain = nested_of(rows, labels)
    found = nested.pass_over(chain, np.zeros(4)).resp
    assert_allclose(found[:40], found[40:80], rtol=1e-12)
    logs = nested.around.expected_logs(chain.links)
    expected = by_recursion(np.zeros((40, 4)), logs.entries[0], logs.counts)
    assert_allclose(found[:40], expected.resp, rtol=1e-10)


def annealed_by_hand(nested, chain, powers, divided):
    """Responsibilities of two sequences under powers of likelihoods that are first ``divided``."""
    coef = nested.likelihood.coefficients(nested.prior, chain.s)
    table = nested.likelihood.log_table(coef, nested.sample.z)
    table = powers * divided(table, np.sum(chain.resp * table) / len(table))
    logs = nested.around.expected_logs(chain.links)
    expected = [by_recursion(own, logs.entries[0], logs.counts) for own in np.split(table, 2)]
    return np.concatenate([one.resp for one in expected])


def test_powers_of_probabilities_are_of_what_they_are():
    """Columns without units: a small power gives a state no advantage that grows with their number."""
    rows, labels, _ = toys(spread=2.0, lengths=(60,) * 2)
    nested, chain = nested_of(
        [1.0 * (x > 0) for x in rows], labels, observation=BernoulliObservation()
    )
    powers = np.array([0.2, 1.0, 0.5, 0.7])
    found = nested.pass_over(chain, powers).resp
    assert_allclose(
        found, annealed_by_hand(nested, chain, powers, lambda log, mean: log), atol=1e-10
    )


def test_columns_with_units_are_counted():
    """They say how much all likelihoods are divided by where other columns have no units."""
    rows, labels, _ = toys(spread=2.0, lengths=(60,) * 2, n_features=3)
    for x in rows:
        x[:, 2] = x[:, 2] > 0
    parts = [("rows", GaussianObservation(), [0, 1]), ("answers", BernoulliObservation(), [2])]
    nested, chain = nested_of(rows, labels, observation=ColumnObservation(parts))
    powers = np.array([0.2, 1.0, 0.5, 0.7])
    found = nested.pass_over(chain, powers).resp
    expected = annealed_by_hand(nested, chain, powers, lambda log, mean: log - mean - 2.0 * 2)
    assert_allclose(found, expected, atol=1e-10)


def test_a_power_is_of_the_likelihood_of_its_state_alone():
    """In units of rows in which the mean log likelihood is -2 for each column."""
    rows, labels, _ = toys(spread=2.0, lengths=(60,) * 2)
    nested, chain = nested_of(rows, labels)
    powers = np.array([0.2, 1.0, 0.5, 0.7])
    found = nested.pass_over(chain, powers).resp
    n_features = nested.likelihood.n_features
    expected = annealed_by_hand(
        nested, chain, powers, lambda log, mean: log - mean - 2.0 * n_features
    )
    assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("unit", [1e-4, 1e3])
def test_the_units_of_columns_do_not_matter(unit):
    rows, labels, _ = toys(spread=2.0, lengths=(60,) * 2)
    powers = np.array([0.2, 0.9, 0.5, 0.7])
    one, same = (nested_of([u * x for x in rows], labels) for u in (1.0, unit))
    found = [nested.pass_over(chain, powers).resp for nested, chain in (one, same)]
    assert_allclose(found[1], found[0], atol=1e-6)
    assert np.abs(found[0] - one[0].pass_over(one[1]).resp).max() > 0.1


def test_states_that_are_stuck_come_free():
    """Of four true states, one is cut in two at random, and two others are one: passes change nothing."""
    rows, labels, _ = toys(seed=2, lengths=(150,) * 4, spread=2.0)
    halves = np.random.default_rng(0).integers(2, size=len(labels))
    wrong = np.where(labels == 0, 2 + halves, np.array([0, 0, 0, 1])[labels])
    search = search_of(rows, wrong)
    nested = search._nested()
    passed = nested.iterate(search._now, 30, 0.0)
    assert search._value(nested, passed) - search._before < 1.0
    gains = []
    for seed in range(12):
        search = search_of(rows, wrong, seed=seed)
        search._anneal()
        gains.append(search.gain)
        if search.gain > 0:
            assert search.best.s[:, -1].sum() == pytest.approx(len(labels))
    assert min(gains) >= 0.0
    assert np.count_nonzero(np.array(gains) > 300.0) >= 2


def test_annealing_counts_with_the_search_that_it_follows(monkeypatch):
    """A search that finds nothing is one failure, whatever comes of annealing, unless that finds more."""
    rows, labels, _ = toys(seed=2)
    both = np.array([0, 0, 1, 2])[labels]
    search, calls = search_of(rows, both), []
    monkeypatch.setattr(
        StateSearch, "_settled", lambda self, nested, *_, **__: chain_of(nested, 0 * both)
    )

    def annealed(self, nested, first):
        calls.append(first)
        return chain_of(nested, labels if len(calls) == 3 else 0 * both), 3

    monkeypatch.setattr(StateSearch, "_annealed", annealed)
    failures = []
    for _ in range(4):
        search.go_on()
        failures.append(search.n_failures)
    assert failures == [1, 2, 0, 1]
    assert len(search.best.s) == 4 and search.n_returns == 0


def test_powers_move_to_where_annealing_changes_something(monkeypatch):
    """The first power is smaller after the best states came back, and larger after most of them were lost."""
    rows, labels, _ = toys(seed=2)
    search, powers, left = search_of(rows, labels), [], []

    def annealed(self, nested, first):
        powers.append(first)
        return self._now, left[-1]

    monkeypatch.setattr(StateSearch, "_annealed", annealed)
    for n_left, side in ((4, -1), (0, 1)):
        left.append(n_left)
        low, high = search._log_powers
        for _ in range(20):
            before = search._log_powers
            search._anneal()
            assert before[0] <= powers[-1] <= before[1]
            moved = search._log_powers - before
            assert np.all(side * moved >= -1e-12) and np.any(side * moved > 0)
            assert np.diff(search._log_powers) >= 1.0 - 1e-12 and search._log_powers[1] <= 0.0
        assert side * (search._log_powers - [low, high]).sum() > 1.0
