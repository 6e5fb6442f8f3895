"""The local step can travel: tasks give the same bits in any process, and parts of a batch add up to it."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB, ColumnObservation, DPMixtureVB, GaussianObservation, HDPTopicVB
from sklearn_bnp.engine.composite import CompositeSource
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.task import LocalTask, run
from sklearn_bnp.estimator import base, fitting
from tests.contents import contents
from tests.estimators import (
    TOPICS,
    assert_same_state,
    blobs,
    chains,
    documents,
    grouped_rows,
    public_state,
)

ROWS, LABELS = blobs(360)
COUNTS = np.random.default_rng(1).poisson(np.exp(ROWS / 6.0))
INCOMPLETE = np.where(np.random.default_rng(2).random(ROWS.shape) < 0.1, np.nan, ROWS)
ANSWERS = np.random.default_rng(5).random((360, 12)) < np.where(TOPICS[LABELS] > 0, 0.9, 0.1)
CHOICES = ANSWERS + (np.random.default_rng(6).random((360, 12)) < 0.2)
SYMBOLS = np.random.default_rng(7).multinomial(30, TOPICS[LABELS])
WORDS, _ = documents(90)
TOKENS, GROUPS, _ = grouped_rows(24, 15)
SEQUENCES, _ = chains(9)
COLUMNS = ColumnObservation([("level", "gaussian", [0, 1]), ("counts", "poisson", [2])])
MIXED = np.column_stack([ROWS[:, :2], COUNTS[:, 2]])


# Name -> (observation, rows) of every likelihood.
ROWS_OF = {
    "gaussian": ("gaussian", ROWS),
    "diag": (GaussianObservation("diag"), ROWS),
    "spherical": (GaussianObservation("spherical"), ROWS.astype(np.float32)),
    "tied": (GaussianObservation("full", covariance_prior="data"), ROWS),
    "missing": ("gaussian", INCOMPLETE),
    "missing_diag": (GaussianObservation("diag"), INCOMPLETE),
    "fixed_variance": ("fixed_variance_gaussian", ROWS),
    "bernoulli": ("bernoulli", ANSWERS.astype(float)),
    "categorical": ("categorical", CHOICES),
    "poisson": ("poisson", COUNTS),
    "sparse": ("poisson", csr_array(COUNTS)),
    "negative_binomial": ("negative_binomial", COUNTS),
    "multinomial": ("multinomial", SYMBOLS),
    "columns": (COLUMNS, MIXED),
}
WEIGHTS = np.random.default_rng(4).choice([1.0, 2.0, 40.0], size=360)


def mixtures():
    for name, (observation, X) in ROWS_OF.items():
        yield f"mixture-{name}", DPMixtureVB(observation=observation), {"X": X}
    yield "mixture-weights", DPMixtureVB(), {"X": ROWS, "sample_weight": WEIGHTS}
    yield "mixture-l_sparse", DPMixtureVB(6, n_nonzero_resp=2), {"X": ROWS}
    yield "mixture-pitman_yor", DPMixtureVB(allocation="pitman-yor"), {"X": ROWS}


def topics():
    yield "topics-words", HDPTopicVB(), {"X": WORDS}
    yield "topics-weights", HDPTopicVB(), {"X": WORDS, "sample_weight": 1.0 + np.arange(90) % 3}
    yield "topics-from_many", HDPTopicVB(10), {"X": WORDS}
    yield "topics-l_sparse", HDPTopicVB(6, n_nonzero_resp=2), {"X": WORDS}
    for name, (observation, X) in ROWS_OF.items():
        yield f"topics-{name}", HDPTopicVB(observation=observation), {"X": X, "groups": GROUPS}


def sequences():
    lengths = np.full(9, 40)
    for name, (observation, X) in ROWS_OF.items():
        yield f"hmm-{name}", HDPHMMVB(observation=observation), {"X": X, "lengths": lengths}
    yield "hmm-autoregressive", HDPHMMVB(observation="autoregressive"), {"X": SEQUENCES}
    yield "hmm-correlated", HDPHMMVB(observation="correlated_gaussian"), {"X": SEQUENCES}
    yield "hmm-low_memory", HDPHMMVB(low_memory=True), {"X": SEQUENCES}
    yield "hmm-from_many", HDPHMMVB(8), {"X": SEQUENCES}
    yield "hmm-weights", HDPHMMVB(), {"X": SEQUENCES, "sample_weight": 1.0 + np.arange(9) % 3}


# One likelihood of each layout, and each thing that only one model has; the others with -m slow. Correlated
# rows have the lags of autoregressive ones, and what is hidden in them is handled as missing values are.
QUICK = {
    "mixture-gaussian", "mixture-missing", "mixture-sparse", "mixture-columns",
    "mixture-l_sparse", "topics-words", "topics-gaussian", "topics-missing_diag",
    "hmm-gaussian", "hmm-poisson", "hmm-autoregressive", "hmm-low_memory", "hmm-weights",
}  # fmt: skip
CASES = [
    pytest.param(model, data, id=name, marks=[] if name in QUICK else pytest.mark.slow)
    for registry in (mixtures, topics, sequences)
    for name, model, data in registry()
]


@pytest.fixture(scope="module")
def pool():
    """Two processes that have nothing of this one but what is sent to them."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def backwards(run, tasks):
    """Results of tasks that are run from the last to the first, and cannot write to what they were given."""
    return [run(read_only(task)) for task in reversed(list(tasks))][::-1]


def read_only(task):
    """A copy of a task whose arrays are read-only, as tasks of a cluster share them."""
    buffers = []
    pickled = pickle.dumps(task, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(pickled, buffers=[bytes(buffer) for buffer in buffers])


def fitted(monkeypatch, model, data, *, n_batches, n_parts, run_tasks=map, max_iter=5, **params):
    """A model fitted to composite batches, ``n_parts`` of ``n_batches`` at a time."""
    fit_learner = fitting.fit_learner

    def composite(learner, source, *args):
        fit_learner(learner, CompositeSource(source, n_parts), *args)

    model = pickle.loads(pickle.dumps(model))
    model.set_params(n_batches=n_batches, max_iter=max_iter, random_state=0, tol=0, **params)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        patch.setattr(base, "Learner", partial(Learner, run_tasks=run_tasks))
        patch.setattr(fitting, "fit_learner", composite)
        return model.fit(**data)


@pytest.mark.extended
@pytest.mark.parametrize(("model", "data"), CASES)
def test_same_bits_in_any_process(pool, monkeypatch, model, data):
    """Four parts, in two batches: in this process, in others, in any order, on two threads."""
    fit = partial(fitted, monkeypatch, model, data, n_batches=4, n_parts=2)
    here = public_state(fit())
    assert sum(sum(lap.tried.values()) for lap in here["history_"]) > 0  # proposals were at work
    assert_same_state(public_state(fit(run_tasks=pool.map)), here)
    assert_same_state(public_state(fit(run_tasks=backwards, n_jobs=2)), here)


@pytest.mark.quarter
@pytest.mark.parametrize(("model", "data"), CASES)
def test_one_part_a_batch_is_the_batch(monkeypatch, model, data):
    fit = partial(fitted, monkeypatch, model, data, n_batches=3, max_iter=4)
    composite = public_state(fit(n_parts=1))
    model = pickle.loads(pickle.dumps(model))
    model.set_params(n_batches=3, max_iter=4, random_state=0, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_same_state(public_state(model.fit(**data)), composite)


@pytest.mark.quarter
@pytest.mark.parametrize("n_parts", [pytest.param(2, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize(("model", "data"), CASES)
def test_any_grouping_is_exact_and_monotone(monkeypatch, model, data, n_parts):
    """The bound never falls after the first lap, and totals are the sum of what batches left behind."""
    seen = []

    def noted(learner, *args, _end=Learner.end_lap, **kwargs):
        lap = _end(learner, *args, **kwargs)
        totals = learner.totals
        again = learner.memo.copy().total(totals.uids, totals.s.shape[1])
        seen.append((learner.model.elbo(again), lap.lower_bound))
        return lap

    monkeypatch.setattr(Learner, "end_lap", noted)
    model = fitted(monkeypatch, model, data, n_batches=4, n_parts=n_parts, max_iter=6)
    bounds = np.array([lap.lower_bound for lap in model.history_])
    size = 1e-9 * np.abs(bounds).max()
    if not model.get_params().get("n_nonzero_resp"):
        assert np.diff(bounds[1:]).min(initial=0.0) >= -size
    for again, bound in seen:
        assert again == pytest.approx(bound, abs=size)


@pytest.mark.extended
def test_a_task_is_a_value(monkeypatch):
    """Running a task changes nothing of it: it may be run again, and gives the same."""
    tasks = []

    def noted(run, some):
        tasks.extend(some)
        return [run(task) for task in tasks[-2:]]

    fitted(monkeypatch, DPMixtureVB(), {"X": ROWS}, n_batches=2, n_parts=2, run_tasks=noted)
    task = tasks[-1]
    assert isinstance(task, LocalTask) and len(task.probes) > 0
    before = pickle.dumps(task)
    first, second = contents(run(task)), contents(run(task))
    assert pickle.dumps(task) == before
    assert first == second == contents(run(pickle.loads(before)))
