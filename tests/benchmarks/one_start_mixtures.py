"""Whether one start is enough for mixtures: the default fit against a fit from the true labels.

Problems are random and seeded: problem p is the same on every machine. *Gaussian* ones have 3 to 30
clusters in 2 to 20 columns, 500 to 10,000 rows, random covariances and uneven sizes. Nearest clusters
are about 2.5 to 6 apart (in Mahalanobis distance under the mean of both covariances). *Nested* ones are
pools of two or three clusters with nearly the same mean, each 2 to 6 times narrower than the one before.
*Many* rows are Gaussian problems of 30,000 to 200,000 rows, of which proposals see samples. *Crowds* are 30
to 100 clusters in 8 to 30 columns, of 60 to 300 rows each, whose centers are near. Columns with
*spikes* are amounts that are often zero, cut off at a limit, or coded if they are missing. Parts of random
*shapes* (``random_shapes.py``) are not Gaussian, and take several components each; their labels are tiles.

Both fits are of the same model with the same proposals; one starts from one component, the other from
the truth. The *gap* is the bound of the first less that of the second, in nats. Where it is positive,
the start from the truth is the worse one. Tables show how many fits end 5 and 50 nats below, the worst
gap, in how many K is the true one, and CPU seconds, for each seed of the fit and by rows per cluster
and column.

    python -m tests.benchmarks.one_start_mixtures --problems 40
    python -m tests.benchmarks.one_start_mixtures --kind nested --seeds 5
    python -m tests.benchmarks.one_start_mixtures --first 40 --problems 40 --out mine.csv
    python -m tests.benchmarks.one_start_mixtures --problems 24 --set n_nonzero_resp=1

To compare two checkouts, let the second be judged by the bounds from the truth that the first has
written, and be imported from its own folder:

    python -m tests.benchmarks.one_start_mixtures --package ../old --truth mine.csv --out old.csv
"""

from __future__ import annotations

import ast
import csv
import itertools
import sys
import warnings
from typing import NamedTuple

import numpy as np

from . import report
from .generators import Dataset, mixture, random_covariances, separated_means, split_rows
from .random_shapes import shapes

NEAR, FAR = 5.0, 50.0  # nats below
EDGES = (0, 5, 12, 30, np.inf)  # of rows per cluster and column


class Run(NamedTuple):
    problem: int
    seed: int
    n_rows: int
    n_features: int
    n_true: int
    n_components: int
    lower_bound: float
    truth_components: int
    truth_bound: float
    gap: float
    laps: int
    cpu: float
    truth_cpu: float

    @property
    def density(self) -> float:
        """Rows per cluster and column."""
        return self.n_rows / (self.n_true * self.n_features)


# ------------------------------------------------------------------ problems


def gaussian(problem: int, rows=(500, 10_000), name: str = "gaussian") -> Dataset:
    """Random clusters of random spreads and sizes, as near to each other as their separation allows."""
    rng = np.random.default_rng([20_261_122, problem])
    n_clusters, n_features = int(rng.integers(3, 31)), int(rng.integers(2, 21))
    n_rows = int(np.exp(rng.uniform(*np.log(rows))))
    separation, condition = rng.uniform(2.5, 5.5), np.exp(rng.uniform(0.0, np.log(100.0)))
    covariances = random_covariances(rng, n_clusters, n_features, condition)
    covariances *= np.exp(rng.uniform(-0.7, 0.7, n_clusters))[:, None, None]
    means = separated_means(rng, covariances, separation)
    sizes = split_rows(rng, n_rows, n_clusters, rng.uniform(2.0, 20.0), least=n_features + 2)
    return Dataset(name, *mixture(rng, means, covariances, sizes))


def nested(problem: int) -> Dataset:
    """Pools of two or three clusters inside each other; neighbouring pools touch."""
    rng = np.random.default_rng([20_261_123, problem])
    n_features, n_pools = int(rng.integers(2, 9)), int(rng.integers(1, 7))
    wide = random_covariances(rng, n_pools, n_features, 9.0)
    middles = separated_means(rng, wide, rng.uniform(3.0, 6.0))
    means, covariances = [], []
    for middle, outer in zip(middles, wide, strict=True):
        scale = 1.0
        for inner in random_covariances(rng, int(rng.integers(2, 4)), n_features, 9.0):
            means.append(middle + 0.5 * scale * rng.standard_normal(n_features))
            covariances.append(outer if scale == 1.0 else scale**2 * inner)
            scale /= rng.uniform(2.0, 6.0)
    n_rows = int(rng.integers(50, 300)) * len(means)
    sizes = split_rows(rng, n_rows, len(means), 5.0, least=5 * n_features)
    return Dataset("nested", *mixture(rng, np.array(means), np.array(covariances), sizes))


def crowds(problem: int) -> Dataset:
    """Many clusters whose centers are near: what tells them apart are their covariances, in many columns."""
    rng = np.random.default_rng([20_261_127, problem])
    n_clusters, n_features = int(rng.integers(30, 101)), int(rng.integers(8, 31))
    covariances = random_covariances(rng, n_clusters, n_features, np.exp(rng.uniform(1.0, 5.0)))
    scale = np.sqrt(np.trace(covariances, axis1=1, axis2=2).mean() / n_features)
    means = rng.uniform(0.3, 1.0) * scale * rng.standard_normal((n_clusters, n_features))
    n_rows = int(rng.integers(60, 301)) * n_clusters
    sizes = split_rows(rng, n_rows, n_clusters, rng.uniform(3.0, 20.0), least=n_features + 2)
    return Dataset("crowds", *mixture(rng, means, covariances, sizes))


def many(problem: int) -> Dataset:
    """As ``gaussian``, but of more rows than a sample shows; other problems, too."""
    return gaussian(problem + 1000, rows=(30_000, 200_000), name="many")


def spikes(problem: int) -> Dataset:
    """Columns of amounts, in which a part of the rows have the same value: labels say in which columns."""
    rng = np.random.default_rng([20_261_125, problem])
    n_features, n_spikes = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    n_rows = int(np.exp(rng.uniform(*np.log((500, 5000)))))
    shape = rng.uniform(1.0, 6.0, n_features)
    X = rng.gamma(shape, size=(n_rows, n_features)) / shape
    X *= np.exp(rng.uniform(-2.0, 2.0, n_features))
    y = np.zeros(n_rows, dtype=int)
    for i, d in enumerate(rng.permutation(n_features)[:n_spikes]):
        share, where = rng.uniform(0.15, 0.7), rng.integers(3)
        limit = np.quantile(X[:, d], 1.0 - share)
        here = X[:, d] > limit if where == 0 else rng.random(n_rows) < share
        X[here, d] = (limit, 0.0, -1.0)[where]  # cut off, none, or a code
        y += here * 2**i
    y = np.unique(y, return_inverse=True)[1]
    return Dataset("spikes", X, y)


PROBLEMS = {
    "gaussian": gaussian, "nested": nested, "many": many, "crowds": crowds, "spikes": spikes,
    "shapes": shapes,
}  # fmt: skip


# ------------------------------------------------------------------ fits


def fit(data: Dataset, params: dict, **more):
    """A fit and its clock."""
    from sklearn_bnp import DPMixtureVB  # of the package that ``--package`` names

    model = DPMixtureVB(**{**params, **more})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, report.fit_timed(model, data.X)


def from_truth(data: Dataset, params: dict) -> tuple[int, float, float]:
    """Components, bound and CPU seconds of a fit from the true labels."""
    model, clock = fit(data, params, init_params=np.eye(data.y.max() + 1)[data.y], random_state=0)
    return model.n_components_, model.lower_bound_, clock.cpu


def known_truths(path: str) -> dict[int, tuple[int, float, float]]:
    """Problem -> what `from_truth` returned when the file was written."""
    with open(path, newline="", encoding="utf-8") as file:
        return {
            int(row["problem"]): (
                int(row["truth_components"]), float(row["truth_bound"]), float(row["truth_cpu"])
            )
            for row in csv.DictReader(file)
        }  # fmt: skip


def runs_of(problem: int, args, truths: dict) -> list[Run]:
    """The fits of one problem, one for each seed."""
    data, params = PROBLEMS[args.kind](problem), dict(args.set)
    if args.float32:
        data = data._replace(X=data.X.astype(np.float32))
    truth = truths[problem] if problem in truths else from_truth(data, params)
    found = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        model, clock = fit(data, params, random_state=seed)
        found.append(
            Run(
                problem, seed, *data.X.shape, int(data.y.max()) + 1, model.n_components_,
                model.lower_bound_, *truth[:2], model.lower_bound_ - truth[1], model.n_iter_,
                clock.cpu, truth[2],
            )
        )  # fmt: skip
    return found


# ------------------------------------------------------------------ tables


def line(name: str, runs: list[Run]) -> list[str]:
    gaps = np.array([r.gap for r in runs])
    return [
        name,
        str(len(runs)),
        f"{100 * np.mean(gaps < -NEAR):.1f}",
        f"{100 * np.mean(gaps < -FAR):.1f}",
        f"{gaps.min():.1f}",
        f"{np.minimum(gaps, 0).mean():.2f}",
        f"{100 * np.mean([r.n_components == r.n_true for r in runs]):.0f}",
        f"{100 * np.mean([r.truth_components == r.n_true for r in runs]):.0f}",
        f"{np.mean([r.laps for r in runs]):.0f}",
        f"{sum(r.cpu for r in runs):.1f}",
    ]


def show(runs: list[Run]) -> None:
    header = ["fits", "number", f"% {NEAR:.0f} below", f"% {FAR:.0f} below", "worst", "mean below"]
    header += ["% K true", "% K, from truth", "laps", "CPU s"]
    rows = [line(f"seed {s}", [r for r in runs if r.seed == s]) for s in {r.seed: 0 for r in runs}]
    for low, high in itertools.pairwise(EDGES):
        here = [r for r in runs if low <= r.density < high]
        rows += [line(f"{low} to {high} rows", here)] if here else []
    report.print_table(header, [*rows, line("all", runs)])


def setting(text: str) -> tuple[str, object]:
    """``name=value``, where the value is a Python literal or a string."""
    name, value = text.split("=", 1)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--kind", choices=PROBLEMS, default="gaussian")
    parser.add_argument("--problems", type=int, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--only", type=int, nargs="+", help="these problems alone")
    parser.add_argument("--seeds", type=int, default=3, help="fits of each problem (3)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--float32", action="store_true", help="rows in single precision")
    parser.add_argument(
        "--set", type=setting, nargs="+", default=[], metavar="NAME=VALUE",
        help="parameters of both fits, such as n_batches=4",
    )  # fmt: skip
    parser.add_argument("--out", help="write every fit to this CSV file")
    parser.add_argument("--truth", help="CSV file of an earlier run: take the bounds from there")
    parser.add_argument("--package", help="folder of the checkout whose sklearn_bnp is imported")
    parser.add_argument("--quiet", action="store_true", help="no line for each failure")
    args = parser.parse_args()
    if args.package:
        sys.path.insert(0, args.package)
    import sklearn_bnp

    limits = report.start(f"one_start_mixtures, {sklearn_bnp.__file__}", args.threads)
    truths = known_truths(args.truth) if args.truth else {}
    runs: list[Run] = []
    for problem in args.only or range(args.first, args.first + args.problems):
        runs += runs_of(problem, args, truths)
        for r in runs[-args.seeds :]:
            if r.gap < -NEAR and not args.quiet:
                print(
                    f"problem {r.problem} seed {r.seed}: {r.n_rows} x {r.n_features}, K {r.n_components}"
                    f" (true {r.n_true}, from the truth {r.truth_components}), gap {r.gap:.1f}",
                    flush=True,
                )
        if args.out:
            report.write_csv(args.out, runs)
    show(runs)
    limits.unregister()


if __name__ == "__main__":
    main()
