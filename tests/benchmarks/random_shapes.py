"""Random data sets of which no part is Gaussian: boxes, balls, rings, curves, heavy tails and skewed columns.

Each part of a data set is tiled with several components, and many solutions are nearly as good. Whether one
fit finds the best of them is another question than whether it finds clusters that follow the likelihood. No
number of components is the true one, so the labels to start from are tiles, which k-means has found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from .generators import Dataset

# Tiles of each part.
_TILES = 8


def shapes(problem: int) -> Dataset:
    """One to three parts of random shapes, in 2 to 6 columns and 200 to 2500 rows; labels are of tiles."""
    rng = np.random.default_rng([20_261_127, problem])
    n_features, n_rows = int(rng.integers(2, 7)), int(np.exp(rng.uniform(*np.log((200, 2500)))))
    parts = np.array_split(np.arange(n_rows), int(rng.choice([1, 1, 2, 3])))
    rows = [_part(rng, len(part), n_features) for part in parts]
    X = np.concatenate([x + 2.5 * rng.standard_normal(n_features) for x in rows])
    tiles = [KMeans(_TILES, random_state=problem).fit_predict(x) for x in rows]
    return Dataset("shapes", X, np.concatenate([_TILES * i + y for i, y in enumerate(tiles)]))


def _part(rng, n: int, d: int) -> NDArray[np.float64]:
    """Rows of a random shape, turned and stretched."""
    x = _SHAPES[rng.integers(len(_SHAPES))](rng, n, d)
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    return (x - x.mean(axis=0)) / x.std(axis=0) @ (turn * rng.uniform(0.4, 1.5, d))


def _box(rng, n, d):
    return rng.random((n, d))


def _ball(rng, n, d):
    x = rng.standard_normal((n, d))
    return x * (rng.random(n) ** (1 / d) / np.linalg.norm(x, axis=1))[:, None]


def _ring(rng, n, d):
    x = rng.standard_normal((n, d))
    x[:, :2] /= np.linalg.norm(x[:, :2], axis=1)[:, None]
    x[:, 2:] *= 0.3
    return x + rng.uniform(0.02, 0.2) * rng.standard_normal((n, d))


def _curve(rng, n, d):
    t = rng.uniform(0, 2 * np.pi * rng.uniform(0.5, 1.5), n)
    radius = 1 + 0.2 * t
    x = [radius * np.cos(t * (1 + 0.5 * i) + rng.uniform(0, np.pi)) for i in range(d)]
    return np.stack(x, axis=1) + rng.uniform(0.03, 0.2) * rng.standard_normal((n, d))


def _heavy_columns(rng, n, d):
    return rng.standard_t(rng.uniform(2.5, 6.0), (n, d))


def _heavy_rows(rng, n, d):
    return rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(4, n) / 4)[:, None]


def _log_normal(rng, n, d):
    return np.exp(rng.uniform(0.3, 0.8) * rng.standard_normal((n, d)))


def _gamma(rng, n, d):
    return rng.gamma(rng.uniform(1.0, 4.0), size=(n, d))


def _bent(rng, n, d):
    """A Gaussian of which two columns are bent by the squares of others."""
    x = rng.standard_normal((n, d))
    for _ in range(2):
        i, j = rng.choice(d, 2, replace=False)
        x[:, i] += rng.uniform(0.3, 1.0) * x[:, j] ** 2
    return x


_SHAPES = (_box, _ball, _ring, _curve, _heavy_columns, _heavy_rows, _log_normal, _gamma, _bent)
