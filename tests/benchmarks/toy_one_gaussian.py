"""One 1-D Gaussian, five components to start from: where merges stall (thesis Sec. 4.4.1).

N = 25,000 standard normals, concentration 10, the full-data algorithm. In the thesis' Fig. 4.5
merges of pairs alone stall at 3 components and deletes leave 1 (ours of pairs
stall at 5). The recipes found that pairs stall at 6 to 8 when births run too, and that merges of
several at once are what solves it.

Each row of the table is one choice of proposals under one prior: ``thesis`` has prior variance 1
(degrees of freedom 3, scale 1), ``default`` what the package takes from the data.

Targets: pairwise merges alone 3 (more than 1: the stall is real); pairwise merges and deletes 1;
default 1.

    python -m tests.benchmarks.toy_one_gaussian
"""

from __future__ import annotations

from sklearn_bnp import Delete, DPMixtureVB, GaussianObservation, Merge

from . import report
from .generators import one_gaussian_1d

PAIRS_ONLY = {"max_members": 2}
"""Settings of `Merge` under which it merges two at a time and no more (as the thesis does)."""

PRIORS = {
    "thesis": {"degrees_of_freedom_prior": 3.0, "covariance_prior": [[1.0]]},
    "default": {},
}


def choices() -> list[tuple[str, tuple | None, str]]:
    """(what, proposals, the K to expect); every one is run under both priors."""
    pairs = Merge(**PAIRS_ONLY)
    return [
        ("none", None, "-"),
        ("pairwise merges", (pairs,), "3"),
        ("pairwise merges, deletes", (pairs, Delete()), "1"),
        ("merge", ("merge",), "-"),
        ("merge, delete", ("merge", "delete"), "1"),
        ("birth, merge, delete", ("birth", "merge", "delete"), "1"),
    ]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--max-iter", type=int, default=200)
    args = parser.parse_args()
    limits = report.start("toy_one_gaussian", args.threads)

    rows, counts = [], {}
    for prior, settings in PRIORS.items():
        for what, proposals, target in choices():
            ks, laps, cpu, bounds = [], [], [], []
            for seed in range(args.seeds):
                model = DPMixtureVB(
                    n_components=5,
                    observation=GaussianObservation(**settings),
                    weight_concentration_prior=10.0,
                    learning_method="full",
                    proposals=proposals,
                    max_iter=args.max_iter,
                    random_state=seed,
                    n_jobs=args.threads,
                )
                X = one_gaussian_1d(seed, args.rows).X
                cpu.append(report.fit_timed(model, X).cpu)
                ks.append(model.n_components_)
                laps.append(model.n_iter_)
                bounds.append(model.lower_bound_ / args.rows)
            counts[prior, what] = ks
            rows.append(
                [
                    what,
                    prior,
                    report.tally(ks),
                    target,
                    f"{report.median(laps):.0f}",
                    f"{report.median(cpu):.2f}",
                    f"{report.median(bounds):.5f}",
                ]
            )
    report.print_table(
        ["proposals", "prior", "K over seeds", "target", "laps", "cpu s", "ELBO/N"], rows
    )

    stalled = counts["thesis", "pairwise merges"]
    with_deletes = counts["thesis", "pairwise merges, deletes"]
    default = counts["default", "birth, merge, delete"]
    report.print_targets(
        [
            ("pairs alone stall", report.tally(stalled), "3 (> 1)", min(stalled) > 1),
            ("with deletes", report.tally(with_deletes), "1", set(with_deletes) == {1}),
            ("default", report.tally(default), "1", set(default) == {1}),
        ]
    )
    limits.unregister()


if __name__ == "__main__":
    main()
