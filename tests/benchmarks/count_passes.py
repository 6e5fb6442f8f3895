"""One pass of a mixture of counts over its two bare matrix products, dense and CSR.

A pass is one lap of a fixed truncation over one batch: check of the rows, local step, statistics, global
step, empirical Bayes and ELBO.
The bare products are those that no way around leads past: ``z @ coef.T`` and ``resp.T @ z``, by BLAS
or by scipy.sparse, of all rows at once, with the coefficients and responsibilities of the fit. Both
are timed in the same run, in turn, on one thread; each time is the least of --repeat.

Rows are of K kinds, of which each has its own columns; dense ones have 500 columns, sparse ones 5000 of
which 1 % are not zero.

Target: a pass takes no more than 2 times the bare products, for all three families, dense and CSR.

    python -m tests.benchmarks.count_passes
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.inputs.batches import ArraySource

from . import report
from .oracle import one_hot

FAMILIES = ("multinomial", "bernoulli", "poisson")
N_DENSE, N_SPARSE = 500, 5000


def rows_of(family: str, n_rows: int, n_columns: int, n_kinds: int, density: float, seed: int = 0):
    """CSR rows of ``n_kinds`` kinds, and the kind of each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_kinds, size=n_rows)
    lengths = rng.poisson(density * n_columns, size=n_rows) + 1
    own = rng.integers(n_columns, size=(n_kinds, max(4, n_columns // 20)))  # half of all entries
    row = np.repeat(np.arange(n_rows), lengths)
    column = rng.integers(n_columns, size=len(row))
    half = rng.random(len(row)) < 0.5
    column[half] = own[labels[row[half]], rng.integers(own.shape[1], size=half.sum())]
    values = np.ones(len(row)) if family == "bernoulli" else 1.0 + rng.poisson(0.5, size=len(row))
    x = sparse.csr_array((values, (row, column)), shape=(n_rows, n_columns))
    if family == "bernoulli":
        x.data[:] = 1.0
    return x, labels


def least_seconds(calls: list[Callable[[], object]], repeat: int) -> list[float]:
    """The least wall time of each call; they take turns."""
    seconds = np.full(len(calls), np.inf)
    for _ in range(repeat):
        for i, call in enumerate(calls):
            with report.Clock() as clock:
                call()
            seconds[i] = min(seconds[i], clock.wall)
    return seconds.tolist()


def learner_of(family: str, kind: str, n_rows: int, n_kinds: int) -> tuple:
    """A learner that has seen all rows, their source, and the fitted model."""
    if kind == "CSR":
        X, labels = rows_of(family, n_rows, N_SPARSE, n_kinds, 0.01)
    else:
        X, labels = rows_of(family, n_rows, N_DENSE, n_kinds, 0.2)
        X = X.toarray()
    model = DPMixtureVB(
        n_components=n_kinds, observation=family, init_params=one_hot(labels), proposals=None,
        max_iter=1, random_state=0,
    )  # fmt: skip
    report.fit_timed(model, X)
    learner, source = Learner(model._learner_), ArraySource(X, None)
    learner.run_lap(source, propose=False)  # which remembers the rows as its one batch
    return learner, source, model


def compared(family: str, kind: str, n_rows: int, n_kinds: int, repeat: int) -> list[float]:
    """Seconds of a pass and of the bare products."""
    learner, source, model = learner_of(family, kind, n_rows, n_kinds)
    X, coef, resp = source.x, model._coef[:, :-1], model.predict_proba(source.x)
    calls = [
        lambda: learner.run_lap(source, propose=False),
        lambda: (X @ coef.T, resp.T @ X),
    ]
    return least_seconds(calls, repeat)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--kinds", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    limits = report.start("count_passes", 1)
    rows, targets = [], []
    for family in FAMILIES:
        for kind in ("dense", "CSR"):
            for K in args.kinds:
                seconds, bare = compared(family, kind, args.rows, K, args.repeat)
                ratio = seconds / bare
                rows.append(
                    (family, kind, K, f"{1e3 * seconds:.1f}", f"{1e3 * bare:.1f}", f"{ratio:.2f}")
                )
                targets.append((f"{family}, {kind}, K = {K}", f"{ratio:.2f}", "<= 2", ratio <= 2.0))
    report.print_table(
        ["family", "rows", "K", "pass ms", "bare ms", "ratio"], rows,
        title=f"{args.rows} rows, {N_DENSE} columns dense, {N_SPARSE} CSR with 1 % nonzero",
    )  # fmt: skip
    report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
