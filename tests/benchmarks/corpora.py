"""Corpora for the benchmarks of topic models, and the scores that every model is judged by.

Toy corpora take a seed and know the truth. Real ones are split into training and heldout documents by
the seed. Scores ask of a model only its topics and a function that infers documents' shares, so
that one piece of code judges ours, its peers and the truth.

Document completion (Hughes 2016, (5.59) and Sec. 7.4.1): of each heldout document one part is shown;
of the other, ``log sum_k pi_dk phi_kv`` is averaged over tokens, with pi_d inferred from the first.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import digamma
from sklearn.feature_extraction.text import CountVectorizer

from .report import data_file

# An inference: counts (n, V) -> shares of topics (n, K), rows sum to 1.
Infer = Callable[[sparse.csr_matrix], NDArray[np.floating]]


class Corpus(NamedTuple):
    """Document-term counts, as CountVectorizer gives them, and what is known of their origin."""

    name: str
    train: sparse.csr_matrix  # (n_docs, V), int64
    heldout: sparse.csr_matrix  # (n_heldout, V)
    phi: NDArray[np.floating] | None = None  # (K, V) true topics
    alpha: float | None = None  # Dirichlet parameter of each topic, by which the truth infers
    vocabulary: NDArray[np.str_] | None = None  # (V,)


# ------------------------------------------------------------------ toy corpora


def draw_documents(rng, phi, shares, n_tokens: int) -> sparse.csr_matrix:
    """Documents of ``n_tokens`` tokens each, from topics phi (K, V) and shares (n, K)."""
    cdf = np.cumsum(phi, axis=1)
    rows, columns = [], []
    for d, pi in enumerate(shares):
        sizes = rng.multinomial(n_tokens, pi)
        for k in np.flatnonzero(sizes):
            words = np.searchsorted(cdf[k], rng.random(sizes[k]) * cdf[k, -1], side="right")
            columns.append(words)
            rows.append(np.full(sizes[k], d))
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    counts = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_matrix((counts, (rows, columns)), shape=(len(shares), phi.shape[1]))


def bar_topics(rng, side: int = 30, n_topics: int = 10, noise: float = 0.5):
    """(K, side^2): half of the topics are horizontal bars of an image, half vertical ones.

    A share ``noise`` of each topic's mass lies anywhere in the image, unevenly.
    """
    half = n_topics // 2
    stripes = np.kron(np.eye(half), np.ones(side // half))  # (K / 2, side)
    across = np.ones(side)
    bars = [np.outer(s, across).ravel() for s in stripes]
    bars += [np.outer(across, s).ravel() for s in stripes]
    bars = np.array(bars) * rng.uniform(0.5, 1.5, size=(n_topics, side * side))
    everywhere = rng.uniform(0.5, 1.5, size=bars.shape)
    return (1.0 - noise) * _shares(bars) + noise * _shares(everywhere)


def bars(seed: int = 0, n_docs: int = 1000, n_heldout: int = 100, n_tokens: int = 200) -> Corpus:
    """Ten bars of 900 pixels (5.6.1): each document uses one to three of them."""
    rng = np.random.default_rng(seed)
    phi = bar_topics(rng)
    n = n_docs + n_heldout
    shares = np.zeros((n, len(phi)))
    for pi in shares:
        used = rng.choice(len(phi), rng.integers(1, 4), replace=False)
        pi[used] = rng.dirichlet(np.ones(len(used)))
    X = draw_documents(rng, phi, shares, n_tokens)
    return Corpus("bars", X[:n_docs], X[n_docs:], phi, 0.1)


def lda(
    seed: int = 0, n_topics: int = 20, n_docs: int = 2000, n_heldout: int = 200, V: int = 2000,
    n_tokens: int = 200, alpha: float = 0.1, beta: float = 0.05,
) -> Corpus:  # fmt: skip
    """A draw from latent Dirichlet allocation with ``alpha`` a topic and ``beta`` a type."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(V, beta), size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, alpha), size=n_docs + n_heldout)
    X = draw_documents(rng, phi, shares, n_tokens)
    return Corpus(f"lda{n_topics}", X[:n_docs], X[n_docs:], phi, alpha)


def null(seed: int = 0, n_docs: int = 1000, n_heldout: int = 100, V: int = 1000) -> Corpus:
    """Documents from one unigram distribution: there is one topic, and nothing else to find."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(V, 0.3), size=1)
    X = draw_documents(rng, phi, np.ones((n_docs + n_heldout, 1)), 200)
    return Corpus("null", X[:n_docs], X[n_docs:], phi, 1.0)


# ------------------------------------------------------------------ real corpora


def _split(name, X, vocabulary, seed, heldout=0.2) -> Corpus:
    """A fifth of the documents held out, drawn by the seed."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    n = round(heldout * X.shape[0])
    X = X.tocsr().astype(np.int64)
    return Corpus(name, X[np.sort(order[n:])], X[np.sort(order[:n])], vocabulary=vocabulary)


def _bag_of_words(name, seed) -> Corpus:
    path = data_file(f"{name}_bow.npz")
    vocabulary = np.array(data_file(f"{name}_vocab.txt").read_text(encoding="utf-8").splitlines())
    with np.load(path) as file:
        parts = file["word_count"], file["word_id"], file["doc_range"]
    X = sparse.csr_matrix(parts, shape=(len(parts[2]) - 1, len(vocabulary)))
    X.sum_duplicates()
    return _split(name, X, vocabulary, seed)


def nips(seed: int = 0) -> Corpus:
    """1740 papers of NIPS 0-12, 13649 types."""
    return _bag_of_words("nips", seed)


def wiki(seed: int = 0) -> Corpus:
    """211 articles of Wikipedia, 7702 types."""
    return _bag_of_words("wiki_small", seed)


def docstring_texts(packages=("numpy", "scipy", "sklearn"), least_words: int = 30) -> list[str]:
    """Docstrings of the public functions and classes of packages, each text once, sorted."""
    texts = set()
    for package in packages:
        for module in _modules(package):
            for name, value in list(vars(module).items()):
                if name.startswith("_") or not (callable(value) or inspect.isclass(value)):
                    continue
                if not str(getattr(value, "__module__", "")).startswith(package):
                    continue
                text = inspect.getdoc(value) or ""
                if len(text.split()) >= least_words:
                    texts.add(text)
    return sorted(texts)


def _modules(package):
    """The public modules of a package that can be imported here, without tests."""
    root = importlib.import_module(package)
    yield root
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pkgutil.iter_modules(root.__path__, f"{package}.")
        for info in found:
            last = info.name.rpartition(".")[2]
            if last.startswith("_") or last in ("tests", "conftest", "setup", "f2py", "distutils"):
                continue
            try:
                module = importlib.import_module(info.name)
            except (ImportError, AttributeError):
                continue
            yield module


def docstrings(seed: int = 0, **vectorizer) -> Corpus:
    """What numpy, scipy and scikit-learn say of themselves: every installation has it."""
    settings = {
        "stop_words": "english", "token_pattern": r"(?u)\b[a-zA-Z]{3,}\b", "min_df": 3, "max_df": 0.5,
    }  # fmt: skip
    made = CountVectorizer(**(settings | vectorizer))
    X = made.fit_transform(docstring_texts())
    return _split("docstrings", X, made.get_feature_names_out(), seed)


# ------------------------------------------------------------------ scores


class Matching(NamedTuple):
    n_matched: int  # true topics with a partner within the limit
    distance: NDArray[np.floating]  # (K_true,) total variation to its partner, inf without one
    partner: NDArray[np.intp]  # (K_true,) row of the found topics, -1 without one


def match_topics(found, truth, limit: float = 0.25) -> Matching:
    """One-to-one matching of found topics with true ones, of least total variation (Hungarian)."""
    cost = 0.5 * cdist(_shares(truth), _shares(found), "cityblock")
    # what is beyond the limit is no match, however far: a bad pair must not cost a good one
    rows, columns = linear_sum_assignment(np.minimum(cost, limit))
    distance, partner = np.full(len(truth), np.inf), np.full(len(truth), -1)
    distance[rows], partner[rows] = cost[rows, columns], columns
    return Matching(int(np.sum(distance < limit)), distance, partner)


class Completion(NamedTuple):
    """Heldout documents, each in two parts with the same shape (n, V)."""

    observed: sparse.csr_matrix
    hidden: sparse.csr_matrix


def completion(X, seed: int = 0, by: str = "types") -> Completion:
    """Split documents: 80 % of the word types of each are observed (7.4.1), or half of its tokens.

    ``by`` is "types" or "tokens". A document with fewer than two of them is observed as a whole.
    """
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(X)
    shown = np.zeros(X.nnz, dtype=np.int64)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        count = X.data[start:stop].astype(np.int64)
        if by == "types":
            order = rng.permutation(len(count))[: max(1, round(0.8 * len(count)))]
            shown[start + order] = count[order]
        elif count.sum() > 1:
            tokens = np.repeat(np.arange(len(count)), count)
            seen = rng.permutation(tokens)[: (len(tokens) + 1) // 2]
            shown[start:stop] = np.bincount(seen, minlength=len(count))
        else:
            shown[start:stop] = count
    parts = [_like(X, shown), _like(X, X.data.astype(np.int64) - shown)]
    return Completion(*parts)


def completion_score(split: Completion, phi, infer: Infer, block: int = 256) -> float:
    """Mean log probability, in nats, of the hidden tokens; phi (K, V) is normalised here."""
    phi, total = _shares(phi), 0.0
    pi = np.asarray(infer(split.observed), dtype=np.float64)
    if pi.shape != (split.observed.shape[0], len(phi)) or not np.allclose(pi.sum(axis=1), 1.0):
        raise ValueError(f"shares of shape {pi.shape} for {len(phi)} topics must sum to 1")
    for start in range(0, len(pi), block):
        hidden = split.hidden[start : start + block].tocoo()
        p = (pi[start : start + block] @ phi)[hidden.row, hidden.col]
        total += hidden.data @ np.log(p)
    return total / split.hidden.sum()


def fold_in(phi, alpha, n_iter: int = 2000, tol: float = 1e-5) -> Infer:
    """Variational inference of shares under fixed topics (K, V) and a Dirichlet(alpha) prior."""
    phi = _shares(phi)

    def infer(X):
        X = sparse.csr_matrix(X)
        out = np.empty((X.shape[0], len(phi)))
        for d, gamma in enumerate(out):
            at = slice(X.indptr[d], X.indptr[d + 1])
            lik, count = phi[:, X.indices[at]], X.data[at]
            gamma[:] = alpha + count.sum() / len(phi)
            for _ in range(n_iter):
                weight = np.exp(digamma(gamma))
                new = alpha + weight * (lik @ (count / (weight @ lik)))
                change = np.abs(new - gamma).max()
                gamma[:] = new
                if change < tol:
                    break
        return _shares(out)

    return infer


def true_score(corpus: Corpus, split: Completion) -> float:
    """Completion by the topics that drew the corpus."""
    return completion_score(split, corpus.phi, fold_in(corpus.phi, corpus.alpha))


def _shares(rows):
    """Rows divided by their sums."""
    rows = np.asarray(rows, dtype=np.float64)
    return rows / rows.sum(axis=1, keepdims=True)


def _like(X, data):
    """A matrix with X's pattern and other counts; no zeros are stored."""
    parts = (part.copy() for part in (data, X.indices, X.indptr))  # compacted in place below
    out = sparse.csr_matrix(tuple(parts), shape=X.shape)
    out.eliminate_zeros()
    return out
