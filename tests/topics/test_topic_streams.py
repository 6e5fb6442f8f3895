"""`HDPTopicVB.partial_fit`: batches that come one at a time."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.topics import batch as topic_batch
from sklearn_bnp.topics import sampling
from sklearn_bnp.topics.setup import with_present_parameters
from tests.estimators import (
    TOPICS,
    assert_same_state,
    documents,
    grouped_rows,
    matches,
    names,
    public_state,
    same_partition,
)
from tests.variants import variants

X, truth = documents()
HELDOUT, _ = documents(seed=1)
ROWS, GROUPS, LABELS = grouped_rows()
K, V = TOPICS.shape


BATCHES = np.array_split(X, 4)


@pytest.fixture(scope="module")
def model():
    return HDPTopicVB(random_state=0).fit(X)


def consistent(model):
    """Whether totals are the sum of what batches left behind, with the documents' counts."""
    state = model._learner_
    totals, s = state.totals, state.totals.s.copy()
    for rows in state.initial:
        s[totals.positions(rows.uids)] -= rows.s
    kept = state.memo.copy().total(totals.uids, s.shape[1])
    assert_allclose(kept.s, s, atol=1e-7)
    assert_allclose(kept.entropy, totals.entropy, atol=1e-6)
    for bag in (kept, totals):
        used = {uid for part in bag.extra.parts.values() for uid in part.columns}
        assert used <= set(totals.uids.tolist())
        for uid, n in zip(totals.uids.tolist(), s[:, -1], strict=True):
            columns = (part.columns.get(uid) for part in bag.extra.parts.values())
            assert sum(c.values.sum() for c in columns if c is not None) == pytest.approx(
                n, abs=1e-6
            )
    return True


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(3))
def test_epochs_end_where_fit_ends(seed, model):
    stream = HDPTopicVB(random_state=seed)
    for epoch in range(8):
        for i, batch in enumerate(BATCHES):
            stream.partial_fit(batch)
            assert consistent(stream)
            n_tokens = 40 * (80 if epoch else 20 * (i + 1))
            prior = stream.n_components_ * stream.topic_word_prior_.sum()
            assert stream.components_.sum() - prior == pytest.approx(n_tokens)
            assert np.all(np.diff(stream.topic_probs_) <= 0)
    assert stream.n_components_ == K
    assert matches(stream)
    assert stream.lower_bound_ == pytest.approx(model.lower_bound_, rel=2e-3)


def test_fixed_topics_in_a_stream_are_those_of_fit():
    """With given topics and no proposals there is no chance in it."""
    params = {"init_params": TOPICS, "proposals": None, "random_state": 0}
    fit = HDPTopicVB(n_batches=4, tol=0, **params).fit(X)
    stream = HDPTopicVB(**params)
    for _ in range(fit.n_iter_):
        for batch in BATCHES:
            stream.partial_fit(batch)
    assert_allclose(stream.means_, fit.means_, atol=1e-3)
    assert stream.lower_bound_ == pytest.approx(fit.lower_bound_, rel=1e-5)


@pytest.mark.extended
def test_batches_are_known_by_content_or_name():
    model = HDPTopicVB(random_state=0).partial_fit(BATCHES[0])
    for same in (sparse.csr_matrix(BATCHES[0]), BATCHES[0].astype(float)):
        assert model.partial_fit(same)._learner_.totals.n.sum() == pytest.approx(800)
    model.partial_fit(BATCHES[1], batch_id="b")
    assert model.partial_fit(BATCHES[2], batch_id="b")._learner_.totals.n.sum() == pytest.approx(
        1600
    )
    assert consistent(model)


@pytest.mark.extended
def test_batches_add_to_a_fit(model):
    grown = HDPTopicVB(n_batches=3, random_state=0).fit(X)
    for batch_id in (0, 1, 0):  # no names of the batches of fit
        grown.partial_fit(HELDOUT[40 * batch_id : 40 * batch_id + 40], batch_id=batch_id)
        assert consistent(grown)
    assert grown._learner_.totals.n.sum() == pytest.approx(40 * 160)
    assert grown.n_components_ == K


@pytest.mark.extended
def test_new_topics_in_a_stream():
    old, _ = documents(60, topics=np.pad(TOPICS, ((0, 0), (0, 4))))
    new = np.random.default_rng(0).multinomial(40, np.r_[np.zeros(V), np.full(4, 0.25)], size=30)
    model = HDPTopicVB(random_state=0).partial_fit(old)
    assert model.n_components_ == K
    mixed = np.vstack([old[:10], new])
    assert model.partial_fit(mixed).n_components_ > K
    for _ in range(3):
        model.partial_fit(old).partial_fit(mixed)
        assert consistent(model)
    assert model.n_components_ == K + 1
    assert model.top_words([str(v) for v in range(V + 4)], 4)


def test_streams_of_rows():
    model = HDPTopicVB(observation="gaussian", random_state=0)
    for _ in range(4):
        for part in range(3):
            chosen = part == GROUPS % 3
            model.partial_fit(ROWS[chosen], groups=GROUPS[chosen])
            assert consistent(model)
    assert model.n_components_ == 3
    assert same_partition(model.predict(ROWS, groups=GROUPS), LABELS)


def test_a_batch_comes_back_with_more_documents(monkeypatch):
    """Its documents cannot start from the counts that others left behind under the name."""
    step = topic_batch.document_step

    def checked(likelihood, params, docs, *args, start=None, **given):
        assert start is None or len(start) == len(docs)  # kernels trust it
        return step(likelihood, params, docs, *args, start=start, **given)

    monkeypatch.setattr(topic_batch, "document_step", checked)
    model = HDPTopicVB(4, random_state=0).partial_fit(X[:20], batch_id=0)
    model.partial_fit(X[20:40], batch_id=1).partial_fit(X[:60], batch_id=0)
    mass = X[:60].sum() + X[20:40].sum()
    assert model._learner_.totals.n.sum() == pytest.approx(mass)
    assert consistent(model)


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("given", "attribute", "value"),
    [
        ({"doc_topic_prior": 3.0}, "doc_concentration", 3.0),
        ({"weight_concentration_prior": 20.0}, "concentration", 20.0),
        ({"allocation": "dirichlet", "doc_topic_prior": 0.3}, "doc_concentration", 0.3),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else None,
)
@pytest.mark.parametrize(
    "new", [pytest.param(False, marks=pytest.mark.slow), True], ids=["seen before", "new"]
)
def test_priors_of_documents_that_are_set_on_the_way_hold(given, attribute, value, new):
    """Failures under the old prior mean little, and the objective is that of the new one."""
    stream = HDPTopicVB(random_state=0)
    for batch in [*BATCHES, BATCHES[0]]:  # a lap is under way
        stream.partial_fit(batch)
    before = stream._learner_.model.allocation
    stream.set_params(**given).partial_fit(HELDOUT[:20] if new else BATCHES[1])
    allocation = stream._learner_.model.allocation
    assert allocation != before and getattr(allocation, attribute) == value
    assert stream.lower_bound_ == pytest.approx(
        stream._learner_.model.elbo(stream._learner_.totals)
    )
    assert consistent(stream)
    for batch in BATCHES:
        stream.partial_fit(batch)
    assert stream.n_components_ == K


def test_a_concentration_that_was_learned_stays_where_others_are_set():
    stream = HDPTopicVB(random_state=0).fit(X)
    before = stream._learner_.model
    stream.set_params(weight_concentration_prior=1.5)
    after = with_present_parameters(before, *stream._document_prior(), stream._schedule())
    assert after.allocation.concentration == 1.5
    assert after.allocation.doc_concentration == before.allocation.doc_concentration != 1.0
    assert after.learned == before.learned == ("doc_concentration",)


# ---------------------------------------------------------------------- documents without words


SMALL = np.array_split(X[:40], 4)
NOTHING = np.zeros((3, V), dtype=int)
WEIGHT = np.random.default_rng(3).uniform(0.5, 2.0, len(X))


def streamed(calls, **params):
    """A model after a stream of documents, each call with its own `batch_id` or None."""
    stream = HDPTopicVB(random_state=0, **params)
    for batch, batch_id in calls:
        stream.partial_fit(batch, batch_id=batch_id)
    return stream


def path_of(model):
    """What a model holds, and what its next draws depend on."""
    state = model._learner_
    draws = (state.seed, state.n_batches, state.n_laps, state.n_passes, state.stream[1:])
    return {**public_state(model), "draws": draws}


def with_empty_documents(X, weight, where):
    """Documents and weights with some documents more, which hold nothing."""
    at = {"first": [0] * 3, "last": [len(X)] * 3, "between": [0, 3, 3, 7, 9, len(X)]}[where]
    return np.insert(X, at, 0, axis=0), np.insert(weight, at, 9.0)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("params", "named"),
    variants(
        product(
            [{}, {"max_batches": 2}, {"learning_method": "stochastic", "n_components": 2}],
            [False, True],
        ),
        slow=(({}, False), ({"max_batches": 2}, True)),
    ),
)
@pytest.mark.parametrize("n_epochs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_batch_without_words_is_as_if_it_had_not_come(params, named, n_epochs):
    """Not even if it comes twice: it is no lap over known batches, and takes no place in a window."""
    calls = [(batch, i if named else None) for i, batch in enumerate(SMALL)] * n_epochs
    more = [(NOTHING, "nothing" if named else None), (NOTHING[:2], None)] * 2
    mixed = [call for first in calls for call in (first, *more)]
    assert_same_state(path_of(streamed(mixed, **params)), path_of(streamed(calls, **params)))


def test_a_batch_without_words_takes_the_place_of_its_earlier_version():
    stream = streamed([(BATCHES[0], "a"), (BATCHES[1], "b"), (NOTHING, "b")])
    assert stream._learner_.totals.n.sum() == pytest.approx(BATCHES[0].sum())
    assert consistent(stream)
    before = path_of(stream)
    with pytest.raises(ValueError, match=names("no tokens", "batch_id='a'", "another batch_id")):
        stream.partial_fit(NOTHING, batch_id="a")
    with pytest.raises(ValueError, match=names("batch_id='b'", "'a'")):
        stream.forget("b")
    with pytest.raises(ValueError, match=names("batch_id='a'", "only batch")):
        stream.forget("a")
    assert_same_state(path_of(stream), before)
    stream.partial_fit(BATCHES[1], batch_id="b")
    assert stream._learner_.totals.n.sum() == pytest.approx(BATCHES[0].sum() + BATCHES[1].sum())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("where", "weighted"),
    variants(
        product(["first", "last", "between"], [False, True]),
        quick=(("first", True), ("last", False), ("between", True)),
    ),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_documents_without_words_change_no_draws(where, weighted, monkeypatch):
    """Neither where batches are cut, nor the documents that are sampled; only documents are counted."""
    monkeypatch.setattr(sampling, "_MOST_ENTRIES", 100)  # samples do not hold all documents
    weights = np.array_split(WEIGHT[:40], 4)
    for params in ({"n_batches": 3}, {"batch_size": 20}, {"max_batches": 2}, {"n_components": 3}):
        models = []
        for empty in (False, True):
            model = HDPTopicVB(random_state=0, max_iter=6, **params)
            learn = model.partial_fit if "max_batches" in params else model.fit
            for batch, weight in (
                [(X, WEIGHT)] if learn == model.fit else zip(SMALL, weights, strict=True)
            ):
                if empty:
                    batch, weight = with_empty_documents(batch, weight, where)
                learn(batch, sample_weight=weight if weighted else None)
            models.append(model)
        for name in ("n_iter_", "lower_bound_", "component_ids_", "components_", "topic_probs_"):
            assert_array_equal(*(getattr(model, name) for model in models), err_msg=name)
        assert models[1]._mean_length < models[0]._mean_length
