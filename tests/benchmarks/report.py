"""What the benchmark scripts share: clocks, scores, tables and the data folder.

Nothing here knows a model. Seconds are reported twice: *CPU* seconds are those of all threads of
this process (they do not suffer from a busy machine), *wall* seconds are what a user waits.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_info, threadpool_limits

DATA_VARIABLE = "SKLEARN_BNP_DATA"


class MissingData(Exception):
    """A file of the data folder is not there."""


def data_file(name: str) -> Path:
    """Path of a file in the data folder, or `MissingData` with the remedy."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise MissingData(f"{name}: set {DATA_VARIABLE} to the folder that holds it")
    path = Path(folder) / name
    if not path.exists():
        raise MissingData(f"{name}: not found in {DATA_VARIABLE}={folder}")
    return path


class Clock:
    """``with Clock() as clock:`` leaves ``clock.wall`` and ``clock.cpu``, in seconds."""

    def __enter__(self) -> Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exc) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu


def fit_timed(model: BaseEstimator, X, y=None) -> Clock:
    """Fit in place; that a fixed number of laps did not converge is no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with Clock() as clock:
            model.fit(X, y)
    return clock


def seconds_per_iteration(model: BaseEstimator, X, laps: int = 5, repeat: int = 3) -> float:
    """Wall seconds of one pass: (t(1 + laps) - t(1)) / laps, each the least of ``repeat`` fits.

    The difference leaves out validation, initialisation and the last E step of a fit. The
    estimator must not stop early: give it ``tol=0``.
    """
    least = {}
    for max_iter in (1, 1 + laps):
        seconds = []
        for _ in range(repeat):
            fitted = clone(model).set_params(max_iter=max_iter)
            seconds.append(fit_timed(fitted, X).wall)
            if fitted.n_iter_ != max_iter:
                raise RuntimeError(
                    f"{type(model).__name__} made {fitted.n_iter_} of {max_iter} iterations: its"
                    " time per iteration cannot be told; use tol=0 or data that converge later"
                )
        least[max_iter] = min(seconds)
    return (least[1 + laps] - least[1]) / laps


def proposal_share(model, seconds: float) -> float:
    """Part of the ``seconds`` of a fit that its proposals took (planning, trials, judging)."""
    return sum(_field(record, "proposal_seconds") for record in model.history_) / seconds


def _field(record, name: str):
    return record[name] if isinstance(record, Mapping) else getattr(record, name)


# Scores. A label y < 0 marks a row that belongs to no cluster: it is not scored.


def ari(y, labels) -> float:
    """Adjusted Rand index over the rows that have a true label."""
    y, labels = np.asarray(y), np.asarray(labels)
    known = y >= 0
    return float(adjusted_rand_score(y[known], labels[known]))


def matched_accuracy(y, labels) -> float:
    """Accuracy under the best one-to-one matching of clusters to classes (Hungarian)."""
    y, labels = np.asarray(y), np.asarray(labels)
    known = y >= 0
    table = contingency_matrix(y[known], labels[known])
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def majority_accuracy(y, labels, y_new=None, labels_new=None) -> float:
    """Accuracy when each cluster is named after the class most of its rows (y, labels) have.

    With new rows, those are scored under the names learned from the first; a new row in a
    cluster that had no row before counts as wrong.
    """
    classes, y_code = np.unique(y, return_inverse=True)
    clusters, label_code = np.unique(labels, return_inverse=True)
    table = np.zeros((clusters.size, classes.size), dtype=np.int64)
    np.add.at(table, (label_code, y_code), 1)
    if y_new is None:
        return float(table.max(axis=1).sum() / table.sum())
    names = dict(zip(clusters.tolist(), classes[table.argmax(axis=1)].tolist(), strict=True))
    hits = [names.get(c) == t for c, t in zip(labels_new.tolist(), y_new.tolist(), strict=True)]
    return float(np.mean(hits))


# Printing


def tally(values: Iterable[int]) -> str:
    """``[8, 8, 9]`` as ``"8 x2, 9 x1"``."""
    return ", ".join(f"{value} x{n}" for value, n in sorted(Counter(values).items()))


def verdict(passed: bool | None) -> str:
    """How a figure stands against its target; None: there is none, or it was not measured."""
    return "-" if passed is None else ("yes" if passed else "NO")


def number(value, spec: str = ".3f") -> str:
    """A formatted number; ``-`` for None and nan."""
    return "-" if value is None or np.isnan(value) else format(value, spec)


def median(values: Iterable[float]) -> float:
    values = list(values)
    return statistics.median(values) if values else float("nan")


def print_table(header: Sequence[str], rows: Iterable[Sequence], title: str = "") -> None:
    """Rows as aligned text: first column to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if j else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "-" * sum(widths, 2 * (len(widths) - 1)))
    print(*([f"\n{title}"] if title else [""]), *lines, sep="\n", flush=True)


def print_targets(rows: Iterable[tuple[str, str, str, bool | None]]) -> None:
    """The closing table: what was measured, the figure, the target beside it, and if it is met."""
    print_table(
        ["figure", "measured", "target", "met"],
        [(what, figure, target, verdict(met)) for what, figure, target, met in rows],
        title="Targets",
    )


def write_csv(path: str | os.PathLike, rows: Sequence) -> None:
    """A list of NamedTuples as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)


# The command line


def parser(module_doc: str) -> argparse.ArgumentParser:
    """An argument parser that shows the module's docstring and knows ``--threads``."""
    made = argparse.ArgumentParser(
        description=module_doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--threads", type=int, default=1, help="threads for BLAS and OpenMP, and n_jobs (1)"
    )
    return made


def start(script: str, threads: int) -> threadpool_limits:
    """Hold BLAS and OpenMP at ``threads`` and print the setting that the figures belong to.

    Call it after the imports: only libraries that are loaded are limited. The limit holds as
    long as the process lives.
    """
    limits = threadpool_limits(limits=threads)
    pools = sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
    print(
        f"{script}: {platform.machine()}, {os.cpu_count()} cores, Python"
        f" {platform.python_version()}, "
        + ", ".join(f"{name} {_version(name)}" for name in ("numpy", "scikit-learn", "sklearn-bnp"))
        + f"\nthreads: n_jobs {threads}; {', '.join(pools)}",
        flush=True,
    )
    return limits


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
