"""Laws of the priors of documents' topics: HDP and symmetric Dirichlet."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import gammaln, logsumexp, xlogy

from sklearn_bnp.hdp.sticks import Sticks, logit
from sklearn_bnp.topics.document_terms import (
    CountColumns,
    count_terms,
    nested_union_gains,
    union_document_gains,
)
from sklearn_bnp.topics.weights import DirichletDocuments, HDPDocuments
from tests.reference.hdp_topic import (
    HDPTopics,
    LDATopics,
    count_sums,
    mean_of_quadratic,
    moments,
    stick_weights,
    union_gain,
)
from tests.reference.sticks import WeightSpreads, beta_remainders, log_deficits, spread_costs

PARAMETERS = list(itertools.product((0.01, 1.0, 30.0), (0.01, 1.0, 100.0)))  # gamma, alpha


def columns_of(counts, weight=None):
    """CountColumns of dense counts (D, K)."""
    w = np.ones(len(counts)) if weight is None else weight
    docs = [np.flatnonzero(n) for n in counts.T]
    return CountColumns(
        values=np.concatenate([n[d] for n, d in zip(counts.T, docs, strict=True)]),
        indptr=np.concatenate([[0], np.cumsum([len(d) for d in docs])]).astype(np.intp),
        weight=None if weight is None else np.concatenate([w[d] for d in docs]),
        n_docs=w.sum(),
        lengths=(counts.sum(axis=1), w),
    )


def random_counts(rng, n_docs, n_topics):
    """Soft counts of which two fifths are zero, topics by decreasing mass."""
    counts = rng.gamma(0.3, 5.0, (n_docs, n_topics)) * (rng.random((n_docs, n_topics)) < 0.6)
    return counts[:, np.argsort(-counts.sum(axis=0))]


def random_sticks(rng, n_topics):
    return Sticks(rng.uniform(0.05, 0.95, n_topics), 0.5 + rng.gamma(2.0, 10.0, n_topics))


def corpus(n_docs, n_topics, seed=0, length=100):
    """Hard counts of an HDP-like corpus in which each topic is used by many documents."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(n_topics, 2.0))
    shares = rng.dirichlet(np.maximum(3.0 * pi, 0.01), size=n_docs)
    counts = np.array([rng.multinomial(length, p) for p in shares]).astype(float)
    return counts[:, np.argsort(-counts.sum(axis=0))]


def with_empty(counts, n_empty):
    return np.column_stack([counts, np.zeros((len(counts), n_empty))])


# Agreement with the definitions ------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
@pytest.mark.parametrize("n_topics", [1, 2, 5])
def test_objective_is_the_definition(gamma, alpha, n_topics):
    rng = np.random.default_rng(n_topics)
    counts, sticks = random_counts(rng, 7, n_topics), random_sticks(rng, n_topics)
    model, twin = HDPDocuments(gamma, alpha), HDPTopics(gamma, alpha)
    expected = twin.objective(counts, *sticks)
    np.testing.assert_allclose(
        model.objective(sticks, columns_of(counts)), expected, rtol=1e-10, atol=1e-8
    )
    pi = stick_weights(sticks.rho)
    np.testing.assert_allclose(np.append(model.weights(sticks), model.rest(sticks)), pi)
    np.testing.assert_allclose(model.prior(sticks), alpha * pi[:-1])


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
def test_no_other_theta_is_better(gamma, alpha):
    rng = np.random.default_rng(1)
    counts, sticks = random_counts(rng, 5, 3), random_sticks(rng, 3)
    twin = HDPTopics(gamma, alpha)
    best = twin.best_theta(counts, sticks.rho)
    value = twin.objective(counts, *sticks)
    for _ in range(20):
        theta = best * np.exp(rng.normal(0.0, 0.3, best.shape))
        assert twin.objective(counts, *sticks, theta=theta) < value


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
@pytest.mark.parametrize("n_topics", [1, 2, 3])
def test_surrogate_is_a_lower_bound(gamma, alpha, n_topics):
    rng = np.random.default_rng(2)
    twin = HDPTopics(gamma, alpha)
    for _ in range(3):
        rho, omega = random_sticks(rng, n_topics)
        exact = twin.exact_top(4.0, rho, omega, n_points=12)
        for surrogate in (twin.surrogate, twin.loose_surrogate):
            assert surrogate(4.0, rho, omega) <= exact + 1e-6 * abs(exact)


def test_surrogates_are_tight_for_small_alpha():
    # -lnG(x) -> log(x): a wrong constant would show. The gaps are D alpha times less than 0.58 K.
    rho, omega = random_sticks(np.random.default_rng(3), 2)
    twin = HDPTopics(1.0, 1e-6)
    exact = twin.exact_top(4.0, rho, omega, n_points=100)
    # Quadrature of log u has an error of O(n_points^-2) or so.
    for surrogate in (twin.surrogate, twin.loose_surrogate):
        np.testing.assert_allclose(surrogate(4.0, rho, omega), exact, atol=1e-2)


def test_surrogate_is_tight_where_documents_are_many():
    """The gap is a fraction of a nat in all, where that of the thesis grows with the documents."""
    rng, n_docs, alpha = np.random.default_rng(21), 300, 1.0
    sticks, _ = HDPDocuments(1.0, alpha).optimise(columns_of(random_counts(rng, n_docs, 4)))
    twin, draws = HDPTopics(1.0, alpha), drawn_weights(rng, sticks)
    _, _, logs = moments(*sticks)
    exact = n_docs * (np.log(alpha) + logs - gammaln(1.0 + alpha * draws).mean(axis=0)).sum()
    exact += n_docs * gammaln(alpha) - twin.divergence(*sticks)
    # draws tell it to .05 or so
    assert abs(exact - twin.surrogate(n_docs, *sticks) - 0.1) < 0.2
    assert exact - twin.loose_surrogate(n_docs, *sticks) > 50.0


@pytest.mark.parametrize("s", [1.0, 1.5, 60.0])
@pytest.mark.parametrize("concentration", [0.01, 1.0, 50.0, 1e4])
def test_quadratic_is_above_the_expected_log_gamma(s, concentration):
    """For any law of a weight in [0, 1], two points included, and tight for those that vary little."""
    rng = np.random.default_rng(16)
    for width in 10.0 ** rng.uniform(-4.0, 1.0, 50):
        x = concentration * rng.beta(0.3 / width, 0.7 / width, 50)
        p = rng.dirichlet(np.full(50, rng.choice([0.02, 1.0])))
        a = p @ x
        v = p @ x**2 / a**2 - 1.0
        exact = p @ gammaln(s + x)
        [cost], _ = spread_costs(np.array([a]), s)
        assert gammaln(s + a) + cost * v >= exact - 1e-9 * (1.0 + abs(exact))
        np.testing.assert_allclose(
            gammaln(s + a) + cost * v, mean_of_quadratic(s, a, v + 1.0), rtol=1e-9, atol=1e-9
        )


def test_slopes_of_spreads():
    rng = np.random.default_rng(17)
    slopes, x = rng.normal(size=6), np.concatenate([rng.normal(size=5), 2.0 + rng.normal(size=5)])
    found = np.concatenate(WeightSpreads(*np.split(x, 2)).pulled_back(slopes))
    expected = approx_fprime(x, lambda x: slopes @ WeightSpreads(*np.split(x, 2)).v, 1e-7)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    a = np.array([1e-6, 0.3, 40.0])
    for s in (1.0, 7.0):
        cost, slope = spread_costs(a, s)
        above, _ = spread_costs(a * np.exp(1e-6), s)
        np.testing.assert_allclose(slope, (above - cost) / 1e-6, rtol=1e-3, atol=1e-9)


def drawn_weights(rng, sticks, n=40_000):
    """Draws (n, K + 1) of the weights and their rest."""
    rho, omega = sticks
    u = rng.beta(rho * omega, (1 - rho) * omega, (n, len(rho)))
    left = np.cumprod(np.column_stack([np.ones(n), 1.0 - u]), axis=1)
    return np.column_stack([u * left[:, :-1], left[:, -1]])


def test_moments_of_weights_are_those_of_draws():
    rng = np.random.default_rng(18)
    rho, omega = random_sticks(rng, 3)
    draws = drawn_weights(rng, Sticks(rho, omega))
    mean, square, logs = moments(rho, omega)
    at = logit(rho), np.log(omega)
    np.testing.assert_allclose(WeightSpreads(*at).v + 1.0, square / mean**2, rtol=1e-10)
    np.testing.assert_allclose(log_deficits(*at), (logs - np.log(mean))[:-1], atol=1e-10)
    # forty thousand draws tell the means to some 1 %, those of squares and logarithms to some more
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(square, (draws**2).mean(axis=0), rtol=0.06)
    np.testing.assert_allclose(logs, np.log(draws).mean(axis=0), atol=0.06)


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
@pytest.mark.parametrize("n_topics", [1, 2, 5])
def test_objective_is_above_that_of_the_thesis(gamma, alpha, n_topics):
    """At the best sticks of either; where weights are as uncertain as under the prior it need not be."""
    counts, twin = random_counts(np.random.default_rng(19), 40, n_topics), HDPTopics(gamma, alpha)
    sticks, value = HDPDocuments(gamma, alpha).optimise(columns_of(counts))
    assert value >= twin.loose_objective(counts, *sticks)


def test_one_topic_costs_nothing_but_its_stick():
    """Documents of one topic are certain, whatever the concentration: only the rest of the stick costs."""
    counts = random_counts(np.random.default_rng(20), 1000, 1)
    for alpha in (1e-3, 1.0, 30.0):
        _, value = HDPDocuments(1.0, alpha).optimise(columns_of(counts))
        assert -12.0 < value < 0.0


@pytest.mark.parametrize(("gamma", "alpha"), [(1.0, 0.5), (3.0, 1.0), (0.5, 10.0)])
def test_below_the_log_probability_of_a_tiny_corpus(gamma, alpha):
    # Topics' words are known; q(z) is any; z is enumerated, and u integrated exactly.
    rng = np.random.default_rng(4)
    words = rng.dirichlet(np.ones(4), size=2)  # (K, V)
    corpus = rng.integers(4, size=(2, 3))  # 2 documents of 3 tokens
    model, twin = HDPDocuments(gamma, alpha), HDPTopics(gamma, alpha)
    known = {}
    terms = []
    for z in itertools.product(range(2), repeat=6):
        z = np.reshape(z, (2, 3))
        counts = np.array([np.bincount(row, minlength=2) for row in z])
        key = counts.tobytes()
        if key not in known:
            known[key] = twin.log_prior_assignments(counts, n_points=10)
        terms.append(known[key] + np.log(words[z, corpus]).sum())
    log_p = logsumexp(terms)
    best = -np.inf
    for temperature in (0.0, 0.5, 1.0, 2.0, 5.0):
        resp = words[:, corpus] ** temperature * np.array([0.6, 0.4])[:, None, None]
        resp /= resp.sum(axis=0)
        counts = resp.sum(axis=2).T
        _, value = model.optimise(columns_of(counts))
        elbo = value - xlogy(resp, resp).sum() + np.sum(resp * np.log(words[:, corpus]))
        best = max(best, elbo)
        assert elbo < log_p
    if alpha <= 1.0:
        assert log_p - best < 5.0  # not below by a constant


@pytest.mark.parametrize("a", [0.01, 1.0, 20.0])
def test_dirichlet_is_the_dirichlet_multinomial(a):
    counts = random_counts(np.random.default_rng(5), 6, 4)
    model, columns = DirichletDocuments(a), columns_of(counts)
    sticks, value = model.optimise(columns)
    expected = LDATopics(a).objective(counts)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(model.objective(None, columns), expected, rtol=1e-12)
    np.testing.assert_allclose(model.prior(sticks), np.full(4, a))
    np.testing.assert_allclose(model.weights(sticks), stick_weights(sticks.rho)[:-1])
    assert model.rest(sticks) == 0.0


def test_dirichlet_concentration_is_one_over_k_by_default():
    counts = random_counts(np.random.default_rng(6), 6, 4)
    columns = columns_of(counts)
    automatic, explicit = DirichletDocuments(), DirichletDocuments(0.25)
    assert automatic.optimise(columns)[1] == explicit.optimise(columns)[1]
    np.testing.assert_array_equal(automatic.prior(automatic.start(np.ones(4), 6.0)), 0.25)


@pytest.mark.parametrize("weighted", [False, True])
def test_count_terms(weighted):
    rng = np.random.default_rng(15)
    values, weight = 10.0 ** rng.uniform(-8.0, 6.0, 30), rng.gamma(1.0, 1.0, 30)
    indptr = np.array([0, 0, 12, 12, 30, 30], dtype=np.intp)  # three topics are empty
    a = np.array([1.0, 1e-290, 1.0, 0.3, 1e3])
    found = count_terms(values, indptr, a, weight if weighted else None)
    expected = count_sums(values, indptr, a, weight if weighted else np.ones(30))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


# The search --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
@pytest.mark.parametrize("n_docs", [7.0, 7e6])
def test_gradient(gamma, alpha, n_docs):
    rng = np.random.default_rng(7)
    counts = random_counts(rng, 7, 4)
    problem = HDPDocuments(gamma, alpha)._problem(columns_of(counts, np.full(7, n_docs / 7)))
    x = np.concatenate([rng.normal(0.0, 2.0, 4), rng.normal(np.log(n_docs), 2.0, 4)])
    terms = problem(*np.split(x, 2))
    found = np.concatenate([terms.logit_rho, terms.log_omega])
    scale = 1.0 + n_docs
    expected = approx_fprime(x, lambda x: problem(*np.split(x, 2)).value / scale, 1e-6)
    # Forward differences: errors of 1e-6 times the curvature, and of rounding / 1e-6.
    np.testing.assert_allclose(found / scale, expected, rtol=1e-4, atol=1e-4 * max(alpha, 1.0))


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
@pytest.mark.parametrize("n_topics", [1, 4])
def test_slope_in_the_concentration(gamma, alpha, n_topics):
    rng = np.random.default_rng(22)
    columns = columns_of(random_counts(rng, 30, n_topics), rng.gamma(2.0, 1.0, 30))
    model, sticks = HDPDocuments(gamma, alpha), random_sticks(rng, n_topics)
    terms = model._problem(columns)(logit(sticks.rho), np.log(sticks.omega))
    lower, upper = (
        HDPDocuments(gamma, alpha * factor).objective(sticks, columns)
        for factor in (np.exp(-1e-4), np.exp(1e-4))
    )
    slope = terms.log_concentrations["doc_concentration"]
    assert slope == pytest.approx((upper - lower) / 2e-4, rel=1e-5, abs=1e-4)


def test_remainders_are_smooth_where_the_series_begins():
    below, above = 20.0 * (1.0 - 1e-15), 20.0
    for low, high in zip(*map(beta_remainders, np.array([[below], [above]])), strict=True):
        np.testing.assert_allclose(low, high, rtol=3e-12)  # lnG(20) and 20 psi(20) are about 50


@pytest.mark.parametrize(("gamma", "alpha"), PARAMETERS)
def test_optimum_is_above_its_start(gamma, alpha):
    rng = np.random.default_rng(8)
    columns = columns_of(random_counts(rng, 30, 5))
    model = HDPDocuments(gamma, alpha)
    for start in (random_sticks(rng, 5), model.start(np.ones(5), 30.0)):
        sticks, value = model.optimise(columns, start)
        assert value >= model.objective(start, columns)
        np.testing.assert_allclose(value, model.objective(sticks, columns), rtol=1e-8, atol=1e-5)
        again, same = model.optimise(columns, sticks)
        np.testing.assert_allclose(same, value, rtol=1e-7, atol=1e-5)
        assert np.all(again.omega > 0)


def test_no_iteration_returns_the_start_or_better():
    rng = np.random.default_rng(9)
    columns, start = columns_of(random_counts(rng, 30, 5)), random_sticks(rng, 5)
    model = HDPDocuments()
    _, value = model.optimise(columns, start, max_iter=1)
    assert model.objective(start, columns) <= value <= model.optimise(columns, start)[1]


@pytest.mark.parametrize("gamma", [1e-3, 1e3])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_docs", [1.0, 1e6])
@pytest.mark.parametrize(
    ("n_rows", "n_topics", "n_empty"), [(1, 1, 0), (1, 3, 2), (20, 1, 1), (20, 6, 3)]
)
def test_extremes_are_finite(gamma, alpha, n_docs, n_rows, n_topics, n_empty):
    counts = random_counts(np.random.default_rng(10), n_rows, n_topics)
    counts[:, 0] += 1e-8
    columns = columns_of(with_empty(counts, n_empty), np.full(n_rows, n_docs))
    model = HDPDocuments(gamma, alpha)
    sticks, value = model.optimise(columns)
    assert np.isfinite(value)
    assert np.all((sticks.rho > 0) & (sticks.rho < 1) & (sticks.omega > 0))
    assert np.all(np.isfinite(sticks.omega))
    pi = np.append(model.weights(sticks), model.rest(sticks))
    assert np.all(pi > 0)
    np.testing.assert_allclose(pi.sum(), 1.0)
    start = model.start(np.zeros(len(sticks.rho)), n_docs)
    assert np.isfinite(model.objective(start, columns))
    tiny = Sticks(np.full(len(sticks.rho), 1e-12), np.full(len(sticks.rho), 1e-3))
    assert np.isfinite(model.objective(tiny, columns))


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_without_documents_the_posterior_is_the_prior(gamma):
    model = HDPDocuments(gamma, 1.0)
    sticks, value = model.optimise(columns_of(np.empty((0, 3))))
    np.testing.assert_allclose(value, 0.0, atol=1e-5)
    np.testing.assert_allclose(sticks.rho, 1.0 / (1.0 + gamma), rtol=1e-2)
    np.testing.assert_allclose(sticks.omega, 1.0 + gamma, rtol=1e-2)


def test_documents_have_no_order():
    rng = np.random.default_rng(11)
    counts = random_counts(rng, 50, 4)
    model = HDPDocuments()
    _, value = model.optimise(columns_of(counts))
    _, permuted = model.optimise(columns_of(rng.permutation(counts)))
    np.testing.assert_allclose(permuted, value, rtol=1e-10)


@pytest.mark.parametrize("model", [HDPDocuments(), DirichletDocuments()], ids=["hdp", "dirichlet"])
def test_weights_are_repetition(model):
    rng = np.random.default_rng(12)
    counts, times = random_counts(rng, 20, 4), rng.integers(1, 4, 20)
    repeated, expected = model.optimise(columns_of(np.repeat(counts, times, axis=0)))
    sticks, value = model.optimise(columns_of(counts, times.astype(float)))
    # Both searches stop within some 1e-6 nats of the optimum, where weights differ by its root.
    np.testing.assert_allclose(value, expected, rtol=1e-8)
    np.testing.assert_allclose(model.weights(sticks), model.weights(repeated), rtol=1e-3)


def test_an_empty_document_never_helps():
    counts = random_counts(np.random.default_rng(13), 20, 4)
    for alpha in (0.1, 1.0, 10.0):
        model = HDPDocuments(1.0, alpha)
        _, value = model.optimise(columns_of(counts))
        _, with_one = model.optimise(columns_of(np.vstack([counts, np.zeros(4)])))
        assert with_one <= value


# Model selection ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_docs", [300, 1000])
def test_each_empty_topic_lowers_the_objective(n_docs):
    # The claim of Fig. 5.3: each one costs several nats, and about as much as the one before.
    counts, model = corpus(n_docs, 10), HDPDocuments()
    values = [model.optimise(columns_of(with_empty(counts, n)))[1] for n in range(4)]
    drops = -np.diff(values)
    assert np.all((drops > 3.5) & (drops < 5.0)), drops


def with_rule_of_thumb(model, columns):
    """Best objective over rho with omega by (5.39)."""
    problem = model._problem(columns)
    n_topics = len(columns.indptr) - 1
    log_omega = np.log(problem.ones + problem.zeros)

    def negated(x):
        terms = problem(x, log_omega)
        return -terms.value, -terms.logit_rho

    start = model.optimise(columns)[0]
    x = np.log(start.rho / (1.0 - start.rho))
    bounds = [(-25.0, 25.0)] * n_topics
    return -minimize(negated, x, jac=True, method="L-BFGS-B", bounds=bounds).fun


@pytest.mark.parametrize("n_topics", [10, 20, 50])
def test_omega_of_the_rule_of_thumb_is_nats_below(n_topics):
    columns, model = columns_of(corpus(1000, n_topics)), HDPDocuments()
    _, value = model.optimise(columns)
    assert value - with_rule_of_thumb(model, columns) > 2.0


def test_weights_follow_the_use_of_topics():
    counts = corpus(1000, 10)
    model = HDPDocuments()
    sticks, _ = model.optimise(columns_of(counts))
    weights = model.weights(sticks)
    use = (counts > 0).sum(axis=0)
    assert np.corrcoef(weights, use)[0, 1] > 0.9
    assert model.rest(sticks) < 0.01


# Unions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_union_gains(weighted):
    rng = np.random.default_rng(14)
    counts = with_empty(random_counts(rng, 30, 5), 1)
    times = rng.integers(1, 4, 30) if weighted else np.ones(30, dtype=int)
    columns = columns_of(counts, times.astype(float) if weighted else None)
    docs = np.concatenate([np.flatnonzero(n) for n in counts.T])
    a = rng.gamma(1.0, 0.3, 6)
    pairs = np.array([(1, 0), (0, 4), (0, 2), (3, 5), (5, 1)])
    dense = np.repeat(counts, times, axis=0)
    expected = [union_gain(dense[:, i], dense[:, j], a[i], a[j]) for i, j in pairs]
    found = union_document_gains(pairs, docs, columns, a)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
    found = nested_union_gains(pairs, counts, a, times.astype(float) if weighted else None)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
    assert union_document_gains(pairs[:0], docs, columns, a).shape == (0,)


def joined(counts, pair):
    """Counts (D, K - 1) with the pair in one column, topics by decreasing mass."""
    out = np.column_stack([np.delete(counts, pair, axis=1), counts[:, pair].sum(axis=1)])
    return out[:, np.argsort(-out.sum(axis=0), kind="stable")]


PAIRS = np.array([(0, 1), (0, 4), (2, 3), (4, 3)])


@pytest.mark.parametrize("concentration", [None, 0.05, 2.0])
def test_union_gains_of_a_finite_prior_are_exact(concentration):
    counts = with_empty(random_counts(np.random.default_rng(15), 40, 5), 1)
    columns, model = columns_of(counts), DirichletDocuments(concentration)
    docs = np.concatenate([np.flatnonzero(n) for n in counts.T])
    sticks, here = model.optimise(columns)
    expected = [model.optimise(columns_of(joined(counts, pair)))[1] - here for pair in PAIRS]
    gains = partial(union_document_gains, PAIRS, docs, columns)
    found = model.union_gains(gains, columns, sticks)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


def test_union_gains_of_the_process_leave_room_for_better_sticks():
    """One document in eleven uses a topic, either half of it: what sticks add is counted in."""
    counts, model = corpus(1000, 6), HDPDocuments()
    few = np.arange(1000) % 11 == 0
    counts[~few, 5] = 0.0
    halves = np.column_stack([counts, counts[:, 5]])
    halves[::2, 5] = halves[1::2, 6] = 0.0
    columns = columns_of(halves)
    docs = np.concatenate([np.flatnonzero(n) for n in halves.T])
    sticks, here = model.optimise(columns)
    exact = model.optimise(columns_of(counts))[1] - here
    gains = partial(union_document_gains, np.array([(5, 6)]), docs, columns)
    [found] = model.union_gains(gains, columns, sticks)
    assert exact <= found <= exact + 20.0
