"""Full Gaussians and rows with missing values: what is missing has a factor of its own in the objective.

Statistics of a row depend on who explains it, so that the laws of the registry, which have one s(x) a
row, do not apply as they are. What they promise does.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.inputs.batches import ArraySource, Batch
from sklearn_bnp.mixture.local import local_pass
from tests.reference import completion, partitions
from tests.reference.allocations import DirichletProcess
from tests.reference.families import NormalWishart

from .families import log_volume
from .harness import fresh_learner, one_hot, quiet_fit, random_resp, shuffled
from .rows import clouds, flat_clouds, with_missing
from .test_monotone import assert_rises


class Full:
    """As an entry of the registry."""

    def __init__(self, zero_mean, **parameters):
        self.observation = GaussianObservation(zero_mean=zero_mean, **parameters)
        self.complete_rows = flat_clouds if zero_mean else clouds
        self.rows = with_missing(self.complete_rows)

    def twin(self, likelihood, prior):
        own = likelihood.complete if likelihood.has_missing else likelihood
        volume = log_volume(own, 3)
        return NormalWishart(prior.m, prior.kappa, prior.nu, prior.b, own.ridge, volume)


@pytest.fixture(params=[False, True], ids=["", "zero-mean"])
def full(request):
    return Full(request.param, reg_covar=0.01)


def fitted_on(full, X, resp, **parameters):
    model = DPMixtureVB(
        observation=full.observation, init_params=resp, proposals=None, max_iter=0, **parameters
    )
    return quiet_fit(model, X)


def engine(full, seed, n=60, K=3):
    """Likelihood for rows with missing values, its prior, prepared rows, coefficients from statistics."""
    rng = np.random.default_rng(seed)
    X, _ = full.rows(rng, n, spread=2.0)
    fitted = fitted_on(full, X, random_resp(rng, n, K))
    model = fitted._learner_.model
    coef = model.coefficients(fitted._learner_.totals)
    return model, X, model.likelihood.prepare(X), coef


def unpacked(likelihood, coef):
    """Quadratic and linear parts of coefficients, number by number."""
    D, out = likelihood.n_features, []
    for row in coef:
        a, p = np.zeros((D, D)), 0
        for i in range(D):
            for j in range(i, D):
                a[i, j] = a[j, i] = -row[p] * (2.0 if i == j else 1.0)
                p += 1
        b = row[p : p + D] if likelihood.complete.linear else np.zeros(D)
        out.append((a, b, row[-3]))
    return out


def statistics_by_hand(likelihood, coef, row):
    """Completed statistics of one row under coefficients of one component."""
    [(a, b, _)] = unpacked(likelihood, coef[np.newaxis])
    D, linear = likelihood.n_features, likelihood.complete.linear
    if np.isnan(row).all():
        return np.append(np.zeros(likelihood.n_statistics - 1), 1.0)
    x, square, entropy = completion.moments(a, b, row)
    missing = np.isnan(row)
    square = square - np.diag(np.where(missing, likelihood.ridge, 0.0))
    scale = np.log(likelihood.scaling.scale)[missing].sum()
    parts = [square[np.triu_indices(D)], x if linear else [], [1.0, entropy + scale, 1.0]]
    return np.concatenate(parts)


# ---------------------------------------------------------------------- kernels against twins


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_weights_are_integrals(full, dtype):
    """Over what is missing: of the row's density under coefficients, less the ridge it does not pay."""
    model, _, z, coef = engine(full, 1)
    likelihood = model.likelihood
    table = likelihood.log_table(coef, z.astype(dtype))
    assert table.dtype == dtype
    expected = np.empty(table.shape)
    for k, (a, b, c) in enumerate(unpacked(likelihood, coef)):
        for n, row in enumerate(z):
            missing = np.isnan(row)
            if missing.all():
                expected[n, k] = coef[k, -1]
                continue
            value = completion.conditional(a, b, c + coef[k, -1], row).log_weight
            value += 0.5 * np.diag(a)[missing] @ likelihood.ridge[missing]
            expected[n, k] = value + np.log(likelihood.scaling.scale)[missing].sum()
    tol = 1e-10 if dtype == np.float64 else 2e-4
    assert_allclose(table, expected, rtol=tol, atol=tol * np.abs(expected).max())


def test_statistics_are_conditional_moments(full):
    """And ``coef . s(x)`` is the log weight: the entropy makes up for what completion adds."""
    model, _, z, coef = engine(full, 2)
    likelihood, rng = model.likelihood, np.random.default_rng(0)
    shares = rng.dirichlet(np.full(3, 0.4), size=len(z))
    shares[rng.random(shares.shape) < 0.3] = 0.0
    s = np.empty((3, likelihood.n_statistics))
    likelihood.summarise(z, shares, s, coef=coef)
    rows = np.array([[statistics_by_hand(likelihood, c, row) for row in z] for c in coef])
    assert_allclose(s, np.einsum("nk,knp->kp", shares, rows), rtol=1e-10, atol=1e-10)
    weights = np.einsum("knp,kp->nk", rows, coef)
    assert_allclose(likelihood.log_table(coef, z), weights, rtol=1e-10, atol=1e-10)


def test_no_completion_beats_the_conditional_one(full):
    """So each local step is the best for q(x_mis) as well as for the responsibilities."""
    model, _, z, coef = engine(full, 3)
    likelihood, rng = model.likelihood, np.random.default_rng(0)
    other = coef * np.exp(0.1 * rng.standard_normal(coef.shape))
    best = likelihood.log_table(coef, z)
    for n, row in enumerate(z):
        for k in range(3):
            s = statistics_by_hand(likelihood, other[k], row)
            assert s @ coef[k] <= best[n, k] + 1e-9 * (1 + abs(best[n, k]))


def test_features_are_statistics_under_all_the_data(full):
    """What stands for a row where no component is in sight sums to what `summarise` has then."""
    model, _, z, _ = engine(full, 4)
    likelihood, shares = model.likelihood, np.random.default_rng(0).random((len(z), 4))
    s = np.empty((4, likelihood.n_statistics))
    likelihood.summarise(z, shares, s)
    features = likelihood.features(z)
    assert_allclose(s, shares.T @ features, rtol=1e-12, atol=1e-12)
    coef = np.zeros(likelihood.n_statistics)
    i, j = np.triu_indices(3)
    coef[: len(i)] = -likelihood.whole[i, j] * np.where(i == j, 0.5, 1.0)
    expected = [statistics_by_hand(likelihood, coef, row) for row in z]
    assert_allclose(features, expected, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------------- complete rows


def test_without_missing_values_it_is_the_ordinary_family(full):
    """Evidence, coefficients, densities and local steps of rows that happen to be complete."""
    rng = np.random.default_rng(5)
    X, _ = full.complete_rows(rng, 80, 2.0)
    model = fitted_on(full, X, random_resp(rng, 80, 3))._learner_.model
    own, prior = model.likelihood, model.prior
    incomplete = own.with_missing()
    z, s = own.prepare(X), np.empty((3, own.n_statistics))
    own.summarise(z, random_resp(rng, 80, 3), s)
    lifted = incomplete.from_complete(s)
    assert_allclose(incomplete.evidence(prior, lifted), own.evidence(prior, s), rtol=1e-12)
    assert_allclose(incomplete.log_predictive(prior, lifted, z), own.log_predictive(prior, s, z))
    coef, plain = incomplete.coefficients(prior, lifted), own.coefficients(prior, s)
    steps = []
    for likelihood, c in ((incomplete, coef), (own, plain)):
        out, entropy = np.empty((3, likelihood.n_statistics)), np.empty(3)
        resp = likelihood.local_step(c, z, None, None, out, entropy)
        steps.append((resp, out, entropy))
    (resp, out, entropy), (resp0, out0, entropy0) = steps
    assert_allclose(resp, resp0, rtol=1e-9, atol=1e-12)
    assert_allclose(out, incomplete.from_complete(out0), rtol=1e-9, atol=1e-9)
    assert_allclose(entropy, entropy0, rtol=1e-9, atol=1e-9)
    for name, value in own.attributes(prior, s).items():
        assert_array_equal(incomplete.attributes(prior, lifted)[name], value)


# ---------------------------------------------------------------------- the objective


def log_p_of_observed(full, fitted, X):
    """``log p(x_seen)`` by enumeration of partitions and quadrature within blocks, with the ridge.

    Of blocks with two missing values there must be none.
    """
    model = fitted._learner_.model
    twin = full.twin(model.likelihood, model.prior)
    z, scale = model.likelihood.prepare(X), np.log(model.likelihood.scaling.scale)
    terms, known = [], {}

    def block_evidence(block):
        if block not in known:
            rows = z[list(block)]
            value = completion.log_marginal_over_one(
                lambda x: twin.evidence(x, np.ones(len(x))), rows, 1.0
            )
            known[block] = value + scale[np.isnan(rows).any(axis=0)].sum()
        return known[block]

    for partition in partitions.partitions(len(z)):
        sizes = tuple(sorted(map(len, partition)))
        prior = DirichletProcess(1.0).log_prior_partition(sizes)
        terms.append(prior + sum(block_evidence(block) for block in partition))
    return float(logsumexp(terms))


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ["soft", "hard", "fitted"])
@pytest.mark.parametrize("missing", [(0, 0), (3, 2)])
def test_below_the_exact_marginal_likelihood(full, kind, missing):
    """Of four rows, one entry of which is missing.

    The exact value is with the ridge in every entry, also in the one that is missing, where the bound
    pays none: it may be above by no more than that ridge takes from a row at the most.
    """
    full.observation.set_params(reg_covar=1e-6)
    rng = np.random.default_rng(6)
    X, labels = full.complete_rows(rng, 4)
    X[missing] = np.nan
    resp = {"soft": random_resp(rng, 4, 3), "hard": one_hot(labels, 3)}.get(kind)
    if kind == "fitted":
        start = DPMixtureVB(
            observation=full.observation,
            init_params=one_hot(labels, 3),
            proposals=None,
            max_iter=30,
        )
        fitted = quiet_fit(start, X)
    else:
        fitted = fitted_on(full, X, resp)
    exact = log_p_of_observed(full, fitted, X)
    assert fitted.lower_bound_ <= exact + 1e-4
    if kind == "fitted":  # and it is not just anything
        assert fitted.lower_bound_ > exact - 15.0


@pytest.mark.quarter
@pytest.mark.parametrize("n_components", [1, 6])
def test_the_objective_never_falls(full, n_components):
    """Several batches, proposals of all kinds, and what they leave behind is what they promised."""
    rng = np.random.default_rng(7)
    X, _ = full.rows(rng, 300)
    model = DPMixtureVB(
        n_components, observation=full.observation, n_batches=3, max_iter=30, random_state=0
    )
    fitted = quiet_fit(model, X)
    assert_rises(fitted.lower_bounds_)
    assert sum(sum(lap.accepted.values()) for lap in fitted.history_) > 0


def test_every_visit_raises_it(full):
    rng = np.random.default_rng(8)
    X, _ = full.rows(rng, 200, spread=1.5)
    resp = random_resp(rng, 200, 4)
    model = fitted_on(full, X, resp)._learner_.model
    learner, source = fresh_learner(model), ArraySource(X, None, 3)
    learner.start(resp.T @ model.likelihood.features(model.likelihood.prepare(X)))
    learner.run_lap(source, propose=False)
    values = [learner.lower_bound]
    for _ in range(5):
        learner.begin_lap()
        for batch in shuffled(learner, source):
            learner.visit(batch)
            values.append(learner.lower_bound)
        learner.end_lap(propose=False)
    assert_rises(values)
    assert values[-1] > values[0] + 1.0


def test_statistics_are_additive(full):
    model, X, _, coef = engine(full, 9)
    uids, likelihood = np.arange(3), model.likelihood
    whole = local_pass(Batch(0, X), likelihood, coef, uids)
    parts = [
        local_pass(Batch(i, x), likelihood, coef, uids) for i, x in enumerate((X[:23], X[23:]))
    ]
    total = parts[0].add(parts[1])
    assert_allclose(total.s, whole.s, rtol=1e-10, atol=1e-9)
    assert_allclose(total.entropy, whole.entropy, rtol=1e-10, atol=1e-10)
    assert_allclose(whole.n.sum(), len(X), rtol=1e-12)


def test_evidence_has_the_coefficients_as_its_gradient(full):
    """Also in the entropy of what is missing, and in the two counts."""
    model, _, z, coef = engine(full, 10)
    likelihood, prior = model.likelihood, model.prior
    s = np.empty((3, likelihood.n_statistics))
    likelihood.local_step(coef, z, None, None, s, np.empty(3))
    expected = likelihood.coefficients(prior, s)
    for p in range(s.shape[1]):
        step = np.zeros(s.shape[1])
        step[p] = 1e-4
        slope = (likelihood.evidence(prior, s + step) - likelihood.evidence(prior, s - step)) / 2e-4
        assert_allclose(slope, expected[:, p], rtol=1e-5, atol=1e-5)


def test_densities_are_of_what_is_seen(full):
    """By quadrature over what is missing of the density of complete rows."""
    model, _, z, coef = engine(full, 11)
    likelihood, prior = model.likelihood, model.prior
    s = np.empty((3, likelihood.n_statistics))
    likelihood.local_step(coef, z, None, None, s, np.empty(3))
    one = np.flatnonzero(np.isnan(z).sum(axis=1) == 1)[:5]
    actual = likelihood.log_predictive(prior, s, z[one])
    own, scale = s[:, :-2], np.log(likelihood.scaling.scale)
    for row, value in zip(z[one], actual, strict=True):
        for k in range(3):
            expected = completion.log_marginal_over_one(
                lambda x, k=k: likelihood.complete.log_predictive(prior, own[k : k + 1], x)[0, 0],
                row[np.newaxis], 1.0,
            )  # fmt: skip
            assert_allclose(value[k], expected + scale[np.isnan(row)][0], rtol=1e-7, atol=1e-7)
