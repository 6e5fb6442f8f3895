"""Weights that make many equal copies of continuous sequences are warned of, and no others."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation, GaussianObservation

X = [np.random.default_rng(i).normal(size=(12, 1)) for i in range(4)]
COUNTS = [np.random.default_rng(i).poisson(3.0, size=(12, 1)) for i in range(4)]


def quick(observation="gaussian"):
    return HDPHMMVB(
        2, observation=observation, proposals=None, max_iter=100, tol=1.0, random_state=0
    )


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "observation",
    ["gaussian", GaussianObservation("diag"), AutoregressiveObservation(), "correlated_gaussian"],
)
@pytest.mark.parametrize(
    ("weight", "copies"), [([10, 10, 10, 10], "10"), ([10, 1, 1, 0], "8.5"), ([4] * 4, "4")]
)
def test_copies_of_continuous_sequences_are_warned_of(learn, observation, weight, copies):
    with pytest.warns(UserWarning, match=rf"count {copies} times.* divide them by their mean"):
        getattr(quick(observation), learn)(X, sample_weight=weight)


@pytest.mark.parametrize("weight", [None, [1, 4, 3, 1], [0.1, 0.2, 0.0, 0.3], [3, 3, 3, 3]])
def test_other_weights_are_not(weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick().fit(X, sample_weight=weight)


@pytest.mark.parametrize("observation", ["poisson", "categorical"])
def test_discrete_sequences_may_occur_often(observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick(observation).fit(COUNTS, sample_weight=[100] * 4)


def test_rows_count_and_not_sequences():
    """One long sequence of weight 9 among many short ones of weight 1."""
    sequences = [np.tile(X[0], (20, 1)), *X[1:]]
    with pytest.warns(UserWarning, match=r"count 8\.87 times"):
        quick().fit(sequences, sample_weight=[9, 1, 1, 1])


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("weights", ["all", "some"])
def test_copies_in_chunks_are_warned_of(learn, weights):
    """At the line that learns, and by the same numbers as in memory; some chunks may have no weights."""
    dask = pytest.importorskip("dask")
    model, given = quick(AutoregressiveObservation()), [10, 1, 1, 1]
    chunks = [
        {"X": X[:1], "sample_weight": given[:1]},
        {"X": X[1:]} | ({"sample_weight": given[1:]} if weights == "all" else {}),
    ]
    with pytest.warns(UserWarning, match=r"count 7\.92 times") as found:
        getattr(model, learn)([dask.delayed(chunk) for chunk in chunks])
    assert found[0].filename == __file__


def test_other_weights_in_chunks_are_not():
    dask = pytest.importorskip("dask")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick().fit([dask.delayed({"X": X, "sample_weight": [3] * 4}), dask.delayed({"X": X})])
        quick("poisson").fit([dask.delayed({"X": COUNTS, "sample_weight": [9] * 4})])
