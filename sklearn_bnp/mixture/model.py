"""The model of rows: a likelihood, its prior, and the weights of the components of a mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.affinity import union_evidence
from ..engine.edits import SplitEdit, UnionEdit, union_row
from ..engine.model import BaseModel
from ..engine.statistics import added_up
from ..engine.trials import KnownTrial, Outcome
from .local import local_pass
from .sampling import RowSampling
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
        """Trials in which what new batches gave to a component becomes a new one; `Model.own_components`.

        A split of the new rows alone cannot tell that all of them are unlike earlier ones, as when data come
        sorted. Statistics are sums over single rows, so that all those of such a change are known.
        """
        bag = added_up(bags.values())
        rest, trials = totals.add(bag, -1.0), []
        for k in np.argsort(-gains, kind="stable").tolist():
            if not gains[k] > 0 or len(trials) >= n_most:
                break
            created, removed = new_uids(1), (int(bag.uids[k]),)
            uids = np.array(created, dtype=np.int64)
            rows = {name: one.take([k])._replace(uids=uids) for name, one in bags.items()}
            successors = rest.take([k]).concatenated(added_up(rows.values()))
            outcome = Outcome(successors, SplitEdit(removed, created, rows))
            trials.append(KnownTrial("birth", removed, created, outcome))
        return trials

    def small_unions(self, totals, least):
        """Trials by which components of less than ``least`` join the ones that suit them best.

        These keep their names. For the entropy of a union a lower bound stands, which is nearly exact, since
        there is little to lose.
        """
        trials, used, K = [], set(), len(totals.uids)
        if K < 2:
            return trials
        own = self.likelihood.evidence(self.prior, totals.s)
        for k in np.flatnonzero(totals.n < least).tolist():
            others = np.delete(np.arange(K), k)
            both = union_evidence(
                self.likelihood, self.prior, totals.s, np.full(len(others), k), others
            )
            best = int(others[np.argmax(both - own[others])])
            if used & {k, best}:
                continue
            used |= {k, best}
            removed = (int(totals.uids[best]), int(totals.uids[k]))
            created = removed[:1]
            outcome = Outcome(union_row(totals, removed, created), UnionEdit(removed, created, {}))
            trials.append(KnownTrial("merge", removed, created, outcome))
        return trials

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
        how = {"n_nonzero": n_nonzero, "n_threads": n_threads}
        return local_pass(batch, self.likelihood, params, uids, observers, **how)

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
