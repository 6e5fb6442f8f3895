"""Should the prior of words be learned, and in which shape? Bound, held-out completion, K and CPU.

Four priors are compared by fits from one topic: 0.2 a type; equal pseudo-counts of learned size; those
in proportion to the words' frequencies, of learned strength; and the sum of both (``"auto"``). scikit-learn's
LatentDirichletAllocation is told 10, 20 and 50 topics, and judged by the same completion with its own
inference. Corpora are those of `one_start_topics`.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from . import report
from .corpora import completion, completion_score
from .one_start_topics import corpus_of, ours, short_texts
from .topic_peers import sklearn_lda

# Corpus -> its lengths, in tokens a document. Long documents of NIPS are cut into few pieces.
CORPORA = {
    "power_law": (6, 12, 20, 80),
    "nips": (8, 20, 80),
    "wiki": (8, 20, 80),
    "docstrings": (6, 20),
    "bars": (0,),
    "lda": (0,),
}
PIECES = {"nips": {8: 6, 20: 3, 80: 1}}
PRIORS = ("0.2", "even", "frequencies", "auto")


@contextmanager
def only(part):
    """Learn one of the two weights alone; the other one is next to nothing."""
    from sklearn_bnp.likelihood import dirichlet, multinomial

    call, first = dirichlet._Evidence.__call__, multinomial.first_prior

    def one_slope(self, prior):
        value, slopes = call(self, prior)
        return value, slopes * np.array([part == "even", part == "frequencies"])

    def first_of_part(counts):
        weights = (0.2, 1e-8) if part == "even" else (1e-8, 0.2 * len(counts))
        return dirichlet.prior_about(dirichlet.frequencies(counts), *weights)

    dirichlet._Evidence.__call__, multinomial.first_prior = one_slope, first_of_part
    try:
        yield
    finally:
        dirichlet._Evidence.__call__, multinomial.first_prior = call, first


def fitted(corpus, split, prior, seed):
    """The row of a prior, as from `ours`."""
    if prior in ("even", "frequencies"):
        with only(prior):
            return ours(corpus, split, 1, seed, topic_word_prior="auto")
    return ours(corpus, split, 1, seed, topic_word_prior="auto" if prior == "auto" else 0.2)


def texts(name, n_tokens, seed):
    pieces = PIECES.get(name, {}).get(n_tokens)
    if pieces is not None:
        return short_texts(name, n_tokens, seed, pieces)
    return corpus_of(name, n_tokens, seed)


def main():
    parser = report.parser(__doc__)
    parser.add_argument("corpora", nargs="*", default=list(CORPORA))
    parser.add_argument("--tokens", type=int, nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--priors", nargs="*", default=PRIORS, choices=PRIORS)
    parser.add_argument(
        "--topics", type=int, nargs="*", default=[10, 20, 50], help="of scikit-learn"
    )
    args = parser.parse_args()
    for name in args.corpora:
        for n_tokens in args.tokens or CORPORA[name]:
            for seed in args.seeds:
                _table(texts(name, n_tokens, seed), seed, args)


def _table(corpus, seed, args):
    X, split = corpus.train, completion(corpus.heldout, seed)
    print(
        f"\n{corpus.name}, seed {seed}: {X.shape[0]} documents, {X.sum()} tokens, {X.shape[1]} types"
    )
    for prior in args.priors:
        _, K, bound, score, cpu, model = fitted(corpus, split, prior, seed)
        about = model._model.prior.about
        even, strength = (0.2, 0.0) if about is None else about[1:]
        print(
            f"{prior:12} K {K:3d}  bound {bound:.4f}  held out {score:.4f}  {cpu:6.1f} s  "
            f"even {even * X.shape[1]:8.1f} strength {strength:8.1f} alpha {model.doc_topic_prior_:.3f}",
            flush=True,
        )
    for n_topics in args.topics:
        fit = sklearn_lda(X, n_topics, seed, max_iter=20)
        there = completion_score(split, fit.phi, fit.infer)
        print(
            f"sklearn {n_topics:3d} {'':20} held out {there:.4f}  {fit.clock.cpu:6.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
