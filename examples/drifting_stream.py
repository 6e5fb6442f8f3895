"""A drifting stream: one cluster moves, one ends, one appears; a window keeps up, and all data do not.

Thirty chunks of 500 rows come one after another. One model remembers the latest five (``max_batches``),
another all of them. Colours are the names of components (``component_ids_``), which last until a component
is split. The score of a chunk before it is learned shows what is new. Picture: drifting_stream.png.

    python examples/drifting_stream.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np

from sklearn_bnp import DPMixtureVB

N_CHUNKS, N_ROWS, WINDOW = 30, 500, 5
SHOWN = (4, 12, 20, 29)


def chunk(t, rng):
    """Rows of one time: the first cluster moves, the second ends, the third appears."""
    centers = np.array([[-6.0 + 0.4 * t, -4.0], [6.0, 5.0], [-6.0, 6.0]])
    there = [0] + [1] * (t < 15) + [2] * (t >= 10)
    return centers[rng.choice(there, N_ROWS)] + rng.standard_normal((N_ROWS, 2))


def draw(axis, model, X, t):
    """Rows in the colours of their components' names."""
    names = model.component_ids_[model.predict(X)]
    axis.scatter(*X.T, s=3, c=names % 10, cmap="tab10", vmin=0, vmax=10, linewidths=0)
    axis.plot(*model.means_.T, "k+", ms=9)
    axis.set(title=f"chunk {t}: K = {model.n_components_}", xlim=(-12, 12), ylim=(-9, 11))


def main():
    rng = np.random.default_rng(0)
    window = DPMixtureVB(max_batches=WINDOW, random_state=0)
    everything = DPMixtureVB(memoize=False, random_state=0)
    scores = {"latest five chunks": [], "all chunks": []}
    found = {name: [] for name in scores}
    figure, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
    for t in range(N_CHUNKS):
        X = chunk(t, rng)
        for name, model in zip(scores, (window, everything), strict=True):
            scores[name].append(model.score(X) if t else np.nan)  # before it is learned
            model.partial_fit(X)
            found[name].append(model.n_components_)
        if t in SHOWN:
            draw(axes[0, SHOWN.index(t)], window, X, t)
        print(f"chunk {t:2d}: K {window.n_components_} names {window.component_ids_.tolist()}")
    for axis in axes[1]:
        axis.remove()
    grid = axes[1, 0].get_gridspec()
    for part, values, label in (
        (grid[1, :2], scores, "score before learning"),
        (grid[1, 2:], found, "components"),
    ):
        axis = figure.add_subplot(part)
        for name in values:
            axis.plot(values[name], label=name)
        axis.set(xlabel="chunk", ylabel=label)
        axis.legend(loc="lower right" if values is scores else "upper left")
    figure.savefig("drifting_stream.png", dpi=110)
    print("picture: drifting_stream.png")


if __name__ == "__main__":
    main()
