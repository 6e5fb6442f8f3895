"""Few large clusters and many small ones: the Pitman-Yor process beside the Dirichlet process.

Sizes of clusters often follow a power law, as those of species, words or cities do. The Dirichlet process
expects the number of clusters to grow like the logarithm of the number of rows, and the Pitman-Yor
process like a power of it. It finds more of the small clusters.

    python examples/power_law_clusters.py
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation, PitmanYorAllocation

SPREAD = 6.0


def power_law_clusters(rng, n_clusters=80, exponent=1.4):
    """Rows around normal centres; the k-th cluster has about ``300 / k ** exponent`` rows."""
    sizes = np.ceil(300 / np.arange(1, n_clusters + 1) ** exponent).astype(int)
    centers = SPREAD * rng.standard_normal((n_clusters, 4))
    labels = rng.permutation(np.repeat(np.arange(n_clusters), sizes))
    return centers[labels] + rng.standard_normal((len(labels), 4)), labels


def main():
    X, labels = power_law_clusters(np.random.default_rng(0))
    observation = FixedVarianceGaussianObservation(
        variance=np.ones(4), mean_prior=np.zeros(4), mean_variance_prior=np.full(4, SPREAD**2)
    )
    print(f"{len(X)} rows of {labels.max() + 1} clusters")
    for name, allocation in {
        "Dirichlet process": "dp",
        "Pitman-Yor, d = 0.5": PitmanYorAllocation(discount=0.5),
        "Pitman-Yor, learned": "pitman-yor",
    }.items():
        model = DPMixtureVB(allocation=allocation, observation=observation, random_state=0).fit(X)
        rand = adjusted_rand_score(labels, model.predict(X))
        learned = f"  discount {model.discount_:.2f}" if hasattr(model, "discount_") else ""
        print(
            f"{name:<20} K={model.n_components_}  ELBO {model.lower_bound_:.1f}  "
            f"adjusted Rand index {rand:.3f}{learned}"
        )


if __name__ == "__main__":
    main()
