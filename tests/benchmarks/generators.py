"""Data for the benchmarks: every generator takes a seed and returns a `Dataset`.

A label y < 0 marks a row that belongs to no cluster. Real data ignore the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.decomposition import PCA

from .report import data_file


class Dataset(NamedTuple):
    name: str
    X: NDArray[np.floating]  # (n_rows, n_features)
    y: NDArray[np.intp]  # (n_rows,)


# ------------------------------------------------------------------ building blocks


def mixture(rng, means, covariances, sizes) -> tuple[NDArray, NDArray]:
    """Rows of a Gaussian mixture with exactly ``sizes[k]`` rows of component k, shuffled."""
    X = np.concatenate(
        [
            m + rng.standard_normal((n, m.size)) @ np.linalg.cholesky(S).T
            for m, S, n in zip(means, covariances, sizes, strict=True)
        ]
    )
    y = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(y.size)
    return X[order], y[order]


def random_covariances(rng, n_components: int, n_features: int, condition: float = 10.0):
    """(K, D, D), random axes; eigenvalues log-uniform, ratio ``condition``, geometric mean 1."""
    made = []
    for _ in range(n_components):
        log_eig = np.log(condition) * rng.uniform(-0.5, 0.5, n_features)
        if n_features > 1:  # the extremes are always there: the condition number is what was asked
            log_eig[:2] = 0.5 * np.log(condition) * np.array([-1.0, 1.0])
        axes = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
        made.append((axes * np.exp(log_eig - log_eig.mean())) @ axes.T)
    return np.array(made)


def separated_means(rng, covariances, separation: float) -> NDArray:
    """(K, D), dart throwing: every pair is ``separation`` apart, in Mahalanobis distance.

    The distance of a pair is taken under the mean of its two covariances. Darts are normal and
    their spread grows by 2 % at each miss, so that the clusters lie as close as that allows.
    """
    n_components, n_features, _ = covariances.shape
    means = np.zeros((n_components, n_features))
    spread = separation / np.sqrt(2.0 * n_features)
    for k in range(n_components):
        factors = np.linalg.cholesky(0.5 * (covariances[:k] + covariances[k])) if k else None
        while True:
            means[k] = spread * rng.standard_normal(n_features)
            if k == 0:
                break
            z = np.linalg.solve(factors, (means[:k] - means[k])[:, :, None])[:, :, 0]
            if np.einsum("kd,kd->k", z, z).min() >= separation**2:
                break
            spread *= 1.02
    return means


def split_rows(rng, n_rows: int, n_components: int, evenness: float = 5.0, least: int = 1):
    """Sizes that add up to ``n_rows``, from a symmetric Dirichlet, each at least ``least``."""
    free = n_rows - least * n_components
    return least + rng.multinomial(free, rng.dirichlet(np.full(n_components, evenness)))


def gaussians(
    seed: int,
    name: str,
    n_rows: int,
    n_features: int,
    n_components: int,
    separation: float,
    condition: float = 10.0,
    evenness: float = 50.0,
) -> Dataset:
    """A mixture of separated Gaussians of full covariance."""
    rng = np.random.default_rng(seed)
    covariances = random_covariances(rng, n_components, n_features, condition)
    means = separated_means(rng, covariances, separation)
    sizes = split_rows(rng, n_rows, n_components, evenness, least=n_rows // (10 * n_components))
    return Dataset(name, *mixture(rng, means, covariances, sizes))


# ------------------------------------------------------------------ the thesis' and recipes' data


def patch_covariances() -> NDArray[np.float64]:
    """(8, 25, 25): 5x5 patches of two leaves, parted by one of 4 edges or 4 corners.

    After the dead leaves model (Zoran & Weiss, 2012): each leaf has a gray level, a planar shading
    and a fine texture of its own, nothing is shared across the edge, and the camera adds noise.
    Texture and noise are such that the true model's own ARI is .984: that of the recipes' data.
    """
    row, col = (index.ravel() for index in np.mgrid[:5, :5])
    leaves = [col < 2, row < 2, row <= col, row + col <= 4]
    leaves += [r & c for r in (row < 3, row > 1) for c in (col < 3, col > 1)]
    u, v = (row - 2) / 2, (col - 2) / 2
    shading = np.outer(u, u) + np.outer(v, v)
    texture = np.exp(-np.hypot(row[:, None] - row, col[:, None] - col) / 2)
    within = 1.0 + shading + 0.02 * texture
    return np.array([(s[:, None] == s) * within + 0.005 * np.eye(25) for s in leaves])


def toy_patches(seed: int = 0, n_rows: int = 100_000) -> Dataset:
    """Sec. 4.4.2: eight equally common zero-mean components, D = 25. The components are fixed."""
    rng = np.random.default_rng(seed)
    covariances = patch_covariances()
    sizes = np.diff(np.linspace(0, n_rows, 9).astype(int))
    return Dataset("toy_patches", *mixture(rng, np.zeros((8, 25)), covariances, sizes))


def one_gaussian_1d(seed: int = 0, n_rows: int = 25_000) -> Dataset:
    """Sec. 4.4.1: a single standard normal."""
    X = np.random.default_rng(seed).standard_normal((n_rows, 1))
    return Dataset("one_gaussian_1d", X, np.zeros(n_rows, dtype=int))


def asterisk(seed: int = 0) -> Dataset:
    """Eight arms, 5000 x 2, from the data folder. The seed is not used."""
    table = np.loadtxt(data_file("asterisk_k8.csv"), delimiter=",", skiprows=1)
    y = np.unique(table[:, 2], return_inverse=True)[1]
    return Dataset("asterisk", np.ascontiguousarray(table[:, :2]), y)


def rare(seed: int, share: float, n_rows: int = 50_000) -> Dataset:
    """Two big clusters and one of ``share`` of the rows."""
    rng = np.random.default_rng(seed)
    covariances = random_covariances(rng, 3, 2, condition=4.0)
    n_rare = round(share * n_rows)
    sizes = [n_rows - n_rare - n_rows // 3, n_rows // 3, n_rare]
    X, y = mixture(rng, separated_means(rng, covariances, 12.0), covariances, sizes)
    return Dataset(f"rare_{share:g}", X, y)


def random_problem(seed: int, offset: int = 0) -> Dataset:
    """K in 3..30, D in 1..20, 100 to 400 rows a cluster, unequal, separation 4 to 8."""
    rng = np.random.default_rng(10_000 + offset + seed)
    n_components, n_features = rng.integers(3, 31), rng.integers(1, 21)
    n_rows = int(n_components * rng.integers(100, 401))
    separation = rng.uniform(4.0, 8.0)
    data_seed = int(rng.integers(2**31))
    return gaussians(
        data_seed, "random", n_rows, n_features, n_components, separation, evenness=5.0
    )


def faithful_like(seed: int = 0) -> Dataset:
    """272 eruptions with the moments of the two clusters of Old Faithful (minutes, minutes)."""
    rng = np.random.default_rng(seed)
    means = np.array([[2.04, 54.5], [4.29, 80.0]])
    covariances = np.array([[[0.07, 0.44], [0.44, 33.7]], [[0.17, 0.94], [0.94, 36.0]]])
    return Dataset("faithful", *mixture(rng, means, covariances, [97, 175]))


# ------------------------------------------------------------------ known to be hard


def t_noise(seed: int = 0, n_rows: int = 4000, dof: float = 4.0) -> Dataset:
    """Four clusters of multivariate t noise: heavier tails than any Gaussian."""
    rng = np.random.default_rng(seed)
    covariances = random_covariances(rng, 4, 2)
    means = separated_means(rng, covariances, 12.0)
    X, y = mixture(rng, means, covariances, [n_rows // 4] * 4)
    scale = np.sqrt(dof / rng.chisquare(dof, n_rows))
    return Dataset("t_noise", means[y] + (X - means[y]) * scale[:, None], y)


def outliers(seed: int = 0, n_rows: int = 3000, share: float = 0.02) -> Dataset:
    """Five clusters, and 2 % of the rows spread evenly over three times their range (y = -1)."""
    rng = np.random.default_rng(seed)
    X, y = gaussians(seed, "", n_rows, 3, 5, separation=8.0)[1:]
    n_out = round(share * n_rows)
    middle, half = (X.max(0) + X.min(0)) / 2, (X.max(0) - X.min(0)) / 2
    X[:n_out] = middle + 3 * half * rng.uniform(-1, 1, (n_out, 3))
    y[:n_out] = -1
    return Dataset("outliers", X, y)


def constant_and_duplicate(seed: int = 0) -> Dataset:
    """Four clusters in three columns, one of which comes twice, beside a constant one."""
    X, y = gaussians(seed, "", 1000, 3, 4, separation=8.0)[1:]
    X = np.column_stack([X, np.full(y.size, 7.0), X[:, 0]])
    return Dataset("constant_duplicate", X, y)


def identical_rows(seed: int = 0, n_rows: int = 5000, n_distinct: int = 60) -> Dataset:
    """5000 rows, only 60 of them distinct, in three clusters of 20 values each."""
    X, y = gaussians(seed, "", n_distinct, 2, 3, separation=10.0, evenness=1e6)[1:]
    rows = np.random.default_rng(seed).integers(n_distinct, size=n_rows)
    return Dataset("identical_rows", X[rows], y[rows])


def integers(seed: int = 0) -> Dataset:
    """Three clusters of small whole numbers: a few values a column, many ties."""
    X, y = gaussians(seed, "", 3000, 4, 3, separation=6.0, condition=2.0)[1:]
    return Dataset("integers", np.rint(1.5 * X), y)


def likert(seed: int = 0) -> Dataset:
    """Two camps answer eight questions with 1 to 5: discrete, bounded and skewed."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=2000)
    level = np.where(y == 0, 0.8, -0.8)[:, None] * np.array([1, 1, -1, 1, -1, 1, -1, -1])
    X = np.clip(np.rint(3 + level + rng.standard_normal((y.size, 8))), 1, 5)
    return Dataset("likert", X, y)


# ------------------------------------------------------------------ never tuned on


def unequal(seed: int = 0) -> Dataset:
    """Six clusters whose sizes halve and whose spreads differ by up to a hundred."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.permutation(np.linspace(-2, 2, 6))
    covariances = random_covariances(rng, 6, 3) * scales[:, None, None]
    sizes = np.array([3200, 1600, 800, 400, 200, 100])
    means = separated_means(rng, covariances, 6.0)
    return Dataset("unequal", *mixture(rng, means, covariances, sizes))


def decades(seed: int = 0) -> Dataset:
    """Five clusters in columns whose units differ by up to 1e8, far from the origin."""
    X, y = gaussians(seed, "", 1500, 5, 5, separation=7.0)[1:]
    return Dataset("decades", (X + 100.0) * 10.0 ** np.linspace(-4, 4, 5), y)


def moons(seed: int = 0) -> Dataset:
    X, y = datasets.make_moons(2000, noise=0.08, random_state=seed)
    return Dataset("moons", X, y)


def null_gaussian(seed: int, n_rows: int, n_features: int) -> Dataset:
    """One Gaussian of a random covariance: no cluster to be found."""
    rng = np.random.default_rng(seed)
    covariance = random_covariances(rng, 1, n_features, condition=100.0)
    X, y = mixture(rng, np.zeros((1, n_features)), covariance, [n_rows])
    return Dataset(f"null_n{n_rows}_d{n_features}", X, y)


def null_uniform(seed: int = 0) -> Dataset:
    """A flat square: no cluster, and no Gaussian either."""
    X = np.random.default_rng(seed).uniform(size=(2000, 2))
    return Dataset("null_uniform", X, np.zeros(2000, dtype=int))


# ------------------------------------------------------------------ real


def _bundled(load: Callable, name: str, seed: int = 0) -> Dataset:
    data = load()
    return Dataset(name, data.data.astype(np.float64), data.target)


def digits_pca(seed: int = 0, n_features: int = 15) -> Dataset:
    """scikit-learn's 1797 digits, projected on 15 principal components. The seed is not used."""
    data = datasets.load_digits()
    X = PCA(n_features, svd_solver="full").fit_transform(data.data)
    return Dataset(f"digits_pca{n_features}", np.ascontiguousarray(X), data.target)


iris = partial(_bundled, datasets.load_iris, "iris")
wine = partial(_bundled, datasets.load_wine, "wine")
cancer = partial(_bundled, datasets.load_breast_cancer, "cancer")
digits = partial(_bundled, datasets.load_digits, "digits")
