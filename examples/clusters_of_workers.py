"""A mixture is learned from chunks that workers make and hold; a worker is killed, and no bit changes.

Each chunk is a delayed function, as one that reads a file would be. The model is learned in this process,
then on two workers, and once more while one of the workers is killed. Predictions are lazy.

    python examples/clusters_of_workers.py
"""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from sklearn_bnp import DPMixtureVB

CENTERS = 6.0 * np.random.default_rng(7).standard_normal((12, 4))
N_CHUNKS, N_ROWS = 16, 5000


def load(number):
    """The rows of a chunk; in real life it would be read from a file."""
    rng = np.random.default_rng(number)
    labels = rng.integers(len(CENTERS), size=N_ROWS)
    return CENTERS[labels] + rng.standard_normal((N_ROWS, 4))


def rows():
    """All rows, as a dask array whose chunks nobody has computed yet."""
    parts = [dask.delayed(load)(i) for i in range(N_CHUNKS)]
    return da.concatenate([da.from_delayed(part, (N_ROWS, 4), float) for part in parts])


def fitted(where):
    """A model, with a line about how it was learned."""
    start = time.perf_counter()
    model = DPMixtureVB(random_state=0).fit(rows())
    print(
        f"{where:24s} {model.n_components_} clusters after {model.n_iter_} laps, "
        f"bound {model.lower_bound_:.6f}, {time.perf_counter() - start:.1f} s"
    )
    return model


def main():
    here = fitted("in this process:")
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        there = fitted("on two workers:")
        victim = min(client.run(os.getpid).values())
        threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
        survived = fitted("a worker is killed:")
        print(f"mean log density of a row: {survived.score(rows()):.3f}")
        labels = survived.predict(rows())
        print(f"lazy labels: {labels}")
        print(f"sizes: {np.bincount(labels.compute())}")
    same = np.array_equal(here.means_, there.means_) and np.array_equal(
        there.means_, survived.means_
    )
    print("all three models are the same to the last bit" if same else "the models differ")


if __name__ == "__main__":
    main()
