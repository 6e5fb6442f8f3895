"""Births where rows are wide: a component of many statistics pays only with many rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import Birth, DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.mixture import birth as births
from tests.laws.harness import quiet_fit


def shifted(n_rows, n_features, n_clusters, seed=0, share=0.05, shift=1.5):
    """Clusters that differ in a few of many columns, each by little."""
    rng = np.random.default_rng(seed)
    means = np.where(rng.random((n_clusters, n_features)) < share, shift, 0.0)
    labels = rng.integers(n_clusters, size=n_rows)
    return (means[labels] + rng.normal(size=(n_rows, n_features))).astype(np.float32), labels


@pytest.mark.extended
def test_clusters_in_hundreds_of_columns():
    """The usual sample shows one of 80 rows, of which none would pay for itself."""
    X, labels = shifted(8000, 300, 30)
    observation, proposals = GaussianObservation("diag"), ("birth", "merge", "delete")
    model = DPMixtureVB(observation=observation, proposals=proposals, random_state=0).fit(X)
    truth = np.eye(30)[labels]
    best = DPMixtureVB(observation=observation, init_params=truth, proposals=None)
    one = DPMixtureVB(observation=observation, proposals=None).fit(X).lower_bound_
    gained = (model.lower_bound_ - one) / (quiet_fit(best, X).lower_bound_ - one)
    assert gained > 0.9 and adjusted_rand_score(labels, model.labels_) > 0.8


def test_samples_grow_only_where_more_rows_may_tell_more():
    birth, many = Birth(), 601
    birth.reset()
    usual = birth.sample_rows(many)
    birth.last_resort()
    assert birth.sample_rows(many) == usual  # nothing has failed
    birth._in_few = frozenset({3})
    birth._failures.note(3, 9000.0, birth.patience)
    birth._failures.note(4, 50.0, birth.patience)
    totals = StatBag(np.array([3, 4]), np.full((2, 2), [[1.0, 9000.0], [1.0, 50.0]]), np.zeros(2))
    totals.s[1, -1] = 50.0
    assert birth.wants(totals) == []
    birth.last_resort()
    assert birth.sample_rows(many) == 40 * many and birth.wants(totals) == [3]
    assert birth.sample_rows(31) == 31_000  # where ones are rare, most rows say little
    assert birth.sample_rows(6) == 10_000  # ten thousand rows tell all about six numbers
    given = Birth(max_rows=500)
    given.reset()
    given._in_few = frozenset({3})
    given.last_resort()
    assert given.sample_rows(many) == 500


@pytest.mark.extended
@pytest.mark.parametrize(
    ("n_rows", "grows"), [(2500, False), pytest.param(9000, True, marks=pytest.mark.slow)]
)
def test_what_failed_in_few_rows_is_remembered(n_rows, grows, monkeypatch):
    """Of single Gaussians: only where there are twice as many rows as the sample had."""
    X = np.random.default_rng(0).normal(size=(n_rows, 300)).astype(np.float32)
    looked_at, create = [], births.create

    def noted(*args, n_rows, **given):
        looked_at.append(n_rows)
        return create(*args, n_rows=n_rows, **given)

    monkeypatch.setattr(births, "create", noted)
    model = DPMixtureVB(
        observation=GaussianObservation("diag"), proposals=("birth",), random_state=0
    )
    assert model.fit(X).n_components_ == 1
    assert (max(looked_at) > min(looked_at)) == grows


@pytest.mark.slow
def test_dense_rows_as_sparse_ones():
    """Samples hold as many rows of wide tables, whatever they are stored in."""
    rng = np.random.default_rng(0)
    words, labels = rng.dirichlet(np.full(6000, 0.02), size=8), rng.integers(8, size=2500)
    X = np.zeros((2500, 6000), dtype=np.float32)
    for row, k in zip(X, labels.tolist(), strict=True):
        row[rng.choice(6000, size=60, p=words[k])] = 1.0
    dense, thin = (
        DPMixtureVB(observation="bernoulli", random_state=0).fit(x)
        for x in (X, sparse.csr_array(X))
    )
    assert dense.n_components_ == thin.n_components_ > 1
    assert dense.lower_bound_ == pytest.approx(thin.lower_bound_, rel=1e-6)
