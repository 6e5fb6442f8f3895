"""Weights over scores of orders of magnitude: what they add up to is right, or rounding, but no warning."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB

RNG = np.random.default_rng(0)
ROWS = RNG.normal(np.repeat([-4.0, 4.0], 100)[:, np.newaxis], size=(200, 2))
COUNTS = RNG.poisson(np.repeat([[8, 8, 3, 3], [3, 3, 3, 9]], 100, axis=0))
DATA = {
    "gaussian": ROWS,
    "fixed_variance_gaussian": ROWS,
    "poisson": COUNTS,
    "multinomial": COUNTS,
    "categorical": np.minimum(COUNTS, 3),
}
GROUPS = {"groups": np.repeat(np.arange(20), 10)}
MODELS = {
    "mixture": (lambda **given: DPMixtureVB(max_iter=10, **given), {}),
    "documents": (lambda **given: HDPTopicVB(max_iter=5, **given), GROUPS),
    "sequences": (lambda **given: HDPHMMVB(max_iter=5, **given), GROUPS),
    "bounded": (lambda random_state, **given: MemoryBoundedTopicVB(2000, **given), GROUPS),
}


@pytest.mark.quarter
@pytest.mark.parametrize("orders", [(-50, 10), (-30, 0), (-60, 13)])
@pytest.mark.parametrize("family", DATA)
@pytest.mark.parametrize("kind", MODELS)
def test_no_raw_warnings(kind, family, orders):
    make, given = MODELS[kind]
    weight = 10.0 ** np.random.default_rng(7).uniform(*orders, 20 if given else 200)
    weight = weight if not given else weight[given["groups"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", category=UserWarning, module=__name__)
        model = make(observation=family, random_state=0)
        model.fit(DATA[family], sample_weight=weight, **given)
    assert np.isfinite(model.lower_bound_)
