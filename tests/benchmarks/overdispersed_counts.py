"""Counts that vary more than Poisson counts: is the number of clusters found, beside other likelihoods?

Problems are drawn at random: 3 to 10 clusters, or states of sequences; 1 to 30 columns; 300 to 20,000 rows;
sizes from 0.5 to 50, one for each column. Means are log-normal, so that clusters overlap in few columns.
Three likelihoods are fitted from one component: the negative binomial one, the Poisson one (up to 60
components), and a Gaussian of ``log1p`` of the counts. *True* is the ARI of the clusters of largest
posterior probability under the parameters that rows were drawn with. *Short* is how many nats the bound is
below that of a fit that starts from the true clusters.

    python -m tests.benchmarks.overdispersed_counts
    python -m tests.benchmarks.overdispersed_counts --sequences --problems 10
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import nbinom
from sklearn.metrics import adjusted_rand_score

from . import report
from .chains import sticky_path

MOST_POISSON, MOST_POISSON_ROWS = 60, 3000
STAY, LENGTH = 0.9, 200


class Problem(NamedTuple):
    """Rows of counts, their clusters, and the parameters that they were drawn with."""

    X: np.ndarray
    labels: np.ndarray
    means: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray

    @property
    def name(self) -> str:
        (K, D), n = self.means.shape, len(self.X)
        return f"K {K:2d}  D {D:2d}  n {n:5d}  r {self.sizes.min():.2g}-{self.sizes.max():.2g}"

    def best_labels(self):
        """Clusters of largest probability under the true parameters."""
        table = np.log(self.weights) + np.zeros((len(self.X), 1))
        for k, mean in enumerate(self.means):
            p = self.sizes / (self.sizes + mean)
            table[:, k] += nbinom(self.sizes, p).logpmf(self.X).sum(axis=1)
        return table.argmax(axis=1)


def problem(seed: int, sequences: bool) -> Problem:
    rng = np.random.RandomState(seed)
    K, D = rng.randint(3, 11), int(np.exp(rng.uniform(0, np.log(31))))
    n = int(np.exp(rng.uniform(np.log(300), np.log(20_000))))
    sizes = np.exp(rng.uniform(np.log(0.5), np.log(50), size=D))
    means = np.exp(rng.normal(rng.uniform(0, 4), rng.uniform(0.7, 1.5), size=(K, D)))
    weights = rng.dirichlet(np.full(K, 5.0))
    if sequences:
        weights = np.full(K, 1.0 / K)
        n -= n % LENGTH
        labels = np.concatenate([sticky_path(rng, K, LENGTH, STAY) for _ in range(n // LENGTH)])
    else:
        labels = rng.choice(K, size=n, p=weights)
    X = rng.poisson(means[labels] * rng.gamma(sizes, 1.0 / sizes, size=(n, D)))
    return Problem(X.astype(float), labels, means, sizes, weights)


def model_of(name: str, sequences: bool):
    from sklearn_bnp import HDPHMMVB, DPMixtureVB

    estimator = HDPHMMVB if sequences else DPMixtureVB
    model = estimator(observation=name, random_state=0)
    return model.set_params(max_components=MOST_POISSON) if name == "poisson" else model


def found(name: str, own: Problem, sequences: bool, start=None):
    """The fitted model, its ARI, and CPU seconds."""
    X = np.log1p(own.X) if name == "gaussian" else own.X
    if sequences:
        X = np.split(X, len(X) // LENGTH)
    model = model_of(name, sequences)
    if start is not None:
        model.set_params(init_params=start)
    clock = report.fit_timed(model, X)
    labels = np.concatenate(model.predict(X)) if sequences else model.predict(X)
    return model, adjusted_rand_score(own.labels, labels), clock.cpu


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sequences", action="store_true")
    parser.add_argument("--names", nargs="+", default=["negative_binomial", "gaussian", "poisson"])
    args = parser.parse_args()
    limits = report.start("overdispersed_counts", args.threads)
    for seed in range(args.first, args.first + args.problems):
        own = problem(seed, args.sequences)
        line = [
            f"{seed:3d}  {own.name:34s}  true {adjusted_rand_score(own.labels, own.best_labels()):.3f}"
        ]
        for name in args.names:
            if name == "poisson" and len(own.X) > MOST_POISSON_ROWS:
                continue
            model, ari, cpu = found(name, own, args.sequences)
            line.append(f"{name[:8]} K {model.n_components_:3d}  ARI {ari:.3f}  {cpu:5.1f} s")
            if name == "negative_binomial" and not args.sequences:
                start = np.eye(len(own.means))[own.labels]
                other, _, _ = found(name, own, args.sequences, start)
                short = other.lower_bound_ - model.lower_bound_
                line.append(f"(from truth K {other.n_components_:2d}, short {short:.1f})")
        print("   ".join(line), flush=True)
    limits.unregister()


if __name__ == "__main__":
    main()
