"""Random documents from a topic model."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def drawn_documents(model, doc_prior, s, n_samples, n_tokens, rng):
    """Random documents of topics with statistics ``s`` (K, P), and their topic shares (n_samples, K).

    Documents of words are a CSR matrix of counts. Others are rows of data, document after document.
    """
    # Gamma variates: if all parameters are tiny, rng.dirichlet may return NaN.
    shares = np.maximum(rng.gamma(doc_prior, size=(n_samples, len(s))), 1e-300)
    shares /= shares.sum(axis=1, keepdims=True)
    sizes = np.array([rng.multinomial(n_tokens, pi) for pi in shares])
    likelihood = model.likelihood
    attributes = likelihood.attributes(model.prior, s)
    if likelihood.words:
        means = attributes["means_"]
        rows = [
            sum(rng.multinomial(size[k], means[k]) for k in np.flatnonzero(size)) for size in sizes
        ]
        return sparse.csr_matrix(np.array(rows)), shares
    labels = np.concatenate([rng.permutation(np.repeat(np.arange(len(s)), n)) for n in sizes])
    return likelihood.sample(attributes, labels, rng), shares
