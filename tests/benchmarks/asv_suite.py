"""The asv suite: seconds and memory of the kernels, of whole fits, and of predictions.

``asv run`` builds each commit and runs what is here; ``asv compare`` says what a change cost. Every
size is a class attribute, and `TINY` holds those with which tests/test_asv_suite.py runs each
benchmark once, so that none of them rots.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from sklearn_bnp._kernels import _entropies, _forward_backward, _gaussian
from sklearn_bnp._kernels import _responsibilities as kernel
from sklearn_bnp._kernels._chain_entropies import coarse_entropies
from sklearn_bnp.hmm.weights import HDPChains
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.mixture.local import local_pass
from sklearn_bnp.topics.document_terms import CountColumns
from sklearn_bnp.topics.weights import HDPDocuments

from .chains import toy
from .corpora import lda
from .count_passes import learner_of
from .generators import Dataset, gaussians, toy_patches

TINY = {"n_rows": 200, "n_components": 3}


def arms(n_rows: int) -> Dataset:
    """Eight long arms in the plane, like the asterisk's, which is not part of the repository."""
    return gaussians(0, "arms", n_rows, 2, 8, separation=6.0, condition=100.0)


def fit(model, X):
    """The model fitted; whether it has converged is no matter of speed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


class Holes:
    """A pass over rows of which a fifth of the entries are missing, or none, and their densities."""

    params = (["full", "diag"], [0.0, 0.2])
    param_names = ("covariance_type", "missing")
    n_rows, n_components = 2000, 10

    def setup(self, covariance_type, missing):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((self.n_rows, 10))
        x[rng.random(x.shape) < missing] = np.nan
        self.batch, K = Batch("all", x), self.n_components
        moments = column_moments([self.batch], covariance=True)
        self.likelihood = likelihood = GaussianObservation(covariance_type).bind(moments)
        self.s, self.z = np.empty((K, likelihood.n_statistics)), likelihood.prepare(x)
        likelihood.summarise(self.z, rng.dirichlet(np.ones(K), size=self.n_rows), self.s)
        self.coef = likelihood.coefficients(likelihood.prior, self.s)

    def time_pass(self, covariance_type, missing):
        local_pass(self.batch, self.likelihood, self.coef, np.arange(self.n_components))

    def time_densities(self, covariance_type, missing):
        self.likelihood.log_predictive(self.likelihood.prior, self.s, self.z)


class LocalStep:
    """Responsibilities, statistics and entropies, D = 25, full covariances."""

    params = (["float64", "float32"], [None, 4])
    param_names = ("dtype", "n_nonzero")
    n_rows, n_components = 20_000, 50

    def setup(self, dtype, n_nonzero):
        rng = np.random.default_rng(0)
        K, P = self.n_components, kernel.n_statistics(25, kernel.Quadratic.FULL, True)
        self.x = rng.standard_normal((self.n_rows, 25)).astype(dtype)
        self.coef = (0.05 * rng.standard_normal((K, P))).astype(dtype)
        self.resp = np.empty((self.n_rows, K), dtype)
        self.stats, self.entropy = np.empty((K, P)), np.empty(K)
        self.n_nonzero = min(K, K if n_nonzero is None else n_nonzero)
        self.time_local_step(dtype, n_nonzero)  # fills the responsibilities

    def time_local_step(self, dtype, n_nonzero):
        kernel.local_step(
            self.x, self.coef, kernel.Quadratic.FULL, True, None, None, self.resp, self.stats,
            self.entropy, None, self.n_nonzero, 1,
        )  # fmt: skip

    def time_summary_step(self, dtype, n_nonzero):
        sparse = self.n_nonzero < self.n_components
        kernel.summarise(self.x, self.resp, kernel.Quadratic.FULL, True, self.stats, sparse)


class CountPass:
    """One lap of a mixture of counts, as `count_passes` compares it with its bare products."""

    params = (["multinomial", "bernoulli", "poisson"], ["dense", "CSR"])
    param_names = ("family", "rows")
    n_rows, n_components = 20_000, 50

    def setup(self, family, rows):
        self._learner, self._source = learner_of(family, rows, self.n_rows, self.n_components)[:2]

    def time_lap(self, family, rows):
        self._learner.run_lap(self._source, propose=False)


class Blocks:
    """Laps over rows of categories, and of blocks of categories, counts and numbers."""

    params = (["categorical", "blocks"],)
    param_names = ("observation",)
    n_rows, n_components = 20_000, 10

    def setup(self, observation):
        rng = np.random.default_rng(0)
        labels = rng.integers(self.n_components, size=self.n_rows)
        kinds = (labels[:, np.newaxis] + rng.binomial(2, 0.3, size=(self.n_rows, 12))) % 6
        numbers = labels[:, np.newaxis] + rng.standard_normal((self.n_rows, 4))
        counts = rng.poisson(1.0 + labels[:, np.newaxis], size=(self.n_rows, 4))
        blocks = [
            ("kinds", "categorical", slice(0, 12)),
            ("numbers", "gaussian", slice(12, 16)),
            ("counts", "poisson", slice(16, 20)),
        ]
        mixed = observation == "blocks"
        self.X = np.column_stack([kinds, numbers, counts]) if mixed else kinds
        self.model = DPMixtureVB(
            self.n_components,
            observation=ColumnObservation(blocks) if mixed else observation,
            proposals=None,
            max_iter=5,
            random_state=0,
        )

    def time_laps(self, observation):
        fit(self.model, self.X)

    def peakmem_laps(self, observation):
        fit(self.model, self.X)


class UnionEntropies:
    """Entropies of all pairs of components."""

    n_rows, n_components = 20_000, 30

    def setup(self):
        K = self.n_components
        self.resp = np.random.default_rng(0).dirichlet(np.full(K, 0.1), size=self.n_rows)
        self.members = np.column_stack(np.triu_indices(K, 1)).astype(np.intp).ravel()
        self.indptr = np.arange(0, len(self.members) + 1, 2, dtype=np.intp)
        self.out = np.empty(len(self.indptr) - 1)

    def time_union_entropies(self):
        _entropies.union_entropies(self.resp, None, self.indptr, self.members, self.out, 1)


class SmallMatrices:
    """Factors and inverses of many small matrices: a global step."""

    params = ([2, 25, 64],)
    param_names = ("n_features",)
    n_components = 50

    def setup(self, n_features):
        x = np.random.default_rng(0).standard_normal(
            (self.n_components, 2 * n_features, n_features)
        )
        self.a = np.einsum("kni,knj->kij", x, x)
        self.log_det = np.empty(self.n_components)

    def time_log_determinants(self, n_features):
        _gaussian.spd_logdet(self.a.copy(), self.log_det)

    def time_inverses(self, n_features):
        _gaussian.spd_inverse(self.a.copy(), self.log_det)


class Chains:
    """Forward-backward, one long sequence and short ones, and the entropies of chains with pairs joined."""

    params = ([1, 20],)
    param_names = ("n_sequences",)
    n_rows, n_components = 20_000, 50

    def setup(self, n_sequences):
        rng = np.random.default_rng(0)
        n, K = self.n_rows, self.n_components
        self.table = np.exp(-rng.exponential(8.0, size=(n, K)))
        self.trans = rng.dirichlet(np.full(K, 0.5), size=K) + np.eye(K)
        self.first = np.full((n_sequences, K), 1.0 / K)
        self.indptr = np.linspace(0, n, n_sequences + 1).astype(np.int64)
        self.scale, self.data = np.empty(n), np.empty(n_sequences)
        self.maps = np.tile(np.arange(K, dtype=np.intp), (K // 2, 1))
        self.maps[np.arange(K // 2), 2 * np.arange(K // 2) + 1] = 2 * np.arange(K // 2)
        self.resp = self.table.copy()
        _forward_backward.forward(self.resp, self.indptr, self.first, self.trans, self.scale, 1)
        self.alpha = self.resp.copy()
        self._backward(self.resp)

    def _backward(self, table):
        counts = np.zeros_like(self.trans)
        _forward_backward.backward(
            table, self.indptr, self.first, self.trans, self.scale, None, counts, None, None,
            self.data, 1,
        )  # fmt: skip

    def time_forward_backward(self, n_sequences):
        table = self.table.copy()
        _forward_backward.forward(table, self.indptr, self.first, self.trans, self.scale, 1)
        self._backward(table)

    def time_coarse_entropies(self, n_sequences):
        out = np.empty(len(self.maps))
        coarse_entropies(self.alpha, self.resp, self.indptr, self.trans, self.maps, out, 1)


class GlobalStep:
    """The search for the global weights of topics and of states, of which small fits make hundreds."""

    params = (["topics", "sequences"],)
    param_names = ("model",)
    n_components = 8

    def setup(self, model):
        rng, K = np.random.default_rng(0), self.n_components
        if model == "topics":
            counts = rng.gamma(1.0, 20.0, (K, 200))
            each = np.ones(200)
            self.counts = CountColumns(
                counts.ravel(), 200 * np.arange(K + 1), None, 200.0, (counts.sum(axis=0), each)
            )
            self.allocation = HDPDocuments()
        else:
            self.counts = rng.gamma(0.4, 50.0, (K + 1, K))
            self.allocation = HDPChains()

    def time_search(self, model):
        self.allocation.optimise(self.counts)


class FitOthers:
    """Fits of topics and of sequences from one component."""

    params = (["topics", "sequences"],)
    param_names = ("model",)
    timeout = 300
    n_rows = 6_000

    def setup(self, model):
        if model == "topics":
            self.X = lda(0, n_topics=8, n_docs=self.n_rows // 20, V=200, n_tokens=60).train
            self.model = HDPTopicVB(random_state=0, max_iter=15)
        else:
            self.X = toy(0, n_sequences=4, length=self.n_rows // 4).sequences
            self.model = HDPHMMVB(random_state=0, max_iter=15)

    def time_fit(self, model):
        fit(self.model, self.X)

    def peakmem_fit(self, model):
        fit(self.model, self.X)


class Fit:
    """Fits from one component with the default proposals, and of a fixed number without any."""

    params = (["arms", "patches"], ["proposals", "fixed"])
    param_names = ("data", "search")
    timeout = 300
    n_rows, n_components = 10_000, 8

    def setup(self, data, search):
        self.X = (arms if data == "arms" else lambda n_rows: toy_patches(0, n_rows))(self.n_rows).X
        settings = {} if search == "proposals" else {"proposals": None, "max_iter": 20}
        self.model = DPMixtureVB(
            1 if search == "proposals" else self.n_components,
            observation=GaussianObservation(zero_mean=data == "patches"),
            n_batches=10,
            random_state=0,
            **settings,
        )

    def time_fit(self, data, search):
        fit(self.model, self.X)

    def peakmem_fit(self, data, search):
        fit(self.model, self.X)


class MemoryMap:
    """A fit of rows on disk, whose memory does not depend on their number."""

    params = ([1, 8],)
    param_names = ("times_the_rows",)
    timeout = 300
    n_rows = 25_000

    def setup(self, times_the_rows):
        self.folder = tempfile.TemporaryDirectory()
        shape = (self.n_rows * times_the_rows, 20)
        self.X = np.memmap(Path(self.folder.name) / "rows", np.float64, mode="w+", shape=shape)
        rng = np.random.default_rng(0)
        means = 4.0 * rng.standard_normal((3, shape[1]))
        for start in range(0, len(self.X), self.n_rows):
            rows = self.X[start : start + self.n_rows]
            rows[:] = means[rng.integers(3, size=len(rows))] + rng.standard_normal(rows.shape)
        self.model = DPMixtureVB(n_batches=10, max_iter=4, random_state=0)

    def teardown(self, times_the_rows):
        del self.X
        self.folder.cleanup()

    def peakmem_fit(self, times_the_rows):
        fit(self.model, self.X)


class ManyBatchesOfDocuments:
    """Laps over many small batches of documents, with merges: what a visit costs beside the local step."""

    params = ([1, 100],)
    param_names = ("n_batches",)
    timeout = 300
    n_rows = 10_000

    def setup(self, n_batches):
        rng = np.random.default_rng(0)
        topics = rng.dirichlet(np.full(500, 0.05), 20)
        shares = rng.dirichlet(np.full(20, 0.1), self.n_rows)
        self.X = np.array([rng.multinomial(60, share @ topics) for share in shares])
        self.model = HDPTopicVB(
            n_batches=n_batches, proposals=("merge",), init_params=np.repeat(topics, 2, axis=0),
            doc_restarts=0, max_iter=4, random_state=0,
        )  # fmt: skip

    def time_fit(self, n_batches):
        fit(self.model, self.X)


class BoundedMemory:
    """A stream of documents in epochs, kept in bounded memory."""

    params = ([5_000, 50_000],)
    param_names = ("memory_bound",)
    timeout = 300
    n_rows = 10_000

    def setup(self, memory_bound):
        rng = np.random.default_rng(0)
        means = 4.0 * rng.standard_normal((10, 5))
        labels = rng.integers(10, size=self.n_rows)
        self.X = means[labels] + rng.standard_normal((self.n_rows, 5))
        self.groups = np.sort(rng.integers(20, size=self.n_rows))
        self.model = MemoryBoundedTopicVB(memory_bound)

    def time_fit(self, memory_bound):
        for first in range(4):
            self.model.partial_fit(self.X[first::4], groups=self.groups[first::4])

    def peakmem_fit(self, memory_bound):
        self.time_fit(memory_bound)


class Predict:
    """Labels and densities of rows, by a model of some components."""

    params = (["predict", "predict_proba", "score_samples"],)
    param_names = ("method",)
    n_rows, n_components = 50_000, 20

    def setup(self, method):
        X = gaussians(0, "", self.n_rows, 10, self.n_components, separation=6.0).X
        model = DPMixtureVB(self.n_components, proposals=None, max_iter=2, random_state=0)
        self.call, self.X = getattr(fit(model, X), method), X

    def time_method(self, method):
        self.call(self.X)

    def peakmem_method(self, method):
        self.call(self.X)
