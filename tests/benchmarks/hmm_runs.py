"""What the scripts on hidden Markov models share: fitting ours, scoring it, and their options."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from . import report
from .chains import Sequences

HEADER = [
    "fit",
    "seed",
    "K",
    "Hamming",
    "many-to-1",
    "ELBO/number",
    "laps",
    "cpu s",
    "wall s",
    "share",
]


class Run(NamedTuple):
    """One fit of ours and its figures."""

    seed: int
    n_components: int
    hamming: float | None  # distance of the best one-to-one matching of states to true ones
    many_to_one: float | None
    elbo: float  # nats a number that is modelled
    cpu: float
    wall: float
    model: object


class Setting(NamedTuple):
    start: int
    n_batches: int
    stickiness: float | str

    def __str__(self):
        return (
            f"from {self.start}, {self.n_batches} batch{'es' if self.n_batches > 1 else ''}, "
            f"kappa {self.stickiness}"
        )


def parser(doc: str, *, seeds: int, starts: list[int], batches: list[int], stickiness=("auto",)):
    """Options that all scripts on sequences have; the defaults are the script's."""
    made = report.parser(doc)
    made.add_argument("--seeds", type=int, default=seeds)
    made.add_argument("--start", type=int, nargs="+", default=starts, help="K to start from")
    made.add_argument("--batches", type=int, nargs="+", default=batches)
    made.add_argument(
        "--stickiness", type=number_or_auto, nargs="+", default=list(stickiness), help="or auto"
    )
    made.add_argument("--max-iter", type=int, default=100, help="laps at most")
    return made


def number_or_auto(text: str) -> float | str:
    """A parameter that may be "auto", from the command line."""
    return text if text == "auto" else float(text)


def settings(args) -> list[Setting]:
    return [Setting(*s) for s in itertools.product(args.start, args.batches, args.stickiness)]


def fitted(args, setting: Setting, data: Sequences, seed: int, **parameters) -> Run:
    """Fit ours at its defaults but for the setting; time and score it."""
    from sklearn_bnp import HDPHMMVB

    model = HDPHMMVB(
        n_components=setting.start, n_batches=setting.n_batches, stickiness=setting.stickiness,
        max_iter=args.max_iter, random_state=seed, n_jobs=args.threads, **parameters,
    )  # fmt: skip
    clock = report.fit_timed(model, data.sequences)
    hamming = many = None
    if data.states is not None:
        found, truth = np.concatenate(model.predict(data.sequences)), np.concatenate(data.states)
        hamming, many = distances(truth, found)
    lags = getattr(model.observation, "order", 0)
    n_rows = data.n_rows - lags * len(data.sequences)
    elbo = model.lower_bound_ / (n_rows * data.sequences[0].shape[1])
    return Run(seed, model.n_components_, hamming, many, elbo, clock.cpu, clock.wall, model)


def distances(truth, found) -> tuple[float, float]:
    """Hamming distance after the best one-to-one matching, and accuracy of many to one."""
    counted = truth >= 0
    truth, found = truth[counted], found[counted]
    table = contingency_matrix(truth, found)
    return 1.0 - report.matched_accuracy(truth, found), table.max(axis=0).sum() / len(truth)


def row(run: Run) -> list:
    return [
        "ours", run.seed, run.n_components, report.number(run.hamming, ".4f"),
        report.number(run.many_to_one, ".3f"), f"{run.elbo:.4f}", len(run.model.history_),
        f"{run.cpu:.2f}", f"{run.wall:.2f}", f"{report.proposal_share(run.model, run.wall):.2f}",
    ]  # fmt: skip


def run_settings(args, data_of, **parameters) -> dict[Setting, list[Run]]:
    """All settings and seeds of the command line; prints a table each. ``data_of(seed)``."""
    made = {}
    for setting in settings(args):
        made[setting] = [
            fitted(args, setting, data_of(seed), seed, **parameters) for seed in range(args.seeds)
        ]
        report.print_table(HEADER, [row(r) for r in made[setting]], title=str(setting))
    return made
