"""New topics for a target: the best of several starts of a topic model that is nested in it.

Design note
-----------
(a) Which start leads to good topics depends on the texts. In short ones a random document says next to
    nothing of any topic, while anchor words, and clusters of whole documents, are found from all documents
    together. How many anchors there should be is not known either. So there are several starts.
(b) All starts are tried on some documents, in a few rounds. The best ones are finished there, and the best of
    these is developed on all documents. The nested objective, scaled to the whole sample, decides among
    them. None of this is a verdict: that is made on all data. Where a topic is split beside others,
    fewer starts have to do.
(c) A first birth tries its starts on as many documents as it can afford. The topics of a few hundred
    documents fit these well, the more so the more topics there are, but not the others: chosen on 500 papers
    of 200 words each, 40 topics were left with 15 on 1392, where starts from all of them give 70.
(d) Documents that mix many topics are all alike, and no document or cluster says what a topic is. For these,
    directions of the whole corpus are starts, with a prior of documents that mix many topics. This prior
    is learned between passes. From a low one, documents settle in few topics each, and never learn that they
    have more; from a high one, documents that have few topics lead to a low one. The fit begins with the
    prior that was learned.
(e) The best start of each kind is finished. Those that are finished are compared under the priors that laps
    would learn. Under the priors that they were found with, bars in noise were taken for mixtures of many
    topics, and ended 9000 nats lower.
(f) Where most of the vocabulary does not occur in a sample, as with hashed words, the search works with the
    words of the sample. All others are one word to it, so that time and memory do not depend on their number.
(g) Clusters of documents win on most texts. Single documents as seeds only do where there are too few
    documents for clusters, or rows instead of words.
(h) Where topics share their frequent words, none is worth its cost under a prior that expects them to have
    less in common, and hardly any is left after a few rounds. So where one topic was found better than
    several, there is another search, in which all priors are learned before any topics are joined, and
    documents try to do without some of their topics. Where topics shared half of their words, 10 of 10
    were found instead of one, 2000 nats higher.
(i) Rows show clusters whatever the documents are. So clusters of rows are starts for documents that mix many
    topics, too, under a prior that suits the clusters. On a grid of 40 clusters, of which documents had 6
    rows each, there were 1 to 11 topics, 1,300 to 3,300 nats below those of the clusters.
(j) Where topics are blends of many clusters of rows, their prior suits topics that are as wide as these, and
    under it no narrow one pays. So clusters are starts under a prior that suits them and the other topics,
    too. On the same grid, a fit from 10 topics had ended with 2, 2,800 nats below one from a single topic.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..likelihood.seeding import lloyd, seeding_mass, summaries
from .creation import (
    LEAST_SHARE,
    LEAST_TOKENS,
    ROUND_DOCUMENTS,
    Nested,
    developed,
    document_seeds,
    subset,
)
from .document_clusters import clustered_documents
from .hidden_topics import topics_beyond
from .seeding import Anchors, with_total
from .spectral import spectral_topics

# Numbers of anchors, and of seeds of clusters of documents, to start from.
_N_ANCHORS, _N_CLUSTERS = (10, 15, 20, 30, 50), (50, 100, 150)
# The same where one topic was found better than several, and where several have settled; the documents' prior
# to begin with.
_ANCHORS_AGAIN, _CLUSTERS_AGAIN, _CLUSTERS_OF_ALL, _DOC_PRIOR = (20, 50), (50, 100), (100,), 1.0
# Numbers of directions of the corpus to start from. The parameter of each topic in the documents' prior with
# which these starts begin, where that prior is learned.
_N_DIRECTIONS, _TOPIC_PRIOR = (20, 50), 0.5
# Documents that mix many topics settle slowly: nats a token that they are taken to gain after the rounds.
_UNSETTLED = 5e-3
# Most documents of rows that are seeds; and number of texts from which on no single document is a seed.
_N_DOCUMENTS, _FEW_DOCUMENTS = 50, 400
# Numbers of seeds of clusters of rows, and rows of which they are clusters.
_N_ROWS, _SEED_ROWS = (10, 25, 50), 10_000
# Factor of the documents' prior while topics are being found: documents that mix fewer topics than they will
# tell these apart. Laps begin with the prior as it is.
_PRIOR_SCALE = 0.3
# Tokens on which starts are tried, of one topic among others and of one that is alone. From fewer tokens,
# topics are made that fit nothing but these.
_TOKENS_OF_ONE, _TOKENS = 100_000, 300_000
# The parameter of a topic in the documents' prior above which documents without it are exceptions.
ALL_USE = 1.0
# Nats a token that may be rounding.
_SAME = 1e-7
# Rounds in which all starts are tried, and number of starts that are finished.
_ROUNDS, _N_FINISHED = 3, 2
# Steps in which the prior of topics of rows suits clusters of them.
_ADAPT_STEPS = 5
# Dimension of the projection in which anchors are found: in fewer, half of the time would go into it.
_PROJECTION = 300
# All words stay apart in a search if the sample has more than this share of them.
_MOST_USED = 0.25
# Anchors need so many word types each.
_TYPES_AN_ANCHOR = 5


def create_topics(
    model, sample, doc_prior, n_seeds, rng, n_threads=1, least=LEAST_TOKENS, others=None,
    hidden_alone=False,
):  # fmt: skip
    """Successors of a topic by a topic model nested in it.

    Parameters
    ----------
    model : TopicModel
    sample : DocumentSample
        The target's tokens of documents that use it.
    doc_prior : float
        The target's parameter ``alpha pi_k`` in the prior of the documents; successors share it.
    n_seeds : int
        How many topics to start from.
    rng : numpy.random.RandomState
    n_threads : int
    least : float
        Least tokens of a successor.
    others : ndarray, shape (K, P), or None
        Statistics of the other topics, for rows: the prior adapts to these and to the successors.
    hidden_alone : bool
        Whether to look for topics alone that hide in the target, in more directions.

    Returns
    -------
    s : ndarray, shape (J, P), or None
        Statistics of the successors; None if there are fewer than two.
    """
    model, sample, used = _with_words_of(model, sample)
    nested = Nested(model, sample, doc_prior, n_threads, others=others)
    least = max(least * sample.one_token, LEAST_SHARE * sample.least_total)
    some = subset(sample, max(ROUND_DOCUMENTS, _documents_of(_TOKENS_OF_ONE, sample)), rng)
    # draws of its own: other starts are those that they would be without it
    hidden = hidden_topics(nested, some, n_seeds, least, deepcopy(rng), hidden_alone)
    if hidden_alone:
        return used.statistics(developed(hidden)) if hidden else None
    starts = [document_seeds(nested, n_seeds, rng)]
    starts += _anchor_seeds(model.likelihood, some, sample.total, [n_seeds], rng)
    starts += _cluster_seeds(model, some, sample.total, [n_seeds], rng)
    of_rows = [*_row_seeds(model, some, sample.total, [n_seeds], rng)]
    pairs = [(nested, s) for s in starts + of_rows]
    if others is not None:
        pairs += [(nested.adapted(s, _ADAPT_STEPS), s) for s in of_rows]
    found = max(
        filter(None, [hidden, _best(some, pairs, least, 1)]),
        key=lambda one: one.value,
        default=None,
    )
    return used.statistics(developed(found)) if found else None


def create_first_topics(model, sample, doc_prior, n_seeds, rng, n_threads=1, least=LEAST_TOKENS):
    """Successors of a topic that is alone; arguments as for `create_topics`.

    Returns
    -------
    s : ndarray, shape (J, P), or None
        Statistics of the successors; None if there are fewer than two.
    doc_prior : float or None
        Sum of the parameters of the documents' prior with which they were found, if it was learned.
    """
    model, sample, used = _with_words_of(model, sample)
    nested = Nested(model, sample, _PRIOR_SCALE * doc_prior, n_threads)
    least = least * sample.one_token
    some = some_documents(sample, rng)
    starts, words = [], model.likelihood.words
    if not words or len(sample.docs) < _FEW_DOCUMENTS:
        starts += [document_seeds(nested, n_seeds if words else min(n_seeds, _N_DOCUMENTS), rng)]
    starts += _anchor_seeds(
        model.likelihood, some, sample.total, _at_most(n_seeds, _N_ANCHORS), rng
    )
    starts += _cluster_seeds(model, some, sample.total, _at_most(n_seeds, _N_CLUSTERS), rng)
    of_rows = [*_row_seeds(model, some, sample.total, _at_most(n_seeds, _N_ROWS), rng)]
    starts += of_rows
    directions = _spectral_seeds(
        model.likelihood, some, sample.total, _at_most(n_seeds, _N_DIRECTIONS), rng
    )
    pairs = [(nested, s) for s in starts]
    pairs += [(_mixing_many(nested, len(s)), s) for s in directions]
    pairs += [(_mixing_many(nested.adapted(s, _ADAPT_STEPS), len(s)), s) for s in of_rows]
    found = _best(some, pairs, least, _N_FINISHED)
    if found is None:
        return None, None
    s = used.statistics(developed(found))
    return s, found.nested.doc_prior if found.nested.learns else None


def create_topics_again(model, sample, doc_prior, n_seeds, rng, n_threads=1, least=LEAST_TOKENS):
    """Successors of a topic that was found better than several; arguments as for `create_topics`.

    Returns
    -------
    s : ndarray, shape (J, P), or None
        Statistics of the successors; None if there are fewer than two.
    doc_prior : float or None
        Sum of the parameters of the documents' prior with which they were found.
    """
    if "doc_concentration" in model.learned:
        doc_prior = _DOC_PRIOR
    numbers = [_at_most(n_seeds, several) for several in (_ANCHORS_AGAIN, _CLUSTERS_AGAIN)]
    return _found_late(model, sample, doc_prior, numbers, rng, n_threads, least)


def other_topics(model, totals, sample, worth, rng, n_threads=1):
    """Topics that may take the place of all, by the search of `create_topics_again` from one start.

    Parameters
    ----------
    model : TopicModel
    totals : StatBag
        Several topics, which have settled.
    sample : DocumentSample
        Documents as they are.
    worth : float
        Nats of all documents that they have to gain.
    rng : numpy.random.RandomState
    n_threads : int

    Returns
    -------
    s : ndarray, shape (J, P), or None
        Their statistics; None unless the objective of some documents is higher by their part of ``worth``.
    doc_prior : float or None
        Sum of the parameters of the documents' prior with which they were found.
    """
    some, n_tokens = some_documents(sample, rng), totals.n.sum()
    here = Nested(model, some, model.doc_prior(totals).sum(), n_threads)
    part = some.total / n_tokens
    least_value = here.value_of(totals.s * part) + worth * part
    s, doc_prior = _found_late(
        model, some, _DOC_PRIOR, ([], _CLUSTERS_OF_ALL), rng, n_threads, least_value=least_value
    )
    return (None, None) if s is None else (s / part, doc_prior)


def _found_late(
    model, sample, doc_prior, numbers, rng, n_threads, least=LEAST_TOKENS, least_value=-np.inf
):
    """Statistics and the documents' prior by `Nested.late_rounds`, or None twice.

    ``numbers`` are those of anchors and of clusters to start from. The nested objective has to be higher than
    ``least_value``.
    """
    model, sample, used = _with_words_of(model, sample)
    model = model._replace(prior=model.likelihood.prior)
    nested = Nested(model, sample, doc_prior, n_threads)
    likelihood, total, some = model.likelihood, sample.total, some_documents(sample, rng)
    n_anchors, n_clusters = numbers
    starts = [
        *_anchor_seeds(likelihood, some, total, n_anchors, rng),
        *_cluster_seeds(model, some, total, n_clusters, rng),
        *_row_seeds(model, some, total, n_clusters, rng),
    ]
    found = [nested.late_rounds(some, s, least * sample.one_token) for s in starts]
    best = max(filter(None, found), key=lambda one: one.value, default=None)
    if best is None or best.value <= least_value:
        return None, None
    return used.statistics(developed(best)), best.nested.doc_prior


def hidden_topics(nested, some, n_seeds, least, rng, more=False):
    """`Found` topics that hide in a topic of words which all documents use; None if there are none."""
    if not nested.model.likelihood.words or nested.doc_prior <= ALL_USE:
        return None
    docs, counts = _words(nested.model.likelihood, some)
    entries = some.docs.chosen(some.docs.lengths > 0)[1]
    some = some._replace(docs=docs, mass=some.mass[entries])
    learns = "doc_concentration" in nested.model.learned
    return topics_beyond(nested._replace(learns=learns), some, counts, n_seeds, least, rng, more)


class _Words(NamedTuple):
    """Word types with which a search works: ``types`` (U,) out of ``n_types``, or all of them if None."""

    types: np.ndarray | None
    n_types: int

    def statistics(self, s):
        """Statistics (J, V + 1) of topics from those (J, U + 2) of the search."""
        if self.types is None:
            return s
        out = np.zeros((len(s), self.n_types + 1))
        out[:, self.types], out[:, -1] = s[:, : len(self.types)], s[:, -1]
        return out


def _with_words_of(model, sample):
    """The model, the sample and the `_Words` of a search, which are those of the sample if these are few."""
    likelihood, docs = model.likelihood, sample.docs
    if not likelihood.joins_types:
        return model, sample, _Words(None, likelihood.n_features)
    occurs = np.zeros(likelihood.n_features, dtype=bool)
    occurs[docs.indices] = True
    types = np.flatnonzero(occurs)
    if _MOST_USED * len(occurs) < len(types) + 1:
        return model, sample, _Words(None, len(occurs))
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    own, prior = likelihood.with_one_rest(model.prior, types)
    sample = sample._replace(docs=docs.renamed(place[docs.indices]))
    return model._replace(likelihood=own, prior=prior), sample, _Words(types, len(occurs))


def some_documents(sample, rng):
    """Documents of a sample on which topics are looked for that take the place of all."""
    return subset(sample, max(ROUND_DOCUMENTS, _documents_of(_TOKENS, sample)), rng)


def _mixing_many(nested, n_topics):
    """The nested model for documents that mix many topics, if their prior is learned."""
    if "doc_concentration" not in nested.model.learned:
        return nested
    return nested._replace(doc_prior=_TOPIC_PRIOR * n_topics, learns=True)


def _documents_of(n_tokens, sample):
    """Number of documents that hold about so many tokens of the sample."""
    return int(n_tokens * sample.docs.total / max(sample.total, sample.docs.total))


def _best(some, starts, least, n_finished):
    """`Found` from the best of some starts, pairs of a `Nested` and statistics (J, P); None if there is none.

    All are tried on some documents, and so many of them are finished there. So is the best that learns the
    documents' prior: in a few rounds it does not get as far as others.
    """
    tried = _after(some, starts, least, n_rounds=_ROUNDS)
    learning = [one for one in tried[n_finished:] if one.nested.learns]
    chosen = tried[:n_finished] + learning[:1]
    found = _after(some, [(one.nested, one.s) for one in chosen], least)

    def outlook(one):
        total = one.nested.sample.total
        return _ranked(one.value + one.nested.learns * _UNSETTLED * total, total)

    return max(found, key=outlook) if found else None


def _after(some, starts, least, **rounds):
    """`Found` of starts after rounds on some documents, the best first, without single topics."""
    found = [nested.rounds(some, s, least, **rounds) for nested, s in starts]
    found = [one for one in found if one is not None]
    return sorted(found, key=lambda one: -_ranked(one.value, one.nested.sample.total))


def _ranked(value, total):
    """A value of so many tokens, rounded: of starts that lead to the same topics, the first one counts."""
    return np.round(value / (_SAME * total))


def _anchor_seeds(likelihood, some, total, numbers, rng):
    """Statistics, of ``total`` tokens, of topics about so many anchor words of ``some`` documents each."""
    if not likelihood.words:
        return
    docs, counts = _words(likelihood, some)
    n_types = likelihood.n_features
    most = np.count_nonzero(np.bincount(docs.indices, minlength=n_types)) // _TYPES_AN_ANCHOR
    numbers = [n for n in numbers if n <= min(len(docs), most)]
    if not numbers:
        return
    anchors = Anchors(counts, max(numbers), rng, docs.weight, _PROJECTION)
    for n in numbers:
        s = with_total(anchors.topics(n), total)
        yield s[s[:, -1] > 0]


def _at_most(n_seeds, numbers):
    """List the ``numbers`` of seeds that may be tried if there may be ``n_seeds`` at the most."""
    return [n for n in numbers if n <= n_seeds] or [n_seeds]


def _cluster_seeds(model, some, total, numbers, rng):
    """Statistics, of ``total`` tokens, of clusters of documents, from so many seeds each; none for rows."""
    if not model.likelihood.words:
        return
    docs, counts = _words(model.likelihood, some)
    for n in numbers:
        s = clustered_documents(counts, model.prior.lam, n, rng, docs.weight)
        if s is not None:
            yield with_total(s, total)


def _spectral_seeds(likelihood, some, total, numbers, rng):
    """Statistics, of ``total`` tokens, of so many directions of the corpus each; none for rows."""
    if not likelihood.words:
        return
    docs, counts = _words(likelihood, some)
    most = min(len(docs), np.count_nonzero(np.bincount(docs.indices))) - 1
    for topics in spectral_topics(counts, [n for n in numbers if n <= most], rng, docs.weight):
        yield with_total(topics, total)


def _row_seeds(model, some, total, numbers, rng):
    """Statistics, of ``total`` rows, of clusters of rows, from so many seeds each; none for words.

    Clusters are found whatever the documents: these may all mix the same topics alike.
    """
    likelihood, docs = model.likelihood, some.docs
    if likelihood.words:
        return
    weight = np.ones(len(some.mass)) if docs.weight is None else docs.entry_weight
    share = some.mass * weight
    drawn = np.flatnonzero(share > 0)
    if len(drawn) > _SEED_ROWS:
        drawn = np.sort(rng.choice(drawn, _SEED_ROWS, replace=False))
    z, share = docs.z[drawn], share[drawn]
    odds = seeding_mass(some.mass[drawn], None if docs.weight is None else weight[drawn])
    whole = summaries(likelihood, z, share[:, np.newaxis])[0]
    points = likelihood.seeding_points(model.prior, whole, z)
    for n in numbers:
        s = summaries(likelihood, z, share[:, np.newaxis] * lloyd(points, odds, n, rng))
        s = s[s[:, -1] > 0]
        if len(s) > 1:
            yield s * (total / s[:, -1].sum())


def _words(likelihood, some):
    """The documents of a sample that have words, and the counts of these (n_docs, V)."""
    docs, entries = some.docs.chosen(some.docs.lengths > 0)
    counts = sparse.csr_matrix(
        (docs.counts * some.mass[entries], docs.indices, docs.indptr),
        shape=(len(docs), likelihood.n_features),
    )
    return docs, counts
