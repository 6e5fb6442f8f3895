"""A small mixture on a sample of rows, for proposals that look for components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._responsibilities import share_out
from ..engine.agglomeration import agglomerate
from ..engine.unions import UnionsOfRows
from ..likelihood.seeding import completed_as_one

# Rounds of variational steps and agglomeration, and the steps of the first round and of later ones.
_ROUNDS, _STEPS, _STEPS_AFTER_CUT = 4, 8, 4
# So many components are many.
_MANY = 20
# Collapsed steps: after how many of them the prior adapts, and those by which it adapts to seeds.
_COLLAPSED_ADAPT, _COLLAPSED_ADAPT_FIRST = 3, 10
# Components with fewer rows are dropped. One row may be a component, and leave a little of itself to others.
LEAST_ROWS = 0.9
# Summaries walk over shares that are not zero if these are a smaller part of all.
_SPARSE = 0.3
# Least mass of which logarithms are taken.
_LEAST_LEFT = 1e-10

# Responsibilities that a collapsed step shares out at a time, and the fewest rows.
_BLOCK_NUMBERS, _LEAST_BLOCK = 2**17, 256
# Special functions that a collapsed step may take: about 0.01 s.
_MOST_WORK = 200_000


class Pace(NamedTuple):
    """How long collapsed steps go on, and how many components unions may take away at a time.

    With many components, the first tree is made of components that are not yet what they will be.

    Attributes
    ----------
    tol : float
        Share of rows that change hands below which collapsed steps end.
    n_after_cut : int
        Most collapsed steps after each agglomeration.
    kept : float
        Share of the components that are left after a round of collapsed steps and unions, if they are many.
    n_rounds : int
        Rounds of variational steps and agglomeration.
    """

    tol: float
    n_after_cut: int
    kept: float
    n_rounds: int


USUAL = Pace(tol=2e-3, n_after_cut=5, kept=0.5, n_rounds=6)
# Where each row is like several of very many components, good ones need many steps to stand out.
SLOW = Pace(tol=2e-4, n_after_cut=20, kept=0.75, n_rounds=10)


def most_collapsed(likelihood, z):
    """Number of components up to which collapsed steps of rows ``z`` are possible, and not too slow."""
    return _MOST_WORK / max(likelihood.leaving_out_work(z), 1e-9) if likelihood.leaves_out else 0


class RestrictedMixture:
    """A mixture of some components on a sample of their rows; other components stay as they are.

    Parameters
    ----------
    model : Model
        The mixture of all components.
    sample : Sample
        Rows, with the responsibilities that are shared out, and weights.
    others : ndarray, shape (K', P)
        Statistics of the components that stay.
    adapt : bool
        Whether the prior adapts to all components.
    n_nonzero : int or None, default=None
        The most components that a row may be shared among in ordinary steps; no limit if None, nor if it is
        2 or more: searches are then better without it.

    Attributes
    ----------
    prior : object
        The prior, as adapted so far.
    margin : float
        Objective of the best grouping into several components that `refine` has met, less that of a single
        group, in nats; -inf before.
    """

    def __init__(self, model, sample, others, adapt, n_nonzero=None):
        self.model, self.sample, self.others = model, sample, others
        # with 2, searches that kept to it found half as many components again in crowds, and lower bounds
        self.n_nonzero = 1 if n_nonzero == 1 else None
        self.prior = model.prior
        self.margin = -np.inf
        self.adapts = adapt and model.likelihood.adapts_prior

    def on(self, sample, free):
        """A mixture beside the same components, on another ``sample``; one that is ``free`` has no limit."""
        limit = None if free else self.n_nonzero
        return RestrictedMixture(self.model, sample, self.others, self.adapts, limit)

    def evidence(self, s):
        """Log evidence of each component (J,), in nats."""
        return self.model.likelihood.evidence(self.prior, s)

    def allocation(self, n):
        """Allocation terms (...) of the objective, for new components with counts (..., J) beside the others.

        Counts are NaN where there is no component.
        """
        n_others = len(self.others)
        every = np.empty((*n.shape[:-1], n_others + n.shape[-1]))
        every[..., :n_others], every[..., n_others:] = self.others[:, -1], n
        return self.model.allocation.elbo(every)

    def objective(self, s, entropy):
        """Objective of components and others on the sample, in nats, but for the evidence of the others."""
        return float(self.evidence(s).sum() + entropy.sum() + self.allocation(s[:, -1]))

    def adapt(self, s, n_steps):
        """Adapt the prior to the other components and the new ones (empirical Bayes)."""
        if self.adapts:
            everything = np.concatenate([self.others, s])
            self.prior = self.model.likelihood.update_prior(self.prior, everything, n_steps)

    def coefficients(self, s):
        """Coefficients (J, P) of the restricted local step."""
        coef = self.model.likelihood.coefficients(self.prior, s)
        coef[:, -1] += np.log(np.maximum(s[:, -1], 1e-12) / s[:, -1].sum())  # (4.11)
        return coef

    def step(self, s):
        """Local and summary step: statistics (J, P), entropies (J,) and responsibilities (n, J)."""
        out, entropy = np.empty_like(s), np.empty(len(s))
        z, mass, weight = self.sample
        resp = self.model.likelihood.local_step(
            self.coefficients(s), z, mass, weight, out, entropy, n_nonzero=self.n_nonzero
        )
        return out, entropy, resp

    def iterate(self, s, n_steps, tol):
        """Make up to ``n_steps`` steps, dropping components of less than one row; returns as `step`."""
        last = -np.inf
        for i in range(n_steps):
            resp = None  # let go of a large table before there is another one
            moved, entropy, resp = self.step(s)
            keep = self.sample.rows_owned(moved[:, -1], resp) >= LEAST_ROWS
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
        resp = None
        return self.step(s)

    def collapse(self, s, resp, n_steps, tol=USUAL.tol, *, overwrites=False):
        """Make up to ``n_steps`` collapsed steps; statistics (J, P) and responsibilities (n, J).

        Each row is shared out by its predictive densities under components that do not hold it (CVB0).
        Rows leave components that fit them only because they are made of them, which ordinary steps
        do not achieve where rows are few. Components of less than one row are dropped.

        ``resp`` (n, J) is left as it is, unless ``overwrites`` is true: such tables may be large, and its
        memory is then used.
        """
        own = self.sample.row_mass
        resp = np.ascontiguousarray(resp, dtype=float)
        resp = resp if overwrites else resp.copy()
        for i in range(n_steps):
            if i % _COLLAPSED_ADAPT == 0:
                self.adapt(s, 3)
            moved = self._share_out_anew(s, resp, own)
            s, resp = self._summary(s, resp, own)
            if len(s) < 2 or moved < tol * own.sum():
                break
        return s, resp

    def _share_out_anew(self, s, resp, own):
        """Share rows out by their densities under components without them, in ``resp``; rows that have moved.

        Blocks of rows are shared out one after the other, since densities take several tables.
        """
        likelihood, z, moved = self.model.likelihood, self.sample.z, 0.0
        size = max(_LEAST_BLOCK, _BLOCK_NUMBERS // len(s))
        for lo in range(0, len(resp), size):
            rows = slice(lo, lo + size)
            shares = resp[rows] * own[rows, np.newaxis]
            table = likelihood.log_predictive_without(self.prior, s, z[rows], shares)
            np.subtract(s[:, -1], shares, out=shares)
            table += np.log(np.maximum(shares, _LEAST_LEFT, out=shares), out=shares)
            share_out(table, None, None, shares, None, None, resp.shape[1], 1)
            np.abs(np.subtract(shares, resp[rows], out=table), out=table)
            moved += 0.5 * (own[rows] @ table.sum(axis=1))
            resp[rows] = shares
        return moved

    def _summary(self, s, resp, own):
        """Statistics and responsibilities, without components of less than one row.

        ``s`` are statistics before, under which missing entries are imputed if the family needs that.
        """
        likelihood, z = self.model.likelihood, self.sample.z
        coef = likelihood.coefficients(self.prior, s) if likelihood.imputes else None
        out = np.empty_like(s)
        # tables may be large: rows that count once need none beside the responsibilities
        shares = resp if np.all(own == 1.0) else resp * own[:, np.newaxis]
        sparse = np.count_nonzero(shares) < _SPARSE * shares.size
        likelihood.summarise(z, shares, out, coef=coef, sparse=sparse)
        keep = self.sample.rows_owned(out[:, -1], resp) >= LEAST_ROWS
        if keep.all():
            return out, resp
        del shares
        return out[keep], np.ascontiguousarray(resp[:, keep])

    def union_entropy(self, resp):
        """Entropies, on the sample, of unions given by their members."""
        mass = self.sample.mass
        shares = resp if np.all(mass == 1.0) else mass[:, np.newaxis] * resp
        return UnionsOfRows(np.ascontiguousarray(shares), self.sample.weight)

    def refine(self, s, n_collapsed=0, pace=USUAL):
        """Alternate steps and agglomeration; statistics and entropies, or None twice.

        With ``n_collapsed``, up to so many collapsed steps come before the first variational ones, and a few
        after each agglomeration, at a `Pace`.
        """
        tol, n_steps = 1e-4 * self.sample.total, _STEPS
        if n_collapsed:
            self.adapt(s, _COLLAPSED_ADAPT_FIRST)
            s, _, resp = self.step(s)
            s = self.collapse(s, resp, n_collapsed, pace.tol, overwrites=True)[0]
            resp = None
            n_steps = _STEPS_AFTER_CUT
        if len(s) < 2:
            return None, None
        s, entropy, resp = self.iterate(s, n_steps, tol)
        for _ in range(pace.n_rounds if n_collapsed else _ROUNDS):
            unions = self.union_entropy(resp).growing()
            tree = agglomerate(s, entropy, unions, self.evidence, self.allocation)
            self.margin = max(self.margin, tree.margin)
            if len(tree.cut) == len(s):
                break
            least = int(pace.kept * len(s)) if n_collapsed and len(s) > _MANY else 1
            groups = [list(group) for group in tree.groups(least)]
            s = np.array([s[group].sum(axis=0) for group in groups])
            if n_collapsed and len(s) > 1:
                resp = np.stack([resp[:, group].sum(axis=1) for group in groups], axis=1)
                s = self.collapse(s, resp, pace.n_after_cut, pace.tol, overwrites=True)[0]
            resp = unions = None
            if len(s) < 2:
                return None, None
            s, entropy, resp = self.iterate(s, _STEPS_AFTER_CUT, tol)
        return (s, entropy) if len(s) > 1 else (None, None)

    def gain(self, s, entropy, before):
        """Objective with components ``s`` less that with one of all rows under the prior ``before``."""
        likelihood, (z, mass, weight) = self.model.likelihood, self.sample
        if likelihood.imputes:
            whole = completed_as_one(likelihood, before, z, self.sample.row_mass)
        else:
            whole = s.sum(axis=0, keepdims=True)
        own = mass * np.log(np.where(mass > 0, mass, 1.0))
        gain = self.evidence(s).sum() - likelihood.evidence(before, whole)[0]
        gain += entropy.sum()
        gain += own.sum() if weight is None else own @ weight
        gain += self.allocation(s[:, -1])
        gain -= self.allocation(whole[:, -1])
        if self.prior is not before and len(self.others):
            gain += (
                self.evidence(self.others).sum() - likelihood.evidence(before, self.others).sum()
            )
        return float(gain)
