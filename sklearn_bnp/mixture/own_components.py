"""Components of new batches' own: what they gave to a component stays together as another one.

A split of the rows in hand cannot tell that all of them are unlike those gone by, as when data come
sorted. So before any proposal, a new batch of a stream may take what it gave to a component along to a
new one, and so may several batches together. All statistics of such a change are known.
"""

from __future__ import annotations

import numpy as np

from ..engine.edits import SplitEdit
from ..engine.statistics import added_up
from ..engine.trials import KnownTrial, Outcome


def own_components(totals, bags, gains, new_uids, n_most):
    """`KnownTrial` objects, at most ``n_most``, by which batches take components along.

    Parameters
    ----------
    totals : StatBag
        Statistics of the whole data, the new batches included.
    bags : dict of object to StatBag
        What each of these batches left behind, by its name, listed as ``totals``.
    gains : ndarray, shape (K,)
        Gains from `engine.stream_news.gains`.
    new_uids : callable
        ``new_uids(n)`` names n components.
    n_most : float
    """
    bag = added_up(bags.values())
    rest = totals.add(bag, -1.0)
    trials = []
    for k in np.argsort(-gains, kind="stable").tolist():
        if not gains[k] > 0 or len(trials) >= n_most:
            break
        created, removed = new_uids(1), (int(bag.uids[k]),)
        uids = np.array(created, dtype=np.int64)
        rows = {name: one.take([k])._replace(uids=uids) for name, one in bags.items()}
        outcome = Outcome(
            rest.take([k]).concatenated(added_up(rows.values())),
            SplitEdit(removed, created, rows),
        )
        trials.append(KnownTrial("birth", removed, created, outcome))
    return trials
