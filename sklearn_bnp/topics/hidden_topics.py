"""Topics that hide in one which all documents use, found by what documents have beyond its mean.

Design note
-----------
(a) A topic of words that all documents share, such as a signature, takes in whole topics that are small
    beside it. Each document has its part of it, so that no document, and no cluster of some, says what hides
    there. But documents differ in what they have beyond the topic's mean, and what hides are directions in
    which they differ.
(b) Each direction is tried alone, as a second topic beside all the rest. In a dozen passes the objective of
    the two rises above that of one topic if there is something in this direction, and stays far below it if
    there is not. No topics are joined meanwhile: documents settle slowly, and before they have settled, even
    topics that were drawn would be joined.
(c) The directions that raise the objective are then tried together. 20 topics of 800 documents, half of whose
    words were common to all, had ended as 12 to 16 topics, up to 1000 nats below those that were drawn.
"""

from __future__ import annotations

import numpy as np

from .seeding import with_total
from .spectral import topics_beyond_mean

# Directions that are tried, at first and once more; the share of the target with which each begins, and the
# least share of each word that stays with the rest.
_N_DIRECTIONS, _MORE, _SHARE, _LEFT = 10, 20, 0.05, 0.1


def topics_beyond(nested, some, counts, n_seeds, least, rng, more=False):
    """`Found` topics that hide in a target; None if no direction raises the nested objective.

    Parameters
    ----------
    nested : Nested
        Of the target.
    some : DocumentSample
        Some of its documents, none of them empty.
    counts : csr_matrix, shape (n_docs, V)
        Their words.
    n_seeds : int
        Most topics, the rest included.
    least : float
        Topics of fewer tokens are left out.
    rng : numpy.random.RandomState
    more : bool
        Whether to try twice as many directions.
    """
    weight, total = some.docs.weight, nested.sample.total
    everything = counts.T @ (np.ones(counts.shape[0]) if weight is None else weight)
    everything *= total / everything.sum()
    most = min(counts.shape[0], np.count_nonzero(everything)) - 1
    n = min(_MORE if more else _N_DIRECTIONS, most)
    if n < 1:
        return None
    directions = topics_beyond_mean(counts, n, rng, weight)
    value = nested.apart(some, with_total(everything[np.newaxis])).value

    def beside_the_rest(topics):
        """`Found` after passes from topics (J, V) and the rest; None unless it is better than one topic."""
        sums = np.maximum(topics.sum(axis=0), 1e-300)
        topics = topics * np.minimum((1.0 - _LEFT) * everything / sums, 1.0)
        start = np.concatenate([[everything - topics.sum(axis=0)], topics])
        found = nested.apart(some, with_total(start), value)
        return found if found.value > value else None

    alone = [beside_the_rest(_SHARE * total * topic[np.newaxis]) for topic in directions]
    alone = [found for found in alone if found is not None and found.s[:, -1].min() >= least]
    alone = sorted(alone, key=lambda found: -found.value)[: n_seeds - 1]
    if len(alone) > 1:
        together = beside_the_rest(np.array([found.s[1, :-1] for found in alone]))
        if together is not None:
            alone.append(together.nested.tidied(some, together, least))
    return max(alone, key=lambda found: found.value, default=None)
