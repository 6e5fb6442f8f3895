"""The time that a batch of a stream takes late in the stream, over that of a bare pass over as many rows.

A bare pass is the local step, the statistics and the global step: what a batch needs at the least. Both are
measured in turn in one process, on rows that neither has seen, in CPU time. *Usual* are medians, and *quiet*
are the fastest tenth, which other work on the machine slows down less. Laps over the latest batches are in
the mean alone: they are few, and each takes long.

    python -m tests.benchmarks.stream_cost
    python -m tests.benchmarks.stream_cost --batches 10000 --rows 300 --components 20 --columns 16
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.blas import blas_on_one_thread

from . import report


def seconds(function):
    """CPU seconds that a call takes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def bare_pass(state, rows):
    """Local step, statistics and global step of some rows under the model of a `LearnerState`."""
    with blas_on_one_thread():
        bag = state.model.local_pass(Batch(None, rows), state.coef, state.totals.uids)
        state.model.coefficients(state.totals.more(bag))


def follow(n_batches, n_rows, n_components, n_columns, **params):
    """CPU seconds of each batch, of the bare pass beside it, and the model at the end."""
    rng = np.random.default_rng(0)
    centers = 6.0 * rng.standard_normal((n_components, n_columns))

    def rows():
        return centers[rng.integers(n_components, size=n_rows)] + rng.standard_normal(
            (n_rows, n_columns)
        )

    model, times = DPMixtureVB(random_state=0, **params), []
    for _ in range(n_batches):
        batch, other = rows(), rows()
        whole = seconds(lambda batch=batch: model.partial_fit(batch))
        times.append((whole, seconds(lambda other=other: bare_pass(model._learner_, other))))
    return np.array(times), model


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--components", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--columns", type=int, nargs="+", default=[16, 50])
    args = parser.parse_args()
    limits = report.start("stream_cost", args.threads)
    warnings.simplefilter("ignore")
    lines = []
    for memoize in (True, False):
        for n_rows in args.rows:
            for K in args.components:
                for D in args.columns:
                    times, model = follow(args.batches, n_rows, K, D, memoize=memoize)
                    late = 1e3 * times[len(times) // 2 :]
                    usual, quiet = np.median(late, axis=0), np.quantile(late, 0.1, axis=0)
                    mean = late.mean(axis=0)
                    lines.append(
                        [str(memoize), str(n_rows), str(K), str(D), f"{model.n_components_}",
                         f"{usual[0]:.2f}", *(f"{a / b:.1f}" for a, b in (usual, quiet, mean)),
                         f"{model.lower_bound_ / (n_rows * len(times)):.3f}"]
                    )  # fmt: skip
    report.print_table(
        ["memoize", "rows", "clusters", "columns", "K", "ms a batch", "over bare, usual", "quiet",
         "mean", "ELBO a row"], lines, title="second half of a stream"
    )  # fmt: skip
    limits.unregister()


if __name__ == "__main__":
    main()
