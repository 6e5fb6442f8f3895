"""What many small batches add up to is what their documents give as one batch, and costs as little."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from sklearn_bnp.engine.extra import NO_EXTRA
from sklearn_bnp.engine.memo import Memo
from sklearn_bnp.engine.statistics import StatBag, added_up
from sklearn_bnp.hmm.transitions import Transitions
from sklearn_bnp.topics import union_sums
from sklearn_bnp.topics.counts import BatchCounts, CountsAway, DocumentCounts

N_TOPICS, N_DOCS = 6, 300
PAIRS = np.array([(0, 1), (1, 2), (0, 5), (3, 4), (5, 2)])
A = np.array([0.5, 1e-3, 0.2, 2.0, 0.0, 0.1])


def documents(weighted, seed=0):
    """Counts of documents as one batch; some have no tokens, and each uses half of the topics."""
    rng = np.random.default_rng(seed)
    counts = rng.gamma(1.0, size=(N_DOCS, N_TOPICS)) * (rng.random((N_DOCS, N_TOPICS)) < 0.5)
    weight = rng.integers(1, 4, size=N_DOCS).astype(float) if weighted else None
    return BatchCounts.of(counts, counts.sum(axis=1), list(range(N_TOPICS)), weight)


def cut(whole, size):
    """The same documents in batches of so many."""
    return {i: whole.part(i, i + size) for i in range(0, N_DOCS, size)}


def gains(parts, **more):
    totals = StatBag.zeros(range(N_TOPICS), 1)._replace(extra=DocumentCounts.of(parts))
    return union_sums.union_gains_of_documents(totals, PAIRS, A, **more)


@pytest.fixture
def calls(monkeypatch):
    """The calls of the sums over pairs, as a list of numbers of documents."""
    found, sums = [], union_sums.union_document_gains

    def noted(pairs, docs, *args):
        found.append(docs.max(initial=-1) + 1)
        return sums(pairs, docs, *args)

    monkeypatch.setattr(union_sums, "union_document_gains", noted)
    return found


@pytest.mark.parametrize("union", [None, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
def test_gains_of_unions_do_not_depend_on_batches(weighted, union):
    whole = documents(weighted)
    expected = gains({0: whole}, union=union)
    for size in (1, 7, 100):
        assert_allclose(gains(cut(whole, size), union=union), expected, rtol=1e-11, atol=1e-9)
    some_weigh = cut(documents(False), 100) | {N_DOCS: whole}
    more = gains(cut(documents(False), 1) | {N_DOCS: whole})
    assert_allclose(more, gains(some_weigh), rtol=1e-11, atol=1e-9)


def test_they_cost_as_much_for_any_number_of_batches(calls, monkeypatch):
    whole = documents(False)
    for size in (1, 3, 150, 300):
        gains(cut(whole, size))
    assert calls == [N_DOCS] * 4
    calls.clear()
    monkeypatch.setattr(union_sums, "_GROUP_DOCS", 100)
    gains(cut(whole, 1))
    assert len(calls) == 3 and max(calls) <= 100


def test_groups_keep_their_order_and_leave_what_lies_elsewhere(monkeypatch):
    monkeypatch.setattr(union_sums, "_GROUP_DOCS", 5)
    whole, away, none = documents(True), CountsAway(left=None), documents(True).part(0, 0)
    sizes = [2, 2, 2, 9, 1, 4]
    parts = (whole.part(*edges) for edges in pairwise(np.cumsum([0, *sizes])))
    first, second, third, large, one, four = parts
    groups = union_sums.grouped([first, second, third, large, one, none, away, none, away, four])
    assert [len(g.lengths) if g is not away else -1 for g in groups] == [4, 2, 9, 1, -1, 0, -1, 4]
    assert_array_equal(groups[0].dense(range(N_TOPICS)), whole.part(0, 4).dense(range(N_TOPICS)))
    assert_array_equal(groups[0].weight, whole.weight[:4])
    assert groups[0].columns[0].docs.dtype == np.int32
    assert groups[2] is large and groups[-1] is four


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_add_up_to_those_of_one_batch(weighted):
    whole = documents(weighted)
    expected, docs = DocumentCounts.of({0: whole}), DocumentCounts.of(cut(whole, 1))
    assert list(docs.parts) == list(range(N_DOCS))
    assert docs.n_empty == expected.n_empty and docs.topics.keys() == expected.topics.keys()
    for found, one in [
        (docs.lengths, expected.lengths),
        *((docs.topics[uid], expected.topics[uid]) for uid in docs.topics),
    ]:
        assert (found.first, found.last) == (one.first, one.last)
        for a in (1e-290, 0.3, 20.0):
            sums = (h.weights @ gammaln(h.nodes + a) for h in (found, one))
            np.testing.assert_allclose(*sums, rtol=1e-11)


def test_bags_add_up_as_one_after_the_other():
    rng = np.random.default_rng(0)
    parts = list(cut(documents(False), 50).items())
    states = [Transitions((i, 9), rng.random((3, 2)), rng.random()) for i in range(len(parts))]
    for extras in (
        [NO_EXTRA] * len(parts), [DocumentCounts.of({key: part}) for key, part in parts], states,
        [NO_EXTRA, NO_EXTRA, *states[1:], NO_EXTRA],
    ):  # fmt: skip
        bags = [StatBag(np.arange(6), rng.random((6, 4)), rng.random(6), e) for e in extras]
        before, expected, memo = bags[0].s.copy(), bags[0], Memo()
        for i, bag in enumerate(bags):
            expected = bag if i == 0 else expected.add(bag)
            memo.put(i, bag)
        for found in (added_up(bags), memo.total(np.arange(6), 4)):
            assert_array_equal(found.s, expected.s)
            assert_array_equal(found.entropy, expected.entropy)
            assert type(found.extra) is type(expected.extra)
        assert_array_equal(bags[0].s, before)  # bags never change
        if extras[-1] is states[-1]:
            assert_array_equal(found.extra.counts, expected.extra.counts)
            assert found.extra.uids == expected.extra.uids
    assert added_up(bags[:1]) is bags[0]
