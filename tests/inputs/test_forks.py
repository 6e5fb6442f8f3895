"""Forked processes: threads do not survive a fork, and neither does what other threads were doing.

Each case is a process of its own with a time limit, because what these tests are afraid of is a child
that waits for ever.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="elsewhere, BLAS of the system does not allow forks",
)

ROOT = Path(__file__).parents[2]
SECONDS = 120  # a case takes two; a child that hangs never ends

START = """
import os, sys, threading, time, warnings
import numpy as np
from sklearn_bnp import DPMixtureVB, HDPHMMVB, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp._kernels import threads as worth

warnings.simplefilter("ignore")
worth.LEAST_WORK = 1.0  # so little data have several threads
rng = np.random.default_rng(0)
rows = rng.normal(size=(1000, 2)) + 9.0 * rng.integers(0, 2, size=(1000, 1))
words = rng.multinomial(20, np.full(6, 1 / 6), size=300)
sequences = np.split(rows, 10)
groups = np.repeat(np.arange(20), 50)

# estimator, the method that it predicts with, data, and what goes with them
CASES = [
    (DPMixtureVB(max_iter=2, n_jobs=2, random_state=0), "predict_proba", rows, {}),
    (DPMixtureVB(2, observation="multinomial", proposals=None, max_iter=2, n_jobs=2, random_state=0),
     "predict_proba", words, {}),
    (HDPTopicVB(2, proposals=None, max_iter=2, n_jobs=2, random_state=0), "transform", words, {}),
    (HDPHMMVB(2, proposals=None, max_iter=2, n_jobs=2, random_state=0), "predict", sequences, {}),
    (MemoryBoundedTopicVB(200, max_iter=2, n_jobs=2), "predict_proba", rows, {"groups": groups}),
]


def use(model, method, data, more):
    '''What `fit`, `partial_fit` and a prediction with several threads leave, as bytes.'''
    fitted = model.fit(data, **more)
    predicted = getattr(fitted, method)(data, **more)
    first = [fitted.means_.tobytes(), *(x.tobytes() for x in predicted)]
    return [*first, fitted.partial_fit(data, **more).means_.tobytes()]


def in_child(function):
    '''Exit status of a forked process that calls the function.'''
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

CALLS_IN_A_CHILD = """
for case in CASES:
    expected = use(*case)

    def again():
        assert use(*case) == expected

    assert in_child(again) == 0, case
    assert in_child(lambda: in_child(again)) == 0, case
    again()
"""

THREADS_WHERE_NONE_WERE_LOST = """
from sklearn_bnp.estimator.threads import threads

def first_use():
    assert threads(2) == 2
    use(*CASES[0])
    assert in_child(lambda: sys.exit(threads(2) - 1)) == 1  # SystemExit

assert in_child(first_use) == 0
assert threads(2) == 2
"""

WORKERS_OF_JOBLIB = """
from joblib import Parallel, delayed

expected = [use(*case) for case in CASES]
with Parallel(n_jobs=2, backend="multiprocessing") as parallel:
    assert parallel(delayed(use)(*case) for case in CASES) == expected
"""

WHILE_A_KERNEL_RUNS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

many = np.tile(rows, (60, 1))
expected, model = use(*CASES[0]), CASES[0][0]
fitted, done = DPMixtureVB(2, max_iter=1, n_jobs=2, random_state=0).fit(many), threading.Event()


def predict_on():
    while not done.is_set():
        fitted.predict_proba(many)


other = threading.Thread(target=predict_on)
other.start()
for _ in range(2):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        found = [pool.submit(use, *CASES[0]) for _ in range(2)]
        assert [f.result() for f in found] == [expected] * 2
done.set()
other.join()
"""

LIMITS_OF_OTHER_THREADS = """
import threadpoolctl

from sklearn_bnp.inputs import blas


def blas_threads():
    return {library["filepath"]: library["num_threads"] for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"}


def child():
    assert blas_threads() == (before if not own else dict.fromkeys(before, 1)), (own, blas_threads())
    with blas.blas_on_one_thread():
        assert set(blas_threads().values()) <= {1}


def slow():
    '''The libraries, which take long to find.'''
    begun.set()
    time.sleep(0.3)
    return libraries


def hold():
    with blas.blas_on_one_thread():
        holding.set()
        end.wait()


before = blas_threads()
begun, holding, end = threading.Event(), threading.Event(), threading.Event()
libraries, own, blas._libraries = blas._libraries(), False, slow
other = threading.Thread(target=hold)
other.start()
begun.wait()
assert in_child(child) == 0  # while the other thread sets the limit
holding.wait()
assert in_child(child) == 0  # and while it holds it
own = True
with blas.blas_on_one_thread():
    assert in_child(child) == 0
end.set()
other.join()
assert blas_threads() == before
"""


CASES = [
    CALLS_IN_A_CHILD, THREADS_WHERE_NONE_WERE_LOST, WORKERS_OF_JOBLIB, WHILE_A_KERNEL_RUNS,
    LIMITS_OF_OTHER_THREADS,
]  # fmt: skip


@pytest.mark.extended
@pytest.mark.distinct
@pytest.mark.parametrize(
    "case",
    CASES,
    ids=["calls in a child", "first threads", "joblib", "kernel that runs", "limits of others"],
)
def test_no_child_waits_for_threads_that_it_has_not(case):
    done = subprocess.run(
        [sys.executable, "-c", START + case],
        cwd=ROOT, timeout=SECONDS, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
