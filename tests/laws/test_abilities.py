"""What a likelihood declares that it can do, it can do."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import Likelihood
from sklearn_bnp.engine.affinity import union_evidence
from sklearn_bnp.splits.restricted_mixture import most_collapsed

from .harness import given, random_resp


@pytest.fixture
def posterior(family):
    """A `Given` with four components."""
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 40, spread=2.0)
    return given(family, X, random_resp(rng, 40, 4))


def test_unions_are_sums(posterior):
    """Whether the family has a faster way or not; sums of large terms cancel to 1e-9."""
    likelihood, prior, s = posterior.model.likelihood, posterior.model.prior, posterior.s
    i, j = np.triu_indices(len(s), 1)
    found = union_evidence(likelihood, prior, s, i, j)
    assert_allclose(found, likelihood.evidence(prior, s[i] + s[j]), rtol=1e-9)
    assert union_evidence(likelihood, prior, s, i[:0], j[:0]).shape == (0,)


def test_missing_entries_may_come_later(posterior):
    """The family for incomplete rows says the same of complete ones."""
    own, prior, s = posterior.model.likelihood, posterior.model.prior, posterior.s
    assert (
        own.has_missing or own.allows_missing or not posterior.estimator.observation.allows_missing
    )
    if own.has_missing or not own.allows_missing:
        pytest.skip("the family has no other one for incomplete rows")
    other = own.with_missing()
    assert other.has_missing
    assert all(a is b for a, b in zip(other.prior, own.prior, strict=True))
    lifted = other.from_complete(s)
    assert lifted.shape == (len(s), other.n_statistics)
    assert_array_equal(lifted[:, -1], s[:, -1])
    assert_allclose(other.evidence(prior, lifted), own.evidence(prior, s), rtol=1e-9)
    density = other.log_predictive(prior, lifted, posterior.z)
    assert_allclose(density, own.log_predictive(prior, s, posterior.z), rtol=1e-7, atol=1e-7)


def test_imputed_rows_are_complete(posterior):
    likelihood, prior, s = posterior.model.likelihood, posterior.model.prior, posterior.s
    if not likelihood.has_missing:
        pytest.skip("rows of this family are complete")
    rows = likelihood.imputed(prior, s[0], posterior.z)
    seen = ~np.isnan(posterior.z)
    assert np.isfinite(rows).all()
    assert_array_equal(rows[seen], posterior.z[seen])


def test_scales_are_declared_for_each_column(posterior):
    likelihood = posterior.model.likelihood
    standardised = np.broadcast_to(likelihood.standardised, likelihood.n_features)
    z = posterior.z[:, standardised]
    assert np.nanmax(np.abs(z), initial=0.0) < 1e4  # rows of the data are not far out


def test_tables_of_words(posterior):
    likelihood, prior, s = posterior.model.likelihood, posterior.model.prior, posterior.s
    if not likelihood.words:
        pytest.skip("entries of documents are rows")
    coef = likelihood.coefficients(prior, s)
    assert_allclose(likelihood.word_table(prior, s), np.exp(coef[:, :-1].T), rtol=1e-12)


def test_who_leaves_rows_out(posterior):
    """Whoever imputes says so only with densities of its own: differences of its evidence are none."""
    likelihood = posterior.model.likelihood
    if likelihood.imputes and likelihood.leaves_out:
        own = type(likelihood).log_predictive_without
        assert own is not Likelihood.log_predictive_without

    class Imputing(type(likelihood)):
        imputes, leaves_out = True, Likelihood.leaves_out

    class Slow(type(likelihood)):
        leaves_out = False

    other = copy(likelihood)
    for other.__class__ in (Imputing, Slow):
        assert not other.leaves_out
        assert most_collapsed(other, posterior.z) == 0
