"""Equal copies of sequences, and weights that say how much they matter, bring about no states."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, GaussianObservation
from sklearn_bnp.hmm.sampling import EDGE, StateSample


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


@pytest.mark.quarter
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


def discrete(kind):
    """Sequences of four states, of categories or counts."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet([0.3] * 5, (4, 3)) if kind == "categorical" else rng.gamma(1, 5, (4, 3))
    out = []
    for _ in range(8):
        states = rng.integers(4, size=100)[np.cumsum(rng.random(100) < 0.1)]
        if kind == "poisson":
            out.append(rng.poisson(table[states]))
        else:
            levels = np.cumsum(table[states], axis=2)
            out.append((rng.random((100, 3, 1)) > levels).sum(axis=2))
    return out


@pytest.mark.quarter
@pytest.mark.parametrize("weight", [12.0, 500.0])
@pytest.mark.parametrize(
    ("observation", "data", "n_states"),
    [
        ("gaussian", [np.round(x) for x in SEQUENCES], 3),
        ("poisson", discrete("poisson"), 4),
        ("categorical", discrete("categorical"), 4),
    ],
    ids=["rounded", "counts", "categories"],
)
def test_weights_of_other_units_make_no_states(observation, data, n_states, weight):
    """Rounded rows of four states had 349 with a weight of 12."""
    model = HDPHMMVB(observation=observation, random_state=0)
    assert model.fit(data, sample_weight=weight).n_components_ == n_states


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
    still = sample.z.ravel() == 0.0
    assert np.count_nonzero(still) == 120
    assert np.count_nonzero(~still) == 60
    np.testing.assert_allclose(sample.row_weight, np.where(still, 0.5, 1.0))  # all are there twice
