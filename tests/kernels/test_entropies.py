"""`union_entropies` against sums of columns written out, and its bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._entropies import join, lost_by_pairs, union_entropies
from tests.reference import mixtures

UNIONS = [(0,), (3,), (0, 1), (4, 2), (1, 3, 5), (0, 1, 2, 3, 4, 5), (5, 0)]


def soft_shares(seed, n, K=6, dtype=np.float64):
    """Rows of a Dirichlet with many entries near 0, some of them exactly."""
    rng = np.random.default_rng(seed)
    resp = rng.dirichlet(np.full(K, 0.3), size=n)
    resp[resp < 1e-4] = 0.0
    return (resp / resp.sum(axis=1, keepdims=True)).astype(dtype)


def run_union_entropies(resp, weight, unions, n_threads=1):
    indptr = np.cumsum([0] + [len(members) for members in unions], dtype=np.intp)
    members = np.array([k for members in unions for k in members], dtype=np.intp)
    out = np.full(len(unions), np.nan)
    union_entropies(resp, weight, indptr, members, out, n_threads)
    return out


@pytest.mark.parametrize("with_weight", [False, True], ids=["", "weight"])
@pytest.mark.parametrize("n", [0, 1, 511, 513, 2000])
def test_against_sums(n, with_weight, dtype):
    resp = soft_shares(n, n, dtype=dtype)
    resp.setflags(write=False)
    weight = np.random.default_rng(1).gamma(0.5, 5.0, n) if with_weight else None
    expected = mixtures.union_entropies(resp.astype(float), weight, UNIONS)
    mass = n if weight is None else weight.sum()
    # the sum of shares near 1 is rounded in their own precision: x log x then is off by eps
    assert_allclose(
        run_union_entropies(resp, weight, UNIONS), expected, rtol=1e-12,
        atol=10 * np.finfo(dtype).eps * mass,
    )  # fmt: skip


def test_threads_change_no_bit(dtype):
    resp = soft_shares(2, 3000, dtype=dtype)
    weight = np.random.default_rng(2).gamma(1.0, size=3000)
    expected = run_union_entropies(resp, weight, UNIONS)
    for n_threads in (2, 3, 4):
        assert_array_equal(run_union_entropies(resp, weight, UNIONS, n_threads), expected)


def test_no_unions():
    run_union_entropies(soft_shares(3, 10), None, [])


def test_order_of_members_does_not_matter():
    resp = soft_shares(4, 700)
    a, b = run_union_entropies(resp, None, [(0, 2, 5), (5, 2, 0)])
    assert_allclose(a, b, rtol=1e-13)


def test_certain_rows_have_no_entropy():
    resp = np.eye(6)[np.random.default_rng(5).integers(6, size=900)]
    assert_array_equal(run_union_entropies(resp, None, UNIONS), 0.0)


def test_everything_as_one_has_none():
    """Shares that sum to 1 up to rounding: never a negative entropy, nor more than the rounding."""
    resp = soft_shares(6, 3000)
    (whole,) = run_union_entropies(resp, None, [tuple(range(6))])
    assert 0 <= whole <= 3000 * 6 * np.finfo(float).eps


@pytest.mark.parametrize("seed", range(5))
def test_bounds(seed):
    """``sum H_k >= H_union >= max(0, sum H_k - N log M)``; Sec. 4.1.2 with the errata."""
    resp = soft_shares(seed, 400)
    single = run_union_entropies(resp, None, [(k,) for k in range(6)])
    for members, h in zip(UNIONS, run_union_entropies(resp, None, UNIONS), strict=True):
        parts, mass = single[list(members)].sum(), resp[:, list(members)].sum()
        slack = 1e-10
        assert max(0.0, parts - mass * np.log(len(members))) - slack <= h <= parts + slack


@pytest.mark.parametrize("n_parts", [2, 3])
def test_lower_bound_is_reached(n_parts):
    """Equal shares of each row make the lower bound an equality, so it cannot be improved."""
    total = np.random.default_rng(7).uniform(0.1, 1.0, size=(50, 1))
    resp = np.repeat(total / n_parts, n_parts, axis=1)
    single = run_union_entropies(resp, None, [(k,) for k in range(n_parts)])
    (h,) = run_union_entropies(resp, None, [tuple(range(n_parts))])
    assert_allclose(h, single.sum() - total.sum() * np.log(n_parts), rtol=1e-12)


def test_shares_outside_of_0_and_1_have_no_entropy():
    """Rounding may make shares negative, or more than 1."""
    resp = np.array([[1.0 + 1e-12, -1e-17], [np.nextafter(0.0, 1.0), 0.0], [0.5, 0.5]])
    assert_allclose(
        run_union_entropies(resp, None, [(0,), (1,), (0, 1)]), [0.5 * np.log(2.0)] * 2 + [0.0]
    )


def lost_in(resp, weight):
    """What unions of two lose, (K, K) above the diagonal, from `union_entropies`."""
    K = resp.shape[1]
    i, j = np.triu_indices(K, 1)
    single = run_union_entropies(resp, weight, [(k,) for k in range(K)])
    lost = np.zeros((K, K))
    pairs = run_union_entropies(resp, weight, list(zip(i, j, strict=True)))
    lost[i, j] = single[i] + single[j] - pairs
    return lost


@pytest.mark.parametrize("with_weight", [False, True], ids=["", "weight"])
@pytest.mark.parametrize("K", [2, 6, 150])
def test_what_pairs_lose_and_unions_after_them(K, with_weight):
    """The kernels that read shares row by row agree with the one that reads columns, union after union."""
    n = 60
    resp = soft_shares(8, n, K)
    weight = np.random.default_rng(9).gamma(0.5, 5.0, n) if with_weight else None
    there = resp > 0
    indptr = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.intp)
    share, column = resp[there], np.nonzero(there)[1].astype(np.intc)
    own, lost = np.empty_like(share), np.full((K, K), np.nan)
    lost_by_pairs(share, column, indptr, weight, own, lost)
    assert_allclose(own, share * np.log(share), rtol=1e-13, atol=1e-300)
    assert_allclose(lost, lost_in(resp, weight), rtol=1e-9, atol=1e-9)
    end, alive = indptr[1:].copy(), np.arange(K)
    rng = np.random.default_rng(10)
    while len(alive) > 1:
        a, b = rng.choice(alive, 2, replace=False)
        resp[:, a] += resp[:, b]
        resp[:, b] = 0.0
        alive = alive[alive != b]
        found = np.full(K, np.nan)
        join(share, column, own, indptr, end, weight, a, b, found)
        assert_array_equal(end - indptr[:-1], np.count_nonzero(resp, axis=1))
        if len(alive) in (1, 2, 5, 148):
            expected = lost_in(resp, weight)
            assert_allclose(found, expected[a] + expected[:, a], rtol=1e-9, atol=1e-9)


def test_no_shares_lose_nothing():
    share, lost = np.empty(0), np.full((3, 3), np.nan)
    lost_by_pairs(
        share, np.empty(0, dtype=np.intc), np.zeros(5, dtype=np.intp), None, share.copy(), lost
    )
    assert_array_equal(lost, 0.0)
