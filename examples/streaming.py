"""A stream in which new clusters appear: `partial_fit` finds them as they come.

Batches of 1000 rows arrive and are never seen again (``memoize=False``: memory does not grow). Two
clusters are there from the start; others set in later, and one of the first two ends. What the
stream has shown stays in the model. Picture: streaming.png.

    python examples/streaming.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from sklearn_bnp import DPMixtureVB

CENTERS = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 10.0], [0.0, -10.0], [12.0, 12.0]])
SPREADS = np.array([[1.5, 1.0], [1.0, 2.0], [0.6, 0.6], [2.0, 0.5], [0.6, 0.6]])
RATES = np.array([1.0, 1.0, 1.0, 0.6, 0.3])
FIRST, LAST = np.array([1, 1, 7, 13, 19]), np.array([18, 24, 24, 24, 24])  # batches, from 1
SHOWN = (6, 7, 13, 19)


def batch_of_rows(number, rng, n_rows=1000):
    """Rows of the clusters that are there in a batch."""
    odds = RATES * (number >= FIRST) * (number <= LAST)
    labels = rng.choice(len(odds), n_rows, p=odds / odds.sum())
    return CENTERS[labels] + SPREADS[labels] * rng.standard_normal((n_rows, 2))


def draw_batch(axis, model, X, number):
    """A batch's rows by component, and all components at three standard deviations."""
    axis.scatter(*X.T, s=3, c=plt.get_cmap("tab10")(model.predict(X)), linewidths=0)
    for mean, covariance, weight in zip(
        model.means_, model.covariances_, model.weights_, strict=True
    ):
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 6.0 * np.sqrt(values[::-1])
        axis.add_patch(Ellipse(mean, width, height, angle=angle, fc="none", ec="0.3", lw=0.8))
        bottom = mean[1] - 3.0 * np.sqrt(covariance[1, 1])
        axis.text(mean[0], bottom - 0.3, f"{weight:.0%}", ha="center", va="top", fontsize=9)
    axis.set(xlim=(-16, 18), ylim=(-16, 18), aspect="equal", xticks=[], yticks=[])
    axis.set_title(f"batch {number}: K = {model.n_components_}")


def main():
    rng = np.random.default_rng(0)
    model = DPMixtureVB(memoize=False, random_state=0)
    figure, axes = plt.subplot_mosaic(
        [list(SHOWN), ["count"] * len(SHOWN)], figsize=(12, 5), height_ratios=[3, 1.6],
        layout="constrained",
    )  # fmt: skip
    numbers, found = np.arange(1, LAST.max() + 1), []
    for number in numbers:
        X = batch_of_rows(number, rng)
        model.partial_fit(X)
        found.append(model.n_components_)
        print(f"batch {number:2d}  K={found[-1]}  ELBO {model.lower_bound_:.1f}")
        if number in SHOWN:
            draw_batch(axes[number], model, X, number)
    there = [np.count_nonzero(number >= FIRST) for number in numbers]
    axes["count"].step(numbers, found, "o-", where="mid", ms=4, label="components found")
    axes["count"].step(numbers, there, "k:", where="mid", label="clusters that have appeared")
    axes["count"].set(
        xlabel="batch", xticks=numbers, yticks=range(6), ylim=(0, max(*there, *found) + 1)
    )
    axes["count"].legend(loc="lower right")
    figure.savefig("streaming.png", dpi=110)
    print("picture: streaming.png")


if __name__ == "__main__":
    main()
