"""Deletes: what absorbers are expected to hold, from samples, is what they would hold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import Delete, DPMixtureVB, GaussianObservation, Merge
from sklearn_bnp.engine.samples import Sample, UniformSample
from sklearn_bnp.mixture.delete import _Absorption
from tests.reference import mixtures

from .harness import given, random_resp

ABSORBERS = np.array([0, 1, 3])


def absorption(family, rows=slice(None)):
    """Component 2 of four is to be absorbed by the others; ``rows`` are the uniform sample."""
    rng = np.random.default_rng(0)
    X, _ = family.rows(rng, 200)
    here = given(family, X, random_resp(rng, 200, 4, concentration=2.0))
    sample = Sample(here.z, here.resp[:, 2].astype(float), None)
    uniform = UniformSample(
        np.ascontiguousarray(here.z[rows]),
        np.ascontiguousarray(here.resp[rows], dtype=here.z.dtype),
    )
    return _Absorption(here.model, here.totals, 2, ABSORBERS, sample, uniform), here


def test_samples_of_everything_are_exact(family):
    moved, here = absorption(family)
    s, _ = moved.step(moved.start)
    share, _ = mixtures.responsibilities(here.features @ moved.coefficients(moved.start).T)
    expected = share.T @ here.features
    assert_allclose(s, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_no_row_is_lost(family):
    """From a part of the rows: what one absorber gains of the others' rows, these lose."""
    moved, here = absorption(family, slice(0, 200, 3))
    expected = here.totals.s.sum(axis=0)
    for start in (moved.start, moved.step(moved.start)[0]):
        assert_allclose(start.sum(axis=0), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_samples_that_are_too_small_do_no_harm(family, n_rows):
    """Scaled up, changes may leave nothing behind, or less: parameters are finite, or there are none."""
    coef, gain = absorption(family, slice(0, n_rows))[0].adapt(20)
    assert gain == -np.inf if coef is None else np.isfinite(gain) and np.isfinite(coef).all()


def test_gain_of_no_change_is_that_of_the_target(family):
    """With statistics as they are, and all of the target in one absorber."""
    moved, here = absorption(family)
    s = here.totals.s[ABSORBERS]
    s[0] += here.totals.s[2]
    whole, without = here.totals, here.totals.take(ABSORBERS)
    joined = without._replace(s=s)
    expected = here.model.elbo(joined) - here.model.elbo(whole)
    assert moved.gain(s, np.zeros(3)) == pytest.approx(expected)


def test_one_gaussian_in_five_components(seed=0):
    """The toy of Sec. 4.4.1: laps alone keep all five, and merges leave one.

    Merges of two would stall half-way, but for the union of everything that they try at last.
    """
    rows = np.random.default_rng(seed).standard_normal((25_000, 1))

    def n_found(*proposals):
        model = DPMixtureVB(
            5,
            observation=GaussianObservation(
                degrees_of_freedom_prior=3.0, covariance_prior=np.ones((1, 1))
            ),
            weight_concentration_prior=10.0,
            learning_method="full",
            proposals=proposals,
            random_state=seed,
        )
        return model.fit(rows).n_components_

    assert n_found() == 5
    assert n_found(Merge(max_members=2)) == 1
    assert 1 < n_found(Delete()) < 5
    assert n_found(Merge(max_members=2), Delete()) == 1
