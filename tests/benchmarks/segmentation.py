"""Joint segmentation of 30 images in bounded memory, beside the batch algorithm (Gomes et al., Sec. 4.1).

Pixels are rows (x, y, L, a, b), images are documents. 30 of the 32 tiles of scikit-learn's two
photographs, 53 x 80 pixels each. The batch keeps all rows and learns from all images at once
(``memory_bound=None``, one epoch); the other takes 5 images at a time, and ends with so many clumps.
Both have the same units, priors, tolerance and most topics. The ratio is the paper's, 1 - (F_batch - F) /
|F_batch|, of lower bounds of the same evidence.

--plot PATH draws segmentations of both.

Targets: ratio >= 0.98 at 125 clumps, in less time than the batch; for each subset of images.

    python -m tests.benchmarks.segmentation --plot segmentation.png
"""

from __future__ import annotations

import numpy as np

from sklearn_bnp import GaussianObservation, MemoryBoundedTopicVB

from . import images, report

_STATISTICS = 20  # of a clump in five columns


def fit(X, groups, n_clumps, args, n_groups=None):
    """Model and clock; the batch if ``n_clumps`` is None."""
    n_images = len(np.unique(groups))
    bound = None if n_clumps is None else n_clumps * (_STATISTICS + (n_groups or n_images))
    model = MemoryBoundedTopicVB(
        bound, target_points=len(X), target_documents=n_images, max_document_groups=n_groups,
        observation=GaussianObservation(resolution=None), max_components=args.max_components,
        documents_per_epoch=None if n_clumps is None else 5, tol=args.tol, n_jobs=args.threads,
    )  # fmt: skip
    with report.Clock() as clock:
        model.fit(X, groups=groups)
    return model, clock


def draw(path, pictures, X, groups, models):
    """A column of pictures, and their segmentations by each model in its topics' mean colours."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen = list(range(0, len(pictures), max(1, len(pictures) // 6)))[:6]
    figure, axes = plt.subplots(
        1 + len(models), len(chosen), figsize=(2.2 * len(chosen), 1.6 * (1 + len(models))),
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for column, i in enumerate(chosen):
        axes[0, column].imshow(pictures[i])
    for row, (name, model) in enumerate(models.items(), 1):
        colours = np.random.default_rng(0).permutation(model.n_components_)
        for column, i in enumerate(chosen):
            own = groups == i
            labels = model.predict(X[own], groups=groups[own])
            axes[row, column].imshow(
                colours[labels].reshape(pictures[i].shape[:2]), cmap="nipy_spectral", vmin=0,
                vmax=model.n_components_ - 1, interpolation="nearest",
            )  # fmt: skip
        axes[row, 0].set_ylabel(name)
    for axis in axes.ravel():
        axis.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--clumps", type=int, nargs="+", default=[125, 250, 500])
    parser.add_argument(
        "--groups", type=int, nargs="*", default=[9], help="document groups, at 125 clumps"
    )
    parser.add_argument("--subsets", type=int, default=1)
    parser.add_argument("--step", type=int, default=2, help="take every step-th pixel")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--max-components", type=int, default=100)
    parser.add_argument("--plot")
    args = parser.parse_args()
    limits = report.start("segmentation", args.threads)
    rows, targets, every = [], [], images.colour_tiles(args.step)
    for subset in range(args.subsets):
        chosen = np.random.default_rng(subset).permutation(len(every))[:30]
        pictures = [every[i] for i in chosen]
        X, groups = images.documents(pictures)
        batch, clock = fit(X, groups, None, args)
        rows.append([f"batch {subset}", len(X), batch.n_components_, f"{batch.lower_bound_:.0f}", "",
                     "", f"{clock.cpu:.1f}", f"{clock.wall:.1f}"])  # fmt: skip
        models = {"batch": batch}
        wanted = [(c, None) for c in args.clumps] + [(125, g) for g in args.groups]
        for n_clumps, n_groups in wanted:
            model, own = fit(X, groups, n_clumps, args, n_groups)
            ratio = 1.0 - (batch.lower_bound_ - model.lower_bound_) / abs(batch.lower_bound_)
            name = f"{n_clumps} clumps" + (f", {n_groups} groups" if n_groups else "")
            items = model.n_clumps_ + model.n_singlets_
            rows.append([name, len(X), model.n_components_, f"{model.lower_bound_:.0f}",
                         f"{ratio:.4f}", items, f"{own.cpu:.1f}", f"{own.wall:.1f}"])  # fmt: skip
            models[name] = model
            if n_clumps == 125 and n_groups is None:
                targets.append(
                    (f"subset {subset}: ratio", f"{ratio:.4f}", ">= 0.98", ratio >= 0.98)
                )
                share = own.cpu / clock.cpu
                targets.append(("  time over batch's", f"{share:.2f}", "< 1", share < 1.0))
        if args.plot and subset == 0:
            shown = {name: models[name] for name in list(models)[:2]}
            draw(args.plot, pictures, X, groups, shown)
    report.print_table(["fit", "rows", "K", "F", "ratio", "items", "cpu s", "wall s"], rows)
    report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
