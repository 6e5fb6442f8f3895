"""From the parameters of a topic estimator to the engine, and from the engine to its attributes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..engine.memo import PAST
from ..engine.merge import Merge
from ..engine.state import PoolSize
from ..estimator import base, publishing
from ..estimator.observations import check_explains_rows, how_to_begin_anew
from ..estimator.validation import check_responsibilities, checked, numbers
from ..inputs.advice import warn_caller
from ..inputs.batches import ArraySource
from ..likelihood import MultinomialObservation
from ..likelihood.limits import LEAST, MOST, are_within
from ..likelihood.seeding import LLOYD_STEPS, seeded_statistics
from .birth import TopicBirth
from .chunks import rows_of_documents, sampled_documents, word_counts_of
from .completion import perplexity_of
from .corpus import has_documents_of_words, takes_words
from .delete import TopicDelete
from .model import TopicModel
from .resettle import Resettle
from .restart import TopicRestart
from .seeding import seeded_topics, with_total
from .weights import DirichletDocuments, HDPDocuments

PROPOSALS = {
    "birth": TopicBirth,
    "delete": TopicDelete,
    "merge": partial(Merge, max_members=2),  # of more, the documents are not known together
    "resettle": Resettle,
    "restart": TopicRestart,
}
TOPICS = base.ModelKind("topics", PROPOSALS)

# The prior of topics of words where none is set, and where learning of others begins.
TOPIC_WORD_PRIOR = "auto"
_DOC_TOPIC_PRIOR, _CONCENTRATION = 1.0, 1.0


def _hdp(doc_topic_prior, concentration):
    gamma, learned = _CONCENTRATION if concentration is None else float(concentration), ()
    if doc_topic_prior == "auto":
        doc_topic_prior, learned = _DOC_TOPIC_PRIOR, ("doc_concentration",)
    return HDPDocuments(gamma, float(doc_topic_prior)), learned


def _dirichlet(doc_topic_prior, concentration):
    return DirichletDocuments(None if doc_topic_prior == "auto" else float(doc_topic_prior)), ()


# Name -> function of the parameters ``doc_topic_prior`` and ``weight_concentration_prior``. It gives a
# `DocumentAllocation` and the names of its attributes that are learned.
DOCUMENT_ALLOCATIONS = {"hdp": _hdp, "dirichlet": _dirichlet}


def with_word_prior(observation, topic_word_prior):
    """The observation model, with the parameter ``topic_word_prior`` as its prior unless that is None."""
    if topic_word_prior is None:
        return observation
    if not takes_words(observation):
        raise ValueError(
            f"topic_word_prior={topic_word_prior!r} is for observation='multinomial'; set the prior of "
            f"{observation!r} instead, and leave topic_word_prior=None."
        )
    prior = topic_word_prior
    if np.ndim(prior):
        prior = numbers(prior, "topic_word_prior")
        if prior.ndim > 1 or not are_within(prior):
            raise ValueError(
                f"topic_word_prior={topic_word_prior!r} must be a number from {LEAST:g} to {MOST:g}, an "
                "array of one for each word type, or 'auto'."
            )
    return MultinomialObservation(prior=prior)


def check_prior_length(topic_word_prior, n_features):
    """Raise unless there is a prior for each word type."""
    n = np.size(topic_word_prior)
    if np.ndim(topic_word_prior) and n != n_features:
        raise ValueError(
            f"topic_word_prior holds {n} numbers, but X has {n_features} features; give one "
            "for each, or a single number."
        )


def check_same_prior(observation, topic_word_prior, before, call):
    """Raise if the prior of topics is not ``before``, the prior of the fit that ``call`` goes on with.

    ``observation`` is one `with_word_prior`.
    """
    if not takes_words(observation):
        return
    check_prior_length(topic_word_prior, len(before.lam))
    auto, was_auto = isinstance(observation.prior, str), before.about is not None
    same = auto == was_auto
    if same and not auto:
        same = np.array_equal(np.broadcast_to(observation.prior, before.lam.shape), before.lam)
    if not same:
        default = "None, which is " if topic_word_prior is None else ""
        now, then = _in_short(observation.prior), "'auto'" if was_auto else _in_short(before.lam)
        raise ValueError(
            f"topic_word_prior={default}{now} differs from that of the fit which {call} continues, "
            f"{then}; set it back, or {how_to_begin_anew(call)}."
        )


def given_word_prior(prior):
    """The parameter ``topic_word_prior`` of a fit, for its `DirichletPrior`: "auto", a number or a list."""
    if prior.about is not None:
        return "auto"
    same = np.all(prior.lam == prior.lam[0])
    return float(prior.lam[0]) if same else prior.lam.tolist()


def _in_short(prior):
    """A prior of topics, a name, a number or pseudo-counts (V,), as it is named in errors."""
    if isinstance(prior, str):
        return repr(prior)
    prior = np.atleast_1d(prior)
    same = np.all(prior == prior[0])
    return f"{prior[0]:g}" if same else f"an array of mean {prior.mean():g}"


def bind_model(bound, allocation, learned, schedule, observation, *, stochastic):
    """`TopicModel` in the units of the corpus; ``observation`` is one `with_word_prior`.

    ``bound(observation)`` is the likelihood of the corpus. ``learned`` are names of attributes of the
    allocation. Stochastic steps learn neither these nor the prior of words: they begin with topics that are
    nearly alike, and know no objective.
    """
    check_explains_rows(checked(observation))
    likelihood = bound(observation)
    if stochastic:
        learned = ()
        if likelihood.adapts_late:
            likelihood = likelihood.learning_nothing()
    return TopicModel(likelihood, allocation, likelihood.prior, learned=learned, local=schedule)


def with_present_parameters(model, allocation, learned, schedule):
    """The model with the prior of documents, and the schedule of their steps, that are set now.

    Concentrations that are learned go on from where they are. Sticks stay, unless the prior is of another
    kind.
    """
    model, before = model._replace(local=schedule, learned=learned), model.allocation
    if type(allocation) is not type(before):
        return model._replace(allocation=allocation, sticks=None, uids=())
    now = replace(allocation, **{name: getattr(before, name) for name in learned})
    return model if now == before else model._replace(allocation=now)


# ---------------------------------------------------------------------- where fits start


class FirstComponents(NamedTuple):
    """Statistics (K, P) of first components, and documents, which may have responsibilities."""

    s: np.ndarray
    documents: object


def first_components(settings, likelihood, corpus, x, rng):
    """`FirstComponents` as ``init_params`` has it; ``x`` is what the user gave, for a callable."""
    how, n_components = settings.init_params, settings.n_components
    if isinstance(how, str):
        if likelihood.words:
            _check_seeds(corpus.documents, settings)
            s = seeded_topics(corpus.documents, corpus.n_features, n_components, rng, how)
        else:
            rows = rows_of_documents(corpus.documents)
            source, n = ArraySource(rows.x, rows.weight, rows.n_entries), rows.n_entries
            s = _seeded_rows(likelihood, source, n, settings, rng)
        return FirstComponents(s, corpus.documents)
    if callable(how):
        how = how(x, n_components, rng)
    value = numbers(how, "init_params")
    if likelihood.words and _are_topics(value, n_components, corpus):
        s = _given_topics(value, corpus.documents.total_weight)
        return FirstComponents(s, corpus.documents)
    resp = _given_responsibilities(value, likelihood, corpus, x)
    s = np.zeros((resp.shape[1], likelihood.n_statistics))
    return FirstComponents(s, corpus.documents._replace(resp=resp))


def statistics_from_chunks(settings, source, likelihood, rng):
    """Statistics (K, P) of first components, as `first_components` finds them in memory."""
    how, n_components, total = settings.init_params, settings.n_components, source.total_weight
    if not likelihood.words:
        rows, n = source.with_rows_of(rows_of_documents), source.n_entries
        return _seeded_rows(likelihood, rows, n, settings, rng)
    if not isinstance(how, str):
        topics = numbers(how, "init_params")
        if topics.shape[1] != source.n_features:
            raise ValueError(
                f"init_params has shape {topics.shape}; for data in chunks it must be (n_components, "
                f"n_features) = (..., {source.n_features}), counts of words in topics."
            )
        return _given_topics(topics, total)
    if n_components == 1:
        return with_total(word_counts_of(source)[np.newaxis])
    documents = sampled_documents(source, n_components, rng)
    _check_seeds(documents, settings)
    s = seeded_topics(documents, source.n_features, n_components, rng, how)
    return with_total(s[:, :-1], total)


def _check_seeds(documents, settings):
    how, indptr = settings.init_params, documents.indptr
    lengths = np.diff(np.concatenate([[0.0], np.cumsum(documents.counts)])[indptr])
    if how == "anchor":
        several = np.repeat(lengths > 1, np.diff(indptr))
        n, of = len(np.unique(documents.indices[several])), "word type{} to be anchors"
        if settings.n_components == 1:
            return
    else:
        n, of = np.count_nonzero(lengths), "document{} with words"
    of = of.format("" if n == 1 else "s")
    there = f"init_params={how!r} can start from: X has {n} {of}"
    settings.check_least(n, there, "documents")


def _seeded_rows(likelihood, source, n_rows, settings, rng):
    how, n_components = settings.init_params, settings.n_components
    if how == "anchor":
        raise ValueError(
            "init_params='anchor' is for words, and X holds rows with groups; use 'k-means++' or "
            "'random'."
        )
    if not isinstance(how, str):
        raise ValueError(
            "init_params holds responsibilities of rows, which lie in chunks: use 'k-means++' or 'random'."
        )
    settings.check_least(n_rows, f"n_samples={n_rows}", "rows")
    n_steps = LLOYD_STEPS if how == "k-means++" else None
    return seeded_statistics(likelihood, source, n_components, rng, n_steps=n_steps)


def _given_topics(topics, total):
    """Statistics of topics given as counts or proportions (K, V)."""
    with np.errstate(over="ignore"):
        sizes = topics.sum(axis=1)
    if topics.min() < 0 or not np.all(sizes > 0):
        raise ValueError(
            "init_params holds topics with negative or no counts; give counts or proportions of words "
            "of shape (n_components, n_features), zero or more and not all zero in a row."
        )
    if not are_within(sizes, LEAST, 1.0 / LEAST):
        raise ValueError(
            f"init_params holds topics of {sizes.min():g} to {sizes.max():g} counts; give counts or "
            f"proportions that sum to {LEAST:g} to {1.0 / LEAST:g} in each."
        )
    return with_total(topics, total)


def _are_topics(value, n_components, corpus):
    """Whether ``init_params`` are counts of words in topics, and not responsibilities of words."""
    if value.ndim != 2 or value.shape[1] != corpus.n_features:
        return False
    if len(value) != corpus.documents.n_entries or len(value) == n_components:
        return True
    if value.shape[1] == n_components:
        return False
    raise ValueError(
        f"init_params has shape {value.shape}, which may be topics of {corpus.n_features} words, or "
        f"responsibilities of the {len(value)} nonzeros of X: set n_components to the number of topics, "
        f"{len(value)} or {corpus.n_features}."
    )


def _given_responsibilities(resp, likelihood, corpus, x):
    n = corpus.documents.n_entries if corpus.kept is None else len(corpus.kept)
    if likelihood.words and (resp.ndim != 2 or len(resp) != n):
        raise ValueError(
            f"init_params has shape {resp.shape}; it must be (n_components, n_features) = (..., "
            f"{corpus.n_features}) for counts of words in topics, or ({n}, n_components) for "
            "responsibilities, one row for each nonzero of X."
        )
    resp = check_responsibilities(resp, n)
    if likelihood.words and sparse.issparse(x) and x.format == "csr" and not x.has_sorted_indices:
        row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        resp = resp[np.lexsort((x.indices, row))]  # the corpus has the words of a document in order
    if corpus.rows is not None:
        return resp[corpus.rows]
    return resp if corpus.kept is None else resp[corpus.kept]


# ---------------------------------------------------------------------- where fits end


def published(state, observation, keeps_order):
    """`Published` attributes of a topic model.

    The learner's own order stays as it is: its sticks are in that order.
    """
    model, totals = state.model, state.counted
    likelihood = model.likelihood
    doc_prior, weights = model.doc_prior(totals), model.allocation.weights(model.sticks)
    by_weight = np.lexsort((-totals.n, -weights))
    order = publishing.published_order(totals, by_weight, keeps_order)
    s = totals.s[order]
    n_tokens = totals.n.sum()
    own = {
        "_statistics": s,
        "component_ids_": totals.uids[order],
        "_doc_prior": doc_prior[order],
        "_mean_length": totals.extra.mean_length,
        "topic_probs_": weights[order],
        "doc_topic_prior_": _doc_topic_prior(model.allocation, doc_prior),
        **likelihood.attributes(model.prior, s),
    }
    if takes_words(observation):
        prior = model.prior.lam
        own["topic_word_prior_"] = float(prior[0]) if np.all(prior == prior[0]) else prior.copy()
    bound = perplexity_of(model.elbo(totals) / max(n_tokens, 1e-300))
    return publishing.Published(totals, own, {"bound_": bound})


def _doc_topic_prior(allocation, doc_prior):
    alpha = allocation.doc_concentration
    return float(doc_prior[0] if alpha is None else alpha)


def warn_of_one_topic(estimator):
    """Warn if births were tried and none of them lasted: one topic says nothing of documents."""
    n_tried = sum(lap.tried.get("birth", 0) for lap in estimator.history_)
    if estimator.n_components_ > 1 or n_tried == 0:
        return
    if has_documents_of_words(estimator):
        how = "start with n_components=40 and init_params='k-means++' or 'anchor', or leave out rare words"
    else:
        how = "or start with init_params='k-means++' and n_components=10"
    warn_caller(
        f"HDPTopicVB ends with one topic: births were tried ({n_tried}), and none of them raised the ELBO. "
        "The data may be too few to tell topics apart. If there should be several topics, fit "
        f"more or longer documents, {how}."
    )


def warn_if_documents_are_gone(state, max_batches):
    """Warn if a window of a stream remembers batches whose documents have no room in the pool.

    What was fitted before the stream is no batch, and a pool is left once batches come back.
    """
    pool, names = state.stream.pool, set(state.memo.batch_ids) - {PAST}
    if max_batches is None or state.stream.size == PoolSize() or len(pool) >= len(names):
        return
    warn_caller(
        f"max_batches={max_batches} remembers more documents than are kept themselves, for which there is "
        f"room for {TopicModel.pool_rows:,} counts. The others keep their topics, so that topics which "
        "appear late may be blended with topics that have ended. Give fewer max_batches, or smaller batches."
    )
