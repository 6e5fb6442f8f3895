"""A call that fails leaves no trace, wherever it fails: the estimator is as it was, bit for bit.

Kernels, and methods of the likelihood, are made to fail in a stream of batches: at some of their calls in
the quick test, at the last call from every place in the code and, on less data, at every call in the
slow ones. The retry then ends as if nothing had happened.
"""

import inspect
import pickle
import sys
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    Birth,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Proposal,
    UnionTrial,
)
from sklearn_bnp.estimator.publishing import complete
from sklearn_bnp.likelihood.base import Likelihood
from tests.contents import contents
from tests.estimators import FEW_PROPOSALS

KERNELS = "sklearn_bnp._kernels."
PACKAGE = str(Path(sklearn_bnp.__file__).parent)


class Fault(Exception):
    """What is injected."""


class Injector:
    """Counts calls of kernels and of methods of likelihoods, and makes one of them fail."""

    def __init__(self, monkeypatch):
        self.n_calls, self.fails_at, self.places = 0, None, {}
        for name, module in list(sys.modules.items()):
            if name.startswith("sklearn_bnp") and not name.startswith(KERNELS):
                for key, value in list(vars(module).items()):
                    home = getattr(value, "__module__", None) or ""
                    if home.startswith(KERNELS) and inspect.isroutine(value):
                        monkeypatch.setattr(module, key, self.counted(value))
        for kind in _subclasses(Likelihood):
            for key, value in list(vars(kind).items()):
                if inspect.isfunction(value) and not key.startswith("__"):
                    monkeypatch.setattr(kind, key, self.counted(value))

    def counted(self, function):
        def call(*args, **kwargs):
            self.n_calls += 1
            if self.fails_at is None:
                self.places[callers()] = self.n_calls - 1
            if self.n_calls == self.fails_at:
                raise Fault(f"call {self.n_calls}: {function}")
            return function(*args, **kwargs)

        return call

    def arm(self, fails_at):
        self.n_calls, self.fails_at, self.places = 0, fails_at, {}


def callers():
    """The lines of the package that are being executed, innermost first: the place of a call."""
    frame, lines = sys._getframe(2), []
    while frame is not None:
        if PACKAGE in frame.f_code.co_filename:
            lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def _subclasses(kind):
    return {kind}.union(*(_subclasses(child) for child in kind.__subclasses__()))


class Stream(NamedTuple):
    """An estimator and the arguments of its calls of `partial_fit`."""

    estimator: object
    calls: list


def rows(rng, n, n_clusters=4, n_features=2):
    centers = 9.0 * np.random.default_rng(5).normal(size=(n_clusters, n_features))
    return centers[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, n_features))


def epochs(batches):
    """Each batch twice, and the first a third time: the last lap is under way."""
    return [*batches, *batches, batches[0]]


def mixture(rng, n_rows=80):
    batches = [{"X": rows(rng, n_rows), "batch_id": i} for i in range(2)]
    return Stream(DPMixtureVB(random_state=0), epochs(batches))


def mixture_with_missing_values(rng, n_rows=80):
    batches = [{"X": rows(rng, n_rows), "batch_id": i} for i in range(2)]
    for batch in batches[1:]:
        batch["X"][rng.random(batch["X"].shape) < 0.1] = np.nan
    return Stream(DPMixtureVB(random_state=0, n_nonzero_resp=2), epochs(batches))


def endless_mixture(rng, n_rows=60):
    calls = [{"X": csr_array(rng.poisson(np.exp(rows(rng, n_rows) / 9)))} for _ in range(3)]
    model = DPMixtureVB(observation="poisson", memoize=False, random_state=np.random.RandomState(0))
    return Stream(model, calls)


def stochastic_mixture(rng):
    model = DPMixtureVB(4, learning_method="stochastic", random_state=0)
    return Stream(model, [{"X": rows(rng, 50)} for _ in range(3)])


def topics(rng):
    words = np.kron(np.eye(4), np.full(5, 0.2))
    shares = rng.dirichlet(np.full(4, 0.2), size=60)
    X = np.array([rng.multinomial(40, share @ words) for share in shares])
    batches = [{"X": part, "batch_id": i} for i, part in enumerate(np.split(X, 2))]
    return Stream(HDPTopicVB(random_state=0), epochs(batches))


def topics_of_rows(rng):
    groups = np.repeat(np.arange(8), 20)
    batches = [{"X": rows(rng, 160), "groups": groups, "batch_id": i} for i in range(2)]
    return Stream(HDPTopicVB(observation="gaussian", random_state=0), epochs(batches))


def sequences(rng):
    centers = 6.0 * np.random.default_rng(6).normal(size=(3, 2))
    batches = []
    for i in range(2):
        states = np.repeat(rng.integers(3, size=(4, 6)), 10, axis=1)
        x = [centers[z] + rng.normal(size=(60, 2)) for z in states]
        batches.append({"X": x, "batch_id": i})
    return Stream(HDPHMMVB(random_state=0), epochs(batches))


def bounded(rng, n_rows=120):
    groups = np.repeat(np.arange(4), n_rows // 4)
    calls = [{"X": rows(rng, n_rows), "groups": groups} for _ in range(3)]
    return Stream(MemoryBoundedTopicVB(200), calls)


STREAMS = [
    mixture, mixture_with_missing_values, endless_mixture, stochastic_mixture, topics,
    topics_of_rows, sequences, bounded,
]  # fmt: skip


def essence(model):
    """All that the future depends on: what an estimator holds but for clock times."""
    complete(model)
    state = vars(model).copy()
    for name in ("history_", "_learner_"):
        state.pop(name, None)
    out = [state]
    if hasattr(model, "_learner_"):
        history = model._learner_.history
        history = tuple(lap._replace(seconds=0, proposal_seconds=0) for lap in history)
        out.append(vars(replace(model._learner_, history=history, seconds=0.0, evidence=None)))
    return contents(out)


def check(stream, injector, positions):
    """Fail at some calls of each step of the stream, ``positions(n_calls, places)``, and retry."""
    model, n_faults = stream.estimator, 0
    for call in stream.calls:
        before = pickle.dumps(model)
        injector.arm(None)
        model.partial_fit(**call)
        n, places, after = injector.n_calls, sorted(injector.places.values()), essence(model)
        assert n > 5
        for i in positions(n, places):
            again = pickle.loads(before)
            state = pickle.dumps(again)
            injector.arm(i + 1)
            with pytest.raises(Fault):
                again.partial_fit(**call)
            assert pickle.dumps(again) == state, f"call {i + 1} of {n} left something behind"
            injector.arm(None)
            again.partial_fit(**call)
            assert essence(again) == after, f"after call {i + 1} of {n}"
            n_faults += 1
    return n_faults


# Faults of a step in the quick test; others have three. These steps are long, and much alike.
N_FAULTS = {
    mixture: 1,
    mixture_with_missing_values: 1,
    endless_mixture: 1,
    topics: 1,
    sequences: 1,
}
LONG = (mixture_with_missing_values, endless_mixture, topics_of_rows)
QUICK_STREAMS = [
    pytest.param(make, id=make.__name__, marks=[pytest.mark.slow] * (make in LONG))
    for make in STREAMS
]


@pytest.mark.extended
@pytest.mark.parametrize("make", QUICK_STREAMS)
def test_faults_leave_no_trace(make, monkeypatch):
    stream = make(np.random.default_rng(0))
    injector, rng = Injector(monkeypatch), np.random.default_rng(1)
    size = N_FAULTS.get(make, 3)
    check(stream, injector, lambda n, places: np.unique(rng.integers(n, size=size)))


@pytest.mark.slow
@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_faults_at_every_place_leave_no_trace(make, monkeypatch):
    stream, injector = make(np.random.default_rng(0)), Injector(monkeypatch)
    n_faults = check(stream, injector, lambda n, places: places)
    print(f"{make.__name__}: {n_faults} faults")


# Rows of a batch where a step makes thousands of calls, most of them in births. These are from two seeds.
FEW_ROWS = {mixture: 6, mixture_with_missing_values: 6, endless_mixture: 12, bounded: 24}


@pytest.mark.slow
@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_faults_at_every_call_leave_no_trace(make, monkeypatch):
    size = {"n_rows": FEW_ROWS[make]} if make in FEW_ROWS else {}
    (model, calls), injector = make(np.random.default_rng(0), **size), Injector(monkeypatch)
    if isinstance(model, DPMixtureVB) and model.learning_method == "memoized":
        model.set_params(proposals=(Birth(n_seeds=2), "merge", "delete"))
    n_faults = 0
    for call in calls:
        before = pickle.dumps(model)
        state = pickle.dumps(pickle.loads(before))
        injector.arm(None)
        model.partial_fit(**call)
        n = injector.n_calls
        for i in range(n):
            again = pickle.loads(before)  # what is remembered of the last prior saves a call or two
            injector.arm(i + 1)
            with pytest.raises(Fault):
                again.partial_fit(**call)
            assert pickle.dumps(again) == state, f"call {i + 1} of {n} left something behind"
        n_faults += n
    print(f"{make.__name__}: {n_faults} faults")


@pytest.mark.extended
@pytest.mark.parametrize("make", QUICK_STREAMS)
def test_nothing_that_starts_from_a_state_changes_it(make):
    """Not even a call that comes to its end, or another one that starts from the same state."""
    model, calls = make(np.random.default_rng(0))
    if isinstance(model, MemoryBoundedTopicVB):
        pytest.skip("has no learner")
    model.partial_fit(**calls[0])
    for call in calls[1:]:
        state, beside = model._learner_, copy(model)
        before = pickle.dumps(state)
        beside.random_state = deepcopy(model.random_state)
        beside.partial_fit(**call)
        assert pickle.dumps(state) == before
        model.partial_fit(**call)
        assert pickle.dumps(state) == before
        assert essence(beside) == essence(model)


@pytest.mark.extended
@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_totals_are_the_sum_of_the_memory(make):
    """At the end of a stream in whose every step a fault was survived there is nothing but batches."""
    stream = make(np.random.default_rng(0))
    for call in stream.calls:
        stream.estimator.partial_fit(**call)
    state = getattr(stream.estimator, "_learner_", None)
    if state is None or len(state.memo) == 0:
        pytest.skip("keeps no memory of batches")
    totals = state.counted
    expected = state.memo.copy().total(totals.uids, totals.s.shape[1])
    size = np.abs(expected.s).max()
    np.testing.assert_allclose(totals.s, expected.s, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.extended
@pytest.mark.parametrize(
    "make", [mixture, topics, topics_of_rows, sequences], ids=lambda m: m.__name__
)
def test_weights_may_come_in_mid_lap(make):
    """A batch that comes again with weights, when nothing had any as the lap began."""
    stream = make(np.random.default_rng(0))
    model, (first, second, *_) = stream.estimator, stream.calls
    model.set_params(proposals=FEW_PROPOSALS)
    for call in (first, second, first):
        model.partial_fit(**call)
    n = model._learner_.totals.n.sum()
    n_weights = len(second["X"])
    model.partial_fit(**second, sample_weight=np.full(n_weights, 2.0))
    assert model._learner_.totals.n.sum() == pytest.approx(n * 1.5, rel=1e-9)
    for call in (first, second):
        model.partial_fit(**call)


@pytest.mark.parametrize(
    "make", [mixture, topics, topics_of_rows, sequences], ids=lambda m: m.__name__
)
def test_stochastic_steps_are_the_past_of_memoized_ones(make):
    """If the learning method changes in a stream, what was learned before is not forgotten."""
    stream = make(np.random.default_rng(0))
    model, (first, second, *_) = stream.estimator, stream.calls
    model.set_params(n_components=3, learning_method="stochastic").partial_fit(**first)
    n = model._learner_.totals.n.sum()
    model.set_params(learning_method="memoized", proposals=None)
    for call in (second, first):  # the first has a name, but was no memoized batch
        model.partial_fit(**call)
    learner = model._learner_
    assert learner.totals.n.sum() == pytest.approx(3 * n, rel=1e-6)
    expected = learner.memo.copy().total(learner.totals.uids, learner.totals.s.shape[1])
    size = np.abs(expected.s).max()
    np.testing.assert_allclose(learner.totals.s, expected.s, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.quarter
@pytest.mark.parametrize(
    "make", [mixture, topics, topics_of_rows, sequences], ids=lambda m: m.__name__
)
@pytest.mark.parametrize("n_calls", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_memoized_batches_are_the_past_of_stochastic_steps(make, n_calls):
    """Steps average over what was remembered; a batch that comes again afterwards is a new one.

    After three calls a lap is under way, which ends as the steps begin.
    """
    stream = make(np.random.default_rng(0))
    model, (first, second, *_) = stream.estimator, stream.calls
    model.set_params(proposals=FEW_PROPOSALS)
    for call in (first, second, first)[:n_calls]:
        model.partial_fit(**call)
    model.set_params(learning_method="stochastic")
    for call in (second, first):
        model.partial_fit(**call)
    state = model._learner_
    assert len(state.memo) == 0 and not state.lap_under_way and state.before is None
    n = state.totals.n.sum()
    model.set_params(learning_method="memoized").partial_fit(**second)
    state = model._learner_
    size = len(second["X"]) if make is not topics else second["X"].sum()
    if make is sequences:
        size = sum(len(x) for x in second["X"])
    assert state.counted.n.sum() == pytest.approx(n + size, rel=1e-6)
    expected = state.memo.copy().total(state.totals.uids, state.totals.s.shape[1])
    np.testing.assert_allclose(state.totals.s, expected.s, rtol=1e-7, atol=1e-6 * n)


def test_a_stream_may_end_its_memory_in_mid_lap():
    """Components on trial are taken out before the totals are all that is remembered."""
    rng = np.random.default_rng(0)
    batches = [{"X": rows(rng, 300, 8), "batch_id": i} for i in range(3)]
    birth = Birth(strategy="adopt")
    model = DPMixtureVB(proposals=(birth, "merge"), max_components=1, random_state=0)
    for call in batches:
        model.partial_fit(**call)
    model.set_params(max_components=None)
    for call in batches * 4:
        model.partial_fit(**call)
        if model._learner_.initial:
            break
    assert model._learner_.initial and model._learner_.lap_under_way
    model.set_params(memoize=False).partial_fit(**call)
    state = model._learner_
    assert not state.initial and state.before is None and not state.lap_under_way
    assert state.totals.n.sum() == pytest.approx(900.0)
    assert state.memo.copy().total(state.totals.uids, state.totals.s.shape[1]).n.sum() == (
        pytest.approx(900.0)
    )
    model.partial_fit(rows(rng, 300, 8))
    assert model._learner_.totals.n.sum() == pytest.approx(1200.0)


class Keeper(Proposal):
    """Keeps the trials that it planned as keys of a dict."""

    kind = "keeper"

    def reset(self):
        self._planned = {}

    def plan(self, context):
        uids = context.totals.uids.tolist()
        if len(uids) < 2:
            return []
        trial = UnionTrial(self.kind, uids[-2:], context.new_uids(1))
        self._planned[trial] = len(uids)
        return [trial]

    def judged(self, trial, accepted, mass, gain):
        del self._planned[trial]


@pytest.mark.extended
def test_proposals_know_their_trials_again():
    """Trials are values: what a proposal keeps of one is the one that it hears of in the next call."""
    call = {"X": rows(np.random.default_rng(0), 80), "batch_id": 0}
    model = DPMixtureVB(proposals=("birth", Keeper()), random_state=0)
    for _ in range(4):
        model.partial_fit(**call)
    assert model.history_[-1].tried["keeper"] == 1
