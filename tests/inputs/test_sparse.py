"""CSR rows in the estimators: every form of them, nothing made dense, clear errors."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.estimators import FEW_PROPOSALS

FAMILIES = ["bernoulli", "multinomial", "poisson", "negative_binomial"]


def rows(family, n=240, V=20, K=3, seed=0):
    """Rows of K kinds, in runs of one kind, each of which has its own columns; and the kinds."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.permutation(np.arange(n // 20) % K), 20)
    rates = np.where(np.arange(V) % K == np.arange(K)[:, np.newaxis], 3.0, 0.1)
    X = rng.poisson(rates[labels])
    return (X > 0).astype(int) if family == "bernoulli" else X, labels


def mixture(family, proposals=FEW_PROPOSALS, **settings):
    return DPMixtureVB(observation=family, proposals=proposals, random_state=0, **settings)


# ---------------------------------------------------------------------- forms of sparse data


def duplicated(X):
    """CSR whose every entry comes in two parts, out of order, with zeros in between."""
    row, column = np.nonzero(X)
    value = X[row, column]
    zeros = np.zeros_like(value)
    data = np.concatenate([value - 1, zeros, np.ones_like(value)])
    order = np.argsort(np.tile(row, 3), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(3 * np.bincount(row, minlength=len(X)))])
    return sparse.csr_array((data[order], np.tile(column, 3)[order], indptr), shape=X.shape)


def with_long_indices(X):
    out = sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def read_only(X):
    out = sparse.csr_array(X)
    for array in (out.data, out.indices, out.indptr):
        array.flags.writeable = False
    return out


def backwards(X):
    """CSR with the entries of each row from the last to the first."""
    out = sparse.csr_array(X[:, ::-1])
    return sparse.csr_array((out.data, X.shape[1] - 1 - out.indices, out.indptr), shape=X.shape)


FORMS = {
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "duplicates and zeros": duplicated,
    "long indices": with_long_indices,
    "read-only": read_only,
    "backwards": backwards,
    "float64": lambda X: sparse.csr_array(X.astype(float)),
    "float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "uint8": lambda X: sparse.csr_array(X.astype(np.uint8)),
}


@cache
def dense_mixture():
    return mixture("poisson", n_batches=2).fit(rows("poisson")[0])


# Slow are those that are converted by the same code as others.
@pytest.mark.quarter
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(
            form, marks=[pytest.mark.slow] if form in ("csc_array", "coo_matrix", "uint8") else []
        )
        for form in FORMS
    ],
)
def test_forms(form):
    X, labels = rows("poisson")
    given, dense = FORMS[form](X), dense_mixture()
    before = [a.copy() for a in vars(given).values() if isinstance(a, np.ndarray)]
    model = mixture("poisson", n_batches=2).fit(given)
    # single precision: of some hundred rows, each with an error of 1e-7
    assert model.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    assert_array_equal(model.predict(given), dense.predict(X))
    assert adjusted_rand_score(labels, model.predict(given)) == 1.0
    assert_allclose(model.score_samples(given), dense.score_samples(X), rtol=1e-5)
    after = [a for a in vars(given).values() if isinstance(a, np.ndarray)]
    for a, b in zip(after, before, strict=True):
        assert_array_equal(a, b)


def test_booleans():
    X, _ = rows("bernoulli")
    dense, model = mixture("bernoulli").fit(X), mixture("bernoulli").fit(sparse.csr_array(X > 0))
    assert model.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-12)


def test_sums_of_duplicates_do_not_overflow():
    """Small numbers whose sum is not one."""
    X = np.full((4, 2), 300)
    data, columns = np.full(16, 150, np.uint8), np.tile([0, 1, 0, 1], 4)
    halves = sparse.csr_array((data, columns, np.arange(0, 17, 4)), shape=X.shape)
    kept = halves.copy()
    means = mixture("poisson").fit(halves).means_
    assert_allclose(means, mixture("poisson").fit(X).means_, rtol=1e-12)
    assert_array_equal(halves.data, kept.data)


# ---------------------------------------------------------------------- mixtures


@pytest.mark.extended
@pytest.mark.parametrize("family", FAMILIES)
def test_streams(family):
    """Batches of a stream, and visits to them again, sparse or dense by turns."""
    X, labels = rows(family)
    X = X[np.random.default_rng(1).permutation(len(X))]
    dense, model = mixture(family), mixture(family)
    for epoch in range(2):
        for i, batch in enumerate(np.array_split(X, 3)):
            dense.partial_fit(batch, batch_id=i)
            model.partial_fit(sparse.csr_array(batch) if (epoch + i) % 2 else batch, batch_id=i)
    assert model.n_components_ == len(set(labels))
    assert model.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-10)


@pytest.mark.extended
def test_a_batch_is_known_by_its_content():
    X, _ = rows("poisson")
    model = mixture("poisson")
    for same in (sparse.csr_array(X), sparse.csr_matrix(X), backwards(X), with_long_indices(X)):
        assert model.partial_fit(same)._learner_.totals.n.sum() == pytest.approx(len(X))
    model.partial_fit(sparse.csr_array(X[::-1]))
    assert model._learner_.totals.n.sum() == pytest.approx(2 * len(X))


@pytest.mark.quarter
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_made_dense(family, monkeypatch):
    """Rows of many columns: a table of them all would be refused here."""
    X, labels = rows(family)
    V = 3_000
    X = sparse.csr_array(sparse.hstack([X, sparse.csr_array((len(X), V - X.shape[1]), dtype=int)]))
    made = sparse.csr_array.toarray

    def toarray(self, *args, **kwargs):
        assert np.prod(self.shape) < 0.1 * len(labels) * V
        return made(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", toarray)
    monkeypatch.setattr(sparse.csr_array, "todense", toarray)
    model = mixture(family, DPMixtureVB().proposals, n_components=4, tol=10.0).fit(X)
    assert model.predict_proba(X).shape == (len(labels), model.n_components_)
    assert np.all(np.isfinite(model.score_samples(X)))
    model.partial_fit(X[:50])


def test_responsibilities_and_warm_start():
    X, labels = rows("multinomial")
    S, resp = sparse.csr_array(X), np.eye(3)[labels]
    steps = [mixture("multinomial", init_params=resp, max_iter=0).fit(x) for x in (X, S)]
    assert steps[1].lower_bound_ == pytest.approx(steps[0].lower_bound_, rel=1e-12)
    model = mixture("multinomial", warm_start=True, tol=1.0).fit(S)
    assert model.fit(S).n_components_ == 3
    means = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    seeded = mixture("multinomial", n_components=3, means_init=means, proposals=None).fit(S)
    assert adjusted_rand_score(labels, seeded.predict(S)) == 1.0


# ---------------------------------------------------------------------- sequences and documents


LENGTHS = [80, 100, 60]


def ways(X):
    """The sequences of sparse rows, and keyword arguments, in each way that they may be passed."""
    S, ends = sparse.csr_matrix(X), np.cumsum(LENGTHS)
    pieces = [S[end - n : end] for n, end in zip(LENGTHS, ends, strict=True)]
    yield from [
        (S, {"lengths": LENGTHS}),
        (S, {"groups": np.repeat([2, 0, 1], LENGTHS)}),
        (pieces, {}),
    ]


@pytest.mark.quarter
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("settings", [{}, {"low_memory": True}], ids=str)
def test_sequences(family, settings):
    """From one start, sparse and dense rows lead to the same parameters."""
    X, labels = rows(family)
    model = HDPHMMVB(
        observation=family, init_params=0.7 * np.eye(3)[labels] + 0.1, proposals=("merge", "delete"),
        random_state=0, **settings,
    )  # fmt: skip
    dense = model.fit(X, lengths=LENGTHS).lower_bound_
    score, log_prob = model.score(X, lengths=LENGTHS), model.decode(X, lengths=LENGTHS)[0]
    for x, how in ways(X):
        assert model.fit(x, **how).lower_bound_ == pytest.approx(dense, rel=1e-12)
        assert model.score(x, **how) == pytest.approx(score, rel=1e-10)
        assert model.decode(x, **how)[0] == pytest.approx(log_prob, rel=1e-10)


@pytest.mark.extended
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_components", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_states_that_are_found_in_sequences(family, n_components):
    """Sparse rows lead to the same states, in any order.

    Candidates of a birth often have the same states in another order. Rounding then decides between
    them, and the bound depends a little on the order.
    """
    X, labels = rows(family)
    model = HDPHMMVB(n_components, observation=family, random_state=0)
    dense = np.sort(model.fit(X, lengths=LENGTHS).means_, axis=0)
    for x, how in ways(X):
        assert_allclose(np.sort(model.fit(x, **how).means_, axis=0), dense, rtol=1e-6)
        found = model.predict(x, **how)
        found = np.concatenate(found) if isinstance(found, list) else found
        assert adjusted_rand_score(labels, found) > 0.95
        assert model.score(x, **how) == pytest.approx(model.score(X, lengths=LENGTHS), rel=1e-13)
    proba, message = model.predict_next(sparse.csr_matrix(X[:30]))
    assert proba.argmax() == model.predict_next(X[30:31], message)[0].argmax()


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_of_rows(family):
    X, _ = rows(family)
    groups = np.random.default_rng(0).integers(12, size=len(X))
    model = HDPTopicVB(observation=family, proposals=FEW_PROPOSALS, random_state=0)
    dense = clone(model).fit(X, groups=groups)
    model.fit(sparse.csr_array(X), groups=groups)
    assert model.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-10)
    found = model.transform(sparse.csr_array(X), groups=groups)
    assert_allclose(found, dense.transform(X, groups=groups), rtol=1e-8)
    assert_allclose(
        model.score(sparse.csr_array(X), groups=groups), dense.score(X, groups=groups), rtol=1e-9
    )


# ---------------------------------------------------------------------- errors and tags

DENSE_FAMILIES = ["gaussian", "fixed_variance_gaussian", "autoregressive"]


@pytest.mark.parametrize("observation", DENSE_FAMILIES)
def test_other_families_say_what_to_do(observation):
    S = sparse.csr_array(rows("poisson")[0].astype(float))
    estimators = [(HDPHMMVB, S, {}), (HDPHMMVB, [S, S], {})]
    if observation != "autoregressive":
        groups = np.zeros(S.shape[0])
        estimators += [(DPMixtureVB, S, {}), (HDPTopicVB, S, {"groups": groups})]
    for estimator, x, how in estimators:
        with pytest.raises(TypeError, match=r"X is sparse.*X\.toarray\(\).*'bernoulli'"):
            estimator(observation=observation).fit(x, **how)


def test_a_fitted_gaussian_says_so_as_well():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(TypeError, match="X is sparse"):
        DPMixtureVB().fit(X).predict(sparse.csr_array(X))


@pytest.mark.parametrize("value, family, words", [
    (-2.0, "poisson", "X holds -2, but observation='poisson'"),
    (0.5, "multinomial", "X holds 0.5, but observation='multinomial'"),
    (2.0, "bernoulli", "X holds 2, but observation='bernoulli'"),
    (np.nan, "poisson", "NaN"),
    (np.inf, "multinomial", "infinity"),
    (1e200, "poisson", "Rescale X"),
    (1j, "poisson", "[Cc]omplex"),
])  # fmt: skip
def test_bad_values(value, family, words):
    X, _ = rows(family)
    bad = X.astype(type(value))
    bad[100, 3] = value
    with pytest.raises(ValueError, match=words):
        mixture(family).fit(sparse.csr_array(bad))
    model = mixture(family, tol=1.0).fit(X)
    with pytest.raises(ValueError, match=words):
        model.score_samples(sparse.csr_array(bad))
    with pytest.raises(ValueError, match="features"):
        model.predict(sparse.csr_array(X[:, :-1]))


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB, HDPTopicVB])
def test_tags(estimator):
    for family in FAMILIES:
        assert estimator(observation=family).__sklearn_tags__().input_tags.sparse
    for family in (*DENSE_FAMILIES, "unknown"):
        assert not estimator(observation=family).__sklearn_tags__().input_tags.sparse
