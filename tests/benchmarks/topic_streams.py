"""Topics of documents that come in batches, each of them once: `partial_fit` beside `fit` of all documents.

Corpora: *bars* (10 topics, 1000 documents of 200 tokens), *lda* (20 drawn topics), and texts of NIPS and
Wikipedia, thinned to the number of tokens that is named. The order of the documents is random. *bound* is the
lower bound in nats a token, *held out* the score of document completion, half of the tokens hidden;
*matched* counts the true topics that were found. Times are CPU seconds of one thread.

Targets: on drawn topics a stream finds all topics, and predicts as well as a fit within .02 nats a token.

    python -m tests.benchmarks.topic_streams
    python -m tests.benchmarks.topic_streams --corpora nips-40 --batch 100
    python -m tests.benchmarks.topic_streams --package ../old
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from . import corpora, report
from .one_start_topics import corpus_of

_DRAWN = {"bars": corpora.bars, "lda": corpora.lda}
NEAR = 0.02


def _corpus(name: str, seed: int) -> corpora.Corpus:
    if name in _DRAWN:
        return _DRAWN[name](seed)
    title, n_tokens = name.split("-")
    return corpus_of(title, int(n_tokens), seed)


def _line(model, X, corpus, split, cpu) -> tuple[list[str], float, int | None]:
    """Cells of a table, the held-out score, and the number of true topics that were found."""
    score = corpora.completion_score(split, model.components_, model.transform)
    matched = None
    if corpus.phi is not None:
        matched = corpora.match_topics(model.components_, corpus.phi).n_matched
    bound = model.lower_bound_ / X.sum()
    cells = [f"{model.n_components_}", "-" if matched is None else f"{matched}"]
    return [*cells, f"{bound:.4f}", f"{score:.4f}", f"{cpu:.1f}"], score, matched


def measure(name: str, size: int, seed: int):
    """Lines of a stream and of a fit, and whether the stream meets the target; None for real texts."""
    from sklearn_bnp import HDPTopicVB  # of the package that ``--package`` names

    corpus = _corpus(name, seed)
    split = corpora.completion(corpus.heldout, seed)
    X = corpus.train[np.random.RandomState(seed).permutation(corpus.train.shape[0])]
    stream = HDPTopicVB(random_state=seed)
    with report.Clock() as clock:
        for start in range(0, X.shape[0], size):
            stream.partial_fit(X[start : start + size])
    found, score, matched = _line(stream, X, corpus, split, clock.cpu)
    fit = HDPTopicVB(random_state=seed)
    clock = report.fit_timed(fit, X)
    beside, best, _ = _line(fit, X, corpus, split, clock.cpu)
    met = None if corpus.phi is None else matched == len(corpus.phi) and score > best - NEAR
    label = [name, str(seed), str(-(-X.shape[0] // size))]
    return [[*label, "stream", *found], [*label, "fit", *beside]], met


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--corpora", nargs="+", default=["bars", "lda", "wiki-200"])
    parser.add_argument("--batch", type=int, default=50, help="documents of a batch (50)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--package", help="folder of the checkout whose sklearn_bnp is imported")
    args = parser.parse_args()
    if args.package:
        sys.path.insert(0, args.package)
    import sklearn_bnp

    limits = report.start(f"topic_streams, {sklearn_bnp.__file__}", args.threads)
    warnings.simplefilter("ignore")
    lines, verdicts = [], []
    for name in args.corpora:
        for seed in range(args.seeds):
            found, met = measure(name, args.batch, seed)
            lines += found
            verdicts += [] if met is None else [met]
    header = ["corpus", "seed", "batches", "by", "K", "matched", "bound", "held out", "CPU s"]
    report.print_table(header, lines)
    if verdicts:
        print(f"{sum(verdicts)} of {len(verdicts)} streams of drawn topics meet the target")
    limits.unregister()


if __name__ == "__main__":
    main()
