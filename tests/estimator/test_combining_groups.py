"""Models of documents, or of sequences, that were fitted apart become one by their statistics."""

from copy import deepcopy
from functools import cache
from itertools import product

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    CategoricalObservation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    combine,
)
from sklearn_bnp.engine.combining import _candidates, _Combined, _with_own_names
from sklearn_bnp.engine.statistics import StatBag, UidCounter
from sklearn_bnp.estimator import combination
from sklearn_bnp.topics.counts import DocumentCounts
from sklearn_bnp.topics.histograms import NOTHING
from tests.estimators import FEW_PROPOSALS, names
from tests.variants import variants

RNG = np.random.default_rng(0)
TOPICS = np.kron(np.eye(3), np.full(4, 0.25))
SHARES = RNG.dirichlet(np.full(3, 0.3), size=60)
WORDS = np.array([RNG.multinomial(60, share @ TOPICS) for share in SHARES])
# rows of 30 documents, three clusters of which each document has its own shares
LABELS = np.concatenate([RNG.choice(3, size=12, p=share) for share in SHARES[:30]])
ROWS = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[LABELS] + RNG.normal(size=(360, 2))
DOCUMENTS = np.repeat(np.arange(30), 12)
# twelve sequences of 60 rows, with visits of 15 rows to three states
STATES = np.repeat(RNG.integers(3, size=48), 15)
STEPS = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[STATES] + RNG.normal(size=(720, 2))
CODES = np.digitize(STEPS, [-3.0, 3.0])
LENGTHS = np.full(12, 60)


def topics(x, **params):
    return HDPTopicVB(random_state=0, init_params="anchor", n_components=4, **params).fit(x)


def admixture(x, **params):
    rows = np.isin(DOCUMENTS, x)
    model = HDPTopicVB(observation="gaussian", random_state=0, init_params="k-means++", **params)
    return model.set_params(n_components=3).fit(ROWS[rows], groups=DOCUMENTS[rows])


def chain(x, **params):
    return HDPHMMVB(proposals=FEW_PROPOSALS, random_state=0, **params).fit(x)


def _sequences(x):
    return np.split(x, 12)


# Name -> what fits a part, the parts, and parameters.
KINDS = {
    "words": (topics, np.split(WORDS, [20, 40]), {}),
    "words, finite": (topics, np.split(WORDS, [20, 40]), {"allocation": "dirichlet"}),
    "words, given prior": (topics, np.split(WORDS, 2), {"topic_word_prior": 0.1}),
    "rows": (admixture, np.split(np.arange(30), [8, 18]), {}),
    "chains": (chain, [_sequences(STEPS)[i::3] for i in range(3)], {}),
    "chains, finite": (
        chain,
        [_sequences(STEPS)[:5], _sequences(STEPS)[5:]],
        {"allocation": "dirichlet"},
    ),
    "chains of codes": (
        chain,
        [_sequences(CODES)[:5], _sequences(CODES)[5:]],
        {"observation": CategoricalObservation(n_categories=3)},
    ),
}
every_kind = pytest.mark.parametrize("name", KINDS)


@cache
def parts_of(name):
    """Models of parts of the data; not to be changed."""
    fit, parts, params = KINDS[name]
    return tuple(fit(x, **params) for x in parts)


@cache
def combined(name):
    return combine(parts_of(name))


def more_of(name):
    """Arguments of `partial_fit` for some of the data."""
    fit, parts, _ = KINDS[name]
    if fit is admixture:
        rows = np.isin(DOCUMENTS, parts[0])
        return {"X": ROWS[rows], "groups": DOCUMENTS[rows]}
    return {"X": parts[0]}


# ---------------------------------------------------------------------- laws


@pytest.mark.quarter
@every_kind
def test_the_components_are_found(name):
    model = combined(name)
    assert model.n_components_ == 3
    assert all(part.n_components_ == 3 for part in parts_of(name))


@every_kind
def test_masses_and_counts_of_groups_add_up(name):
    model, parts = combined(name), parts_of(name)
    totals = [part._learner_.totals for part in parts]
    now = model._learner_.totals
    np.testing.assert_allclose(now.n.sum(), sum(one.n.sum() for one in totals), rtol=1e-12)
    if isinstance(model, HDPTopicVB):
        n_docs = sum(one.extra.lengths.total for one in totals)
        assert now.extra.lengths.total == pytest.approx(n_docs, rel=1e-12)
        using = sum(h.total for one in totals for h in one.extra.topics.values())
        assert sum(h.total for h in now.extra.topics.values()) == pytest.approx(using, rel=1e-9)
        own = DocumentCounts.of(now.extra.parts)
        for uid in now.uids.tolist():
            assert own.topics[uid].total == pytest.approx(now.extra.topics[uid].total, rel=1e-9)
    else:
        counts = sum(np.sum(one.extra.counts) for one in totals)
        assert np.sum(now.extra.counts) == pytest.approx(counts, rel=1e-12)
        assert now.extra.listed(now.uids.tolist())[0].sum() == pytest.approx(12)
        entropy = sum(one.extra.entropy for one in totals)
        assert now.extra.entropy == pytest.approx(entropy, rel=1e-9)


@every_kind
def test_the_bound_is_that_of_the_statistics_and_no_lower_than_of_the_parts(name):
    """The parts side by side, under one set of weights for all, would not be better."""
    model = combined(name)
    state = model._learner_
    assert model.lower_bound_ == pytest.approx(state.model.elbo(state.totals), rel=1e-12)
    assert model.lower_bound_ > sum(part.lower_bound_ for part in parts_of(name))


@every_kind
def test_the_order_of_the_models_does_not_matter(name):
    model, parts = combined(name), parts_of(name)
    for models in (parts[::-1], parts[1:] + parts[:1]):
        other = combine(models)
        assert other.lower_bound_ == model.lower_bound_
        assert other._statistics.tobytes() == model._statistics.tobytes()


@every_kind
def test_one_model_comes_back(name):
    one = parts_of(name)[0]
    model = combine([one])
    assert model._statistics.tobytes() == one._statistics.tobytes()
    assert model.lower_bound_ >= one.lower_bound_ - 1e-9 * abs(one.lower_bound_)
    assert model.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-3)


@every_kind
def test_what_is_given_stays_as_it_was(name):
    models = parts_of(name)
    before = [joblib.hash(model.__getstate__()) for model in models]
    combine(models)
    assert [joblib.hash(model.__getstate__()) for model in models] == before


@pytest.mark.quarter
@every_kind
def test_the_result_predicts_goes_on_and_is_saved(name, tmp_path):
    model = combine(parts_of(name))
    mass = model._learner_.totals.n.sum()
    model.save(tmp_path / "model.bnp")
    loaded = sklearn_bnp.load(tmp_path / "model.bnp")
    more = more_of(name)
    for one in (model, loaded):
        one.partial_fit(**more)
        assert one._learner_.totals.n.sum() > mass
        assert one.n_components_ == 3
    assert loaded.lower_bound_ == model.lower_bound_
    found = [one.score(**more) for one in (model, loaded)]
    assert found[0] == found[1]


@pytest.mark.extended
def test_topics_that_only_one_model_has_stay():
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(2, 0.3), size=50)
    x = np.array([rng.multinomial(60, share @ TOPICS[:2]) for share in shares])
    y = np.array([rng.multinomial(60, share @ TOPICS[1:]) for share in shares])
    model = combine([topics(x), topics(y)])
    assert model.n_components_ == 3
    found = model.components_ / model.components_.sum(axis=1, keepdims=True)
    assert np.abs(found[:, None] - TOPICS).sum(axis=2).min(axis=0).max() < 0.2


def test_states_that_only_one_model_has_stay():
    def visits(*states):
        own = np.concatenate([np.flatnonzero(k == STATES)[:120] for k in states])
        return np.split(
            STEPS[own.reshape(-1, 15)[np.random.default_rng(1).permutation(16)].ravel()], 4
        )

    model = combine([chain(visits(0, 1)), chain(visits(1, 2))])
    assert model.n_components_ == 3
    first, last = (np.argmin(np.abs(model.means_[:, 0] - x)) for x in (-6.0, 6.0))
    counts = model._learner_.totals.extra.listed(model.component_ids_.tolist())[1:]
    assert counts[first, last] < 1e-6  # nobody has seen one follow the other


@pytest.mark.extended
@pytest.mark.parametrize(
    ("observation", "gaps"),
    variants(
        product(["correlated_gaussian", "autoregressive"], [False, True]),
        slow=(("correlated_gaussian", False), ("autoregressive", True)),
    ),
)
def test_copies_of_states_of_rows_like_those_before_are_combined(observation, gaps):
    """All that is learned by copies of one model is in its units, and adds up as if one had learned it."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.permuted(np.tile([-6.0, 0.0, 6.0], (8, 8)), axis=1), 8, axis=1)[..., None]
    rows = rows + rng.normal(size=(*rows.shape[:2], 2))
    if gaps:
        rows[rng.random(rows.shape) < 0.05] = np.nan
    rows = list(rows)
    model = HDPHMMVB(observation=observation, proposals=FEW_PROPOSALS, random_state=0)
    first = clone(model).partial_fit(rows[:2])
    alone = combine([first])
    np.testing.assert_allclose(alone.score(rows), first.score(rows), atol=1e-4)
    learned = deepcopy(first).partial_fit(rows[2:5]), deepcopy(first).partial_fit(rows[5:])
    both = combine(learned)
    assert both.n_components_ == max(model.n_components_ for model in learned)
    assert both.partial_fit(rows[:1]).score(rows) > -20.0
    other = clone(model).partial_fit([3.0 * x for x in rows])
    with pytest.raises(ValueError, match=r"copies of one|other data"):
        combine([first, other])


def test_states_that_are_alike_only_together():
    """Where states are told apart by what follows them, a union of one pair loses, and all gain."""
    rng, models = np.random.default_rng(0), []
    for _ in range(2):
        steps = np.where(rng.random(300) < 0.93, 1, rng.integers(3, size=300))
        codes = np.where(rng.random(300) < 0.93, np.cumsum(steps) % 3, rng.integers(3, size=300))
        models.append(
            HDPHMMVB(
                observation=CategoricalObservation(n_categories=3), stickiness=1.0,
                proposals=None, tol=0.01, init_params=0.9 * np.eye(3)[codes] + 0.1 / 3,
            ).fit([codes[:, np.newaxis]])
        )  # fmt: skip
    standing = side_by_side(models)
    pairs = [one.pair for one in _candidates(standing)]
    alone = [standing.joined([pair]).value - standing.value for pair in pairs]
    assert len(pairs) == 3
    assert max(alone) < -10.0
    estimates = [one.alone for one in _candidates(standing)]
    np.testing.assert_allclose(estimates, alone, rtol=0.1)
    assert standing.joined(pairs).value > standing.value + 10.0
    assert combine(models).n_components_ == 3


def side_by_side(models):
    """`_Combined` of the components of all models, none of which is joined."""
    learners = [combination._at_rest(one) for one in models]
    model = combination._model_of_all([learner.model for learner in learners])
    bags = [combination._bag(one, model.likelihood, i) for i, one in enumerate(learners)]
    return _Combined.of(model, _with_own_names(bags, UidCounter())).adapted()


# ---------------------------------------------------------------------- the bound of a fit of all


def test_topics_have_the_bound_of_one_fit_with_these_statistics():
    """Unions of topics of different models are exact."""
    docs, types = np.nonzero(WORDS)
    resp = np.full((len(docs), 3), 0.05)
    resp[np.arange(len(docs)), types // 4] = 0.9
    params = {"topic_word_prior": 0.1, "doc_topic_prior": 1.0, "max_iter": 0, "proposals": None}

    def fit(first, last):
        own = (docs >= first) & (docs < last)
        return HDPTopicVB(init_params=resp[own], **params).fit(WORDS[first:last])

    model, whole = combine([fit(0, 10), fit(10, 30), fit(30, 60)]), fit(0, 60)
    assert model.n_components_ == 3
    assert model.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-7)
    np.testing.assert_allclose(
        np.sort(model._statistics, axis=0), np.sort(whole._statistics, axis=0), rtol=1e-10
    )
    for name, value in model.elbo_terms_.items():
        assert value == pytest.approx(whole.elbo_terms_[name], rel=1e-6), name


def test_states_have_the_bound_of_one_fit_with_these_statistics():
    resp = np.full((720, 3), 0.05)
    resp[np.arange(720), STATES] = 0.9
    params = {
        "observation": CategoricalObservation(n_categories=3), "transition_concentration": 1.0,
        "start_concentration": 1.0, "stickiness": 5.0, "max_iter": 0, "proposals": None,
    }  # fmt: skip

    def fit(first, last):
        model = HDPHMMVB(init_params=resp[60 * first : 60 * last], **params)
        return model.fit(_sequences(CODES)[first:last])

    model, whole = combine([fit(0, 3), fit(3, 12)]), fit(0, 12)
    assert model.n_components_ == 3
    for name, value in model.elbo_terms_.items():
        assert value == pytest.approx(whole.elbo_terms_[name], rel=1e-6), name
    order = np.argsort(model.weights_), np.argsort(whole.weights_)
    np.testing.assert_allclose(
        model.transmat_[np.ix_(order[0], order[0])], whole.transmat_[np.ix_(order[1], order[1])],
        rtol=1e-4,
    )  # fmt: skip


# ---------------------------------------------------------------------- documents that are not known


def test_unions_of_topics_of_which_histograms_alone_are_known_have_a_bound():
    """Of two topics that some documents have both the term is too low; of others it is exact."""
    totals = parts_of("words")[0]._learner_.totals
    known, model = totals.extra, parts_of("words")[0]._learner_.model
    blind = known.summed()
    pair, rest = totals.uids[:2].tolist(), totals.uids[2:]
    terms = []
    for extra in (known, blind):
        union = extra.union(tuple(pair), 99)
        bag = StatBag(np.append(rest, 99), *totals[1:3], extra.replaced(pair, union))
        bag = bag._replace(s=totals.s[1:], entropy=totals.entropy[1:])
        terms.append(model.updated(bag).allocation_term(bag))
    assert terms[1] < terms[0] - 1.0
    apart = blind.replaced((), NOTHING_MORE)
    for uid in totals.uids.tolist():
        np.testing.assert_allclose(apart.topics[uid].weights, known.topics[uid].weights, atol=1e-12)


NOTHING_MORE = DocumentCounts({}, NOTHING, 0.0, {})


def test_topics_of_stochastic_streams():
    """They know histograms alone."""
    models = []
    for x in np.split(WORDS, 2):
        model = HDPTopicVB(
            3, init_params="anchor", learning_method="stochastic", random_state=0, total_samples=30
        )
        for _ in range(10):
            model.partial_fit(x)
        assert not model._learner_.totals.extra.parts
        models.append(model)
    model = combine(models)
    assert model.n_components_ == 3
    extra = model._learner_.totals.extra
    assert extra.lengths.total == pytest.approx(60)
    mass = sum(m._learner_.totals.n.sum() for m in models)
    assert sum(h.nodes @ h.weights for h in extra.topics.values()) == pytest.approx(mass, rel=1e-6)


# ---------------------------------------------------------------------- refusals


def test_what_cannot_be_combined():
    one, states = parts_of("words")[0], parts_of("chains")[0]
    with pytest.raises(TypeError, match=names("models[1]", "HDPHMMVB", "HDPTopicVB")):
        combine([one, states])
    with pytest.raises(TypeError, match=names("models[1]", "MemoryBoundedTopicVB")):
        combine([one, MemoryBoundedTopicVB(100)])
    with pytest.raises(ValueError, match="not fitted"):
        combine([one, HDPTopicVB()])
    with pytest.raises(ValueError, match=names("models[1]", "columns", "12", "11")):
        combine([one, topics(WORDS[:20, :-1], max_iter=0)])
    with pytest.raises(ValueError, match=names("models[1]", "topic_word_prior", "0.1", "auto")):
        combine([one, parts_of("words, given prior")[0]])
    with pytest.raises(ValueError, match=names("models[1]", "allocation", "Dirichlet")):
        combine([one, parts_of("words, finite")[0]])
    with pytest.raises(ValueError, match=names("models[1]", "allocation", "2.0")):
        combine([one, topics(WORDS[:20], doc_topic_prior=2.0, max_iter=0)])
    with pytest.raises(ValueError, match=names("models[1]", "observation")):
        combine(
            [
                states,
                chain(_sequences(STEPS)[:3], observation="fixed_variance_gaussian", max_iter=0),
            ]
        )
    with pytest.raises(ValueError, match=names("models[1]", "allocation", "3.0")):
        combine([states, chain(_sequences(STEPS)[:3], stickiness=3.0, max_iter=0)])
    with pytest.raises(TypeError, match=names("models[1]", "DPMixtureVB")):
        combine([states, DPMixtureVB()])


def test_vocabularies_of_frames():
    pd = pytest.importorskip("pandas")
    one, other = (
        pd.DataFrame(WORDS[:20], columns=list(w)) for w in ("abcdefghijkl", "abcdefghijkm")
    )
    with pytest.raises(ValueError, match=names("models[1]", "names of columns", "m")):
        combine([topics(one, max_iter=0), topics(other, max_iter=0)])


@pytest.mark.extended
def test_lags():
    """Rows of lags are known in the units of the data from which they are."""
    fits = [
        chain(_sequences(STEPS)[:3], observation=AutoregressiveObservation(order=order), max_iter=0)
        for order in (1, 2)
    ]
    with pytest.raises(ValueError, match=names("models[1]", "observation", "order=2")):
        combine(fits)
    other = chain(_sequences(STEPS)[3:], observation=AutoregressiveObservation(order=1), max_iter=0)
    with pytest.raises(ValueError, match=names("units", "copies")):
        combine([fits[0], other])
    copies = [deepcopy(fits[0]).partial_fit(_sequences(STEPS)[i]) for i in (3, 4)]
    assert combine(copies)._learner_.totals.n.sum() == pytest.approx((3 + 4 + 4 - 3) * 59)
