"""`statistics` and `summarise` against rows and sums written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._responsibilities import Quadratic, n_statistics, statistics, summarise
from tests.reference import mixtures

from .problems import problem, run_local_step


@pytest.mark.parametrize("D", [1, 2, 5, 17])
def test_length(D, layout):
    quadratic, linear = layout
    assert n_statistics(D, Quadratic[quadratic], linear) == mixtures.n_statistics(D, *layout)


@pytest.mark.parametrize("D", [1, 2, 5, 17])
def test_statistics(D, layout, dtype):
    """Single products round once, whatever computes them: equal to the last bit."""
    quadratic, linear = layout
    for n in (0, 1, 33):
        x = np.random.default_rng(D).standard_normal((n, D)).astype(dtype)
        x.setflags(write=False)
        out = np.full((n, mixtures.n_statistics(D, quadratic, linear)), np.nan, dtype=dtype)
        statistics(x, Quadratic[quadratic], linear, out)
        expected = mixtures.statistics(x, quadratic, linear).astype(dtype)
        if quadratic == "SPHERICAL":  # a sum, in some order, perhaps with fused products
            assert_allclose(out, expected, rtol=D * np.finfo(dtype).eps)
        else:
            assert_array_equal(out, expected)


def shares(seed, n, K, share_of_zeros, dtype):
    rng = np.random.default_rng(seed)
    resp = rng.uniform(size=(n, K)).astype(dtype)
    resp[rng.uniform(size=(n, K)) < share_of_zeros] = 0.0
    return resp


def run_summarise(p, resp, sparse):
    stats = np.full((resp.shape[1], p.features.shape[1]), np.nan)
    summarise(p.x, resp, p.quadratic, p.linear, stats, sparse)
    return stats


@pytest.mark.parametrize("n, K", [(0, 3), (1, 1), (1, 4), (255, 2), (257, 9), (1500, 5)])
def test_summarise(n, K, layout, dtype):
    p = problem(n + K, n, 1, layout=layout, dtype=dtype)
    p.x.setflags(write=False)
    for share_of_zeros in (0.0, 0.9, 1.0):
        resp = shares(n, n, K, share_of_zeros, dtype)
        resp.setflags(write=False)
        for sparse in (False, True):
            assert_sums(p, resp, run_summarise(p, resp, sparse))


def assert_sums(p, resp, stats):
    """``stats = resp.T @ s(x)`` within the bound of rounding."""
    exact, n, dtype = resp.astype(float), len(resp), resp.dtype
    # Higham (2002), Sec. 3.1: n eps times the sum of absolute values; tiles are of 256 rows at
    # most, and in float32 only their sums are rounded so coarsely; a square norm is a sum of D more
    terms = min(n, 260) + (p.x.shape[1] if p.quadratic == Quadratic.SPHERICAL else 0)
    bound = terms * np.finfo(dtype).eps * (exact.T @ np.abs(p.features)) + 1e-300
    assert np.all(np.abs(stats - exact.T @ p.features) <= bound)


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-13), ("float32", 1e-5)])
def test_walk_equals_product(dtype, rtol, layout):
    p = problem(1, 1200, 1, layout=layout, dtype=dtype)
    resp = shares(2, 1200, 20, 0.8, dtype)
    size = resp.T.astype(float) @ np.abs(p.features)
    difference = np.abs(run_summarise(p, resp, True) - run_summarise(p, resp, False))
    assert np.all(difference <= rtol * size)


@pytest.mark.parametrize("scale", [0.1, 40.0], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_nonzero", [1, 4, 20])
def test_local_step_sums_as_summarise_does(n_nonzero, scale, layout):
    """Whichever way the local step picks for a tile, its sums are those of its shares."""
    p = problem(3, 1500, 20, layout=layout, scale=scale)
    step = run_local_step(p, n_nonzero=n_nonzero)
    size = step.resp.T @ np.abs(p.features)
    for sparse in (False, True):
        difference = np.abs(run_summarise(p, step.resp, sparse) - step.stats)
        assert np.all(difference <= 1e-13 * size)


def test_float32_sums_in_double():
    """A million ones in float32: adding one by one in single precision would stop at 2**24 / 16."""
    n = 1_000_000
    x = np.full((n, 1), 0.1, dtype=np.float32)
    stats = np.empty((1, 2))
    summarise(x, np.ones((n, 1), dtype=np.float32), Quadratic.NONE, True, stats, False)
    assert stats[0, 1] == n
    # within a tile of 256 rows sums are in float32
    assert_allclose(stats[0, 0], n * float(np.float32(0.1)), rtol=256 * np.finfo(np.float32).eps)
