"""Deletes: a component's rows shared out among several others."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.affinity import reassignment_loss
from ..engine.failures import Attempts
from ..engine.proposal import Context, Proposal
from ..engine.statistics import StatBag
from ..engine.trials import SplitTrial
from ..likelihood.seeding import summaries

# Estimated loss a row of the target beyond which a trial is not worth its cost.
_NEAR = 0.1


class Delete(Proposal):
    """Remove a component and let its neighbours absorb its rows.

    Parameters
    ----------
    max_targets : int, default=5
        The greatest number of components that are tried in a lap, the smallest first.
    n_absorbers : int, default=5
        How many neighbours, two or more, may take over the rows of a removed component. If these are all
        other components, rows may also move between them.
    n_steps : int, default=5
        Local steps on samples in which these neighbours adapt.

    References
    ----------
    Hughes (2016), Sec. 4.3.

    Examples
    --------
    >>> from sklearn_bnp import Delete, DPMixtureVB
    >>> model = DPMixtureVB(proposals=("birth", "merge", Delete(max_targets=10)))
    """

    kind = "delete"
    suits = ("mixture",)
    _parameter_constraints = {
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        "n_absorbers": [Interval(Integral, 2, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, max_targets: int = 5, n_absorbers: int = 5, n_steps: int = 5) -> None:
        self.max_targets = max_targets
        self.n_absorbers = n_absorbers
        self.n_steps = n_steps

    def reset(self) -> None:
        """Forget all failures."""
        self._validate_params()
        self._attempts = Attempts(change=0.1)

    def _targets(self, totals):
        sizes = totals.sizes
        open_ = [(n, uid) for uid, n in sizes.items() if not self._attempts.failed(uid, sizes)]
        return [uid for _, uid in sorted(open_)[: self.max_targets]]

    def wants(self, totals: StatBag) -> list[int]:
        """The smallest components."""
        return self._targets(totals) if len(totals.uids) > 1 else []

    def plan(self, context: Context) -> list[Any]:
        """Split trials in which target and absorbers give way to the adapted absorbers."""
        totals, model = context.totals, context.model
        if len(totals.uids) < 3:  # with one absorber it is a merge
            return []
        loss = reassignment_loss(model, totals)
        np.fill_diagonal(loss, np.inf)
        trials = []
        for uid in self._targets(totals):
            sample = context.samples.get(uid)
            if sample is None or sample.z.shape[0] == 0:
                continue
            k = int(totals.positions([uid])[0])
            absorbers = np.argsort(loss[k], kind="stable")[: min(self.n_absorbers, len(loss) - 1)]
            involved = [k, *absorbers.tolist()]
            self._attempts.begin(uid, totals.uids[involved], totals.n[involved])
            coef, gain = _Absorption(model, totals, k, absorbers, sample).adapt(self.n_steps)
            if gain < -_NEAR * totals.n[k]:
                continue
            if len(absorbers) == len(loss) - 1 and len(context.uniform.resp):
                everyone = _Absorption(model, totals, k, absorbers, sample, context.uniform)
                other = everyone.adapt(self.n_steps)
                coef, gain = other if other[1] > gain else (coef, gain)
            removed = [uid, *totals.uids[absorbers].tolist()]
            created = context.new_uids(len(absorbers))
            trials.append(SplitTrial(self.kind, removed, created, coef, gain))
        return trials

    def last_resort(self) -> None:
        """Nothing is left to try: other components have moved on since deletes failed."""
        self._attempts.clear()


class _Absorption:
    """Absorbers that take up the rows of target k, and how they adapt to it.

    All that rows of the target are, before and after, is known from the same sample of them: other rows would
    have other numbers of missing values, and the gain would depend on the units of the columns.

    With ``uniform`` rows given, all other components absorb, and rows of their own change hands as
    well, without which no component could move over: what the whole data have of each is then its
    statistics plus the change among these rows, scaled up, for a change is known more exactly from a
    sample than what changes. They start from shares of the target in proportion to their sizes: where
    several components overlap, all of them have to become wider.
    """

    def __init__(self, model, totals, k, absorbers, sample, uniform=None):
        self.model, self.totals, self.sample = model, totals, sample
        self.removed = np.array([k, *absorbers])
        self.own = totals.s[absorbers]
        self.scale = totals.n[k] / max(sample.total, 1e-12)
        shares = sample.row_mass[:, np.newaxis]
        target = self.scale * summaries(model.likelihood, sample.z, shares)
        self.replaced = np.concatenate([target, self.own])
        self.uniform, self.start = uniform, self.own
        if uniform is not None:
            z, resp, weight = uniform
            resp = resp[:, absorbers]
            self.mass = np.minimum(resp.sum(axis=1, dtype=float), 1.0)
            shares = resp if weight is None else resp * weight[:, np.newaxis].astype(resp.dtype)
            self.before = summaries(model.likelihood, z, shares)
            self.spread = -np.sum(
                shares * np.log(np.where(resp > 0, resp, 1.0)), axis=0, dtype=float
            )
            self.times = totals.n.sum() / uniform.total
            share = totals.n[absorbers] / totals.n[absorbers].sum()
            self.start = self.own + share[:, np.newaxis] * totals.s[k]

    def coefficients(self, s):
        coef = self.model.likelihood.coefficients(self.model.prior, s)
        n = s[:, -1].copy()  # NumPy 1.23 may give the logarithm of a column another last bit
        coef[:, -1] += np.log(n)
        return coef

    def step(self, s):
        """Statistics and entropies of the whole data after a restricted local step of samples."""
        local_step, coef = self.model.likelihood.local_step, self.coefficients(s)
        s, entropy = np.empty_like(s), np.empty(len(s))
        local_step(coef, self.sample.z, self.sample.mass, self.sample.weight, s, entropy)
        s, entropy = self.own + self.scale * s, self.scale * entropy
        if self.uniform is not None:
            after, spread = np.empty_like(s), np.empty(len(s))
            local_step(coef, self.uniform.z, self.mass, self.uniform.weight, after, spread)
            s += self.times * (after - self.before)
            entropy += self.times * (spread - self.spread)
        return s, entropy

    def gain(self, s, entropy):
        """Estimated change of the objective."""
        model, totals = self.model, self.totals
        k, others = self.removed[0], np.delete(totals.n, self.removed)
        return float(
            model.likelihood.evidence(model.prior, s).sum()
            - model.likelihood.evidence(model.prior, self.replaced).sum()
            + entropy.sum()
            - totals.entropy[k]
            + model.allocation.elbo(np.concatenate([others, s[:, -1]]))
            - model.allocation.elbo(totals.n)
        )

    def adapt(self, n_steps):
        """Coefficients of the absorbers and the estimated gain, -inf if the samples are too small."""
        s, least = self.start, 1e-6 * self.own[:, -1]
        with np.errstate(invalid="ignore", divide="ignore"):  # changes may exceed what there is
            for _ in range(n_steps):
                s, entropy = self.step(s)
                if not np.all(s[:, -1] > least):
                    return None, -np.inf
            gain, coef = self.gain(s, entropy), self.coefficients(s)
        return (coef, gain) if np.isfinite(gain) and np.isfinite(coef).all() else (None, -np.inf)
