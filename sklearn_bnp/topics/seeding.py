"""Initial statistics of topics of words, from which the first local step gets its parameters.

Design note
-----------
(a) A topic starts from one document, mixed half and half with the words of the corpus: a topic of one
    document alone would leave no room for the words of other documents.
(b) The statistics sum to the mass of the corpus. If they were small beside the prior, all topics would be
    alike.
(c) Co-occurrences of words are never formed as a whole, (V, V). Anchor words are chosen by random
    projections of the rows; topics need the rows of the anchors alone, and these are exact.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..inputs.groups import drawn
from ..likelihood.seeding import seeding_mass

# Dimension of the random projection in which anchor words are chosen (Arora et al. 2013, Sec. 4).
_PROJECTION = 1000
# An anchor word occurs in at least this share of the documents, and in so many: its row is then known well.
_ANCHOR_SHARE, _ANCHOR_DOCS = 0.01, 5
# If there are fewer such words than this per topic, the most frequent words are the candidates.
_CANDIDATES_A_TOPIC = 5
# Multiplicative updates that recover topics, and the weight of the equation that rows sum to one.
_RECOVERY_STEPS, _SUM_WEIGHT = 200, 1.0


def seeded_topics(documents, n_types, n_components, rng, how):
    """Initial statistics (K, V + 1) of topics.

    Parameters
    ----------
    documents : DocumentBatch
        Documents of words, with one token at least.
    n_types : int
        V.
    n_components : int
        At most the number of documents with tokens; for anchor words, of word types that occur.
    rng : numpy.random.RandomState
    how : {"random", "k-means++", "anchor"}
    """
    counts = sparse.csr_matrix(
        (documents.counts, documents.indices, documents.indptr),
        shape=(len(documents.indptr) - 1, n_types),
    )
    used = np.diff(counts.indptr) > 0
    counts = counts[used]
    weight = None if documents.weight is None else documents.weight[used]
    everything = word_counts(counts, weight)
    if n_components == 1:
        return with_total(everything[np.newaxis])
    if how == "anchor":
        return with_total(anchor_topics(counts, n_components, rng, weight))
    choose = spread_documents if how == "k-means++" else random_documents
    chosen = choose(counts, n_components, rng, weight)
    return with_total(_topics_of_documents(counts[chosen], everything))


def word_counts(counts, weight=None):
    """Counts (V,) of words in all documents (n, V), which have weights (n,)."""
    return np.asarray(counts.sum(axis=0)).ravel() if weight is None else counts.T @ weight


def with_total(topics, total=None):
    """Statistics (K, V + 1) from counts (K, V), scaled to ``total`` tokens if that is given."""
    topics = np.asarray(topics, dtype=float)
    if total is not None:
        topics = topics * (total / topics.sum())
    return np.column_stack([topics, topics.sum(axis=1)])


def _topics_of_documents(chosen, everything):
    """Counts (K, V) of topics: half a document ``chosen`` (K, V), half the words (V,) of the corpus."""
    topics = chosen.toarray()
    topics /= topics.sum(axis=1, keepdims=True)
    share = everything.sum() / len(topics)
    return (topics + everything / everything.sum()) * (0.5 * share)


def random_documents(counts, n_components, rng, weight=None):
    """Numbers of documents, drawn without replacement in proportion to their weights."""
    return drawn(counts.shape[0], n_components, rng, weight)


def spread_documents(counts, n_components, rng, weight=None):
    """Numbers of documents, chosen by Bregman k-means++ (Hughes 2016, Alg. 2.2).

    A document is drawn in proportion to its divergence from the nearest document chosen so far: the
    Kullback-Leibler divergence of their word distributions, times its `seeding_mass`. Both distributions
    are smoothed: the words of the corpus are added, with the mass of a mean document. Without that,
    words that a document lacks would make all divergences infinite.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    times = np.ones(len(lengths)) if weight is None else weight
    mass = times * lengths  # tokens that each document stands for
    seeding = seeding_mass(lengths, weight)
    mean = word_counts(counts, weight) / mass.sum()
    strength = mass.sum() / times.sum()
    used = np.flatnonzero(mean)  # all others have probability 0 everywhere
    counts, mean = counts[:, used], mean[used]
    background, total = strength * mean, strength + lengths
    negentropy = _sum_x_log_x(counts, background) / total - np.log(total)
    chosen = [int(rng.choice(len(lengths), p=seeding / seeding.sum()))]
    nearest = np.full(len(lengths), np.inf)
    for _ in range(n_components - 1):
        seed = background.copy()
        row = slice(counts.indptr[chosen[-1]], counts.indptr[chosen[-1] + 1])
        seed[counts.indices[row]] += counts.data[row]
        log_seed = np.log(seed / seed.sum())
        cross = (counts @ log_seed + background @ log_seed) / total
        nearest = np.minimum(nearest, seeding * np.maximum(negentropy - cross, 0.0))
        nearest[chosen] = 0.0
        if nearest.sum() > 0:
            chosen.append(int(rng.choice(len(lengths), p=nearest / nearest.sum())))
        else:  # all other documents are copies of chosen ones
            chosen.append(int(rng.choice(np.setdiff1d(np.arange(len(lengths)), chosen))))
    return np.array(chosen)


def _sum_x_log_x(counts, background):
    """``sum_v x log x`` with ``x = counts + background``, for each row, in time by the nonzeros."""
    b = background[counts.indices]
    x = counts.data + b
    change = sparse.csr_matrix((x * np.log(x) - b * np.log(b), counts.indices, counts.indptr))
    return np.asarray(change.sum(axis=1)).ravel() + background @ np.log(background)


# ---------------------------------------------------------------------- anchor words


def anchor_topics(counts, n_components, rng, weight=None):
    """Counts (K, V) of topics from anchor words, words that occur in one topic alone.

    Parameters
    ----------
    weight : ndarray, shape (n_docs,), or None
        Weights of the documents.

    References
    ----------
    S. Arora et al., A practical algorithm for topic modeling with provable guarantees, ICML 2013.
    """
    used = np.unique(counts.indices)  # all others are in no topic
    topics = np.zeros((n_components, counts.shape[1]))
    topics[:, used] = Anchors(counts[:, used], n_components, rng, weight).topics(n_components)
    return topics


class Anchors:
    """Anchor words of a corpus, of which the first K are those that K topics would have.

    Parameters
    ----------
    counts : csr_matrix, shape (n_docs, V)
    n_most : int
        Number of anchors. There may be fewer words that occur with others.
    rng : numpy.random.RandomState
    weight : ndarray, shape (n_docs,), or None
        Weights of the documents.
    n_dims : int
        Dimension of the random projection in which they are chosen.
    """

    def __init__(self, counts, n_most, rng, weight=None, n_dims=_PROJECTION):
        self._left, self._diagonal = _pairs(counts, weight)
        self._occurrences = word_counts(counts, weight)
        n_types = counts.shape[1]
        self._mass = self._rows_of(np.ones((n_types, 1))).ravel()
        candidates = _candidates(counts, self._mass, n_most, weight)
        if n_types <= n_dims:
            projection = np.eye(n_types)
        else:
            projection = rng.standard_normal((n_types, n_dims)) / np.sqrt(n_dims)
        points = self._rows_of(projection)[candidates] / self._mass[candidates, np.newaxis]
        self._anchors = candidates[_farthest(points, n_most)]

    def _rows_of(self, vectors):
        """``Q @ vectors`` for the co-occurrences Q (V, V)."""
        return self._left.T @ (self._left @ vectors) - self._diagonal[:, np.newaxis] * vectors

    def topics(self, n_components):
        """Counts (K, V) of the topics of the first anchors, which sum to those of the corpus."""
        anchors, mass, n_types = self._anchors[:n_components], self._mass, len(self._mass)
        ones = np.zeros((n_types, n_components))
        ones[anchors, np.arange(n_components)] = 1.0
        basis = np.maximum(self._rows_of(ones), 0.0) / mass[anchors]  # columns: p(word | anchor)
        words = np.flatnonzero(mass > 0)
        products = np.maximum(self._rows_of(basis), 0.0)[words] / mass[words, np.newaxis]
        shares = _recover(products, basis.T @ basis)  # p(topic | word)
        topics = np.zeros((n_components, n_types))
        topics[:, words] = shares.T * self._occurrences[words]
        # words that never occur with another token: all topics share them equally
        alone = mass <= 0
        topics[:, alone] = self._occurrences[alone] / n_components
        return topics


def _pairs(counts, times=None):
    """``left`` and ``diagonal`` of the co-occurrences ``Q = left.T @ left - diag(diagonal)`` (V, V).

    Q is the expected number of co-occurrences of two tokens of a document.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    several = lengths > 1
    counts, lengths = counts[several], lengths[several]
    weight = (1.0 if times is None else times[several]) / (lengths * (lengths - 1.0))
    left = sparse.diags(np.sqrt(weight)) @ counts
    return left.tocsr(), counts.T @ weight


def _candidates(counts, mass, n_components, weight=None):
    """Numbers of the words that may be anchors."""
    times = None if weight is None else np.repeat(weight, np.diff(counts.indptr))
    n_docs = np.bincount(counts.indices, times, minlength=counts.shape[1]) * (mass > 0)
    total = counts.shape[0] if weight is None else weight.sum()
    enough = max(_ANCHOR_DOCS, _ANCHOR_SHARE * total)
    found = np.flatnonzero(n_docs >= enough)
    if len(found) < _CANDIDATES_A_TOPIC * n_components:
        order = np.argsort(-n_docs, kind="stable")[: _CANDIDATES_A_TOPIC * n_components]
        found = np.sort(order[n_docs[order] > 0])
    return found


def _farthest(points, n_points):
    """Numbers of points (n, m), each the farthest from the affine span of those before it."""
    centred = points - points.mean(axis=0)
    found = [int(np.argmax(np.einsum("nd,nd->n", centred, centred)))]
    rest = points - points[found[0]]
    while len(found) < n_points:
        length = np.einsum("nd,nd->n", rest, rest)
        length[found] = -1.0
        found.append(int(np.argmax(length)))
        direction = rest[found[-1]]
        norm = np.linalg.norm(direction)
        if norm > 0:
            direction = direction / norm
            rest = rest - np.outer(rest @ direction, direction)
    return np.array(found)


def _recover(products, gram):
    """Shares (n, K), which sum to 1, of the anchors' rows in each word's row, by least squares.

    The updates are multiplicative: shares stay positive, and the error never rises. That shares sum to
    one is a further equation of the least squares.
    """
    weight = _SUM_WEIGHT * np.trace(gram) / len(gram)
    products, gram = products + weight, gram + weight
    shares = np.full(products.shape, 1.0 / len(gram))
    for _ in range(_RECOVERY_STEPS):
        shares *= products / np.maximum(shares @ gram, 1e-300)
    return shares / shares.sum(axis=1, keepdims=True)


def blended_with_all(s, share):
    """Statistics (J, P) of topics of which a share is what all of them are together."""
    total = s.sum(axis=0)
    return (1.0 - share) * s + share * s[:, -1:] * (total / total[-1])


def sharpened(s, power):
    """Statistics (J, P) of topics of words whose shares of each word are raised to a power.

    Words are as frequent in all topics together as before.
    """
    words = np.maximum(s[:, :-1], 0.0)  # sums may be off by rounding
    shares = (words / np.maximum(words.max(axis=0), 1e-300)) ** power  # up to a factor a word
    shares /= np.maximum(shares.sum(axis=0), 1e-300)
    return with_total(shares * words.sum(axis=0))
