"""What a first batch leaves out is no secret if later batches vary in it."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
)
from sklearn_bnp.estimator.left_out_columns import warn_if_left_out_varies

rng = np.random.default_rng(0)
FIRST, LATER = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
FIRST[:, 1] = 7.0
GAPS = LATER.copy()
GAPS[5, 1] = GAPS[9, 0] = np.nan
GROUPS = {"groups": np.arange(300) // 20}
BLOCKS = ColumnObservation([("bits", "bernoulli", [0]), ("numbers", "gaussian", [2, 1])])


def with_bits(x):
    """The rows with zeros and ones in the first column."""
    out = x.copy()
    out[:, 0] = out[:, 0] > 0
    return out


MODELS = {
    "full": (DPMixtureVB(), {}, LATER),
    "diag": (DPMixtureVB(observation=GaussianObservation("diag")), {}, LATER),
    "fixed variance": (DPMixtureVB(observation="fixed_variance_gaussian"), {}, LATER),
    "gaps": (DPMixtureVB(), {}, GAPS),
    "states": (HDPHMMVB(), {}, LATER),
    "topics": (HDPTopicVB(observation="gaussian"), GROUPS, LATER),
}


def begun(model, x, given):
    """The model after a first batch, without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.set_params(max_iter=2, proposals=None).partial_fit(x, **given)


@pytest.mark.parametrize("name", MODELS)
def test_a_column_that_varies_later(name):
    model, given, later = MODELS[name]
    model = begun(model, FIRST, given)
    begun(model, FIRST + np.array([0.1, 0.0, 0.0]), given)  # another batch of the same kind
    with pytest.warns(UserWarning, match="varies in column 1, which was constant") as caught:
        model.partial_fit(later, **given)
    assert caught[0].filename == __file__


def test_a_column_of_a_block():
    """The column is that of the table, and not of the block."""
    model = begun(DPMixtureVB(observation=BLOCKS), with_bits(FIRST), {})
    with pytest.warns(UserWarning, match="varies in column 1"):
        model.partial_fit(with_bits(LATER))


@pytest.mark.parametrize("model", [DPMixtureVB(), HDPHMMVB(observation="autoregressive")])
def test_a_combination_of_columns(model):
    """Two columns are the same at first."""
    model = begun(model, FIRST[:, [0, 0, 2]], {})
    with pytest.warns(UserWarning, match="varies in a combination of columns") as caught:
        model.partial_fit(LATER)
    assert caught[0].filename == __file__
    assert model.score(LATER) < -100.0


def test_a_stream_is_told_once():
    """Under the filters of Python, which show a text once for each line that calls."""
    model = begun(DPMixtureVB(), FIRST, {})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for i in range(3):
            model.partial_fit(LATER * (1.0 + i))
    assert sum("which was constant" in str(warning.message) for warning in caught) == 1


def test_a_little_noise_is_no_news():
    """Rounding, and a column that is left out since it is nearly a copy of another one."""
    near = FIRST[:, [0, 0, 2]] + 1e-5 * FIRST[:, [2]] * [0.0, 1.0, 0.0]
    model = begun(DPMixtureVB(), near, {})
    again = LATER[:, [0, 0, 2]] + 2e-5 * LATER[:, [1]] * [0.0, 1.0, 0.0]
    begun(model, again, {})
    likelihood, batch = model._learner_.model.likelihood, model._learner_.stream.pool[-1]
    assert likelihood.log_base(batch.x).mean() > -100.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_left_out_varies(likelihood, batch)
