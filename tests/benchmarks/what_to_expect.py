"""What to expect of one fit from one component, at default settings, on the problems of `expect_problems`.

For each problem: five fits of the default, from K = 1; twenty fits from more components, proposals as by
default, of which the highest bound counts (mixtures: from 2, 5, 10, 20 and 40; topics: from 10, 20, 50 and
100 topics of anchor words; states: from 5, 10, 20 and 40); and the peers. A fit from K = 1 *reaches* the best
start if its bound is at most .1 % of that bound's size below it. Scores of rows, tokens and steps held out
are in nats; those of topics are of document completion, half of the tokens hidden, by one piece of code for
ours and peers. Agreement is the adjusted Rand index (mixtures), the part of true topics that are matched
(topics), or the accuracy of the best matching (states).

Peers: GaussianMixture and hmmlearn's GaussianHMM with the K of least BIC, BayesianGaussianMixture told twice
the number that ours found, HDBSCAN (agreement only). Of topics: LDA of scikit-learn and of tomotopy, told 10,
20 and 50; and HDPs, which find K, that of gensim and that of tomotopy, from 2 and from 50 topics. Of several
numbers the best by the score held out counts, which is more than users know. Peers that are not installed are
left out.

Target: 95 % of the fits from K = 1 reach the best start.

    python -m tests.benchmarks.what_to_expect --write found.jsonl --jobs 2
    python -m tests.benchmarks.what_to_expect --read found.jsonl

Fits that ``found.jsonl`` holds already are not made again. A study that was stopped goes on, and one of few
starts is continued with more.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from . import corpora, report, topic_peers
from .expect_problems import PROBLEMS, Data, Problem

SEEDS, REACHED, GOAL = 5, 1e-3, 0.95
# A score or an agreement that another has more of by this is a loss, which tables show in bold.
LOST = 0.01
STARTS = {"mixture": (2, 5, 10, 20, 40), "topics": (10, 20, 50, 100), "states": (5, 10, 20, 40)}
N_STARTS = 20
# The most components of a peer's search by BIC.
MOST = {"mixture": 30, "states": 20}


class Fit(NamedTuple):
    """One fit and its figures."""

    problem: str
    by: str
    seed: int
    n_components: int | None
    bound: float | None  # nats
    heldout: float | None  # nats a row, token or step
    agreement: float | None
    cpu: float  # seconds; of a search, those of the whole search


# ------------------------------------------------------------------ ours


def _ours(problem: Problem, n_components: int, seed: int):
    import sklearn_bnp

    classes = {"mixture": "DPMixtureVB", "topics": "HDPTopicVB", "states": "HDPHMMVB"}
    model = getattr(sklearn_bnp, classes[problem.kind])(n_components, random_state=seed)
    if problem.observation is not None:
        model.set_params(observation=problem.observation())
    if problem.kind == "topics" and n_components > 1:
        model.set_params(init_params="anchor")
    return model


def _figures(problem: Problem, data: Data, model) -> tuple[float, float | None]:
    """Score of what is held out, and agreement with the truth."""
    if problem.kind == "topics":
        heldout = corpora.completion_score(data.test, model.components_, model.transform)
        return heldout, _matched(data, model.components_)
    heldout = float(model.score(data.test))
    if data.truth is None:
        return heldout, None
    if problem.kind == "mixture":
        return heldout, float(adjusted_rand_score(data.truth, model.predict(data.train)))
    return heldout, _accuracy(data, np.concatenate(model.predict(data.train)))


def _accuracy(data: Data, found) -> float:
    known = data.truth >= 0
    return report.matched_accuracy(data.truth[known], found[known])


def _matched(data: Data, phi) -> float | None:
    if data.truth is None:
        return None
    return corpora.match_topics(phi, data.truth).n_matched / len(data.truth)


def _fitted(problem: Problem, data: Data, by: str, n_components: int, seed: int) -> Fit:
    model = _ours(problem, n_components, seed)
    clock = report.fit_timed(model, data.train)
    figures = _figures(problem, data, model)
    return Fit(problem.name, by, seed, model.n_components_, model.lower_bound_, *figures, clock.cpu)


def _n_rows(data: Data) -> int:
    return data.train.shape[0] if hasattr(data.train, "shape") else sum(map(len, data.train))


def _plan(problem: Problem, data: Data, seeds: int, n_starts: int):
    """Name, number of components and seed of each fit: those from one component, then the others."""
    for seed in range(seeds):
        yield "default", 1, seed
    starts = STARTS[problem.kind]
    for i in range(n_starts):
        n = min(starts[i % len(starts)], _n_rows(data) // 4)
        yield f"from {n}", n, i // len(starts)


# ------------------------------------------------------------------ peers


def _peers(problem: Problem, data: Data, n_found: int):
    """Fits of the peers that suit a problem; ``n_found`` components were found by ours."""
    if problem.kind == "topics":
        yield from _topic_models(problem, data)
    elif problem.kind == "states" and problem.gaussian:
        yield from _hmmlearn(problem, data)
    elif problem.kind == "mixture" and problem.gaussian:
        yield from _gaussian_mixtures(problem, data, n_found)


# Name -> how one is fitted, and the numbers of topics that it is told or starts from.
TOPIC_PEERS = {
    "scikit-learn LDA": (partial(topic_peers.sklearn_lda, max_iter=20), (10, 20, 50)),
    "tomotopy LDA": (topic_peers.tomotopy_lda, (10, 20, 50)),
    "gensim HDP": (topic_peers.gensim_hdp, (150,)),
    "tomotopy HDP": (topic_peers.tomotopy_hdp, (2, 50)),
}


def _topic_models(problem: Problem, data: Data):
    for name, (fit_of, numbers) in TOPIC_PEERS.items():
        try:
            fits = [fit_of(data.train, n) for n in numbers]
        except ImportError:
            continue
        scores = [corpora.completion_score(data.test, fit.phi, fit.infer) for fit in fits]
        best, cpu = int(np.argmax(scores)), sum(fit.clock.cpu for fit in fits)
        phi = fits[best].phi
        figures = scores[best], _matched(data, phi)
        yield Fit(problem.name, name, 0, len(phi), None, *figures, cpu)


def _gaussian_mixtures(problem: Problem, data: Data, n_found: int):
    """On standardised columns; scores are in the units of the data again."""
    scaler = StandardScaler().fit(data.train)
    Z, Z_test = scaler.transform(data.train), scaler.transform(data.test)
    shift = float(np.log(scaler.scale_).sum())

    def fit(by, model, labels, cpu):
        n = len(np.unique(labels))
        score = float(model.score(Z_test)) - shift
        return Fit(problem.name, by, 0, n, None, score, _ari(data, labels), cpu)

    with report.Clock() as clock:
        most = min(MOST["mixture"], len(Z) // 4)
        fits = [
            GaussianMixture(k, covariance_type=problem.gaussian, random_state=0).fit(Z)
            for k in range(1, most + 1)
        ]
        best = min(fits, key=lambda one: one.bic(Z))
    yield fit("GaussianMixture", best, best.predict(Z), clock.cpu)
    model = BayesianGaussianMixture(
        n_components=min(2 * n_found, most),
        covariance_type=problem.gaussian,
        max_iter=500,
        random_state=0,
    )
    clock = report.fit_timed(model, Z)
    yield fit("BayesianGaussianMixture", model, model.predict(Z), clock.cpu)
    model = HDBSCAN(min_cluster_size=15, copy=True)
    clock = report.fit_timed(model, Z)
    n, agreement = len(np.unique(model.labels_[model.labels_ >= 0])), _ari(data, model.labels_)
    yield Fit(problem.name, "HDBSCAN", 0, n, None, None, agreement, clock.cpu)


def _ari(data: Data, labels) -> float | None:
    return None if data.truth is None else float(adjusted_rand_score(data.truth, labels))


def _hmmlearn(problem: Problem, data: Data):
    try:
        from hmmlearn.hmm import GaussianHMM
    except ImportError:
        return
    X, lengths = np.concatenate(data.train), [len(x) for x in data.train]
    X_test, test_lengths = np.concatenate(data.test), [len(x) for x in data.test]
    fits = []
    with report.Clock() as clock:
        for k in range(1, MOST["states"] + 1):
            model = GaussianHMM(k, problem.gaussian, n_iter=50, random_state=0)
            try:
                fits.append((model.fit(X, lengths).bic(X, lengths), k, model))
            except ValueError:  # too few rows for a state
                continue
    _, k, best = min(fits, key=lambda one: one[:2])
    agreement = None if data.truth is None else _accuracy(data, best.predict(X, lengths))
    score = float(best.score(X_test, test_lengths)) / len(X_test)
    yield Fit(problem.name, "hmmlearn", 0, k, None, score, agreement, clock.cpu)


# ------------------------------------------------------------------ the study


def _task(function: Callable, *args):
    """A fit or all fits of peers, on one thread and without warnings."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = function(*args)
        return [made] if isinstance(made, Fit) else list(made)


def study(problem: Problem, held: Sequence[Fit], pool: Parallel, seeds: int, n_starts: int):
    """Fits of a problem that are not ``held``, as they are made; none if its data are not there."""
    try:
        data = problem.make()
    except report.MissingData as missing:
        print(f"skipped {problem.name}: {missing}", flush=True)
        return
    held = [fit for fit in held if fit.problem == problem.name]
    known = {(fit.by, fit.seed): fit for fit in held}
    plan = [
        (problem, data, *one)
        for one in _plan(problem, data, seeds, n_starts)
        if (one[0], one[2]) not in known
    ]
    for made in pool(delayed(_task)(_fitted, *args) for args in plan):
        known |= {(fit.by, fit.seed): fit for fit in made}
        yield from made
    if all(fit.bound is not None for fit in held):
        n_found = known["default", 0].n_components
        for made in pool([delayed(_task)(_peers, problem, data, n_found)]):
            yield from made


class Summary(NamedTuple):
    """A line of the table."""

    name: str
    default: list[Fit]
    best: Fit  # of the starts from several components
    n_starts: int
    peers: list[Fit]

    @property
    def highest(self) -> float:
        """The highest bound of any fit."""
        return max(fit.bound for fit in [*self.default, self.best])

    @property
    def gaps(self) -> np.ndarray:
        """Each default's bound less the highest bound, in nats."""
        return np.array([fit.bound - self.highest for fit in self.default])

    @property
    def n_reached(self) -> int:
        """Fits from one component that reach the highest bound."""
        return int(np.sum(self.gaps >= -REACHED * abs(self.highest)))

    @property
    def peer(self) -> Fit | None:
        """The peer that predicts best."""
        known = [fit for fit in self.peers if fit.heldout is not None]
        return max(known, key=lambda fit: fit.heldout, default=None)

    def beside_starts(self) -> list[str]:
        """Cells of the table of starts."""
        default, best = self.default, self.best
        worst = self.gaps.min()
        return [
            self.name, report.tally(fit.n_components for fit in default), str(best.n_components),
            f"{self.n_reached} of {len(default)}", str(self.n_starts),
            f"{worst:z.1f}", f"{1e3 * worst / abs(self.highest):z.2f}",
            *_compared(_mean(default, "heldout"), best.heldout, ".3f"),
        ]  # fmt: skip

    def beside_peers(self) -> list[str]:
        """Cells of the table of peers."""
        default, peer = self.default, self.peer
        agreed = [fit for fit in self.peers if fit.agreement is not None]
        most = max(agreed, key=lambda fit: fit.agreement, default=None)
        return [
            self.name,
            *_compared(_mean(default, "heldout"), peer and peer.heldout, ".3f"),
            "-" if peer is None else f"{peer.by}, {peer.n_components}",
            *_compared(_mean(default, "agreement"), most and most.agreement, ".2f"),
            "-" if most is None else f"{most.by}, {most.n_components}",
            f"{_mean(default, 'cpu'):.2f}", "-" if peer is None else f"{peer.cpu:.2f}",
        ]  # fmt: skip


def _mean(fits: list[Fit], field: str) -> float | None:
    values = [getattr(fit, field) for fit in fits]
    return None if None in values else float(np.mean(values))


def _compared(ours: float | None, other: float | None, spec: str) -> tuple[str, str]:
    """Two figures as text; the second is bold where it is higher by more than .01."""
    cells = (report.number(one, spec) for one in (ours, other))
    lost = None not in (ours, other) and other - ours > LOST
    return tuple(f"**{cell}**" if lost and i else cell for i, cell in enumerate(cells))


TABLES = {
    "one fit beside the best of several starts": (
        Summary.beside_starts,
        ["problem", "K over seeds", "K, best start", "reached", "starts", "worst gap, nats", "‰",
         "held out", "best start's"],
    ),
    "one fit beside peers": (
        Summary.beside_peers,
        ["problem", "held out", "best peer's", "by", "agreement", "best peer's", "by", "CPU s",
         "peer's CPU s"],
    ),
}  # fmt: skip


def summaries(fits: list[Fit]) -> list[Summary]:
    """The table's lines, in the order of the problems."""
    made = []
    for name in PROBLEMS:
        own = [fit for fit in fits if fit.problem == name]
        default = [fit for fit in own if fit.by == "default"]
        starts = [fit for fit in own if fit.by.startswith("from ")]
        if default and starts:
            others = [fit for fit in own if fit.bound is None]
            best = max(starts, key=lambda fit: fit.bound)
            made.append(Summary(name, default, best, len(starts), others))
    return made


def print_tables(lines: list[Summary], rst: bool) -> None:
    """Two tables for each kind of problem, as text or for the documentation."""
    for kind in STARTS:
        chosen = [line for line in lines if PROBLEMS[line.name].kind == kind]
        for title, (cells_of, header) in TABLES.items() if chosen else ():
            rows = [cells_of(line) for line in chosen]
            if not rst:
                report.print_table(header, rows, title=f"{kind}: {title}")
                continue
            print(
                f"\n.. csv-table:: {kind}: {title}\n   :header: {'; '.join(header)}\n   :delim: ;\n"
            )
            for row in rows:  # a dash alone would be a list
                print("   " + "; ".join(r"\-" if cell == "-" else cell for cell in row))


def _read(path: Path) -> list[Fit]:
    return [Fit(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _is_meant(problem: Problem, part: str) -> bool:
    """Whether ``part`` is the kind of a problem, its name, or a part of it that is no other's name."""
    return part in (problem.kind, problem.name) or (part not in PROBLEMS and part in problem.name)


def _run(args) -> list[Fit]:
    """All fits of the problems that are asked for: those of the file, and new ones, which it gets."""
    limits = report.start("what_to_expect", 1)
    fits = _read(args.write) if args.write and args.write.exists() else []
    pool = Parallel(args.jobs, return_as="generator")
    for problem in PROBLEMS.values():
        if args.problems and not any(_is_meant(problem, part) for part in args.problems):
            continue
        seconds = 0.0
        for fit in study(problem, tuple(fits), pool, args.seeds, args.starts):
            fits.append(fit)
            seconds += fit.cpu
            if args.write:
                with args.write.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(fit._asdict()) + "\n")
        print(f"{problem.name}: {seconds:.0f} s", flush=True)
    limits.unregister()
    return fits


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument(
        "problems", nargs="*", help="names of problems or parts of them, or a kind (all)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="fits from one component")
    parser.add_argument("--starts", type=int, default=N_STARTS, help="fits from several")
    parser.add_argument("--write", type=Path, help="file to which fits are added, as lines of JSON")
    parser.add_argument("--read", type=Path, help="show the fits of such a file; fit nothing")
    parser.add_argument("--rst", action="store_true", help="print the tables as reStructuredText")
    args = parser.parse_args()
    fits = _read(args.read) if args.read else _run(args)
    lines = summaries(fits)
    print_tables(lines, args.rst)
    n = sum(len(line.default) for line in lines)
    share = sum(line.n_reached for line in lines) / max(n, 1)
    goal = f">= {100 * GOAL:.0f} %"
    figure = f"{100 * share:.1f} % of {n}"
    report.print_targets([("fits from 1 that reach the best start", figure, goal, share >= GOAL)])


if __name__ == "__main__":
    main()
