"""Toy sequences: 32 of 1000 steps, eight Gaussian states in 2-D, eight batches (thesis Sec. 6.6.1).

From K = 1, 50 and 100, sticky and not; each seed draws new data. --stay .9 makes states change more
often, --features 4 is another dimension.

Targets: 8 states and a Hamming distance of at most .001 on every seed of every setting, the 8 within 20
laps (more laps may show that nothing is left to do); under 1 s from K = 1 on one core. Known figures:
the prototype, in full batch, 1 to 3 s.

    python -m tests.benchmarks.toy_hmm
"""

from __future__ import annotations

from . import hmm_runs, report
from .chains import toy


def main() -> None:
    parser = hmm_runs.parser(
        __doc__, seeds=10, starts=[1, 50, 100], batches=[8], stickiness=("auto", 0.0)
    )
    parser.add_argument("--stay", type=float, default=0.98)
    parser.add_argument("--features", type=int, default=2)
    args = parser.parse_args()
    limits = report.start("toy_hmm", args.threads)
    made = hmm_runs.run_settings(
        args, lambda seed: toy(seed, stay=args.stay, n_features=args.features)
    )
    targets = []
    for setting, runs in made.items():
        ks, laps = [r.n_components for r in runs], [laps_to_the_end(r) for r in runs]
        worst, seconds = max(r.hamming for r in runs), report.median(r.wall for r in runs)
        timely = seconds < 1.0 if setting.start == 1 else None
        targets += [
            (f"{setting}: K", report.tally(ks), "8 on every seed", set(ks) == {8}),
            (f"{setting}: worst Hamming", f"{worst:.4f}", "<= .001", worst <= 0.001),
            (f"{setting}: most laps to K", str(max(laps)), "<= 20", max(laps) <= 20),
            (f"{setting}: median wall s", f"{seconds:.2f}", "< 1 from 1", timely),
        ]
    report.print_targets(targets)
    limits.unregister()


def laps_to_the_end(run) -> int:
    """Laps after which the number of states was what it stayed."""
    ks = [lap.n_components for lap in run.model.history_]
    return max([i for i, k in enumerate(ks, 1) if k != ks[-1]], default=0) + 1


if __name__ == "__main__":
    main()
