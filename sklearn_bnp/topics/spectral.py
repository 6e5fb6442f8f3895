"""Topics to start from that are directions of the corpus, for documents that mix many topics.

Design note
-----------
(a) Documents that mix many topics are all alike, so that neither a document nor a cluster of some says what a
    topic is. In the space of words, all documents together span the topics: the largest singular vectors
    of their counts find this span, and in it topics are the directions in which few words have much and most
    have nothing. Varimax finds such directions. (Rohe and Zeng 2023 show that it finds topics.)
(b) Counts are divided by roots of a document's length and of a word's count, or frequent words would have all
    directions. Lengths and counts are at least about their means for this: few tokens say little.
(c) There may be more directions than topics, since what is found is merged. Each has the sign that makes it
    skewed towards large entries, and what is below zero is left out.
(d) Where all documents have a common part, this part is the first direction, and noise in its frequent words
    hides others. So there are also directions of what each document has beyond the mean of all. Each word
    then has the same variance, as in correspondence analysis, and small entries are left out.
(e) Varimax looks at the words with the largest entries alone. With all words it would take longer than a pass
    over the documents.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

# Iterations of the randomised singular value decomposition, and of varimax; gain at which varimax ends.
_POWER_ITERATIONS, _ROTATIONS, _AT_REST = 4, 50, 1e-4
# Dimensions beyond those that are wanted, in which directions beyond the mean are looked for.
_SPARE = 10
# The words with the largest entries decide the rotation: so many for each direction.
_WORDS_A_DIRECTION = 20
# Directions beyond the mean: tokens that are added to lengths and counts, and the share of the largest entry
# below which others are left out.
_TOKENS_ADDED, _SMALL = 2.0, 0.15


def spectral_topics(counts, numbers, rng, weight=None):
    """Distributions (J, V) of words along so many directions of the corpus, for each of ``numbers``.

    Parameters
    ----------
    counts : csr_matrix, shape (n_docs, V)
        Words of documents; none is empty.
    numbers : list of int
        Each less than n_docs and than the number of words that occur.
    rng : numpy.random.RandomState
    weight : ndarray, shape (n_docs,), or None
        Numbers of equal documents.

    Yields
    ------
    topics : ndarray, shape (J, V)

    References
    ----------
    K. Rohe and M. Zeng, Vintage factor analysis with varimax performs statistical inference, JRSS B 85, 2023.
    """
    if not numbers:
        return
    times = np.ones(counts.shape[0]) if weight is None else weight
    lengths, totals = np.asarray(counts.sum(axis=1)).ravel(), counts.T @ times
    occur = np.flatnonzero(totals)
    by_document = np.sqrt(times / (lengths + np.average(lengths, weights=times)))
    by_word = np.sqrt(totals[occur] + totals[occur].mean())
    scaled = sparse.diags(by_document) @ counts[:, occur] @ sparse.diags(1.0 / by_word)
    _, _, directions = randomized_svd(
        scaled, max(numbers), n_iter=_POWER_ITERATIONS, random_state=rng
    )
    for n in numbers:
        topics = np.zeros((n, counts.shape[1]))
        topics[:, occur] = _positive(directions[:n]) * by_word
        yield topics / topics.sum(axis=1, keepdims=True)


def topics_beyond_mean(counts, n, rng, weight=None):
    """Distributions (n, V) of words along directions of what documents have beyond the mean of all.

    Parameters
    ----------
    counts : csr_matrix, shape (n_docs, V)
        Words of documents; none is empty.
    n : int
        Less than n_docs and than the number of words that occur.
    rng : numpy.random.RandomState
    weight : ndarray, shape (n_docs,), or None
        Numbers of equal documents.
    """
    times = np.ones(counts.shape[0]) if weight is None else weight
    lengths, totals = np.asarray(counts.sum(axis=1)).ravel(), counts.T @ times
    occur = np.flatnonzero(totals)
    by_document = np.sqrt(times / (lengths + _TOKENS_ADDED))
    by_word = np.sqrt(totals[occur] + _TOKENS_ADDED)
    scaled = sparse.diags(by_document) @ counts[:, occur] @ sparse.diags(1.0 / by_word)
    left, right = by_document * lengths, totals[occur] / (totals.sum() * by_word)
    entries = _positive(_largest_directions(scaled, left, right, n, rng))
    topics = np.zeros((n, counts.shape[1]))
    topics[:, occur] = (
        np.maximum(entries - _SMALL * entries.max(axis=1, keepdims=True), 0) * by_word
    )
    return topics / topics.sum(axis=1, keepdims=True)


def _largest_directions(scaled, left, right, n, rng):
    """Singular vectors (n, U) of a sparse matrix (D, U) less the product of two vectors (D,) and (U,)."""
    basis = rng.standard_normal((scaled.shape[1], min(n + _SPARE, scaled.shape[1])))
    for _ in range(_POWER_ITERATIONS):
        images = scaled @ basis - np.outer(left, right @ basis)
        basis, _ = np.linalg.qr(scaled.T @ images - np.outer(right, left @ images))
    images = scaled @ basis - np.outer(left, right @ basis)
    return (basis @ np.linalg.svd(images, full_matrices=False)[2][:n].T).T


def _positive(directions):
    """Entries (J, U) of rotated directions, skewed towards large ones, without those below zero."""
    rotated = directions.T @ varimax(directions.T)
    return np.maximum(rotated * np.where((rotated**3).sum(axis=0) < 0, -1.0, 1.0), 0.0).T


def varimax(loadings):
    """Rotation (J, J) after which the columns of ``loadings`` (n, J) have few large entries each."""
    n_dims = loadings.shape[1]
    size = np.einsum("vj,vj->v", loadings, loadings)
    largest = np.argsort(-size, kind="stable")[: _WORDS_A_DIRECTION * n_dims]
    some, rotation, last = loadings[np.sort(largest)], np.eye(n_dims), 0.0
    for _ in range(_ROTATIONS):
        rotated = some @ rotation
        cubes = rotated**3 - rotated * (rotated**2).mean(axis=0)
        left, values, right = np.linalg.svd(some.T @ cubes)
        rotation = left @ right
        if values.sum() <= last * (1.0 + _AT_REST):
            break
        last = values.sum()
    return rotation
