"""Streams whose rows are far away from the first batch: learned priors of means follow them.

Where such a prior is given, a warning says so.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from tests.variants import variants

rng = np.random.default_rng(0)
FIRST, LATER = rng.normal(size=(2, 200, 3))
FAR = LATER + np.array([0.0, 500.0, 0.0])
GROUPS = {"groups": np.arange(200) // 20}
FULL = GaussianObservation(mean_precision_prior=0.01)
BLOCKS = ColumnObservation([("numbers", FULL, [2, 1]), ("bits", "bernoulli", [0])])

MODELS = {
    "full": (DPMixtureVB(observation=FULL), {}),
    "diag": (DPMixtureVB(observation=GaussianObservation("diag", mean_precision_prior=0.01)), {}),
    "fixed variance": (
        DPMixtureVB(observation=FixedVarianceGaussianObservation(mean_variance_prior=1.0)),
        {},
    ),
    "known variance": (
        DPMixtureVB(
            observation=FixedVarianceGaussianObservation(variance=1.0, mean_variance_prior=1.0)
        ),
        {},
    ),
    "a block of known variance": (
        DPMixtureVB(
            observation=ColumnObservation(
                [("a", FULL, [1]), ("b", FixedVarianceGaussianObservation(variance=1.0), [0, 2])]
            )
        ),
        {},
    ),
    "weights": (DPMixtureVB(observation=FULL), {"sample_weight": np.full(200, 2.0)}),
    "states": (HDPHMMVB(observation=FULL), {}),
    "topics": (HDPTopicVB(observation=FULL), GROUPS),
    "memory-bounded": (MemoryBoundedTopicVB(observation=FULL), GROUPS),
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
        UserWarning, match="more than 100 standard .* in column 1. The prior of means is fixed"
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
    model = silent(DPMixtureVB(observation=FULL, max_iter=2, proposals=None), first, {})
    with pytest.warns(UserWarning, match="along a combination of columns"):
        model.partial_fit(far)


def test_counts_and_sequences_that_wander_are_no_such_case():
    counts = rng.poisson(1.0, size=(50, 3))
    model = silent(DPMixtureVB(observation="poisson", max_iter=2, proposals=None), counts, {})
    silent(model, counts + 10_000, {})
    walk = np.cumsum(FIRST, axis=0)
    states = HDPHMMVB(observation="autoregressive", max_iter=2, proposals=None)
    silent(silent(states, walk, {}), walk + 500.0, {})


LEARNED = {
    "full": DPMixtureVB(random_state=0),
    "diag": DPMixtureVB(observation=GaussianObservation("diag"), random_state=0),
    "spherical": DPMixtureVB(observation=GaussianObservation("spherical"), random_state=0),
    "fixed variance": DPMixtureVB(observation="fixed_variance_gaussian", random_state=0),
    "known variance": DPMixtureVB(
        observation=FixedVarianceGaussianObservation(variance=1.0), random_state=0
    ),
    "columns": DPMixtureVB(
        observation=ColumnObservation(
            [("a", "gaussian", [0]), ("b", "fixed_variance_gaussian", [1])]
        ),
        random_state=0,
    ),
    "states": HDPHMMVB(random_state=0),
    "correlated states": HDPHMMVB(observation="correlated_gaussian", random_state=0),
    "topics": HDPTopicVB(observation="gaussian", random_state=0),
    "memory-bounded": MemoryBoundedTopicVB(),
}


def four_clusters(seed, at, n_rows=600):
    """Rows that stay in a cluster for twenty rows, around a point (at, at)."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]]) + at
    return centers[np.repeat(rng.integers(4, size=n_rows // 20), 20)] + rng.normal(size=(n_rows, 2))


@pytest.mark.extended
@pytest.mark.parametrize("name", variants(LEARNED, slow=("correlated states",)))
@pytest.mark.parametrize(("far", "missing"), [(100.0, False), (1e4, True)])
def test_learned_priors_follow(name, far, missing):
    """Each row is explained as well as by a model of the later rows alone, which have half of the weight."""
    is_topics = name in ("topics", "memory-bounded")
    if missing and name in ("memory-bounded", "correlated states"):
        pytest.skip("has no missing entries, or takes clusters for slow noise if some are missing")
    first, later, held = (four_clusters(i, at) for i, at in enumerate((0.0, 3.0 * far, 3.0 * far)))
    given = {"groups": np.arange(len(later)) // 20} if is_topics else {}
    if missing:
        first[::7, 0], later[::5, 1] = np.nan, np.nan
    model = silent(silent(clone(LEARNED[name]), first, given), later, given)
    alone = silent(clone(LEARNED[name]), later, given)
    assert model.n_components_ == 8
    scale = len(held) if isinstance(model, HDPHMMVB) else 1.0
    lost = (alone.score(held, **given) - model.score(held, **given)) / scale
    assert lost < (0.05 if is_topics or isinstance(model, HDPHMMVB) else np.log(2.0) + 0.05)
