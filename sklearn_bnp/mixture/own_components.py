"""Components of a new batch's own: what it gave to a component stays together as another one.

A split of the rows in hand cannot tell that all of them are unlike those gone by, as when data come
sorted. So before any proposal, a new batch of a stream may take what it gave to a component along to a
new one. All statistics of such a change are known.
"""

from __future__ import annotations

import numpy as np

from ..engine.edits import SplitEdit
from ..engine.trials import KnownTrial, Outcome

# Rows that a component of a batch's own needs, and must leave behind: a mass, which is scaled with the
# mean weight where that is less than 1.
_LEAST_ROWS = 4.0


def own_components(model, totals, bag, batch_id, new_uids, n_most, mean_weight=None):
    """`KnownTrial` objects, at most ``n_most``, by which a batch takes components along.

    Parameters
    ----------
    model : Model
    totals : StatBag
        Statistics of the whole data, the new batch included.
    bag : StatBag
        What the batch left behind, listed as ``totals``.
    batch_id : object
    new_uids : callable
        ``new_uids(n)`` names n components.
    n_most : float
    mean_weight : float or None
        Of the batch's rows; None if they have no weights.
    """
    rest = totals.add(bag, -1.0)
    evidence = (model.likelihood.evidence(model.prior, b.s) for b in (bag, rest, totals))
    own, others, both = evidence
    gain = own + others - both
    least = _LEAST_ROWS * min(1.0, mean_weight or 1.0)
    gain[(bag.n < least) | (rest.n < least)] = -np.inf
    trials = []
    for k in np.argsort(-gain, kind="stable").tolist():
        if not gain[k] > 0 or len(trials) >= n_most:
            break
        created, removed = new_uids(1), (int(bag.uids[k]),)
        row = bag.take([k])._replace(uids=np.array(created, dtype=np.int64))
        outcome = Outcome(
            rest.take([k]).concatenated(row), SplitEdit(removed, created, {batch_id: row})
        )
        trials.append(KnownTrial("birth", removed, created, outcome))
    return trials
