"""New components for a target, from a sample of its rows (Hughes 2016, Sec. 4.2.1, Step 1).

Seeds by k-means++ in the family's own geometry, a few Lloyd steps, variational steps restricted to
the target's rows, then agglomeration: too many seeds and a principled way back find structure more
reliably than the right number of seeds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._entropies import union_entropies
from .._kernels._responsibilities import Quadratic, local_step, summarise
from .agglomeration import agglomerate

_LLOYD_STEPS = 3
_ROUNDS = 4


class Creation(NamedTuple):
    """Proposed successors of a target.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Their statistics on the sample.
    coef : ndarray, shape (J, P)
        Coefficients of the restricted local step.
    gain : float
        Estimated change of the objective, on the sample alone, in nats.
    """

    s: np.ndarray
    coef: np.ndarray
    gain: float


def kmeans_plusplus(points, mass, n_seeds, rng):
    """Indices of seeds drawn with probability ``mass * min squared distance`` (Alg. 2.2)."""
    seeds = [int(np.searchsorted(np.cumsum(mass), rng.random_sample() * mass.sum()))]
    least = np.full(len(points), np.inf)
    while True:
        offset = points - points[seeds[-1]]
        np.minimum(least, np.einsum("nd,nd->n", offset, offset), out=least)
        reach = np.cumsum(mass * least)
        if len(seeds) == n_seeds or not reach[-1] > 0:
            return seeds
        seeds.append(int(np.searchsorted(reach, rng.random_sample() * reach[-1], side="right")))


def lloyd(points, mass, n_seeds, rng, *, n_steps=_LLOYD_STEPS, centers=None):
    """One-hot shares (n, J) of points after k-means++ (unless given ``centers``) and some Lloyd steps."""
    if centers is None:
        centers = points[kmeans_plusplus(points, mass, n_seeds, rng)]
    resp = np.empty((len(points), len(centers)), dtype=points.dtype)
    s = np.empty((len(centers), points.shape[1] + 2))
    for _ in range(n_steps + 1):
        coef = np.column_stack(
            [np.full(len(centers), -0.5), centers, -0.5 * np.einsum("kd,kd->k", centers, centers)]
        )
        local_step(
            points, np.ascontiguousarray(coef, dtype=points.dtype), Quadratic.SPHERICAL, True, mass, None,
            resp, s, None, None, 1, 1,
        )  # fmt: skip
        filled = s[:, -1] > 0
        centers = np.where(
            filled[:, None], s[:, 1:-1] / np.where(filled, s[:, -1], 1.0)[:, None], centers
        )
    return resp


class _Restricted:
    """A small mixture on one target's sample."""

    def __init__(self, model, sample, other_counts):
        self.model, self.sample = model, sample
        self.likelihood = model.likelihood
        self.others = other_counts

    def evidence(self, s):
        return self.likelihood.evidence(self.model.prior, s)

    def allocation(self, n):
        return float(self.model.allocation.elbo(np.concatenate([self.others, n])))

    def coefficients(self, s):
        coef = self.likelihood.coefficients(self.model.prior, s)
        coef[:, -1] += np.log(np.maximum(s[:, -1], 1e-12) / s[:, -1].sum())  # (4.11)
        return coef

    def step(self, s):
        """Restricted local and summary step from statistics to statistics; also shares, entropies."""
        coef = self.coefficients(s)
        s, entropy = np.empty_like(s), np.empty(len(s))
        resp = self.likelihood.local_step(
            coef, self.sample.z, self.sample.mass, self.sample.weight, s, entropy
        )
        return s, entropy, resp

    def iterate(self, s, n_steps, tol):
        """Up to ``n_steps`` steps; components under one row are dropped on the way."""
        last, moved = -np.inf, s
        for _ in range(n_steps):
            moved, entropy, resp = self.step(s)
            keep = moved[:, -1] >= 1.0
            if not keep.all() and keep.any():
                s = moved[keep]
                continue
            s = moved
            objective = self.evidence(s).sum() + entropy.sum()
            if objective - last < tol:
                break
            last = objective
        moved, entropy, resp = self.step(s)
        return moved, entropy, resp

    def union_entropy(self, resp):
        """Function from lists of members to the entropies of their unions, on the sample."""
        shares = np.ascontiguousarray(self.sample.mass[:, np.newaxis] * resp)
        weight = self.sample.weight

        def of(unions):
            indptr = np.cumsum([0] + [len(u) for u in unions], dtype=np.intp)
            members = np.array([k for u in unions for k in u], dtype=np.intp)
            out = np.empty(len(unions))
            union_entropies(shares, weight, indptr, members, out, 1)
            return out

        return of


def create(model, sample, target, other_counts, n_seeds, rng, *, n_steps=20):
    """Successors of a target component.

    Parameters
    ----------
    model : Model
    sample : Sample
    target : ndarray, shape (P,)
        Statistics of the target on the whole data.
    other_counts : ndarray
        Counts of the components that stay.
    n_seeds : int
    rng : numpy.random.RandomState

    Returns
    -------
    Creation or None
        None if no split into two or more looks better than none.
    """
    small = _Restricted(model, sample, other_counts)
    likelihood = model.likelihood
    mass = sample.mass if sample.weight is None else sample.mass * sample.weight
    points = likelihood.seeding_points(model.prior, target, sample.z)
    resp = lloyd(points, mass, n_seeds, rng)
    s = summaries(likelihood, sample.z, resp * mass[:, np.newaxis])
    s = s[s[:, -1] >= 1.0]
    if len(s) < 2:
        return None
    tol = 1e-4 * mass.sum()
    s, entropy, resp = small.iterate(s, n_steps, tol)
    for _ in range(_ROUNDS):
        tree = agglomerate(s, entropy, small.union_entropy(resp), small.evidence, small.allocation)
        if len(tree.cut) == len(s):
            break
        if len(tree.cut) < 2:
            return None
        s = np.array([s[list(group)].sum(axis=0) for group in tree.cut])
        s, entropy, resp = small.iterate(s, 6, tol)
    if len(s) < 2:
        return None
    whole = s.sum(axis=0, keepdims=True)
    w = sample.mass
    log_mass = -np.sum(mass * np.log(np.where(w > 0, w, 1.0)))
    gain = (
        small.evidence(s).sum() - small.evidence(whole)[0]
        + entropy.sum() - log_mass
        + small.allocation(s[:, -1]) - small.allocation(whole[:, -1])
    )  # fmt: skip
    return Creation(s, small.coefficients(s), float(gain))


def summaries(likelihood, z, shares):
    """Statistics (J, P) of rows under given shares (n, J)."""
    s = np.empty((shares.shape[1], likelihood.n_statistics))
    summarise(
        z,
        np.ascontiguousarray(shares, dtype=z.dtype),
        likelihood.quadratic,
        likelihood.linear,
        s,
        True,
    )
    return s
