"""Likelihoods whose log weights are made first, and then shared out.

The kernel of `_kernels._responsibilities` makes both in one go for rows whose s(x) has one of its
layouts. Families of other rows (several blocks of columns, sparse rows, rows with holes) say what
``coef @ s(x)`` is and how s(x) is summed; this class does the rest.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .._kernels._responsibilities import share_out
from .base import Likelihood


class TableLikelihood(Likelihood):
    """A family that makes tables of log weights (n, K)."""

    @abstractmethod
    def log_table(self, coef, z):
        """``coef @ s(x)`` of prepared rows, (n, K), C-contiguous and in the rows' precision."""

    @abstractmethod
    def features(self, z):
        """Rows s(x) (n, P) of prepared rows, in their precision."""

    @abstractmethod
    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        """Fill ``s`` (J, P) with the statistics of rows under given shares; see `Likelihood`."""

    def local_step(
        self, coef, z, mass, weight, s, entropy, *, n_nonzero=None, n_threads=1, log_norm=None
    ):
        """Share rows among components; see `Likelihood.local_step`."""
        table = self.log_table(coef, z)
        resp = np.empty_like(table)
        n_nonzero = len(coef) if n_nonzero is None else n_nonzero
        share_out(table, mass, weight, resp, entropy, log_norm, n_nonzero, n_threads)
        if s is not None:
            self.summarise(z, weighted_shares(resp, mass, weight), s, coef=coef)
        return resp

    def likelihood_table(self, coef, z, floor, n_threads=1):
        """Likelihoods (n, K) of rows, each row over its sum; see `Likelihood.likelihood_table`."""
        table = self.log_table(coef, z)
        out, log_norm = np.empty_like(table), np.empty(len(table))
        share_out(table, None, None, out, None, log_norm, len(coef), n_threads, floor)
        return np.maximum(out, floor, dtype=np.float64), log_norm


def weighted_shares(resp, mass, weight):
    """Shares (n, J) of rows that are there ``mass`` times ``weight``, each (n,) or None."""
    for factor in (mass, weight):
        if factor is not None:
            resp = resp * factor[:, np.newaxis].astype(resp.dtype, copy=False)
    return resp
