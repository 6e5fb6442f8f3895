"""Batches of one stream or one fit of which some are sparse and others dense: the model is the same."""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.distributed.source import ChunkInfo, ChunkSource
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moment_sums import ColumnSizes, ColumnSums
from sklearn_bnp.inputs.moments import column_moments
from tests.estimators import FEW_PROPOSALS
from tests.inputs.test_sparse import rows

FORMS = {
    "sparse": (sparse.csr_array,),
    "sparse first": (sparse.csr_array, np.asarray),
    "dense first": (np.asarray, sparse.csr_array),
    "one dense": (sparse.csr_array, sparse.csr_array, np.asarray, sparse.csr_array),
}
N_BATCHES = 4


class Reference(NamedTuple):
    """A chunk of a list, with other arguments of `fit`."""

    batch_id: int
    x: object
    others: dict

    def load(self):
        """Arguments of `fit`."""
        return {"X": self.x, **self.others}


def batches(family, form):
    """Rows in batches of these forms by turns."""
    X, _ = rows(family, n=120, V=10, K=2)
    X = X[np.argsort(np.arange(len(X)) % N_BATCHES, kind="stable")]
    makers = FORMS[form] if form != "dense" else (np.asarray,)
    return [makers[i % len(makers)](x) for i, x in enumerate(np.split(X, N_BATCHES))]


MODELS = {
    "mixture, poisson": (DPMixtureVB, "poisson", None),
    "mixture, bernoulli": (DPMixtureVB, "bernoulli", None),
    "mixture, multinomial": (DPMixtureVB, "multinomial", None),
    "sequences": (HDPHMMVB, "poisson", None),
    "documents of rows": (HDPTopicVB, "poisson", np.repeat(np.arange(6), 5)),
    "documents of words": (HDPTopicVB, "multinomial", None),
}


def of(model):
    """An estimator, its family and other arguments of `fit` for each batch."""
    kind, family, groups = MODELS[model]
    others = [{} if groups is None else {"groups": groups + 6 * i} for i in range(N_BATCHES)]
    model = kind(observation=family, proposals=FEW_PROPOSALS, random_state=0)
    return model, family, others


def streamed(model, form):
    estimator, family, others = of(model)
    for i, (x, given) in enumerate(zip(batches(family, form), others, strict=True)):
        estimator.partial_fit(x, batch_id=i, **given)
    return estimator


# Slow are those of which others have the same code.
CASES = [
    pytest.param(model, form, marks=[pytest.mark.slow] if "multinomial" in model else [])
    for model in MODELS
    for form in ("sparse first", "dense first")
]


@cache
def dense_stream(model):
    return streamed(model, "dense")


@pytest.mark.extended
@pytest.mark.parametrize("model, form", CASES)
def test_streams(model, form):
    dense, found = dense_stream(model), streamed(model, form)
    assert found.n_components_ == dense.n_components_
    assert found.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-8)


def listed(model, form):
    """The estimator, fitted to a list of batches."""
    estimator, family, others = of(model)
    parts = zip(batches(family, form), others, strict=True)
    return estimator.fit([Reference(i, x, given) for i, (x, given) in enumerate(parts)])


@cache
def dense_list(model):
    return listed(model, "dense")


@pytest.mark.quarter
@pytest.mark.parametrize("model, form", CASES)
def test_lists_of_batches(model, form):
    found, dense = listed(model, form).lower_bound_, dense_list(model).lower_bound_
    assert found == pytest.approx(dense, rel=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_lists_of_batches_in_a_stream(model):
    """Each list is a batch; references bring groups and whatever else of their own."""
    bounds = []
    for form in ("dense", "dense first"):
        estimator, family, others = of(model)
        estimator.set_params(proposals=None)
        parts = zip(batches(family, form), others, strict=True)
        chunks = [Reference(i, x, given) for i, (x, given) in enumerate(parts)]
        for some in (chunks[:2], chunks[2:], chunks[:2]):
            estimator.partial_fit(some)
        bounds.append(estimator.lower_bound_)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-10)


def test_streams_of_words_and_of_rows():
    words, family, _ = of("documents of words")
    chunks = [Reference(i, x, {}) for i, x in enumerate(batches(family, "sparse"))]
    with_groups = [chunks[2]._replace(others={"groups": np.zeros(30)})]
    with pytest.raises(ValueError, match="the model was fitted without groups"):
        words.partial_fit(chunks[:2]).partial_fit(with_groups)
    with pytest.raises(ValueError, match="the model was fitted with groups"):
        words.fit(with_groups).partial_fit(chunks[:1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(form, weighted):
    """Moments of all rows are found from sums over parts of either form."""
    parts = batches("poisson", form)
    weight = np.linspace(0.5, 2.0, parts[0].shape[0]) if weighted else None
    parts = [Batch(i, x, weight) for i, x in enumerate(parts)]
    dense = [b._replace(x=x) for b, x in zip(parts, batches("poisson", "dense"), strict=True)]
    sizes = [ColumnSizes.of(part) for part in parts]
    whole = sizes[0].added(sizes[1]).added(sizes[2]).added(sizes[3])
    shift = whole.center / whole.units
    sums_of = partial(
        ColumnSums.of, units=whole.units, shift=shift, missing=False, covariance=False
    )
    first, *others = [sums_of(part) for part in parts]
    for other in others:
        first = first.added(other)
    found, expected = first.moments(whole, shift), column_moments(dense, covariance=False)
    assert_allclose(found.mean, expected.mean, rtol=1e-13)
    assert_allclose(found.variance, expected.variance, rtol=1e-12)


def test_numbers_that_rows_are_held_in():
    """Of chunks of both forms it is the mean, so that samples are no smaller than they have to be."""

    class Place:
        groups = ()

    infos = [ChunkInfo(10, 10.0, 10, None, None), None, ChunkInfo(30, 30.0, 30, None, 45)]
    assert ChunkSource(Place, infos, 100).values_per_row == (10 * 100 + 30 + 2 * 45) // 40
    assert ChunkSource(Place, infos[:2], 100).values_per_row is None
    assert ChunkSource(Place, infos[1:], 100).values_per_row == 4
