"""Laws of the memory of failed attempts."""

from copy import deepcopy

import pytest

from sklearn_bnp.engine.failures import Failures


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_what_failed_is_blocked_once_patience_ends(patience):
    failures = Failures(change=0.1, patience=patience)
    for n in range(patience):
        assert failures.count("key", 100.0) == n
        assert not failures.blocked("key", 100.0)
        failures.judged("key", False, 100.0)
    assert failures.blocked("key", 100.0)
    assert not failures.blocked("another", 100.0)


def test_successes_are_not_remembered():
    failures = Failures(change=0.1)
    failures.judged("key", True, 100.0)
    assert failures.count("key", 100.0) == 0


@pytest.mark.parametrize(("mass", "n"), [(91.0, 1), (109.0, 1), (89.0, 0), (111.0, 0)])
def test_failures_are_forgotten_when_the_mass_changes(mass, n):
    failures = Failures(change=0.1)
    failures.judged("key", False, 100.0)
    assert failures.count("key", mass) == n
    failures.judged("key", False, mass)
    assert failures.count("key", mass) == n + 1


def test_who_is_forgiven_has_one_more_attempt():
    failures = Failures(change=0.1, patience=3)
    failures.note("key", 100.0, times=5)
    failures.note("another", 100.0, times=5)
    failures.forgive({"key", "unknown"})
    assert not failures.blocked("key", 100.0)
    failures.judged("key", False, 100.0)
    assert failures.blocked("key", 100.0)
    assert failures.count("another", 100.0) == 5


def test_copies_do_not_share_what_they_remember():
    failures = Failures(change=0.1, patience=2)
    failures.note("key", 100.0)
    copy = deepcopy(failures)
    copy.judged("key", False, 100.0)
    assert copy.blocked("key", 100.0)
    assert not failures.blocked("key", 100.0)
