"""Counts of documents, column by column, are sparse matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from sklearn_bnp.engine.extra import NO_EXTRA
from sklearn_bnp.topics.counts import BatchCounts, DocumentCounts
from sklearn_bnp.topics.histograms import NOTHING

from .topic_harness import assert_same_documents

# Weights of the documents of each batch.
WEIGHT = np.array([2.0, 0.5, 1.0, 3.0, 1.25])


class Dense:
    """Counts of documents as matrices over uids 0, ..., 9: what `DocumentCounts` stands for."""

    def __init__(self, counts):
        self.counts = counts

    def columns(self):
        """The same as `DocumentCounts`."""
        parts = {
            name: BatchCounts.of(m, m.sum(axis=1) + 1.0, list(range(10)), WEIGHT)
            for name, m in self.counts.items()
        }
        return DocumentCounts.of(parts)

    @classmethod
    def random(cls, rng, names, uids=range(10)):
        counts = {}
        for name in names:
            m = np.zeros((5, 10))
            m[:, list(uids)] = rng.gamma(1.0, size=(5, len(uids)))
            m[rng.random(m.shape) < 0.5] = 0.0
            m[:, 4] = 0.0  # never used
            counts[name] = m
        return cls(counts)

    def mapped(self, change):
        out = {name: m.copy() for name, m in self.counts.items()}
        for m in out.values():
            change(m)
        return Dense(out)


def assert_matches(docs, dense):
    assert docs.parts.keys() == dense.counts.keys()
    for name, m in dense.counts.items():
        part = docs.parts[name]
        assert_allclose(part.dense(range(10)), m, rtol=1e-14)
        assert_array_equal(part.weight, WEIGHT)
        used = {k for k in range(10) if m[:, k].any()}
        assert part.columns.keys() == used  # no column is kept that says nothing
    for uid in range(10):
        found = docs.topics.get(uid, NOTHING)
        every = np.array([m[:, uid] for m in dense.counts.values()])
        for a in (1e-290, 0.3, 20.0):
            terms = np.where(every > 0, gammaln(every + a), 0.0)
            expected = (WEIGHT * terms).sum()
            atol = 1e-13 * (1.0 + np.abs(terms).sum())
            assert_allclose(found.weights @ gammaln(found.nodes + a), expected, atol=atol)


def assert_same_lengths(docs, parts):
    """The histogram of lengths is that of the documents of ``parts``."""
    lengths = np.concatenate([part.lengths for part in parts.values()])
    weight = np.tile(WEIGHT, len(parts))
    some = lengths > 0
    assert docs.lengths.total == pytest.approx(weight[some].sum(), abs=1e-12)
    assert docs.n_empty == pytest.approx(weight[~some].sum(), abs=1e-12)
    assert docs.mean_length == pytest.approx(np.average(lengths, weights=weight), rel=1e-13)


@pytest.fixture(params=range(5))
def rng(request):
    return np.random.default_rng(request.param)


def test_parts_are_sparse_matrices(rng):
    dense = Dense.random(rng, "ab")
    docs = dense.columns()
    assert_matches(docs, dense)
    shuffled = rng.permutation(10).tolist()
    for name, m in dense.counts.items():
        assert_array_equal(docs.parts[name].dense(shuffled), m[:, shuffled])
        assert_array_equal(docs.parts[name].dense([3, 77]), np.column_stack([m[:, 3], np.zeros(5)]))


def test_joined_and_without(rng):
    a, b = Dense.random(rng, "ab"), Dense.random(rng, "cd")
    joined = a.columns().joined(b.columns())
    assert_same_lengths(joined, joined.parts)
    assert_same_lengths(joined.without(b.columns()), a.columns().parts)
    assert_matches(joined, Dense({**a.counts, **b.counts}))
    assert_matches(joined.without(b.columns()), a)
    assert_matches(joined.without(a.columns()), b)
    assert_matches(a.columns().joined(NO_EXTRA), a)
    assert_matches(NO_EXTRA.joined(a.columns()), a)
    assert_matches(a.columns().without(NO_EXTRA), a)


def test_joined_columns_of_one_batch(rng):
    """Of a batch that both have, the columns of both, which are never the same."""
    a, b = Dense.random(rng, "ab", range(6)), Dense.random(rng, "bc", range(6, 10))
    expected = {"a": a.counts["a"], "b": a.counts["b"] + b.counts["b"], "c": b.counts["c"]}
    assert_matches(a.columns().joined(b.columns()), Dense(expected))


def test_only(rng):
    dense = Dense.random(rng, "ab")

    def change(m):
        m[:, [0, 1, 4, 5, 7]] = 0.0

    assert_matches(dense.columns().only([9, 8, 2, 3, 6]), dense.mapped(change))
    assert_matches(dense.columns().only(range(20)), dense)
    assert_matches(dense.columns().only([]), Dense({k: 0 * m for k, m in dense.counts.items()}))


def test_replaced(rng):
    """Columns go in all batches, and come in those that the others know."""
    dense, other = Dense.random(rng, "abc", range(6)), Dense.random(rng, "bc", (7, 8))

    def change(m):
        m[:, [1, 4, 5]] = 0.0

    expected = dense.mapped(change)
    for name in "bc":
        expected.counts[name] += other.counts[name]
    found = dense.columns().replaced((1, 4, 5), other.columns())
    assert_matches(found, expected)
    assert_same_lengths(found, dense.columns().parts)  # no document is counted twice
    assert_matches(dense.columns().replaced((1, 4, 5), NO_EXTRA), dense.mapped(change))
    again = dense.columns().replaced((1,), dense.columns().only([1]))
    assert_matches(again, dense)


def test_union(rng):
    """The sum alone, under its new name; joined to the rest it makes up what there was."""
    dense = Dense.random(rng, "abc", range(8))
    removed = (0, 3, 4, 7)

    def alone(m):
        total = m[:, removed].sum(axis=1)
        m[:] = 0.0
        m[:, 9] = total

    union = dense.columns().union(removed, 9)
    assert_matches(union, dense.mapped(alone))

    def instead(m):
        total = m[:, removed].sum(axis=1)
        m[:, removed] = 0.0
        m[:, 9] = total

    assert_matches(dense.columns().replaced(removed, union), dense.mapped(instead))
    assert_matches(dense.columns().union((4,), 9), dense.mapped(lambda m: m.fill(0.0)))


def test_without_documents(rng):
    """Histograms follow replacements alike, whether documents are known or not."""
    dense, other = Dense.random(rng, "ab", range(6)), Dense.random(rng, "ab", (7, 8))
    docs, new = dense.columns(), other.columns()
    expected = docs.replaced((1, 4), new)
    found = docs.summed().replaced((1, 4), new.summed())
    assert found.parts == {} and found.topics.keys() == expected.topics.keys()
    for uid, histogram in found.topics.items():
        assert histogram.first == expected.topics[uid].first
        assert_array_equal(histogram.weights, expected.topics[uid].weights)
    assert_same_lengths(found, docs.parts)
    assert_matches(docs, dense)


def test_operations_change_nothing_in_place(rng):
    dense = Dense.random(rng, "ab")
    docs = dense.columns()
    docs.union((0, 1), 9)
    docs.replaced((0, 1), docs.union((2, 3), 4))
    docs.joined(Dense.random(rng, "cd").columns())
    docs.only([1])
    docs.without(docs)
    assert_matches(docs, dense)
    assert_same_documents(docs, dense.columns(), list(range(10)), 0.0)
