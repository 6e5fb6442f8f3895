"""A model is a likelihood, its prior and an allocation model; its objective is a function of totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .local import local_pass
from .own_components import own_components
from .sampling import RowSampling


class Model(NamedTuple):
    """What the learner knows of the model; immutable.

    Attributes
    ----------
    likelihood : Likelihood
    allocation : MixtureAllocation
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    """

    likelihood: object
    allocation: object
    prior: object

    # Rounds of proposals on a new batch of a stream: each may split what the one before has found.
    stream_rounds = 3
    # How samples of rows are drawn for proposals.
    sampling = RowSampling

    def own_components(self, totals, bag, batch_id, new_uids, n_most, mean_weight):
        """Trials by which a new batch of a stream takes what it gave to components along to new ones."""
        return own_components(self, totals, bag, batch_id, new_uids, n_most, mean_weight)

    def elbo_terms(self, totals):
        """The exact objective in three terms, in nats (Hughes 2016, (3.18)).

        ``totals`` are statistics under any responsibilities; the global parameters are taken at their
        optimum given these, where the objective is a function of the statistics alone.
        """
        return {
            "data": float(np.sum(self.likelihood.evidence(self.prior, totals.s))),
            "entropy": float(np.sum(totals.entropy)),
            "allocation": self.allocation_term(totals),
        }

    def allocation_term(self, totals):
        """What the allocation model adds to the objective, in nats."""
        return float(self.allocation.elbo(totals.n))

    def elbo(self, totals):
        return sum(self.elbo_terms(totals).values())

    def coefficients(self, totals):
        """``W_nk = coefficients[k] @ s(x_n)``: the local step's log posterior weights (3.48)."""
        coef = self.likelihood.coefficients(self.prior, totals.s)
        coef[:, -1] += self.allocation.expected_log_weights(totals.n)
        return coef

    def carry(self, statistics, batch_id):
        """Rows start anew at each visit: there is nothing that a batch is remembered by."""
        return None

    def local_pass(
        self, batch, coef, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """`StatBag` of a batch after its local step."""
        return local_pass(
            batch, self.likelihood, coef, uids, observers, n_nonzero=n_nonzero, n_threads=n_threads
        )

    def in_order(self, totals):
        """Totals with the components in the order that suits the model, and the model for them."""
        return totals.take(np.argsort(-totals.n, kind="stable")), self

    def updated(self, totals):
        """The model after those global steps that are no function of the totals: there are none."""
        return self

    def blended(self, totals, rate):
        """The model after a stochastic step at a learning ``rate``: the totals are averages already."""
        return self

    def adopting(self, totals, retired):
        """The model for a lap with components on trial in place of others: nothing depends on it."""
        return self

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements of components.

        Parameters
        ----------
        totals : StatBag
        replacements : list of pairs
            Uids that go, and the `StatBag` of what comes.
        fixed : ndarray
            Change of the data and entropy terms.
        """
        width = len(totals.n) + max((len(new.n) for _, new in replacements), default=0)
        n = np.full((len(replacements), width), np.nan)
        n[:, : len(totals.n)] = totals.n
        for row, (removed, new) in zip(n, replacements, strict=True):
            row[totals.positions(removed)] = np.nan
            row[len(totals.n) : len(totals.n) + len(new.n)] = new.n
        return fixed + self.allocation.elbo(n) - self.allocation.elbo(totals.n)

    def union_gains(self, totals, groups):
        """Change of the allocation term for each group (lists of rows) joined."""
        n = np.tile(totals.n, (len(groups), 1))
        for row, group in zip(n, groups, strict=True):
            mass = row[list(group)].sum()
            row[list(group)] = np.nan
            row[group[0]] = mass
        return self.allocation.elbo(n) - self.allocation.elbo(totals.n)

    def with_adapted_prior(self, totals, n_iter):
        return self._replace(prior=self.likelihood.update_prior(self.prior, totals.s, n_iter))
