"""Deletes: a component's rows shared out among several others."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from .affinity import reassignment_loss
from .base import Failures, Proposal, SplitTrial


class Delete(Proposal):
    """Remove a component and let its neighbours absorb its rows.

    Parameters
    ----------
    max_targets : int, default=5
        Targets a lap, the smallest components first.
    n_absorbers : int, default=5
        Neighbours that absorb a target.
    n_steps : int, default=5
        Local steps on the target's sample in which the absorbers adapt.

    References
    ----------
    Hughes (2016), Sec. 4.3.

    Examples
    --------
    >>> from sklearn_bnp import Delete, DPMixtureVB
    >>> model = DPMixtureVB(proposals=("birth", "merge", Delete(max_targets=10)))
    """

    kind = "delete"
    _parameter_constraints = {
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        "n_absorbers": [Interval(Integral, 2, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, max_targets=5, n_absorbers=5, n_steps=5):
        self.max_targets = max_targets
        self.n_absorbers = n_absorbers
        self.n_steps = n_steps

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.1)

    def _targets(self, totals):
        open_ = [
            (n, uid)
            for uid, n in zip(totals.uids.tolist(), totals.n.tolist(), strict=True)
            if not self._failures.blocked(uid, n)
        ]
        return [uid for _, uid in sorted(open_)[: self.max_targets]]

    def wants(self, totals):
        """The smallest components."""
        return self._targets(totals) if len(totals.uids) > 1 else []

    def plan(self, context):
        """Split trials in which target and absorbers give way to the adapted absorbers."""
        totals, model = context.totals, context.model
        if len(totals.uids) < 3:  # with one absorber it is a merge
            return []
        loss = reassignment_loss(model, totals)
        np.fill_diagonal(loss, np.inf)
        trials = []
        for uid in self._targets(totals):
            sample = context.samples.get(uid)
            if sample is None or len(sample.z) == 0:
                continue
            k = int(totals.positions([uid])[0])
            absorbers = np.argsort(loss[k], kind="stable")[: min(self.n_absorbers, len(loss) - 1)]
            coef, gain = self._absorb(model, totals, k, absorbers, sample)
            if gain < -0.1 * totals.n[k]:
                self._failures.note(uid, totals.n[k])
                continue
            removed = [uid, *totals.uids[absorbers].tolist()]
            trials.append(
                SplitTrial(
                    self.kind, removed, context.new_uids(len(absorbers)), coef, model.likelihood
                )
            )
        return trials

    def _absorb(self, model, totals, k, absorbers, sample):
        """Coefficients of the absorbers after taking up the target's rows, and the estimated gain."""
        likelihood, prior = model.likelihood, model.prior
        own = totals.s[absorbers]
        scale = totals.n[k] / max(sample.total, 1e-12)
        s, entropy = np.zeros_like(own), np.zeros(len(own))
        for _ in range(self.n_steps):
            coef = likelihood.coefficients(prior, own + scale * s)
            coef[:, -1] += np.log(own[:, -1] + scale * s[:, -1])
            likelihood.local_step(coef, sample.z, sample.mass, sample.weight, s, entropy)
        grown = own + scale * s
        others = np.delete(totals.n, [k, *absorbers])
        gain = (
            likelihood.evidence(prior, grown).sum()
            - likelihood.evidence(prior, totals.s[[k, *absorbers]]).sum()
            + scale * entropy.sum()
            - totals.entropy[k]
            + model.allocation.elbo(np.concatenate([others, grown[:, -1]]))
            - model.allocation.elbo(totals.n)
        )
        coef = likelihood.coefficients(prior, grown)
        coef[:, -1] += np.log(grown[:, -1])
        return coef, float(gain)

    def judged(self, trial, accepted, mass):
        """Remember failures."""
        if not accepted:
            self._failures.note(trial.target, mass)
