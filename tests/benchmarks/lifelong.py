"""Hundreds of images in epochs of ten: memory that stays flat (Gomes et al., Sec. 4.1; SKLEARN_BNP_DATA).

435 images of 32 x 32 pixels: CIFAR-10 in gray, rows (x, y, gray, its differences to the right and
down); or with --crops random crops of scikit-learn's two photographs in colour. After each epoch: topics,
what is kept as the bound counts it, bytes of all arrays that are kept, and what the process has in
memory. The batch would keep an assignment of each pixel to each topic, 8 N K bytes, besides the rows.
Images are joined in at most 100 groups: each topic also keeps its rows in each group, which (26) does not
count.

--plot PATH draws topics, memory and seconds by epoch.

Targets: kept bytes grow by less than 5 % over the last three quarters of the epochs and never exceed the
bound; at least 38 times less than the batch's assignments (the paper's figure).

    python -m tests.benchmarks.lifelong --plot lifelong.png
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sklearn_bnp import GaussianObservation, MemoryBoundedTopicVB

from . import images, report


def resident():
    """Bytes that this process has in memory now, and nan where Linux does not tell."""
    path = Path("/proc/self/status")
    if not path.exists():
        return float("nan")
    lines = path.read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def draw(path, model, assignments, held):
    """Topics, bytes and seconds of each epoch."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
    epochs = [record.epoch for record in model.history_]
    axes[0].plot(epochs, [record.n_components for record in model.history_], label="topics")
    axes[0].plot(epochs, [record.n_clumps for record in model.history_], label="clumps")
    axes[0].legend()
    axes[1].semilogy(epochs, assignments, "k:", label="assignments of the batch")
    axes[1].semilogy(epochs, held, label="the whole process")
    axes[1].semilogy(epochs, [record.memory_bytes for record in model.history_], label="kept")
    axes[1].set(title="bytes", ylim=(1e4, None))
    axes[1].legend()
    axes[2].plot(epochs, [record.seconds for record in model.history_])
    axes[2].set(title="seconds", ylim=(0, None))
    for axis in axes:
        axis.set_xlabel("epoch")
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--images", type=int, default=435)
    parser.add_argument("--per-epoch", type=int, default=10)
    parser.add_argument("--memory-bound", type=int, default=60_000)
    parser.add_argument("--groups", type=int, default=100, help="most document groups")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-components", type=int, default=80)
    parser.add_argument("--crops", action="store_true")
    parser.add_argument("--plot")
    args = parser.parse_args()
    limits = report.start("lifelong", args.threads)
    rng = np.random.default_rng(0)
    make = images.colour_crops if args.crops else images.gray_images
    pictures = make(args.images, rng)
    n_rows = args.images * pictures[0].shape[0] * pictures[0].shape[1]
    model = MemoryBoundedTopicVB(
        args.memory_bound, target_points=n_rows, target_documents=args.images,
        max_document_groups=args.groups, observation=GaussianObservation(resolution=None),
        max_components=args.max_components, tol=args.tol, n_jobs=args.threads,
    )  # fmt: skip
    rows, assignments, held = [], [], []
    for first in range(0, args.images, args.per_epoch):
        X, groups = images.documents(pictures[first : first + args.per_epoch])
        model.partial_fit(X, groups=groups)
        record = model.history_[-1]
        assignments.append(8 * model.n_rows_ * model.n_components_)
        held.append(resident())
        rows.append([record.epoch, model.n_rows_, record.n_components, record.n_clumps, record.n_singlets,
                     record.n_document_groups, record.memory, f"{record.memory_bytes / 1e6:.2f}",
                     f"{held[-1] / 1e6:.0f}", f"{assignments[-1] / 1e6:.1f}",
                     f"{record.lower_bound / model.n_rows_:.3f}", f"{record.seconds:.1f}"])  # fmt: skip
        print(*rows[-1], flush=True)
    report.print_table(
        ["epoch", "rows", "K", "clumps", "rows kept", "groups", "(26)", "kept MB", "process MB",
         "batch MB", "F/N", "s"], rows,
    )  # fmt: skip
    late = [record.memory_bytes for record in model.history_[len(rows) // 4 :]]
    growth, saving = max(late) / late[0], assignments[-1] / late[-1]
    most = max(record.memory for record in model.history_)
    report.print_targets(
        [
            ("kept bytes, over a quarter in", f"{growth:.3f}", "<= 1.05", growth <= 1.05),
            ("most kept (26)", f"{most}", f"<= {args.memory_bound}", most <= args.memory_bound),
            ("batch's assignments over kept", f"{saving:.0f}", ">= 38", saving >= 38),
        ]
    )
    if args.plot:
        draw(args.plot, model, assignments, held)
    limits.unregister()


if __name__ == "__main__":
    main()
