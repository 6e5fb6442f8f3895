"""Comparison of present components with others in their place, for proposals that replace many at once."""

from __future__ import annotations

import numpy as np

from ..engine.samples import Sample, to_search
from ..splits.restricted_mixture import RestrictedMixture

# Ordinary steps of new components, and of the present ones with which they are compared.
_SETTLING_STEPS = 20
# Steps by which the prior adapts before: it may have to become much narrower.
_SETTLING_ADAPT = 10
# Numbers (rows x K x P) that a step of all components may take, and of responsibilities (rows x K).
_MOST_NUMBERS, _MOST_SHARES = 50_000_000, 500_000
# The least part of the data that the rows have to be: parameters from fewer rows would be no better than
# the present ones.
_LEAST_PART = 0.25
# Estimated gain, in nats, from which a trial is worth its cost.
WORTH_A_TRIAL = 0.5


def affordable_rows(totals, most):
    """Rows of all on which steps of all components do not cost much."""
    return int(min(most, _MOST_NUMBERS // totals.s.size, _MOST_SHARES // len(totals.s)))


def shows_everything(uniform, totals, part=_LEAST_PART):
    """Whether rows drawn from all are so large a part of the data that they show all components well."""
    return len(uniform.resp) > 0 and uniform.total >= part * totals.n.sum()


class Comparison:
    """Components that may take the place of present ones, compared with these on a sample of their rows.

    With ``adapt`` both are compared under the priors that suit them. If a row may be in one component alone,
    both are compared with each row in one.

    Parameters
    ----------
    model : Model
    sample : Sample
    present, others : ndarray, shapes (J, P) and (K - J, P)
        Statistics of the components that may be replaced, and of all that stay.
    adapt : bool, default=False
    n_nonzero : int or None, default=None
        The most components that a row may be shared among; no limit if None.

    Attributes
    ----------
    small : RestrictedMixture
        The components that may be replaced, on the sample; rows are shared freely.
    s, resp : ndarray, shapes (J, P) and (m, J)
        Statistics of the sample and responsibilities, after a local step of the present components.
    """

    def __init__(self, model, sample, present, others, adapt=False, n_nonzero=None):
        self._of, self._adapts, self._n_nonzero = (model, sample, others), adapt, n_nonzero
        self.small = self.restricted()
        self.s, _, self.resp = self.small.step(present)
        self._present = None

    @classmethod
    def of_all(cls, model, totals, uniform, adapt=False, n_nonzero=None):
        """All components may be replaced, and are compared on rows drawn from all."""
        z, resp, weight = uniform
        sample = to_search(Sample(z, np.ones(len(resp)), weight), model.likelihood, model.prior)
        sample = sample.standing_for(totals.n.sum())
        return cls(model, sample, totals.s, totals.s[:0], adapt, n_nonzero)

    def restricted(self, adapt=False, limited=False):
        """As ``small``, but under a prior that adapts, or with rows shared among no more than may be."""
        limit = self._n_nonzero if limited else None
        return RestrictedMixture(*self._of, adapt and self._adapts, limit)

    def _settled(self, s):
        """Statistics after ordinary steps, their coefficients, and the objective of the sample in nats."""
        small = self.restricted(adapt=True, limited=True)
        small.adapt(s, _SETTLING_ADAPT)
        s, entropy, _ = small.iterate(s, _SETTLING_STEPS, 1e-4 * small.sample.total)
        return s, small.coefficients(s), small.objective(s, entropy)

    def settled(self, s):
        """Make ordinary steps from ``s``, and compare the result with the present components.

        Returns
        -------
        s, coef : ndarray, shapes (J, P)
            Statistics and coefficients.
        gain : float
            Objective of the sample, less that of the present components after such steps, in nats.
        """
        if self._present is None:
            self._present = self._settled(self.s)[2]
        s, coef, value = self._settled(s)
        return s, coef, value - self._present
