"""Is one start enough? Topics from one component, beside starts from anchor words and beside peers.

Texts are thinned to so many tokens a document, or drawn with words of power-law frequencies. For each, the
default fit from one topic is compared with fits from 10, 20 and 100 anchor topics under the same objective,
in bound (nats a token), K and held-out completion. Peers are told K where they need it: the K that the
default found.

Starts from many anchors may predict better at lower bounds: they keep more topics than the bound pays for.
The price of a topic depends on ``topic_word_prior``. One seed, from one topic, nats a token, under priors
that are given (those that are learned are in `word_priors`):

====================================  ====  ========  =========
corpus, ``topic_word_prior``            K    bound    held out
====================================  ====  ========  =========
power law at 12, 0.2 a type             2   -5.8346   -5.7248
the same, start from 20 anchors        12   -5.8567   -5.4537
100 in proportion to frequencies       13   -5.8227   -5.4566
300 in proportion to frequencies       14   -5.8139   -5.4387
docstrings at 6, 0.2 a type             6   -7.1279   -6.7801
100 in proportion to frequencies       11   -7.1718   -6.7941
====================================  ====  ========  =========

Where frequencies follow a power law, a prior about the frequencies of the corpus ends with 14 topics (15 were
drawn) where a symmetric one ends with 2, at a higher bound and better predictions. On docstrings at 6
tokens it is worse in both: mean and strength have to be learned together.

Topics of ``common_words`` share half of their words. Fits from one topic ended as one topic, or as blends,
2000 nats below starts from 40 documents, before births and restarts searched again with priors that are
learned before topics are joined.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from . import corpora, report
from .corpora import Corpus, completion, completion_score
from .topic_peers import gensim_hdp, gensim_lda, sklearn_lda, tomotopy_hdp, tomotopy_lda

ANCHORS = (10, 20, 100)
# What the default may lack: nats a token of the bound, and of held-out scores.
BOUND_ROOM, SCORE_ROOM = 0.005, 0.01


def thinned(X, n_tokens: int, rng, most_pieces: int = 10) -> sparse.csr_matrix:
    """Pieces of ``n_tokens`` tokens of each document, drawn without replacement; at most so many."""
    X = sparse.csr_matrix(X)
    rows, columns, n = [], [], 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        tokens = rng.permutation(np.repeat(X.indices[start:stop], X.data[start:stop]))
        for i in range(min(most_pieces, len(tokens) // n_tokens)):
            columns.append(tokens[i * n_tokens : (i + 1) * n_tokens])
            rows.append(np.full(n_tokens, n))
            n += 1
    columns, rows = np.concatenate(columns), np.concatenate(rows)
    ones = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_matrix((ones, (rows, columns)), shape=(n, X.shape[1]))


def short_texts(name: str, n_tokens: int, seed: int, most_pieces: int = 10) -> Corpus:
    """A corpus by its name, in pieces; as it is if ``n_tokens`` is 0. Words that never occur are left out."""
    whole = getattr(corpora, name)(0)
    train, heldout = whole.train, whole.heldout
    if n_tokens > 0:
        rng = np.random.default_rng(seed)
        train, heldout = (thinned(X, n_tokens, rng, most_pieces) for X in (train, heldout))
    used = np.flatnonzero(np.bincount(train.indices, minlength=train.shape[1]))
    return Corpus(f"{name} at {n_tokens}", train[:, used], heldout[:, used])


def power_law(
    n_tokens: int, seed: int, n_topics: int = 15, V: int = 3000, total: int = 60_000,
    strength: float = 100.0, alpha: float = 0.3,
) -> Corpus:  # fmt: skip
    """Topics about a base measure of power-law frequencies; documents of ``n_tokens`` tokens."""
    rng = np.random.default_rng(seed)
    base = 1.0 / (np.arange(V) + 2.7)
    phi = rng.dirichlet(strength * base / base.sum() + 1e-3, size=n_topics)
    weights = rng.dirichlet(np.full(n_topics, 3.0))
    n = total // n_tokens
    shares = rng.dirichlet(alpha * weights * n_topics / 3 + 1e-3, size=n + n // 5)
    X = corpora.draw_documents(rng, phi, shares, n_tokens)
    used = np.flatnonzero(np.bincount(X[:n].indices, minlength=V))
    return Corpus(f"power law at {n_tokens}", X[:n, used], X[n:, used])


def common_words(
    V: int = 500, seed: int = 0, n_topics: int = 10, n_docs: int = 500, n_tokens: int = 100,
    exponent: float = 1.0, share: float = 0.5, strength: float = 50.0, alpha: float = 0.1,
) -> tuple[sparse.csr_matrix, np.ndarray]:  # fmt: skip
    """Documents of topics (K, V) that have a ``share`` in common, as texts have with their frequent words."""
    rng = np.random.default_rng(seed)
    base = 1.0 / np.arange(1, V + 1) ** exponent
    base /= base.sum()
    phi = (1.0 - share) * rng.dirichlet(strength * base, size=n_topics) + share * base
    shares = rng.dirichlet(np.full(n_topics, alpha), size=n_docs)
    return corpora.draw_documents(rng, phi, shares, n_tokens), phi


def boilerplate(
    seed: int = 0, share: float = 0.4, n_topics: int = 8, n_docs: int = 400, n_tokens: int = 100,
    V: int = 300, n_common: int = 20,
) -> tuple[sparse.csr_matrix, np.ndarray]:  # fmt: skip
    """Documents of which a ``share`` is of the same few words, beside topics of others; topics (K + 1, V)."""
    rng = np.random.default_rng(seed)
    phi = np.zeros((n_topics + 1, V + n_common))
    phi[:-1, :V] = rng.dirichlet(np.full(V, 0.08), size=n_topics)
    phi[-1, V:] = 1.0 / n_common
    shares = (1.0 - share) * rng.dirichlet(np.full(n_topics, 0.3), size=n_docs)
    shares = np.column_stack([shares, np.full(n_docs, share)])
    return corpora.draw_documents(rng, phi, shares, n_tokens), phi


def corpus_of(name: str, n_tokens: int, seed: int) -> Corpus:
    if name == "power_law":
        return power_law(n_tokens, seed)
    if name == "common_words":
        X, _ = common_words(seed=seed, n_docs=600, n_tokens=n_tokens)
        return Corpus(f"common words at {n_tokens}", X[:500], X[500:])
    if name == "boilerplate":
        X, _ = boilerplate(seed, n_docs=500, n_tokens=n_tokens)
        return Corpus(f"boilerplate at {n_tokens}", X[:400], X[400:])
    if name in ("bars", "lda"):
        return getattr(corpora, name)(seed)
    return short_texts(name, n_tokens, seed)


def ours(corpus: Corpus, split, start: int, seed: int, **parameters):
    """A fit from one topic, or from anchors; its row of the table."""
    from sklearn_bnp import HDPTopicVB

    how = {} if start == 1 else {"init_params": "anchor"}
    model = HDPTopicVB(start, random_state=seed, **how, **parameters)
    clock = report.fit_timed(model, corpus.train)
    bound = model.lower_bound_ / corpus.train.sum()
    score = completion_score(split, model.means_, model.transform)
    return f"from {start}", model.n_components_, bound, score, clock.cpu, model


PEERS = {
    "sklearn": lambda X, K, seed: sklearn_lda(X, K, seed, max_iter=30),
    "gensim": lambda X, K, seed: gensim_lda(X, K, seed, passes=20),
    "gensim-hdp": lambda X, K, seed: gensim_hdp(X, seed=seed),
    "tomotopy": tomotopy_lda,
    "tomotopy-hdp": lambda X, K, seed: tomotopy_hdp(X, 50, seed),
}


def main():
    parser = report.parser(__doc__)
    parser.add_argument(
        "corpus",
        choices=[
            "nips",
            "wiki",
            "docstrings",
            "power_law",
            "common_words",
            "boilerplate",
            "bars",
            "lda",
        ],
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[5, 6, 8, 12, 20, 40, 80, 200])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--anchors", type=int, nargs="*", default=ANCHORS)
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS))
    parser.add_argument("--by", choices=["types", "tokens"], default="types")
    args = parser.parse_args()
    for n_tokens in args.tokens:
        for seed in args.seeds:
            corpus = corpus_of(args.corpus, n_tokens, seed)
            _table(corpus, completion(corpus.heldout, seed, args.by), args, seed)


def _table(corpus, split, args, seed):
    X = corpus.train
    print(
        f"\n{corpus.name}, seed {seed}: {X.shape[0]} documents, {X.sum()} tokens, {X.shape[1]} types"
    )
    runs = []
    for start in (1, *args.anchors):
        *row, _ = ours(corpus, split, start, seed)
        runs.append(row)
        print("{:14} K {:3d}  bound {:.4f}  held out {:.4f}  {:6.1f} s".format(*row), flush=True)
    (_, K, bound, score, _), others = runs[0], runs[1:]
    for name in args.peers:
        fit = PEERS[name](X, max(K, 2), seed)
        there = completion_score(split, fit.phi, fit.infer)
        lost = "" if there <= score else "  AHEAD OF OURS"
        print(f"{fit.name:24} held out {there:.4f}  {fit.clock.cpu:6.1f} s{lost}", flush=True)
    if others:
        best, most = max(r[2] for r in others), max(r[3] for r in others)
        print(
            f"bound - best {bound - best:+.4f}{'' if bound > best - BOUND_ROOM else '  BELOW'}; "
            f"held out - best {score - most:+.4f}{'' if score > most - SCORE_ROOM else '  BELOW'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
