"""Time and agreement of clusterers as rows grow, with one thread (doc/comparison.rst).

Ten Gaussian clusters of unequal sizes and covariances, in few columns. KMeans and
GaussianMixture(told K) know the true number; GaussianMixture by BIC searches 1 to 20 components;
BayesianGaussianMixture is told 20; HDBSCAN, with clusters of at least 15 rows, and DPMixtureVB find
it. Seconds are CPU seconds, and the methods take turns within each size, so that their ratios mean
something on a busy machine. "new rows" is the time to label 1000 rows that were not in the fit;
HDBSCAN of scikit-learn has no `predict`. A method that took more than --limit seconds is left out
of greater sizes.

    python -m tests.benchmarks.beside_others --rows 1000 4000 16000 64000
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from sklearn_bnp import DPMixtureVB

from . import report

N_CLUSTERS, MOST, N_NEW = 10, 20, 1000


def clusters(rng, n_rows: int, n_features: int):
    """Rows of ten Gaussian clusters, shuffled, and the number of each row's cluster."""
    shares = rng.dirichlet(np.full(N_CLUSTERS, 5.0))
    centers = rng.normal(scale=3.0, size=(N_CLUSTERS, n_features))
    slants = rng.normal(size=(N_CLUSTERS, n_features, n_features)) / np.sqrt(n_features)
    y = rng.choice(N_CLUSTERS, n_rows, p=shares)
    noise = rng.normal(size=(n_rows, n_features))
    return centers[y] + np.einsum("nd,nde->ne", noise, slants[y]), y


class ByBIC(BaseEstimator):
    """GaussianMixture with the number of components, from 1 to `MOST`, of least BIC."""

    def fit(self, X, y=None):
        fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, MOST + 1)]
        self.best = min(fits, key=lambda fit: fit.bic(X))
        return self

    def predict(self, X):
        return self.best.predict(X)


METHODS = {
    "KMeans, told 10": KMeans(N_CLUSTERS, n_init=10, random_state=0),
    "GaussianMixture, told 10": GaussianMixture(N_CLUSTERS, random_state=0),
    "GaussianMixture, BIC": ByBIC(),
    "BayesianGaussianMixture, 20": BayesianGaussianMixture(n_components=MOST, random_state=0),
    "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True),
    "DPMixtureVB": DPMixtureVB(random_state=0, n_jobs=1),
}


def measured(method, X, y, new) -> dict[str, object]:
    """Figures of one fit: number of clusters, adjusted Rand index, CPU seconds, those for new rows."""
    model = clone(method)
    fitting = report.fit_timed(model, X)
    labels = model.predict(X) if hasattr(model, "predict") else model.labels_
    figures = {
        "K": np.unique(labels[labels >= 0]).size,
        "ARI": report.ari(y, labels),
        "noise": float(np.mean(labels < 0)),
        "CPU s": fitting.cpu,
    }
    if hasattr(model, "predict"):
        with report.Clock() as clock:
            model.predict(new)
        figures["new rows, ms"] = 1e3 * clock.cpu
    return figures


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 4000, 16000, 64000])
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0)
    args = parser.parse_args()
    limits = report.start("beside_others", args.threads)
    late: set[str] = set()
    for n_rows in args.rows:
        rows, truth = clusters(np.random.default_rng(0), n_rows + N_NEW, args.columns)
        X, y, new = rows[:n_rows], truth[:n_rows], rows[n_rows:]
        for name in [method for method in METHODS if method not in late]:
            figures = measured(METHODS[name], X, y, new)
            if figures["CPU s"] > args.limit:
                late.add(name)
            shown = ", ".join(f"{key} {value:.3g}" for key, value in figures.items())
            print(f"{n_rows:>7} rows  {name:<28} {shown}", flush=True)
    limits.unregister()


if __name__ == "__main__":
    main()
