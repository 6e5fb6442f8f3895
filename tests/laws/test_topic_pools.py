"""Laws of streams of documents, which are kept for a while so that laps go over many of them."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.topics.batch import DocumentBatch
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.counts import BatchCounts
from sklearn_bnp.topics.model import TopicModel
from tests.estimators import documents, grouped_rows, matches
from tests.variants import variants

from .harness import assert_totals_are_the_memory, rises_over_pools

X, _ = documents(120)
BATCHES = np.array_split(X, 12)
ROWS, GROUPS, _ = grouped_rows()


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
@pytest.mark.parametrize("n_batches", [24, pytest.param(120, marks=pytest.mark.slow)])
def test_documents_of_small_batches_are_as_good_as_a_fit(n_batches, seed):
    """Even if they come one at a time."""
    fit, stream = HDPTopicVB(random_state=seed).fit(X), HDPTopicVB(random_state=seed)
    for batch in np.array_split(X, n_batches):
        stream.partial_fit(batch)
    assert matches(fit) and matches(stream)
    assert stream.lower_bound_ == pytest.approx(fit.lower_bound_, rel=2e-3)


@pytest.mark.quarter
@pytest.mark.parametrize("room", [1, 300, 10_000])
def test_totals_are_the_memory(room, monkeypatch):
    """Whatever is in the pool: no batch has room in it, the oldest leave it, or all are in it."""
    monkeypatch.setattr(TopicModel, "pool_rows", room)
    model = HDPTopicVB(random_state=0)
    for i, batch in enumerate(BATCHES):
        model.partial_fit(batch)
        assert_totals_are_the_memory(model)
        pool, size = model._learner_.stream.pool, [np.count_nonzero(b) for b in BATCHES[: i + 1]]
        n_kept = np.count_nonzero(np.cumsum(size[::-1]) <= room)
        assert [b.n_entries for b in pool] == size[len(size) - n_kept :]
        assert_allclose(model._learner_.totals.n.sum(), X[: 10 * (i + 1)].sum(), rtol=1e-9)
    assert matches(model)


@pytest.mark.extended
def test_documents_of_a_pool_are_its_own():
    """The user's arrays may be filled anew."""
    given, copied, last = HDPTopicVB(random_state=0), HDPTopicVB(random_state=0), None
    for batch in BATCHES[:5]:
        last = sparse.csr_matrix(batch.astype(float))
        given.partial_fit(last)
        copied.partial_fit(batch.copy())
        last.data[:], last.indices[:] = 0.0, 0
    assert given.lower_bound_ == copied.lower_bound_


@pytest.mark.extended
def test_a_pool_is_left_when_batches_return():
    model = HDPTopicVB(random_state=0)
    for i, batch in enumerate(BATCHES[:6]):
        model.partial_fit(batch, batch_id=i)
    assert len(model._learner_.stream.pool) == 6
    bounds = [model.lower_bound_]
    for _ in range(3):  # in the middle of one, topics on trial may lower the bound
        for i in range(6):
            model.partial_fit(BATCHES[i], batch_id=i)
        bounds.append(model.lower_bound_)
    assert model._learner_.stream.pool == ()
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])


@pytest.mark.extended
@pytest.mark.parametrize("kind", variants(["words", "rows", "weights"], slow=("words",)))
def test_pools_of_any_kind(kind, monkeypatch):
    """The bound rises with each lap over a pool, and a pickled stream goes on with the same bits."""
    rises = rises_over_pools(monkeypatch)
    rng = np.random.default_rng(0)
    if kind == "rows":
        parts = [i == GROUPS % 6 for i in range(6)]
        given = [((ROWS[part],), {"groups": GROUPS[part]}) for part in parts]
    else:
        weights = [{"sample_weight": rng.gamma(2.0, size=10)} if kind == "weights" else {}] * 6
        given = [((batch,), weight) for batch, weight in zip(BATCHES, weights, strict=False)]
    observation = {"observation": "gaussian"} if kind == "rows" else {}
    model, other = (HDPTopicVB(random_state=0, **observation) for _ in range(2))
    for args, more in given:
        model.partial_fit(*args, **more)
        other = pickle.loads(pickle.dumps(other)).partial_fit(*args, **more)
        assert_totals_are_the_memory(model)
    assert model.n_components_ > 1 and model.lower_bound_ == other.lower_bound_
    assert len(rises) > 5 and min(rises) >= -1e-9


def batch_of(n_docs, rng, *, rows=False, counts=True, weight=False):
    """A `DocumentBatch` of words or of rows."""
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 4, size=n_docs))])
    n = int(indptr[-1])
    return DocumentBatch(
        None, indptr, rng.integers(1, 5, size=n).astype(float) if counts else None,
        None if rows else rng.integers(0, 9, size=n), rng.normal(size=(n, 2)) if rows else None,
        None, rng.gamma(1.0, size=n_docs) if weight else None,
    )  # fmt: skip


@pytest.mark.parametrize("rows", [False, True])
def test_joined_batches_have_all_documents(rows):
    """Also where only some have counts or weights, of which others have ones; parts are the batches again."""
    rng = np.random.default_rng(0)
    batches = [
        batch_of(5, rng, rows=rows, counts=counts, weight=weight)
        for counts, weight in [(True, False), (False, True), (True, True), (False, False)]
    ]
    first, *others = batches
    whole, edges = first.joined(others), np.arange(5) * 5
    assert whole.n_units == 20 and whole.n_entries == sum(b.n_entries for b in batches)
    for batch, a, b in zip(batches, edges[:-1], edges[1:], strict=True):
        part = whole.part(None, a, b)
        assert_array_equal(part.indptr, batch.indptr)
        assert_array_equal(part.entry_weight, batch.entry_weight)
        assert_array_equal(part.x if rows else part.indices, batch.x if rows else batch.indices)
    plain = batches[3].joined([batches[3]])
    assert plain.counts is None and plain.weight is None


@pytest.mark.parametrize("weight", [False, True])
def test_joined_counts_are_those_of_all_documents(weight):
    """Parts of them are the counts of a batch again, whatever components it has."""
    rng, uids = np.random.default_rng(0), [3, 8, 5]
    tables = [
        rng.poisson(0.5, size=(n, 3)).astype(float) * used
        for n, used in [(4, 1), (3, [0, 1, 1]), (5, 0)]
    ]
    parts = [
        BatchCounts.of(
            t, t.sum(axis=1), uids, rng.gamma(1.0, size=len(t)) if weight and i else None
        )
        for i, t in enumerate(tables)
    ]
    whole = parts[0].joined(parts[1:])
    assert_array_equal(whole.dense(uids), np.concatenate(tables))
    assert_array_equal(whole.lengths, np.concatenate(tables).sum(axis=1))
    for one, a, b in zip(parts, [0, 4, 7], [4, 7, 12], strict=True):
        again = whole.part(a, b)
        assert set(again.columns) == set(one.columns)
        assert_array_equal(again.dense(uids), one.dense(uids))
        assert_array_equal(again.times(slice(None)), one.times(slice(None)))
    assert (whole.weight is not None) == weight
    assert_array_equal(whole.part(2, 9).dense(uids), np.concatenate(tables)[2:9])


def words_of(first, last, seed, n_docs=25, n_words=6):
    """Documents of some of six topics, each with words of its own."""
    topics = np.kron(np.eye(6), np.full(n_words, 1 / n_words))[first:last]
    return documents(n_docs, seed=seed, topics=topics)[0]


@pytest.mark.extended
def test_windows_follow_topics_that_end_and_appear():
    """In each batch one ends and one appears: the window has them as a fit of its documents has."""
    model, batches = HDPTopicVB(random_state=0, max_batches=4), []
    for i in range(10):
        first = min(i // 2, 3)
        batches.append(words_of(first, first + 3, seed=i))
        model.partial_fit(batches[-1])
        assert_totals_are_the_memory(model)
    fit = HDPTopicVB(random_state=0).fit(np.concatenate(batches[-4:]))
    assert model.n_components_ == fit.n_components_
    assert model.lower_bound_ == pytest.approx(fit.lower_bound_, rel=2e-3)


@pytest.mark.extended
def test_all_topics_are_looked_for_again_once_a_window_is_new(monkeypatch):
    """Its mass does not grow, but all that it remembers has come since."""
    made = []

    def noted(self, context):
        made.append(self.n_seen)
        return []

    monkeypatch.setattr(TopicBirth, "_anew", noted)
    model = HDPTopicVB(random_state=0, max_batches=2)
    sizes = [int(batch.sum()) for batch in BATCHES]
    for batch in BATCHES:
        model.partial_fit(batch)
    seen = np.cumsum(sizes)
    assert made and all(n in seen for n in made)
    two = max(a + b for a, b in pairwise(sizes))
    # a quarter of the window is one batch: no more than that is waited for
    assert np.diff([sizes[0], *made]).max() <= 2 * two
    assert len(made) >= 3


@pytest.mark.extended
def test_a_window_of_more_than_is_kept_warns(monkeypatch):
    monkeypatch.setattr(TopicModel, "pool_rows", 150)
    model = HDPTopicVB(random_state=0, max_batches=4)
    model.partial_fit(BATCHES[0])
    with pytest.warns(
        UserWarning, match="max_batches=4 remembers more documents than are kept"
    ) as caught:
        for batch in BATCHES[1:4]:
            model.partial_fit(batch)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # without a window, or once all batches come back
        warnings.simplefilter("error")
        model.partial_fit(BATCHES[3])
        for batch in BATCHES[:4]:
            HDPTopicVB(random_state=0).partial_fit(batch)
