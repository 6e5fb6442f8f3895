"""Pitman-Yor process: what the laws of all priors of weights do not say of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import DPAllocation, PitmanYorAllocation
from tests.reference import partitions
from tests.reference.allocations import DirichletProcess, PitmanYor, beta_divergence

from .families import Allocation
from .harness import given, one_hot, random_resp
from .test_gradients import COUNTS

DISCOUNTS = [0.0, 0.2, 0.5, 0.8, 0.95]


def seats(n_rows, concentration, discount, rng):
    """Sizes of the tables of a Chinese restaurant."""
    sizes = []
    for _ in range(n_rows):
        p = np.array([size - discount for size in sizes] + [concentration + discount * len(sizes)])
        table = rng.choice(len(p), p=p / p.sum())
        sizes[table:] = [sizes[table] + 1, *sizes[table + 1 :]] if table < len(sizes) else [1]
    return np.array(sizes, dtype=float)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("n", COUNTS, ids=len)
def test_no_discount_is_the_dirichlet_process(n, concentration):
    """To the last bit; and a small discount is nearly it."""
    dp = DPAllocation(concentration)
    none = PitmanYorAllocation(concentration, 0.0)
    little = PitmanYorAllocation(concentration, 1e-9)
    for method in ("elbo", "expected_log_weights", "weights"):
        expected = getattr(dp, method)(n)
        assert_array_equal(getattr(none, method)(n), expected)
        assert_allclose(getattr(little, method)(n), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_twin_is_the_telescoped_term(discount):
    """For any discount and concentration, with tiny and with empty components."""
    rng = np.random.default_rng(0)
    for concentration in (0.01, 1.0, 40.0):
        n = np.append(-np.sort(-rng.gamma(0.3, 20.0, size=8)), 0.0)
        model = PitmanYorAllocation(concentration, discount)
        twin = PitmanYor(concentration, discount)
        assert_allclose(model.elbo(n), twin.elbo(n), rtol=1e-11)
        assert_allclose(model.elbo(n[:-1]), model.elbo(n), rtol=1e-14)
        assert_allclose(
            model.expected_log_weights(n), twin.expected_log_weights(n), rtol=1e-10, atol=1e-12
        )
        assert_allclose(model.weights(n), twin.weights(n), rtol=1e-10)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_posterior_of_the_sticks_is_the_best(discount):
    """Other Beta posteriors have a lower objective, whatever the counts."""
    rng = np.random.default_rng(1)
    for n in COUNTS:
        n = -np.sort(-n)
        prior = PitmanYor(1.5, discount)
        best = PitmanYorAllocation(1.5, discount).elbo(n)
        for _ in range(20):
            others = [a * rng.gamma(20.0, 0.05, size=len(n)) for a in prior.posterior(n)]
            q = WithPosterior(1.5, discount, others)
            log_weights = q.expected_log_weights(n)
            value = n @ log_weights - beta_divergence(*others, *prior.prior(len(n))).sum()
            assert value < best


class WithPosterior(PitmanYor):
    """With Beta posteriors that somebody has chosen."""

    def __init__(self, gamma, discount, chosen):
        super().__init__(gamma, discount)
        self.chosen = chosen

    def posterior(self, n):
        return self.chosen


@pytest.mark.parametrize("discount", [*DISCOUNTS, "auto"])
@pytest.mark.parametrize("kind", ["soft", "hard", "apart"])
def test_below_the_exact_marginal_likelihood(leading_family, discount, kind):
    """Summed over all partitions of six rows, for discounts from none to nearly 1."""
    rng = np.random.default_rng(3)
    X, labels = leading_family.rows(rng, 6)
    resp = {"soft": random_resp(rng, 6, 3), "hard": one_hot(labels), "apart": np.eye(6)}[kind]
    allocation = Allocation("", {"allocation": PitmanYorAllocation(0.7, discount)}, None)
    g = given(leading_family, X, resp, None, allocation)
    twin = PitmanYor(0.7, None if discount == "auto" else discount).at(g.s[g.order, -1])
    assert g.estimator.discount_ == pytest.approx(twin.discount, abs=1e-9)
    assert g.estimator.lower_bound_ <= partitions.log_marginal(g.twin, twin, g.z) + 1e-9


def test_exchangeable_partitions_of_the_dirichlet_process():
    """The twins' probabilities of partitions are the same without a discount."""
    for sizes in ([1], [3, 1, 1], [2, 2, 5]):
        assert_allclose(
            PitmanYor(1.5, 0.0).log_prior_partition(sizes),
            DirichletProcess(1.5).log_prior_partition(sizes), atol=1e-13,
        )  # fmt: skip


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_one_order_of_the_sticks_is_part_of_the_partition(discount):
    """Whole counts: all orders together have ``sum_k log [(gamma + (k - 1) d + T_k) / (N_k - d)]`` more."""
    for sizes in ([9], [7, 3, 1, 1], [4, 4, 2, 1, 1, 1]):
        n = np.array(sizes, dtype=float)
        tail = np.cumsum(n[::-1])[::-1]
        lost = np.log((2.0 + np.arange(len(n)) * discount + tail) / (n - discount)).sum()
        exact = PitmanYor(2.0, discount).log_prior_partition(sizes)
        assert_allclose(PitmanYorAllocation(2.0, discount).elbo(n), exact - lost, rtol=1e-11)


# ---------------------------------------------------------------------- the discount that is learned


def many_counts():
    """Counts of many kinds, with absent and empty components: rows of one length."""
    rng = np.random.default_rng(2)
    rows = np.full((40, 30), np.nan)
    for i, row in enumerate(rows):
        K = rng.integers(1, 31)
        row[rng.permutation(30)[:K]] = rng.gamma(rng.choice([0.1, 1.0]), 10.0 ** (i % 5 - 1), K)
    rows[0, :] = np.nan
    rows[0, :3] = [5.0, 0.0, 0.0]
    rows[1, :3] = 0.0
    return rows


@pytest.mark.parametrize("concentration", [1e-3, 1.0, 50.0])
def test_learned_discount_is_the_best(concentration):
    """No discount of a fine grid has a higher objective, and the one that is found has this one."""
    rows = many_counts()
    learned = PitmanYorAllocation(concentration).elbo(rows)
    for discount in np.append(np.linspace(0.0, 0.99, 100), [0.999, 0.9999]):
        fixed = PitmanYorAllocation(concentration, discount).elbo(rows)
        assert np.all(learned >= fixed - 1e-11 * np.maximum(np.abs(fixed), 1.0))
    for n, value in zip(rows, learned, strict=True):
        n = n[~np.isnan(n)]
        found = PitmanYorAllocation(concentration).attributes(n)["discount_"]
        assert 0.0 <= found < 1.0
        assert_allclose(
            PitmanYorAllocation(concentration, found).elbo(n), value, rtol=1e-12, atol=1e-12
        )


def test_objective_is_concave_in_the_discount():
    """So that there is one maximum."""
    grid = np.linspace(0.0, 0.99, 100)
    values = np.array([PitmanYorAllocation(2.0, d).elbo(many_counts()) for d in grid])
    bends = values[2:] - 2 * values[1:-1] + values[:-2]
    assert np.all(bends <= 1e-11 * np.maximum(np.abs(values[1:-1]), 1.0))


def test_candidates_do_not_know_of_each_other():
    """A row of a call has the discount that it has alone, to the last bit of the counts' sums."""
    rows = np.nan_to_num(many_counts())
    together = PitmanYorAllocation().elbo(rows)
    assert_array_equal(together, [PitmanYorAllocation().elbo(n) for n in rows])
    assert_array_equal(together.reshape(4, 10), PitmanYorAllocation().elbo(rows.reshape(4, 10, 30)))


def test_heavier_tails_have_a_greater_discount():
    """Counts of processes with greater discounts, five restaurants each; none for one component."""
    found = [
        np.mean(
            [
                PitmanYorAllocation().attributes(
                    seats(1000, 1.0, discount, np.random.default_rng(seed))
                )["discount_"]
                for seed in range(5)
            ]
        )
        for discount in (0.0, 0.3, 0.6)
    ]
    assert 0.0 <= found[0] < found[1] < found[2]
    assert PitmanYorAllocation().attributes(np.array([50.0]))["discount_"] == 0.0
