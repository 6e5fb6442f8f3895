"""Six motion capture sequences, labelled with 12 exercises, by autoregressive states (thesis Sec. 6.6.3).

Needs SKLEARN_BNP_DATA. From K = 1 and from 30 and 60 blocks, in 1 and in 6 batches, at default
settings. The evidence bound is given per number, of 2058 x 12. --gaussian fits Gaussian emissions
instead, and holds out each sequence in turn: autocorrelated rows make them explode into states, and
the heldout score decides about defaults. --plot draws segmentations beside the human labels.

Targets (medians over seeds): bound at least -2.04, many-to-one accuracy at least .82, K at most 26,
under 2 s. Known figures: bnpy -2.114, .64 to .67, 15 to 18 states, 54 to 122 s; the prototype -2.03 to
-2.06, .74 to .91, 2 to 4 s.

    python -m tests.benchmarks.mocap6 --plot mocap6.png
"""

from __future__ import annotations

import numpy as np

from . import hmm_runs, report
from .chains import mocap6


def main() -> None:
    parser = hmm_runs.parser(__doc__, seeds=10, starts=[1, 30, 60], batches=[1, 6])
    parser.add_argument("--gaussian", action="store_true")
    parser.add_argument("--plot", help="file of the picture")
    args = parser.parse_args()
    limits = report.start("mocap6", args.threads)
    data = mocap6(with_frame_before=not args.gaussian)
    observation = "gaussian" if args.gaussian else "autoregressive"
    made = hmm_runs.run_settings(args, lambda seed: data, observation=observation)
    targets = []
    for setting, runs in made.items():
        elbo, many = (report.median(getattr(r, f) for r in runs) for f in ("elbo", "many_to_one"))
        seconds = report.median(r.wall for r in runs)
        ks = [r.n_components for r in runs]
        targets += [
            (f"{setting}: median bound", f"{elbo:.4f}", ">= -2.04", elbo >= -2.04),
            (f"{setting}: median accuracy", f"{many:.3f}", ">= .82", many >= 0.82),
            (f"{setting}: K", report.tally(ks), "<= 26", max(ks) <= 26),
            (f"{setting}: median wall s", f"{seconds:.2f}", "< 2", seconds < 2.0),
        ]
    if args.gaussian:
        targets = [(name, value, "-", None) for name, value, *_ in targets]
        print(f"held out, one sequence at a time: {leave_one_out(args, data, observation):.4f}")
    report.print_targets(targets)
    if args.plot:
        first = next(iter(made.values()))[0].model
        draw(data, first.predict(data.sequences), args.plot)
    limits.unregister()


def leave_one_out(args, data, observation) -> float:
    """Mean heldout log density a number, each sequence held out in turn."""
    from sklearn_bnp import HDPHMMVB

    scores = []
    for held in range(len(data.sequences)):
        rest = [x for i, x in enumerate(data.sequences) if i != held]
        model = HDPHMMVB(observation=observation, random_state=0, n_jobs=args.threads).fit(rest)
        scores.append(model.score([data.sequences[held]]))
    weights = [len(x) for x in data.sequences]
    return float(np.average(scores, weights=weights)) / data.sequences[0].shape[1]


def draw(data, found, path) -> None:
    """Found states above human labels, a pair of strips for each sequence."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2 * len(found), 1, figsize=(10, 1.1 * len(found)), sharex=True, layout="constrained"
    )
    most = max(np.max(states) for states in found)
    colours = plt.get_cmap("nipy_spectral", most + 1)
    for i, (states, labels) in enumerate(zip(found, data.states, strict=True)):
        axes[2 * i].imshow(np.asarray(states)[None], aspect="auto", cmap=colours, vmin=0, vmax=most)
        axes[2 * i + 1].imshow(labels[None], aspect="auto", cmap="tab20", vmin=0, vmax=19)
        axes[2 * i].set_ylabel("found", rotation=0, ha="right", va="center", fontsize=7)
        axes[2 * i + 1].set_ylabel("human", rotation=0, ha="right", va="center", fontsize=7)
    for axis in axes:
        axis.set_yticks([])
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
