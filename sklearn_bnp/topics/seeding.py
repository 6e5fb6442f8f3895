"""First statistics of topics of words, from which the first local step finds its parameters.

Design note
-----------
(a) Seeds of a topic are documents. A seed is half a document and half the corpus: topics made of one
    document alone would have no room for what another one says.
(b) What is returned has the mass of the corpus: seeds too small beside the prior are all alike.
(c) Co-occurrences of words are never formed as a whole, (V, V). Anchor words are chosen by random
    projections of their rows; the topics need only the rows of the anchors, which are exact.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..inputs.groups import drawn
from ..likelihood.seeding import seeding_mass

# Dimension of the random projection in which anchor words are chosen (Arora et al. 2013, Sec. 4).
_PROJECTION = 1000
# An anchor word occurs in this share of the documents and in this many, so that its row is known well.
_ANCHOR_SHARE, _ANCHOR_DOCS = 0.01, 5
# If these are too few, the most frequent words stand in: so many for each topic.
_CANDIDATES_A_TOPIC = 5
# Multiplicative updates that recover topics, and the weight of the rows' summing to one in them.
_RECOVERY_STEPS, _SUM_WEIGHT = 200, 1.0


def seeded_topics(documents, n_types, n_components, rng, how):
    """Statistics (K, V + 1) of topics.

    Parameters
    ----------
    documents : DocumentBatch
        Of words; one document at least has a token.
    n_types : int
        V.
    n_components : int
        At most the number of documents with tokens, or for anchor words of types that occur.
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
    """Counts (V,) of words in all documents (n, V), of weights (n,)."""
    return np.asarray(counts.sum(axis=0)).ravel() if weight is None else counts.T @ weight


def with_total(topics, total=None):
    """Statistics (K, V + 1) of counts (K, V), which are first scaled to ``total`` tokens if given."""
    topics = np.asarray(topics, dtype=float)
    if total is not None:
        topics = topics * (total / topics.sum())
    return np.column_stack([topics, topics.sum(axis=1)])


def _topics_of_documents(chosen, everything):
    """Topics (K, V) of the documents ``chosen`` (K, V) and the words (V,) of all documents."""
    topics = chosen.toarray()
    topics /= topics.sum(axis=1, keepdims=True)
    share = everything.sum() / len(topics)
    return (topics + everything / everything.sum()) * (0.5 * share)


def random_documents(counts, n_components, rng, weight=None):
    """Documents drawn without replacement, in proportion to their weights."""
    return drawn(counts.shape[0], n_components, rng, weight)


def spread_documents(counts, n_components, rng, weight=None):
    """Documents by Bregman k-means++ (Hughes 2016, Alg. 2.2).

    A document is drawn in proportion to its divergence from the nearest seed, its length (times its
    `seeding_mass`) times the Kullback-Leibler divergence of word distributions. These are smoothed by the
    corpus, with the weight of a mean document, in both arguments: as it is, a document has zeros, for
    which the divergence has no gradient.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    times = np.ones(len(lengths)) if weight is None else weight
    mass = times * lengths  # how many tokens each document stands for
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
        else:  # all that is left are copies of seeds
            chosen.append(int(rng.choice(np.setdiff1d(np.arange(len(lengths)), chosen))))
    return np.array(chosen)


def _sum_x_log_x(counts, background):
    """``sum_v x log x`` of ``x = counts + background`` for each row, in the time of the nonzeros."""
    b = background[counts.indices]
    x = counts.data + b
    change = sparse.csr_matrix((x * np.log(x) - b * np.log(b), counts.indices, counts.indptr))
    return np.asarray(change.sum(axis=1)).ravel() + background @ np.log(background)


# ---------------------------------------------------------------------- anchor words


def anchor_topics(counts, n_components, rng, weight=None):
    """Counts (K, V) of topics by anchor words: words that each occur in one topic alone.

    ``weight`` (n_docs,) are weights of the documents, if they have any.

    References
    ----------
    S. Arora et al., A practical algorithm for topic modeling with provable guarantees, ICML 2013.
    """
    left, diagonal = _pairs(counts, weight)

    def rows_of(vectors):
        """``Q @ vectors`` for the co-occurrences Q (V, V)."""
        return left.T @ (left @ vectors) - diagonal[:, np.newaxis] * vectors

    n_types = counts.shape[1]
    mass = rows_of(np.ones((n_types, 1))).ravel()
    candidates = _candidates(counts, mass, n_components, weight)
    if min(n_types, _PROJECTION) == n_types:
        projection = np.eye(n_types)
    else:
        projection = rng.standard_normal((n_types, _PROJECTION)) / np.sqrt(_PROJECTION)
    points = rows_of(projection)[candidates] / mass[candidates, np.newaxis]
    anchors = candidates[_farthest(points, n_components)]
    ones = np.zeros((n_types, n_components))
    ones[anchors, np.arange(n_components)] = 1.0
    basis = np.maximum(rows_of(ones), 0.0) / mass[anchors]  # columns: p(word | anchor)
    words = np.flatnonzero(mass > 0)
    products = np.maximum(rows_of(basis), 0.0)[words] / mass[words, np.newaxis]
    shares = _recover(products, basis.T @ basis)  # p(topic | word)
    occurrences = word_counts(counts, weight)
    topics = np.zeros((n_components, n_types))
    topics[:, words] = shares.T * occurrences[words]
    alone = mass <= 0  # in documents of a single token: they belong to no topic more than another
    topics[:, alone] = occurrences[alone] / n_components
    return topics


def _pairs(counts, times=None):
    """``Q = left.T @ left - diag(diagonal)``: expected co-occurrences of two tokens of a document."""
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    several = lengths > 1
    counts, lengths = counts[several], lengths[several]
    weight = (1.0 if times is None else times[several]) / (lengths * (lengths - 1.0))
    left = sparse.diags(np.sqrt(weight)) @ counts
    return left.tocsr(), counts.T @ weight


def _candidates(counts, mass, n_components, weight=None):
    """Words that may be anchors."""
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
    """Points (n, m) that span most: each is the farthest from the span of those before."""
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
    """Shares (n, K) on the simplex that combine the anchors' rows into each word's, least squares.

    Multiplicative updates, which stay positive and never raise the error; that shares sum to one is a
    further equation.
    """
    weight = _SUM_WEIGHT * np.trace(gram) / len(gram)
    products, gram = products + weight, gram + weight
    shares = np.full(products.shape, 1.0 / len(gram))
    for _ in range(_RECOVERY_STEPS):
        shares *= products / np.maximum(shares @ gram, 1e-300)
    return shares / shares.sum(axis=1, keepdims=True)
