"""`local_step` against the softmax, the sums and the entropies written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp._kernels._responsibilities import local_step
from tests.reference import mixtures

from .problems import Problem, Quadratic, integer_problem, problem, run_local_step, weight_error

# Entries below this share of their row's largest are cleared (`RESP_FLOOR`).
FLOOR = 1e-16


def assert_step(step, p, error, mass=None, weight=None, n_nonzero=None):
    """Every output within what an ``error`` of the log weights explains.

    An error e of log weights changes r by at most 2 e r, and -r log r by 2 e r (1 + |log r|).
    """
    twin = mixtures.local_step(p.features, p.coef, mass, weight, n_nonzero)
    resp, stats, entropy, log_norm = twin
    n = len(resp)
    each = np.ones(n) * (1.0 if mass is None else mass) * (1.0 if weight is None else weight)
    assert_allclose(step.resp, resp, rtol=2 * error, atol=FLOOR)
    assert_allclose(step.resp.sum(axis=1), 1.0, rtol=2 * error)
    assert_allclose(step.log_norm, log_norm, rtol=0, atol=error)
    # relative to the sum of absolute values, which is what sums of signed terms resolve
    size = (each[:, np.newaxis] * resp).T @ np.abs(p.features)
    cleared = each.sum() * FLOOR * np.abs(p.features).max(initial=0.0)
    assert np.all(np.abs(step.stats - stats) <= 4 * error * size + cleared)
    logs = 1.0 if mass is None else 1.0 + np.abs(np.log(np.where(mass > 0, mass, 1.0)))
    atol = np.sum(each * logs) * (4 * error + 50 * FLOOR)
    assert_allclose(step.entropy, entropy, rtol=0, atol=atol)


# fewer rows than a tile, just under and over a chunk of 1024, several chunks and a rest
@pytest.mark.parametrize("n", [1, 2, 63, 1023, 1025, 2500])
def test_dense(n, layout, dtype):
    p = problem(n, n, 7, layout=layout, dtype=dtype)
    assert_step(run_local_step(p), p, weight_error(p))


@pytest.mark.parametrize("K", [1, 2, 8, 9, 33])
def test_sizes(K, layout, dtype):
    for D in (1, 2, 9):
        p = problem(K + D, 70, K, D=D, layout=layout, dtype=dtype)
        assert_step(run_local_step(p), p, weight_error(p))


@pytest.mark.parametrize("with_mass", [False, True], ids=["", "mass"])
@pytest.mark.parametrize("with_weight", [False, True], ids=["", "weight"])
@pytest.mark.parametrize("n_nonzero", [None, 3], ids=["dense", "3-sparse"])
def test_mass_and_weight(with_mass, with_weight, n_nonzero, layout, dtype):
    rng = np.random.default_rng(3)
    n = 1300
    p = problem(4, n, 6, layout=layout, dtype=dtype)
    mass = rng.uniform(0.0, 1.0, n) ** 4 if with_mass else None
    weight = rng.gamma(0.5, 10.0, n) if with_weight else None
    if with_mass:
        mass[::17] = 0.0
        mass[1::17] = 1.0
    if with_weight:
        weight[::13] = 0.0
    step = run_local_step(p, mass, weight, n_nonzero)
    assert_step(step, p, weight_error(p), mass, weight, n_nonzero)


@pytest.mark.parametrize("n_nonzero", [1, 2, 4, 8, 9, None, 1000])
def test_sparse(n_nonzero, layout, dtype):
    for K in (10, 40):
        p = problem(K, 150, K, layout=layout, dtype=dtype)
        step = run_local_step(p, n_nonzero=n_nonzero)
        L = K if n_nonzero is None else min(n_nonzero, K)
        assert_step(step, p, weight_error(p), n_nonzero=L)
        assert (step.resp > 0).sum(axis=1).max() == L  # entries below the floor may make it fewer
        if L == 1:
            assert_array_equal(step.resp.max(axis=1), 1.0)
            assert_array_equal(step.entropy, 0.0)


@pytest.mark.parametrize("n_nonzero", [1, 2, 4, 8, 9, 12])
def test_ties(n_nonzero, layout, dtype):
    """Equal weights: exactly L stay, and of equal ones the first."""
    p = integer_problem(5, 400, 12, layout=layout, dtype=dtype)
    w = p.features @ p.coef.T
    ordered = np.sort(w, axis=1)[:, ::-1]
    if n_nonzero < 12:  # there is something to test: the last that stays equals the first that goes
        assert np.sum(ordered[:, n_nonzero - 1] == ordered[:, n_nonzero]) >= 5
    step = run_local_step(p, n_nonzero=n_nonzero)
    kept = np.isfinite(mixtures.keep_largest(w, n_nonzero))
    # a kept entry may yet fall below the floor
    assert_array_equal(kept[step.resp > 0], True)
    assert_array_equal(step.resp[kept & (w > w.max(axis=1, keepdims=True) - 30)] > 0, True)
    assert_step(step, p, weight_error(p), n_nonzero=n_nonzero)


@pytest.mark.parametrize("n_nonzero", [1, 3, 9])
def test_all_weights_equal(n_nonzero, dtype):
    p = problem(6, 20, 11, dtype=dtype)
    p = p._replace(coef=np.zeros_like(p.coef))
    step = run_local_step(p, n_nonzero=n_nonzero)
    expected = np.zeros((20, 11))
    expected[:, :n_nonzero] = 1.0 / n_nonzero
    assert_allclose(step.resp, expected, rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("scale", [1e2, 1e5, 1e8])
def test_far_apart_weights(scale, layout, dtype):
    """Weights that differ by any amount: no overflow, no nan, shares that are exactly 0 or 1."""
    p = problem(7, 1100, 9, layout=layout, dtype=dtype, scale=scale)
    step = run_local_step(p)
    for name, value in step._asdict().items():
        assert np.isfinite(value).all(), name
    w = p.features @ p.coef.T.astype(float)
    ordered = np.sort(w, axis=1)
    error = weight_error(p)
    # where the runner-up is far behind, beyond any error, the winner takes the whole row
    clear = ordered[:, -1] - ordered[:, -2] > 40 + 2 * error
    assert clear.sum() >= 20
    assert_array_equal(step.resp[clear, w[clear].argmax(axis=1)], 1.0)
    assert_array_equal((step.resp[clear] > 0).sum(axis=1), 1)
    assert_allclose(step.log_norm, w.max(axis=1), rtol=0, atol=error + np.log(9))
    assert_allclose(step.resp.sum(axis=1), 1.0, rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("offset", [-1e5, 1e5, 1e12])
def test_common_offset_cancels(offset):
    """A constant on all weights moves log_norm alone; what is lost is of size eps * offset."""
    p = problem(8, 200, 6)
    moved = p._replace(coef=p.coef.copy())
    moved.coef[:, -1] += offset
    a, b = run_local_step(p), run_local_step(moved)
    lost = 8 * np.finfo(float).eps * abs(offset)
    assert_allclose(b.resp, a.resp, rtol=0, atol=2 * lost)
    assert_allclose(b.log_norm - offset, a.log_norm, rtol=0, atol=lost)


@pytest.mark.parametrize("K", [1, 3, 10])
def test_no_rows(K, layout, dtype):
    p = problem(9, 0, K, layout=layout, dtype=dtype)
    step = run_local_step(p)
    assert_array_equal(step.stats, 0.0)
    assert_array_equal(step.entropy, 0.0)


def test_one_component_takes_everything(layout, dtype):
    p = problem(10, 1500, 1, layout=layout, dtype=dtype)
    step = run_local_step(p)
    assert_array_equal(step.resp, 1.0)
    assert_array_equal(step.entropy, 0.0)
    tolerance = 1500 * np.finfo(dtype).eps * np.abs(p.features).sum(axis=0).max()
    assert_allclose(step.stats[0], p.features.sum(axis=0), rtol=0, atol=tolerance)


def test_read_only(layout, dtype):
    rng = np.random.default_rng(11)
    p = problem(11, 50, 4, layout=layout, dtype=dtype)
    mass, weight = rng.uniform(size=50), rng.uniform(size=50)
    expected = run_local_step(p, mass, weight)
    for array in (p.x, p.coef, mass, weight):
        array.setflags(write=False)
    for a, b in zip(run_local_step(p, mass, weight), expected, strict=True):
        assert_array_equal(a, b)


def test_outputs_are_optional(layout, dtype):
    """Leaving out summaries changes no bit of the shares."""
    p = problem(12, 1100, 5, layout=layout, dtype=dtype)
    expected = run_local_step(p)
    resp = np.empty_like(expected.resp)
    local_step(p.x, p.coef, p.quadratic, p.linear, None, None, resp, None, None, None, 5, 1)
    assert_array_equal(resp, expected.resp)
    stats = np.empty_like(expected.stats)
    local_step(p.x, p.coef, p.quadratic, p.linear, None, None, resp, stats, None, None, 5, 1)
    assert_array_equal(stats, expected.stats)


@pytest.mark.parametrize("dtype, widest", [("float64", 36.0), ("float32", 36.0)])
def test_exp_to_the_last_bits(dtype, widest):
    """With weights 0 and -t the ratio of the shares is exp(-t): rounded twice, so within 4 ulp."""
    t = np.linspace(0.0, widest, 20_001).astype(dtype)
    x = -t[:, np.newaxis]
    coef = np.array([[0.0, 0.0], [1.0, 0.0]], dtype=dtype)
    resp = run_local_step(Problem(x, coef, Quadratic.NONE, True, None)).resp.astype(float)
    eps = np.finfo(dtype).eps
    assert_allclose(resp[:, 1] / resp[:, 0], np.exp(-t.astype(float)), rtol=4 * eps, atol=0)


def test_log_norm_of_many_components():
    """log_norm = log K + constant when all agree: the sum over K does not lose digits."""
    K = 3000
    p = Problem(np.ones((3, 1)), np.full((K, 2), 0.5), Quadratic.NONE, True, None)
    step = run_local_step(p)
    assert_allclose(step.log_norm, 1.0 + np.log(K), rtol=1e-14)
    assert_allclose(step.resp, 1.0 / K, rtol=1e-13)
    assert_allclose(step.entropy.sum(), 3 * np.log(K), rtol=1e-13)


@pytest.mark.parametrize("n_nonzero", [None, 4])
@pytest.mark.parametrize("n", [1, 1024, 1025, 5000])
def test_threads_change_no_bit(n, n_nonzero, dtype):
    rng = np.random.default_rng(13)
    p = problem(13, n, 12, D=6, dtype=dtype)
    mass, weight = rng.uniform(size=n), rng.gamma(1.0, size=n)
    expected = run_local_step(p, mass, weight, n_nonzero)
    for n_threads in (2, 3, 4):
        step = run_local_step(p, mass, weight, n_nonzero, n_threads)
        for a, b in zip(step, expected, strict=True):
            assert_array_equal(a, b)


def test_rows_do_not_depend_on_their_neighbours(layout):
    """A row has the same shares alone and among others, but for how BLAS rounds its products."""
    p = problem(14, 300, 8, layout=layout)
    whole = run_local_step(p).resp
    for i in (0, 1, 150, 299):
        alone = p._replace(x=p.x[i : i + 1], features=p.features[i : i + 1])
        resp = run_local_step(alone).resp
        assert_allclose(resp[0], whole[i], rtol=4 * weight_error(p), atol=FLOOR)
