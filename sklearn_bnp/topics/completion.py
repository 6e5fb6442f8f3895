"""Document completion: a part of each document is hidden, and predicted from the rest.

Design note. A document is a bag of entries, whose order means nothing. Which of them `score` hides is drawn
by a hash of what each entry is, and of the sum of these hashes over the document. To sort rows and to draw
places would not do: documents of equal length would all hide the same places, such as the row of the least
value. Copies of a row are numbered, so that they are not all hidden together. A seed makes another hash of
this one, so that random splits are those of each document, too, and equal documents have equal ones.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import issparse

from ..inputs.rows import at_hand, part

# NumPy draws hypergeometric numbers only from fewer tokens than this.
_MOST_TOKENS = 10**9
# Rows that are hashed at a time.
_HASHED_ROWS = 1024
# Odd multipliers that scatter whole numbers over 64 bits (splitmix64).
_SCATTER = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


def mean_of_tokens(log_prob, n_tokens):
    """Mean per token of so many, whose log probabilities sum to ``log_prob``."""
    if not n_tokens > 0:
        raise ValueError(
            "X holds no tokens to be predicted: all its counts are zero. Give documents that have words."
        )
    return float(log_prob / n_tokens)


def perplexity_of(score):
    """``exp(-score)``; infinite if the density of rows of many columns underflows."""
    with np.errstate(over="ignore"):
        return float(np.exp(-score))


def entries_apart(documents, keys, heldout):
    """Two `DocumentBatch`: the documents without their `hidden_entries`, and these entries."""
    hidden = hidden_entries(documents, keys, heldout)
    return documents.restricted(~hidden), documents.restricted(hidden)


def hidden_entries(documents, keys, heldout):
    """Boolean (n,): hidden entries, the share ``heldout`` of each document with the least ``keys`` (n,).

    At least one entry of each document is hidden, and at least one is left if it has several.
    """
    sizes = np.diff(documents.indptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    n_hidden = _n_hidden(sizes, heldout)
    order = np.lexsort((keys, owner))
    hidden = np.empty(documents.n_entries, dtype=bool)
    place = np.arange(documents.n_entries) - documents.indptr[owner]
    hidden[order] = place < n_hidden[owner]
    return hidden


def _n_hidden(sizes, heldout):
    """How many of so many entries or tokens are hidden, where there are some."""
    return np.clip(np.rint(heldout * sizes).astype(np.int64), 1, np.maximum(sizes - 1, 1))


def keys_of_content(documents):
    """Pseudo-random numbers (n,) for the entries, which depend on the entry's document alone.

    The order of the document's entries does not matter, but for equal rows, which may change places.
    """
    own = _hashes_of_entries(documents)
    whole = _sums(own, documents.indptr)
    return _scattered(own ^ np.repeat(whole, np.diff(documents.indptr)))


def drawn_keys(documents, rng):
    """Pseudo-random numbers (n,) for the entries, functions of the entry's document and of ``rng`` alone."""
    return _scattered(keys_of_content(documents) ^ _seed(rng))


def _seed(rng):
    return np.uint64(rng.randint(np.iinfo(np.int64).max, dtype=np.int64))


def _hashes_of_entries(documents):
    """Hashes (n,) of entries by what they are."""
    if documents.indices is None:
        return _told_apart(_hashes_of_rows(documents.x), documents.indptr)
    return _scattered(documents.indices.astype(np.uint64) + np.uint64(1))


def _sums(own, indptr):
    """Sums of hashes (n,) over documents, modulo 2^64."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(own, dtype=np.uint64)])
    return sums[indptr[1:]] - sums[indptr[:-1]]


def _hashes_of_rows(x):
    """Hashes (n,) of rows, the same for dense and sparse rows and for all types of numbers."""
    factors = _scattered(np.arange(1, x.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if issparse(x):
        return _sums(_hashes(x.data) * factors[x.indices], x.indptr)
    out = np.empty(x.shape[0], dtype=np.uint64)
    for start in range(0, len(out), _HASHED_ROWS):  # so few that they stay in the cache
        rows = slice(start, start + _HASHED_ROWS)
        out[rows] = (_hashes(at_hand(part(x, rows))) * factors).sum(axis=1, dtype=np.uint64)
    return out


def _told_apart(own, indptr):
    """Hashes (n,) of rows ``own``, each of which stands for its row and for its number among the copies."""
    owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((own, owner))
    sorted_own, sorted_owner = own[order], owner[order]
    is_new = np.ones(len(own), dtype=bool)
    is_new[1:] = (sorted_own[1:] != sorted_own[:-1]) | (sorted_owner[1:] != sorted_owner[:-1])
    place = np.arange(len(own))
    number = np.empty(len(own), dtype=np.uint64)
    number[order] = place - np.maximum.accumulate(np.where(is_new, place, 0))
    return _scattered(own + _scattered(number))


def _hashes(x):
    """Hashes of numbers: 0 of zero, whatever its sign, and the same of all NaN."""
    x = np.ascontiguousarray(x, dtype=np.float64) + 0.0
    x[np.isnan(x)] = np.nan
    return _scattered(x.view(np.uint64))


def _scattered(x):
    """Hash of whole numbers (uint64)."""
    x = x * _SCATTER[0]
    x = (x ^ (x >> np.uint64(30))) * _SCATTER[1]
    x = (x ^ (x >> np.uint64(27))) * _SCATTER[2]
    return x ^ (x >> np.uint64(31))


def tokens_apart(documents, rng, heldout):
    """Two `DocumentBatch`: the documents without some of their tokens, and these tokens.

    The share ``heldout`` of each document's tokens is drawn without replacement, by a generator whose seed is
    of the document and of ``rng`` alone. At least one is, and at least one is left if there are several.
    """
    counts = documents.counts
    whole = np.rint(counts).astype(np.int64)
    if not np.array_equal(whole, counts):
        raise ValueError(
            f"by='tokens' needs whole counts, but X holds {counts[whole != counts][0]:g}; use "
            "by='types'."
        )
    indptr = documents.indptr
    sizes = np.diff(np.concatenate([[0], np.cumsum(whole)])[indptr])
    if sizes.max() >= _MOST_TOKENS:
        raise ValueError(
            f"by='tokens' draws from documents of fewer than {_MOST_TOKENS:.0e} tokens, but X has one of "
            f"{sizes.max():.3g}; use by='types'."
        )
    keys = _scattered(_sums(_hashes_of_entries(documents), indptr) ^ _seed(rng))
    each = zip(np.minimum(_n_hidden(sizes, heldout), sizes).tolist(), keys.tolist(), strict=True)
    bits, hidden = np.random.PCG64(0), np.empty(len(whole), dtype=np.int64)
    generator, state = np.random.Generator(bits), bits.state
    for (first, last), (n, key) in zip(pairwise(indptr.tolist()), each, strict=True):
        state["state"]["state"] = key
        bits.state = state  # a new generator would take longer than its draws
        hidden[first:last] = generator.multivariate_hypergeometric(
            whole[first:last], n, method="marginals"
        )
    left, taken = whole - hidden, hidden > 0
    return (
        documents._replace(counts=left.astype(float)).restricted(left > 0),
        documents._replace(counts=hidden.astype(float)).restricted(taken),
    )
