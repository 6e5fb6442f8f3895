"""Laps on a cluster: processor time of workers and driver, bytes that move, with one and two workers.

Fits of K = 50 without proposals: 2 million rows of 25 columns, 200,000 documents (papers of NIPS, drawn with
replacement and thinned to some hundred words; needs SKLEARN_BNP_DATA), and 2,000 sequences of 1,000 steps of
10 columns. Chunks are made on the workers, processes with one thread each. Then fits with proposals, for the
bytes of what births are made of.

All but the first lap are averaged. *Chunks* are those of the busiest worker, on average and in the worst
lap: of 16, each of two workers should have 8. *Compute* is the processor time of local steps, in the thread
that makes them; *worker* what the busiest worker process took beside its own; *waves* what the driver's
process, with the scheduler in it, took while tasks were out; *driver* what it took for global steps, verdicts
and plans. *Beside* is the sum of *worker* and *waves*. *Dask* is what these two processes take in such a time
anyway, with tasks that only compute and nothing to move: heartbeats, monitors, a profiler that looks at each
task a hundred times a second. It is measured on the same cluster after the fits. *Length* is the sum along
the critical path, the busiest worker and all that is not shared out: the lap as it would be if nothing else
ran. Wall time says the same on a quiet machine.

A machine may become slower from one minute to the next, and its cores may slow each other down. One and two
workers therefore take turns, in several rounds, and efficiency is the median of the rounds. The *ceiling* is
the efficiency of two plain processes without dask, which make laps over half of the chunks each at the same
time: no cluster on this machine can be expected to do better.

Targets: efficiency at two workers at least .85, by wall time; beside compute and what dask takes anyway, at
most 50 ms and 4 ms a task; about 1 MB of parameters down and .7 MB of statistics up at K 50, D 50; 1 to 6 MB
of sampled rows.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.distributed_laps --scale 1
"""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import dask
import numpy as np
from distributed import Client, LocalCluster
from distributed.protocol.pickle import dumps
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.distributed.cluster import OnClient
from sklearn_bnp.distributed.wire import Nodes
from sklearn_bnp.engine import learner as learner_module
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.task import run

from . import report
from .corpora import nips

K, N_CHUNKS = 50, 16
# Chance that a word of a paper stays, so that papers are as long as abstracts.
THINNED = 0.08


# ---------------------------------------------------------------------- data, made where they are used


def rows(i: int, n: int, n_features: int = 25) -> np.ndarray:
    """Rows of clusters with covariances of their own."""
    rng = np.random.default_rng([i, n])
    fixed = np.random.default_rng(0)
    means = fixed.normal(scale=3.0, size=(K, n_features))
    mixing = fixed.normal(scale=0.5, size=(K, n_features, n_features))
    z = rng.integers(K, size=n)
    noise = rng.normal(size=(n, n_features))
    return means[z] + noise + np.einsum("nij,nj->ni", mixing[z], rng.normal(size=noise.shape))


def papers(i: int, n: int) -> sparse.csr_array:
    """Documents with some of the words of papers, as CSR."""
    rng = np.random.default_rng([i, n])
    X = nips().train
    X = X[rng.integers(X.shape[0], size=n)]
    X.data = rng.binomial(X.data, THINNED)
    X.eliminate_zeros()
    return sparse.csr_array(X)


def sequences(i: int, n: int, length: int = 1000, n_features: int = 10) -> list[np.ndarray]:
    """Sequences that stay in each of K states for some twenty steps."""
    rng = np.random.default_rng([i, n])
    means = np.random.default_rng(0).normal(scale=3.0, size=(K, n_features))
    out = []
    for _ in range(n):
        starts = np.flatnonzero(rng.random(length) < 0.05)
        states = rng.integers(K, size=len(starts) + 1)
        path = np.repeat(states, np.diff([0, *starts, length]))
        out.append(means[path] + rng.normal(size=(length, n_features)))
    return out


class Work(NamedTuple):
    """A fit: an estimator, what makes chunks, and the number of their rows, documents or sequences."""

    name: str
    model: Callable
    chunk: Callable
    size: int


def fixed(estimator, **params):
    return partial(estimator, K, proposals=None, random_state=0, tol=0.0, **params)


WORK = [
    Work("rows", fixed(DPMixtureVB), rows, 2_000_000),
    Work("documents", fixed(HDPTopicVB), papers, 200_000),
    Work("sequences", fixed(HDPHMMVB), sequences, 2_000),
    Work("rows, D 50", fixed(DPMixtureVB), partial(rows, n_features=50), 200_000),
    Work("rows, proposals", partial(DPMixtureVB, random_state=0, tol=0.0), rows, 400_000),
    Work("documents, proposals", partial(HDPTopicVB, random_state=0, tol=0.0), papers, 20_000),
]


# ---------------------------------------------------------------------- what is measured

_compute = []  # of a worker: processor seconds of its local steps


def timed_run(task):
    """`run`, with its processor time noted in the worker."""
    start = time.thread_time()
    try:
        return run(task)
    finally:
        _compute.append(time.thread_time() - start)


def spin(seconds):
    """Processor seconds of this thread while it multiplies matrices for so long."""
    x = np.ones((500, 500))
    cpu, start = time.thread_time(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        x @ x
    return time.thread_time() - cpu


def idle_rate(client, seconds=5.0):
    """Processor seconds a second that dask takes while workers only compute: the busiest and the driver."""
    before, cpu, start = client.run(time.process_time), time.process_time(), time.perf_counter()
    tasks = [client.submit(spin, seconds, workers=[name], pure=False) for name in before]
    own = client.gather(tasks)
    driver, wall = time.process_time() - cpu, time.perf_counter() - start
    after = client.run(time.process_time)
    beside = [after[name] - before[name] - used for name, used in zip(before, own, strict=True)]
    return (max(beside) + driver) / wall


def spent():
    """Processor seconds of a worker since it began: of local steps, and of all; and its local steps."""
    return sum(_compute), time.process_time(), len(_compute)


class Measured(NamedTuple):
    """One lap."""

    wall: float
    compute: list  # seconds, one number a worker
    worker: list  # seconds beside it
    chunks: list  # local steps, one number a worker
    waves: float
    driver: float
    n_tasks: int
    down: int
    up: int
    n_components: int
    dask: float = 0.0

    @property
    def length(self):
        """Processor seconds on the critical path."""
        busiest = max(np.add(self.compute, self.worker))
        return busiest + self.waves + self.driver

    @property
    def overhead(self):
        """Seconds beside compute that a cluster takes, on the critical path."""
        return self.length - max(self.compute) - self.driver

    @property
    def caused(self):
        """Those that it would not take without the fit."""
        return self.overhead - self.dask


def sizes(values):
    """Bytes of what is large among some arguments or results of tasks."""
    return sum(map(_n_bytes, values))


def _n_bytes(value):
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    if not isinstance(value, Nodes):
        return 0
    beside = []
    return len(dumps(value, buffer_callback=beside.append)) + sum(b.raw().nbytes for b in beside)


@contextmanager
def measured(client):
    """A list that grows by a `Measured` in each lap of a fit."""
    laps, now = [], defaultdict(float)
    lap, wave = Learner.run_lap, OnClient.run_tasks
    submit, gathered = OnClient._submit, OnClient._gathered

    def run_lap(self, *args, **kwargs):
        before = client.run(spent)
        now.clear()
        start, cpu = time.perf_counter(), time.process_time()
        out = lap(self, *args, **kwargs)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        after = client.run(spent)
        used = [np.subtract(after[name], before[name]) for name in after]
        laps.append(Measured(
            wall, [float(c) for c, _, _ in used], [float(t - c) for c, t, _ in used],
            [int(n) for _, _, n in used], now["waves"], cpu - now["waves"],
            int(now["tasks"]), int(now["down"]), int(now["up"]), out.n_components,
        ))  # fmt: skip
        return out

    def run_tasks(self, *args):
        start = time.process_time()
        out = list(wave(self, *args))
        now["waves"] += time.process_time() - start
        return out

    def _submit(self, function, *args, **kwargs):
        now["tasks"] += 1
        now["down"] += sizes(args)
        return submit(self, function, *args, **kwargs)

    def _gathered(self, *args):
        out = gathered(self, *args)
        now["up"] += sizes(out)
        return out

    patches = {"_submit": _submit, "_gathered": _gathered, "run_tasks": run_tasks}
    before = {name: getattr(OnClient, name) for name in patches}
    try:
        for name, value in patches.items():
            setattr(OnClient, name, value)
        Learner.run_lap, learner_module.run = run_lap, timed_run
        yield laps
    finally:
        for name, value in before.items():
            setattr(OnClient, name, value)
        Learner.run_lap, learner_module.run = lap, run


def laps_of(work, client, scale: float, n_laps: int) -> list[Measured]:
    """Laps of a fit, the first left out."""
    chunks = [dask.delayed(work.chunk)(i, _rows_of(work, scale)) for i in range(N_CHUNKS)]
    with measured(client) as laps, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        work.model(max_iter=n_laps + 1).fit(chunks)
    return laps[1:]


def _rows_of(work, scale):
    """Rows, documents or sequences of a chunk."""
    return max(1, round(scale * work.size / N_CHUNKS))


def laps_on(n_workers, works, scale: float, n_laps: int) -> dict:
    """Name -> laps of the fit on a cluster of its own."""
    found = {}
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        for work in works:
            start = time.perf_counter()
            found[work.name] = laps_of(work, client, scale, n_laps)
            seconds = time.perf_counter() - start
            print(f"{work.name}, {n_workers} workers: {seconds:.0f} s", flush=True)
        idle = idle_rate(client)
    return {
        name: [lap._replace(dask=idle * lap.wall) for lap in laps] for name, laps in found.items()
    }


def all_laps(works, scale: float, n_laps: int, n_rounds: int) -> tuple[dict, dict, dict]:
    """(Name, number of workers) -> laps of all rounds; name -> efficiencies; name -> ceilings."""
    laps, efficiency, ceiling = defaultdict(list), defaultdict(list), defaultdict(list)
    for _ in range(n_rounds):
        now = {n: laps_on(n, works, scale, n_laps) for n in (1, 2)}
        for work in works:
            for n, found in now.items():
                laps[work.name, n] += found[work.name]
            if "proposals" not in work.name:
                one, two = (mean(found[work.name], _wall) for found in now.values())
                efficiency[work.name].append(one / (2.0 * two))
                ceiling[work.name].append(_ceiling(work.name, scale, n_laps))
    return laps, efficiency, ceiling


# ---------------------------------------------------------------------- two processes that share nothing


def _ceiling(name, scale, n_laps):
    """How long laps over half of the chunks take alone, by how long they take two processes at once."""
    halves = range(N_CHUNKS // 2), range(N_CHUNKS // 2, N_CHUNKS)
    alone, both = (_seconds_apart(name, scale, n_laps, parts) for parts in (halves[:1], halves))
    return alone / both


def _seconds_apart(name, scale, n_laps, parts):
    """Seconds a lap of the slower process, where each has chunks of its own and all begin laps together."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(len(parts)), context.Queue()
    args = [(name, scale, n_laps, tuple(part), barrier, queue) for part in parts]
    processes = [context.Process(target=_fit_apart, args=a) for a in args]
    for process in processes:
        process.start()
    found = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    return max(found)


def _fit_apart(name, scale, n_laps, part, barrier, queue):
    """Put the mean seconds of a lap over a part of the chunks, in this process, into the queue."""
    [work] = (w for w in WORK if w.name == name)
    made = [work.chunk(i, _rows_of(work, scale)) for i in part]
    seconds, lap = [], Learner.run_lap

    def run_lap(self, *args, **kwargs):
        barrier.wait()
        start = time.perf_counter()
        out = lap(self, *args, **kwargs)
        seconds.append(time.perf_counter() - start)
        return out

    Learner.run_lap = run_lap
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        work.model(max_iter=n_laps + 1).fit([dask.delayed(chunk) for chunk in made])
    queue.put(float(np.mean(seconds[1:])))


# ---------------------------------------------------------------------- what is printed


def mean(laps, get):
    return float(np.mean([get(lap) for lap in laps]))


_wall, _length, _caused, _tasks = map(attrgetter, ("wall", "length", "caused", "n_tasks"))


def _busiest(lap):
    """Chunks of the busiest worker; a chunk may have several local steps in a lap."""
    return max(lap.chunks) * N_CHUNKS // sum(lap.chunks)


def row(name, n_workers, laps):
    """A row of the table."""
    seconds = (
        _wall, _length, lambda lap: max(lap.compute), lambda lap: max(lap.worker),
        attrgetter("waves"), attrgetter("driver"), attrgetter("overhead"), attrgetter("dask"),
    )  # fmt: skip
    return (
        name, n_workers, max(lap.n_components for lap in laps), f"{mean(laps, _tasks):.0f}",
        f"{mean(laps, _busiest):.1f}, {max(map(_busiest, laps))}",
        *(f"{mean(laps, get):.3f}" for get in seconds),
        *(f"{mean(laps, attrgetter(way)) / 1e6:.2f}" for way in ("down", "up")),
    )  # fmt: skip


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="share of the full sizes")
    parser.add_argument("--laps", type=int, default=3, help="laps after the first")
    parser.add_argument("--rounds", type=int, default=3, help="turns of one and two workers")
    parser.add_argument("--only", nargs="+", help="names of fits, or their beginnings")
    parser.add_argument("--fixed", action="store_true", help="leave out fits with proposals")
    parser.add_argument("--json", help="file for the figures, which simulated_clusters reads")
    args = parser.parse_args()
    chosen = [w for w in WORK if not args.only or w.name.startswith(tuple(args.only))]
    chosen = [w for w in chosen if not (args.fixed and "proposals" in w.name)]
    table, targets = [], []
    with report.start(__file__, 1):
        found, efficiency, ceiling = all_laps(chosen, args.scale, args.laps, args.rounds)
        for (name, n_workers), laps in found.items():
            table.append(row(name, n_workers, laps))
            n_tasks, overhead = (mean(laps, get) for get in (_tasks, _caused))
            most = 0.05 + 0.004 * n_tasks
            what = f"{name}, {n_workers} workers: seconds beside compute and dask"
            targets.append((what, f"{overhead:.3f}", f"<= {most:.3f}", overhead <= most))
        for name, values in efficiency.items():
            value, most = np.median(values), np.median(ceiling[name])
            what = f"{name}: efficiency at two workers (ceiling {most:.2f})"
            targets.append((what, f"{value:.2f}", ">= .85", value >= 0.85))
        head = "fit|workers|K|tasks|chunks|wall|length|compute|worker|waves|driver|beside|dask|MB down|MB up"
        report.print_table(head.split("|"), table, "Seconds and megabytes a lap")
        report.print_targets(targets)
    if args.json:
        with open(args.json, "w") as file:
            laps = {
                f"{name}/{n}": [lap._asdict() for lap in some] for (name, n), some in found.items()
            }
            json.dump({"scale": args.scale, "laps": laps}, file)


if __name__ == "__main__":
    from tests.benchmarks import distributed_laps  # workers import it by this name

    distributed_laps.main()
