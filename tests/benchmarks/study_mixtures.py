"""The study: every case over many seeds, from default settings, against a fit from the truth.

It reproduces the table of evidence of the recipes (group ``recipes``), shows where the open
failures stand (``open``), and guards against tuning to either (``new``); see cases.py. Of
synthetic cases each seed draws new data; of real ones it changes the fit alone.

Columns: K over the seeds ("+0 x9, -1 x1" is K minus the truth, where the truth varies); in how
many seeds K is an accepted one; mean and least ARI, and the oracle's mean ARI; median laps and
CPU seconds; the worst gap of the ELBO to the oracle's in nats a row (see oracle.py) and in how
many seeds the fit is as good as the oracle (gap >= -0.001); the median share of the time that
proposals took. Targets: every accepted K in all seeds, no gap under -0.001, a share under one
half. What falls short is listed again at the end.

    python -m tests.benchmarks.study_mixtures --cases recipes --seeds 10 --jobs 2 --out study.csv
    python -m tests.benchmarks.study_mixtures --quick

CPU seconds of parallel jobs (``--jobs``) disturb each other by a little; use one job to quote
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from . import report
from .cases import CASES, Case, build, select
from .oracle import fit_oracle

AS_GOOD = -1e-3  # nats a row
COLUMNS = {  # name: width
    "case": -19,
    "K over seeds": -27,
    "found": 6,
    "ARI": 6,
    "least": 6,
    "truth": 6,
    "laps": 5,
    "cpu s": 7,
    "worst gap": 10,
    "as good": 8,
    "share": 6,
    "target": -18,
}


class Run(NamedTuple):
    case: str
    seed: int
    n_rows: int
    n_features: int
    n_true: int
    n_components: int
    ari: float
    laps: int
    cpu: float
    wall: float
    proposal_share: float
    lower_bound: float
    oracle_lower_bound: float
    oracle_n_components: int
    oracle_ari: float
    gap: float


class Failure(NamedTuple):
    case: str
    seed: int
    error: str
    skipped: bool


def run(name: str, seed: int, threads: int) -> Run | Failure:
    """One case, one seed: the fit and its oracle."""
    case = CASES[name]
    try:
        with threadpool_limits(limits=threads):
            data = case.make(seed)
            model = build(case, seed, n_jobs=threads)
            clock = report.fit_timed(model, data.X)
            labels = model.predict(data.X)
            oracle = fit_oracle(case, data, seed)
    except report.MissingData as missing:
        return Failure(name, seed, str(missing), skipped=True)
    except Exception as error:  # a study reports what failed and goes on
        return Failure(name, seed, f"{type(error).__name__}: {error}", skipped=False)
    n_rows, n_features = data.X.shape
    return Run(
        case=name,
        seed=seed,
        n_rows=n_rows,
        n_features=n_features,
        n_true=np.unique(data.y[data.y >= 0]).size,
        n_components=model.n_components_,
        ari=report.ari(data.y, labels),
        laps=model.n_iter_,
        cpu=clock.cpu,
        wall=clock.wall,
        proposal_share=report.proposal_share(model, clock.wall),
        lower_bound=model.lower_bound_,
        oracle_lower_bound=oracle.lower_bound,
        oracle_n_components=oracle.n_components,
        oracle_ari=oracle.ari,
        gap=oracle.gap(model.lower_bound_, n_rows),
    )


def all_runs(cases: list[Case], n_seeds: int, jobs: int, threads: int) -> Iterator[Run | Failure]:
    """In order of cases, then seeds, as they become known."""
    tasks = itertools.product([case.name for case in cases], range(n_seeds))
    return Parallel(n_jobs=jobs, return_as="generator")(
        delayed(run)(name, seed, threads) for name, seed in tasks
    )


def n_found(case: Case, runs: list[Run]) -> int | None:
    """In how many runs K is one of those accepted; None if the case has no right K."""
    if case.accept is None:
        return None
    return sum(r.n_components in case.accept for r in runs)


def shortfalls(case: Case, runs: list[Run]) -> list[str]:
    """What this case misses of its targets."""
    found, worst = n_found(case, runs), min(r.gap for r in runs)
    share = report.median(r.proposal_share for r in runs)
    missed = []
    if found is not None and found < len(runs):
        missed.append(f"K found {found}/{len(runs)}")
    if worst < AS_GOOD:
        missed.append(f"worst gap {worst:.4f}")
    if share >= 0.5:
        missed.append(f"share {share:.2f}")
    return missed


def summary(case: Case, runs: list[Run]) -> list[str]:
    """The cells of a case's line."""
    if len({r.n_true for r in runs}) == 1:
        tally = report.tally(r.n_components for r in runs)
    else:
        tally = "truth " + report.tally(f"{r.n_components - r.n_true:+d}" for r in runs)
    found = n_found(case, runs)
    return [
        case.name,
        tally,
        "-" if found is None else f"{found}/{len(runs)}",
        f"{np.mean([r.ari for r in runs]):.3f}",
        f"{min(r.ari for r in runs):.3f}",
        f"{np.mean([r.oracle_ari for r in runs]):.3f}",
        f"{report.median(r.laps for r in runs):.0f}",
        f"{report.median(r.cpu for r in runs):.2f}",
        f"{min(r.gap for r in runs):.5f}",
        f"{sum(r.gap >= AS_GOOD for r in runs)}/{len(runs)}",
        f"{report.median(r.proposal_share for r in runs):.2f}",
        case.target,
    ]


def print_line(cells) -> None:
    """A line of the live table."""
    widths = COLUMNS.values()
    parts = [
        str(c).rjust(w) if w > 0 else str(c).ljust(-w) for c, w in zip(cells, widths, strict=True)
    ]
    print(" ".join(parts).rstrip(), flush=True)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--cases", nargs="+", help="names of cases or groups (all)")
    parser.add_argument("--seeds", type=int, help="how many seeds, 0 to n - 1 (10; quick: 2)")
    parser.add_argument("--quick", action="store_true", help="2 seeds, no slow case")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time (1)")
    parser.add_argument("--out", help="write every run to this CSV file")
    args = parser.parse_args()
    cases = select(args.cases, args.quick)
    n_seeds = args.seeds or (2 if args.quick else 10)
    limits = report.start(f"study_mixtures, {n_seeds} seeds, {args.jobs} jobs", args.threads)

    print()
    print_line(COLUMNS)
    print("-" * sum(abs(width) + 1 for width in COLUMNS.values()))
    done: list[Run] = []
    missed: list[str] = []
    outcomes = all_runs(cases, n_seeds, args.jobs, args.threads)
    for case in cases:
        here = list(itertools.islice(outcomes, n_seeds))
        runs = [r for r in here if isinstance(r, Run)]
        failures = [r for r in here if isinstance(r, Failure)]
        if runs:
            print_line(summary(case, runs))
            missed += [f"{case.name}: {', '.join(m)}" for m in [shortfalls(case, runs)] if m]
        if failures:
            what = "skipped" if failures[0].skipped else f"FAILED in {len(failures)} seeds"
            print(f"{case.name} {what}: {failures[0].error}", flush=True)
            missed += [] if failures[0].skipped else [f"{case.name}: {failures[0].error}"]
        done += runs
    print(f"\nShort of the target: {len(missed)} of {len(cases)} cases", *missed, sep="\n  ")
    if args.out and done:
        report.write_csv(args.out, done)
        print(f"{len(done)} runs written to {args.out}")
    limits.unregister()


if __name__ == "__main__":
    main()
