"""Cluster images of handwritten digits from a single component, and see what was found.

The images are the 1797 that come with scikit-learn. With ``--mnist`` they are the 70,000 of MNIST,
if the environment variable SKLEARN_BNP_DATA names a folder with ``mnist_pca50.npz``: its principal
components as ``X_train``, ``X_test``, ``components`` and ``mean``, its labels as ``y_train`` and
``y_test``.

The held-out score stands beside that of scikit-learn's BayesianGaussianMixture with as many
components; on MNIST that takes a quarter of an hour, and ``--peer`` asks for it.

    python examples/quickstart.py [--mnist [--peer]] [--output quickstart.png]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import train_test_split

from sklearn_bnp import DPMixtureVB


class Images(NamedTuple):
    """Digits as principal components, with the way back: image = mean + row @ components."""

    name: str
    train: np.ndarray
    test: np.ndarray
    digit_train: np.ndarray
    digit_test: np.ndarray
    components: np.ndarray
    mean: np.ndarray

    def pictures(self, rows):
        """Images (n, side, side) of rows of principal components."""
        side = int(np.sqrt(len(self.mean)))
        return (self.mean + rows @ self.components).reshape(-1, side, side)


def bundled_digits():
    """scikit-learn's digits, in as many principal components as hold 90 % of their variance."""
    data = load_digits()
    train, test, digit_train, digit_test = train_test_split(
        data.data, data.target, test_size=0.25, random_state=0, stratify=data.target
    )
    pca = PCA(0.9, svd_solver="full").fit(train)
    return Images(
        "scikit-learn's digits", pca.transform(train), pca.transform(test), digit_train, digit_test,
        pca.components_, pca.mean_,
    )  # fmt: skip


def mnist_file():
    """Where MNIST lies, or None."""
    folder = os.environ.get("SKLEARN_BNP_DATA")
    path = Path(folder) / "mnist_pca50.npz" if folder else None
    return path if path is not None and path.is_file() else None


def mnist(path, n_rows=None):
    """The first ``n_rows`` training images of MNIST, and the test images."""
    with np.load(path) as file:
        return Images(
            "MNIST", file["X_train"][:n_rows].astype(np.float32), file["X_test"].astype(np.float32),
            file["y_train"][:n_rows], file["y_test"], file["components"], file["mean"],
        )  # fmt: skip


def majority_digits(labels, digits, n_clusters):
    """The digit that most images of each cluster show."""
    votes = np.zeros((n_clusters, 10), dtype=int)
    np.add.at(votes, (labels, digits), 1)
    return votes.argmax(axis=1)


def draw_means(model, images, majority, output):
    """Means of the clusters as images, heaviest first, each with its weight and majority digit."""
    n_columns = 10 if model.n_components_ <= 40 else 14
    n_lines = -(-model.n_components_ // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(0.9 * n_columns, 1.1 * n_lines + 0.6), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis in axes.flat:
        axis.axis("off")
    colors = plt.get_cmap("tab10")
    pictures = images.pictures(model.means_)
    for k, picture in enumerate(pictures):
        axis = axes.flat[k]
        axis.imshow(picture, cmap="gray_r", vmin=0, vmax=pictures.max())
        title = f"{majority[k]}  {100 * model.weights_[k]:.1f} %"
        axis.set_title(title, fontsize=9, color=colors(majority[k]), pad=2)
    figure.suptitle(
        f"{images.name}: {model.n_components_} clusters, found from one\n"
        "mean of each, with the digit that most of its images show and its weight",
        fontsize=11,
    )
    figure.savefig(output, dpi=120)
    plt.close(figure)


def report(model, seconds, images):
    """Print what was found, and return the majority digit of each cluster."""
    labels, labels_test = model.predict(images.train), model.predict(images.test)
    majority = majority_digits(labels, images.digit_train, model.n_components_)
    made = sum((Counter(lap.accepted) for lap in model.history_), Counter())
    moves = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in made.items())
    vote = [
        np.mean(majority[found] == digits)
        for found, digits in ((labels, images.digit_train), (labels_test, images.digit_test))
    ]
    bound, rand = model.lower_bound_, adjusted_rand_score(images.digit_train, labels)
    print(
        f"\nFound {model.n_components_} clusters, from 1, in {model.n_iter_} laps and "
        f"{seconds:.1f} s: {moves} accepted.\n"
        f"ELBO             {bound:.1f} nats, {bound / len(labels):.3f} an image\n"
        "Agreement with the true digits, of which the fit knew nothing:\n"
        f"  majority vote  {vote[0]:.1%} of the images, {vote[1]:.1%} of the held-out images\n"
        f"  adjusted Rand  {rand:.3f} (1 would be one cluster a digit)"
    )
    return majority


def compare(model, images, with_peer):
    """Print held-out scores of this fit and of scikit-learn's with the same number of components."""
    print("Held-out score, in nats an image, higher is better:")
    print(f"  DPMixtureVB                  {model.score(images.test):.3f}", flush=True)
    if not with_peer:
        return
    peer = BayesianGaussianMixture(n_components=model.n_components_, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(images.train)
    name = f"BayesianGaussianMixture({model.n_components_})"
    print(f"  {name:<28} {peer.score(images.test):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", action="store_true", help="cluster MNIST (a minute or two)")
    parser.add_argument(
        "--peer", action="store_true", help="with --mnist, wait for scikit-learn's fit"
    )
    parser.add_argument("--output", default="quickstart.png", help="the picture's file")
    options = parser.parse_args()
    if options.mnist and mnist_file() is None:
        parser.error("--mnist: set SKLEARN_BNP_DATA to a folder that holds mnist_pca50.npz.")
    images = mnist(mnist_file()) if options.mnist else bundled_digits()
    print(
        f"{images.name}: {len(images.train)} images, {images.train.shape[1]} principal components"
    )

    start = time.perf_counter()
    model = DPMixtureVB(random_state=0, verbose=1).fit(images.train)
    majority = report(model, time.perf_counter() - start, images)
    draw_means(model, images, majority, options.output)
    print(f"Picture          {options.output}")
    compare(model, images, options.peer or not options.mnist)


if __name__ == "__main__":
    main()
