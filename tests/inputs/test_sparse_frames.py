"""Frames of pandas whose columns are sparse: rows as a sparse matrix, or an error with the remedy."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from tests.inputs.test_sparse import rows

pd = pytest.importorskip("pandas")

X = rows("poisson", n=40, V=4)[0]
GROUPS = np.arange(40) // 10
SETTINGS = {"proposals": None, "random_state": 0}
COUNTS = {
    "mixture": (DPMixtureVB(observation="poisson", **SETTINGS), {}),
    "sequences": (HDPHMMVB(observation="poisson", **SETTINGS), {}),
    "documents of rows": (HDPTopicVB(observation="poisson", **SETTINGS), {"groups": GROUPS}),
    "documents of words": (HDPTopicVB(**SETTINGS), {}),
}
DENSE = {
    "mixture": (DPMixtureVB(**SETTINGS), {}),
    "categories": (DPMixtureVB(observation="categorical", **SETTINGS), {}),
    "sequences": (HDPHMMVB(**SETTINGS), {}),
    "documents": (HDPTopicVB(observation="gaussian", **SETTINGS), {"groups": GROUPS}),
    "memory-bounded": (MemoryBoundedTopicVB(), {"groups": GROUPS}),
    "memory-bounded, counts": (MemoryBoundedTopicVB(observation="poisson"), {"groups": GROUPS}),
}


def frame(values=X):
    return pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(values), columns=list("abcd"))


@pytest.mark.parametrize("case", COUNTS)
def test_counts_are_those_of_the_sparse_matrix(case):
    model, given = COUNTS[case]
    bound = model.fit(sparse.csr_array(X), **given).lower_bound_
    assert model.fit(frame(), **given).lower_bound_ == bound
    assert list(model.feature_names_in_) == list("abcd")
    assert model.transform(frame(), **given).shape[1] == 1


@pytest.mark.parametrize("case", DENSE)
def test_other_families_say_what_to_do(case):
    model, given = DENSE[case]
    with pytest.raises(TypeError, match=r"X is sparse.*X\.sparse\.to_dense\(\)"):
        model.fit(frame(), **given)
    assert model.fit(frame().sparse.to_dense(), **given).n_features_in_ == 4


def test_sequences_in_a_list():
    model = COUNTS["sequences"][0]
    bound = model.fit([X, X]).lower_bound_
    assert model.fit([frame(), frame()]).lower_bound_ == pytest.approx(bound, rel=1e-12)
    with pytest.raises(TypeError, match=r"X\.sparse\.to_dense\(\)"):
        DENSE["sequences"][0].fit([frame(), frame()])


@pytest.mark.parametrize("case", COUNTS)
@pytest.mark.parametrize("fill", [1, np.nan])
def test_what_is_not_stored_must_be_zero(case, fill):
    model, given = COUNTS[case]
    other = pd.DataFrame(X, columns=list("abcd")).astype(pd.SparseDtype(float, fill))
    with pytest.raises(ValueError, match=r"Column 'a' of X .*must be 0.*X\.sparse\.to_dense\(\)"):
        model.fit(other, **given)


def test_missing_values():
    values = X.astype(float)
    values[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 2 and is sparse.*X\.sparse\.to_dense\(\)"):
        COUNTS["mixture"][0].fit(frame(values))
