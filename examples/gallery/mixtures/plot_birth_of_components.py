"""
Births, lap by lap
==================

A fit starts from one component. In each lap births divide components, and merges and deletes tidy up. The
panels show the mixture after each of the first laps: one, ten, then a few more than the 24 clusters, and
merges take the superfluous ones away.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inspection import ComponentsDisplay, ConvergenceDisplay

# %%
# A spiral of slanted clusters
# ----------------------------

rng = np.random.default_rng(0)
N_CLUSTERS, N_ROWS = 24, 80
parts = []
for i in range(N_CLUSTERS):
    angle, radius = 0.55 * i, 2.0 + 0.6 * i
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    rows = rng.normal(size=(N_ROWS, 2)) * [0.25, 0.08 * radius]
    parts.append(radius * along + rows @ [along, across])
X = np.concatenate(parts)

# %%
# The same fit, ended after some laps
# -----------------------------------
# With the same seed a longer fit goes the same way. That these fits have not converged is meant, and the
# warning that says so is ignored. Components are numbered by weight in each panel, so that colours tell the
# components of one panel apart and do not last from one panel to the next. Ellipses hold what lies within
# two standard deviations.

figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for lap, place in zip((1, 2, 3, 4), axes.flat, strict=True):
        model = DPMixtureVB(max_iter=lap, tol=0.0, random_state=0).fit(X)
        display = ComponentsDisplay.from_estimator(model, X, ax=place)
        display.axes_[0].set_title(f"lap {lap}: {model.n_components_} components")

# %%
# The whole fit
# -------------

model = DPMixtureVB(random_state=0).fit(X)
ConvergenceDisplay.from_estimator(model)
print(f"{N_CLUSTERS} clusters")
for lap in model.history_:
    print(f"lap {lap.lap}: {lap.n_components} components")

# %%
# Two laps with births are enough to go from 1 to 26 components, and two merges in the next two laps leave
# the 24 clusters of the spiral. Births add several components at once: nine in the first of these laps, and
# sixteen in the second.

plt.show()
