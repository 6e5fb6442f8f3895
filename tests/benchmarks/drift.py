"""Streams whose clusters move, end and appear: how soon is it noticed, and how good is the model?

Fifty chunks of rows, of clusters that each have a time of life, some of which move all the while. Each
chunk is learned by ``partial_fit``: with a window (``max_batches``), with a half-life, and with neither.
After every fifth chunk, new rows of its kind are scored, and so they are by a `fit` of the rows of the
window. A cluster counts as found when a component's mean is less than two standard deviations away, and as
gone when none is so near to where it was last. Delays are in chunks; 99 stands for never. The goals: found
within two, gone within two after the window, and no more than 0.05 nats per row below the fit.

    python -m tests.benchmarks.drift --seeds 3
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from sklearn_bnp import DPMixtureVB

from . import report

N_CHUNKS, N_ROWS, N_CLUSTERS, N_COLUMNS, WINDOW = 50, 1000, 9, 3, 10


class Drift(NamedTuple):
    """Clusters, each with its life.

    Attributes
    ----------
    start, velocity : ndarray, shape (K, D)
        Places at chunk 0, and their change per chunk.
    first, last : ndarray of int, shape (K,)
        Chunks of the life.
    """

    start: np.ndarray
    velocity: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def drawn(cls, seed):
        """Three clusters stay, three end, and three appear; a third of each moves."""
        rng = np.random.default_rng(seed)
        start = 9.0 * rng.standard_normal((N_CLUSTERS, N_COLUMNS))
        velocity = 0.08 * rng.standard_normal((N_CLUSTERS, N_COLUMNS))
        velocity[np.arange(N_CLUSTERS) % 3 > 0] = 0.0
        first, last = np.zeros(N_CLUSTERS, dtype=int), np.full(N_CLUSTERS, N_CHUNKS)
        last[3:6] = rng.integers(12, 32, size=3)
        first[6:] = rng.integers(10, 42, size=3)
        return cls(start, velocity, first, last)

    def places(self, t):
        """Means of all clusters at a time, (K, D)."""
        return self.start + t * self.velocity

    def lives(self, t):
        """Whether each cluster has rows at a time, (K,)."""
        return (self.first <= t) & (t < self.last)

    def chunk(self, t, rng, n=N_ROWS):
        """Rows (n, D) of one time."""
        z = rng.choice(np.flatnonzero(self.lives(t)), n)
        return self.places(t)[z] + rng.standard_normal((n, N_COLUMNS))


def near(means, place):
    """Whether a component is within two standard deviations of a place, per column."""
    return np.linalg.norm(means - place, axis=1).min() < 2.0


def follow(seed, **params):
    """Delays and scores of one stream, a dict."""
    drift, rng = Drift.drawn(seed), np.random.default_rng(1000 + seed)
    model, chunks, short, K = DPMixtureVB(random_state=0, **params), [], [], []
    found, gone = {}, {}
    cpu = 0.0
    for t in range(N_CHUNKS):
        chunks.append(drift.chunk(t, rng))
        with report.Clock() as call:
            model.partial_fit(chunks[-1])
        cpu += call.cpu
        K.append(model.n_components_)
        for k in range(N_CLUSTERS):
            if drift.lives(t)[k] and k not in found and near(model.means_, drift.places(t)[k]):
                found[k] = t - int(drift.first[k]) + 1
            end = int(drift.last[k]) - 1
            if t > end and k not in gone and not near(model.means_, drift.places(end)[k]):
                gone[k] = t - end - WINDOW
        if t % 5 == 4:
            test = drift.chunk(t, rng)
            window = np.concatenate(chunks[-WINDOW:])
            fit = DPMixtureVB(random_state=0).fit(window)
            short.append(fit.score(test) - model.score(test))
    late = drift.first > 0
    ended = drift.last < N_CHUNKS
    return {
        "found": [found.get(k, 99) for k in np.flatnonzero(late).tolist()],
        "gone": [gone.get(k, 99) for k in np.flatnonzero(ended).tolist()],
        "short": short,
        "K": K,
        "cpu": cpu,
    }


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    limits = report.start("drift", args.threads)
    warnings.simplefilter("ignore")
    kinds = {
        f"max_batches={WINDOW}": {"max_batches": WINDOW},
        "half_life=3": {"memoize": False, "half_life": 3.0},
        "memoize=False": {"memoize": False},
    }
    rows = []
    for name, params in kinds.items():
        for seed in range(args.seeds):
            out = follow(seed, **params)
            rows.append(
                [name, str(seed), str(out["found"]), str(out["gone"]),
                 f"{np.mean(out['short']):.3f}", f"{np.max(out['short']):.3f}", str(out["K"][-1]),
                 f"{out['cpu']:.1f}"]
            )  # fmt: skip
    report.print_table(
        ["stream", "seed", "chunks until found", "chunks after the window until gone",
         "mean nats below a fit", "most", "K at the end", "cpu s"], rows, title="drift"
    )  # fmt: skip
    limits.unregister()


if __name__ == "__main__":
    main()
