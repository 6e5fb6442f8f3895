"""The topic models that users have today, told their K, judged by the scores of `corpora`."""

from __future__ import annotations

import logging
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation

from .corpora import Infer
from .report import Clock, fit_timed


class TopicFit(NamedTuple):
    """A fitted topic model, reduced to what it is judged by."""

    name: str
    phi: NDArray[np.floating]  # (K, V), rows sum to 1
    infer: Infer
    clock: Clock
    n_passes: int


def sklearn_lda(X, n_topics: int, seed: int = 0, method: str = "batch", **settings) -> TopicFit:
    """LatentDirichletAllocation with ``learning_method`` "batch" or "online", else its defaults.

    ``max_iter`` is 10 by default, of which each is a pass over the data.
    """
    model = LatentDirichletAllocation(
        n_topics, learning_method=method, random_state=seed, n_jobs=1, **settings
    )
    clock = fit_timed(model, X)
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    name = f"sklearn {method}({n_topics}) x{model.n_iter_}"
    return TopicFit(name, phi, model.transform, clock, model.n_iter_)


def gensim_lda(X, n_topics: int, seed: int = 0, passes: int = 10, **settings) -> TopicFit:
    """gensim's LdaModel, online, otherwise at its defaults; needs gensim."""
    from gensim.models import LdaModel

    logging.getLogger("gensim").setLevel(logging.ERROR)
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        model = LdaModel(
            _bags(X),
            num_topics=n_topics,
            id2word=_names(X),
            passes=passes,
            eval_every=None,
            random_state=seed,
            **settings,
        )

    def infer(counts):
        gamma = model.inference(_bags(counts))[0].astype(np.float64)
        return gamma / gamma.sum(axis=1, keepdims=True)

    phi = model.get_topics().astype(np.float64)
    phi /= phi.sum(axis=1, keepdims=True)
    return TopicFit(f"gensim({n_topics}) x{passes}", phi, infer, clock, passes)


def gensim_hdp(X, n_topics: int = 150, seed: int = 0) -> TopicFit:
    """gensim's HdpModel, otherwise at its defaults, with at most ``n_topics``; needs gensim.

    Documents are inferred by the model of latent Dirichlet allocation that gensim makes of it, whose own
    ``get_topics`` are not those of the process.
    """
    from gensim.models import HdpModel

    logging.getLogger("gensim").setLevel(logging.ERROR)
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        model = HdpModel(_bags(X), id2word=_names(X), T=n_topics, random_state=seed)
        lda = model.suggested_lda_model()

    def infer(counts):
        gamma = lda.inference(_bags(counts))[0].astype(np.float64)
        return gamma / gamma.sum(axis=1, keepdims=True)

    phi = model.get_topics().astype(np.float64)
    phi /= phi.sum(axis=1, keepdims=True)
    return TopicFit("gensim HDP", phi, infer, clock, 1)


def _bags(counts):
    from gensim.matutils import Sparse2Corpus

    return list(Sparse2Corpus(counts.astype(np.float64), documents_columns=False))


def _names(X):
    return {v: str(v) for v in range(X.shape[1])}


def tomotopy_lda(X, n_topics: int, seed: int = 0, passes: int = 300, eta: float = 0.2) -> TopicFit:
    """tomotopy's LDAModel, by collapsed Gibbs sampling, with .2 as the prior of words; needs tomotopy."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, eta=eta, seed=seed)
    return _tomotopy(f"tomotopy LDA({n_topics})", model, X, passes)


def tomotopy_hdp(
    X, n_topics: int = 2, seed: int = 0, passes: int = 300, eta: float = 0.2
) -> TopicFit:
    """tomotopy's HDPModel from ``n_topics``, with .2 as the prior of words; finds K; needs tomotopy."""
    import tomotopy

    model = tomotopy.HDPModel(initial_k=n_topics, eta=eta, seed=seed)
    return _tomotopy("tomotopy HDP", model, X, passes)


def _tomotopy(name, model, X, passes) -> TopicFit:
    """A fit of a model of tomotopy, whose documents are lists of words."""

    def texts(counts):
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            yield (
                np.repeat(counts.indices[start:stop], counts.data[start:stop]).astype(str).tolist()
            )

    for text in texts(X):
        model.add_doc(text or ["-"])
    with Clock() as clock:
        model.train(passes, workers=1)
    live = [k for k in range(model.k) if getattr(model, "is_live_topic", lambda k: True)(k)]
    columns = {word: v for v, word in enumerate(model.used_vocabs)}
    known = [v for v in range(X.shape[1]) if str(v) in columns]
    at = [columns[str(v)] for v in known]
    shares = np.array([model.get_topic_word_dist(k) for k in live])[:, at]
    # a word that was never seen is as probable as one that the topic does not have
    phi = np.repeat(shares.min(axis=1, keepdims=True), X.shape[1], axis=1)
    phi[:, known] = shares
    phi /= phi.sum(axis=1, keepdims=True)

    def infer(counts):
        out = np.full((counts.shape[0], len(live)), 1.0 / len(live))
        docs = [model.make_doc(text) if text else None for text in texts(counts)]
        found = [(d, doc) for d, doc in enumerate(docs) if doc is not None]
        shares, _ = model.infer([doc for _, doc in found], workers=1)
        for (d, _), share in zip(found, shares, strict=True):
            # a document of words that are all unknown may have nan
            out[d] = np.nan_to_num(np.asarray(share)[live]) + 1e-9
        return out / out.sum(axis=1, keepdims=True)

    return TopicFit(f"{name} K {len(live)}", phi, infer, clock, passes)


def peers(X, ks, seed: int = 0, *, max_iter: int, sklearn: bool = True, gensim: bool = False):
    """Fits for each K, one after the other: scikit-learn batch and online, gensim."""
    for k in ks:
        if sklearn:
            yield sklearn_lda(X, k, seed, "batch", max_iter=max_iter)
            yield sklearn_lda(X, k, seed, "online", max_iter=max_iter)
        if gensim:
            yield gensim_lda(X, k, seed, passes=max_iter)
