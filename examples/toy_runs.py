"""Two toy problems from one component: how K and the ELBO grow, and what is found.

Eight arms of an asterisk in the plane, and patches of 5 x 5 pixels with an edge or a corner, which
differ in their covariances alone. Pictures: toy_asterisk.png and toy_patches.png.

    python examples/toy_runs.py
"""

from __future__ import annotations

import warnings

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, GaussianObservation

# ------------------------------------------------------------------ data


def asterisk(n_rows, rng):
    """Eight thin arms around the origin; every other one has twice the rows."""
    labels = rng.choice(8, n_rows, p=np.array([1, 2] * 4) / 12)
    angle = labels * np.pi / 4
    along = 1.0 + 0.25 * rng.standard_normal(n_rows)
    across = 0.025 * rng.standard_normal(n_rows)
    x = along * np.cos(angle) - across * np.sin(angle)
    y = along * np.sin(angle) + across * np.cos(angle)
    return np.column_stack([x, y]), labels


def patch_covariances():
    """(8, 25, 25): patches of two leaves parted by one of four edges or of four corners.

    Each leaf has a gray level, a shading and some texture of its own: nothing crosses the edge.
    """
    row, col = (index.ravel() for index in np.mgrid[:5, :5])
    leaves = [col < 2, row < 2, row <= col, row + col <= 4]
    leaves += [r & c for r in (row < 3, row > 1) for c in (col < 3, col > 1)]
    u, v = (row - 2) / 2, (col - 2) / 2
    texture = np.exp(-np.hypot(row[:, None] - row, col[:, None] - col) / 2)
    within = 1.0 + np.outer(u, u) + np.outer(v, v) + 0.02 * texture
    return np.array([(s[:, None] == s) * within + 0.005 * np.eye(25) for s in leaves])


def patches(n_rows, rng):
    """Rows of eight zero-mean components, equally common."""
    roots = np.linalg.cholesky(patch_covariances())
    labels = rng.integers(8, size=n_rows)
    return np.einsum("nij,nj->ni", roots[labels], rng.standard_normal((n_rows, 25))), labels


# ------------------------------------------------------------------ pictures


def draw_laps(count, bound, model, n_rows, n_true):
    """K and the ELBO by lap, in two axes."""
    laps = [lap.lap for lap in model.history_]
    K = [lap.n_components for lap in model.history_]
    count.step(laps, K, "o-", where="post", color="C0")
    count.axhline(n_true, color="gray", ls=":", zorder=0)
    count.text(laps[0], n_true, "true number", va="bottom", color="gray", fontsize=9)
    count.set(ylabel="components K", xticks=laps, xticklabels=[], ylim=(0, 1.25 * max(*K, n_true)))
    count.set_yticks(range(0, max(*K, n_true) + 1, 2))
    bound.plot(laps, np.array(model.lower_bounds_) / n_rows, "o-", color="C3")
    bound.set(xlabel="lap through the data", ylabel="ELBO, nats a row", xticks=laps)


def draw_plane(axis, model, X):
    """Rows in the color of their component, and its ellipse at three standard deviations."""
    colors = plt.get_cmap("tab10")(np.arange(model.n_components_) % 10)
    axis.scatter(*X.T, s=3, c=colors[model.predict(X)], alpha=0.5, linewidths=0)
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 6.0 * np.sqrt(values[::-1])
        axis.add_patch(Ellipse(mean, width, height, angle=angle, fc="none", ec="0.3", lw=0.8))
    axis.set(aspect="equal", xticks=[], yticks=[], xlim=(-2.0, 2.0), ylim=(-2.0, 2.0))


def draw_asterisk(model, X, output):
    """The clusters after each of the first laps, and the laps' figures."""
    n_shown = min(3, model.n_iter_)
    names = [f"lap {n}" for n in range(1, n_shown + 1)]
    figure, axes = plt.subplot_mosaic(
        [[*names, "count"], [*names, "bound"]], figsize=(3.4 * n_shown + 3.6, 3.6),
        layout="constrained",
    )  # fmt: skip
    for n_laps, name in enumerate(names, start=1):
        after = clone(model).set_params(max_iter=n_laps)  # the same seed takes the same path
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            after.fit(X)
        draw_plane(axes[name], after, X)
        axes[name].set_title(f"after {name}: K = {after.n_components_}")
    draw_laps(axes["count"], axes["bound"], model, len(X), 8)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def draw_patches(model, n_rows, rng, output):
    """True and found covariances side by side, patches drawn from what was found, and the laps."""
    true = patch_covariances()
    distance = np.linalg.norm(true[:, np.newaxis] - model.covariances_, axis=(2, 3))
    pairs = np.transpose(linear_sum_assignment(distance))
    # six lines, so that both of the laps' axes are as high as one and a half of the matrices
    lines = [("count", "true"), ("count", "true"), ("count", "found"), ("bound", "found")]
    lines += [("bound", "patch"), ("bound", "patch")]
    figure, axes = plt.subplot_mosaic(
        [[laps, *(f"{line}{i}" for i in range(8))] for laps, line in lines],
        figsize=(13, 4.4), width_ratios=[3] + [1.1] * 8, layout="constrained",
    )  # fmt: skip
    draw_laps(axes.pop("count"), axes.pop("bound"), model, n_rows, 8)
    for axis in axes.values():
        axis.set(xticks=[], yticks=[])
    for i, (t, k) in enumerate(pairs):
        axes[f"true{i}"].imshow(true[t], cmap="RdBu_r", vmin=-3, vmax=3)
        axes[f"found{i}"].imshow(model.covariances_[k], cmap="RdBu_r", vmin=-3, vmax=3)
        axes[f"found{i}"].set_title(f"weight {model.weights_[k]:.3f}", fontsize=9)
        patch = rng.multivariate_normal(np.zeros(25), model.covariances_[k]).reshape(5, 5)
        axes[f"patch{i}"].imshow(patch, cmap="gray")
    axes["true0"].set_ylabel("true\ncovariances")
    axes["found0"].set_ylabel(f"found: {model.n_components_},\nfrom 1")
    axes["patch0"].set_ylabel("a patch\ndrawn from each")
    figure.savefig(output, dpi=110)
    plt.close(figure)


def report(name, model, X, labels):
    """Print what was found."""
    rand = adjusted_rand_score(labels, model.predict(X))
    laps = ", ".join(f"{lap.n_components}" for lap in model.history_)
    print(
        f"{name}: {model.n_components_} clusters in {model.n_iter_} laps, adjusted Rand {rand:.3f}"
    )
    print(f"  K by lap: {laps}")


def main():
    rng = np.random.default_rng(0)
    X, labels = asterisk(5000, rng)
    model = DPMixtureVB(random_state=0).fit(X)
    report("asterisk", model, X, labels)
    draw_asterisk(model, X, "toy_asterisk.png")

    X, labels = patches(20_000, rng)
    observation = GaussianObservation(zero_mean=True)
    model = DPMixtureVB(observation=observation, n_batches=20, random_state=0).fit(X)
    report("patches in 20 batches", model, X, labels)
    draw_patches(model, len(X), rng, "toy_patches.png")
    print("pictures: toy_asterisk.png, toy_patches.png")


if __name__ == "__main__":
    main()
