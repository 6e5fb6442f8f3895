"""Every sparse format of SciPy, wherever rows may be given; one of them is a dict."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.inputs.test_sparse import rows

FORMATS = ["bsr_array", "coo_array", "dia_array", "dok_array", "dok_matrix", "lil_array"]


class Reference(NamedTuple):
    """A chunk of a list; what it loads is X, or a dict of arguments."""

    batch_id: int
    value: object

    def load(self):
        """X, or arguments of `fit`."""
        return self.value


ESTIMATORS = {
    "mixture": (DPMixtureVB, {"observation": "poisson"}, {}),
    "sequences": (HDPHMMVB, {"observation": "poisson"}, {}),
    "words": (HDPTopicVB, {}, {}),
    "documents of rows": (HDPTopicVB, {"observation": "poisson"}, {"groups": np.arange(40) // 10}),
}


def of(case):
    """An estimator, rows and other arguments of `fit`."""
    estimator, settings, given = ESTIMATORS[case]
    return (
        estimator(proposals=None, random_state=0, **settings),
        rows("poisson", n=40, V=6)[0],
        given,
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", ESTIMATORS)
def test_formats(case, form):
    model, X, given = of(case)
    x = getattr(sparse, form)(X)
    bound, features = model.fit(X, **given).lower_bound_, model.transform(X, **given)
    assert model.fit(x, **given).lower_bound_ == pytest.approx(bound, rel=1e-12)
    assert_allclose(model.transform(x, **given), features, rtol=1e-10)
    assert model.partial_fit(x, **given).n_features_in_ == 6


def in_parts(x, form, dtype):
    """A sparse matrix of this format, in which each entry is the sum of 100 of a small type."""
    x = sparse.coo_array(np.asarray(x))
    row, col = (np.repeat(axis, 100) for axis in (x.row, x.col))
    data = np.repeat(x.data, 100).astype(dtype)
    if form == "coo":
        return sparse.coo_array((data, (row, col)), shape=x.shape)
    if form == "csc":
        row, col = col, row
    order = np.argsort(row, kind="stable")
    sizes = x.shape if form != "csc" else x.shape[::-1]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=sizes[0]))])
    if form == "bsr":
        return sparse.bsr_array((data[order].reshape(-1, 1, 1), col[order], ends), shape=x.shape)
    kind = {"csr": sparse.csr_array, "csc": sparse.csc_array}[form]
    return kind((data[order], col[order], ends), shape=x.shape)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("case", ESTIMATORS)
def test_sums_of_small_integers_do_not_overflow(case, form, dtype):
    """Formats that SciPy adds up on the way to CSR, and those that it does not, are the same numbers."""
    model, X, given = of(case)
    x = in_parts(X, form, dtype)
    bound = model.fit(100.0 * X, **given).lower_bound_
    assert model.fit(x, **given).lower_bound_ == pytest.approx(bound, rel=1e-12)
    if case == "sequences":
        model.fit([x, x])
        assert model.lower_bound_ == pytest.approx(model.fit([100.0 * X] * 2).lower_bound_)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", ESTIMATORS)
def test_chunks(case, form):
    """What a reference loads is rows, or a dict with rows in it."""
    model, X, given = of(case)
    halves = [getattr(sparse, form)(X), X]
    plain = model.fit([Reference(i, {"X": X, **given}) for i in range(2)]).lower_bound_
    chunks = [Reference(i, {"X": x, **given}) for i, x in enumerate(halves)]
    assert model.fit(chunks).lower_bound_ == pytest.approx(plain, rel=1e-12)
    chunks = [Reference(i, x) for i, x in enumerate(halves)]
    beside = {name: [value, value + 10] for name, value in given.items()}
    assert model.fit(chunks, **beside).lower_bound_ == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("form", FORMATS)
def test_lists_of_sequences(form):
    model, X, _ = of("sequences")
    x = getattr(sparse, form)(X)
    bound = model.fit([X, X]).lower_bound_
    assert model.fit([x, x]).lower_bound_ == pytest.approx(bound, rel=1e-12)
    assert_array_equal(model.predict([x, X])[0], model.predict(X))


def test_predictions_for_chunks():
    dask = pytest.importorskip("dask")
    model, X, _ = of("mixture")
    x = sparse.dok_matrix(X)
    model.fit(X)
    chunks = [Reference(0, x), Reference(1, {"X": x})]
    delayed = [dask.delayed(sparse.dok_matrix)(X), dask.delayed(dict)(X=x)]
    for found in dask.compute(*model.score_samples(chunks), *model.score_samples(delayed)):
        assert_allclose(found, model.score_samples(X), rtol=1e-10)
    assert model.score(chunks) == pytest.approx(model.score(X))
