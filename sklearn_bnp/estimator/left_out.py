"""A warning if later rows of a stream vary where the first ones did not.

Columns that are constant in the first batch are left out of Gaussian components, and so are directions in
which its columns do not vary. They have a fixed narrow density instead (``likelihood/scaling.py``). If later
rows vary there after all, components cannot differ in it, and scores of rows are very low.
"""

from __future__ import annotations

import numpy as np

from ..inputs.advice import warn_caller
from ..inputs.rows import part

# Mean over rows of the exponent of the narrow density, in nats, below which rows vary where they did not.
_LEAST = -100.0


def warn_if_left_out_varies(likelihood, batch):
    """Warn, at the line that calls the package, if a batch varies in what the ``likelihood`` leaves out."""
    total, worst, row = 0.0, 0.0, None
    counts = None if batch.weight is None else batch.entry_weight > 0
    for rows in batch.slices():
        x = part(batch.x, rows)
        found = likelihood.log_base(x)
        if counts is not None:
            found = np.where(counts[rows], found, 0.0)
        total += found.sum()
        if found.min(initial=0.0) < worst:
            worst, row = found.min(), x[int(np.argmin(found))][np.newaxis]
    if row is None or not total < _LEAST * batch.n_entries:
        return
    column, lost = _column(likelihood, row), -total / batch.n_entries
    what = f"column {column}" if column is not None else "a combination of columns"
    warn_caller(
        f"X varies in {what}, which was constant in the first fit or batch. The model leaves it out for "
        f"good: components cannot differ in it, and scores are about {lost:.3g} nats a row "
        "too low. Begin anew with fit, or with a first batch in which columns vary as they do later."
    )


def _column(likelihood, row):
    """The column that is left out and in which a row (1, D) is farthest away; None if it is no single one."""
    blocks = getattr(likelihood, "blocks", None)
    if blocks is not None:
        own = min(blocks, key=lambda block: block.likelihood.log_base(row[:, block.columns])[0])
        column = _column(own.likelihood, row[:, own.columns])
        return None if column is None else int(np.arange(row.shape[1])[own.columns][column])
    scaling = getattr(getattr(likelihood, "complete", likelihood), "scaling", None)
    if getattr(scaling, "kept", None) is None:
        return None
    far = np.abs(scaling.standardise(row)[0])
    far[scaling.kept] = 0.0
    return int(np.nanargmax(far))
