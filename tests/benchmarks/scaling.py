"""How the cost grows: with N, K and the number of batches, and what the proposals take of it.

The time of one lap of a fixed truncation, (t(6 laps) - t(1 lap)) / 5, memoized, when one of N, K
and the number of batches grows and the others stay. The exponent of a row is that of the growth
since the row before it: log(time ratio) / log(size ratio). Then whole fits from K = 1 at default
settings: the share of their time that is spent in proposals.

Targets: exponents of at most 1.1 for N and K (linear, but for noise); another batch costs the
same whether there are few or many (between the last two counts no more than 1.5 times what it was
between the two before); proposals under half of the time of every fit.

    python -m tests.benchmarks.scaling
"""

from __future__ import annotations

import math

import numpy as np

from sklearn_bnp import DPMixtureVB, GaussianObservation

from . import report
from .generators import gaussians, random_problem, toy_patches
from .kernels import LAPS, noisy_resp

D = 25


class Laps:
    """Seconds of one lap at a size."""

    def __init__(self, threads: int, repeat: int) -> None:
        self.threads, self.repeat = threads, repeat

    def __call__(self, n_rows: int, n_components: int, n_batches: int) -> float:
        X, y = gaussians(0, "", n_rows, D, n_components, separation=4.0)[1:]
        model = DPMixtureVB(
            n_components=n_components,
            init_params=noisy_resp(y, n_components),
            proposals=None,
            n_batches=n_batches,
            tol=0.0,
            random_state=0,
            n_jobs=self.threads,
        )
        return report.seconds_per_iteration(model, X, LAPS, self.repeat)


def exponents(sizes: list[int], seconds: list[float]) -> list[float]:
    """Of the growth from each size to the next."""
    growth = zip(sizes, sizes[1:], seconds, seconds[1:], strict=False)
    return [math.log(t1 / t0) / math.log(s1 / s0) for s0, s1, t0, t1 in growth]


def grow(lap: Laps, what: str, sizes: list[int], fixed: dict[str, int]) -> tuple:
    """Print the times when ``what`` grows; return the target's line."""
    seconds = [lap(**{**fixed, what: size}) for size in sizes]
    powers = exponents(sizes, seconds)
    rows = [
        [size, f"{second:.4f}", report.number(power, ".2f")]
        for size, second, power in zip(sizes, seconds, [None, *powers], strict=True)
    ]
    rest = ", ".join(f"{name} = {value}" for name, value in fixed.items() if name != what)
    report.print_table([what, "s a lap", "exponent"], rows, title=f"{what} grows; {rest}")
    overall = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])
    return (f"growth with {what}", f"size^{overall:.2f}", "<= 1.1", overall <= 1.1)


def grow_batches(lap: Laps, sizes: list[int], fixed: dict[str, int]) -> tuple:
    """Print the times when the same rows come in more batches; return the target's line."""
    seconds = [lap(**{**fixed, "n_batches": size}) for size in sizes]
    added = np.diff(seconds) / np.diff(sizes)
    rows = [
        [size, f"{second:.4f}", report.number(1e3 * cost, ".3f")]
        for size, second, cost in zip(sizes, seconds, [np.nan, *added], strict=True)
    ]
    rest = ", ".join(f"{name} = {value}" for name, value in fixed.items() if name != "n_batches")
    report.print_table(
        ["n_batches", "s a lap", "ms a batch added"], rows, title=f"n_batches grows; {rest}"
    )
    figure = f"{1e3 * added[-1]:.3f} ms"
    if added.size < 2:
        return ("one batch more", figure, "-", None)
    limit = 1.5 * added[-2]
    return ("one batch more", figure, f"<= {1e3 * limit:.3f} ms, 1.5 x before", added[-1] <= limit)


def shares(threads: int, seeds: int, n_rows: int) -> list[tuple]:
    """Whole fits at default settings; the targets' lines."""
    zero_mean = GaussianObservation(zero_mean=True)
    fits = {
        f"toy patches {n_rows}": (
            lambda seed: toy_patches(seed, n_rows),
            {"observation": zero_mean, "batch_size": 1000},
        ),
        f"30 clusters in 10-D, {n_rows}": (
            lambda seed: gaussians(seed, "", n_rows, 10, 30, separation=6.0),
            {},
        ),
        "random problems": (random_problem, {}),
    }
    rows, targets = [], []
    for name, (make, params) in fits.items():
        spent, seconds, ks, laps = [], [], [], []
        for seed in range(seeds):
            model = DPMixtureVB(random_state=seed, n_jobs=threads, **params)
            clock = report.fit_timed(model, make(seed).X)
            spent.append(report.proposal_share(model, clock.wall))
            seconds.append(clock.wall)
            ks.append(model.n_components_)
            laps.append(model.n_iter_)
        rows.append(
            [
                name,
                report.tally(ks),
                f"{report.median(laps):.0f}",
                f"{report.median(seconds):.2f}",
                f"{report.median(spent):.2f}",
                f"{max(spent):.2f}",
            ]
        )
        share = report.median(spent)
        targets.append((f"share, {name}", f"{share:.2f}", "< 0.5", share < 0.5))
    report.print_table(
        ["fit", "K over seeds", "laps", "wall s", "share", "most"], rows, title="Proposals"
    )
    return targets


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument(
        "--n-sizes", type=int, nargs="+", default=[25_000, 50_000, 100_000, 200_000]
    )
    parser.add_argument("--k-sizes", type=int, nargs="+", default=[10, 20, 40, 80])
    parser.add_argument("--batch-counts", type=int, nargs="+", default=[1, 10, 100, 500, 1000])
    parser.add_argument("--rows", type=int, default=50_000, help="N when others grow")
    parser.add_argument("--components", type=int, default=20, help="K when others grow")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3, help="whole fits a case")
    args = parser.parse_args()
    limits = report.start("scaling", args.threads)

    lap = Laps(args.threads, args.repeat)
    fixed = {"n_rows": args.rows, "n_components": args.components, "n_batches": 10}
    targets = [
        grow(lap, "n_rows", args.n_sizes, fixed),
        grow(lap, "n_components", args.k_sizes, fixed),
        grow_batches(lap, args.batch_counts, fixed),
        *shares(args.threads, args.seeds, args.rows),
    ]
    report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
