"""The oracle: a fit that starts from the truth.

The true labels, one-hot, are the responsibilities that a fixed-truncation fit of the same model
starts from; run to convergence it gives the objective of the solution that one would like to see
found. ``gap = (ELBO - oracle's ELBO) / N``, in nats a row: negative when the search fell short,
positive when it found something that the objective likes better than the truth (where K is wrong
*and* the gap is positive, the model or its prior is to blame, not the search).

Rows of no cluster (y < 0) start as one component of their own. The oracle is fitted by the
full-data algorithm: batches do not change what it converges to.

Run ``python -m tests.benchmarks.oracle [case ...]`` for the oracles alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import report
from .cases import Case, build, select
from .generators import Dataset


class Oracle(NamedTuple):
    lower_bound: float
    n_components: int
    ari: float
    laps: int

    def gap(self, lower_bound: float, n_rows: int) -> float:
        """How far a bound lies above (+) or below (-) the oracle's, in nats a row."""
        return (lower_bound - self.lower_bound) / n_rows


def one_hot(y: NDArray[np.integer]) -> NDArray[np.float64]:
    """(N, K) responsibilities of known labels; all y < 0 share a component."""
    code = np.unique(np.maximum(y, -1), return_inverse=True)[1]
    resp = np.zeros((code.size, code.max() + 1))
    resp[np.arange(code.size), code] = 1.0
    return resp


def fit_oracle(case: Case, data: Dataset, seed: int = 0) -> Oracle:
    """Fixed truncation from the true labels, to convergence, under the priors of the case."""
    resp = one_hot(data.y)
    model = build(
        case,
        seed,
        n_components=resp.shape[1],
        init_params=resp,
        proposals=None,
        learning_method="full",
        batch_size=None,
        n_batches=None,
        max_iter=1000,
        tol=1e-8,
    )
    report.fit_timed(model, data.X)
    labels = model.predict(data.X)
    return Oracle(
        model.lower_bound_, model.n_components_, report.ari(data.y, labels), model.n_iter_
    )


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("cases", nargs="*", help="names of cases or groups (all)")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    limits = report.start("oracle", args.threads)
    rows = []
    for case in select(args.cases):
        for seed in range(args.seeds):
            try:
                data = case.make(seed)
            except report.MissingData as missing:
                print(f"skipped {case.name}: {missing}")
                break
            oracle = fit_oracle(case, data, seed)
            per_row = oracle.lower_bound / len(data.y)
            size = "x".join(map(str, data.X.shape))
            rows.append(
                [
                    case.name,
                    seed,
                    size,
                    np.unique(data.y[data.y >= 0]).size,
                    oracle.n_components,
                    f"{oracle.ari:.3f}",
                    f"{per_row:.5f}",
                    oracle.laps,
                ]
            )
    report.print_table(["case", "seed", "N x D", "true K", "K", "ARI", "ELBO/N", "laps"], rows)
    limits.unregister()


if __name__ == "__main__":
    main()
