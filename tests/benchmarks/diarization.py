"""Who speaks when: speaker vectors of a meeting, beside hmmlearn told how many speakers there are.

Needs SKLEARN_BNP_DATA. Each vector is of 1.44 seconds, and the next one begins .24 seconds later, so that
a vector shares most of its speech with the one before. There are three ways to model them, all from K = 1:

- "gaussian": Gaussian states, as if vectors were independent;
- "correlated": `CorrelatedGaussianObservation`, for which a row is like the row before;
- "interleaved": Gaussian states for six sequences of every sixth vector. Vectors of one sequence have no
  speech in common, and each sequence counts a sixth, because the six say the same.

    python -m tests.benchmarks.diarization --features 4 6 10 20 --peer
"""

from __future__ import annotations

import numpy as np

from . import hmm_runs, report
from .chains import speakers

STEP = 6  # windows from one to the next that shares nothing with it
WAYS = ("gaussian", "correlated", "interleaved")


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--features", type=int, nargs="+", default=[6, 10, 20])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--peer", action="store_true", help="fit hmmlearn's GaussianHMM as well")
    args = parser.parse_args()
    limits = report.start("diarization", args.threads)
    rows = []
    for n_features in args.features:
        data = speakers(n_features)
        for way in args.ways:
            runs = [fitted(data, way, seed) for seed in range(args.seeds)]
            rows.append(line(f"{way}, {n_features} columns", runs))
        if args.peer:
            runs = [peer(data, seed) for seed in range(args.seeds)]
            rows.append(line(f"hmmlearn, told K, {n_features} columns", runs))
    report.print_table(["fit", "K", "Hamming", "median"], rows)
    limits.unregister()


def line(name: str, runs) -> list:
    """A row of the table, of runs that are (K, Hamming distance)."""
    distances = [distance for _, distance in runs]
    return [
        name, " ".join(str(k) for k, _ in runs), " ".join(f"{d:.3f}" for d in distances),
        f"{report.median(distances):.3f}",
    ]  # fmt: skip


def fitted(data, way: str, seed: int) -> tuple[int, float]:
    """K and the distance from the true speakers, of a fit of ours at its defaults."""
    from sklearn_bnp import HDPHMMVB

    (rows,), (truth,) = data.sequences, data.states
    step, weight = (STEP, np.full(STEP, 1.0 / STEP)) if way == "interleaved" else (1, None)
    observation = "correlated_gaussian" if way == "correlated" else "gaussian"
    model = HDPHMMVB(observation=observation, random_state=seed)
    parts = [rows[i::step] for i in range(step)]
    found = np.empty(len(rows), dtype=np.intp)
    for i, states in enumerate(model.fit(parts, sample_weight=weight).predict(parts)):
        found[i::step] = states
    return model.n_components_, hmm_runs.distances(truth, found)[0]


def peer(data, seed: int) -> tuple[int, float]:
    """The same of hmmlearn, with the true number of speakers."""
    from hmmlearn.hmm import GaussianHMM

    (rows,), (truth,) = data.sequences, data.states
    n_states = len(np.unique(truth[truth >= 0]))
    model = GaussianHMM(n_states, "full", n_iter=100, random_state=seed, min_covar=1e-2)
    return n_states, hmm_runs.distances(truth, model.fit(rows).predict(rows))[0]


if __name__ == "__main__":
    main()
