"""Calls of kernels have as many threads as their work is worth."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB
from sklearn_bnp._kernels import threads
from sklearn_bnp._kernels._responsibilities import Quadratic
from sklearn_bnp.engine import unions
from sklearn_bnp.hmm import local as chains
from sklearn_bnp.likelihood import row_kernels
from sklearn_bnp.topics import local as topics
from sklearn_bnp.topics import new_documents
from sklearn_bnp.topics.documents import Documents, DocumentSettings

pytestmark = pytest.mark.usefixtures("threads_as_shipped")

# States or topics, columns, and numbers of s(x) for a full covariance.
K, D, P = 7, 6, 28
# Rows of the samples that births fit small models to, and of a large batch.
FEW, MANY = 4_000, 60_000


class Watched:
    """A kernel that notes its ``n_threads``, the argument at ``place``, before it runs."""

    def __init__(self, kernel, place, asked):
        self.kernel, self.place, self.asked = kernel, place, asked

    def __call__(self, *args):
        self.asked.append(args[self.place])
        return self.kernel(*args)


@pytest.fixture
def asked(monkeypatch):
    """Names of kernels -> the numbers of threads that they are called with."""
    found = {}
    for module, name, place in [
        (row_kernels, "local_step", 11), (chains.kernel, "forward", 5), (chains.kernel, "backward", 10),
        (unions, "union_entropies", 5), (topics.kernel, "document_step", 17),
        (new_documents, "collapsed_shares", 9),
    ]:  # fmt: skip
        watched = Watched(getattr(module, name), place, found.setdefault(name, []))
        monkeypatch.setattr(module, name, watched)
    return found


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_each_thread_has_some_work(n_threads):
    least = threads.LEAST_WORK
    assert least >= 1e5  # to wake a thread takes a twentieth of that
    for work in least * np.array([0.0, 0.5, 1.0, 1.9, 2.0, 3.5, 9.0, 1e6]):
        n = threads.threads_for(work, n_threads)
        assert 1 <= n <= n_threads and (n == 1 or work >= n * least)
        assert n == n_threads or work < (n + 1) * least


class Rows(row_kernels.DenseRows):
    """Rows with a full covariance."""

    n_features, n_statistics, quadratic = D, P, Quadratic.FULL


@pytest.mark.parametrize(("n", "n_threads"), [(FEW, 1), (MANY, 2)])
def test_threads_of_rows_and_chains(asked, n, n_threads):
    rng = np.random.default_rng(0)
    z, coef = rng.normal(size=(n, D)), 0.1 * rng.normal(size=(K, P))
    first, trans = np.full((1, K), 1.0 / K), rng.dirichlet(np.ones(K), size=K)
    passed = chains.filtered(z, np.array([0, n]), Rows(), coef, first, trans, 2)
    chains.smoothed(passed, trans, None, None, 2)
    resp = Rows().local_step(coef, z, None, None, np.empty((K, P)), None, n_threads=2)
    unions.entropies_of_unions(resp, None, [(0, 1), (2, 3, 4)] * 5, n_threads=2)
    assert {name: set(found) for name, found in asked.items() if found} == {
        "local_step": {n_threads}, "forward": {n_threads}, "backward": {n_threads},
        "union_entropies": {n_threads},
    }  # fmt: skip


@pytest.mark.parametrize(("n", "n_threads"), [(10, 1), (2_000, 2)])
def test_threads_of_documents(asked, n, n_threads):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 50, size=10 * n, dtype=np.int32)
    docs = Documents(10 * np.arange(n + 1), np.ones(10 * n), words)
    table, prior = rng.dirichlet(np.ones(50), size=K).T.copy(), np.full(K, 0.1)
    topics.step_of_words(table, docs, prior, DocumentSettings(max_iter=2, n_threads=2))
    new_documents.infer(table, docs, prior, 2, 1e-3, n_threads=2)
    assert asked["document_step"] == asked["collapsed_shares"] == [n_threads]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_births_of_states_have_one_thread(asked):
    """They fit small models in hundreds of short calls, which wait for each other where cores are shared."""
    z = np.random.default_rng(0).normal(size=(2_000, 2)) + np.repeat([[0.0], [9.0]], 1_000, axis=0)
    HDPHMMVB(max_iter=4, n_jobs=2, random_state=0).fit(z)
    assert all(len(asked[name]) > 20 for name in ("local_step", "forward", "backward"))
    assert {n for found in asked.values() for n in found} == {1}
