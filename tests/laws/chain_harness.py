"""The one place where laws of hidden Markov models touch the package's inside."""

from __future__ import annotations

import numpy as np

from sklearn_bnp.hmm.batch import SequenceBatch
from sklearn_bnp.hmm.model import SequenceModel
from sklearn_bnp.hmm.setup import PROPOSALS as STATE_PROPOSALS
from sklearn_bnp.hmm.weights import DirichletChains, HDPChains
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.groups import GroupSource
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood import GaussianObservation
from sklearn_bnp.likelihood.autoregressive_gaps import blanked
from sklearn_bnp.likelihood.lags import lagged

from .harness import fresh_learner

ALLOCATIONS = {
    "sticky": HDPChains(1.0, 1.0, 2.0, 20.0),
    "plain": HDPChains(1.0, 1.5, 1.0, 0.0),
    "slightly sticky": HDPChains(1.0, 1.0, 1.0, 0.05),
    "finite": DirichletChains(1.5, 1.0, 5.0),
}


def toy(rng, *, n_states=3, lengths=(40, 25, 1, 60), stay=0.85, spread=4.0, n_features=2):
    """Sequences of Gaussian states with unit covariances, and their states."""
    means = spread * rng.normal(size=(n_states, n_features))
    rows, states = [], []
    for length in lengths:
        z = np.empty(length, dtype=int)
        z[0] = rng.integers(n_states)
        for t in range(1, length):
            z[t] = z[t - 1] if rng.random() < stay else rng.integers(n_states)
        rows.append(means[z] + rng.normal(size=(length, n_features)))
        states.append(z)
    return rows, states


def batch_of(rows, lags=0, resp=None):
    """All sequences as one batch."""
    indptr = np.cumsum([0] + [len(x) for x in rows]).astype(np.int64)
    return SequenceBatch(None, np.concatenate(rows), indptr, lags, resp)


def moments_of(x, *, covariance=True):
    """`Moments` of rows."""
    return column_moments([Batch(None, x)], covariance=covariance)


def learner_of(rows, allocation, *, observation=None, proposals=(), seed=0):
    """A `Learner` of sequences, and all of them as a batch."""
    observation = GaussianObservation() if observation is None else observation
    batch = batch_of(rows, observation.lags)
    x, _ = lagged(batch.x, batch.indptr, batch.lags)
    likelihood = observation.bind(moments_of(blanked(x), covariance=observation.needs_covariance))
    model = SequenceModel(likelihood, allocation, likelihood.prior)
    chosen = [STATE_PROPOSALS[name]() for name in proposals]
    return fresh_learner(model, chosen, seed), batch


def features(likelihood, batch):
    """s(x) of each modelled row, (T, P)."""
    z, _ = batch.prepared(likelihood.prepare)
    return likelihood.features(z)


def start(learner, batch, n_components, seed=0):
    """First parameters from random shares of the rows."""
    s = features(learner.model.likelihood, batch)
    shares = np.random.default_rng(seed).dirichlet(np.full(n_components, 0.3), len(s))
    learner.start(shares.T @ s)


def source(batch, n_batches):
    return GroupSource(batch, n_batches)
