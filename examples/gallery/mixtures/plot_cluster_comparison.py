"""
Toy data sets: beside KMeans, GaussianMixture and HDBSCAN
=========================================================

Six data sets, each clustered in four ways. KMeans and GaussianMixture are told the true number of clusters;
HDBSCAN and `~sklearn_bnp.DPMixtureVB` find it. A mixture of Gaussians finds blobs of any width and slant,
and says that a single cloud is one cluster. It cuts moons and circles into pieces, and there HDBSCAN is the
better choice.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from sklearn_bnp import DPMixtureVB

# %%
# Data sets
# ---------
# They are those of scikit-learn's comparison of clustering methods, with 600 rows each.

N = 600
blobs, of_blobs = make_blobs(N, random_state=8)
oblong, of_oblong = make_blobs(N, random_state=170)
data = {
    "blobs": (blobs, of_blobs),
    "oblong": (oblong @ [[0.6, -0.6], [-0.4, 0.8]], of_oblong),
    "varied": make_blobs(N, cluster_std=[1.0, 2.5, 0.5], random_state=170),
    "one cloud": (np.random.default_rng(0).normal(size=(N, 2)), np.zeros(N, int)),
    "moons": make_moons(N, noise=0.05, random_state=30),
    "circles": make_circles(N, factor=0.5, noise=0.05, random_state=30),
}

# %%
# Four methods
# ------------
# The title of each panel has the number of clusters and the adjusted Rand index, which is 1 for the true
# clusters and about 0 for random ones. For the single cloud it is 1 if there is one cluster and else 0.
# Rows that HDBSCAN takes for noise are grey. Colours go from the lowest cluster to the highest.


def methods(n_clusters):
    """The four methods; the first two are told the number of clusters."""
    return {
        "KMeans (told K)": KMeans(n_clusters, n_init=10, random_state=0),
        "GaussianMixture (told K)": GaussianMixture(n_clusters, n_init=3, random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True),
        "DPMixtureVB": DPMixtureVB(random_state=0),
    }


def by_position(X, labels):
    """Labels in the order of their clusters from below to above; -1 stays for noise."""
    found = np.unique(labels[labels >= 0])
    order = np.argsort([X[labels == k].mean(axis=0) @ [0.3, 1.0] for k in found])
    return np.where(labels < 0, -1, np.argsort(order)[np.searchsorted(found, labels)])


names = list(methods(1))
rand = np.zeros((len(data), len(names)))
figure, axes = plt.subplots(len(data), len(names), figsize=(8.5, 12), layout="constrained")
for i, (name, (X, truth)) in enumerate(data.items()):
    X = StandardScaler().fit_transform(X)
    for j, (method, estimator) in enumerate(methods(truth.max() + 1).items()):
        labels = estimator.fit_predict(X)
        rand[i, j] = round(adjusted_rand_score(truth, labels), 2)
        rank = by_position(X, labels)
        panel = axes[i, j]
        n_clusters = rank.max() + 1
        palette = plt.colormaps["tab10" if n_clusters <= 10 else "tab20"]
        noise = rank < 0
        panel.scatter(*X[noise].T, c="0.75", s=5, linewidths=0)
        panel.scatter(*X[~noise].T, c=palette(rank[~noise]), s=5, linewidths=0)
        panel.set(xticks=[], yticks=[])
        title = f"K = {n_clusters}, index {rand[i, j] + 0.0:.2f}"
        panel.set_title(f"{method}\n{title}" if i == 0 else title, fontsize=9)
    axes[i, 0].set_ylabel(name, fontsize=11)

# %%
# The same as a table. The last row is the mean of all data sets.

print(f"{'adjusted Rand index':<20}" + "".join(f"{name.split()[0]:>17}" for name in names))
for name, values in zip([*data, "mean"], [*rand, rand.mean(axis=0)], strict=True):
    print(f"{name:<20}" + "".join(f"{value + 0.0:>17.2f}" for value in values))

# %%
# `~sklearn_bnp.DPMixtureVB`, which is told nothing, has the clusters of blobs, oblong and varied clusters
# and of the single cloud, where HDBSCAN takes many rows for noise. It loses on moons and circles, so that
# its mean is below those of HDBSCAN and of GaussianMixture, which is told K: each ring becomes a chain
# of Gaussians, which may describe the density of the rows, but is not what the eye takes for a cluster.

plt.show()
