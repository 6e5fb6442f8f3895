"""New components for a target, from a sample of its rows (Hughes 2016, Sec. 4.2.1, Step 1).

Seeds by k-means++ in the family's own geometry, a few Lloyd steps, variational steps restricted to
the target's rows, then agglomeration: too many seeds and a principled way back find structure more
reliably than the right number of seeds. Where rows are few, several ways of seeding are tried
and the best is kept; where they are many, one of them does.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..engine.agglomeration import agglomerate
from ..engine.unions import entropies_of_unions
from ..likelihood.seeding import lloyd, seeding_mass, summaries

_ROUNDS = 4
_STEPS, _STEPS_AFTER_CUT = 8, 4
# More steps, on small samples, for a split that falls short by less than this a row.
_STEPS_NEAR, _NEAR = 20, 0.01
# Seeds are sought among this many rows, at the most.
_SEED_ROWS = 2000
# Numbers in the sample's statistics (rows x P) up to which every way of seeding is tried.
_SMALL = 100_000
# With fewer other components than this each way is tried more than once: much depends on the first
# splits, and there is little to do.
_FEW, _FEW_RESTARTS = 4, 2
# Numbers in the sample's statistics up to which that is twice as often again.
_TINY = 5_000


class Creation(NamedTuple):
    """Proposed successors of a target.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the successors on the sample.
    coef : ndarray, shape (J, P)
        Coefficients of the restricted local step.
    gain : float
        Estimated change of the objective, on the sample alone, in nats.
    """

    s: np.ndarray
    coef: np.ndarray
    gain: float


class _Restricted:
    """A small mixture on one target's sample, the other components standing by."""

    def __init__(self, model, sample, others, adapt):
        self.model, self.sample, self.others = model, sample, others
        self.prior = model.prior
        self.adapts = adapt and model.likelihood.adapts_prior

    def evidence(self, s):
        return self.model.likelihood.evidence(self.prior, s)

    def allocation(self, n):
        return float(self.model.allocation.elbo(np.concatenate([self.others[:, -1], n])))

    def adapt(self, s, n_steps):
        """Empirical Bayes on the other components and these."""
        if self.adapts:
            everything = np.concatenate([self.others, s])
            self.prior = self.model.likelihood.update_prior(self.prior, everything, n_steps)

    def coefficients(self, s):
        coef = self.model.likelihood.coefficients(self.prior, s)
        coef[:, -1] += np.log(np.maximum(s[:, -1], 1e-12) / s[:, -1].sum())  # (4.11)
        return coef

    def step(self, s):
        """Restricted local and summary step: statistics, entropies, shares."""
        out, entropy = np.empty_like(s), np.empty(len(s))
        z, mass, weight = self.sample
        resp = self.model.likelihood.local_step(self.coefficients(s), z, mass, weight, out, entropy)
        return out, entropy, resp

    def iterate(self, s, n_steps, tol):
        """Up to ``n_steps`` steps; components under one row are dropped on the way."""
        last = -np.inf
        for i in range(n_steps):
            moved, entropy, _ = self.step(s)
            keep = moved[:, -1] >= self.sample.one_row
            if not keep.all() and keep.any():
                s, last = moved[keep], -np.inf
                continue
            s = moved
            if i % 3 == 2:
                self.adapt(s, 2)
            objective = self.evidence(s).sum() + entropy.sum()
            if objective - last < tol:
                break
            last = objective
        self.adapt(s, 5)
        return self.step(s)

    def union_entropy(self, resp):
        """Function from lists of members to the entropies of their unions, on the sample."""
        shares = np.ascontiguousarray(self.sample.mass[:, np.newaxis] * resp)
        return partial(entropies_of_unions, shares, self.sample.weight)

    def refine(self, s):
        """Variational steps and agglomeration in turn; statistics and entropies, or None."""
        tol = 1e-4 * self.sample.total
        s, entropy, resp = self.iterate(s, _STEPS, tol)
        for _ in range(_ROUNDS):
            tree = agglomerate(s, entropy, self.union_entropy(resp), self.evidence, self.allocation)
            if len(tree.cut) == len(s):
                break
            s = np.array([s[list(group)].sum(axis=0) for group in tree.cut])
            if len(s) > 1:
                s, entropy, resp = self.iterate(s, _STEPS_AFTER_CUT, tol)
        return (s, entropy) if len(s) > 1 else (None, None)

    def gain(self, s, entropy, before):
        """Objective with successors ``s`` minus the one with their sum, under the prior ``before``."""
        likelihood, (_, mass, weight) = self.model.likelihood, self.sample
        whole = s.sum(axis=0, keepdims=True)
        own = mass * np.log(np.where(mass > 0, mass, 1.0))
        gain = (
            self.evidence(s).sum() - likelihood.evidence(before, whole)[0]
            + entropy.sum() + (own.sum() if weight is None else own @ weight)
            + self.allocation(s[:, -1]) - self.allocation(whole[:, -1])
        )  # fmt: skip
        if self.prior is not before and len(self.others):
            gain += (
                self.evidence(self.others).sum() - likelihood.evidence(before, self.others).sum()
            )
        return float(gain)


def tries_all_ways(sample, n_statistics):
    """Whether one attempt at a sample of this size tries every way of seeding."""
    return sample.z.shape[0] * n_statistics <= _SMALL


def create(model, sample, target, others, n_seeds, attempt, rng, *, adapt=False):
    """Successors of a target component.

    Parameters
    ----------
    model : Model
    sample : Sample
    target : ndarray, shape (P,)
        Statistics of the target on the whole data.
    others : ndarray, shape (K - 1, P)
        Statistics of the components that stay.
    n_seeds : int
        Seeds to start from; 2 are tried as well.
    attempt : int
        How often the target has been tried. Where rows are few, the first attempt tries every way of
        seeding; other attempts try one of them, each the next.
    rng : numpy.random.RandomState
    adapt : bool
        Let the prior adapt to the successors: worth its cost where components are few.

    Returns
    -------
    Creation or None
        None if no split into two or more was found.
    """
    ways = [(n_seeds, False), (n_seeds, True), (2, False), (2, True)]
    every_way, few = tries_all_ways(sample, len(target)), len(others) < _FEW
    if model.likelihood.n_features == 1:
        ways = ways[::2]
    if not (every_way and (attempt == 0 or few)):
        ways = [ways[attempt % len(ways)]]
    elif few:
        ways *= _FEW_RESTARTS * (2 if sample.z.shape[0] * len(target) <= _TINY else 1)
    best = None
    for n, whiten in ways:
        small = _Restricted(model, sample, others, adapt)
        s = _seeded(model, sample, target, n, whiten, rng)
        if len(s) < 2:
            continue
        s, entropy = small.refine(s)
        if s is None:
            continue
        gain = small.gain(s, entropy, model.prior)
        if -_NEAR * sample.total < gain <= 0 and every_way:  # a few more steps may do
            s, entropy, _ = small.iterate(s, _STEPS_NEAR, 0.0)
            gain = small.gain(s, entropy, model.prior) if len(s) > 1 else gain
        if len(s) > 1 and (best is None or gain > best.gain):
            best = Creation(s, small.coefficients(s), gain)
    return best


def _seeded(model, sample, target, n_seeds, whiten, rng):
    """Statistics of seeds with at least one row."""
    z, mass, weight = sample
    rows, seeding = slice(None), seeding_mass(mass, weight)
    mass = mass if weight is None else mass * weight
    if z.shape[0] > _SEED_ROWS:
        rows = rng.choice(z.shape[0], _SEED_ROWS, replace=False)
    points = model.likelihood.seeding_points(model.prior, target, z[rows], whiten=whiten)
    resp = lloyd(points, seeding[rows], n_seeds, rng)
    s = summaries(model.likelihood, z[rows], resp * mass[rows, np.newaxis])
    return s[s[:, -1] >= sample.one_row]
