"""What must hold of the attributes of fitted estimators."""

from __future__ import annotations

import numpy as np

from ...hmm.model import SequenceModel
from ...memory_bounded.state import Kept, Topics
from ...mixture.model import MixtureModel
from ...topics.model import TopicModel
from .engine import check_history, check_learner, check_model
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
)
from .laps import check_params, check_theta
from .likelihoods import check_likelihood, is_ours

# Attributes with one entry a component.
_OF_COMPONENTS = (
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "coef_",
    "intercept_",
)


def check_mixture(estimator):
    """Raise unless a fitted `DPMixtureVB` is sound."""
    _check_fitted(estimator, MixtureModel, "rows")
    check_params(estimator._coef, estimator._model.likelihood, estimator.n_components_)
    expect_numbers("weights_", estimator.weights_, (estimator.n_components_,), least=0.0, most=1.0)


def check_topics(estimator):
    """Raise unless a fitted `HDPTopicVB` is sound."""
    _check_fitted(estimator, TopicModel, "documents")
    K = estimator.n_components_
    check_theta(estimator._theta, estimator._model.likelihood, K)
    expect_numbers("the documents' prior", estimator._doc_prior, (K,), least=0.0)
    expect_number("the mean length of documents", estimator._mean_length, least=0.0)
    expect_number("bound_", estimator.bound_, least=0.0, finite=False)
    expect_numbers("topic_probs_", estimator.topic_probs_, (K,), least=0.0, most=1.0)


def check_chains(estimator):
    """Raise unless a fitted `HDPHMMVB` is sound."""
    _check_fitted(estimator, SequenceModel, "sequences")
    K = estimator.n_components_
    check_params(estimator._params, estimator._model.likelihood, K)
    expect(len(estimator._params.coef) == K, "there are parameters of other states")
    expect_numbers("startprob_", estimator.startprob_, (K,), least=0.0)
    expect_numbers("transmat_", estimator.transmat_, (K, K), least=0.0)
    expect_numbers("weights_", estimator.weights_, (K,), least=0.0)


def _check_fitted(estimator, model_type, groups):
    """Raise unless what all estimators with a learner have is sound."""
    n_columns = estimator.n_features_in_
    expect_count("n_features_in_", n_columns, least=1)
    check_learner(estimator._learner_, model_type, groups, n_columns)
    model, below = estimator._model, estimator._learner_.new_uids._next
    if model is not estimator._learner_.model:
        check_model(model, model_type, below, n_columns)
    expect_count("n_iter_", estimator.n_iter_)
    expect_type("converged_", estimator.converged_, bool)
    expect_number("lower_bound_", estimator.lower_bound_)
    for name, term in estimator.elbo_terms_.items():
        expect_number(f"the term {name} of the objective", term)
    for bound in estimator.lower_bounds_:
        expect_number("an entry of lower_bounds_", bound)
    check_history(estimator.history_)
    _check_components(estimator, model.likelihood)


def _check_components(estimator, likelihood):
    """Raise unless what is known of each component is there for all of them."""
    K = estimator.n_components_
    expect_count("n_components_", K)
    expect_numbers("statistics", estimator._statistics, (K, likelihood.n_statistics))
    for name in set(_OF_COMPONENTS).intersection(estimator._published):
        value = getattr(estimator, name)
        expect(len(value) == K, f"{name} has {len(value)} entries, not {K}")
        if is_ours(likelihood):  # of categories, means are NaN
            expect_type(name, value, np.ndarray)
            expect(value.dtype == float, f"{name} holds values of type {value.dtype}")
    missing = set(estimator._published).difference(vars(estimator))
    expect(not missing, f"there is no {', no '.join(sorted(missing))}")


def check_bounded(estimator):
    """Raise unless a fitted `MemoryBoundedTopicVB` is sound."""
    likelihood, kept, topics = estimator._likelihood, estimator._kept, estimator._topics
    expect_type("what is kept", kept, Kept)
    expect_type("topics", topics, Topics)
    check_likelihood(likelihood, topics.prior, estimator.n_features_in_)
    C, S, P, n = len(kept.s), len(kept.sizes), likelihood.n_statistics, len(kept.z)
    expect_numbers("statistics of clumps", kept.s, (C, P))
    expect_numbers("counts of clumps", kept.counts, (C, S), least=0.0)
    expect(np.all(kept.s[:, -1] > 0), "there are clumps of no rows")
    expect_numbers("single rows", kept.z, (n, likelihood.n_features), size=None)
    expect_positions("groups of single rows", kept.owner, (n,), S)
    expect_numbers("sizes of document groups", kept.sizes, (S,), least=0.0)
    expect(np.all(kept.sizes > 0), "there are groups of no documents")
    expect_positions("groups of documents", kept.group_of_document, (None,), S)
    found = np.bincount(kept.group_of_document, minlength=S)
    expect(np.array_equal(found, kept.sizes), "groups have other sizes than documents in them")
    K = len(topics.s)
    expect_numbers("statistics of topics", topics.s, (K, P))
    expect_numbers("counts of topics", topics.counts, (K, S))
    expect_numbers("entropies of topics", topics.entropy, (K,))
    expect_numbers("priors of topics", topics.alpha, (K,), least=0.0)
    expect_number("the objective", topics.bound)
    _check_components(estimator, likelihood)
    expect(estimator.n_components_ == K, "there are other topics than were published")
    check_params(estimator._coef, likelihood, K)
    for name in ("topic_probs_", "doc_topic_prior_"):
        expect_numbers(name, getattr(estimator, name), (K,), least=0.0)
    check_history(estimator.history_)
