"""A warning if later rows of a stream vary where the first ones did not.

Columns that are constant in the first batch are left out of Gaussian components, and so are directions in
which its columns do not vary. They have a fixed narrow density instead (``likelihood/scaling.py``). If later
rows vary there after all, components cannot differ in it, and scores of rows are very low.
"""

from __future__ import annotations

import numpy as np

from ..inputs.advice import warn_caller
from ..inputs.rows import part
from ..likelihood.autoregressive_gaps import are_whole

# Mean over rows of the exponent of the narrow density, in nats, below which rows vary where they did not.
_LEAST = -100.0


def warn_if_left_out_varies(likelihood, batch):
    """Warn, at the line that calls the package, if a batch varies in what the ``likelihood`` leaves out.

    Rows with missing entries do not count.
    """
    if not _parts_that_leave_out(likelihood):  # most have nothing to do
        return
    total, n, worst, row = 0.0, 0, 0.0, None
    counts = None if batch.weight is None else batch.entry_weight > 0
    for rows in batch.slices():
        x = part(batch.x, rows)
        x = x[are_whole(x) if counts is None else are_whole(x) & counts[rows]]
        found = _exponents(likelihood, x)
        total, n = total + found.sum(), n + len(found)
        if found.min(initial=0.0) < worst:
            worst, row = found.min(), x[int(np.argmin(found))][np.newaxis]
    if row is None or not total < _LEAST * n:
        return
    column = _column(likelihood, row)
    what = f"column {column}" if column is not None else "a combination of columns"
    warn_caller(  # no number that changes: Python shows a text once for each line that calls
        f"X varies in {what}, which was constant in the first fit or batch. The model leaves it out for "
        "good: components cannot differ in it, and scores of such rows are far too low. Begin anew with fit, "
        "or with a first batch in which columns vary as they do later."
    )


def _parts_that_leave_out(likelihood):
    """Pairs (likelihood, columns) of the parts that leave something out, a list; it is mostly empty."""
    blocks = getattr(likelihood, "blocks", None)
    if blocks is not None:
        return [(b.likelihood, b.columns) for b in blocks if _parts_that_leave_out(b.likelihood)]
    return [(likelihood, slice(None))] if _scaling_that_leaves_out(likelihood) is not None else []


def scaling_of(likelihood):
    """The `Scaling` of a family, for rows with gaps or lags as well; None if it has none."""
    for name in ("complete", "rows"):
        likelihood = getattr(likelihood, name, likelihood)
    scaling = getattr(likelihood, "scaling", None)
    return getattr(scaling, "steps", scaling)


def _scaling_that_leaves_out(likelihood):
    """The `Scaling` of a family that leaves columns, or combinations of them, out; None if it keeps all."""
    scaling = scaling_of(likelihood)
    return None if getattr(scaling, "basis", None) is None else scaling


def _exponents(likelihood, x):
    """Exponents (n,) of the narrow densities of complete rows."""
    return sum(own.log_base(x[:, columns]) for own, columns in _parts_that_leave_out(likelihood))


def _column(likelihood, row):
    """The column that is left out and in which a row (1, D) is farthest away; None if it is no single one."""
    parts = _parts_that_leave_out(likelihood)
    own, columns = min(parts, key=lambda pair: pair[0].log_base(row[:, pair[1]])[0])
    scaling = _scaling_that_leaves_out(own)
    if scaling.kept is None or own.lags:
        return None
    far = np.abs(scaling.standardise(row[:, columns])[0])
    far[scaling.kept] = 0.0
    return int(np.arange(row.shape[1])[columns][np.argmax(far)])
