"""Laws of models of sequences whose batches come one at a time, and of laps that break off."""

import pickle
from contextlib import suppress

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.memo import Memo
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.hmm.merge import CoarseningTrial
from sklearn_bnp.hmm.transitions import Transitions
from sklearn_bnp.hmm.unions import GroupsEdit, least_change

from . import chain_harness as h


def batches(rng, n, **toy):
    return [h.toy(rng, **toy)[0] for _ in range(n)]


def test_states_of_batches_that_are_gone_may_merge():
    """Hard responsibilities have no entropy to lose: two copies of a state become one."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(60, 2)) for _ in range(4)]
    resp = np.eye(2)[rng.integers(2, size=240)]
    model = HDPHMMVB(2, init_params=resp, max_iter=0, random_state=0).fit(rows)
    assert model.n_components_ == 2
    model.set_params(init_params="random")
    for _ in range(3):
        model.partial_fit([rng.normal(size=(60, 2)) for _ in range(4)])
        assert model.elbo_terms_["entropy"] >= 0.0
    assert model.n_components_ == 1


def test_bound_for_batches_not_seen_is_not_above_what_they_will_say():
    """The verdict on a merge, from sums over such batches, against the edit replayed on each."""
    rng = np.random.default_rng(1)
    uids, groups = np.arange(4), (((0, 1), 7), ((2, 3), 8))
    bags = []
    for entropy in (0.0, 3.0, 500.0):
        s = rng.uniform(1.0, 20.0, (4, 3))
        links = Transitions(tuple(range(4)), rng.uniform(0.0, 5.0, (5, 4)), entropy)
        bags.append(StatBag(uids, s, np.zeros(4), links))
    total = bags[0].add(bags[1]).add(bags[2])
    replayed = [GroupsEdit(groups, {}).replay(bag, i) for i, bag in enumerate(bags)]
    for bag in replayed:
        assert bag.extra.entropy >= -1e-12
    assert replayed[0].extra.entropy == 0.0
    trial = CoarseningTrial(groups)
    after = total.replaced(trial.removed, trial.outcome(total, {}, total).successors)
    assert after.extra.entropy <= sum(bag.extra.entropy for bag in replayed) + 1e-12
    change = after.extra.entropy - total.extra.entropy
    assert change == pytest.approx(least_change(total, groups))


def test_bound_for_batches_not_seen_knows_what_merges_before_have_raised():
    """What one merge of a batch that is gone has added, another one may take away."""
    groups = (((0, 1), 7),)
    memo = Memo()
    links = Transitions((0, 1, 2, 3), np.ones((5, 4)), 1.0)
    memo.put("gone", StatBag(np.arange(4), np.full((4, 2), 5.0), np.zeros(4), links))
    memo.record(GroupsEdit((((2, 3), 8),), {"gone": 3.0}))
    trial = CoarseningTrial(groups)
    rest = memo.rest({}, np.array(trial.removed))
    change = trial.outcome(rest, {}, rest).successors.extra.change
    assert change == pytest.approx(-4.0)


@pytest.mark.extended
@pytest.mark.parametrize("where", ["_end_trial", "_adapt_prior"])
def test_lap_that_breaks_off_loses_no_rows(where, monkeypatch):
    rng = np.random.default_rng(2)
    model = HDPHMMVB(random_state=0)
    parts = batches(rng, 3, lengths=(60, 40), spread=8.0, stay=0.95)
    n_rows = 0
    for i, part in enumerate(parts):
        model.partial_fit(part, batch_id=i)
        n_rows += sum(len(x) for x in part)
    broken = []

    def breaks(*args, **kwargs):
        broken.append(where)
        raise KeyboardInterrupt

    for _ in range(4):
        for i, part in enumerate(parts):
            with monkeypatch.context() as patch:
                if not broken:
                    patch.setattr(Learner, where, breaks)
                    with suppress(KeyboardInterrupt):
                        model.partial_fit(part, batch_id=i)
                    continue
            model.partial_fit(part, batch_id=i)
            assert model._learner_.counted.n.sum() == pytest.approx(n_rows)
    assert broken


@pytest.mark.parametrize("kind", [DPMixtureVB, HDPHMMVB])
def test_stochastic_steps_go_on_from_given_responsibilities(kind):
    rng = np.random.default_rng(3)
    rows, states = h.toy(rng, lengths=(200, 200), spread=6.0)
    X = rows if kind is HDPHMMVB else np.concatenate(rows)
    truth = np.eye(3)[np.concatenate(states)]
    resp = 0.5 * truth + 0.5 / 3
    given = kind(3, init_params=resp, max_iter=0, proposals=None).fit(X).lower_bound_
    model = kind(
        3, init_params=resp, max_iter=10, learning_method="stochastic", random_state=0, n_batches=2
    )
    assert model.fit(X).lower_bound_ > given + 1.0


@pytest.mark.slow
def test_pickled_in_mid_stream():
    """A copy goes on as the model would have, whatever is under way."""
    rng = np.random.default_rng(4)
    parts = batches(rng, 4, lengths=(40, 20), n_states=3, spread=6.0, stay=0.95)
    model = HDPHMMVB(5, random_state=0)
    for _ in range(2):
        for i, part in enumerate(parts):
            model = pickle.loads(pickle.dumps(model)).partial_fit(part, batch_id=i)
    other = HDPHMMVB(5, random_state=0)
    for _ in range(2):
        for i, part in enumerate(parts):
            other.partial_fit(part, batch_id=i)
    assert model.lower_bound_ == other.lower_bound_
