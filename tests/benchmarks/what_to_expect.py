"""What to expect of one fit from one component, at default settings, on the problems of `expect_problems`.

For each problem: five fits of the default, from K = 1; twenty fits from more components, proposals as by
default, of which the highest bound counts (mixtures: from 2, 5, 10, 20 and 40; topics: from 10, 20, 50 and
100 topics of anchor words; states: from 5, 10, 20 and 40); and the peers. A fit from K = 1 *reaches* the best
start if its bound is at most .1 % of that bound's size below it. Scores of rows, tokens and steps held out
are in nats; those of topics are of document completion, half of the tokens hidden, by one piece of code for
ours and peers. Agreement is the adjusted Rand index (mixtures), the part of true topics that are matched
(topics), or the accuracy of the best matching (states).

Peers: GaussianMixture and hmmlearn's GaussianHMM with the K of least BIC, BayesianGaussianMixture told twice
the number that ours found, HDBSCAN (agreement only); scikit-learn's LDA told 10, 20 and 50, the best of the
three by the score held out, which is more than its users know. hmmlearn is used if it is installed.

Target: 95 % of the fits from K = 1 reach the best start.

    python -m tests.benchmarks.what_to_expect --write found.jsonl --jobs 2
    python -m tests.benchmarks.what_to_expect --read found.jsonl
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from . import report
from .corpora import completion_score, match_topics
from .expect_problems import PROBLEMS, Data, Problem
from .topic_peers import sklearn_lda

SEEDS, REACHED, GOAL = 5, 1e-3, 0.95
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
        heldout = completion_score(data.test, model.components_, model.transform)
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
    return match_topics(phi, data.truth).n_matched / len(data.truth)


def _fitted(problem: Problem, data: Data, by: str, n_components: int, seed: int) -> Fit:
    model = _ours(problem, n_components, seed)
    clock = report.fit_timed(model, data.train)
    figures = _figures(problem, data, model)
    return Fit(problem.name, by, seed, model.n_components_, model.lower_bound_, *figures, clock.cpu)


def _n_rows(data: Data) -> int:
    return data.train.shape[0] if hasattr(data.train, "shape") else sum(map(len, data.train))


def ours(problem: Problem, data: Data):
    """The fits from one component, then those from several."""
    for seed in range(SEEDS):
        yield _fitted(problem, data, "default", 1, seed)
    starts = STARTS[problem.kind]
    for i in range(N_STARTS):
        n = min(starts[i % len(starts)], _n_rows(data) // 4)
        yield _fitted(problem, data, f"from {n}", n, i // len(starts))


# ------------------------------------------------------------------ peers


def peers(problem: Problem, data: Data, n_found: int):
    """Fits of the peers that suit a problem; ``n_found`` components were found by ours."""
    if problem.kind == "topics":
        fits = [sklearn_lda(data.train, k, 0, "batch", max_iter=50) for k in (10, 20, 50)]
        scores = [completion_score(data.test, fit.phi, fit.infer) for fit in fits]
        best, cpu = int(np.argmax(scores)), sum(fit.clock.cpu for fit in fits)
        phi = fits[best].phi
        yield Fit(
            problem.name, "LDA", 0, len(phi), None, scores[best], _matched(data, phi), cpu
        )  # fmt: skip
    elif problem.kind == "states" and problem.gaussian:
        yield from _hmmlearn(problem, data)
    elif problem.kind == "mixture" and problem.gaussian:
        yield from _gaussian_mixtures(problem, data, n_found)


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
    yield fit("GaussianMixture, BIC", best, best.predict(Z), clock.cpu)
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
    yield Fit(problem.name, "hmmlearn, BIC", 0, k, None, score, agreement, clock.cpu)


# ------------------------------------------------------------------ the study


def study(problem: Problem) -> list[Fit]:
    """All fits of a problem, on one thread; none if its data are not there."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = problem.make()
        except report.MissingData as missing:
            print(f"skipped {problem.name}: {missing}", flush=True)
            return []
        fits = list(ours(problem, data))
        fits += peers(problem, data, fits[0].n_components)
    print(f"{problem.name}: {sum(fit.cpu for fit in fits):.0f} s", flush=True)
    return fits


class Summary(NamedTuple):
    """A line of the table."""

    name: str
    default: list[Fit]
    best: Fit  # of the starts from several components
    peers: list[Fit]

    @property
    def gaps(self) -> np.ndarray:
        """Each default's bound less the highest bound of any fit, by the size of that."""
        highest = max(fit.bound for fit in [*self.default, self.best])
        return np.array([(fit.bound - highest) / abs(highest) for fit in self.default])

    @property
    def n_reached(self) -> int:
        """Fits from one component that reach the highest bound."""
        return int(np.sum(self.gaps >= -REACHED))

    def cells(self) -> list[str]:
        """Text of the line: name, K, reached, worst gap, held out, agreement, seconds of ours."""
        default, best = self.default, self.best
        peer = max(self.peers, key=_heldout, default=None)
        worst = f"{1e3 * self.gaps.min():+.2f}"
        return [
            self.name, report.tally(fit.n_components for fit in default), str(best.n_components),
            f"{self.n_reached}/{len(default)}", "0" if worst in ("+0.00", "-0.00") else worst,
            _mean(default, "heldout"), report.number(best.heldout),
            "-" if peer is None else f"{peer.heldout:.3f} ({peer.by}, {peer.n_components})",
            _mean(default, "agreement", ".2f"), _most_agreed(self.peers),
            f"{np.mean([fit.cpu for fit in default]):.2f}",
        ]  # fmt: skip


def _heldout(fit: Fit) -> float:
    return -np.inf if fit.heldout is None else fit.heldout


def _mean(fits: list[Fit], field: str, spec: str = ".3f") -> str:
    values = [getattr(fit, field) for fit in fits]
    return "-" if None in values else format(np.mean(values), spec)


def _most_agreed(fits: list[Fit]) -> str:
    known = [fit for fit in fits if fit.agreement is not None]
    best = max(known, key=lambda fit: fit.agreement, default=None)
    return "-" if best is None else f"{best.agreement:.2f} ({best.by})"


HEADER = [
    "problem", "K over seeds", "K, best start", "reached", "worst gap, ‰", "held out",
    "best start's", "best peer's", "agreement", "most agreeing peer's", "cpu s",
]  # fmt: skip


def summaries(fits: list[Fit]) -> list[Summary]:
    """The table's lines, in the order of the problems."""
    made = []
    for name in PROBLEMS:
        own = [fit for fit in fits if fit.problem == name]
        default = [fit for fit in own if fit.by == "default"]
        starts = [fit for fit in own if fit.by.startswith("from ")]
        if default:
            others = [fit for fit in own if fit.bound is None]
            made.append(Summary(name, default, max(starts, key=lambda fit: fit.bound), others))
    return made


def print_rst(lines: list[Summary]) -> None:
    """The table as a list-table of the documentation."""
    print(".. list-table::\n   :header-rows: 1\n")
    for cells in [HEADER, *(line.cells() for line in lines)]:
        for i, cell in enumerate(cells):
            print(f"   {'* -' if i == 0 else '  -'} {cell}")


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("problems", nargs="*", help="parts of names of problems, or a kind (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--write", type=Path, help="file to which fits are added, as lines of JSON")
    parser.add_argument("--read", type=Path, help="show the fits of such a file; fit nothing")
    parser.add_argument("--rst", action="store_true", help="print the table as reStructuredText")
    args = parser.parse_args()
    if args.read:
        fits = [Fit(**json.loads(line)) for line in args.read.read_text().splitlines()]
    else:
        limits = report.start("what_to_expect", 1)
        wanted = [
            problem
            for problem in PROBLEMS.values()
            if not args.problems or any(w == problem.kind or w in problem.name for w in args.problems)
        ]  # fmt: skip
        fits = []
        runs = Parallel(args.jobs, return_as="generator_unordered")
        for made in runs(delayed(study)(problem) for problem in wanted):
            fits += made
            if args.write:
                with args.write.open("a") as file:
                    file.writelines(json.dumps(fit._asdict()) + "\n" for fit in made)
        limits.unregister()
    lines = summaries(fits)
    if args.rst:
        print_rst(lines)
        return
    report.print_table(HEADER, [line.cells() for line in lines])
    n = sum(len(line.default) for line in lines)
    share = sum(line.n_reached for line in lines) / max(n, 1)
    goal = f">= {100 * GOAL:.0f} %"
    targets = [
        ("fits from 1 that reach the best start", f"{100 * share:.1f} %", goal, share >= GOAL)
    ]
    report.print_targets(targets)


if __name__ == "__main__":
    main()
