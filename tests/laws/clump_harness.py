"""Where laws of memory bounded learning touch the package's inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sklearn_bnp.estimator.base import bind_likelihood
from sklearn_bnp.inputs.batches import ArraySource
from sklearn_bnp.memory_bounded import building, local
from sklearn_bnp.memory_bounded.items import (
    Items,
    NewDocuments,
    nothing,
    rows_of_statistics,
    with_epoch,
)
from sklearn_bnp.memory_bounded.model import EpochSettings
from sklearn_bnp.topics.corpus import CountRows

SHAPE, RATE = 1.5, 0.5


class Problem(NamedTuple):
    """Rows of documents, and which of them are one clump or one group.

    Attributes
    ----------
    likelihood : Likelihood
    z : ndarray, shape (n, D)
    owner : ndarray of int, shape (n,)
        Document of each row, ascending.
    clump : ndarray of int, shape (n,)
    group : ndarray of int, shape (n_documents,)
    """

    likelihood: object
    z: np.ndarray
    owner: np.ndarray
    clump: np.ndarray
    group: np.ndarray

    @property
    def features(self):
        return rows_of_statistics(self.likelihood, self.z)

    def items(self):
        """`Items` in which all rows are of the table: clumps, whether of several rows or of one."""
        n, S = np.bincount(self.clump).astype(float), self.group.max() + 1
        tie = csr_array(np.eye(len(n))[self.clump].T / n[:, np.newaxis])
        shares = tie @ csr_array(np.eye(S)[self.group[self.owner]])
        sizes = np.bincount(self.group).astype(float)
        empty = np.zeros(1, dtype=np.int64)
        return Items(tie @ self.features, csr_array(shares), n, n, self.z[:0], empty, sizes, sizes)

    def spread(self, resp):
        """Responsibilities (C, K) of clumps, for each row."""
        return resp[self.clump]


def likelihood_of(family, x):
    """The family's likelihood in the units of these rows."""
    likelihood = bind_likelihood(family.observation, ArraySource(x, None))
    return CountRows(likelihood.prior, likelihood.n_tokens) if likelihood.words else likelihood


def problem(family, n=30, n_documents=6, n_clumps=12, n_groups=4, seed=0):
    """A `Problem` with clumps of rows of any documents, and groups of any documents."""
    rng = np.random.default_rng(seed)
    x, _ = family.rows(rng, n)
    likelihood = likelihood_of(family, x)
    owner = np.sort(
        np.concatenate([np.arange(n_documents), rng.integers(n_documents, size=n - n_documents)])
    )
    clump = rng.permutation(
        np.concatenate([np.arange(n_clumps), rng.integers(n_clumps, size=n - n_clumps)])
    )
    group = np.concatenate(
        [np.arange(n_groups), rng.integers(n_groups, size=n_documents - n_groups)]
    )
    return Problem(likelihood, likelihood.prepare(x), owner, clump, group)


def settings(likelihood, tol=1e-5, max_iter=100, max_topics=50):
    return EpochSettings(likelihood, SHAPE, RATE, tol, max_iter, max_topics, 1)


def epoch_items(family, n=300, n_documents=6, seed=0):
    """Likelihood, and `Items` of a first epoch of that many rows, all of which are there."""
    rng = np.random.default_rng(seed)
    x, labels = family.rows(rng, n)
    likelihood = likelihood_of(family, x)
    # documents that prefer a cluster each
    owner = np.where(rng.random(n) < 0.6, labels % n_documents, rng.integers(n_documents, size=n))
    rows = np.argsort(owner, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_documents))])
    z = likelihood.prepare(x[rows])
    new = NewDocuments(z, indptr, np.ones(n_documents))
    return likelihood, with_epoch(nothing(likelihood, z.dtype), likelihood, new)


def bounds_of_updates(monkeypatch):
    """A list of the bounds after all updates of `converge` and `build` from now on, but for failed trials."""
    bounds, update, best_moves = [], local.update, building._best_moves

    def noted(*args):
        topics = update(*args)
        bounds.append(topics.bound)
        return topics

    def noted_moves(*args):
        n = len(bounds)
        found = best_moves(*args)
        bounds[n:] = [] if found is None else [found[1].bound]
        return found

    for module in (local, building):
        monkeypatch.setattr(module, "update", noted)
    monkeypatch.setattr(building, "_best_moves", noted_moves)
    return bounds
