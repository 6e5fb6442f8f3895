"""Lagged rows of sequences: each row together with the rows before it."""

from __future__ import annotations

import numpy as np


def lagged(x, indptr, lags):
    """Rows ``[y_t, y_{t-1}, ..., y_{t-lags}]`` of sequences, and the edges of the sequences among them.

    The first ``lags`` rows of each sequence are left out, because the model takes them as given.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        Rows, of which ``indptr[i]:indptr[i + 1]`` are sequence i.
    indptr : ndarray, shape (n_sequences + 1,)
        Edges of the sequences in ``x``.
    lags : int
        Number of lags. With 0, both arrays are returned as they are.

    Returns
    -------
    rows : ndarray, shape (n', D * (lags + 1))
        Lagged rows, of the type of ``x``.
    indptr : ndarray, shape (n_sequences + 1,)
        Edges of the sequences in ``rows``. A sequence of ``lags`` rows or fewer is empty.
    """
    if lags == 0:
        return x, indptr
    indptr = np.asarray(indptr)
    lengths = np.diff(indptr)
    place = np.arange(lengths.sum()) - np.repeat(indptr[:-1] - indptr[0], lengths)
    present = indptr[0] + np.flatnonzero(place >= lags)
    D = x.shape[1]
    rows = np.empty((len(present), D * (lags + 1)), dtype=x.dtype)
    for lag in range(lags + 1):
        rows[:, lag * D : (lag + 1) * D] = x[present - lag]
    edges = np.zeros_like(indptr)
    np.cumsum(np.maximum(lengths - lags, 0), out=edges[1:])
    return rows, edges
