"""Kernels of sparse counts against lines of NumPy, on the same rows made dense."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_bnp._kernels._responsibilities import share_out
from sklearn_bnp._kernels._sparse_rows import are_counts, sparse_shares, sparse_summary


def problem(n, V, K, dtype, density=0.2, seed=0):
    """Counts (CSR), some of whose rows are empty, and coefficients (K, V + 1)."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(2.0, (n, V)) * (rng.random((n, V)) < density)
    x[::5] = 0
    z = sparse.csr_array(x.astype(dtype))
    return z, rng.normal(size=(K, V + 1)).astype(dtype), rng


def arrays(z):
    out = z.data, z.indices.astype(np.int32), z.indptr.astype(np.int64)
    for array in out:
        array.flags.writeable = False
    return out


def shares(z, coef, mass=None, weight=None, n_nonzero=None, n_threads=1):
    n, K = z.shape[0], len(coef)
    resp, entropy, log_norm = np.empty((n, K), coef.dtype), np.empty(K), np.empty(n)
    n_nonzero = K if n_nonzero is None else n_nonzero
    sparse_shares(*arrays(z), coef, mass, weight, resp, entropy, log_norm, n_nonzero, n_threads)
    return resp, entropy, log_norm


def by_table(z, coef, mass, weight, n_nonzero):
    n, K = z.shape[0], len(coef)
    table = np.ascontiguousarray(z.toarray() @ coef[:, :-1].T + coef[:, -1])
    resp, entropy, log_norm = np.empty((n, K), coef.dtype), np.empty(K), np.empty(n)
    share_out(
        table, mass, weight, resp, entropy, log_norm, K if n_nonzero is None else n_nonzero, 1
    )
    return resp, entropy, log_norm


# fewer rows than a tile, just over one, over a chunk; fewer components than a vector, and more
@pytest.mark.parametrize("n", [1, 33, 1030])
@pytest.mark.parametrize("K", [1, 7, 8, 33])
@pytest.mark.parametrize("n_nonzero", [None, 3])
def test_shares(n, K, n_nonzero, dtype):
    z, coef, rng = problem(n, 19, K, dtype)
    mass, weight = rng.uniform(0.0, 1.0, n), rng.gamma(1.0, 1.0, n)
    eps = np.finfo(dtype).eps  # log weights are sums of some ten terms below 20
    for given in ((None, None), (mass, None), (None, weight), (mass, weight)):
        found, twin = shares(z, coef, *given, n_nonzero), by_table(z, coef, *given, n_nonzero)
        assert_allclose(found[0], twin[0], rtol=500 * eps, atol=50 * eps)
        assert_allclose(found[1], twin[1], rtol=500 * eps, atol=500 * eps * n)
        assert_allclose(found[2], twin[2], rtol=100 * eps, atol=200 * eps)


@pytest.mark.parametrize("n", [1, 40, 500])
@pytest.mark.parametrize("K", [1, 2, 9, 33])
@pytest.mark.parametrize("kept", [0.0, 0.1, 1.0])
def test_summary(n, K, kept, dtype):
    """Rows of one component, of some and of all take different ways."""
    z, _, rng = problem(n, 37, K, dtype)
    resp = (rng.random((n, K)) * (rng.random((n, K)) < kept)).astype(dtype)
    resp[::2, 0] = 1.0
    x = np.column_stack([z.toarray(), np.ones(n)]).astype(float)
    for scale in (None, rng.gamma(1.0, 1.0, n)):
        s = np.full((K, 38), np.nan)
        sparse_summary(*arrays(z), resp, scale, s, 1)
        weighted = resp.astype(float) * (1.0 if scale is None else scale[:, np.newaxis])
        # products of two numbers of the rows' precision are exact in double
        assert_allclose(s, weighted.T @ x, rtol=1e-12, atol=1e-13)


def test_threads_change_no_bit(dtype):
    z, coef, rng = problem(5000, 50, 21, dtype)
    one, two = shares(z, coef), shares(z, coef, n_threads=2)
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)
    hard = one[0] * (rng.random(one[0].shape) < np.linspace(0.0, 1.0, 5000)[:, np.newaxis])
    sums = [np.empty((21, 51)) for _ in range(2)]
    for s, n_threads in zip(sums, (1, 2), strict=True):
        sparse_summary(*arrays(z), hard.astype(dtype), None, s, n_threads)
    assert_array_equal(*sums)


def test_no_rows_and_no_entries(dtype):
    coef = np.zeros((2, 4), dtype)
    resp, entropy, _ = shares(sparse.csr_array((0, 3), dtype=dtype), coef)
    assert resp.shape == (0, 2)
    assert_array_equal(entropy, 0.0)
    empty = sparse.csr_array((3, 3), dtype=dtype)
    assert_array_equal(shares(empty, coef)[0], 0.5)
    s = np.full((2, 4), np.nan)
    sparse_summary(*arrays(empty), np.ones((3, 2), dtype), None, s, 1)
    assert_array_equal(s, [[0.0, 0.0, 0.0, 3.0]] * 2)
    sparse_summary(*arrays(empty[:0]), np.ones((0, 2), dtype), None, s, 1)
    assert_array_equal(s, 0.0)


@pytest.mark.parametrize("value", [-1.0, 0.5, 2.5, -0.25, 1e5 + 0.5])
def test_what_is_no_count_is_found(value, dtype):
    x = np.arange(100).astype(dtype)
    assert are_counts(x, False)
    assert not are_counts(x, True)
    assert are_counts((x % 2).astype(dtype), True)
    for place in (0, 50, 99):
        bad = x.copy()
        bad[place] = value
        assert not are_counts(bad, False)
        bad = (x % 2).astype(dtype)
        bad[place] = value
        assert not are_counts(bad, True)
    assert are_counts(x[:0], False)
