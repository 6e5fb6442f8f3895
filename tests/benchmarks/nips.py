"""NIPS papers: 1740 documents, 13649 types, 2.3 million tokens, a fifth held out (needs SKLEARN_BNP_DATA).

Heldout: document completion, a fifth of the word types of each heldout document hidden (Sec. 7.4.1),
in nats a token. Ours from K = 1 and from 100 topics of anchor words; peers told K = 50, 100, 200.

Target: heldout at least the best peer's, in less time than that peer took (--peer --gensim). The
topics are printed, to be read.

    python -m tests.benchmarks.nips --peer --gensim
    python -m tests.benchmarks.nips --corpus wiki
"""

from __future__ import annotations

import numpy as np

from . import corpora, report, topic_runs
from .topic_peers import peers

CORPORA = {"nips": corpora.nips, "wiki": corpora.wiki, "docstrings": corpora.docstrings}


def print_topics(model, vocabulary, n_words: int = 10, n_topics: int = 40) -> None:
    """Heaviest topics first: the words of greatest probability, and those of greatest lift."""
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    mass = model.components_.sum(axis=1)
    usual = mass @ phi / mass.sum()
    print()
    for k in np.argsort(-mass)[:n_topics]:
        relevance = 0.6 * np.log(phi[k]) + 0.4 * np.log(phi[k] / usual)
        words = " ".join(vocabulary[np.argsort(-relevance)[:n_words]])
        print(f"{k:4d}  {100 * mass[k] / mass.sum():5.2f} %  {words}")


def main() -> None:
    parser = topic_runs.parser(
        __doc__, seeds=1, starts=[1, 100], by="types", max_iter=50, peer_iter=10
    )
    parser.add_argument("--corpus", choices=sorted(CORPORA), default="nips")
    parser.add_argument("--peer-topics", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--no-ours", action="store_true", help="fit the peers alone")
    args = parser.parse_args()
    try:
        corpus = CORPORA[args.corpus](args.data_seed)
    except report.MissingData as missing:
        raise SystemExit(f"skipped: {missing}") from None
    limits = report.start(args.corpus, args.threads)
    split = topic_runs.split_of(args, corpus)
    X = corpus.train
    print(f"{corpus.name}: {X.shape[0]} + {corpus.heldout.shape[0]} documents, {X.sum()} tokens")

    made, best, targets = {}, None, []
    if not args.no_ours:
        made = topic_runs.run_settings(
            args, corpus, split, None,
            init_params=lambda setting: "random" if setting.start == 1 else "anchor",
        )  # fmt: skip
        for setting, runs in made.items():
            print(f"\n{setting}", end="")
            print_topics(max(runs, key=lambda run: run.heldout).model, corpus.vocabulary)
    if args.peer or args.gensim:
        fits = peers(
            X, args.peer_topics, max_iter=args.peer_max_iter, sklearn=args.peer, gensim=args.gensim
        )
        scored = topic_runs.print_peers(fits, corpus, split, None)
        best = max(scored, key=lambda pair: pair[1])
    for setting, runs in made.items():
        heldout, seconds = min(r.heldout for r in runs), report.median(r.wall for r in runs)
        goals = ("-", None, "-", None)
        if best is not None:
            fit, score = best
            goals = (
                f">= {score:.4f} ({fit.name})", heldout >= score,
                f"< {fit.clock.wall:.1f}", seconds < fit.clock.wall,
            )  # fmt: skip
        targets += [
            (f"{setting}: worst heldout", f"{heldout:.4f}", *goals[:2]),
            (f"{setting}: median wall s", f"{seconds:.1f}", *goals[2:]),
        ]
    if targets:
        report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
