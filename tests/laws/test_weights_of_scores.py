"""The weights of `score` count copies of rows, documents and sequences, in every estimator."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from tests.estimators import blobs, chains, documents, grouped_rows

X, _ = blobs(40)
WORDS, _ = documents(15, 20)
ROWS, GROUPS, _ = grouped_rows(12, 10)
SEQUENCES, _ = chains(5, 20)


class Case(NamedTuple):
    """A fitted model, and the data of some of its units: rows, documents or sequences."""

    model: Any
    n_units: int
    # arguments of `score` for these units, which may repeat
    arguments: Any
    # weights in the form that `score` takes, from those of units
    weights: Any = lambda weight: weight


def fixed(estimator, data, **given):
    return estimator.set_params(proposals=None, max_iter=0, random_state=0).fit(data, **given)


def joined_rows(units):
    """Rows of documents, in which every copy is a document of its own."""
    places = [np.flatnonzero(unit == GROUPS) for unit in units]
    groups = np.repeat(np.arange(len(units)), [len(place) for place in places])
    return {"X": ROWS[np.concatenate(places)], "groups": groups}


def joined_sequences(units):
    chosen = [SEQUENCES[unit] for unit in units]
    return {"X": np.concatenate(chosen), "lengths": [len(x) for x in chosen]}


def of_rows(weight):
    return np.repeat(weight, 10)


CASES = {
    "rows": Case(fixed(DPMixtureVB(2), X), 40, lambda units: {"X": X[units]}),
    "words": Case(fixed(HDPTopicVB(2), WORDS), 15, lambda units: {"X": WORDS[units]}),
    "rows of documents": Case(
        fixed(HDPTopicVB(2, observation="gaussian"), ROWS, groups=GROUPS), 12, joined_rows, of_rows
    ),
    "bounded memory": Case(
        MemoryBoundedTopicVB(memory_bound=900).fit(ROWS, groups=GROUPS),
        12, joined_rows, of_rows,
    ),
    "sequences": Case(
        fixed(HDPHMMVB(2), SEQUENCES), 5, lambda units: {"X": [SEQUENCES[i] for i in units]}
    ),
    "lengths": Case(fixed(HDPHMMVB(2), SEQUENCES), 5, joined_sequences),
    "lagged rows": Case(
        fixed(HDPHMMVB(2, observation="autoregressive"), SEQUENCES), 5, joined_sequences
    ),
}  # fmt: skip
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def weights(case, seed=0):
    """Whole numbers, some of them 0."""
    return np.random.default_rng(seed).permutation(np.arange(case.n_units) % 4)


@cases
def test_weights_count_copies(case):
    weight, units = weights(case), np.arange(case.n_units)
    score = case.model.score(**case.arguments(units), sample_weight=case.weights(weight))
    copies = case.model.score(**case.arguments(np.repeat(units, weight)))
    assert score == pytest.approx(copies, rel=1e-9)
    assert score != pytest.approx(case.model.score(**case.arguments(units)), rel=1e-6)
    scaled = case.model.score(**case.arguments(units), sample_weight=case.weights(weight) * 0.3)
    assert scaled == pytest.approx(score, rel=1e-12)


@cases
def test_equal_weights_change_nothing(case):
    given = case.arguments(np.arange(case.n_units))
    score = case.model.score(**given)
    ones = case.weights(np.ones(case.n_units))
    for weight in (ones, ones.astype(int), ones.tolist(), 1.0):
        assert case.model.score(**given, sample_weight=weight) == score


@cases
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda w: -w, "sample_weight.*negative"),
        (lambda w: 0 * w, "sample_weight sums to 0"),
        (lambda w: w[:-1], "sample_weight has (shape|. weights)"),
        (lambda w: w * np.nan, "sample_weight"),
    ],
    ids=["negative", "zero", "short", "nan"],
)
def test_bad_weights(case, wrong, words):
    given = case.arguments(np.arange(case.n_units))
    weight = wrong(case.weights(np.ones(case.n_units)))
    with pytest.raises(ValueError, match=words):
        case.model.score(**given, sample_weight=weight)


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind != "bounded memory"])
def test_weights_of_chunks(kind):
    """Weights beside chunks, or in what a chunk loads, are those of the data in one piece."""
    dask = pytest.importorskip("dask")
    case = CASES[kind]
    weight, units = weights(case), np.arange(case.n_units)
    weight[-2:] = 0  # a chunk that counts for nothing
    score = case.model.score(**case.arguments(units), sample_weight=case.weights(weight))
    parts = [slice(0, 2), slice(2, -2), slice(-2, None)]
    given = [case.arguments(units[part]) for part in parts]
    for i, chunk in enumerate(given):
        if "groups" in chunk:
            chunk["groups"] = chunk["groups"] + 100 * i  # no document is in several chunks
    own = [case.weights(weight[part]) for part in parts]
    loaded = [
        dask.delayed({**chunk, "sample_weight": w}) for chunk, w in zip(given, own, strict=True)
    ]
    assert case.model.score(loaded) == pytest.approx(score, rel=1e-9)
    x = [dask.delayed(chunk.pop("X"), traverse=False) for chunk in given]
    beside = {name: [chunk[name] for chunk in given] for name in given[0]}
    assert case.model.score(x, **beside, sample_weight=own) == pytest.approx(score, rel=1e-9)


def test_rows_of_weight_0_may_be_impossible():
    model = fixed(DPMixtureVB(2, observation="bernoulli"), np.tile(np.eye(2), (10, 1)))
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    model.score_samples = lambda X: np.array([-np.inf, -1.0])
    assert model.score(rows, sample_weight=[0.0, 2.0]) == -1.0
