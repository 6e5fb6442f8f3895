"""What families of counts have in common: how rows are checked, and zeros skipped."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


def checked_counts(x, name, instead):
    """Rows of counts in float32 or float64; ``instead`` says what to give for what are none."""
    least = x.min(initial=0)
    if not least <= 0:  # nan, of rows with holes
        least = np.fmin.reduce(x, axis=None, initial=0)
    if least < 0:
        raise ValueError(
            f"X holds {least:g}, but observation={name!r} takes counts, which are never negative; "
            "look for errors in X."
        )
    if x.dtype.kind == "f":
        fractions = x[x != np.rint(x)]
        fractions = fractions[~np.isnan(fractions)]
        if len(fractions):
            raise ValueError(
                f"X holds {fractions[0]:g}, but observation={name!r} takes whole numbers: {instead}, "
                "or np.rint(X). What is to count less than once has its place in sample_weight."
            )
    return np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def statistics_as_rows(s):
    """Statistics (..., P) as C-contiguous rows (n, P) for the kernels; a copy only if need be."""
    return np.ascontiguousarray(s, dtype=np.float64).reshape(-1, s.shape[-1])


def nonzeros(counts):
    """Row, column and value of what is not zero in counts (n, V)."""
    flat = counts.reshape(-1)
    at = np.flatnonzero(flat != 0)  # faster than np.nonzero of the counts themselves
    row, column = np.divmod(at, counts.shape[-1])
    return row, column, flat[at].astype(np.float64, copy=False)


def sum_log_factorials(counts):
    """``sum_v log x_v!`` of each row of counts (n, V)."""
    row, _, values = nonzeros(counts)
    return np.bincount(row, gammaln(values + 1.0), minlength=len(counts))
