"""Images of digits reduced by PCA or by UMAP, clustered by DPMixtureVB and HDBSCAN (doc/recipes.rst).

The 1797 digits of scikit-learn stand in for embeddings of texts. Agreement is the adjusted Rand index
with the digits, rows of noise as a cluster of their own. UMAP needs the package umap-learn, and is left
out without it; its seed is fixed.

    python -m tests.benchmarks.reduced_digits
"""

from __future__ import annotations

import importlib.util

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from sklearn_bnp import DPMixtureVB

from . import report


def reductions():
    """Estimators that reduce the columns, by name."""
    yield "PCA, 10 columns", PCA(10, random_state=0)
    if importlib.util.find_spec("umap") is not None:
        from umap import UMAP

        yield "UMAP, 5 columns", UMAP(n_components=5, min_dist=0.0, random_state=0)


def main() -> None:
    args = report.parser(__doc__).parse_args()
    limits = report.start("reduced_digits", args.threads)
    images, digit = load_digits(return_X_y=True)
    for name, reduction in reductions():
        X = reduction.fit_transform(images)
        for model in (DPMixtureVB(random_state=0), HDBSCAN(min_cluster_size=15, copy=True)):
            labels = model.fit_predict(X)
            found = np.unique(labels[labels >= 0]).size
            print(
                f"{name}, {type(model).__name__:<12} K {found:>3}, agreement"
                f" {report.ari(digit, labels):.2f}, noise {np.mean(labels < 0):.0%}",
                flush=True,
            )
    limits.unregister()


if __name__ == "__main__":
    main()
