"""Topics to start from that are clusters of whole documents, for short texts.

Design note
-----------
(a) A short document says little about its shares of several topics, and mostly has one or two. Documents that
    share a topic are then found as the rows of a mixture are: each document belongs to one cluster, and the
    words of a cluster are those of a topic.
(b) A cluster of few documents fits each of them far better than it fits others like it. Each document is
    therefore left out of the clusters that it is in before it is compared with them, as in births of
    mixtures. Without this, seeds hold on to what they have, and no structure is found.
(c) The weights of clusters have a symmetric Dirichlet prior; seeds that find no documents leave.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..likelihood.seeding import seeding_mass

# Steps at the most. They end earlier when hardly any document moves, as a share of all.
_STEPS, _AT_REST = 30, 1e-3
# A document is left out of the clusters in which it has at least a certain share. This share is twice what it
# has of each cluster if it cannot tell them apart, but never outside these limits.
_LEAST_SHARE, _ENOUGH = 0.01, 0.05
# Documents for each seed, and documents that a cluster must have.
_DOCUMENTS_A_SEED, _LEAST_DOCUMENTS = 8, 1.0


def clustered_documents(counts, prior, n_seeds, rng, weight=None):
    """Counts of words (J, V) in clusters of documents, two or more; None if there are no clusters.

    Parameters
    ----------
    counts : csr_matrix, shape (n_docs, V)
        Words of documents; none is empty.
    prior : ndarray, shape (V,)
        Pseudo-counts of the words in a cluster.
    n_seeds : int
        Most clusters to start from.
    rng : numpy.random.RandomState
    weight : ndarray, shape (n_docs,), or None
        Numbers of equal documents.
    """
    n_docs = counts.shape[0]
    n_seeds = min(n_seeds, n_docs // _DOCUMENTS_A_SEED)
    if n_seeds < 2:
        return None
    lengths = counts @ np.ones(counts.shape[1])
    times = np.ones(n_docs) if weight is None else weight
    sizes = seeding_mass(lengths * times, weight)
    chosen = rng.choice(n_docs, n_seeds, replace=False, p=sizes / sizes.sum())
    everything = counts.T @ times
    s = counts[chosen].toarray() + everything / times.sum()  # half a document, half what all have
    shares = None
    for _ in range(_STEPS):
        before, shares = shares, _shares(counts, lengths, times, s, shares, prior)
        if (
            before is not None
            and times @ np.abs(shares - before).sum(axis=1) < _AT_REST * times.sum()
        ):
            break
        s = (counts.T @ (shares * times[:, np.newaxis])).T
        kept = times @ shares > _LEAST_DOCUMENTS * min(1.0, times.min())
        s, shares = s[kept], shares[:, kept]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return s if len(s) > 1 else None


def _shares(counts, lengths, times, s, shares, prior):
    """Shares (n_docs, J) of documents in clusters of counts ``s`` (J, V), each judged without itself.

    ``shares`` are those of the step before, on which ``s`` rests; None if it rests on none.
    """
    n_docs, total, sizes = counts.shape[0], prior.sum(), s.sum(axis=1)
    log_p = counts @ np.log(s.T + prior[:, np.newaxis]) - np.outer(lengths, np.log(sizes + total))
    n = np.full((1, len(s)), n_docs / len(s))
    if shares is not None:
        own = shares * times[:, np.newaxis]
        n = np.maximum(own.sum(axis=0) - own, 0.0)
        docs, clusters = np.nonzero(shares >= np.clip(2.0 / len(s), _LEAST_SHARE, _ENOUGH))
        log_p[docs, clusters] += _without(
            counts[docs], lengths[docs], own[docs, clusters], s, sizes, clusters, prior, total
        )
    log_p += np.log(n + 1.0 / len(s))
    log_p -= log_p.max(axis=1, keepdims=True)
    p = np.exp(log_p)
    return p / p.sum(axis=1, keepdims=True)


def _without(counts, lengths, own, s, sizes, clusters, prior, total):
    """Change (n,) of the log probabilities of documents if each is taken out of its cluster.

    ``own`` (n,) are the documents' shares in their ``clusters`` (n,), times their weights.
    """
    n_entries = np.diff(counts.indptr)
    cluster = np.repeat(clusters, n_entries)
    there, base = s[cluster, counts.indices], prior[counts.indices]
    left = np.maximum(there - np.repeat(own, n_entries) * counts.data, 0.0)
    each = sparse.csr_matrix(
        (counts.data * np.log((left + base) / (there + base)), counts.indices, counts.indptr),
        shape=counts.shape,
    )
    rest = np.maximum(sizes[clusters] - own * lengths, 0.0)
    return each @ np.ones(counts.shape[1]) - lengths * np.log(
        (rest + total) / (sizes[clusters] + total)
    )
