"""Counts that vary more than Poisson counts: is the number of clusters found, beside other likelihoods?

Problems are drawn at random: 3 to 10 clusters, or states of sequences; 1 to 30 columns; 300 to 20,000 rows;
sizes from 0.5 to 50, one for each column. Means are log-normal, so that clusters overlap in few columns.
Three likelihoods are fitted from one component: the negative binomial one, the Poisson one (up to 60
components), and a Gaussian of ``log1p`` of the counts. *True* is the ARI of the clusters of largest
posterior probability under the parameters that rows were drawn with. *Short* is how many nats the bound is
below that of a fit that starts from the true clusters.

Seed is the number of the problem; seconds are CPU time:

====  ===========  ===========================  =================  ===================  ==================
seed  K, D, n      sizes                        true  negative b.   short   gaussian     Poisson
====  ===========  ===========================  =================  ===================  ==================
0     7, 7, 10398  0.65 to 26                   .842   7, .841 9 s    0.0  13, .478 46 s
1     8, 30, 15066 0.66 to 50                   1.00   8, 1.00 9 s    0.0   8, 1.00 13 s
2     3, 1, 15002  39                           .273   1, .000 2 s    7.6   3, .197 14 s
3     5, 1, 10212  0.87                         .039   2, .013 12 s   0.4   3, .058 18 s
4     5, 22, 619   0.51 to 39                   .997   5, .997 2 s    0.0   4, .757 1 s   60, .150 36 s
5     6, 1, 9848   2.7                          .146   6, .131 33 s  19.6   3, .146 6 s
6     5, 25, 722   0.67 to 47                   1.00   5, .994 2 s    0.0   3, .650 1 s   60, .239 28 s
7     10, 2, 1145  4.1 to 45                    .266   2, .110 2 s   14.3   2, .134 3 s    8, .201 2 s
8     6, 1, 820    2.8                          .280   2, .241 1 s    0.0   2, .166 1 s   11, .161 1 s
9     9, 3, 2440   0.52 to 2.1                  .108   3, .056 22 s   0.8   3, .003 1 s   60, .032 37 s
====  ===========  ===========================  =================  ===================  ==================

Sequences: problem 0 has 7 states of 7, ARI .988 (Gaussian 7, .982); problem 1 has 8 of 8, 1.00 (8, 1.00);
problem 2, of one column, 3 of 3, .690 (6, .629).

Where columns are many, the clusters are those of the true parameters. In one or two columns in which they
overlap, fits end up to 20 nats below a fit from the true clusters, with too few components or too many.

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
