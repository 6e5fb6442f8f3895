"""The evidence of each component, which is computed once for each change of the statistics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class KnownEvidence(NamedTuple):
    """Evidence of components that was computed, and what it is of.

    A batch of a stream asks for it three times: of the components without the batch, of those with it, and,
    in another order, for the objective. It is no part of a state: if it is missing, it is computed anew, with
    the same bits.

    Attributes
    ----------
    prior : object
    totals : StatBag
    values : ndarray, shape (K,)
    """

    prior: Any
    totals: Any
    values: np.ndarray

    @classmethod
    def of(cls, model, totals):
        """The evidence of the components of ``totals``."""
        return cls(model.prior, totals, model.likelihood.evidence(model.prior, totals.s))

    def suits(self, model, totals):
        """Whether it is that of these totals under the model's prior."""
        return self.prior is model.prior and self.totals.s is totals.s

    def listed(self, totals):
        """List the values in the order of ``totals``; None if these have other components."""
        if len(totals.uids) != len(self.totals.uids):
            return None
        where = self.totals.positions(totals.uids)
        return KnownEvidence(self.prior, totals, self.values[where])
