"""MNIST's clusters, digit by digit: the means of all that were found from a single one.

Needs ``mnist_pca50.npz`` in the folder that SKLEARN_BNP_DATA names (see quickstart.py), and falls
back to the digits that come with scikit-learn. Picture: mnist_clusters.png.

    python examples/mnist_clusters.py [--rows 20000]
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from quickstart import bundled_digits, majority_digits, mnist, mnist_file

from sklearn_bnp import DPMixtureVB


def draw_clusters(model, images, labels, output):
    """A line for each digit: means of its clusters, heaviest first; below, K and ELBO by lap."""
    digits = images.digit_train
    majority = majority_digits(labels, digits, model.n_components_)
    pure = [np.mean(digits[labels == k] == majority[k]) for k in range(model.n_components_)]
    n_columns = max(8, np.bincount(majority).max())
    figure = plt.figure(figsize=(0.75 * n_columns + 1.0, 13.0), layout="constrained")
    means, laps = figure.subfigures(2, 1, height_ratios=[5, 1])
    axes = means.subplots(10, n_columns, squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    pictures = images.pictures(model.means_)
    for digit, line in enumerate(axes):
        clusters = np.flatnonzero(majority == digit)
        for axis, k in zip(line, clusters, strict=False):
            axis.imshow(pictures[k], cmap="gray_r", vmin=0, vmax=pictures.max())
            axis.set_title(f"{np.sum(labels == k)}\n{pure[k]:.0%}", fontsize=8, pad=2)
        line[0].text(
            -0.5, 0.5, str(digit), transform=line[0].transAxes, fontsize=16, ha="right", va="center"
        )
    means.suptitle(
        f"{images.name}: {model.n_components_} clusters of {len(labels)} images, found from 1\n"
        "mean, number of images, share of them that show the line's digit",
        fontsize=11,
    )
    draw_laps(laps, model, len(labels))
    figure.savefig(output, dpi=100)
    plt.close(figure)


def draw_laps(figure, model, n_rows):
    """K and the ELBO by lap, side by side; the ELBO of the first lap would be off the scale."""
    count, bound = figure.subplots(1, 2)
    numbers = np.array([lap.lap for lap in model.history_])
    count.step(numbers, [lap.n_components for lap in model.history_], where="post")
    count.set(xlabel="lap", ylabel="components K", ylim=(0, None), xlim=(1, numbers[-1]))
    bound.plot(numbers[1:], np.array(model.lower_bounds_[1:]) / n_rows, color="C3")
    bound.set(xlabel="lap", ylabel="ELBO, nats an image", xlim=(1, numbers[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="training images of MNIST")
    options = parser.parse_args()
    path = mnist_file()
    images = bundled_digits() if path is None else mnist(path, options.rows)
    model = DPMixtureVB(random_state=0, verbose=1).fit(images.train)
    labels = model.predict(images.train)
    majority = majority_digits(labels, images.digit_train, model.n_components_)
    agreement = np.mean(majority[model.predict(images.test)] == images.digit_test)
    print(f"{images.name}: {model.n_components_} clusters in {model.n_iter_} laps")
    print(f"heldout images whose cluster is of their digit: {agreement:.1%}")
    draw_clusters(model, images, labels, "mnist_clusters.png")
    print("picture: mnist_clusters.png")


if __name__ == "__main__":
    main()
