"""Counts of documents that stay beside their chunk, and of documents that are gone."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.distributed.chunks import Chunk
from sklearn_bnp.distributed.this_process import Here
from sklearn_bnp.engine.left_behind import Visit, parted
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.task import LocalResult
from sklearn_bnp.topics import union_sums
from sklearn_bnp.topics.counts import CountsAway, DocumentCounts
from sklearn_bnp.topics.union_sums import union_gains_of_documents
from tests.distributed.kinds import Saved, saved
from tests.estimators import documents

from .test_document_counts import Dense

WORDS, _ = documents(60)
PAIRS = np.array([(0, 1), (1, 2), (0, 5), (3, 4), (5, 2)])
A = np.array([0.5, 1e-3, 0.2, 2.0, 0.0, 0.1])


def away(docs):
    """`DocumentCounts` whose documents have been left, each part of them by a task of its own."""
    place = Here([Chunk(name, None, {}) for name in docs.parts], [(0, len(docs.parts))])
    visit, out = Visit(place), None
    for i, (name, part) in enumerate(docs.parts.items()):
        extra = DocumentCounts.of({name: part})
        bag = StatBag.zeros([], 1)._replace(extra=extra)
        result, visit.kept[i] = parted(LocalResult(bag, (bag, 1.0)), visit, i)
        assert result.findings[1] == 1.0 and len(visit.kept[i]) == 2
        # the driver knows the visit again
        one = pickle.loads(pickle.dumps(result.statistics.extra))
        out = one if out is None else out.joined(one)
    assert all(isinstance(part, CountsAway) for part in out.parts.values())
    return out


def assert_same_counts(found, expected):
    assert list(found.parts) == list(expected.parts)
    for name, part in expected.parts.items():
        own = found.parts[name]
        assert own.columns.keys() == part.columns.keys()
        for uid, column in part.columns.items():
            assert_array_equal(own.columns[uid].docs, column.docs)
            assert_array_equal(own.columns[uid].values, column.values)
    for uid in found.topics.keys() | expected.topics.keys():
        a = (0.0 if docs.topics.get(uid) is None else docs.topics[uid].total
             for docs in (found, expected))  # fmt: skip
        assert np.subtract(*a) == pytest.approx(0.0, abs=1e-9)


EDITS = {
    "nothing": lambda docs, new: docs,
    "only": lambda docs, new: docs.only([0, 2, 5]),
    "replaced": lambda docs, new: docs.replaced((1, 4), new),
    "union": lambda docs, new: docs.replaced((0, 2), docs.union((0, 2), 9, docs.seen_of_union((0,)))),
    "twice": lambda docs, new: docs.replaced((1,), new).only([0, 7, 8]).replaced((7,), docs.only([3])),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_edits_are_made_when_documents_are_next_looked_at(edit):
    rng = np.random.default_rng(0)
    docs, new = (Dense.random(rng, "ab", uids).columns() for uids in (range(6), (7, 8)))
    found = EDITS[edit](away(docs), away(new))
    assert_same_counts(found.at_hand(), EDITS[edit](docs, new))
    assert docs.at_hand() is docs
    assert away(docs).as_past().parts == {}


def test_gains_of_unions_wherever_documents_are(monkeypatch):
    docs = Dense.random(np.random.default_rng(1), "abc", range(6)).columns()
    totals = StatBag.zeros(range(6), 1)
    gains = partial(union_gains_of_documents, pairs=PAIRS, a=A)
    here, there = (gains(totals._replace(extra=extra)) for extra in (docs, away(docs)))
    # what is at hand is joined before it is summed
    assert_allclose(there, here, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(union_sums, "_GROUP_DOCS", 0)
    assert_array_equal(gains(totals._replace(extra=docs)), there)
    one = docs._replace(parts={"a": docs.parts["a"]})  # the others are gone
    some, none = (gains(totals._replace(extra=e)) for e in (one, docs.summed()))
    used = np.arange(len(PAIRS)) != 3  # topic 4 has no tokens: its unions change nothing
    assert np.all(none[used] < some[used]) and np.all(some[used] < here[used])
    assert_allclose([none[3], some[3], here[3]], 0.0, atol=1e-9)


def test_unions_of_documents_that_are_gone_are_bounds():
    """Each topic is used less often, and what documents have of the union counts as if apart."""
    docs = Dense.random(np.random.default_rng(2), "abc", range(6)).columns()
    some = docs._replace(parts={"b": docs.parts["b"]})
    totals = StatBag.zeros(range(6), 1)
    gains = partial(union_gains_of_documents, pairs=PAIRS[:1], a=A)
    exact = gains(totals._replace(extra=docs))
    for known in (some, docs.summed()):
        union = known.union((0, 1), 9)
        total = sum(docs.topics[uid].total for uid in (0, 1))
        assert union.topics[9].total > docs.union((0, 1), 9).topics[9].total
        assert union.topics[9].total <= total + 1e-12
        assert gains(totals._replace(extra=known)) < exact
        assert known.union(tuple(known.topics), 9).topics[9] is docs.lengths


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_document_comes_back(tmp_path, monkeypatch):
    """What a visit brings is as large for ten times as many documents."""
    sizes, run = {}, Here.run_tasks

    def noted(self, function, tasks):
        for result in run(self, function, tasks):
            sizes[n].append(len(pickle.dumps(result.statistics.extra)))
            yield result

    monkeypatch.setattr(Here, "run_tasks", noted)
    for n in (1, 10):
        sizes[n] = []
        folder = tmp_path / str(n)
        folder.mkdir()
        files = saved(folder, [{"X": np.tile(WORDS, (n, 1))}])
        assert all(isinstance(file, Saved) for file in files)
        model = HDPTopicVB(5, proposals=None, random_state=0, max_iter=3, tol=0).fit(files)
        assert model._learner_.totals.extra.parts == {}
    assert max(sizes[10]) < 1.5 * max(sizes[1])
    assert_allclose(model._learner_.totals.extra.lengths.total, 600)
