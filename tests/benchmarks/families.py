"""Every likelihood on data of its own: is the number of components found, from K = 1?

Well separated components of unequal size, default priors and settings. Of each family a mixture of
rows, and sequences whose states stay for twenty rows. Real columns are in `real_columns`.

Targets: the true number and ARI >= 0.99 on every seed.

    python -m tests.benchmarks.families
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from . import report
from .chains import sticky_path

N_COMPONENTS, N_ROWS, N_SEQUENCES = 5, 1500, 10


class Family(NamedTuple):
    """How rows are drawn given labels, and the likelihood to fit; see the functions below."""

    rows: Callable[[np.random.RandomState, np.ndarray], np.ndarray]
    observation: Callable[[], Any]  # called late: names are those of sklearn_bnp
    of_rows: bool = True  # whether rows make sense one by one


def _observation(name: str, **parameters) -> Callable[[], Any]:
    def make():
        import sklearn_bnp

        return getattr(sklearn_bnp, name)(**parameters)

    return make


def _means(rng, n_features: int, separation: float) -> np.ndarray:
    """Means (K, D), no two nearer than ``separation``."""
    while True:
        means = rng.normal(size=(N_COMPONENTS, n_features)) * separation
        pairs = itertools.combinations(means, 2)
        if min(np.linalg.norm(a - b) for a, b in pairs) >= separation:
            return means


def gaussian(rng, labels, *, n_features=4, tilt=0.4, unequal=True):
    widths = rng.uniform(0.5, 1.5, (N_COMPONENTS, n_features)) if unequal else 1.0
    noise = rng.normal(size=(len(labels), n_features))
    roots = np.eye(n_features) + tilt * rng.normal(size=(N_COMPONENTS, n_features, n_features))
    noise = np.einsum("nij,nj->ni", roots[labels], noise)
    if unequal:
        noise *= widths[labels]
    return _means(rng, n_features, 12.0)[labels] + noise


def spherical(rng, labels):
    widths = rng.uniform(0.5, 1.5, N_COMPONENTS)
    noise = rng.normal(size=(len(labels), 3))
    return _means(rng, 3, 10.0)[labels] + widths[labels, np.newaxis] * noise


def zero_mean(rng, labels, n_features=25):
    """Covariances with large variance along a few directions, other ones for each component."""
    bases = [np.linalg.qr(rng.normal(size=(n_features, 5)))[0] for _ in range(N_COMPONENTS)]
    wide = rng.normal(size=(len(labels), 5)) * 4.0
    return np.einsum("nij,nj->ni", np.array(bases)[labels], wide) + 0.5 * rng.normal(
        size=(len(labels), n_features)
    )


def bernoulli(rng, labels, n_features=60):
    p = np.where(rng.random_sample((N_COMPONENTS, n_features)) < 0.5, 0.1, 0.9)
    return (rng.random_sample((len(labels), n_features)) < p[labels]).astype(float)


def poisson(rng, labels, n_features=15):
    return rng.poisson(rng.gamma(1.0, 8.0, (N_COMPONENTS, n_features))[labels]).astype(float)


def multinomial(rng, labels, n_features=100, n_tokens=100):
    p = rng.dirichlet(np.full(n_features, 0.1), N_COMPONENTS)
    return np.array([rng.multinomial(n_tokens, p[k]) for k in labels], dtype=float)


def categorical(rng, labels, n_features=25, n_categories=4):
    p = rng.dirichlet(np.full(n_categories, 0.3), (N_COMPONENTS, n_features))
    above = rng.random_sample((len(labels), n_features, 1)) > np.cumsum(p, axis=2)[labels]
    return np.minimum(above.sum(axis=2), n_categories - 1).astype(float)


def mixed(rng, labels):
    parts = [
        gaussian(rng, labels, n_features=2),
        categorical(rng, labels, n_features=8),
        poisson(rng, labels, n_features=4),
    ]
    return np.column_stack(parts)


def autoregressive(rng, labels, n_planes=3):
    """Rotations of planes, each state with speeds of its own."""
    angles = np.array(
        [rng.permutation(np.linspace(0.2, 2.8, N_COMPONENTS)) for _ in range(n_planes)]
    )
    turns, x, rows = 0.99 * np.exp(1j * angles.T), np.zeros(n_planes, dtype=complex), []
    for k in labels:
        x = turns[k] * x + 0.1 * rng.normal(size=(n_planes, 2)) @ [1.0, 1j]
        rows.append(x)
    return np.column_stack([np.real(rows), np.imag(rows)])


MIXED_COLUMNS = [
    ("numbers", "gaussian", [0, 1]),
    ("kinds", "categorical", slice(2, 10)),
    ("counts", "poisson", slice(10, 14)),
]
FAMILIES = {
    "gaussian full": Family(gaussian, _observation("GaussianObservation")),
    "gaussian diag": Family(
        lambda rng, labels: gaussian(rng, labels, tilt=0.0),
        _observation("GaussianObservation", covariance_type="diag"),
    ),
    "gaussian spherical": Family(
        spherical, _observation("GaussianObservation", covariance_type="spherical")
    ),
    "gaussian zero mean": Family(zero_mean, _observation("GaussianObservation", zero_mean=True)),
    "fixed variance": Family(
        lambda rng, labels: gaussian(rng, labels, tilt=0.0, unequal=False),
        _observation("FixedVarianceGaussianObservation"),
    ),
    "bernoulli": Family(bernoulli, _observation("BernoulliObservation")),
    "poisson": Family(poisson, _observation("PoissonObservation")),
    "multinomial": Family(multinomial, _observation("MultinomialObservation")),
    "categorical": Family(categorical, _observation("CategoricalObservation")),
    "mixed columns": Family(mixed, _observation("ColumnObservation", blocks=MIXED_COLUMNS)),
    "autoregressive": Family(autoregressive, _observation("AutoregressiveObservation"), False),
}


def labels_of_rows(rng) -> np.ndarray:
    """Labels (n,) of unequal frequency."""
    share = rng.dirichlet(np.full(N_COMPONENTS, 5.0))
    return rng.choice(
        N_COMPONENTS, N_ROWS, p=np.maximum(share, 0.05) / np.maximum(share, 0.05).sum()
    )


def mixture_run(family: Family, seed: int):
    from sklearn_bnp import DPMixtureVB

    rng = np.random.RandomState(seed)
    labels = labels_of_rows(rng)
    model = DPMixtureVB(observation=family.observation(), random_state=seed)
    X = family.rows(rng, labels)
    clock = report.fit_timed(model, X)
    return model.n_components_, adjusted_rand_score(labels, model.predict(X)), clock.cpu


def sequence_run(family: Family, seed: int):
    from sklearn_bnp import HDPHMMVB

    rng = np.random.RandomState(seed)
    length = N_ROWS // N_SEQUENCES
    paths = [sticky_path(rng, N_COMPONENTS, length, 0.95) for _ in range(N_SEQUENCES)]
    labels = np.concatenate(paths)
    X = np.split(family.rows(rng, labels), N_SEQUENCES)
    model = HDPHMMVB(observation=family.observation(), random_state=seed)
    clock = report.fit_timed(model, X)
    found = np.concatenate(model.predict(X))
    return model.n_components_, adjusted_rand_score(labels, found), clock.cpu


def synthetic(args) -> None:
    rows, targets = [], []
    for name, family in FAMILIES.items():
        if args.families and name not in args.families:
            continue
        for kind, run in (("mixture", mixture_run), ("states", sequence_run)):
            if kind == "mixture" and not family.of_rows:
                continue
            ks, aris, seconds = zip(*(run(family, seed) for seed in range(args.seeds)), strict=True)
            good = sum(k == N_COMPONENTS and ari >= 0.99 for k, ari in zip(ks, aris, strict=True))
            row = [name, kind, report.tally(ks), f"{np.median(aris):.3f}", f"{min(aris):.3f}"]
            rows.append([*row, f"{np.median(seconds):.2f}"])
            targets.append(
                (f"{name}, {kind}", f"{good} of {args.seeds}", "all", good == args.seeds)
            )
    report.print_table(["family", "of", "K", "ARI", "least", "cpu s"], rows)
    report.print_targets(targets)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", nargs="+", choices=sorted(FAMILIES))
    args = parser.parse_args()
    limits = report.start("families", args.threads)
    synthetic(args)
    limits.unregister()


if __name__ == "__main__":
    main()
