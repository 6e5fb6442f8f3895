"""One fit from one state against one that starts from the true path, on random sequences.

Problems are drawn from 3 to 20 Gaussian states in 1 to 10 dimensions, 500 to 50,000 rows in 1 to 50
sequences, states that last 2 to 100 rows, and transitions of which many are rare. Each is fitted from
K = 1 at default settings and from responsibilities that are the true path. A fit of which the bound is
5 nats or more below the other's has missed something. As many sequences again are held out.

--short-visits draws states that last 2 or 3 rows on average instead, in 2000 to 20,000 rows. In most of these
problems some states share their emissions with another one, and only the states around tell them apart.
--uneven draws problems of another kind, those of ``uneven_sequences.py``: unequal states, cycles, states that
overlap, and sequences of very different lengths. --symbols draws sequences of symbols, those of
``symbol_sequences.py``, of which many states differ only in what follows them. --twins draws noisy cycles in
which several states have the same emissions, those of ``twin_sequences.py``. --visits draws visits that have
a length of their own, those of ``visit_sequences.py``. --crowds draws many states in many columns that last
few rows, those of ``crowded_sequences.py``.

--json keeps the table for a comparison with another version of the package, and --start begins with more
states than one.

    python -m tests.benchmarks.one_start_sequences --problems 43 --seeds 3 --most-rows 50000
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import (
    crowded_sequences,
    report,
    symbol_sequences,
    twin_sequences,
    uneven_sequences,
    visit_sequences,
)
from .chains import Sequences, _apart, markov_path
from .hmm_runs import distances

STATES = (3, 4, 5, 8, 10, 15, 20)
FEATURES = (1, 2, 3, 5, 10)
ROWS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
SEQUENCES = (1, 5, 20, 50)
STAY = (0.5, 0.8, 0.9, 0.95, 0.99)
SPREADS = (3.0, 4.0, 6.0)  # least distance of two means, in standard deviations
SHORT_STAY, SHORT_ROWS, TWINS = (0.5, 0.7), (2000, 5000, 10_000, 20_000), (0, 1, 2)
# Rows that a state should have to be told from others, and that a sequence should have.
_ROWS_PER_STATE, _ROWS_PER_SEQUENCE = 60, 25
# Parameter of the Dirichlet distribution of where a state goes when it does not stay.
_SPARSITY = 0.5
FAILURE = 5.0  # nats
HEADER = ["problem", "seed", "K", "K, truth", "gap", "bound", "Hamming", "held out", "-", "cpu s"]


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    n_states: int
    n_features: int
    n_rows: int
    n_sequences: int
    stay: float
    spread: float
    twins: int = 0  # pairs of states that share their emissions

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out."""
        return draw(self, seed)

    def __str__(self):
        twins = f", {self.twins} twins" if self.twins else ""
        return (
            f"{self.number}: K {self.n_states}, D {self.n_features}, T {self.n_rows} in "
            f"{self.n_sequences}, stay {self.stay:g}, {self.spread:g} sd{twins}"
        )


def problems(
    n: int, most_rows: int = 50_000, seed: int = 0, *, short_visits: bool = False
) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.RandomState(seed), [], 0
    rows, stay, twins = (SHORT_ROWS, SHORT_STAY, TWINS) if short_visits else (ROWS, STAY, (0,))
    while len(found) < n:
        made = Problem(
            number, *(values[rng.randint(len(values))] for values in (STATES, FEATURES, rows)),
            *(values[rng.randint(len(values))] for values in (SEQUENCES, stay, SPREADS)),
        )  # fmt: skip
        if short_visits:
            made = made._replace(twins=min(twins[rng.randint(len(twins))], made.n_states // 3))
        enough = made.n_rows >= max(
            _ROWS_PER_STATE * made.n_states, _ROWS_PER_SEQUENCE * made.n_sequences
        )
        if enough and made.n_rows <= most_rows:
            found.append(made)
        number += enough
    return found


def transition_matrix(rng, n_states: int, stay: float) -> NDArray[np.floating]:
    """Rows (K, K) that stay with about probability ``stay``; where they go else differs much."""
    out = np.empty((n_states, n_states))
    for k in range(n_states):
        p = np.insert(rng.dirichlet(np.full(n_states - 1, _SPARSITY)), k, 0.0)
        own = np.clip(1.0 - (1.0 - stay) * np.exp(0.3 * rng.normal()), 0.0, 0.999)
        out[k] = (1.0 - own) * p
        out[k, k] = own
    return out


def draw(problem: Problem, seed: int) -> tuple[Sequences, Sequences]:
    """Sequences of a problem, and as many again to be held out."""
    rng = np.random.RandomState([problem.number, seed])
    K, D = problem.n_states, problem.n_features
    means = _apart(rng, K, D, problem.spread)
    factors = 0.3 * rng.normal(size=(K, D, D)) + np.eye(D)
    factors /= np.abs(np.linalg.det(factors))[:, np.newaxis, np.newaxis] ** (1.0 / D)
    for twin in range(problem.twins):
        means[2 * twin + 1], factors[2 * twin + 1] = means[2 * twin], factors[2 * twin]
    trans, first = transition_matrix(rng, K, problem.stay), rng.dirichlet(np.ones(K))
    length = problem.n_rows // problem.n_sequences
    made = []
    for part in ("train", "held out"):
        states = [markov_path(rng, first, trans, length) for _ in range(problem.n_sequences)]
        rows = [
            means[z] + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(length, D)))
            for z in states
        ]
        made.append(Sequences(f"{problem}, {part}", rows, states))
    return made[0], made[1]


class Run(NamedTuple):
    """The fit from one state, or a few, beside that from the true path."""

    problem: str
    seed: int
    n_components: int
    n_components_of_truth: int
    gap: float  # nats, below 0 if the fit from one state is worse
    bound: float
    hamming: float
    held_out: float  # nats a row
    held_out_of_truth: float
    cpu: float

    @property
    def failed(self) -> bool:
        return self.gap < -FAILURE


def compared(problem, seed: int, start: int = 1, **parameters) -> Run:
    """Both fits of one problem, one of them from ``start`` states."""
    from sklearn_bnp import HDPHMMVB

    data, new = problem.draw(seed)
    model = HDPHMMVB(start, random_state=seed, n_jobs=1, **parameters)
    clock = report.fit_timed(model, data.sequences)
    visited, truth = np.unique(np.concatenate(data.states), return_inverse=True)
    told = HDPHMMVB(
        n_components=len(visited), init_params=np.eye(len(visited))[truth], random_state=seed,
        n_jobs=1, **parameters,
    )  # fmt: skip
    report.fit_timed(told, data.sequences)
    found = np.concatenate(model.predict(data.sequences))
    hamming, _ = distances(np.concatenate(data.states), found)
    return Run(
        str(problem), seed, model.n_components_, told.n_components_,
        model.lower_bound_ - told.lower_bound_, model.lower_bound_, hamming,
        float(model.score(new.sequences)), float(told.score(new.sequences)), clock.cpu,
    )  # fmt: skip


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--problems", type=int, default=43)
    parser.add_argument("--skip", type=int, default=0, help="problems left out at the beginning")
    parser.add_argument("--most-rows", type=int, default=50_000)
    parser.add_argument("--data-seed", type=int, default=0, help="draws other problems")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--start", type=int, default=1, help="K to start from")
    parser.add_argument("--short-visits", action="store_true", help="states of 2 or 3 rows")
    parser.add_argument("--uneven", action="store_true", help="problems of the second kind")
    parser.add_argument("--symbols", action="store_true", help="problems of symbols")
    parser.add_argument(
        "--twins", action="store_true", help="cycles of states with the same emissions"
    )
    parser.add_argument("--visits", action="store_true", help="visits with a length of their own")
    parser.add_argument("--crowds", action="store_true", help="many states in many columns")
    parser.add_argument("--json", help="file to write the table to")
    args = parser.parse_args()
    limits = report.start("one_start_sequences", args.threads)
    runs = []
    kinds = {
        "uneven": uneven_sequences, "symbols": symbol_sequences, "twins": twin_sequences,
        "visits": visit_sequences, "crowds": crowded_sequences,
    }  # fmt: skip
    kind = next((kinds[name] for name in kinds if getattr(args, name)), None)
    if kind is not None:
        drawn = kind.problems(args.problems, args.most_rows, args.data_seed)
    else:
        drawn = problems(
            args.problems, args.most_rows, args.data_seed, short_visits=args.short_visits
        )
    for problem in drawn[args.skip :]:
        told = {"observation": problem.observation} if args.symbols else {}
        runs += [compared(problem, seed, args.start, **told) for seed in range(args.seeds)]
        print("\n".join(line(run) for run in runs[-args.seeds :]), flush=True)
        if args.json:
            Path(args.json).write_text(json.dumps([run._asdict() for run in runs]))
    report.print_table(HEADER, [row(run) for run in runs])
    failed = np.mean([run.failed for run in runs])
    right = np.mean([run.n_components == run.n_components_of_truth for run in runs])
    report.print_targets(
        [
            ("fits 5 nats below the other", f"{failed:.1%}", "<= 5 %", failed <= 0.05),
            ("K is that of the other", f"{right:.1%}", "-", None),
            ("worst gap", f"{min(run.gap for run in runs):.1f}", "-", None),
            ("cpu s", f"{sum(run.cpu for run in runs):.1f}", "-", None),
        ]
    )
    limits.unregister()


def row(run: Run) -> list:
    return [
        run.problem, run.seed, run.n_components, run.n_components_of_truth, f"{run.gap:.1f}",
        f"{run.bound:.1f}", f"{run.hamming:.4f}", f"{run.held_out:.4f}",
        f"{run.held_out_of_truth:.4f}", f"{run.cpu:.2f}",
    ]  # fmt: skip


def line(run: Run) -> str:
    return " | ".join(str(cell) for cell in row(run))


if __name__ == "__main__":
    main()
