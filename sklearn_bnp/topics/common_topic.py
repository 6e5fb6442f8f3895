"""A topic for the words that all other topics share, which are taken out of these.

Design note
-----------
(a) Every document may have a part that is the same in all: a signature, a form, a list of links. Births find
    topics that each hold a share of it, for then a document can do with few topics. A topic for the common
    part alone pays only if all other topics give their shares to it, and if documents may mix more topics
    than before. No birth, merge or delete leads there.
(b) The words that three quarters of the topics have, each to the least of these frequencies, are the common
    topic. The others keep the rest, and become sharper (`seeding.sharpened`). All documents start anew with a
    greater concentration, which is learned from pass to pass, and the objective of the whole corpus decides.
    A smaller concentration is tried if it was refused: 15 topics with half of their words in common had ended
    .14 % below a start from the true ones, and end within .01 %.
(c) If documents have one topic each, a common one has no place in them. If topics have hardly any words in
    common, there is nothing to take out. Then nothing is tried.
"""

from __future__ import annotations

import numpy as np

# Share of the topics that may lack a word of the common one, and least share of the tokens that it gets.
_LACK, _LEAST_SHARE = 0.25, 0.1
# The least sum of the parameters of the documents' prior with which they mix several topics.
_LEAST_PRIOR = 0.1


def with_common_topic(s, doc_prior):
    """Statistics (K + 1, P) of topics without what they have in common, and of that.

    Parameters
    ----------
    s : ndarray, shape (K, P)
        Statistics of topics: counts of words and of tokens.
    doc_prior : float
        Sum of the parameters of the documents' prior.

    Returns
    -------
    s : ndarray, shape (K + 1, P), or None
        None if topics have little in common, or if documents hardly mix them.
    """
    words = s[:, :-1]
    frequency = words / s[:, -1:]
    shared = np.minimum(np.quantile(frequency, _LACK, axis=0), frequency) * s[:, -1:]
    if doc_prior < _LEAST_PRIOR or shared.sum() < _LEAST_SHARE * s[:, -1].sum():
        return None
    common = np.column_stack([shared, shared.sum(axis=1)])
    return np.concatenate([s - common, common.sum(axis=0, keepdims=True)])
