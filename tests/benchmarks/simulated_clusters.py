"""Laps on clusters of up to 1,000 workers, simulated from measured constants.

A lap is played event by event: the parameters go down, from worker to worker; each worker makes its four
tasks; the scheduler, a single server, takes its time for each task's start and end; sums go up a tree of
fan-in 8; and the driver makes its global step, and plans. Constants of a cluster were measured by
`distributed_laps`, those of local steps by ``--measure`` at the size of each problem. With ``--check``, laps
that `distributed_laps` has measured are simulated, too, from their own compute.

    python -m tests.benchmarks.simulated_clusters
    python -m tests.benchmarks.simulated_clusters --check laps.json
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.simulated_clusters --measure
"""

from __future__ import annotations

import heapq
import json
import math
import time
import warnings
from itertools import count
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.engine import learner as learner_module

from . import report
from .corpora import draw_documents

# As in ``distributed/cluster.py``.
TASKS_A_WORKER, FAN_IN, LARGE = 4, 8, 1_000_000
WORKERS = (1, 10, 100, 300, 1000)


class Cluster(NamedTuple):
    """Constants of a cluster.

    Attributes
    ----------
    task : float
        Seconds of the scheduler and the driver for each task.
    beside : float
        Seconds of a worker for each task beside its compute.
    watch : float
        Seconds that dask takes of a worker for each second of compute: heartbeats, and looks at the task.
    wave : float
        Seconds that a wave takes in any case: messages to and fro.
    copy : float
        Seconds to pickle or unpickle a byte, with the copies and sums on the way.
    wire : float
        Seconds to send a byte from one machine to another; the default is that of 10 gigabits.
    spread : float
        Standard deviation of the compute of equal tasks, relative to its mean.
    """

    task: float = 0.0025
    beside: float = 0.006
    watch: float = 0.03
    wave: float = 0.015
    copy: float = 2e-9
    wire: float = 8e-10
    spread: float = 0.05


class Problem(NamedTuple):
    """A fit, in seconds and bytes.

    Attributes
    ----------
    compute : float
        Seconds of local steps a lap, on one core.
    down, up : float
        Bytes of the parameters, and of the statistics of a task.
    step : float
        Seconds of the driver's global step.
    plan : float
        Seconds of the driver to plan and judge proposals.
    found : float
        Bytes that a task finds for these beside its statistics, sampled rows above all.
    leaves : bool
        Whether tasks leave something behind; see `sklearn_bnp.engine.left_behind`.
    """

    name: str
    compute: float
    down: float
    up: float
    step: float
    plan: float
    found: float = 0.0
    leaves: bool = False


class Lap(NamedTuple):
    """Simulated seconds: of a lap, until the last local step has ended, of sums, and of the driver alone."""

    total: float
    local: float
    sums: float
    driver: float


class _Scheduler:
    """A server that does one thing after the other."""

    def __init__(self, seconds):
        self._seconds, self._free = seconds, 0.0

    def done(self, at):
        """When what comes ``at`` some time is done."""
        self._free = max(self._free, at) + self._seconds
        return self._free


def simulated(problem: Problem, n_workers: int, cluster: Cluster, n_tasks=None, seed=0) -> Lap:
    """A `Lap` of a problem on so many workers, with four tasks for each unless ``n_tasks`` says otherwise."""
    rng = np.random.default_rng(seed)
    n_tasks = TASKS_A_WORKER * n_workers if n_tasks is None else n_tasks
    each = (1.0 + cluster.watch) * problem.compute / n_tasks
    seconds = each * np.maximum(0.1, rng.normal(1.0, cluster.spread, n_tasks))
    scheduler = _Scheduler(0.5 * cluster.task)
    start = cluster.wave + problem.down * cluster.copy
    size, small = problem.up + problem.found, problem.down <= LARGE
    free = [
        start + problem.down * (cluster.copy + math.ceil(math.log2(i + 2)) * cluster.wire)
        for i in range(n_workers)
    ]
    events, order = [], count()
    sent = [scheduler.done(start) for _ in range(n_tasks)]
    for i in range(n_tasks):
        worker = i * n_workers // n_tasks
        beside = cluster.beside + size * cluster.copy
        free[worker] = max(free[worker], sent[i]) + seconds[i] + beside
        heapq.heappush(events, (free[worker], next(order), 0, i))
    local, top = max(free), FAN_IN if small else 1
    waiting, n_level, last = {}, {0: n_tasks}, 0.0
    while events:
        at, _, level, i = heapq.heappop(events)
        done = scheduler.done(at)
        if problem.leaves and level == 0:  # one more task, which lets go of what is left
            done = scheduler.done(scheduler.done(done + cluster.beside))
        if n_level[level] <= top:
            last = max(last, done)
            continue
        n_level[level + 1] = -(-n_level[level] // FAN_IN)
        group = waiting.setdefault((level + 1, i // FAN_IN), [])
        group.append(done)
        if len(group) == min(FAN_IN, n_level[level] - FAN_IN * (i // FAN_IN)):
            moved = len(group) * size * (cluster.wire + cluster.copy)
            ready = scheduler.done(max(group)) + moved + cluster.beside
            heapq.heappush(events, (ready, next(order), level + 1, i // FAN_IN))
    last += min(top, n_tasks) * size * (cluster.wire + cluster.copy)
    driver = problem.step + problem.plan
    if problem.leaves:  # sums over documents for unions, in another wave
        driver += cluster.wave + n_tasks * cluster.task
    return Lap(last + driver, local, last - local, driver)


# ---------------------------------------------------------------------- local steps at the size of a problem

_compute = []


def _timed(task, run=learner_module.run):
    start = time.thread_time()
    result = run(task)
    _compute.append(time.thread_time() - start)
    return result


def measured(model, X, n_laps=3):
    """Seconds of processor time a lap: of local steps, and of the global step and of plans."""
    laps, lap = [], learner_module.Learner.run_lap

    def run_lap(self, *args, **kwargs):
        _compute.clear()
        start = time.process_time()
        out = lap(self, *args, **kwargs)
        laps.append((sum(_compute), time.process_time() - start - sum(_compute)))
        return out

    run = learner_module.run
    try:
        learner_module.run, learner_module.Learner.run_lap = _timed, run_lap
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(max_iter=n_laps, tol=0.0, random_state=0, n_batches=1).fit(X)
    finally:
        learner_module.run, learner_module.Learner.run_lap = run, lap
    return np.mean(laps[1:], axis=0)


def rows(n):
    rng = np.random.default_rng(0)
    means = 4.0 * rng.normal(size=(200, 64))
    return rng.normal(size=(n, 64)) + means[rng.integers(200, size=n)]


def texts(n):
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(20_000, 0.02), size=500)
    return draw_documents(rng, phi, rng.dirichlet(np.full(500, 0.02), size=n), 100)


def paths(n):
    rng = np.random.default_rng(0)
    means = 4.0 * rng.normal(size=(100, 10))
    states = rng.integers(100, size=(n, 50))
    return [means[np.repeat(some, 20)] + rng.normal(size=(1000, 10)) for some in states]


def measure():
    """Print what `PROBLEMS` is made of: seconds of local steps, from two sizes, and of the driver."""
    table = []
    for name, estimator, k, data, n, each in (
        ("rows", DPMixtureVB, 200, rows, 2000, 1),
        ("documents", HDPTopicVB, 500, texts, 600, 1),
        ("steps", HDPHMMVB, 100, paths, 5, 1000),
    ):
        few, many = (measured(estimator(k, proposals=None), data(m)) for m in (n, 3 * n))
        slope = (many[0] - few[0]) / (2 * n)
        whole = measured(estimator(k), data(3 * n))
        table.append((
            name, k, f"{1e6 * slope / each:.1f}", f"{few[0] - slope * n:.3f}", f"{many[1]:.2f}",
            f"{1e6 * whole[0] / (3 * n * each):.1f}", f"{whole[1] - many[1]:.2f}",
        ))  # fmt: skip
        print(*table[-1], flush=True)
    header = [
        "of",
        "K",
        "us each",
        "s a task",
        "s of global step",
        "us with proposals",
        "s of plans",
    ]
    report.print_table(header, table)


# Seconds of compute: of rows as ``--measure`` has printed them at K 200, D 64, 20 us each; of documents and
# steps those of `distributed_laps` at K 50, 44 and 1.4 us each, in proportion to K and to K squared. Plans of
# .22 s for a sample of 6,000 rows are 3.5 s for the largest sample that there is; of topics they are a guess.
# Bytes are those of arrays: K (P + 1) numbers for rows with P = D (D + 1) / 2 + D + 1 statistics; K V numbers
# for topics of V words, with 120 K for histograms; and for states of 10 columns K K transitions more.
PROBLEMS = [
    Problem("1e9 rows x 64, K 200", 1e9 * 2.0e-5, 3.4e6, 3.4e6, 0.05, 3.5, 6e4),
    Problem("1e8 documents, V 20,000, K 500", 1e8 * 4.4e-4, 8.0e7, 8.1e7, 1.0, 5.0, 6e4, True),
    Problem("1e5 sequences x 1e4, K 100", 1e9 * 5.6e-6, 1.4e5, 1.4e5, 0.1, 3.5, 6e4),
]


def table(problems, cluster):
    """Rows of the table of problems on more and more workers."""
    out = []
    for problem in problems:
        for n_workers in WORKERS:
            lap = simulated(problem, n_workers, cluster)
            ideal = problem.compute / n_workers
            out.append((
                problem.name, n_workers, f"{lap.total:.1f}", f"{ideal / lap.total:.2f}",
                f"{lap.local:.1f}", f"{lap.sums:.1f}", f"{lap.driver:.1f}",
            ))  # fmt: skip
    return out


def check(path, cluster):
    """Laps of `distributed_laps` beside simulated ones of the same compute."""
    with open(path) as file:
        laps = json.load(file)["laps"]
    rows = []
    for name, found in laps.items():
        lap = {key: np.mean([one[key] for one in found], axis=0) for key in found[0]}
        n_workers, leaves = len(lap["compute"]), "documents" in name
        n_groups = min(TASKS_A_WORKER * n_workers, 16)
        n_results = min(FAN_IN, n_groups) if lap["down"] <= LARGE else 1
        problem = Problem(
            name, n_workers * max(lap["compute"]), lap["down"], lap["up"] / n_results,
            lap["driver"], 0.0, leaves=leaves,
        )  # fmt: skip
        local = cluster._replace(wire=0.0, spread=0.0)
        there = simulated(problem, n_workers, local, n_groups)
        wall = lap["wall"]
        rows.append((name, f"{wall:.2f}", f"{there.total:.2f}", f"{there.total / wall:.2f}"))
    report.print_table(["fit/workers", "wall", "simulated", "ratio"], rows)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--measure", action="store_true", help="measure local steps anew")
    parser.add_argument("--check", help="file that distributed_laps --json has written")
    args = parser.parse_args()
    with report.start(__file__, 1):
        if args.measure:
            measure()
        elif args.check:
            check(args.check, Cluster())
        else:
            header = ["problem", "workers", "s a lap", "efficiency", "local", "sums", "driver"]
            report.print_table(header, table(PROBLEMS, Cluster()))


if __name__ == "__main__":
    main()
