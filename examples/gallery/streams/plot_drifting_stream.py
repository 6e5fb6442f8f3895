"""
A stream that drifts
====================

Chunks of rows come one after another; one cluster moves, one ends and one appears. A model that remembers
the latest five chunks (``max_batches=5``) follows, and its names of components say what is new. A model
that adds up all chunks keeps the cluster that ended and the trail of the one that moves, and predicts the
next chunk worse.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_bnp import DPMixtureVB

# %%
# The stream
# ----------


def chunk(t, rng, n_rows=300):
    """Rows of one time: the first cluster moves, the second ends, the third appears."""
    centers = np.array([[-6.0 + 0.4 * t, -4.0], [6.0, 5.0], [-6.0, 6.0]])
    there = [0] + [1] * (t < 15) + [2] * (t >= 10)
    return centers[rng.choice(there, n_rows)] + rng.normal(size=(n_rows, 2))


# %%
# Learning
# --------
# Each chunk is scored before it is learned. Colours are the names of components, ``component_ids_``: they
# last, while positions change with the weights. Crosses are the means that the window knows.

rng = np.random.default_rng(0)
window = DPMixtureVB(max_batches=5, random_state=0)
everything = DPMixtureVB(memoize=False, random_state=0)
scores = {"latest five chunks": [], "all chunks": []}
found = {name: [] for name in scores}
colour_of = {}
shown = (4, 12, 17, 27)

figure, axes = plt.subplots(2, 2, figsize=(8, 6.4), sharex=True, sharey=True, layout="constrained")
for t in range(28):
    X = chunk(t, rng)
    for name, model in zip(scores, (window, everything), strict=True):
        scores[name].append(model.score(X) if t else np.nan)
        model.partial_fit(X)
        found[name].append(model.n_components_)
    if t in shown:
        panel = axes.flat[shown.index(t)]
        labels = window.predict(X)
        for k, component in enumerate(window.component_ids_):
            colour = colour_of.setdefault(component, f"C{len(colour_of) % 10}")
            panel.scatter(*X[labels == k].T, s=6, color=colour, linewidths=0)
            panel.plot(
                *window.means_[k], "P", color=colour, mec="k", ms=10, label=f"name {component}"
            )
        panel.set_title(f"chunk {t}: {window.n_components_} components in the window")
        panel.legend(loc="lower right", fontsize="small")
for panel in axes[1]:
    panel.set_xlabel("feature 0")
for panel in axes[:, 0]:
    panel.set_ylabel("feature 1")

# %%
# Scores and numbers of components
# --------------------------------

figure, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
for i, name in enumerate(scores):
    axes[0].plot(scores[name], color=f"C{i}", label=name)
    axes[1].plot(found[name], color=f"C{i}", drawstyle="steps-mid")
    print(f"{name}: mean score of the last ten chunks {np.mean(scores[name][-10:]):.2f}")
for panel in axes:
    panel.axvline(10, color="0.6", ls=":", label="one appears")
    panel.axvline(15, color="0.6", ls="--", label="one ends")
axes[0].set_ylabel("score before learning")
axes[0].legend(loc="lower left", fontsize="small")
axes[1].set(xlabel="chunk", ylabel="components")
axes[1].yaxis.get_major_locator().set_params(integer=True)

# %%
# Both models find the new cluster in its first chunk, which scores so badly that it cannot be missed. The
# window forgets the cluster that ended once its last chunk has left, and its last ten scores are on average
# one nat a row better. A name is not for ever: the moving cluster has another name in the second panel than
# in the first. Its mean in the window lags behind the latest chunk by about a unit.

plt.show()
