"""Laws of the memories of failed attempts."""

from copy import deepcopy

import numpy as np
import pytest

from sklearn_bnp import Delete
from sklearn_bnp.engine.failures import Attempts, Failures
from sklearn_bnp.hmm.delete import StateDelete
from sklearn_bnp.topics.delete import TopicDelete

from .families import FAMILIES
from .harness import learner_for, random_resp


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


def test_copies_do_not_share_what_they_remember():
    failures = Failures(change=0.1, patience=2)
    failures.note("key", 100.0)
    copy = deepcopy(failures)
    copy.judged("key", False, 100.0)
    assert copy.blocked("key", 100.0)
    assert not failures.blocked("key", 100.0)


BEFORE = {3: 100.0, 5: 50.0, 8: 20.0}


def attempts():
    memory = Attempts(change=0.1)
    memory.begin(8, np.array([8, 3, 5]), np.array([20.0, 100.0, 50.0]))
    return memory


@pytest.mark.parametrize(
    ("now", "failed"),
    [
        (BEFORE, True),
        ({**BEFORE, 11: 400.0}, True),  # it was not involved
        ({**BEFORE, 3: 109.0, 5: 46.0}, True),
        ({**BEFORE, 5: 44.0}, False),  # one that was involved is another now,
        ({**BEFORE, 8: 23.0}, False),
        ({8: 20.0, 3: 100.0}, False),  # or has gone
    ],
)
def test_attempts_are_forgotten_when_a_component_involved_changes(now, failed):
    assert attempts().failed(8, now) == failed
    assert not attempts().failed(3, now)


def test_copies_of_attempts_do_not_share_what_they_remember():
    memory = attempts()
    copy = deepcopy(memory)
    copy.begin(3, np.array([3]), np.array([100.0]))
    memory.clear()
    assert copy.failed(8, BEFORE) and copy.failed(3, BEFORE)
    assert not memory.failed(8, BEFORE)


def test_failed_deletes_wait_until_a_component_involved_changes():
    """Of four components each is tried once; then again when one that was to take its rows has changed."""
    rng = np.random.default_rng(0)
    X, resp = rng.normal(size=(300, 3)), random_resp(rng, 300, 4, concentration=5.0)
    learner, source = learner_for(FAMILIES[0], X, resp=resp, proposals=(Delete(n_absorbers=2),))
    learner.run_lap(source)
    [proposal], totals = learner.scheduler.proposals, learner.totals
    assert learner.scheduler.trials and proposal.wants(totals) == []
    targets = sorted(totals.uids.tolist())
    s = totals.s.copy()
    s[0] *= 1.2
    moved = proposal.wants(totals._replace(s=s))
    assert int(totals.uids[0]) in moved
    gone = totals.take([1, 2, 3])
    assert set(proposal.wants(gone)) == set(moved) - {int(totals.uids[0])}
    proposal.last_resort()
    assert sorted(proposal.wants(totals)) == targets


@pytest.mark.parametrize("proposal", [TopicDelete(), StateDelete()])
def test_topics_and_states_forgive_failed_deletes_at_the_last_resort(proposal):
    proposal.reset()
    proposal._failures.note(3, 100.0)
    proposal.last_resort()
    assert not proposal._failures.blocked(3, 100.0)
