"""Document completion: a part of each document is hidden, and predicted from the rest."""

from __future__ import annotations

import numpy as np

# Odd multipliers that scatter whole numbers over 64 bits (splitmix64).
_SCATTER = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


def mean_of_tokens(log_prob, counts):
    """Mean per token, where entries occur ``counts`` (n,) times and ``log_prob`` (n,) sums over these."""
    total = counts.sum()
    if not total > 0:
        raise ValueError("X holds no tokens to be predicted: all its counts are zero.")
    return float(log_prob.sum() / total)


def perplexity_of(score):
    """``exp(-score)``; infinite if the density of rows of many columns underflows."""
    with np.errstate(over="ignore"):
        return float(np.exp(-score))


def hidden_entries(documents, keys, heldout):
    """Boolean (n,): hidden entries, the share ``heldout`` of each document with the least ``keys`` (n,).

    At least one entry of each document is hidden, and at least one is left if it has several.
    """
    sizes = np.diff(documents.indptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    n_hidden = np.clip(np.rint(heldout * sizes).astype(np.int64), 1, np.maximum(sizes - 1, 1))
    order = np.lexsort((keys, owner))
    hidden = np.empty(documents.n_entries, dtype=bool)
    place = np.arange(documents.n_entries) - documents.indptr[owner]
    hidden[order] = place < n_hidden[owner]
    return hidden


def keys_of_content(documents):
    """Pseudo-random numbers (n,) for the entries, which depend on the entry's document alone."""
    sizes = np.diff(documents.indptr)
    place = np.arange(documents.n_entries) - np.repeat(documents.indptr[:-1], sizes)
    own = (place if documents.indices is None else documents.indices).astype(np.uint64)
    own = _scattered(own + np.uint64(1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(own, dtype=np.uint64)])
    whole = sums[documents.indptr[1:]] - sums[documents.indptr[:-1]]  # modulo 2^64
    return _scattered(own ^ np.repeat(whole, sizes))


def _scattered(x):
    """Hash of whole numbers (uint64)."""
    x = x * _SCATTER[0]
    x = (x ^ (x >> np.uint64(30))) * _SCATTER[1]
    x = (x ^ (x >> np.uint64(27))) * _SCATTER[2]
    return x ^ (x >> np.uint64(31))


def single_tokens(documents):
    """The documents with one entry per token."""
    counts = documents.counts
    whole = np.rint(counts)
    if not np.array_equal(whole, counts):
        raise ValueError(
            f"by='tokens' needs whole counts, but X holds {counts[whole != counts][0]:g}; use "
            "by='types'."
        )
    ends = np.concatenate([[0], np.cumsum(whole)]).astype(np.int64)
    entries = np.repeat(documents.indices, whole.astype(np.int64))
    return documents._replace(
        indptr=ends[documents.indptr], counts=np.ones(len(entries)), indices=entries
    )
