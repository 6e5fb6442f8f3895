"""Peak memory of fits and predictions for one long sequence, in tables of all rows and states.

T = 1,000,000, D = 4, K = 20; one process each, in which /proc tells the peak (Linux alone). Prepared
rows are 0.2 tables here, and a number for each row 0.05.

Targets: 1.4 tables for a fit, whoever watches; 0.15 with low_memory=True.

    python -m tests.benchmarks.hmm_memory
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from . import report

PROPOSALS = {"none": None, "merge": ("merge",), "delete": ("delete",)}


def status(field):
    """A number of bytes that Linux knows of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def peak(call):
    """Most bytes in use during a call, beyond those before it."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


def measure(rows, states, proposals, low_memory):
    """Print the peaks of a fit and of predictions, in tables."""
    from sklearn_bnp import HDPHMMVB

    rng = np.random.default_rng(0)
    means = 6.0 * rng.normal(size=(states, 4))
    x = rng.standard_normal((rows, 4))
    for lo in range(0, rows, 50):
        x[lo : lo + 50] += means[rng.integers(states)]
    model = HDPHMMVB(
        states, proposals=PROPOSALS[proposals], low_memory=low_memory, max_iter=5, random_state=0
    )
    warnings.simplefilter("ignore")
    model.fit(x[:3000])
    calls = [lambda: model.fit(x), lambda: model.predict(x), lambda: model.score(x)]
    print(*(f"{peak(call) / (8 * rows * states):.2f}" for call in calls))


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--measure", nargs=2, metavar=("PROPOSALS", "LOW"), help="for its own use")
    args = parser.parse_args()
    if args.measure:
        measure(args.rows, args.components, args.measure[0], args.measure[1] == "True")
        return
    limits = report.start("hmm_memory", args.threads)
    table, targets = [], []
    for proposals in PROPOSALS:
        for low in (False, True):
            command = [
                sys.executable,
                "-m",
                "tests.benchmarks.hmm_memory",
                "--rows",
                str(args.rows),
            ]
            command += ["--components", str(args.components), "--measure", proposals, str(low)]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            table.append([proposals, low, *found.split()])
            most, fit = 0.15 if low else 1.4, float(found.split()[0])
            targets.append((f"fit, {proposals}, {low}", f"{fit:.2f}", f"<= {most}", fit <= most))
    report.print_table(["proposals", "low_memory", "fit", "predict", "score"], table)
    report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
