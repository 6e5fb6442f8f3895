"""The model of rows: a likelihood, its prior, and the weights of the components of a mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.model import BaseModel
from .local import local_pass
from .own_components import own_components
from .sampling import RowSampling
from .small_unions import small_unions
from .weights import MixtureAllocation

# Log weight of a component that no row may go to: beyond all others, and within single precision.
_NEVER = -1e30


@dataclass(frozen=True, eq=False)
class MixtureModel(BaseModel):
    """The model of rows; immutable.

    The posteriors of all global parameters are taken at their optimum given the totals, so that the
    objective is a function of the statistics alone.

    Parameters
    ----------
    likelihood : Likelihood
    allocation : MixtureAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    retired : tuple of int
        Uids of components that no row may go to while others are on trial in their place.
    """

    allocation: MixtureAllocation
    retired: tuple = ()

    stream_rounds = 3
    settled_gain = 0.0
    pool_rows = 20_000
    sampling = RowSampling

    def own_components(self, totals, bags, gains, new_uids, n_most):
        """Trials by which new batches take rows along; statistics are sums over single rows."""
        return own_components(totals, bags, gains, new_uids, n_most)

    def small_unions(self, totals, least):
        """Trials by which components of less than ``least`` join others."""
        return small_unions(self, totals, least)

    def allocation_term(self, totals):
        """The allocation term of the objective, in nats."""
        return float(self.allocation.elbo(totals.n))

    def coefficients(self, totals):
        """``W_nk = coefficients[k] @ s(x_n)``: the local step's log posterior weights (3.48)."""
        coef = self.likelihood.coefficients(self.prior, totals.s)
        n, gone = totals.n, totals.positions(list(self.retired))
        if self.retired:
            n = n.copy()
            n[gone] = 0.0
        coef[:, -1] += self.allocation.expected_log_weights(n)
        coef[gone] = 0.0
        coef[gone, -1] = _NEVER
        return coef

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch after its local step; a mixture has no use for ``carry`` and ``lap``."""
        return local_pass(
            batch,
            self.likelihood,
            params,
            uids,
            observers,
            n_nonzero=n_nonzero,
            n_threads=n_threads,
        )

    def in_order(self, totals):
        """Totals with the components by decreasing size, and the model for them."""
        return totals.take(np.argsort(-totals.n, kind="stable")), self.updated(totals)

    def updated(self, totals):
        """The model itself, without retired components: its global parameters are functions of the totals."""
        return self._replace(retired=()) if self.retired else self

    def adopting(self, totals, retired, concentrations=None):
        """The model for a lap with components on trial, in which retired ones have no weight."""
        return self if tuple(retired) == self.retired else self._replace(retired=tuple(retired))

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements; see `Model.replacement_gains`."""
        width = len(totals.n) + max((len(new.n) for _, new in replacements), default=0)
        n = np.full((len(replacements), width), np.nan)
        n[:, : len(totals.n)] = totals.n
        for row, (removed, new) in zip(n, replacements, strict=True):
            row[totals.positions(removed)] = np.nan
            row[len(totals.n) : len(totals.n) + len(new.n)] = new.n
        return fixed + self.allocation.elbo(n) - self.allocation.elbo(totals.n)

    def union_gains(self, totals, groups):
        """Change of the allocation term by each union of a group of components (rows of ``totals``)."""
        n = np.tile(totals.n, (len(groups), 1))
        for row, group in zip(n, groups, strict=True):
            mass = row[list(group)].sum()
            row[list(group)] = np.nan
            row[group[0]] = mass
        return self.allocation.elbo(n) - self.allocation.elbo(totals.n)
