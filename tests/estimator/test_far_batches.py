"""A stream whose rows are far away from its first batch says so."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)

rng = np.random.default_rng(0)
FIRST, LATER = rng.normal(size=(2, 200, 3))
FAR = LATER + np.array([0.0, 500.0, 0.0])
GROUPS = {"groups": np.arange(200) // 20}
BLOCKS = ColumnObservation([("numbers", "gaussian", [2, 1]), ("bits", "bernoulli", [0])])

MODELS = {
    "full": (DPMixtureVB(), {}),
    "diag": (DPMixtureVB(observation=GaussianObservation("diag")), {}),
    "fixed variance": (DPMixtureVB(observation="fixed_variance_gaussian"), {}),
    "weights": (DPMixtureVB(), {"sample_weight": np.full(200, 2.0)}),
    "states": (HDPHMMVB(), {}),
    "topics": (HDPTopicVB(observation="gaussian"), GROUPS),
    "memory-bounded": (MemoryBoundedTopicVB(), GROUPS),
}


def silent(model, x, given):
    """The model after a batch, without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.partial_fit(x, **given)


@pytest.mark.parametrize("name", MODELS)
def test_most_rows_are_far_away(name):
    model, given = MODELS[name]
    if "proposals" in model.get_params():
        model.set_params(max_iter=2, proposals=None)
    few, gaps = LATER.copy(), FAR.copy()
    few[:40] = FAR[:40]  # a new cluster
    model = silent(silent(model, FIRST, given), few, given)
    with pytest.warns(
        UserWarning, match="more than 100 standard .* in column 1. The model"
    ) as caught:
        model.partial_fit(FAR, **given)
    assert caught[0].filename == __file__
    if name != "memory-bounded":
        gaps[::3, 1] = np.nan
        with pytest.warns(UserWarning, match="in column 1"):
            model.partial_fit(gaps, **given)


def test_the_column_of_a_block():
    first, far = FIRST.copy(), FAR.copy()
    first[:, 0], far[:, 0] = FIRST[:, 0] > 0, FAR[:, 0] > 0
    model = silent(DPMixtureVB(observation=BLOCKS, max_iter=2, proposals=None), first, {})
    with pytest.warns(UserWarning, match="in column 1"):
        model.partial_fit(far)


def test_rows_of_which_a_combination_of_columns_is_left_out():
    first, far = FIRST.copy(), FAR.copy()
    first[:, 2], far[:, 2] = first[:, 0] + first[:, 1], far[:, 0] + far[:, 1]
    model = silent(DPMixtureVB(max_iter=2, proposals=None), first, {})
    with pytest.warns(UserWarning, match="along a combination of columns"):
        model.partial_fit(far)


def test_counts_and_sequences_that_wander_are_no_such_case():
    counts = rng.poisson(1.0, size=(50, 3))
    model = silent(DPMixtureVB(observation="poisson", max_iter=2, proposals=None), counts, {})
    silent(model, counts + 10_000, {})
    walk = np.cumsum(FIRST, axis=0)
    states = HDPHMMVB(observation="autoregressive", max_iter=2, proposals=None)
    silent(silent(states, walk, {}), walk + 500.0, {})
