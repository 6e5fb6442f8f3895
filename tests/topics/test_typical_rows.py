"""`inverse_transform` of rows of data: means, and the most probable categories as they were given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import ColumnObservation, HDPTopicVB
from sklearn_bnp.likelihood.categorical import CodedCategories

KIND = np.repeat([0, 1], 30)
GROUPS = np.arange(60) // 6
CODES = np.array([[3, 0, 2], [7, 1, 0]])[KIND]
WIDTH = 10.0 * KIND + np.random.default_rng(0).normal(size=60)
# The topic of nearly all of a document, and an even share of both.
SHARES = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])


def fitted(observation, X):
    model = HDPTopicVB(
        2, observation=observation, proposals=None, init_params=np.eye(2)[KIND], max_iter=0
    )
    return model.fit(X, groups=GROUPS)


@pytest.mark.parametrize("few", [32, 1], ids=["few", "many"])
def test_codes(few, monkeypatch):
    monkeypatch.setattr("sklearn_bnp.likelihood.categorical._FEW", few)
    model = fitted("categorical", CODES)
    coded = isinstance(model._model.likelihood, CodedCategories)
    assert coded == (few == 1)
    found = model.inverse_transform(SHARES)
    assert_array_equal(found[:2], [[3, 0, 2], [7, 1, 0]])
    p = np.einsum("nk,kdv->ndv", SHARES, model.probabilities_)
    assert_array_equal(found, p.argmax(axis=2))


def test_means():
    model = fitted("gaussian", WIDTH[:, np.newaxis])
    assert_allclose(model.inverse_transform(SHARES), SHARES @ model.means_)
    with pytest.raises(ValueError, match=r"n_tokens=3 is for documents of words.*Leave n_tokens"):
        model.inverse_transform(SHARES, n_tokens=3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_of_a_frame(library):
    frames = pytest.importorskip(library)
    colour, number = np.array(["red", "blue"])[KIND].tolist(), CODES[:, 0].tolist()
    frame = frames.DataFrame({"number": number, "colour": colour})
    found = fitted("categorical", frame).inverse_transform(SHARES)
    assert found[:2].tolist() == [[3, "red"], [7, "blue"]]


def test_columns_of_several_kinds():
    pd = pytest.importorskip("pandas")
    size = pd.Categorical(np.array(["large", "small"])[KIND], categories=["small", "mid", "large"])
    frame = pd.DataFrame({"note": ["a"] * 60, "size": size, "width": WIDTH})
    observation = ColumnObservation(
        [("kind", "categorical", ["size"]), ("measure", "gaussian", ["width"])]
    )
    model = fitted(observation, frame)
    found = model.inverse_transform(model.transform(frame, groups=GROUPS)[::6])
    assert np.isnan(found[:, 0].astype(float)).all()
    assert found[:, 1].tolist() == ["large"] * 5 + ["small"] * 5
    assert_allclose(
        model.inverse_transform(SHARES)[:, 2].astype(float), SHARES @ model.means_[:, 2]
    )
