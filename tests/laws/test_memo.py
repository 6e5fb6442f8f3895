"""What the memory holds is what a computation from scratch on all responsibilities would find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import Birth, Delete, Merge
from sklearn_bnp.engine.edits import SplitEdit, UnionEdit
from sklearn_bnp.engine.memo import Memo
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.trials import SplitTrial
from sklearn_bnp.mixture.local import RowBlock
from tests.reference import mixtures

from .families import FAMILIES
from .harness import finding_of, given, learner_for, random_resp, totals_under
from .shadow import Shadow

PROPOSALS = {
    "birth": lambda: [Birth()],
    "adopt": lambda: [Birth(strategy="adopt"), Merge()],
    "merge": lambda: [Merge()],
    "delete": lambda: [Delete(max_targets=8)],
    "all": lambda: [Birth(), Merge(), Delete()],
}


def followed(family, *, proposals, n_components, n_batches=3, n_rows=150, **parameters):
    """A learner with its shadow, and its batches."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, n_rows)
    learner, source = learner_for(
        family, X, resp=random_resp(rng, n_rows, n_components), proposals=PROPOSALS[proposals](),
        n_batches=n_batches, **parameters,
    )  # fmt: skip
    return learner, source, Shadow(learner)


@pytest.mark.quarter
@pytest.mark.parametrize(
    "proposals, n_components",
    [("birth", 1), ("merge", 6), ("delete", 6), ("adopt", 1), ("all", 1), ("all", 6)],
)
def test_totals_are_those_of_all_responsibilities(leading_family, proposals, n_components):
    """After every lap: totals, the sum of the memory, each batch, and the objective."""
    learner, source, shadow = followed(
        leading_family, proposals=proposals, n_components=n_components
    )
    for _ in range(5):
        learner.run_lap(source)
        expected = shadow.totals()
        shadow.assert_follows(learner.totals, expected)
        shadow.assert_follows(totals_under(learner, learner.memo), expected)
        for i in range(len(source)):
            shadow.assert_follows(learner.memo.get(i, learner.totals.uids), shadow.totals([i]))
        atol = 100 * (shadow.slack + shadow.entropy_slack)  # log weights are of size 10
        assert_allclose(learner.lower_bound, learner.model.elbo(expected), rtol=1e-9, atol=atol)


def test_proposals_of_every_kind_were_followed():
    """So the law above is not empty: over the families each kind was accepted somewhere."""
    accepted, every = set(), {"birth", "merge", "delete"}
    for family in FAMILIES:
        if accepted == every:
            break
        for proposals, n_components in [("birth", 1), ("merge", 6), ("delete", 6)]:
            learner, source, shadow = followed(
                family, proposals=proposals, n_components=n_components
            )
            for _ in range(3):
                learner.run_lap(source)
            accepted.update(shadow.accepted)
    assert accepted == every


def test_weights_and_sparse_responsibilities_are_followed(leading_family):
    rng = np.random.default_rng(2)
    learner, source, shadow = followed(
        leading_family,
        proposals="all",
        n_components=4,
        weight=rng.gamma(1.0, size=150),
        n_nonzero=2,
    )
    for _ in range(5):
        learner.run_lap(source)
        shadow.assert_follows(learner.totals, shadow.totals())


def test_rows_are_neither_lost_nor_invented(leading_family):
    """Through any proposals, statistics of all components sum to those of the data."""
    learner, source, shadow = followed(leading_family, proposals="all", n_components=1)
    for _ in range(8):
        learner.run_lap(source)
        every = np.concatenate(list(shadow.features.values()))
        size = np.abs(every).sum(axis=0)
        assert np.all(np.abs(learner.totals.s.sum(axis=0) - every.sum(axis=0)) <= 1e-9 * size)
        assert np.all(learner.totals.n > 0)
        assert np.all(learner.totals.entropy >= -1e-9)


def test_uids_are_never_used_again():
    learner, source, _ = followed(FAMILIES[0], proposals="all", n_components=6)
    gone, before = set(), set(learner.totals.uids.tolist())
    for _ in range(8):
        learner.run_lap(source)
        now = set(learner.totals.uids.tolist())
        assert len(now) == len(learner.totals.uids)
        assert now.isdisjoint(gone)
        gone |= before - now
        before = now


# ---------------------------------------------------------------------- edits on bags of one's own


class Toy:
    """Batches with explicit responsibilities for named components, and a memory of them."""

    def __init__(self, seed, n_batches=3):
        self.rng = np.random.default_rng(seed)
        self.names = [*range(n_batches)]
        self.uids = {b: np.arange(4) for b in self.names}
        self.resp = {b: self.rng.dirichlet(np.ones(4), size=9) for b in self.names}
        self.features = {
            b: np.column_stack([self.rng.standard_normal((9, 2)), np.ones(9)]) for b in self.names
        }
        self.memo, self.next_uid = Memo(), 4
        for b in self.names:
            self.memo.put(b, self.bag(b))
            self.memo.numbered(b, b)

    def bag(self, b, columns=slice(None)):
        resp = self.resp[b][:, columns]
        return StatBag(
            self.uids[b][columns], resp.T @ self.features[b], mixtures.entropies(resp, np.ones(9))
        )

    def replace(self, removed, n_created, seen, *, union):
        """Replace components on the batches ``seen``, or on all by their union, and record it."""
        created = tuple(range(self.next_uid, self.next_uid + n_created))
        self.next_uid += n_created
        rows = {}
        for b in self.names if union else seen:
            old = np.isin(self.uids[b], removed)
            shares = self.rng.dirichlet(np.ones(n_created), size=9)
            mass = self.resp[b][:, old].sum(axis=1, keepdims=True)
            self.resp[b] = np.hstack([self.resp[b][:, ~old], mass * shares])
            self.uids[b] = np.concatenate([self.uids[b][~old], created])
            rows[b] = self.bag(b, slice(-n_created, None))
        if union:
            entropies = {b: rows[b].entropy[0] for b in seen}
            self.memo.record(UnionEdit(removed, created, entropies))
        else:
            self.memo.record(SplitEdit(removed, created, rows))
        return created

    def everything(self, uids):
        out = StatBag.zeros(uids, 3)
        for b in self.names:
            out = out.add(self.bag(b).aligned(uids))
        return out


def assert_bags_equal(a, b):
    assert_array_equal(a.uids, b.uids)
    assert_allclose(a.s, b.s, rtol=1e-12, atol=1e-12)
    assert_allclose(a.entropy, b.entropy, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_replay_of_a_history(seed):
    """Random edits one upon another, bags looked at or visited anew at random moments."""
    toy = Toy(seed)
    alive = [0, 1, 2, 3]
    for _ in range(12):
        removed = tuple(toy.rng.choice(alive, size=min(len(alive), 2), replace=False).tolist())
        if toy.rng.random() < 0.5 and len(alive) > 1:
            created = toy.replace(removed, 1, toy.names, union=True)
        else:
            removed = removed[: toy.rng.integers(1, 3)]
            created = toy.replace(removed, int(toy.rng.integers(1, 4)), toy.names, union=False)
        alive = [uid for uid in alive if uid not in removed] + list(created)
        if toy.rng.random() < 0.5:
            b = int(toy.rng.integers(3))
            assert_bags_equal(toy.memo.get(b, alive), toy.bag(b).aligned(alive))
        if toy.rng.random() < 0.3:
            assert_bags_equal(toy.memo.total(np.array(alive), 3), toy.everything(alive))
        if toy.rng.random() < 0.4:
            b = int(toy.rng.integers(3))
            toy.resp[b] = toy.rng.dirichlet(np.ones(len(alive)), size=9)
            toy.uids[b] = np.array(alive)
            toy.memo.put(b, toy.bag(b))
        rest = toy.memo.rest([0], np.array(alive))
        expected = toy.bag(1).aligned(alive).add(toy.bag(2).aligned(alive))
        assert_bags_equal(rest, expected)
        left = toy.memo.without([0])  # edits may be pending
        assert list(left.batch_ids) == [1, 2]
        assert left.get(0, alive) is None
        assert left.number(0) is None and left.number(2) == 2
        assert_bags_equal(left.total(np.array(alive), 3), expected)
    assert_bags_equal(toy.memo.total(np.array(alive), 3), toy.everything(alive))


def test_split_that_some_batches_did_not_see():
    """They keep the component, which lives on beside its successors."""
    toy = Toy(7)
    created = toy.replace((2,), 2, [0], union=False)
    alive = [0, 1, 3, *created, 2]
    assert_bags_equal(toy.memo.total(np.array(alive), 3), toy.everything(alive))
    assert_array_equal(toy.memo.get(0, alive).s[-1], 0.0)
    assert_array_equal(toy.memo.get(1, alive).s[3:5], 0.0)
    later = toy.replace((2, created[0]), 1, toy.names, union=True)
    alive = [0, 1, 3, created[1], *later]
    assert_bags_equal(toy.memo.total(np.array(alive), 3), toy.everything(alive))


def test_union_that_some_batches_did_not_see():
    """Sums are exact, entropies a lower bound, and exact where they are known."""
    toy = Toy(8)
    (created,) = toy.replace((0, 3), 1, [1], union=True)
    alive = [1, 2, created]
    assert_bags_equal(toy.memo.get(1, alive), toy.bag(1).aligned(alive))
    for b in (0, 2):
        bag, expected = toy.memo.get(b, alive), toy.bag(b).aligned(alive)
        assert_allclose(bag.s, expected.s, rtol=1e-12)
        assert 0.0 <= bag.entropy[2] < expected.entropy[2]
        assert_allclose(bag.entropy[:2], expected.entropy[:2], rtol=1e-12)


def test_rows_with_a_trace_of_a_split_component():
    """A split of shares from 1e-12 to 1 keeps sums, and the entropy of what it does not split."""
    rng = np.random.default_rng(10)
    X, _ = FAMILIES[0].rows(rng, 60)
    mass = 10.0 ** -np.linspace(0, 12, 60)
    weight = rng.gamma(1.0, size=60)
    resp = np.column_stack([mass, 1.0 - mass])
    g = given(FAMILIES[0], X, resp, weight)
    coef = g.model.likelihood.coefficients(g.model.prior, g.features[:2] * 20.0)
    trial = SplitTrial("birth", (7,), (8, 9), coef)
    block = RowBlock(g.z, weight, resp, np.array([7, 3]))
    bag = g.totals._replace(uids=np.array([7, 3]))
    finding = finding_of(trial.probe, [block], block.uids, model=g.model, statistics=bag)
    row = trial.outcome(bag, {"batch": finding}).successors
    size = (weight * mass) @ np.abs(g.features)
    assert np.all(np.abs(row.s.sum(axis=0) - g.s[0]) <= 1e-12 * size)
    shares, _ = mixtures.responsibilities(g.features @ coef.T)
    entropy = mixtures.entropies(mass[:, np.newaxis] * shares, weight).sum()
    # shares of 1e-6 and less may stay whole: what splitting them would add is at most log 2 of them
    low = entropy - np.log(2.0) * (weight * mass) @ (mass <= 1e-6)
    assert low - 1e-12 <= row.entropy.sum() <= entropy + 1e-12


def test_unknown_batch():
    toy = Toy(9)
    assert toy.memo.get("never seen", [0, 1]) is None
    assert "never seen" not in toy.memo
    assert 2 in toy.memo
    assert len(toy.memo) == 3
