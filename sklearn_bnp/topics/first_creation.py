"""The first topics of a corpus: the best of several starts of a nested topic model.

Design note
-----------
(a) Which start leads to good topics depends on the texts. In short ones a random document says next to
    nothing of any topic, while anchor words are found from all documents together. How many anchors there
    should be is not known either. So there are several starts.
(b) All starts are tried on few documents, in a few rounds. The best ones are finished there, and the best of
    these is developed on many documents. The nested objective, scaled to the whole sample, decides among
    them. None of this is a verdict: that is made on all data.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .creation import LEAST_TOKENS, Nested, developed, document_seeds, subset
from .seeding import Anchors, with_total

# Numbers of anchors to start from.
_N_ANCHORS = (10, 15, 20, 30, 50)
# Factor of the documents' prior while topics are being found: documents that mix fewer topics than they will
# tell these apart. Laps begin with the prior as it is.
_PRIOR_SCALE = 0.3
# Tokens on which starts are tried, and on which the best are developed; but never fewer documents than these.
# From fewer tokens, topics are made that fit nothing but these.
_SCREEN_TOKENS, _TOKENS, _LEAST_DOCUMENTS = 100_000, 300_000, 1000
# Rounds in which all starts are tried, and number of starts that are finished.
_ROUNDS, _N_FINISHED = 3, 2
# Rounds in which the best is developed: what can be joined has been.
_LAST_ROUNDS = 5
# Dimension of the projection in which anchors are found: in fewer, half of the time would go into it.
_PROJECTION = 300
# Anchors need so many word types each.
_TYPES_AN_ANCHOR = 5


def create_first_topics(model, sample, doc_prior, n_seeds, rng, n_threads=1):
    """Successors of a topic that is alone, as from `create_topics`; arguments as there."""
    least = LEAST_TOKENS * sample.one_token
    mean_length = max(sample.total / sample.docs.total, 1.0)
    some = subset(sample, max(_LEAST_DOCUMENTS, int(_TOKENS / mean_length)), rng)
    few = subset(some, int(_SCREEN_TOKENS / mean_length), rng)
    nested = Nested(model, sample, _PRIOR_SCALE * doc_prior, n_threads)
    starts = [document_seeds(nested, n_seeds, rng)]
    if model.likelihood.words:
        starts += _anchor_seeds(few, model.likelihood.n_features, sample.total, n_seeds, rng)
    tried = _after(nested, few, starts, least, n_rounds=_ROUNDS)
    found = _after(nested, few, _best(tried, _N_FINISHED), least)
    if few is not some:
        found = _after(nested, some, _best(found, 1), least, n_rounds=_LAST_ROUNDS)
    return developed(nested, found[0]) if found else None


def _after(nested, some, starts, least, **rounds):
    """`Found` of starts (J, P) after rounds on some documents, the best first, without single topics."""
    found = [nested.rounds(some, s, least, **rounds) for s in starts]
    return sorted((one for one in found if one is not None), key=lambda one: -one.value)


def _best(found, n):
    """Statistics of the first n."""
    return [one.s for one in found[:n]]


def _anchor_seeds(few, n_types, total, n_seeds, rng):
    """Statistics, of ``total`` tokens, of topics about anchor words of ``few`` documents, of 10 first."""
    docs, entries = few.docs.chosen(few.docs.lengths > 0)
    shape = len(docs), n_types
    counts = sparse.csr_matrix(
        (docs.counts * few.mass[entries], docs.indices, docs.indptr), shape=shape
    )
    n_used = np.count_nonzero(np.bincount(docs.indices, minlength=n_types))
    most = min(n_seeds, len(docs), n_used // _TYPES_AN_ANCHOR)
    numbers = [n for n in _N_ANCHORS if n <= most]
    if not numbers:
        return
    anchors = Anchors(counts, max(numbers), rng, docs.weight, _PROJECTION)
    for n in numbers:
        s = with_total(anchors.topics(n), total)
        yield s[s[:, -1] > 0]
