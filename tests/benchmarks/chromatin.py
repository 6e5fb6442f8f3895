"""Chromatin states of a chromosome: 672,261 bins of ten binary marks (thesis Sec. 6.6.4).

Needs SKLEARN_BNP_DATA. Bernoulli states with prior Beta(.1, .3), from K = 1; the chromosome is cut in
the middle of long empty runs. Prints the marks' probabilities in each state, seconds a lap, and with
--plot draws them.

    python -m tests.benchmarks.chromatin --plot chromatin.png
"""

from __future__ import annotations

import numpy as np

from . import hmm_runs, report
from .chains import chromatin


def main() -> None:
    parser = hmm_runs.parser(__doc__, seeds=1, starts=[1], batches=[10])
    parser.add_argument("--plot", help="file of the picture")
    args = parser.parse_args()
    limits = report.start("chromatin", args.threads)
    from sklearn_bnp import BernoulliObservation

    data, marks = chromatin()
    print(f"{len(data.sequences)} sequences, {data.n_rows} bins")
    made = hmm_runs.run_settings(
        args, lambda seed: data, observation=BernoulliObservation(prior=(0.1, 0.3))
    )
    model = next(iter(made.values()))[0].model
    seconds = [lap.seconds for lap in model.history_]
    print(f"seconds a lap: median {np.median(seconds):.1f}, the last {seconds[-1]:.1f}")
    print_states(model, marks, data)
    if args.plot:
        draw(model, marks, args.plot)
    limits.unregister()


def print_states(model, marks, data) -> None:
    """Percent of bins with each mark, a state a line, and the share of bins."""
    states = np.concatenate(model.predict(data.sequences))
    share = np.bincount(states, minlength=model.n_components_) / len(states)
    rows = [
        [k, f"{100 * share[k]:.2f}", *(f"{100 * p:.0f}" for p in model.means_[k])]
        for k in range(model.n_components_)
    ]
    report.print_table(["state", "% of bins", *marks], rows, title="marks, % of a state's bins")


def draw(model, marks, path) -> None:
    """States by marks, as an image."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 0.25 * model.n_components_ + 1), layout="constrained")
    image = axis.imshow(model.means_, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(marks)), marks, rotation=90)
    axis.set_ylabel("state")
    figure.colorbar(image, label="probability")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
