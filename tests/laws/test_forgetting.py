"""What is forgotten leaves no trace in sums: batches taken out, windows, and half-lives; in all models."""

import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.estimators import FEW_PROPOSALS
from tests.variants import variants

CENTERS = 6.0 * np.array([[0.0, 0.0], [1.0, 2.0], [-2.0, 1.0], [2.0, -1.0]])


def rows(rng, there, n=80):
    return CENTERS[rng.choice(there, n)] + rng.normal(size=(n, 2))


def documents(rng, there, n=20):
    topics = np.random.default_rng(0).dirichlet(np.full(30, 0.1), size=4)
    return np.stack([rng.multinomial(60, topics[rng.choice(there)]) for _ in range(n)])


def sequences(rng, there, n=3):
    labels = [np.repeat(rng.choice(there, 10), 5) for _ in range(n)]
    return [CENTERS[one] + rng.normal(size=(len(one), 2)) for one in labels]


MODELS = {
    "mixture": (DPMixtureVB, rows),
    "topics": (HDPTopicVB, documents),
    "sequences": (HDPHMMVB, sequences),
}
# Clusters are far from each other, and are found by these.
FOUND = {"proposals": FEW_PROPOSALS, "random_state": 0}


@pytest.fixture(params=list(MODELS))
def kind(request):
    return MODELS[request.param]


def batches_of(make, n, seed=1):
    """Batches; the fourth cluster is in the third batch alone."""
    rng = np.random.default_rng(seed)
    return [make(rng, [0, 1, 3] if i == 2 else [0, 1, 2]) for i in range(n)]


def streamed(cls, batches, **params):
    model = cls(**FOUND, **params)
    for i, batch in enumerate(batches):
        model.partial_fit(batch, batch_id=i)
    return model


def data_of(model, batch):
    """Mass of a batch alone."""
    return size(type(model)(random_state=0, proposals=None).partial_fit(batch))


def size(model):
    return float(model._learner_.totals.n.sum())


@pytest.mark.quarter
def test_statistics_are_those_of_the_other_batches(kind):
    cls, make = kind
    batches = batches_of(make, 5)
    model = streamed(cls, batches)
    for gone in (2, 0):
        before = model._learner_
        uids, P = before.totals.uids, before.totals.s.shape[1]
        memo = before.memo.copy()
        expected = memo.without([gone]).total(uids, P)
        state = pickle.dumps(before)
        model.forget(gone)
        assert pickle.dumps(before) == state
        totals = model._learner_.totals
        assert set(totals.uids) <= set(uids)
        listed = totals.aligned(uids)
        scale = np.abs(expected.s).max()
        assert_allclose(listed.s, expected.s, rtol=1e-9, atol=1e-9 * scale)
        assert_allclose(listed.entropy, expected.entropy, rtol=1e-9, atol=1e-9 * scale)
        assert gone not in model._learner_.memo
        assert all(batch.batch_id != gone for batch in model._learner_.stream.pool)
        assert_allclose(model.lower_bound_, sum(model.elbo_terms_.values()))
        assert np.all(totals.n > 0)
    rest = [batches[i] for i in (1, 3, 4)]
    assert_allclose(size(model), sum(data_of(model, batch) for batch in rest), rtol=1e-9)
    model.partial_fit(batches[0], batch_id=0)  # it may come again
    assert_allclose(size(model), sum(data_of(model, b) for b in [*rest, batches[0]]), rtol=1e-9)


@pytest.mark.quarter
@pytest.mark.filterwarnings("ignore:max_batches=2 remembers more documents")
@pytest.mark.parametrize(
    ("name", "room"),
    variants(
        product(MODELS, [20, 70, 1000]),
        quick=(("mixture", 20), ("sequences", 1000), ("topics", 70)),
    ),
)
def test_a_window_after_tiny_batches_is_learned_from(name, room, monkeypatch):
    """Also if no batch has room in the pool: nearly all of what is remembered is new then."""
    cls, make = MODELS[name]
    rng = np.random.default_rng(2)
    large = [make(rng, [0, 1, 2], 6 * n) for n in [len(make(rng, [0]))] * 5]
    tiny = [make(rng, [0], 1) for _ in range(2)]
    model = cls(**FOUND, max_batches=2)
    model.partial_fit(large[0])
    monkeypatch.setattr(type(model._learner_.model), "pool_rows", room)
    found = [model.partial_fit(b).n_components_ for b in [large[1], *tiny, *large[2:]]]
    assert found[0] == 3 and found[2] < 3
    assert found[3:] == [3] * 3


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "room"),
    variants(
        product(MODELS, [20, 1000]), quick=(("mixture", 1000), ("sequences", 20), ("topics", 20))
    ),
)
def test_the_only_batch_may_come_with_other_rows(name, room, monkeypatch):
    """All that was known is forgotten, and they are learned from as the first ones of all."""
    cls, make = MODELS[name]
    rng = np.random.default_rng(3)
    large = [make(rng, [0, 1, 2], 6 * len(make(rng, [0]))) for _ in range(3)]
    model = cls(**FOUND)
    model.partial_fit(large[0], batch_id=0)
    monkeypatch.setattr(type(model._learner_.model), "pool_rows", room)
    for batch in large[1:]:
        model.partial_fit(make(rng, [0], 2), batch_id=0)
        assert model.n_components_ < 3
        model.partial_fit(batch, batch_id=0)
        assert model.n_components_ == 3
        assert_allclose(size(model), data_of(model, batch), rtol=1e-9)


def test_a_component_of_one_batch_leaves_with_it():
    model = streamed(DPMixtureVB, batches_of(rows, 5))
    assert model.n_components_ == 4
    assert model.forget(2).n_components_ == 3
    assert np.linalg.norm(model.means_ - CENTERS[3], axis=1).min() > 3.0


def test_what_was_forgotten_cannot_be_found():
    """No row of the batch is in the saved model."""
    batches = batches_of(rows, 4)
    model = streamed(DPMixtureVB, batches)
    held = batches[1][:5].tobytes()
    assert held in pickle.dumps(model)  # the pool has it
    assert held not in pickle.dumps(model.forget(1))


@pytest.mark.extended
def test_window_holds_the_latest_batches(kind):
    cls, make = kind
    batches = batches_of(make, 6)
    model = cls(**FOUND, max_batches=3)
    for i, batch in enumerate(batches):
        model.partial_fit(batch, batch_id=i)
        there = batches[max(0, i - 2) : i + 1]
        assert_allclose(size(model), sum(data_of(model, b) for b in there), rtol=1e-9)
        assert model._learner_.memo.batch_ids == tuple(range(max(0, i - 2), i + 1))
    memory = model._learner_.memo.copy()
    totals = model._learner_.totals
    expected = memory.total(totals.uids, totals.s.shape[1])
    assert_allclose(totals.s, expected.s, rtol=1e-8, atol=1e-8 * np.abs(expected.s).max())


@pytest.mark.extended
@pytest.mark.parametrize(("cls", "make"), [MODELS["mixture"], MODELS["sequences"]])
def test_half_life_weighs_batches_by_their_age(cls, make):
    batches = batches_of(make, 6)
    model = cls(**FOUND, memoize=False, half_life=2.0)
    for batch in batches:
        model.partial_fit(batch)
    expected = sum(
        data_of(model, b) * 0.5 ** ((len(batches) - 1 - i) / 2) for i, b in enumerate(batches)
    )
    assert_allclose(size(model), expected, rtol=1e-9)


def test_half_life_is_no_weight_of_new_rows():
    """Old rows count less, and new ones count once, with weights of 1 as without."""
    streams = [DPMixtureVB(memoize=False, half_life=1.0, random_state=0) for _ in range(2)]
    for i in range(4):
        X = np.random.default_rng(i).normal(size=(100, 2))
        streams[0].partial_fit(X)
        streams[1].partial_fit(X, sample_weight=np.ones(100))
    assert [stream._learner_.schedule.mean_weight for stream in streams] == [1.0, 1.0]


def test_half_life_is_a_weight_of_rows():
    """The sums of a stream that forgets are those of a fit of rows with such weights."""
    batches = batches_of(rows, 6)
    weight = np.repeat(0.5 ** (np.arange(5, -1, -1) / 3.0), 80)
    fixed = {"means_init": CENTERS[:1], "n_components": 1, "proposals": None, "random_state": 0}
    stream = DPMixtureVB(memoize=False, half_life=3.0, **fixed)
    for batch in batches:
        stream.partial_fit(batch)
    fit = DPMixtureVB(**fixed).fit(np.concatenate(batches), sample_weight=weight)
    assert_allclose(stream.means_, fit.means_, atol=0.02)  # units, and so the prior, differ
    assert_allclose(size(stream), weight.sum(), rtol=1e-12)


@pytest.mark.extended
def test_a_cluster_that_ended_is_forgotten():
    rng = np.random.default_rng(0)
    window, decaying, all_of_it = (
        DPMixtureVB(**FOUND, **params)
        for params in ({"max_batches": 4}, {"memoize": False, "half_life": 0.5}, {"memoize": False})
    )
    for i in range(14):
        batch = rows(rng, [0, 1, 2] if i < 3 else [0, 1], 150)
        for model in (window, decaying, all_of_it):
            model.partial_fit(batch, batch_id=i)
        assert window.n_components_ == (3 if i < 6 else 2)
    assert decaying.n_components_ == 2
    assert all_of_it.n_components_ == 3


@pytest.mark.extended
def test_a_name_may_come_with_other_rows():
    """A ring of names is a window: a cluster that appears later is found."""
    rng = np.random.default_rng(1)
    model = DPMixtureVB(random_state=0)
    for i in range(24):
        model.partial_fit(rows(rng, [0, 1] if i < 12 else [0, 1, 2], 150), batch_id=i % 6)
        assert size(model) == pytest.approx(150.0 * min(i + 1, 6))
        assert model.n_components_ == (2 if i < 12 else 3)


@pytest.mark.quarter
def test_a_batch_with_other_rows_is_the_latest(kind):
    """A window forgets what came first, and not the batch whose rows came last."""
    cls, make = kind
    batches = batches_of(make, 4)
    model = cls(**FOUND, max_batches=2)
    for name, batch in zip("abac", batches, strict=True):
        model.partial_fit(batch, batch_id=name)
    later = (
        cls(**FOUND).partial_fit(batches[0], batch_id="first").partial_fit(batches[2], batch_id="a")
    )
    with pytest.raises(ValueError, match="those are 'a', 'c'"):
        model.forget("b")
    expected = size(later.forget("first")) + data_of(model, batches[3])
    assert size(model) == pytest.approx(expected)


@pytest.mark.extended
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, "datetime64[D]"])
def test_names_may_be_numbers_of_numpy(kind, dtype):
    cls, make = kind
    names = np.arange(3).astype(dtype)
    model = cls(**FOUND)
    if cls is not HDPTopicVB:  # which always remembers batches
        model.set_params(memoize=False).partial_fit(make(np.random.default_rng(2), [0, 1]))
        model.set_params(memoize=True)
    for name, batch in zip(names, batches_of(make, 3), strict=True):
        model.partial_fit(batch, batch_id=name)
    model = pickle.loads(pickle.dumps(model))
    before = size(model)
    assert size(model.forget(names[1])) < before
    if cls is not HDPTopicVB:
        model.set_params(memoize=False).partial_fit(batches_of(make, 1)[0])


@pytest.mark.quarter
@pytest.mark.parametrize("name", ["mixture", "sequences"])  # topics always remember batches
def test_names_that_nobody_gave_are_not_told(name):
    cls, make = MODELS[name]
    batches = batches_of(make, 4)
    model = cls(**FOUND)
    for batch, memoize in zip(batches, (True, False, False, True), strict=True):
        model.set_params(memoize=memoize).partial_fit(batch, batch_id=len(batch))
    with pytest.raises(ValueError, match=rf"those are {len(batches[3])}\.$"):
        model.forget("x")


@pytest.mark.extended
def test_names_of_components_last():
    rng = np.random.default_rng(2)
    model = DPMixtureVB(random_state=0, memoize=False)
    where = {}
    for i in range(12):
        odds = np.roll([0.7, 0.2, 0.1], i)
        model.partial_fit(CENTERS[rng.choice(3, 200, p=odds)] + rng.normal(size=(200, 2)))
        assert len(set(model.component_ids_)) == model.n_components_
        nearest = np.linalg.norm(model.means_[:, None] - CENTERS, axis=2).argmin(axis=1)
        for name, center in zip(model.component_ids_.tolist(), nearest.tolist(), strict=True):
            assert where.setdefault(name, center) == center
    assert len(where) <= 6


@pytest.mark.quarter
def test_what_cannot_be_forgotten(kind):
    cls, make = kind
    batches = batches_of(make, 2)
    model = streamed(cls, batches)
    state = pickle.dumps(model)
    with pytest.raises(
        ValueError, match="'x' is not the name of a batch in memory; those are 0, 1"
    ):
        model.forget("x")
    with pytest.raises(TypeError, match="not hashable"):
        model.forget([])
    for name in (float("nan"), (1, np.float32("nan")), np.datetime64("NaT")):
        with pytest.raises(ValueError, match="not equal to itself"):
            model.partial_fit(batches[0], batch_id=name)
    assert pickle.dumps(model) == state
    with pytest.raises(ValueError, match="is the only batch"):
        model.forget(0).forget(1)
    model.fit(batches[0])
    with pytest.raises(ValueError, match="only fit has been called"):
        model.forget(0)


def test_settings_that_contradict_each_other():
    X = batches_of(rows, 1)[0]
    endless = DPMixtureVB(memoize=False, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="memoize=False only the sum"):
        endless.forget(0)
    stochastic = DPMixtureVB(learning_method="stochastic", n_components=2, random_state=0)
    with pytest.raises(ValueError, match="partial_fit with learning_method='stochastic'"):
        stochastic.partial_fit(X, batch_id=0).forget(0)
    for params, message in (
        ({"max_batches": 3, "memoize": False}, "max_batches=3 needs memoize=True"),
        ({"half_life": 3.0}, "half_life=3.0 is for streams without a memory"),
        ({"max_batches": 3, "learning_method": "stochastic"}, "not for learning_method"),
        ({"max_batches": 1}, "max_batches"),
        ({"half_life": 0.1, "memoize": False}, "half_life"),
    ):
        with pytest.raises(ValueError, match=message):
            DPMixtureVB(**params).partial_fit(X)
