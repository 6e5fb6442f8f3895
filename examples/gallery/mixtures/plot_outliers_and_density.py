"""
Density and outliers
====================

``score_samples`` is the logarithm of the density at each row. Contours of it are a map of where rows are
common, and the rows that fit worst are candidates for outliers. With 20 rows of noise among 1000, 17 of the
20 rows that fit worst are noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import precision_recall_curve

from sklearn_bnp import DPMixtureVB

# %%
# Two moons, and rows of noise anywhere.

rng = np.random.default_rng(0)
N_NOISE = 20
moons, _ = make_moons(1000, noise=0.06, random_state=0)
noise = rng.uniform([-1.8, -1.3], [2.8, 1.8], size=(N_NOISE, 2))
X = np.concatenate([moons, noise])
is_noise = np.arange(len(X)) >= len(moons)

# %%
# The fit has several components for each moon. They are no clusters, but together they describe the
# density.

model = DPMixtureVB(random_state=0).fit(X)
log_density = model.score_samples(X)
worst = np.argsort(log_density)[:N_NOISE]
print(f"{model.n_components_} components")
print(f"of the {N_NOISE} rows that fit worst, {is_noise[worst].sum()} are noise")

# %%
# The density, with a ring about each of the rows that fit worst.

side = np.linspace(-1.9, 2.9, 160), np.linspace(-1.4, 1.9, 120)
grid = np.stack(np.meshgrid(*side), axis=-1)
values = model.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])

figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
levels = np.linspace(-8, 1, 10)
filled = axes.contourf(*side, values, levels=levels, cmap="Blues", extend="both")
figure.colorbar(filled, label="log density (nats)")
axes.scatter(*moons.T, s=4, color="0.25", linewidths=0, label="moons")
axes.scatter(*noise.T, s=22, color="C1", linewidths=0, label="noise")
axes.scatter(*X[worst].T, s=90, facecolors="none", edgecolors="C3", label="20 that fit worst")
axes.set(xlabel="feature 0", ylabel="feature 1")
axes.legend(loc="lower left")

# %%
# Where to draw the line
# ----------------------
# Precision is the part of the rows below a threshold that are noise. Recall is the part of the noise that
# is below it. A single Gaussian is the other extreme: it knows only how far a row is from the centre.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
single = DPMixtureVB(proposals=None).fit(X)
for name, fitted, colour in (("DPMixtureVB", model, "C0"), ("one Gaussian", single, "C2")):
    precision, recall, _ = precision_recall_curve(is_noise, -fitted.score_samples(X))
    axes.plot(recall, precision, color=colour, drawstyle="steps-post", label=name)
axes.set(xlabel="recall", ylabel="precision", ylim=(0, 1.03))
axes.legend(loc="lower left")

# %%
# Of the 20 rows that fit worst 17 are noise; noise that lies on a moon cannot be told from it. One Gaussian
# finds only what is far from the centre. The picture also shows a limit: a few rows of noise that lie
# together become a component of their own, which makes the density about them higher than it should be.

plt.show()
