"""Clusters whose sizes follow a power law: the Pitman-Yor process beside the Dirichlet process.

Sizes are those of the tables of a Chinese restaurant with two parameters, concentration 1 and a discount;
centres are normal, rows lie around them with variance 1, and both variances are known to the model.
Every fit starts from one component, with the default proposals. A true cluster counts as found if
one component shares at least half of the rows that either has (Jaccard index). Small clusters have
2 to 5 rows.

Priors: Dirichlet processes of concentration 1, and of the one of several that has the highest bound
("best DP", with the seconds of all of them); Pitman-Yor processes of concentration 1, with the discount
learned and with the true one. "Gain" is the bound less that of the Dirichlet process of concentration
1; "score" is of as many rows held out, in nats a row, less the same. Means over seeds.

Targets: on every discount, the learned Pitman-Yor process finds more small clusters than the Dirichlet
process of the same concentration, and its bound is higher in every fit.

    python -m tests.benchmarks.power_law --seeds 5
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sklearn_bnp import (
    DPAllocation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    PitmanYorAllocation,
)

from . import report

N_COLUMNS = 4
SMALL = (2, 5)
CONCENTRATIONS = (1.0, 5.0, 10.0, 20.0, 40.0)


class PowerLaw(NamedTuple):
    """Rows (n, D) and clusters (n,) to learn from, and rows held out."""

    x: np.ndarray
    y: np.ndarray
    held_out: np.ndarray


class Row(NamedTuple):
    """One fit."""

    discount: float
    seed: int
    prior: str
    n_true: int
    n_small: int
    n_components: int
    n_small_found: int
    ari: float
    gain: float
    score: float
    learned: float
    seconds: float


def restaurant(n_rows, discount, rng, concentration=1.0):
    """Tables (n_rows,) of the customers of a Chinese restaurant with two parameters."""
    sizes, tables = np.zeros(n_rows), np.empty(n_rows, dtype=int)
    K = 0
    for i in range(n_rows):
        draw = (i + concentration) * rng.random_sample()
        reach = np.cumsum(sizes[:K] - discount)
        tables[i] = np.searchsorted(reach, draw, side="right")
        sizes[tables[i]] += 1
        K = max(K, tables[i] + 1)
    return tables


def power_law(n_rows, discount, spread, seed):
    """Data of one seed; rows that are held out come from the same process, in random order."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(restaurant(2 * n_rows, discount, rng))
    centres = spread * rng.standard_normal((y.max() + 1, N_COLUMNS))
    x = centres[y] + rng.standard_normal((2 * n_rows, N_COLUMNS))
    return PowerLaw(x[:n_rows], y[:n_rows], x[n_rows:])


def found(y, labels):
    """Sizes of the true clusters of one row and more, and whether each is found."""
    table = np.zeros((y.max() + 1, labels.max() + 1))
    np.add.at(table, (y, labels), 1)
    table = table[table.any(axis=1)]
    sizes = table.sum(axis=1)
    overlap = table / (sizes[:, np.newaxis] + table.sum(axis=0) - table)
    return sizes, overlap.max(axis=1) >= 0.5


def fitted(data, allocation, spread, seed):
    """A fit under a prior of weights, the one of the rows known, and its seconds."""
    observation = FixedVarianceGaussianObservation(
        np.ones(N_COLUMNS),
        mean_prior=np.zeros(N_COLUMNS),
        mean_variance_prior=np.full(N_COLUMNS, spread**2),
    )
    model = DPMixtureVB(
        allocation=allocation, observation=observation, max_iter=300, random_state=seed
    )
    return model, report.fit_timed(model, data.x).cpu


def rows_of(n_rows, discount, spread, seed):
    """A `Row` for each prior."""
    data = power_law(n_rows, discount, spread, seed)
    processes = [fitted(data, DPAllocation(c), spread, seed) for c in CONCENTRATIONS]
    base, best = processes[0][0], max((fit[0] for fit in processes), key=lambda m: m.lower_bound_)
    fits = {
        "DP": processes[0],
        "best DP": (best, sum(seconds for _, seconds in processes)),
        "PY, learned": fitted(data, PitmanYorAllocation(), spread, seed),
        "PY, true": fitted(data, PitmanYorAllocation(discount=discount), spread, seed),
    }
    for name, (model, seconds) in fits.items():
        labels = model.predict(data.x)
        sizes, is_found = found(data.y, labels)
        small = (sizes >= SMALL[0]) & (sizes <= SMALL[1])
        yield Row(
            discount, seed, name, len(sizes), int(small.sum()), model.n_components_,
            int(is_found[small].sum()), report.ari(data.y, labels),
            model.lower_bound_ - base.lower_bound_,
            model.score(data.held_out) - base.score(data.held_out),
            getattr(model, "discount_", float("nan")), seconds,
        )  # fmt: skip


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--discounts", type=float, nargs="+", default=[0.5, 0.6, 0.7])
    parser.add_argument("--spread", type=float, default=6.0, help="standard deviation of centres")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--csv")
    args = parser.parse_args()
    limits = report.start("power_law", args.threads)
    rows = [
        row
        for discount in args.discounts
        for seed in range(args.seeds)
        for row in rows_of(args.rows, discount, args.spread, seed)
    ]
    if args.csv:
        report.write_csv(args.csv, rows)
    cells, more, higher = [], [], []
    for discount in args.discounts:
        small = {}
        for name in dict.fromkeys(row.prior for row in rows):
            group = [row for row in rows if (row.discount, row.prior) == (discount, name)]
            mean = Row(discount, 0, name, *np.mean([row[3:] for row in group], axis=0))
            small[name] = mean.n_small_found
            cells.append(
                [
                    f"{discount:g}, {name}", f"{mean.n_true:.1f}", f"{mean.n_components:.1f}",
                    f"{mean.n_small_found:.1f} of {mean.n_small:.1f}", f"{mean.ari:.3f}",
                    f"{mean.gain:.1f}", f"{mean.score:.3f}", report.number(mean.learned),
                    f"{mean.seconds:.1f}",
                ]
            )  # fmt: skip
            if name == "PY, learned":
                higher += [row.gain for row in group]
        more.append(small["PY, learned"] - small["DP"])
    header = ["discount, prior", "true", "K", "small found", "ARI", "gain", "score", "d", "CPU s"]
    report.print_table(header, cells)
    report.print_targets(
        [
            ("small clusters more than DP, least", f"{min(more):.1f}", "> 0", min(more) > 0),
            ("gain over DP, least of the fits", f"{min(higher):.1f}", "> 0", min(higher) > 0),
        ]
    )
    del limits


if __name__ == "__main__":
    main()
