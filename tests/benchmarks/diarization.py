"""Who speaks when: speaker vectors of a meeting, beside hmmlearn told how many speakers there are.

Needs SKLEARN_BNP_DATA. Full Gaussian states on principal components, kappa = 100, from K = 1 and from
25 blocks (thesis Sec. 6.6.2). Each vector is of one segment of speech, so that all rows count.

    python -m tests.benchmarks.diarization --peer
"""

from __future__ import annotations

import numpy as np

from . import hmm_runs, report
from .chains import speakers


def main() -> None:
    parser = hmm_runs.parser(__doc__, seeds=5, starts=[1, 25], batches=[1], stickiness=(100.0,))
    parser.add_argument("--features", type=int, default=20, help="principal components")
    parser.add_argument("--peer", action="store_true", help="fit hmmlearn's GaussianHMM as well")
    args = parser.parse_args()
    limits = report.start("diarization", args.threads)
    data = speakers(args.features)
    made = hmm_runs.run_settings(args, lambda seed: data)
    targets = [
        (f"{setting}: median Hamming", f"{report.median(r.hamming for r in runs):.4f}", "-", None)
        for setting, runs in made.items()
    ]
    if args.peer:
        targets.append(("hmmlearn, told K: median Hamming", f"{peer(args, data):.4f}", "-", None))
    report.print_targets(targets)
    limits.unregister()


def peer(args, data) -> float:
    """Median distance of hmmlearn's fits with the true number of speakers."""
    from hmmlearn.hmm import GaussianHMM

    (rows,), (truth,) = data.sequences, data.states
    n_states = len(np.unique(truth[truth >= 0]))
    found = []
    for seed in range(args.seeds):
        model = GaussianHMM(n_states, "full", n_iter=100, random_state=seed, min_covar=1e-2)
        found.append(hmm_runs.distances(truth, model.fit(rows).predict(rows))[0])
    return report.median(found)


if __name__ == "__main__":
    main()
