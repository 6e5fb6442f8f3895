"""News: what new batches of a stream gave to a component is unlike what it had before."""

from __future__ import annotations

import numpy as np

# Rows that news of a component need, and must leave behind: a mass, which is scaled with the mean weight
# where that is less than 1.
_LEAST_ROWS = 4.0


def gains(model, bag, rest, both, others, mean_weight=None):
    """Gain in evidence (K,), in nats, if what batches gave to each component were a component of its own.

    A gain is news: the evidence of both parts charges for the parameters that one of them would have beside
    the other. It is -inf where there are too few rows.

    Parameters
    ----------
    model : Model
    bag : StatBag
        Statistics of the batches.
    rest : ndarray, shape (K, P)
        Statistics of all else.
    both, others : ndarray, shape (K,)
        Evidence of the components with these batches, and without them.
    mean_weight : float or None
        Mean weight of the batches' rows; None if they have none.
    """
    least = _LEAST_ROWS * min(1.0, mean_weight or 1.0)
    out = np.full(len(bag.n), -np.inf)
    k = np.flatnonzero((bag.n >= least) & (rest[:, -1] >= least))
    if len(k):
        out[k] = model.likelihood.evidence(model.prior, bag.s[k]) + (others - both)[k]
    return out
