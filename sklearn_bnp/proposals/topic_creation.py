"""New topics for a target, from what documents have of it (Hughes 2016, Sec. 5.5.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.corpus import Documents, Settings

_PASSES = 3
_SETTINGS = Settings(cold=True, max_iter=20)
# Least tokens of a new topic, and least share of the target's.
_LEAST_TOKENS, _LEAST_SHARE = 20.0, 0.01


class TopicCreation(NamedTuple):
    """Proposed successors of a topic: statistics (J, P) on its sample."""

    s: np.ndarray


def create_topics(model, sample, doc_prior, n_seeds, rng, n_threads=1):
    """Successors of a topic by a topic model nested in it, or None if there are not two.

    Parameters
    ----------
    model : TopicModel
    sample : DocumentSample
        Pseudo-documents of the target, from all documents that use it.
    doc_prior : float
        The target's parameter ``alpha pi_k`` in the prior of the documents; successors share it.
    n_seeds : int
    rng : numpy.random.RandomState
    """
    likelihood, prior = model.likelihood, model.prior
    s = _seeds(likelihood, sample, n_seeds, rng)
    least = max(_LEAST_TOKENS, _LEAST_SHARE * sample.total)
    share = np.full(len(s), 1.0 / len(s))
    for i in range(_PASSES):
        if len(s) < 2:
            return None
        step = likelihood.document_step(
            likelihood.document_parameters(prior, s), sample.docs, doc_prior * share,
            _SETTINGS._replace(n_threads=n_threads), mass=sample.mass,
        )  # fmt: skip
        keep = step.s[:, -1] >= (least if i + 1 == _PASSES else 1.0)
        s = step.s[keep]
        share = s[:, -1] / s[:, -1].sum()
    return TopicCreation(s) if len(s) > 1 else None


def _seeds(likelihood, sample, n_seeds, rng):
    """Statistics of half a random document and half the target each, with its mass shared out."""
    docs, mass = sample
    everything = _summary(likelihood, docs, mass)
    sizes = np.add.reduceat(mass * docs.counts, docs.indptr[:-1])
    n_seeds = min(n_seeds, len(docs))
    chosen = rng.choice(len(docs), n_seeds, replace=False, p=sizes / sizes.sum())
    s = np.array([_summary(likelihood, *_one(docs, mass, d)) for d in chosen])
    mean = everything / everything[-1]
    return (s / s[:, -1:] + mean) * (0.5 * everything[-1] / n_seeds)


def _one(docs, mass, d):
    entries = slice(docs.indptr[d], docs.indptr[d + 1])
    fields = [None if f is None else f[entries] for f in docs[1:]]
    indptr = np.array([0, entries.stop - entries.start], dtype=np.int64)
    return Documents(indptr, *fields), mass[entries]


def _summary(likelihood, docs, mass):
    return likelihood.document_summary(docs, mass[:, np.newaxis]).s[0]
