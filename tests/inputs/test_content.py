"""Names of batches by their content: they depend on the values of rows, and on nothing else."""

import hashlib

import numpy as np
import pytest
from scipy import sparse

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.hmm.batch import SequenceBatch
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.content_hashes import add_rows
from sklearn_bnp.inputs.rows import canonical
from sklearn_bnp.topics.batch import DocumentBatch
from tests.inputs.test_sparse import backwards, duplicated, rows, with_long_indices

FORMS = {
    "int64": np.asarray,
    "uint8": lambda X: X.astype(np.uint8),
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X.astype(np.float64),
    "in columns": np.asfortranarray,
    "every second": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
    "csr of float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csc": sparse.csc_array,
    "duplicates and zeros": duplicated,
    "long indices": with_long_indices,
    "backwards": backwards,
}


def name(x):
    digest = hashlib.blake2b(digest_size=16)
    add_rows(digest, canonical(sparse.csr_array(x)) if sparse.issparse(x) else x)
    return digest.hexdigest()


@pytest.mark.parametrize("n_zeros", [0, 2, 5], ids="{} columns of zeros".format)
@pytest.mark.parametrize("n", [1, 30, 5000])
def test_the_form_does_not_matter(n_zeros, n):
    X = np.random.default_rng(n).integers(1, 10, size=(n, 6))
    X[:, :n_zeros] = 0
    assert len({name(form(X)) for form in FORMS.values()}) == 1
    other = X.copy()
    other[-1, -1] += 1
    assert name(other) != name(X) != name(X[:, ::-1])
    assert name(np.zeros((2, 3))) != name(np.zeros((3, 2)))


def test_zeros_and_missing_values_are_the_same():
    X = np.random.default_rng(0).normal(size=(10, 3))
    X[0, 0], X[1, 1] = 0.0, np.nan
    other = X.copy()
    other[0, 0], other[1, 1] = -0.0, -np.nan
    assert name(X) == name(other) == name(np.ma.masked_invalid(other).filled(np.nan))
    assert np.signbit(other[0, 0])  # the user's rows stay as they are


def test_rows_of_doubles_are_named_by_their_bytes():
    """Streams that were saved know their batches by these names."""
    X = np.random.default_rng(0).normal(size=(5000, 3))
    indptr = np.array([0, 5000])
    header = b"(5000, 3) float64"
    for batch, before in [
        (Batch(None, X), b""),
        (SequenceBatch(None, X, indptr), b"(2,) int64" + indptr.tobytes()),
        (DocumentBatch(None, indptr, x=X), b"(2,) int64" + indptr.tobytes()),
    ]:
        expected = hashlib.blake2b(before + header + X.tobytes(), digest_size=16).hexdigest()
        assert batch.content_hash() == expected


@pytest.mark.parametrize(
    "estimator, groups",
    [(DPMixtureVB, None), (HDPHMMVB, None), (HDPTopicVB, np.arange(60) // 10), (HDPTopicVB, None)],
    ids=["mixture", "sequences", "documents of rows", "documents of words"],
)
def test_a_batch_that_comes_again_counts_once(estimator, groups):
    X, _ = rows("poisson", n=60, V=10, K=2)
    given = {} if groups is None else {"groups": groups}
    family = "poisson" if given or estimator is not HDPTopicVB else "multinomial"
    model = estimator(observation=family, proposals=None, random_state=0)
    model.partial_fit(X, **given)
    total = model._learner_.totals.n.sum()
    for form in FORMS.values():
        model.partial_fit(form(X), **given)
        assert model._learner_.totals.n.sum() == pytest.approx(total)
    model.partial_fit(X, sample_weight=np.ones(len(X)), **given)
    assert model._learner_.totals.n.sum() == pytest.approx(total)
    model.partial_fit(X[::-1], **given)
    assert model._learner_.totals.n.sum() == pytest.approx(2 * total)
