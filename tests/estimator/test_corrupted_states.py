"""Saved states that were spoiled are refused: by their checksum, and by what must hold among their parts."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine.failures import Attempts, Failures
from sklearn_bnp.estimator.object_graph import Graph, value_of
from tests.corruptions import (
    outcomes,
    signed,
    with_spoiled_arrays,
    with_spoiled_nodes,
    with_swapped_arrays,
)
from tests.estimators import names
from tests.saved_models import MODELS, X, saved_model
from tests.variants import variants

every_model = pytest.mark.parametrize("name", MODELS)

# What is published for people to look at: nothing is computed from it but what they see.
SHOWN = (
    "means_", "covariances_", "precisions_", "precisions_cholesky_", "probabilities_", "blocks_",
    "coef_", "intercept_", "autocorrelation_", "restart_probability_", "components_",
    "exp_dirichlet_component_", "labels_",
)  # fmt: skip
# Those whose rows may have missing values: samples of them may hold NaN.
INCOMPLETE = ("merges under way", "rows with missing values")


def load(model, state):
    """A model from a state, as pickle makes it."""
    loaded = type(model).__new__(type(model))
    loaded.__setstate__(state)
    return loaded


def is_refused(model, state):
    try:
        load(model, state)
    except ValueError as error:
        assert "is damaged" in str(error), error
        assert "anew" in str(error), error
        return True
    return False


def shown(model, state):
    """Positions of the arrays that are in attributes for people to look at alone."""
    graph = Graph(*(state[field] for field in Graph._fields))
    attributes = value_of(graph, model)
    found = set()

    def walk(value):
        if isinstance(value, (dict, list)):
            for part in value.values() if isinstance(value, dict) else value:
                walk(part)
        else:
            found.update(i for i, array in enumerate(state["arrays"]) if array is value)

    for name in set(SHOWN).intersection(attributes):
        walk(attributes[name])
    return found


# The checksum looks at any array alike; nodes of other kinds are in four of the models.
OF_CHECKSUMS = {"bounded", "birth under way", "topics on trial", "unions of states", "mixture"}


@pytest.mark.extended
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in OF_CHECKSUMS else pytest.mark.slow) for n in MODELS],
)
def test_what_is_not_as_it_was_saved(name):
    model = saved_model(name)
    state = model.__getstate__()
    spoilers = [with_spoiled_arrays, with_swapped_arrays]
    if name in ("birth under way", "topics on trial", "unions of states", "bounded"):
        spoilers.append(with_spoiled_nodes)
    for spoiler in spoilers:
        for how, spoiled in spoiler(state):
            assert is_refused(model, spoiled), how


# Others than these have the same kinds of arrays in other places, or more of them.
OF_ARRAYS = (
    "mixture", "birth under way", "merges under way", "columns", "stochastic", "topics", "states",
    "unions of states", "correlated rows", "bounded",
)  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize("name", variants(MODELS, quick=OF_ARRAYS))
def test_arrays_that_do_not_fit_whatever_the_checksum(name):
    """As if they had been spoiled before the model was saved."""
    model = saved_model(name)
    state = model.__getstate__()
    harmless = shown(model, state)
    for (i, how), spoiled in with_spoiled_arrays(state):
        if how == "with NaN" and name in INCOMPLETE:
            continue
        if how == "with a row twice" and name.startswith("topics"):
            continue  # how many documents there were, nobody else knows
        if i not in harmless and state["arrays"][i].ndim:
            assert is_refused(model, signed(model, spoiled)), (i, how)


def spoiled_memories(memory):
    """Ways to spoil a memory of a proposal, a list of functions that each change one thing of it."""
    if isinstance(memory, Failures):
        return [
            partial(memory._memory.update, {7: (1.5, 3.0)}),
            partial(memory._memory.update, {7: (1, "3")}),
            partial(memory._memory.update, {(7, 0.5): (1, 3.0)}),
            partial(memory._memory.update, {7: [1, 3.0]}),
        ]
    if isinstance(memory, Attempts):
        return [
            partial(memory._memory.update, {7: {"7": np.nan}}),
            partial(memory._memory.update, {7: {1.5: 3.0}}),
            partial(memory._memory.update, {7: {1: "3.0"}}),
            partial(memory._memory.update, {7: [(1, 3.0)]}),
            partial(setattr, memory, "_memory", []),
        ]
    if isinstance(memory, dict):
        return [partial(memory.update, {7: None}), partial(memory.update, {0.5: 1.0})]
    if isinstance(memory, set):
        return [partial(memory.add, 0.5), partial(memory.add, (1, None))]
    return []


@pytest.mark.quarter
@pytest.mark.parametrize(
    "name",
    ["birth under way", "unions of states", "topics on trial", "mixture"],
)
def test_memories_of_proposals_that_are_of_another_kind(name):
    n_spoiled = 0
    for i, proposal in enumerate(saved_model(name)._learner_.schedule.proposals):
        fresh = clone(proposal)
        fresh.reset()
        for field, like in vars(fresh).items():
            if not field.startswith("_") or like is None:
                continue
            values = [None, "five", [like], -3, 2.5, np.nan]
            for j in range(len(values) + len(spoiled_memories(like))):
                model = deepcopy(saved_model(name))
                spoiled, fits = model._learner_.schedule.proposals[i], False
                if j < len(values):
                    setattr(spoiled, field, values[j])
                    fits = type(values[j]) is type(like) and values[j] == 2.5
                else:
                    spoiled_memories(getattr(spoiled, field))[j - len(values)]()
                assert is_refused(model, model.__getstate__()) or fits, (i, field, j)
                n_spoiled += 1
    assert n_spoiled > 10


@pytest.mark.parametrize("entry", ["version", "checksum", "text", "arrays", "others"])
def test_states_that_lack_an_entry(entry):
    state = saved_model("topics").__getstate__()
    del state[entry]
    with pytest.raises(ValueError, match=names("HDPTopicVB", "damaged", entry)):
        load(saved_model("topics"), state)


def test_a_spoiled_version():
    state = {**saved_model("topics").__getstate__(), "version": "0.1.9"}
    with pytest.raises(ValueError, match="checksum"):
        load(saved_model("topics"), state)


def test_the_state_of_another_class():
    with pytest.raises(ValueError, match="checksum"):
        load(saved_model("mixture"), saved_model("topics").__getstate__())


@pytest.mark.parametrize("value", [None, [], (1, 2), {"format": 1}])
def test_what_is_no_state_at_all(value):
    with pytest.raises(ValueError, match=names("MemoryBoundedTopicVB", "anew")):
        load(saved_model("bounded"), value)


def test_random_generators_are_looked_at():
    model = DPMixtureVB(proposals=None, random_state=np.random.RandomState(0)).fit(X)
    state = model.__getstate__()
    assert any(isinstance(other, np.random.RandomState) for other in state["others"])
    spoiled = [
        np.random.RandomState(9) if isinstance(other, np.random.RandomState) else other
        for other in state["others"]
    ]
    assert is_refused(model, {**state, "others": spoiled})


@pytest.mark.extended
def test_spoiled_flags_of_types():
    """A pickled type has flags. By this one, NumPy's numbers became Python's when they were taken out."""
    model = saved_model("topics on trial")
    state, spoiled = model.__getstate__(), np.dtype(np.float64, copy=True)
    spoiled.__setstate__((3, "<", None, None, None, -1, -1, 32))
    arrays = [x.view(spoiled) if x.dtype == np.float64 else x for x in state["arrays"]]
    assert {x.dtype.flags for x in arrays} == {0, 32}
    assert type(np.ones((), spoiled)[()]) is float
    assert is_refused(model, {**state, "arrays": arrays})


# ---------------------------------------------------------------------- bytes


@pytest.mark.extended
def test_spoiled_bytes():
    found = outcomes("deletes under way", 150, seed=0)
    assert found["silent"] == 0, found
    assert found["refused"] > 120, found


@pytest.mark.slow
@every_model
def test_many_spoiled_bytes(name):
    found = outcomes(name, 3000, seed=1)
    print(name, dict(found))
    assert found["silent"] == 0, found
    assert found["died in the unpickler"] <= 5, found


@pytest.mark.slow
@every_model
def test_objects_that_lack_something(name):
    model = saved_model(name)
    for how, spoiled in with_spoiled_nodes(model.__getstate__()):
        assert is_refused(model, spoiled), how
