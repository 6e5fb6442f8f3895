"""What the scripts on topics share: fitting ours, scoring it beside its peers, and their options."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from . import report
from .corpora import Completion, Corpus, completion, completion_score, match_topics
from .topic_peers import TopicFit

HEADER = ["fit", "seed", "K", "matched", "heldout", "- truth's", "laps", "cpu s", "wall s", "share"]


class Run(NamedTuple):
    """One fit of ours and its figures."""

    seed: int
    n_components: int
    matched: int | None  # of the true topics, None if these are not known
    heldout: float  # nats a hidden token
    cpu: float
    wall: float
    model: object


class Setting(NamedTuple):
    start: int
    n_batches: int

    def __str__(self):
        return f"from {self.start}, {self.n_batches} batch{'es' if self.n_batches > 1 else ''}"


def parser(doc: str, *, seeds: int, starts: list[int], by: str, max_iter: int, peer_iter: int):
    """Options that all scripts on topics have; the defaults are the script's."""
    made = report.parser(doc)
    made.add_argument("--seeds", type=int, default=seeds)
    made.add_argument("--start", type=int, nargs="+", default=starts, help="K to start from")
    made.add_argument("--batches", type=int, nargs="+", default=[1, 10])
    made.add_argument("--data-seed", type=int, default=0)
    made.add_argument("--max-iter", type=int, default=max_iter, help="laps at most")
    made.add_argument(
        "--by", choices=["types", "tokens"], default=by,
        help="what completion hides: a fifth of the word types, or half of the tokens",
    )  # fmt: skip
    made.add_argument("--peer", action="store_true", help="fit scikit-learn's LDA as well")
    made.add_argument("--gensim", action="store_true", help="fit gensim's LdaModel as well")
    made.add_argument("--peer-max-iter", type=int, default=peer_iter, help="passes of the peers")
    return made


def estimator(args, setting: Setting, seed: int, **parameters):
    """`HDPTopicVB` at its defaults but for the setting."""
    from sklearn_bnp import HDPTopicVB

    return HDPTopicVB(
        n_components=setting.start, n_batches=setting.n_batches, max_iter=args.max_iter,
        random_state=seed, n_jobs=args.threads, **parameters,
    )  # fmt: skip


def ours(model, corpus: Corpus, split: Completion, seed: int) -> Run:
    """Fit, time and score one of our models."""
    clock = report.fit_timed(model, corpus.train)
    heldout = completion_score(split, model.components_, model.transform)
    return Run(
        seed, model.n_components_, _matched(corpus, model.components_), heldout, clock.cpu,
        clock.wall, model,
    )  # fmt: skip


def told_score(args, corpus: Corpus, split: Completion) -> float:
    """Heldout score of topics learned from the true ones on: what there is to be had from the data.

    The truth itself is out of reach. A topic of V types is known from N tokens up to about V / 2 N nats a
    token, even if somebody told which tokens are its own.
    """
    model = estimator(args, Setting(len(corpus.phi), 1), 0, init_params=corpus.phi, proposals=None)
    model.set_params(tol=1e-6, max_iter=1000).fit(corpus.train)
    return completion_score(split, model.components_, model.transform)


def run_settings(args, corpus: Corpus, split: Completion, truth: float | None, **parameters):
    """All settings and seeds of the command line; prints a table, returns runs of each setting."""
    made = {}
    for pair in itertools.product(args.start, args.batches):
        setting = Setting(*pair)
        given = {name: choose(setting) for name, choose in parameters.items()}
        made[setting] = [
            ours(estimator(args, setting, seed, **given), corpus, split, seed)
            for seed in range(args.seeds)
        ]
        report.print_table(
            HEADER, [row(r, truth) for r in made[setting]], title=f"{corpus.name}: {setting}"
        )
    return made


def row(run: Run, truth: float | None) -> list:
    share = report.proposal_share(run.model, run.wall)
    return [
        "ours", run.seed, run.n_components, "-" if run.matched is None else run.matched,
        f"{run.heldout:.4f}", "-" if truth is None else f"{run.heldout - truth:+.4f}",
        len(run.model.history_), f"{run.cpu:.2f}", f"{run.wall:.2f}", f"{share:.2f}",
    ]  # fmt: skip


def print_peers(fits, corpus: Corpus, split: Completion, truth: float | None) -> list[tuple]:
    """Score peers as they are fitted, print them; pairs of their fit and heldout score."""
    made, rows = [], []
    for fit in fits:
        score = completion_score(split, fit.phi, fit.infer)
        made.append((fit, score))
        rows.append(_peer_row(fit, score, corpus, truth))
        print("  ".join(map(str, rows[-1])), flush=True)  # some take minutes
    report.print_table(HEADER, rows, title=f"{corpus.name}: told K")
    return made


def _peer_row(fit: TopicFit, score: float, corpus: Corpus, truth: float | None) -> list:
    matched = _matched(corpus, fit.phi)
    return [
        fit.name, "-", len(fit.phi), "-" if matched is None else matched, f"{score:.4f}",
        "-" if truth is None else f"{score - truth:+.4f}", fit.n_passes, f"{fit.clock.cpu:.2f}",
        f"{fit.clock.wall:.2f}", "-",
    ]  # fmt: skip


def split_of(args, corpus: Corpus) -> Completion:
    return completion(corpus.heldout, args.data_seed, args.by)


def _matched(corpus: Corpus, phi) -> int | None:
    return None if corpus.phi is None else match_topics(phi, corpus.phi).n_matched
