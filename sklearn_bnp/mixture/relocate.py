"""Relocations: all rows go where they fit best without themselves, all at once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.last_resort import LastResort
from ..engine.proposal import Context
from ..engine.statistics import StatBag
from ..engine.trials import SplitTrial
from ..splits.restricted_mixture import most_collapsed
from .comparison import WORTH_A_TRIAL, Comparison, affordable_rows, shows_everything


class Relocate(LastResort):
    """Let all rows change components at once, each compared with components that do not hold it.

    Where a component has few rows for its parameters, it fits its own rows so closely that ordinary steps
    never release them. When nothing else is left to try, a few *collapsed* steps are therefore made on a
    sample of all rows: each row is compared with its component as it would be without this row. The result
    replaces all components if it raises the objective of the whole data.

    Parameters
    ----------
    n_steps : int, default=10
        The greatest number of collapsed steps.
    max_rows : int, default=10_000
        The greatest number of rows of the sample. Fewer are taken if components and their statistics are
        many. Nothing is tried on less than a quarter of all rows.
    max_rounds : int, default=5
        How many times a fit may try this.

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
        **LastResort._parameter_constraints,
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }
    _moved = 0.02

    def __init__(
        self, n_steps: int = 10, max_rows: int | None = 10_000, max_rounds: int = 5
    ) -> None:
        super().__init__(max_rows, max_rounds)
        self.n_steps = n_steps

    def uniform_rows(self, totals: StatBag) -> int:
        """All rows, or as many as are allowed, if a relocation is due."""
        return affordable_rows(totals, self.max_rows) if self._due else 0

    def plan(self, context: Context) -> list[Any]:
        """A trial in which all components give way to those after the collapsed steps."""
        totals, model = context.totals, context.model
        if not self._begins(context) or len(totals.uids) < 2 or not model.likelihood.leaves_out:
            return []
        if self._attempts.failed(self.kind, totals.sizes):
            return []
        self._rounds += 1
        self._attempts.begin(self.kind, totals.uids, totals.n)
        coef, gain = relocated(model, totals, context.uniform, self.n_steps, context.n_nonzero)
        if coef is None:
            return []
        # as long as none is lost, components keep their names, and proposals what they know of them
        kept = len(coef) == len(totals.uids)
        created = totals.uids.tolist() if kept else context.new_uids(len(coef))
        uids = totals.uids.tolist()
        return [SplitTrial(self.kind, uids, created, coef, gain, n_targets=len(uids))]


def relocated(model, totals, uniform, n_steps, n_nonzero=None):
    """Coefficients (J, P) of all components after collapsed steps, and the gain that the sample promises.

    There are none, but None, if it promises no gain.

    Parameters
    ----------
    model : Model
    totals : StatBag
    uniform : UniformSample
        Rows of all, with the responsibilities of all components.
    n_steps : int
        Collapsed steps, at the most.
    n_nonzero : int or None, default=None
        The most components that a row may be shared among; no limit if None.
    """
    if not shows_everything(uniform, totals):
        return None, None
    if len(totals.s) > most_collapsed(model.likelihood, uniform.z):
        return None, None
    everything = Comparison.of_all(model, totals, uniform, n_nonzero=n_nonzero)
    s, _ = everything.small.collapse(everything.s, everything.resp, n_steps)
    _, coef, gain = everything.settled(s) if len(s) > 1 else (s, None, -np.inf)
    return (coef, gain) if gain > WORTH_A_TRIAL else (None, None)
