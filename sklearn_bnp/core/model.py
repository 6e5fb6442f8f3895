"""A model is a likelihood, its prior and an allocation model; its objective is a function of totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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

    def elbo_terms(self, totals):
        """The exact objective in three terms, in nats (Hughes 2016, (3.18)).

        ``totals`` are statistics under any responsibilities; the global parameters are taken at their
        optimum given these, where the objective is a function of the statistics alone.
        """
        return {
            "data": float(np.sum(self.likelihood.evidence(self.prior, totals.s))),
            "entropy": float(np.sum(totals.entropy)),
            "allocation": float(self.allocation.elbo(totals.n)),
        }

    def elbo(self, totals):
        return sum(self.elbo_terms(totals).values())

    def coefficients(self, totals):
        """``W_nk = coefficients[k] @ s(x_n)``: the local step's log posterior weights (3.48)."""
        coef = self.likelihood.coefficients(self.prior, totals.s)
        coef[:, -1] += self.allocation.expected_log_weights(totals.n)
        return coef

    def with_adapted_prior(self, totals, n_iter):
        return self._replace(prior=self.likelihood.update_prior(self.prior, totals.s, n_iter))
