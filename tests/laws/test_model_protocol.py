"""Laws of every model: it follows the protocol of the engine, and is a value that never changes."""

import inspect
import itertools
import pickle
import warnings
from dataclasses import FrozenInstanceError, fields
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.engine.model import Model
from sklearn_bnp.hdp.model import HierarchicalModel
from sklearn_bnp.hmm.model import SequenceModel
from sklearn_bnp.mixture.model import MixtureModel
from sklearn_bnp.topics.model import TopicModel

# Class of a model, its estimator, and the priors of weights that this has.
MODELS = {
    MixtureModel: (DPMixtureVB, ("dp", "dirichlet")),
    TopicModel: (HDPTopicVB, ("hdp", "dirichlet")),
    SequenceModel: (HDPHMMVB, ("hdp", "dirichlet")),
}
CASES = [(kind, name) for kind, (_, names) in MODELS.items() for name in names]
METHODS = [name for name, member in vars(Model).items() if inspect.isfunction(member)]
METHODS = [name for name in METHODS if not name.startswith("_")]


def shape_of(method):
    """Names, kinds and defaults of a method's parameters."""
    parameters = inspect.signature(method).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def data_for(kind):
    rng = np.random.default_rng(0)
    if kind is TopicModel:
        return rng.poisson(rng.gamma(0.5, size=(40, 3)) @ rng.gamma(0.3, size=(3, 15)))
    return np.repeat(rng.normal(scale=4.0, size=(12, 2)), 15, axis=0) + rng.normal(size=(180, 2))


@cache
def learner_of(kind, allocation, n_components=4):
    """The learner of a fit with so many components."""
    estimator, _ = MODELS[kind]
    model = estimator(n_components, proposals=(), allocation=allocation, max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data_for(kind))._learner_


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def learner(request):
    return learner_of(*request.param)


@pytest.mark.parametrize("kind", MODELS)
def test_models_have_all_members(kind):
    for name in METHODS:
        assert shape_of(getattr(kind, name)) == shape_of(getattr(Model, name)), name
    names = {field.name for field in fields(kind)} | set(dir(kind))
    assert names >= set(Model.__annotations__)
    assert isinstance(kind.stream_rounds, int)
    assert kind.settled_gain >= 0
    assert isinstance(kind.sampling, type)


@pytest.mark.parametrize("name", METHODS)
def test_members_are_documented(name):
    assert inspect.getdoc(getattr(Model, name))


def test_models_are_values(learner):
    model = learner.model
    with pytest.raises(FrozenInstanceError):
        model.prior = None
    again = pickle.loads(pickle.dumps(model))
    assert again is not model
    assert again.elbo_terms(learner.totals) == model.elbo_terms(learner.totals)


def test_methods_change_neither_model_nor_totals(learner):
    model, totals = learner.model, learner.totals
    before = pickle.dumps((model, totals))
    uids = totals.uids.tolist()
    model.coefficients(totals)
    model.updated(totals).blended(totals, 0.5)
    model.in_order(totals)
    model.with_adapted_prior(totals, 2)
    model.adopting(totals, {uids[0]: (uids[1],)}).coefficients(totals)
    model.union_gains(totals, [(0, 1), (2, 3)])
    model.replacement_gains(totals, [((uids[0], uids[1]), totals.take([0]))], np.zeros(1))
    assert pickle.dumps((model, totals)) == before


def test_the_objective_is_the_sum_of_its_terms(learner):
    terms = learner.model.elbo_terms(learner.totals)
    assert set(terms) == {"data", "entropy", "allocation"}
    assert all(type(value) is float for value in terms.values())
    assert terms["allocation"] == learner.model.allocation_term(learner.totals)
    assert learner.model.elbo(learner.totals) == sum(terms.values())


def test_global_steps_never_lower_the_objective(learner):
    model, totals = learner.model, learner.totals
    value = model.elbo(totals)
    assert model.updated(totals).elbo(totals) >= value - 1e-9 * abs(value)
    ordered, there = model.in_order(totals)
    assert sorted(ordered.uids.tolist()) == sorted(totals.uids.tolist())
    assert there.elbo(ordered) >= value - 1e-9 * abs(value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def test_an_accepted_replacement_gains_what_was_found(case):
    """It starts from the sticks under which its gain was found: others may lead to a lower maximum.

    Of sixteen states some have few rows, and about equal weights.
    """
    learner = learner_of(*case, n_components=16)
    totals = learner.totals
    model, uids = learner.model.updated(totals), totals.uids.tolist()
    for i, j in itertools.combinations(range(len(uids)), 2):
        both = totals.take([i]).s + totals.take([j]).s
        new = totals.take([i])._replace(uids=np.array([max(uids) + 1]), s=both)
        if isinstance(model, HierarchicalModel):
            members = (uids[i], uids[j])
            new = model.blind_union([(members, members[0])]).replay(totals, None)
            new = new.take(new.positions([members[0]]))
        removed = (uids[i], uids[j])
        (gain,) = model.replacement_gains(totals, [(removed, new)], np.zeros(1))
        after, there = model.after_replacement(totals, removed, new)
        change = there.allocation_term(after) - model.allocation_term(totals)
        if isinstance(model, HierarchicalModel):
            change += model._gain_of_extra(totals, totals.replaced(removed, new))
        assert change >= gain - 1e-9 * abs(model.allocation_term(totals))


def test_nothing_is_gained_by_what_was_there(learner):
    """All components, replaced by themselves, are worth what they were; each is judged by itself."""
    totals = learner.totals
    model, new = learner.model.updated(totals), totals
    # the entropy in ``extra`` is a change, as nobody's share is known
    if isinstance(model, SequenceModel):
        new = totals._replace(extra=totals.extra._replace(entropy=0.0))
    same = (tuple(totals.uids.tolist()), new)
    less = (same[0][:2], totals.take([0]))
    gains = model.replacement_gains(totals, [same, less], np.zeros(2))
    assert gains[0] <= 0.01
    # a nat, where sticks are guessed for components by decreasing mass and in that order are worse
    assert gains[0] > (-1.0 if isinstance(model, HierarchicalModel) else -1e-9)
    for candidate, gain in zip((same, less), gains, strict=True):
        alone = model.replacement_gains(totals, [candidate], np.zeros(1))
        # the last bit of a sum may depend on how many candidates there are
        np.testing.assert_allclose(alone, gain, rtol=1e-12, atol=1e-9)
    assert model.replacement_gains(totals, [], np.empty(0)).shape == (0,)


def test_unions_have_one_gain_each(learner):
    model, totals = learner.model, learner.totals
    pairs = [(0, 1), (1, 2), (3, 0)]
    gains = model.union_gains(totals, pairs)
    assert gains.shape == (3,)
    assert np.isfinite(gains).all()
    assert model.union_gains(totals, []).shape == (0,)


def test_a_model_keeps_all_but_its_likelihood(learner):
    model = learner.model
    other = model.with_likelihood(pickle.loads(pickle.dumps(model.likelihood)))
    assert type(other) is type(model)
    assert other.likelihood is not model.likelihood
    for field in fields(model):
        if field.name != "likelihood":
            assert getattr(other, field.name) is getattr(model, field.name)


def test_bounds_of_entropies_are_those_of_blind_unions(learner):
    """What is estimated for a union of rows that are gone is what the union then does."""
    model, totals = learner.model, learner.totals
    i, j = np.triu_indices(len(totals.uids), 1)
    changes = model.least_union_entropies(totals, i, j)
    assert np.all(changes <= 0) and np.any(changes < 0)
    before, uids = model.elbo_terms(totals)["entropy"], totals.uids.tolist()
    for change, first, second in zip(changes, i.tolist(), j.tolist(), strict=True):
        edit = model.blind_union([((uids[first], uids[second]), uids[first])])
        after = edit.replay(totals, None)
        assert after.n.sum() == pytest.approx(totals.n.sum())
        assert sorted(after.uids.tolist()) == sorted(set(uids) - {uids[second]})
        entropy = model.updated(after).elbo_terms(after)["entropy"]
        assert entropy - before == pytest.approx(change, rel=1e-6, abs=1e-6)
