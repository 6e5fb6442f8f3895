"""A warning if the rows of a stream are far away from its first batch.

A model keeps the units of its first batch. A prior of means that is learned goes with the later rows, but
one that is given (``mean_precision_prior``, ``mean_variance_prior``) does not fit them if they are far away.
Components then come out too wide, or too few.
"""

from __future__ import annotations

import numpy as np

from ..inputs.advice import warn_caller
from ..inputs.rows import part
from .left_out_columns import scaling_of

# In standard deviations of the prior of means. Streams of 100, 300 and 1,000 rows in four clusters, with as
# many so far away after them, scored these 1.0, .9 and .7 nats lower than a fit of the later rows alone, if
# ``mean_precision_prior=0.01`` was given.
_FAR = 100.0


def warn_if_far(likelihood, batch, largest):
    """Warn, at the line that calls the package, if most rows of a batch are far away in some column.

    ``largest`` is the largest absolute value of prepared rows: mostly there is nothing to do. Later rows of
    sequences may wander far away under families with lags, whose units are steps.
    """
    limit = _FAR * np.broadcast_to(likelihood.spread_of_means, likelihood.n_features)
    if not largest > limit.min() or likelihood.lags:
        return
    far, total = np.zeros(likelihood.n_features), 0.0
    for rows in batch.slices():
        weight = None if batch.weight is None else batch.entry_weight[rows]
        found = np.abs(likelihood.prepare(part(batch.x, rows))) > limit
        far += found.sum(axis=0) if weight is None else weight @ found
        total += len(found) if weight is None else weight.sum()
    d = int(np.argmax(far))
    if not far[d] > total / 2:
        return
    column = _column(likelihood, d)
    where = "along a combination of columns" if column is None else f"in column {column}"
    warn_caller(  # no number that changes: Python shows a text once for each line that calls
        f"Most rows of X are more than {_FAR:g} standard deviations away from where means are expected, "
        f"which is near the first fit or batch, {where}. The prior of means is fixed: components come out "
        "too wide or too few. Begin anew with fit, or with a first batch that is like the later ones; or "
        "leave mean_precision_prior and mean_variance_prior None, so that the prior is learned."
    )


def _column(likelihood, d):
    """The column of the data that prepared rows have in place d; None if it is no single one."""
    for block in getattr(likelihood, "blocks", ()):
        if block.z.start <= d < block.z.stop:
            own = _column(block.likelihood, d - block.z.start)
            return None if own is None else int(np.asarray(block.columns)[own])
    scaling = scaling_of(likelihood)
    if scaling is None or scaling.is_rotated:
        return None
    return d if scaling.kept is None else int(scaling.kept[d])
