"""Document completion: a part of each document is hidden, and predicted from the rest.

Design note. A document is a bag of entries, whose order means nothing. Which of them `score` hides is drawn
by a hash of what each entry is, and of the sum of these hashes over the document. To sort rows and to draw
places would not do: documents of equal length would all hide the same places, such as the row of the least
value. Copies of a row are numbered, so that they are not all hidden together. A seed makes another hash of
this one, so that random splits are those of each document, too, and equal documents have equal ones.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from ..inputs.rows import at_hand, part

# Rows that are hashed at a time.
_HASHED_ROWS = 1024
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
    """Pseudo-random numbers (n,) for the entries, which depend on the entry's document alone.

    The order of the document's entries does not matter, but for equal rows, which may change places.
    """
    if documents.indices is None:
        own = _told_apart(_hashes_of_rows(documents.x), documents.indptr)
    else:
        own = _scattered(documents.indices.astype(np.uint64) + np.uint64(1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(own, dtype=np.uint64)])
    whole = sums[documents.indptr[1:]] - sums[documents.indptr[:-1]]  # modulo 2^64
    return _scattered(own ^ np.repeat(whole, np.diff(documents.indptr)))


def drawn_keys(documents, rng):
    """Pseudo-random numbers (n,) for the entries, which depend on the entry's document and on ``rng`` alone.

    Entries of a document that are equal, such as single tokens of a word, have different ones.
    """
    seed = np.uint64(rng.randint(np.iinfo(np.int64).max, dtype=np.int64))
    return _scattered(_told_apart(keys_of_content(documents), documents.indptr) ^ seed)


def _hashes_of_rows(x):
    """Hashes (n,) of rows, the same for dense and sparse rows and for all types of numbers."""
    factors = _scattered(np.arange(1, x.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if issparse(x):
        each = np.concatenate([np.zeros(1, np.uint64), _hashes(x.data) * factors[x.indices]])
        sums = np.cumsum(each, dtype=np.uint64)
        return sums[x.indptr[1:]] - sums[x.indptr[:-1]]  # modulo 2^64
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
