"""summary(): a table of components, and what the best merge of each would lose."""

import pickle
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.special import entr
from sklearn.exceptions import NotFittedError

from sklearn_bnp import (
    HDPHMMVB,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Proposal,
    UnionTrial,
)
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.hmm.merge import CoarseningTrial
from sklearn_bnp.memory_bounded.items import kept_items
from sklearn_bnp.memory_bounded.local import update
from sklearn_bnp.memory_bounded.merge import unions

from ..laws.harness import one_hot, quiet_fit

WORDS = ["cat", "dog", "pet", "stock", "share", "<b>", "rain", "sun", "wind"]


class JoinPairs(Proposal):
    """Tries to join each pair of components, in each lap."""

    kind = "join"

    def __init__(self, trial=UnionTrial):
        self.trial = trial

    def reset(self):
        """Nothing is remembered."""

    def plan(self, context):
        """A trial for each pair."""
        pairs = combinations(sorted(context.totals.uids.tolist()), 2)
        return [self.trial(self.kind, pair, context.new_uids(1)) for pair in pairs]


def coarsening(kind, pair, created):
    trial = CoarseningTrial([(pair, created[0])])
    trial.kind = kind
    return trial


def near_clusters(apart=3.2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 2)) + apart * rng.integers(3, size=(120, 1))


def documents():
    rng = np.random.default_rng(0)
    topics = 0.9 * np.kron(np.eye(3), np.full(3, 1 / 3)) + 0.1 / 9
    return rng.multinomial(25, topics[rng.integers(3, size=50)])


def sequences():
    rng = np.random.default_rng(0)
    return [rng.normal(np.repeat([0.0, 4.0, 0.0, 9.0], 12))[:, np.newaxis] for _ in range(3)]


@cache
def fitted_mixture():
    model = DPMixtureVB(3, proposals=(JoinPairs(),), max_iter=12, random_state=0)
    return quiet_fit(model, near_clusters())


@cache
def fitted_topics():
    # the prior of documents is given: a union and a check of it would learn it from different sticks
    model = HDPTopicVB(
        3, proposals=(JoinPairs(),), init_params="anchor", max_iter=12, random_state=0,
        doc_topic_prior=1.0,
    )  # fmt: skip
    return quiet_fit(model, documents())


@cache
def fitted_states():
    model = HDPHMMVB(
        3, proposals=(JoinPairs(coarsening),), init_params="k-means++", max_iter=12, random_state=0
    )
    return quiet_fit(model, sequences())


MODELS = {"mixture": fitted_mixture, "topics": fitted_topics, "states": fitted_states}
SIZES = {"mixture": 120, "topics": 50 * 25, "states": 3 * 48}


@pytest.fixture(scope="module", params=MODELS)
def named(request):
    return request.param, MODELS[request.param]()


def test_losses_bound_those_of_the_trial(named):
    """The last lap has tried the same merges on the rows, and the model has hardly moved since."""
    _, model = named
    summary, tried = model.summary(), model.history_[-1].trials
    assert len(tried) == 3 == model.n_components_
    losses = {frozenset(record.components): -record.gain for record in tried}
    for k, j in enumerate(summary["merge_with"]):
        loss = losses[frozenset(summary["id"][[k, j]].tolist())]
        guessed = getattr(model._model, "stick_gain", 0.0)  # where the verdict is clear, sticks are
        assert summary["merge_loss_least"][k] - 0.1 < loss
        assert loss < summary["merge_loss_most"][k] + 0.1 + guessed
        assert loss > 5.0


def test_greatest_loss_is_that_of_the_union_in_what_is_kept(named):
    _, model = named
    summary, state = model.summary(), model._learner_
    for k, j in enumerate(summary["merge_with"]):
        learner = Learner(state)
        members = tuple(summary["id"][[k, j]].tolist())
        learner.memo.record(learner.model.blind_union([(members, members[0])]))
        others = [uid for uid in learner.totals.uids.tolist() if uid not in members]
        uids = [*others, members[0]]
        learner.totals = learner.memo.total(np.array(uids), learner.totals.s.shape[1])
        learner.totals, learner.model = learner.model.in_order(learner.totals)
        loss = model.lower_bound_ - learner.lower_bound
        assert summary["merge_loss_most"][k] == pytest.approx(loss, abs=1e-6)


def test_columns_are_those_of_the_fitted_attributes(named):
    name, model = named
    summary = model.summary()
    assert summary["size"].sum() == pytest.approx(SIZES[name])
    np.testing.assert_array_equal(summary["id"], model.component_ids_)
    weights = model.topic_probs_ if name == "topics" else model.weights_
    np.testing.assert_array_equal(summary["weight"], weights)
    np.testing.assert_allclose(summary["size"], model._statistics[:, -1])
    K = model.n_components_
    for column in ("neighbor", "merge_with"):
        assert set(summary[column]) <= set(range(K))
        assert not np.any(summary[column] == np.arange(K))
    assert str(summary).count("\n") == K + 3


@pytest.mark.parametrize("hard", [True, False])
def test_losses_of_mixtures(hard):
    """Against unions of the responsibilities themselves; they are exact where no row is shared."""
    X, rng = near_clusters(), np.random.default_rng(1)
    resp = rng.dirichlet(np.ones(5), size=len(X))
    resp = one_hot(resp.argmax(axis=1)) if hard else resp
    model = DPMixtureVB(init_params=resp, max_iter=0, proposals=None).fit(X)
    summary, bound, totals = model.summary(), model._model, model._learner_.totals
    known = dict(zip(totals.uids.tolist(), resp.T, strict=True))  # names are columns

    def loss(pair):
        union = StatBag(
            np.array([99]), totals.s[totals.positions(pair)].sum(axis=0, keepdims=True),
            np.array([entr(known[pair[0]] + known[pair[1]]).sum()]),
        )  # fmt: skip
        return model.lower_bound_ - bound.elbo(totals.replaced(pair, union))

    for k, uid in enumerate(model.component_ids_.tolist()):
        partner = int(model.component_ids_[summary["merge_with"][k]])
        here = loss((uid, partner))
        least, most = summary["merge_loss_least"][k], summary["merge_loss_most"][k]
        assert least - 1e-9 <= here <= most + 1e-9
        if hard:
            assert least == pytest.approx(most, abs=1e-9)
            others = [loss((uid, other)) for other in known if other != uid]
            assert here == pytest.approx(min(others), abs=1e-9)


def test_losses_in_bounded_memory():
    X, groups = near_clusters(6.0), np.arange(120) % 6
    model = MemoryBoundedTopicVB(150, documents_per_epoch=2).fit(X, groups=groups)
    K, summary = model.n_components_, model.summary()
    assert K > 1 and model.n_clumps_ > 1
    assert summary["size"].sum() == pytest.approx(120)
    settings = model._epoch_settings()
    items = kept_items(settings.likelihood, model._kept)
    after, pairs = update(settings, model._topics, items), np.array(list(combinations(range(K), 2)))
    lost = {u.members: -u.gain for u in unions(settings, model._topics, after, items, pairs)}
    for k, j in enumerate(summary["merge_with"].tolist()):
        assert summary["merge_loss_least"][k] == summary["merge_loss_most"][k]
        assert summary["merge_loss_most"][k] == pytest.approx(lost[min(k, j), max(k, j)])


def test_states_last_and_go_on():
    model = fitted_states()
    summary, trans = model.summary(), model.transmat_
    np.testing.assert_allclose(summary["mean_visit"], 1.0 / (1.0 - np.diagonal(trans)))
    for k, to in enumerate(summary["next"].tolist()):
        assert to != k
        leaves = np.delete(trans[k], k)
        assert summary["next_probability"][k] == pytest.approx(leaves.max() / leaves.sum())


def test_topics_show_their_words():
    model = fitted_topics()
    assert "top_words" not in model.summary()
    summary = model.summary(WORDS)
    assert summary["top_words"] == model.top_words(WORDS, 5)
    assert "<b>" in str(summary) and "&lt;b&gt;" in summary._repr_html_()
    with pytest.raises(ValueError, match="one name for each feature"):
        model.summary(WORDS[:3])
    pd = pytest.importorskip("pandas")
    named = HDPTopicVB(max_iter=0, proposals=None).fit(pd.DataFrame(documents(), columns=WORDS))
    assert sorted(set(named.summary()["top_words"][0]) & set(WORDS)) == sorted(
        named.summary()["top_words"][0]
    )


def test_one_component_cannot_be_joined():
    summary = DPMixtureVB(proposals=None).fit(near_clusters()).summary()
    assert summary["neighbor"].tolist() == summary["merge_with"].tolist() == [-1]
    assert (
        np.isnan(summary["merge_loss_least"]).all() and np.isnan(summary["merge_loss_most"]).all()
    )
    assert "1 component," in str(summary)


def test_a_summary_is_a_dict_of_columns(named):
    _, model = named
    summary = model.summary()
    again = pickle.loads(pickle.dumps(summary))
    assert str(again) == str(summary) and list(again) == list(summary)
    pd = pytest.importorskip("pandas")
    frame = summary.to_frame()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == list(summary)
    np.testing.assert_array_equal(frame["size"], summary["size"])


def test_long_tables_are_cut():
    X = np.random.default_rng(0).normal(size=(120, 1))
    model = DPMixtureVB(init_params=one_hot(np.arange(120) % 60), max_iter=0, proposals=None)
    summary = model.fit(X).summary()
    assert "... and 10 more" in str(summary) and "... and 10 more" in summary._repr_html_()
    assert len(summary["weight"]) == 60


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPTopicVB, HDPHMMVB, MemoryBoundedTopicVB])
def test_only_fitted_models_have_one(estimator):
    with pytest.raises(NotFittedError):
        estimator().summary()
