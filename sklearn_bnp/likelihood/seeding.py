"""First statistics of components, from which the first local step finds its parameters."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from ..inputs.rows import at_hand
from ..mixture.creation import lloyd, seeding_mass, summaries

# Rows that seeds are chosen among, and a component.
_SEED_ROWS = 10_000
_SEED_ROWS_A_COMPONENT = 100
# A row further out, in units of the data, leaves rounding errors in sums of squares.
_FARTHEST = 1e7


def seeded_statistics(likelihood, source, n_components, rng, *, means=None, spread=True):
    """Statistics (K, P) of a sample of rows, each given to the nearest of K seeds.

    There are fewer where fewer than K rows differ.

    Parameters
    ----------
    means : ndarray, shape (K, D), or None
        Seeds in the data's units; otherwise rows are chosen.
    spread : bool
        Choose rows by Bregman k-means++ (Hughes 2016, Alg. 2.2) and take a few steps of Bregman
        k-means (Alg. 2.1); else choose them uniformly.
    """
    least = _SEED_ROWS_A_COMPONENT * n_components
    x, weight = source.sample(max(_SEED_ROWS, least), rng, least=least)
    z = likelihood.prepare(at_hand(x))
    del x  # no more is held at a time than has to be
    mass = np.ones(z.shape[0])
    seeding = seeding_mass(mass, weight)
    if weight is not None:  # as much as all rows have, if some of them may stand for so many
        mass = weight * max(1.0, min(source.total_weight, len(mass)) / weight.sum())
    if n_components == 1:
        return summaries(likelihood, z, mass[:, np.newaxis])
    everything = summaries(likelihood, z, mass[:, np.newaxis])[0]
    if means is not None:
        return _about_means(likelihood, z, mass, everything, np.asarray(means, dtype=float))
    points = likelihood.seeding_points(likelihood.prior, everything, z, whiten=False)
    seeds = None
    if not spread:
        p = mass / mass.sum()
        rows = rng.choice(z.shape[0], min(n_components, np.count_nonzero(p)), replace=False, p=p)
        seeds = points[rows]
    resp = lloyd(
        points, seeding, n_components, rng, n_steps=3 if seeds is None else 0, centers=seeds
    )
    resp *= mass[:, np.newaxis].astype(resp.dtype)
    return summaries(likelihood, z, resp)


def _about_means(likelihood, z, mass, everything, means):
    """Statistics (K, P) of rows by the nearest of K means; of the mean itself where no row is near.

    A mean that is too far out to be a row starts an empty component.

    ``everything`` are the statistics of all rows.
    """
    seeds = likelihood.prepare_means(means)
    if issparse(z):
        resp = _nearest(likelihood, z, seeds)
    else:
        points = likelihood.imputed(likelihood.prior, everything, z)
        resp = lloyd(points, mass, len(means), None, n_steps=0, centers=seeds.astype(z.dtype))
    s = summaries(likelihood, z, resp * mass[:, np.newaxis].astype(resp.dtype))
    lonely = np.flatnonzero((s[:, -1] == 0) & (np.abs(seeds).max(axis=1) <= _FARTHEST))
    if len(lonely):
        s[lonely] = summaries(likelihood, seeds[lonely], np.eye(len(lonely)))
    return s


def _nearest(likelihood, z, centers):
    """One-hot shares (n, K) of sparse rows, for which ``s(x) = [x, 1]``, by their nearest centers."""
    half_square = 0.5 * np.einsum("kd,kd->k", centers, centers)
    coef = np.column_stack([centers, -half_square])
    return likelihood.local_step(coef, z, None, None, None, None, n_nonzero=1)
