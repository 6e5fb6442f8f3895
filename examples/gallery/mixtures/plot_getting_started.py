"""
Getting started: clusters of rows
=================================

`~sklearn_bnp.DPMixtureVB` clusters rows without being told the number of clusters. Here it starts from a
single component and finds the five clusters that the rows were drawn from, with their shapes and weights.
The fitted model also says how sure the cluster of a new row is.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inspection import ComponentsDisplay, ConvergenceDisplay

# %%
# Rows
# ----
# Five clusters of different sizes and widths. A linear map makes the clusters oblong.

sizes, widths = [500, 400, 300, 200, 100], [1.0, 0.6, 1.2, 0.5, 0.8]
centers = [[-6, -4], [0, 5], [5, -4], [7, 4], [-7, 5]]
X, truth = make_blobs(sizes, centers=centers, cluster_std=widths, random_state=0)
X = X @ np.array([[1.0, 0.3], [-0.4, 0.9]])

# %%
# Fit
# ---
# A lap is one pass over the data. In each lap the model proposes to divide components (births), to join two
# (merges), and to leave one out (deletes). A proposal is accepted only if ``lower_bound_`` rises. This is a
# bound on the log probability of all data: it rewards a good fit and charges for every component.

model = DPMixtureVB(random_state=0).fit(X)
print(f"{model.n_components_} components after {model.n_iter_} laps")
for entry in model.history_:
    print(f"lap {entry.lap}: {entry.n_components} components, accepted {entry.accepted}")

ConvergenceDisplay.from_estimator(model)

# %%
# Components
# ----------
# Components are sorted by their weights. The ellipses hold what lies within two standard deviations. The
# bars have the colours of the components.

ComponentsDisplay.from_estimator(model, X)
print("weights:", model.weights_.round(3))
print("true shares:", np.divide(sorted(sizes, reverse=True), sum(sizes)).round(3))

# %%
# New rows
# --------
# ``predict_proba`` gives the probability of each component. New rows on the way from one cluster to the
# next belong to the one, then for a short way to both in part, and then to the other. The other components
# have a probability of almost 0 there and are left out.

a, b = model.means_[0], model.means_[1]
share = np.linspace(0.0, 1.0, 401)
proba = model.predict_proba(a + share[:, np.newaxis] * (b - a))

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for k in np.flatnonzero(proba.max(axis=0) > 0.01):
    axes.plot(share, proba[:, k], color=f"C{k}", label=f"component {k}")
axes.set(
    xlabel="from the mean of component 0 (left) to that of component 1 (right)",
    ylabel="probability of the component",
)
axes.legend(loc="center left", fontsize="small")

# %%
# The fit went from one component to the five true clusters, the weights are within a percentage point of
# the true shares, and the cluster of a row is uncertain only in a narrow zone between two clusters.

plt.show()
