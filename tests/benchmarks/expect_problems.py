"""The problems of `what_to_expect`: data sets and generators of all models, with rows held out.

Nobody tuned a default on this list as a whole; some of its members are old acquaintances. Data are drawn once
for each problem. Some lack what a model assumes on purpose: heavy tails, outliers, rings, no cluster at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import datasets

from . import chains, corpora, families, symbol_sequences
from . import generators as g
from .report import data_file


class Data(NamedTuple):
    """Rows, documents or sequences to learn from and to score, and what is known of their origin."""

    train: Any
    test: Any
    truth: Any = None  # labels of the rows of ``train``, or topics (K, V); None: not known


class Problem(NamedTuple):
    """A data set and how the estimator is set up for it; everything else is at its default."""

    name: str
    kind: str  # "mixture", "topics" or "states"
    make: Callable[[], Data]
    observation: Callable[[], Any] | None = None  # None: the default of the estimator
    gaussian: str = ""  # covariances of the peers, if the rows are for them


# ------------------------------------------------------------------ mixtures


def _halves(X, y=None, seed=0, share=0.3, most=None) -> Data:
    """Rows of a table, shuffled; a share of them is held out."""
    order = np.random.default_rng(seed).permutation(len(X))[:most]
    n = round(share * len(order))
    train, test = np.sort(order[n:]), np.sort(order[:n])
    return Data(X[train], X[test], None if y is None else y[train])


def _generated(make: Callable[..., g.Dataset], **parameters) -> Callable[[], Data]:
    def made():
        _, X, y = make(**parameters)
        return _halves(X, y)

    return made


def _gaussians(n_components, n_features, n_rows, separation, seed, **shape):
    size = {"n_rows": n_rows, "n_features": n_features, "n_components": n_components}
    name = f"{n_components} Gaussians, {n_features}-D, {round(0.7 * n_rows)} rows"
    made = _generated(
        g.gaussians, seed=seed, name=name, separation=separation, evenness=5.0, **size, **shape
    )
    return Problem(name, "mixture", made, None, "full")


def narrow_in_wide(seed: int = 0, n_features: int = 3, n_rows: int = 1500) -> g.Dataset:
    """Three narrow clusters inside a wide one."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, n_features)) * 2.0
    means = np.vstack([np.zeros(n_features), centres])
    scales = np.array([25.0, 0.05, 0.1, 0.05])
    covariances = g.random_covariances(rng, 4, n_features, 4.0) * scales[:, None, None]
    sizes = [n_rows // 2, n_rows // 6, n_rows // 6, n_rows // 6]
    return g.Dataset("narrow inside wide", *g.mixture(rng, means, covariances, sizes))


def rings(seed: int = 0) -> g.Dataset:
    """Two rings, one inside the other: no Gaussian fits them."""
    X, y = datasets.make_circles(2000, noise=0.05, factor=0.5, random_state=seed)
    return g.Dataset("rings", X, y)


def _family(name: str, rows: Callable | None = None, title: str = "") -> Problem:
    """A family of `families`, its rows drawn twice as often; ``rows`` draws harder ones."""
    family = families.FAMILIES[name]

    def made():
        rng = np.random.RandomState(0)
        labels = np.concatenate([families.labels_of_rows(rng) for _ in range(2)])
        X = (rows or family.rows)(rng, labels)
        n = families.N_ROWS
        return Data(X[:n], X[n:], labels[:n])

    gaussian = name.removeprefix("gaussian ") if name in ("gaussian full", "gaussian diag") else ""
    return Problem(title or name, "mixture", made, family.observation, gaussian)


def with_gaps(seed: int = 0, share: float = 0.2) -> g.Dataset:
    """Six Gaussians in five columns, a fifth of whose entries are missing."""
    _, X, y = g.gaussians(seed, "", 1500, 5, 6, separation=7.0)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return g.Dataset("missing values", X, y)


def _observation(name: str, **parameters) -> Callable[[], Any]:
    def make():
        import sklearn_bnp

        return getattr(sklearn_bnp, name)(**parameters)

    return make


_DIAGONAL = _observation("GaussianObservation", covariance_type="diag")
_ZERO_MEAN = _observation("GaussianObservation", zero_mean=True)


def _mnist() -> Data:
    with np.load(data_file("mnist_pca50.npz")) as file:
        X, y = file["X_train"][:6000].astype(float), file["y_train"][:6000]
        return Data(X, file["X_test"][:3000].astype(float), y)


def _cifar() -> Data:
    with np.load(data_file("cifar10_gray_pca50.npz")) as file:
        X = file["X_train"][:6000].astype(float)
    return _halves(X)


def _patches() -> Data:
    with np.load(data_file("bsds_patches8x8_100k.npz")) as file:
        X = file["X"][::20].astype(float)
    return _halves(X - X.mean(axis=1, keepdims=True))


def _dichotomised_digits() -> g.Dataset:
    data = datasets.load_digits()
    return g.Dataset("digits, black or white", (data.data > 7).astype(float), data.target)


def _named(title: str, make: Callable, observation=None, gaussian="full", **parameters) -> Problem:
    return Problem(title, "mixture", _generated(make, **parameters), observation, gaussian)


MIXTURES = [
    _gaussians(4, 2, 700, 5.0, 1),
    _gaussians(8, 3, 1500, 4.0, 2),
    _gaussians(12, 6, 2000, 5.0, 3),
    _gaussians(15, 12, 2500, 5.0, 4),
    _gaussians(25, 20, 2200, 6.0, 5),
    _gaussians(30, 10, 4000, 5.0, 6),
    _gaussians(30, 2, 6000, 5.0, 7),
    _gaussians(6, 20, 700, 6.0, 8),
    _gaussians(10, 4, 8000, 3.5, 9),
    _named("elongated", partial(g.gaussians, name=""), n_rows=2500, n_features=2, n_components=5,
           separation=6.0, condition=400.0, seed=0),
    _named("narrow inside wide", narrow_in_wide),
    _named("sizes and spreads unequal", g.unequal),
    _named("units of columns unequal", g.decades),
    _named("a cluster of 1 %", partial(g.rare, 0), share=0.01, n_rows=5000),
    _named("heavy tails", g.t_noise),
    _named("2 % outliers", g.outliers),
    _named("whole numbers", g.integers),
    _named("answers from 1 to 5", g.likert),
    _named("one Gaussian, 10-D", partial(g.null_gaussian, 0), n_rows=2000, n_features=10),
    _named("a flat square", g.null_uniform),
    _named("two moons", g.moons),
    _named("two rings", rings),
    _named("asterisk", g.asterisk),
    _named("iris", g.iris),
    _named("wine", g.wine),
    _named("wine, diagonal", g.wine, _DIAGONAL, "diag"),
    _named("breast cancer", g.cancer),
    _named("digits", g.digits),
    _named("digits, diagonal", g.digits, _DIAGONAL, "diag"),
    _named("digits, black or white", _dichotomised_digits, _observation("BernoulliObservation"), ""),
    _named("toy patches", g.toy_patches, _ZERO_MEAN, "", n_rows=6000),
    _named("missing values", with_gaps, None, ""),
    Problem("MNIST, 50 components", "mixture", _mnist, None, "full"),
    Problem("CIFAR, 50 components", "mixture", _cifar, None, "full"),
    Problem("patches of photographs", "mixture", _patches, _ZERO_MEAN),
    _family("gaussian diag"),
    _family("gaussian spherical"),
    _family("fixed variance"),
    _family("bernoulli", partial(families.bernoulli, n_features=25), "bernoulli, 25 columns"),
    _family("poisson", partial(families.poisson, n_features=5), "poisson, 5 columns"),
    _family("multinomial", partial(families.multinomial, n_tokens=25), "multinomial, 25 tokens"),
    _family("categorical", partial(families.categorical, n_features=10), "categorical, 10 columns"),
    _family("mixed columns"),
]  # fmt: skip


# ------------------------------------------------------------------ topics


def thinned(corpus: corpora.Corpus, n_tokens: int, seed: int = 0) -> corpora.Corpus:
    """At most ``n_tokens`` tokens of each document, drawn without replacement.

    Of real texts, words that are left in no training document are left out, as a vectorizer does.
    """
    rng = np.random.default_rng(seed)

    def thin(X):
        X = sparse.csr_matrix(X)
        data = X.data.astype(np.int64)
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            count = data[start:stop]
            if count.sum() > n_tokens:
                data[start:stop] = rng.multivariate_hypergeometric(count, n_tokens, method="count")
        out = sparse.csr_matrix((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        out.eliminate_zeros()
        return out

    train, heldout = thin(corpus.train), thin(corpus.heldout)
    if corpus.phi is None:
        used = np.flatnonzero(train.getnnz(axis=0))
        train, heldout = train[:, used], heldout[:, used]
    return corpus._replace(train=train, heldout=heldout)


def power_law_words(
    seed: int = 0, *, n_topics: int = 15, n_docs: int = 3000, V: int = 1500, n_tokens: int = 10
) -> corpora.Corpus:
    """Topics around one distribution of words that follows Zipf's law; one or two topics a document."""
    rng = np.random.default_rng(seed)
    usual = 1.0 / np.arange(1, V + 1)
    phi = rng.dirichlet(100.0 * usual / usual.sum(), size=n_topics)
    n = n_docs + n_docs // 5
    shares = rng.dirichlet(np.full(n_topics, 0.05), size=n)
    X = corpora.draw_documents(rng, phi, shares, n_tokens)
    return corpora.Corpus("power law", X[:n_docs], X[n_docs:], phi, 0.05)


def _corpus(title: str, make: Callable[[], corpora.Corpus], n_tokens: int | None = None) -> Problem:
    def made():
        corpus = make() if n_tokens is None else thinned(make(), n_tokens)
        return Data(corpus.train, corpora.completion(corpus.heldout, 0, "tokens"), corpus.phi)

    title += "" if n_tokens is None else f", {n_tokens} tokens"
    return Problem(title, "topics", made)


TOPICS = [
    _corpus("bars", corpora.bars),
    _corpus("20 drawn topics", corpora.lda),
    _corpus("20 drawn topics", corpora.lda, 20),
    _corpus("words of one topic", corpora.null),
    *(_corpus(f"power law, {n} tokens", partial(power_law_words, n_tokens=n)) for n in (6, 12, 40)),
    *(_corpus("NIPS", corpora.nips, n) for n in (8, 40, 200)),
    *(_corpus("Wikipedia", corpora.wiki, n) for n in (200, None)),
    *(_corpus("docstrings", corpora.docstrings, n) for n in (6, 20, None)),
]


# ------------------------------------------------------------------ sequences


def _sequences(title: str, data: Callable[[], chains.Sequences], observation=None, gaussian=""):
    """A quarter of the sequences is held out."""

    def made():
        _, rows, states = data()
        n = max(1, len(rows) // 4)
        truth = None if states is None else np.concatenate(states[n:])
        return Data(rows[n:], rows[:n], truth)

    return Problem(title, "states", made, observation, gaussian)


def _toy(n_states, n_features, n_sequences, length, stay, seed, spread=4.0):
    title = f"{n_states} states, {n_features}-D, stay {stay:g}, {n_sequences} x {length}"
    made = partial(
        chains.toy, seed, n_states=n_states, n_features=n_features, n_sequences=n_sequences,
        length=length, stay=stay, spread=spread,
    )  # fmt: skip
    return _sequences(title, made, gaussian="full")


def _steps_of_family(name: str) -> Problem:
    family = families.FAMILIES[name]

    def made():
        rng = np.random.RandomState(1)
        paths = [chains.sticky_path(rng, families.N_COMPONENTS, 150, 0.9) for _ in range(16)]
        return chains.Sequences(name, np.split(family.rows(rng, np.concatenate(paths)), 16), paths)

    return _sequences(f"states, {name}", made, family.observation)


def _symbols(kind: str) -> Problem:
    """The first random problem of this kind with five states, eight sequences and 3000 rows or more."""
    found = next(
        p
        for p in symbol_sequences.problems(60, seed=7)
        if p.kind == kind and p.n_states >= 5 and p.n_sequences >= 8 and p.n_rows >= 3000
    )
    title = f"symbols, {kind}, {found.n_states} states, {found.n_symbols} symbols"
    observation = _observation("CategoricalObservation", n_categories=found.n_symbols)
    return _sequences(title, lambda: found.draw(0)[0], observation)


def _cut(sequences: chains.Sequences, length: int) -> chains.Sequences:
    """The sequences in pieces of about this length."""
    rows, states = [], []
    for i, x in enumerate(sequences.sequences):
        n = max(1, round(len(x) / length))
        rows += np.array_split(x, n)
        if sequences.states is not None:
            states += np.array_split(sequences.states[i], n)
    return chains.Sequences(sequences.name, rows, states or None)


def _chromatin() -> chains.Sequences:
    data, _ = chains.chromatin()
    return chains.Sequences("chromatin", data.sequences[:4], None)


_MARKS = _observation("BernoulliObservation", prior=(0.1, 0.3))

STATES = [
    _toy(8, 2, 16, 500, 0.98, 0, spread=6.0),
    _toy(3, 1, 8, 200, 0.9, 1),
    _toy(5, 2, 8, 400, 0.5, 2),
    _toy(8, 4, 20, 200, 0.8, 3),
    _toy(12, 3, 12, 500, 0.95, 4),
    _toy(20, 5, 20, 500, 0.9, 5),
    _toy(20, 2, 20, 1000, 0.99, 6),
    _sequences("one state, 3-D", chains.null, gaussian="full"),
    _sequences("rotations", chains.toy_autoregressive, _observation("AutoregressiveObservation")),
    *map(_steps_of_family, ("poisson", "bernoulli", "categorical", "gaussian diag")),
    *map(_symbols, symbol_sequences.KINDS),
    _sequences("mocap6", chains.mocap6, _observation("AutoregressiveObservation")),
    _sequences("mocap6, pieces of 100", lambda: _cut(chains.mocap6(), 100),
               _observation("AutoregressiveObservation")),
    _sequences("chromatin, 4 pieces", _chromatin, _MARKS),
    _sequences("speakers, pieces of 100", lambda: _cut(chains.speakers(10), 100), gaussian="full"),
]  # fmt: skip

PROBLEMS: Mapping[str, Problem] = {p.name: p for p in (*MIXTURES, *TOPICS, *STATES)}
