"""Several fits of real sequences, of which the best one meets the others and searches on (``n_init``).

Blocks of rows take over the states of the fit that explains them better. The table has the bounds of the
fits, of the best one before and after, and the processor seconds of all of it. Needs SKLEARN_BNP_DATA.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.several_fits --n-init 2 --seeds 0,1 --only mocap6
"""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.estimator.fitting import Fitting

from . import report
from .expect_problems import PROBLEMS

REAL = ("mocap6", "mocap6, pieces of 100", "chromatin, 4 pieces", "speakers, pieces of 100")


@contextmanager
def meetings():
    """A list that grows by a pair at each meeting: the bounds of all fits, and that of the best one."""
    found, meet = [], Fitting._after_meeting

    def noted(self, best, fits, *args):
        found.append(([bound for bound, _ in fits], best.lower_bound))
        return meet(self, best, fits, *args)

    Fitting._after_meeting = noted
    try:
        yield found
    finally:
        Fitting._after_meeting = meet


def row(name: str, n_init: int, seed: int):
    """A row of the table."""
    problem = PROBLEMS[name]
    data = problem.make()
    observation = "gaussian" if problem.observation is None else problem.observation()
    model = HDPHMMVB(observation=observation, n_init=n_init, random_state=seed)
    start = time.process_time()
    with meetings() as found, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.train)
    [(bounds, best)] = found
    return (
        name, seed, " ".join(f"{bound:.1f}" for bound in bounds), f"{best:.1f}",
        f"{model.lower_bound_:.1f}", f"{model.lower_bound_ - best:.1f}", model.n_components_,
        f"{model.score(data.test):.3f}", f"{time.process_time() - start:.0f}",
    )  # fmt: skip


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--n-init", type=int, default=2, help="fits, two or more")
    parser.add_argument("--seeds", default="0,1", help="seeds, with commas between them")
    parser.add_argument("--only", nargs="+", default=REAL, help="names of problems")
    args = parser.parse_args()
    with report.start(__file__, args.threads):
        rows = [
            row(name, args.n_init, int(seed))
            for name in args.only
            for seed in args.seeds.split(",")
        ]
    head = "sequences|seed|fits|best|after|gain|K|held out|CPU s"
    report.print_table(head.split("|"), rows, f"n_init={args.n_init}")


if __name__ == "__main__":
    main()
