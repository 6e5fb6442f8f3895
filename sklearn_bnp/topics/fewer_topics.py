"""Fewer topics in place of all there are, for long documents of few words.

Design note
-----------
(a) In a document of 100,000 tokens over 20 words, the frequency of each word is known to a hundredth. Topics
    that are a hundredth off the true ones then cost thousands of nats, and laps improve them slowly: each lap
    gains about a fifth of what is left. Births come before that, and gain what laps would have gained, by a
    second topic for documents that the first does not suit exactly. No merge or delete of one of these pays
    before the other topics have moved, which takes many laps. 40 such documents of 4 topics ended with 20
    topics, 1800 nats below a fit from the 4 true ones.
(b) If the same documents had few tokens for each word, they would not tell such topics apart. The nested
    model of births (`creation.py`) starts from the topics as they are, and joins and prunes them on such
    documents. This takes as long as a few dozen passes over them.
(c) What is left takes the place of all topics. The objective of the whole data, with all tokens, decides.
    Passes go on until the topics have settled: births would otherwise gain again what passes have left.
"""

from __future__ import annotations

import numpy as np

from ..engine.trials import MOST_PASSES, AdoptTrial
from .creation import LEAST_TOKENS, Nested, developed
from .starts import some_documents

# Documents are long if they have so many tokens, on average, for each word of the corpus. Fewer topics are
# looked for with so many tokens for each word of a document: with 10 and 20, the true number was found less
# often.
_LONG, _THIN = 10.0, 5.0
# Nats that topics in place of all there are have to gain, in all and for each token.
_WORTH, _WORTH_OF_A_TOKEN = 1.0, 1e-4
# Nats a topic and pass, below which topics on trial have settled.
_SETTLED = 1.0


class SettlingTrial(AdoptTrial):
    """Topics in place of all there are, which settle before the next lap."""

    def is_unsettled(self, values):
        """Whether the last pass still gained much for each topic."""
        return len(values) < 2 or values[-1] - values[-2] > _SETTLED * len(self.created)


class PatientTrial(SettlingTrial):
    """Topics in place of all there are, which settle slowly: topics that part, documents that start anew."""

    def goes_on(self, values, least):
        """Whether as many passes as there may be would suffice, if each gained as much as the last one."""
        return len(values) < 3 or values[-1] + MOST_PASSES * (values[-1] - values[-2]) > least


def worth_of_all(totals):
    """Nats that topics in place of all of these have to gain."""
    return max(_WORTH, _WORTH_OF_A_TOKEN * totals.n.sum())


def are_long(totals):
    """Whether documents that are not empty have many tokens for each word of the corpus."""
    n_words = np.count_nonzero(totals.s[:, :-1].sum(axis=0))
    return totals.n.sum() > _LONG * n_words * totals.extra.lengths.total


def fewer_topics(model, totals, sample, rng, n_threads=1):
    """The topics that the nested model leaves of all there are, if documents have fewer tokens.

    Parameters
    ----------
    model : TopicModel
    totals : StatBag
    sample : DocumentSample
        Documents as they are.
    rng : numpy.random.RandomState
    n_threads : int

    Returns
    -------
    s : ndarray, shape (J, P), or None
        Statistics of J topics; None unless there are fewer than before, and two at least.
    doc_prior : float or None
        Sum of the parameters of the documents' prior with which they were found, if it was learned.
    """
    thin, n_tokens = sample.thinned(_THIN), totals.n.sum()
    learns = "doc_concentration" in model.learned
    nested = Nested(model, thin, model.doc_prior(totals).sum(), n_threads, learns)
    start = totals.s * (thin.total / n_tokens)
    found = nested.rounds(some_documents(thin, rng), start, LEAST_TOKENS * thin.one_token)
    if found is None or len(found.s) >= len(start):
        return None, None
    s = developed(found)
    return s * (n_tokens / s[:, -1].sum()), found.nested.doc_prior if learns else None
