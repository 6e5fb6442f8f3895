"""Equal copies of sequences bring about no states, and are warned of where rows were rounded."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation, GaussianObservation
from sklearn_bnp.hmm.sampling import EDGE, StateSample

X = [np.random.default_rng(i).normal(size=(12, 1)) for i in range(4)]
ROUNDED = [np.round(2.0 * x) for x in X]
COUNTS = [np.random.default_rng(i).poisson(3.0, size=(12, 1)) for i in range(4)]


def quick(observation="gaussian"):
    return HDPHMMVB(
        2, observation=observation, proposals=None, max_iter=100, tol=1.0, random_state=0
    )


# ---------------------------------------------------------------------- states


def sequences(n_states=3, n_features=2, n_sequences=6, n_rows=60):
    """Sequences of states that last for ten rows on average."""
    rng = np.random.default_rng(0)
    means, out = 5.0 * rng.normal(size=(n_states, n_features)), []
    for _ in range(n_sequences):
        leaves = rng.random(n_rows) < 0.1
        states = rng.integers(n_states, size=n_rows)[np.cumsum(leaves)]
        out.append(means[states] + rng.normal(size=(n_rows, n_features)))
    return out


SEQUENCES = sequences()
LONG = np.concatenate(SEQUENCES)


@pytest.mark.parametrize("shape", ["full", "diag"])
@pytest.mark.parametrize(
    ("data", "weight"),
    [
        (SEQUENCES, [12.0] * 6), (SEQUENCES, [100.0] + [1.0] * 5), (SEQUENCES * 12, None),
        ([LONG[:200]] * 12, None), ([LONG[i : i + 60] for i in range(0, 301, 10)], None),
    ],
    ids=["weights", "heavy", "list", "one", "windows"],
)  # fmt: skip
def test_copies_make_no_states(shape, data, weight):
    """A list of one sequence, twelve times, had ended with 99 states for three."""
    model = HDPHMMVB(observation=GaussianObservation(shape), random_state=0)
    assert model.fit(data, sample_weight=weight).n_components_ == 3


def test_equal_rows_of_several_runs_count_once():
    z = np.arange(9.0)[:, np.newaxis]
    runs = [z[2:5], z[0:6], z[4:9], z[0:6]]  # one is a part of another, and one overlaps with it
    indptr = np.cumsum([0] + [len(run) for run in runs])
    around = np.full((4, 2), EDGE)
    sample = StateSample(np.concatenate(runs), indptr, None, around).without_copies()
    assert sample.total == pytest.approx(9.0)
    np.testing.assert_array_equal(sample.z, np.concatenate([z[0:6], z[4:9]]))
    np.testing.assert_allclose(sample.weight, [1.0, 0.6])
    assert sample.standing_for(26.0).total == pytest.approx(9.0)


def test_runs_of_different_rows_are_left_alone():
    rng = np.random.default_rng(0)
    z, indptr = rng.normal(size=(20, 2)), np.array([0, 5, 12, 20])
    z[3:7] = np.nan  # rows in which all is missing are no copies
    for weight in (None, np.array([0.3, 1.0, 0.9])):
        sample = StateSample(z, indptr, weight)
        assert sample.without_copies() is sample


def test_a_device_that_stood_still_stays():
    """Rows of the same numbers in many runs are a state."""
    rng = np.random.default_rng(0)
    z = np.concatenate([np.zeros((60, 1)), rng.normal(size=(60, 1))])
    sample = StateSample(np.concatenate([z, z]), np.arange(0, 241, 10)).without_copies()
    assert np.count_nonzero(sample.z == 0.0) == 120
    assert np.count_nonzero(sample.z) == 60


# ---------------------------------------------------------------------- warnings


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("observation", ["gaussian", GaussianObservation("diag")])
@pytest.mark.parametrize(
    ("weight", "copies"), [([10, 10, 10, 10], "10"), ([10, 1, 1, 0], "8.5"), ([4] * 4, "4")]
)
def test_copies_of_rounded_sequences_are_warned_of(learn, observation, weight, copies):
    with pytest.warns(UserWarning, match=rf"count {copies} times.* divide them by their mean"):
        getattr(quick(observation), learn)(ROUNDED, sample_weight=weight)


@pytest.mark.parametrize("weight", [None, [1, 4, 3, 1], [0.1, 0.2, 0.0, 0.3], [3, 3, 3, 3]])
def test_other_weights_are_not(weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick().fit(ROUNDED, sample_weight=weight)


@pytest.mark.parametrize(
    "observation", ["gaussian", "correlated_gaussian", AutoregressiveObservation()]
)
def test_copies_of_continuous_sequences_are_not(observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick(observation).fit(X, sample_weight=[100] * 4)


@pytest.mark.parametrize("observation", ["poisson", "categorical"])
def test_discrete_sequences_may_occur_often(observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick(observation).fit(COUNTS, sample_weight=[100] * 4)


def test_rows_count_and_not_sequences():
    """One long sequence of weight 9 among many short ones of weight 1."""
    sequences = [np.tile(ROUNDED[0], (20, 1)), *ROUNDED[1:]]
    with pytest.warns(UserWarning, match=r"count 8\.87 times"):
        quick().fit(sequences, sample_weight=[9, 1, 1, 1])


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("weights", ["all", "some"])
def test_copies_in_chunks_are_warned_of(learn, weights):
    """At the line that learns, and by the same numbers as in memory; some chunks may have no weights."""
    dask = pytest.importorskip("dask")
    model, given = quick(), [10, 1, 1, 1]
    chunks = [
        {"X": ROUNDED[:1], "sample_weight": given[:1]},
        {"X": ROUNDED[1:]} | ({"sample_weight": given[1:]} if weights == "all" else {}),
    ]
    with pytest.warns(UserWarning, match=r"count 7\.92 times") as found:
        getattr(model, learn)([dask.delayed(chunk) for chunk in chunks])
    assert found[0].filename == __file__


def test_other_weights_in_chunks_are_not():
    dask = pytest.importorskip("dask")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        quick().fit(
            [dask.delayed({"X": ROUNDED, "sample_weight": [3] * 4}), dask.delayed({"X": ROUNDED})]
        )
        quick("poisson").fit([dask.delayed({"X": COUNTS, "sample_weight": [9] * 4})])
