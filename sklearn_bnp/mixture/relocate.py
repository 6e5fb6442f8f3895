"""Relocations: all rows go where they fit best without themselves, all at once."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.failures import Attempts
from ..engine.proposal import Proposal
from ..engine.samples import Sample
from ..engine.trials import SplitTrial
from .restricted import RestrictedMixture, most_collapsed

# Ordinary steps of new components, and of the present ones with which they are compared.
_SETTLING_STEPS = 10
# Numbers (rows x K x P) that a step of all components may take, and of responsibilities (rows x K).
_MOST_NUMBERS, _MOST_SHARES = 50_000_000, 500_000
# The least part of the data that the rows have to be: parameters from fewer rows would be no better than
# the present ones.
_LEAST_PART = 0.25
# Estimated gain, in nats, from which a trial is worth its cost.
_WORTH_A_TRIAL = 0.5
# Relative change of a component's mass after which a relocation that failed is tried again.
_MOVED = 0.02


class Relocate(Proposal):
    """Let all rows change components at once, each compared with components that do not hold it.

    Where a component has few rows for its parameters, it fits its own rows so closely that ordinary steps
    never release them. When nothing else is left to try, a few collapsed steps are therefore made on a sample
    of all rows. In these, each row is first taken out of where it is. The result replaces all components,
    if it raises the objective of the whole data.

    Parameters
    ----------
    n_steps : int, default=10
        Collapsed steps, at the most.
    max_rows : int, default=10_000
        Rows of the sample, at the most. All rows are taken if there are no more. Fewer are taken if
        components and their statistics are many, and nothing is tried on less than a quarter of the rows.
    max_rounds : int, default=5
        Relocations that a fit tries, at the most.

    References
    ----------
    A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, On smoothing and inference for topic models, UAI 2009,
    Sec. 2.4 (the collapsed step, CVB0).

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Relocate
    >>> model = DPMixtureVB(proposals=("birth", "merge", "delete", Relocate(n_steps=20)))
    """

    kind = "relocate"
    suits = ("mixture",)
    _parameter_constraints = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_steps=10, max_rows=10_000, max_rounds=5):
        self.n_steps = n_steps
        self.max_rows = max_rows
        self.max_rounds = max_rounds

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._attempts = Attempts(change=_MOVED)
        self._due, self._rounds = False, 0

    def uniform_rows(self, totals):
        """All rows, or as many as are allowed, if a relocation is due."""
        return affordable_rows(totals, self.max_rows) if self._due else 0

    def plan(self, context):
        """A trial in which all components give way to those after the collapsed steps."""
        totals, model = context.totals, context.model
        sizes = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        due, self._due = self._due, False
        if not due or len(sizes) < 2 or context.partial or not model.likelihood.leaves_out:
            return []
        if self._rounds >= self.max_rounds or self._attempts.failed(self.kind, sizes):
            return []
        self._rounds += 1
        self._attempts.begin(self.kind, totals.uids, totals.n)
        coef = relocated(model, totals, context.uniform, self.n_steps)
        if coef is None:
            return []
        # as long as none is lost, components keep their names, and proposals what they know of them
        kept = len(coef) == len(totals.uids)
        created = totals.uids.tolist() if kept else context.new_uids(len(coef))
        return [SplitTrial(self.kind, totals.uids.tolist(), created, coef)]

    def last_resort(self):
        """Nothing is left to try but this."""
        self._due = True

    def new_data(self):
        """New rows may have to go elsewhere."""
        self.reset()

    def prior_changed(self):
        """Under another prior a relocation may succeed."""
        self._attempts.clear()


def relocated(model, totals, uniform, n_steps):
    """Coefficients (J, P) of all components after collapsed steps; None if the sample promises no gain.

    Parameters
    ----------
    model : Model
    totals : StatBag
    uniform : UniformSample
        Rows of all, with the responsibilities of all components.
    n_steps : int
        Collapsed steps, at the most.
    """
    if not shows_everything(uniform, totals):
        return None
    if len(totals.s) > most_collapsed(model.likelihood, uniform.z):
        return None
    everything = Everything(model, totals, uniform)
    s, _ = everything.small.collapse(everything.s, everything.resp, n_steps)
    return everything.settled(s) if len(s) > 1 else None


def affordable_rows(totals, most):
    """Rows of all on which steps of all components do not cost much."""
    return int(min(most, _MOST_NUMBERS // totals.s.size, _MOST_SHARES // len(totals.s)))


def shows_everything(uniform, totals):
    """Whether rows drawn from all are enough to find parameters of all components."""
    return len(uniform.resp) > 0 and uniform.total >= _LEAST_PART * totals.n.sum()


class Everything:
    """A sample of all rows, on which other components are compared with the present ones.

    Attributes
    ----------
    small : RestrictedMixture
        All components, on the sample.
    s, resp : ndarray, shapes (K, P) and (m, K)
        Statistics of the sample and responsibilities, after a local step of the present components.
    """

    def __init__(self, model, totals, uniform):
        z, resp, weight = uniform
        sample = Sample(z, np.ones(len(resp)), weight)
        sample = sample.standing_for(totals.n.sum())
        self.small = RestrictedMixture(model, sample, totals.s[:0], adapt=False)
        self.s, _, self.resp = self.small.step(totals.s)
        self._present = None

    def _settled(self, s):
        """Statistics after ordinary steps, and the objective of the sample in nats."""
        s, entropy, _ = self.small.iterate(s, _SETTLING_STEPS, 1e-4 * self.small.sample.total)
        return s, self.small.evidence(s).sum() + entropy.sum() + self.small.allocation(s[:, -1])

    def settled(self, s):
        """Coefficients (J, P) after ordinary steps from ``s``; None if the present ones do as well."""
        if self._present is None:
            self._present = self._settled(self.s)[1]
        s, value = self._settled(s)
        return self.small.coefficients(s) if value > self._present + _WORTH_A_TRIAL else None
