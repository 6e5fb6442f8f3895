"""Initial statistics of components, from which the first global step finds their parameters."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from .._kernels._responsibilities import Quadratic, local_step
from ..inputs.rows import at_hand

# Seeds are chosen among so many rows, or so many for each component if that is more.
_SEED_ROWS = 10_000
_SEED_ROWS_A_COMPONENT = 100
# A row further out, in standard deviations of the data, leaves rounding errors in sums of squares.
_FARTHEST = 1e7
# Numbers of vectors that are made of rows at a time, where prepared rows are no vectors.
_VECTOR_NUMBERS = 2**22
# Rows whose distances from a seed are found at a time.
_BLOCK_ROWS = 256
# Steps of k-means after k-means++: laps of the fit do the rest.
LLOYD_STEPS = 3
# Steps in which one component and the missing entries of its rows suit each other.
_COMPLETIONS = 10


def seeded_statistics(likelihood, source, n_components, rng, *, means=None, n_steps=LLOYD_STEPS):
    """Statistics (K, P) of a sample of rows, each of which is given to the nearest of K seeds.

    There are fewer components where fewer than K rows differ.

    Parameters
    ----------
    likelihood : Likelihood
        Family of the components.
    source : ArraySource or GroupSource
        The data, of which rows are drawn.
    n_components : int
        Number of components K.
    rng : RandomState
        Source of random numbers.
    means : ndarray, shape (K, D), or None
        Seeds in the data's units; if None, rows are chosen.
    n_steps : int or None
        Rows are chosen by Bregman k-means++ (Hughes 2016, Alg. 2.2), followed by at most so many steps of
        Bregman k-means (Alg. 2.1), which end when no row changes its seed. None chooses rows uniformly.
    """
    least = _SEED_ROWS_A_COMPONENT * n_components
    x, weight = source.sample(max(_SEED_ROWS, least), rng, least=least)
    x = at_hand(x)
    z = likelihood.prepare(x)
    x = None if means is None else x  # it may be large
    mass = np.ones(z.shape[0])
    seeding = seeding_mass(mass, weight)
    if weight is not None:  # the sample stands for rows of the same total weight
        mass = weight * max(1.0, min(source.total_weight, len(mass)) / weight.sum())
    if n_components == 1:
        return summaries(likelihood, z, mass[:, np.newaxis])
    everything = summaries(likelihood, z, mass[:, np.newaxis])[0]
    if means is not None:
        return _about_means(likelihood, x, z, mass, everything, np.asarray(means, dtype=float))
    points = likelihood.seeding_points(likelihood.prior, everything, z, whiten=False)
    seeds = None
    if n_steps is None:
        p = mass / mass.sum()
        rows = rng.choice(z.shape[0], min(n_components, np.count_nonzero(p)), replace=False, p=p)
        seeds = points[rows]
    resp = lloyd(points, seeding, n_components, rng, n_steps=n_steps or 0, centers=seeds)
    resp *= mass[:, np.newaxis].astype(resp.dtype)
    return summaries(likelihood, z, resp)


def _about_means(likelihood, x, z, mass, everything, means):
    """Statistics (K, P) of rows by the nearest of K means, and of the mean itself where no row is near.

    A mean that is too far out to be a row starts an empty component. Rows are ``x``, and ``z`` once they
    are prepared; ``everything`` (P,) are the statistics of all of them.
    """
    vectors = likelihood.of_vectors()
    seeds = vectors.prepare_means(means)
    if issparse(z):
        resp = _nearest(likelihood, z, seeds)
    elif vectors is likelihood:
        resp = _of_nearest(likelihood, z, mass, everything, seeds)
    else:  # vectors are much longer than prepared rows: few are made at a time
        size = max(1, _VECTOR_NUMBERS // vectors.n_features)
        some = [slice(lo, lo + size) for lo in range(0, len(z), size)]
        parts = [
            _of_nearest(vectors, vectors.prepare(x[rows]), mass[rows], everything, seeds)
            for rows in some
        ]
        resp = np.concatenate(parts)
    s = summaries(likelihood, z, resp * mass[:, np.newaxis].astype(resp.dtype))
    lonely = np.flatnonzero((s[:, -1] == 0) & (np.abs(seeds).max(axis=1) <= _FARTHEST))
    if len(lonely):
        s[lonely] = summaries(vectors, seeds[lonely], np.eye(len(lonely)))
    return s


def _of_nearest(likelihood, z, mass, everything, seeds):
    """One-hot shares (n, K) of dense rows, which go to the nearest seeds (K, D')."""
    points = z
    if likelihood.has_missing:
        points = likelihood.imputed(likelihood.prior, everything, z)
    return lloyd(points, mass, len(seeds), None, n_steps=0, centers=seeds.astype(z.dtype))


def _nearest(likelihood, z, centers):
    """One-hot shares (n, K) of sparse rows, ``s(x) = [x, 1]``, which go to the nearest centers."""
    half_square = 0.5 * np.einsum("kd,kd->k", centers, centers)
    coef = np.column_stack([centers, -half_square])
    return likelihood.local_step(coef, z, None, None, None, None, n_nonzero=1)


def kmeans_plusplus(points, mass, n_seeds, rng):
    """Indices of seeds, drawn with probability ``mass * least squared distance`` (Alg. 2.2)."""
    seeds = [int(np.searchsorted(np.cumsum(mass), rng.random_sample() * mass.sum()))]
    least = np.full(len(points), np.inf)
    while True:
        for lo in range(0, len(points), _BLOCK_ROWS):
            rows = slice(lo, lo + _BLOCK_ROWS)
            offset = points[rows] - points[seeds[-1]]
            np.minimum(least[rows], np.einsum("nd,nd->n", offset, offset), out=least[rows])
        reach = np.cumsum(mass * least)
        if len(seeds) == n_seeds or not reach[-1] > 0:
            return seeds
        seeds.append(int(np.searchsorted(reach, rng.random_sample() * reach[-1], side="right")))


def seeding_mass(mass, weight):
    """Masses (n,) for drawing seeds: half by number and half by weight, if rows have weights.

    By weight alone, a few heavy rows would get all the seeds, and many light ones none.
    """
    if weight is None:
        return mass
    mass = np.where(weight > 0, mass, 0.0)
    return 0.5 * mass * (1.0 + weight * (mass.sum() / (mass @ weight)))


def lloyd(points, mass, n_seeds, rng, *, n_steps=LLOYD_STEPS, centers=None):
    """One-hot shares (n, J) of points after Lloyd steps from ``centers``, or from k-means++ if None."""
    if centers is None:
        centers = points[kmeans_plusplus(points, mass, n_seeds, rng)]
    resp = np.empty((len(points), len(centers)), dtype=points.dtype)
    s = np.empty((len(centers), points.shape[1] + 2))
    for _ in range(n_steps + 1):
        half_square = 0.5 * np.einsum("kd,kd->k", centers, centers)
        coef = np.column_stack([np.full(len(centers), -0.5), centers, -half_square])
        local_step(
            points, np.ascontiguousarray(coef, dtype=points.dtype), Quadratic.SPHERICAL, True, mass, None,
            resp, s, None, None, 1, 1,
        )  # fmt: skip
        n = s[:, -1:]
        before, centers = centers, np.where(n > 0, s[:, 1:-1] / np.where(n > 0, n, 1.0), centers)
        if np.array_equal(before, centers):  # no row has changed its center
            break
    return resp


def summaries(likelihood, z, shares):
    """Statistics (J, P) of rows under given shares (n, J)."""
    s = np.empty((shares.shape[1], likelihood.n_statistics))
    likelihood.summarise(z, shares, s, sparse=True)
    return s


def directions(y):
    """Embedding of rows in which y and -y are the same point, as they are for a zero-mean Gaussian.

    It is the packed matrix ``u u'`` of the direction u, followed by the log length in units of its spread.
    """
    D = y.shape[1]
    square = np.einsum("ij,ij->i", y, y)
    u = y / np.sqrt(np.maximum(square, np.finfo(y.dtype).tiny))[:, np.newaxis]
    i, j = np.triu_indices(D)
    out = np.empty((len(y), len(i) + 1), dtype=y.dtype)
    out[:, :-1] = u[:, i]
    out[:, :-1] *= u[:, j]
    out[:, :-1] *= np.where(i == j, 1.0, np.sqrt(2.0)).astype(y.dtype)
    out[:, -1] = 0.5 * np.sqrt(D) * np.log(square / D + 1e-3)
    return out


def completed(likelihood, prior, z, shares):
    """Statistics (J, P) of rows under given shares (n, J), of which each component completes its own rows.

    `summaries` completes missing entries under one Gaussian of all the data, which is much wider than a
    component of a narrow column.
    """
    s = summaries(likelihood, z, shares)
    for _ in range(_COMPLETIONS if likelihood.imputes else 0):
        likelihood.summarise(z, shares, s, coef=likelihood.coefficients(prior, s))
    return s


def completed_as_one(likelihood, prior, z, mass):
    """Statistics (1, P) of rows of masses (n,) in one component, which completes their missing entries.

    Where several components complete them, the sum of the statistics is not what one component would have.
    """
    return completed(likelihood, prior, z, mass[:, np.newaxis])
