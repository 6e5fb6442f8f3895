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
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    logging.getLogger("gensim").setLevel(logging.ERROR)

    def bags(counts):
        return list(Sparse2Corpus(counts.astype(np.float64), documents_columns=False))

    corpus = bags(X)
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        model = LdaModel(
            corpus,
            num_topics=n_topics,
            id2word={v: str(v) for v in range(X.shape[1])},
            passes=passes,
            eval_every=None,
            random_state=seed,
            **settings,
        )

    def infer(counts):
        gamma = model.inference(bags(counts))[0].astype(np.float64)
        return gamma / gamma.sum(axis=1, keepdims=True)

    phi = model.get_topics().astype(np.float64)
    phi /= phi.sum(axis=1, keepdims=True)
    return TopicFit(f"gensim({n_topics}) x{passes}", phi, infer, clock, passes)


def peers(X, ks, seed: int = 0, *, max_iter: int, sklearn: bool = True, gensim: bool = False):
    """Fits for each K, one after the other: scikit-learn batch and online, gensim."""
    for k in ks:
        if sklearn:
            yield sklearn_lda(X, k, seed, "batch", max_iter=max_iter)
            yield sklearn_lda(X, k, seed, "online", max_iter=max_iter)
        if gensim:
            yield gensim_lda(X, k, seed, passes=max_iter)
