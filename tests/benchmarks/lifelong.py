"""Topics for a long life in bounded memory (Gomes et al., Sec. 4): do they last, fit, and take how long?

Four studies, of which ``--study`` chooses some:

- *memory*: 435 images of 32 x 32 pixels in epochs of ten (SKLEARN_BNP_DATA): CIFAR-10 in gray, rows (x, y,
  gray, its differences to the right and down); or with --crops random crops of scikit-learn's two
  photographs in colour. After each epoch: topics, what is kept as the bound counts it, bytes of all arrays
  that are kept, and what the process has in memory. The batch would keep an assignment of each pixel to each
  topic, 8 N K bytes, besides the rows. --plot PATH draws topics, memory and seconds by epoch.
- *topics*: 20 clusters in four columns, ten documents of 30 rows an epoch, default settings, by memory
  bound and seed; and a *drift*, in which overlapping clusters come for a third of the epochs, and others
  after them. Agreement is the adjusted Rand index on new documents of all clusters, or of the old ones.
- *images*: CIFAR-10, Set12 and patches of BSDS in epochs of five images at 20,000 numbers, beside the batch
  algorithm (``memory_bound=None``) and `HDPTopicVB` from 1, all of the same units and priors. The bound
  of densities may be near 0, where a ratio of bounds says nothing. So there is also the share of what the
  batch gains over one topic.
- *harm*: an outlier and rows that are repeated, beside `HDPTopicVB`, at once and in epochs.

Targets: kept bytes grow by less than 5 % over the last three quarters of the epochs and never exceed the
bound; at least 38 times less than the batch's assignments (the paper's figure); all 20 topics in the end;
agreement on old clusters at most .1 below that of the batch of all epochs; ratio to the batch >= .98, in at
most twice the CPU seconds of `HDPTopicVB`; K no farther from the truth than that of `HDPTopicVB`.

    python -m tests.benchmarks.lifelong --study memory --plot lifelong.png
    python -m tests.benchmarks.lifelong --study topics images harm --seeds 3
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from sklearn_bnp import GaussianObservation, HDPTopicVB, MemoryBoundedTopicVB

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


def memory(args):
    """Images without end: (26), bytes, and the memory of the process by epoch."""
    rng = np.random.default_rng(0)
    make = images.colour_crops if args.crops else images.gray_images
    pictures = make(args.images, rng)
    n_rows = args.images * pictures[0].shape[0] * pictures[0].shape[1]
    model = MemoryBoundedTopicVB(
        args.memory_bound, target_points=n_rows, target_documents=args.images,
        observation=GaussianObservation(resolution=None),
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


def documents(rng, centers, n_documents=10, n_rows=30):
    """Rows, documents and clusters of documents that prefer some of the clusters."""
    groups = np.repeat(np.arange(n_documents), n_rows)
    shares = rng.dirichlet(np.full(len(centers), 0.3), size=n_documents)
    labels = np.array([rng.choice(len(centers), p=shares[j]) for j in groups])
    return centers[labels] + rng.standard_normal((len(labels), centers.shape[1])), groups, labels


def agreement(model, X, groups, labels):
    return report.ari(labels, model.predict(X, groups=groups))


def topics(args):
    """Whether topics last: many epochs of the same clusters, and old clusters after new ones came."""
    rows, targets = [], []
    for seed in range(args.seeds):
        for bound in args.bounds:
            rng = np.random.default_rng(seed)
            centers = 6.0 * rng.standard_normal((20, 4))
            test = documents(np.random.default_rng(1000 + seed), centers, 40, 50)
            model = MemoryBoundedTopicVB(bound)
            with report.Clock() as clock:
                for _ in range(args.epochs):
                    X, groups, _ = documents(rng, centers)
                    model.partial_fit(X, groups=groups)
            found, K = agreement(model, *test), model.n_components_
            rows.append(["apart", seed, bound, K, "", f"{found:.2f}", f"{clock.cpu:.1f}"])
            print(*rows[-1], flush=True)
            targets.append((f"seed {seed}, {bound} numbers: K", f"{K}", "20", K == 20))
        row, target = drift(seed, args.bounds[0])
        rows.append(row)
        targets.append(target)
        print(*row, flush=True)
    header = ["stream", "seed", "numbers", "K", "agreement before", "in the end", "cpu s"]
    report.print_table(header, rows)
    report.print_targets(targets)


def drift(seed, bound):
    """A row of the table and a target: overlapping clusters for 15 epochs, and then others for 30."""
    rng = np.random.default_rng(seed)
    centers = 2.5 * rng.standard_normal((20, 4))
    old = documents(np.random.default_rng(2000 + seed), centers[:10], 40, 50)
    epochs = [documents(rng, centers[:10] if epoch < 15 else centers[10:]) for epoch in range(45)]
    model = MemoryBoundedTopicVB(bound)
    with report.Clock() as clock:
        for epoch, (X, groups, _) in enumerate(epochs):
            model.partial_fit(X, groups=groups)
            if epoch == 14:
                before = agreement(model, *old)
    after = agreement(model, *old)
    batch = MemoryBoundedTopicVB(None)  # the new clusters also overlap with the old ones
    X, groups = together([epoch[:2] for epoch in epochs])
    best = agreement(batch.fit(X, groups=groups), *old)
    row = [
        "drift",
        seed,
        bound,
        model.n_components_,
        f"{before:.2f}",
        f"{after:.2f}",
        f"{clock.cpu:.1f}",
    ]
    name = f"seed {seed}, drift: agreement; of the batch - 0.1"
    return row, (name, f"{after:.2f}", f">= {best - 0.1:.2f}", after >= best - 0.1)


IMAGES = {
    "CIFAR-10": lambda n, rng: images.documents(images.gray_images(n, rng)),
    "Set12": lambda n, rng: images.documents(images.gray_crops(n, rng)),
    "BSDS": images.patches,
}


def pictures(args):
    """The bound beside that of the batch, and the seconds beside those of `HDPTopicVB`."""
    rows, targets = [], []
    observation = GaussianObservation(resolution=None)
    for name, make in IMAGES.items():
        for seed in range(args.seeds):
            X, groups = make(args.n_images, np.random.default_rng(seed))
            test, of_test = make(10, np.random.default_rng(100 + seed))
            models = {
                "bounded": MemoryBoundedTopicVB(
                    20_000, observation=observation, documents_per_epoch=5
                ),
                "batch": MemoryBoundedTopicVB(None, observation=observation),
                "HDPTopicVB": HDPTopicVB(observation=observation, random_state=seed),
            }
            seconds = {}
            for kind, model in models.items():
                with report.Clock() as clock:
                    model.fit(X, groups=groups)
                seconds[kind] = clock.cpu
                score = model.score(test, groups=of_test)
                rows.append([name, seed, len(X), kind, model.n_components_, f"{model.lower_bound_:.0f}",
                             f"{score:.3f}", f"{clock.cpu:.1f}"])  # fmt: skip
                print(*rows[-1], flush=True)
            best, own = models["batch"].lower_bound_, models["bounded"].lower_bound_
            ratio = 1.0 - (best - own) / abs(best)
            one = MemoryBoundedTopicVB(None, observation=observation, max_components=1)
            least = one.fit(X, groups=groups).lower_bound_
            gain = (own - least) / (best - least)
            share = seconds["bounded"] / seconds["HDPTopicVB"]
            targets.append(
                (f"{name}, seed {seed}: ratio", f"{ratio:.3f}", ">= 0.98", ratio >= 0.98)
            )
            targets.append(("  of the gain over one topic", f"{gain:.3f}", ">= 0.98", gain >= 0.98))
            targets.append(("  time over HDPTopicVB's", f"{share:.2f}", "<= 2", share <= 2.0))
    report.print_table(["images", "seed", "rows", "fit", "K", "F", "score", "cpu s"], rows)
    report.print_targets(targets)


def harm(args):
    """Three clusters with an outlier or with each row twenty times, at once and in epochs."""
    rows, targets = [], []
    for seed in range(args.seeds):
        rng = np.random.default_rng(seed)
        centers = np.array([[-6.0, 0.0, 0.0], [6.0, 0.0, 2.0], [0.0, 9.0, -2.0]])
        epochs = [documents(rng, centers, 10, 25)[:2] for _ in range(5)]
        far = [(X.copy(), groups) for X, groups in epochs]
        far[0][0][3] = 1e9
        repeated = [(np.repeat(X, 20, axis=0), np.repeat(groups, 20)) for X, groups in epochs[:2]]
        for name, data in {"outlier": far, "repeated": repeated}.items():
            for how in ("at once", "in epochs"):
                found = []
                for model in (
                    MemoryBoundedTopicVB(5_000),
                    HDPTopicVB(observation="gaussian", random_state=seed),
                ):
                    parts = [together(data)] if how == "at once" else data
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        for X, groups in parts:
                            model.partial_fit(X, groups=groups)
                    found.append(model.n_components_)
                    rows.append([name, how, seed, type(model).__name__, found[-1], len(caught)])
                no_worse = abs(found[0] - 3) <= abs(found[1] - 3)
                targets.append((f"{name} {how}, seed {seed}: K", *map(str, found), no_worse))
    report.print_table(["harm", "given", "seed", "estimator", "K for 3", "warnings"], rows)
    report.print_targets(targets)


def together(epochs):
    """All documents of some epochs as one."""
    groups = [10 * i + own for i, (_, own) in enumerate(epochs)]
    return np.concatenate([X for X, _ in epochs]), np.concatenate(groups)


STUDIES = {"memory": memory, "topics": topics, "images": pictures, "harm": harm}


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--study", nargs="+", choices=list(STUDIES), default=["memory"])
    parser.add_argument("--images", type=int, default=435, help="of the study of memory")
    parser.add_argument("--per-epoch", type=int, default=10)
    parser.add_argument("--memory-bound", type=int, default=60_000)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-components", type=int, default=80)
    parser.add_argument("--crops", action="store_true")
    parser.add_argument("--plot")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=300, help="of the study of topics")
    parser.add_argument("--bounds", type=int, nargs="+", default=[5_000, 20_000, 100_000])
    parser.add_argument("--n-images", type=int, default=20, help="of the study of images")
    args = parser.parse_args()
    limits = report.start("lifelong", args.threads)
    for name in args.study:
        STUDIES[name](args)
    limits.unregister()


if __name__ == "__main__":
    main()
