"""`share_out` against `local_step`, whose second half it is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._responsibilities import Quadratic, local_step, share_out


def shares(table, mass=None, weight=None, n_nonzero=None, n_threads=1):
    n, K = table.shape
    resp, entropy, log_norm = np.empty_like(table), np.empty(K), np.empty(n)
    n_nonzero = K if n_nonzero is None else n_nonzero
    share_out(table, mass, weight, resp, entropy, log_norm, n_nonzero, n_threads)
    return resp, entropy, log_norm


def by_local_step(table, mass, weight, n_nonzero):
    """The same of rows that are their own log weights."""
    n, K = table.shape
    coef = np.eye(K, K + 1, dtype=table.dtype)
    resp, entropy, log_norm = np.empty_like(table), np.empty(K), np.empty(n)
    n_nonzero = K if n_nonzero is None else n_nonzero
    local_step(
        table, coef, Quadratic.NONE, True, mass, weight, resp, None, entropy, log_norm, n_nonzero, 1
    )
    return resp, entropy, log_norm


# fewer rows than a tile, just over one, over a chunk
@pytest.mark.parametrize("n", [1, 31, 33, 1025])
@pytest.mark.parametrize("K", [1, 7, 8, 33])
@pytest.mark.parametrize("n_nonzero", [None, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_local_step(n, K, n_nonzero, dtype):
    rng = np.random.default_rng(n + K)
    table = (4.0 * rng.standard_normal((n, K))).astype(dtype)
    mass, weight = rng.uniform(0.0, 1.0, n), rng.gamma(1.0, 1.0, n)
    rtol = 50 * np.finfo(dtype).eps
    for given in ((None, None), (mass, None), (mass, weight)):
        found, twin = shares(table, *given, n_nonzero), by_local_step(table, *given, n_nonzero)
        assert_allclose(found[0], twin[0], rtol=rtol, atol=1e-15)
        assert_allclose(found[1], twin[1], rtol=rtol, atol=rtol * n)
        assert_allclose(found[2], twin[2], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit_and_the_table_stays(dtype):
    table = np.random.default_rng(0).standard_normal((5000, 13)).astype(dtype)
    table.flags.writeable = False
    before = table.copy()
    one, two = shares(table), shares(table, n_threads=2)
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(table, before)


def test_no_rows_and_impossible_components():
    _, entropy, _ = shares(np.empty((0, 4)))
    assert_array_equal(entropy, 0.0)
    resp, *_ = shares(np.array([[0.0, -np.inf, -1e300]]))
    assert_array_equal(resp, [[1.0, 0.0, 0.0]])
