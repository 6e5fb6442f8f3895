"""Rows are their values: no type, byte order or layout in memory makes another model of them."""

import numpy as np
import pytest
from sklearn import config_context

from sklearn_bnp import (
    HDPHMMVB,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(np.repeat([-4.0, 4.0], 30)[:, np.newaxis], size=(60, 3)).astype(np.float16)
COUNTS = RNG.poisson(
    np.repeat([[4.0, 4.0, 4.0, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 4, 4, 4]], 30, axis=0)
)
FEW = (RNG.random((60, 12)) < 0.1).astype(int)  # mostly zeros, which are hashed by their places
GROUPS = {"groups": np.repeat(np.arange(6), 10)}

MODELS = {
    "mixture": (lambda: DPMixtureVB(proposals=None, random_state=0), ROWS, {}),
    "poisson": (lambda: DPMixtureVB(observation="poisson", proposals=None), FEW, {}),
    "categorical": (lambda: DPMixtureVB(observation="categorical", proposals=None), COUNTS, {}),
    "bernoulli": (lambda: DPMixtureVB(observation="bernoulli", proposals=None), FEW, {}),
    "states": (lambda: HDPHMMVB(proposals=None, random_state=0), ROWS, GROUPS),
    "states of counts": (lambda: HDPHMMVB(observation="poisson", proposals=None), FEW, GROUPS),
    "words": (lambda: HDPTopicVB(proposals=None, random_state=0), COUNTS, {}),
    "few words": (lambda: HDPTopicVB(proposals=None, random_state=0), FEW, {}),
    "documents": (lambda: HDPTopicVB(observation="gaussian", proposals=None), ROWS, GROUPS),
    "bounded": (lambda: MemoryBoundedTopicVB(500), ROWS, GROUPS),
}


def strided(x):
    out = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan)
    out[::2, 1::3] = x
    return out[::2, 1::3]


def read_only(x):
    out = x.astype(float)
    out.flags.writeable = False
    return out


def whole(x, dtype):
    """Counts in this type; other numbers as they are, in double precision."""
    return x.astype(dtype if x.dtype.kind == "i" else float)


FORMS = {
    "lists": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "half": lambda x: x.astype(np.float16),
    "single": lambda x: x.astype(np.float32),
    "long": lambda x: x.astype(np.longdouble),
    "other byte order": lambda x: x.astype(np.dtype(float).newbyteorder()),
    "single in other byte order": lambda x: x.astype(np.dtype(np.float32).newbyteorder()),
    "bytes": lambda x: whole(x, np.dtype(np.int8)),
    "integers in other byte order": lambda x: whole(x, np.dtype(np.int16).newbyteorder()),
    "columns": lambda x: np.asfortranarray(x.astype(float)),
    "gaps": strided,
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1].astype(float))[::-1, ::-1],
    "read only": read_only,
    "memory view": lambda x: memoryview(x.astype(float)),
}
SINGLE = ("half", "single", "single in other byte order")


@pytest.mark.quarter
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_the_same_model(name, form):
    make, rows, given = MODELS[name]
    x, double = FORMS[form](rows), rows.astype(float)
    close = {"rel": 1e-4, "abs": 1e-3} if form in SINGLE else {"rel": 1e-10}
    plain, found = make().fit(double, **given), make().fit(x, **given)
    assert found.n_components_ == plain.n_components_
    assert found.lower_bound_ == pytest.approx(plain.lower_bound_, **close)
    wanted = plain.transform(double, **given)
    np.testing.assert_allclose(found.transform(x, **given), wanted, atol=1e-4)
    assert found.score(x, **given) == pytest.approx(plain.score(double, **given), **close)
    assert found.partial_fit(x, **given).n_features_in_ == rows.shape[1]
    one = make().partial_fit(double, **given)
    if hasattr(one, "_learner_"):  # the same batch, by whatever numbers it is given
        again = one.partial_fit(x, **given)
        assert len(again._learner_.memo) == 1


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_other_libraries(name, monkeypatch):
    """They become NumPy's, even if scikit-learn is told to leave them as they are."""
    strict = pytest.importorskip("array_api_strict")
    pytest.importorskip("scipy", "1.14")  # scikit-learn dispatches with these alone
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    make, x, given = MODELS[name]
    x, weight = x.astype(float), np.repeat(np.arange(6.0), 10)
    other = {name: strict.asarray(value) for name, value in given.items()}
    model = make().fit(x, **given, sample_weight=weight)
    with config_context(array_api_dispatch=True):
        found = make().fit(strict.asarray(x), **other, sample_weight=strict.asarray(weight))
        assert found.lower_bound_ == model.lower_bound_
        resp = found.transform(strict.asarray(x), **other)
        assert found.score(strict.asarray(x), **other) == model.score(x, **given)
    np.testing.assert_array_equal(resp, model.transform(x, **given))


# Sums of these depend on the order in which they are added up; the last column is a sum of others.
_FINE = RNG.normal(np.repeat([-4.0, 0.0, 4.0], 20)[:, np.newaxis], [0.3, 1.0, 7.0], (60, 3))
FINE = np.column_stack([_FINE, _FINE.sum(axis=1)])
HOLES = np.where(RNG.random(FINE.shape) < 0.1, np.nan, FINE)
LAYOUTS = ("columns", "gaps", "backwards", "read only", "other byte order", "lists")

TO_THE_LAST_BIT = {
    "full": (lambda: DPMixtureVB(random_state=0), FINE, {}),
    "diag": (lambda: DPMixtureVB(observation=GaussianObservation("diag")), FINE, {}),
    "spherical": (lambda: DPMixtureVB(observation=GaussianObservation("spherical")), FINE, {}),
    "fixed": (lambda: DPMixtureVB(observation="fixed_variance_gaussian"), FINE, {}),
    "missing": (lambda: DPMixtureVB(random_state=0), HOLES, {}),
    "states": (lambda: HDPHMMVB(random_state=0), FINE, GROUPS),
    "autoregressive": (lambda: HDPHMMVB(observation="autoregressive"), FINE[:, :2], GROUPS),
    "documents": (lambda: HDPTopicVB(observation="gaussian", random_state=0), FINE, GROUPS),
    "bounded": (lambda: MemoryBoundedTopicVB(500), FINE, GROUPS),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TO_THE_LAST_BIT)
def test_layouts_change_no_bit(name):
    """A frame holds its columns one after another, and `to_numpy` may hold rows."""
    make, x, given = TO_THE_LAST_BIT[name]
    settings = {"proposals": None, "random_state": 0, "max_iter": 3}
    known = make().get_params()
    settings = {key: value for key, value in settings.items() if key in known}
    plain = make().set_params(**settings).fit(x, **given)
    scores = plain.score_samples(x, **given)
    for layout in LAYOUTS:
        other = FORMS[layout](x)
        found = make().set_params(**settings).fit(other, **given)
        assert found.lower_bound_ == plain.lower_bound_, layout
        np.testing.assert_array_equal(plain.score_samples(other, **given), scores, layout)
