"""Checks of the attributes of a fitted `MemoryBoundedTopicVB`; see `estimator.soundness`."""

from __future__ import annotations

import numpy as np

from ..estimator.soundness import laps
from ..estimator.soundness.engine import check_history
from ..estimator.soundness.estimators import check_components
from ..estimator.soundness.expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
)
from ..estimator.soundness.likelihoods import check_likelihood
from .items import Kept
from .model import Topics


def check_bounded(estimator):
    """Raise unless a fitted `MemoryBoundedTopicVB` is sound."""
    likelihood, kept, topics = estimator._likelihood, estimator._kept, estimator._topics
    expect_type("what is kept", kept, Kept)
    expect_type("topics", topics, Topics)
    check_likelihood(likelihood, topics.prior, estimator.n_features_in_)
    C, S, P, n = len(kept.s), len(kept.sizes), likelihood.n_statistics, len(kept.z)
    expect_numbers("statistics of clumps", kept.s, (C, P))
    expect_numbers("counts of clumps", kept.counts, (C, S), least=0.0)
    expect_numbers("distinct rows of clumps", kept.distinct, (C,), least=0.0)
    expect(np.all(kept.s[:, -1] > 0), "there are clumps of no rows")
    expect_numbers("single rows", kept.z, (n, likelihood.n_features), size=None)
    expect_positions("groups of single rows", kept.owner, (n,), S)
    expect_numbers("sizes of document groups", kept.sizes, (S,), least=0.0)
    expect(np.all(kept.sizes > 0), "there are groups of no documents")
    if kept.distinct_sizes is not None:
        expect_numbers("distinct documents of groups", kept.distinct_sizes, (S,), least=0.0)
    n_documents = (estimator.n_documents_,)
    expect_positions("groups of documents", kept.group_of_document, n_documents, S)
    expect(len(np.unique(kept.group_of_document)) == S, "there are groups of no documents")
    expect_numbers("weights of single rows", kept.weight, (n,), least=0.0)
    K = len(topics.s)
    expect_numbers("statistics of topics", topics.s, (K, P))
    expect_numbers("counts of topics", topics.counts, (K, S))
    expect_numbers("entropies of topics", topics.entropy, (K,))
    expect_numbers("priors of topics", topics.alpha, (K,), least=0.0)
    expect_number("the objective", topics.bound)
    for name, term in getattr(estimator, "elbo_terms_", {}).items():
        expect_number(f"the term {name} of the objective", term)
    check_components(estimator, likelihood)
    expect(estimator.n_components_ == K, "there are other topics than were published")
    laps.check_params(estimator._coef, likelihood, K)
    for name in ("topic_probs_", "doc_topic_prior_"):
        expect_numbers(name, getattr(estimator, name), (K,), least=0.0)
    check_history(getattr(estimator, "history_", []))
    expect_count("the number of epochs", estimator._n_epochs, least=1)
