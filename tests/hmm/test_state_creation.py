"""New states for one state: laws of the nested model, and what creation finds."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln, logsumexp

from sklearn_bnp._kernels._responsibilities import Quadratic
from sklearn_bnp.hmm.creation import create_states
from sklearn_bnp.hmm.nested_chain import Chain, NestedModel
from sklearn_bnp.hmm.nested_links import Links, NestedSettings
from sklearn_bnp.hmm.sampling import StateSample
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood import BernoulliObservation, GaussianObservation
from tests.laws.families import LEADING_FAMILIES
from tests.laws.harness import features_of
from tests.reference import chains

STICKY = NestedSettings(1.0, 20.0)


@pytest.fixture(params=LEADING_FAMILIES)
def family(request):
    return request.param


def bound_to(observation, X):
    """The likelihood of a family for rows X."""
    moments = column_moments(
        [Batch(None, X, None)], covariance=observation.needs_covariance or False
    )
    return observation.bind(moments)


def adapted(likelihood, z):
    """The prior that a model of one state would have."""
    s = np.ones((1, len(z))) @ features_of(likelihood, z)
    return likelihood.update_prior(likelihood.prior, s, 20)


def in_blocks(rng, labels, length):
    """An order of rows in which labels come in blocks, as those of sticky states do."""
    order = np.argsort(labels, kind="stable")
    blocks = np.array_split(order, len(order) // length)
    return np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])


def problem(family, n, *, only=None, spread=1.0, n_runs=4, seed=0):
    """Likelihood, prior, sample and labels: runs of equal length, states that last."""
    rng = np.random.default_rng(seed)
    X, labels = family.rows(rng, n, spread=spread)
    likelihood = bound_to(family.observation, X)
    order = in_blocks(rng, labels, 15)
    if only is not None:
        order = order[labels[order] == only]
    z = likelihood.prepare(X[order])
    edges = np.linspace(0, len(z), n_runs + 1).astype(np.int64)
    prior = adapted(likelihood, likelihood.prepare(X))
    return likelihood, prior, StateSample(z, edges), labels[order]


def clouds(rng, n, K, *, distance=8.0, n_runs=4, length=15):
    """Gaussian likelihood, adapted prior, sample and labels of K round clouds on a circle."""
    labels = rng.integers(K, size=n)
    labels = labels[in_blocks(rng, labels, length)] if length > 1 else labels
    angle = 2 * np.pi * labels / K
    radius = distance / (2 * np.sin(np.pi / K)) if K > 1 else 0.0
    X = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.standard_normal((n, 2))
    likelihood = bound_to(GaussianObservation(), X)
    z = likelihood.prepare(X)
    edges = np.linspace(0, n, n_runs + 1).astype(np.int64)
    return likelihood, adapted(likelihood, z), StateSample(z, edges), labels


def hard_chain(likelihood, sample, labels):
    """The chain of given labels, pair by pair."""
    J = labels.max() + 1
    s = np.eye(J)[labels].T @ features_of(likelihood, sample.z)
    counts, start = np.zeros((J, J)), np.zeros(J)
    for a, b in itertools.pairwise(sample.indptr):
        start[labels[a]] += 1
        np.add.at(counts, (labels[a : b - 1], labels[a + 1 : b]), 1)
    return Chain(s, Links(counts, start[np.newaxis], np.empty((J, 0))))


def dirichlet_evidence(prior, counts):
    """Of one row of counts, by Gamma functions."""
    return (
        gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
        + np.sum(gammaln(prior + counts) - gammaln(prior))
    )  # fmt: skip


def allocation_by_hand(settings, links):
    counts, [start], J = links.counts, links.entries, len(links.counts)
    value = dirichlet_evidence(np.full(J, settings.concentration / J), start)
    for k in range(J):
        prior = np.full(J, settings.concentration / J)
        prior[k] += settings.stickiness
        value += dirichlet_evidence(prior, counts[k])
    return value


def pass_by_hand(likelihood, prior, sample, settings, chain):
    """A pass by recursions in logarithms over every run: the chain, its entropy from pairs."""
    J = len(chain.s)
    log_table = features_of(likelihood, sample.z) @ likelihood.coefficients(prior, chain.s).T
    first = settings.concentration / J + chain.links.entries[0]
    log_first = digamma(first) - digamma(first.sum())
    trans = settings.concentration / J + settings.stickiness * np.eye(J) + chain.links.counts
    log_trans = digamma(trans) - digamma(trans.sum(axis=1, keepdims=True))
    resp, counts, start, entropy = [], np.zeros((J, J)), np.zeros(J), 0.0
    for a, b in itertools.pairwise(sample.indptr):
        posterior = chains.by_recursion(log_table[a:b], log_first, log_trans)
        resp.append(posterior.resp)
        counts += posterior.pairs.sum(axis=0)
        start += posterior.resp[0]
        entropy += chains.coarse_entropy(posterior, np.arange(J))
    resp = np.concatenate(resp)
    links = Links(counts, start[np.newaxis], np.empty((J, 0)))
    return Chain(resp.T @ features_of(likelihood, sample.z), links, entropy, resp)


def objective_by_hand(likelihood, prior, settings, chain):
    return (
        likelihood.evidence(prior, chain.s).sum() + chain.entropy
        + allocation_by_hand(settings, chain.links)
    )  # fmt: skip


# ---------------------------------------------------------------------- the nested model


def test_a_pass_by_hand(family):
    """Overlapping states, so that many rows are shared."""
    likelihood, prior, sample, labels = problem(family, 120, spread=2.0)
    chain = hard_chain(likelihood, sample, labels)
    model = NestedModel(likelihood, prior, sample, STICKY)
    found = model.pass_over(chain)
    expected = pass_by_hand(likelihood, prior, sample, STICKY, chain)
    assert_allclose(found.resp, expected.resp, atol=1e-9)
    assert_allclose(found.s, expected.s, rtol=1e-8, atol=1e-8)
    assert_allclose(found.links.counts, expected.links.counts, atol=1e-8)
    assert_allclose(found.links.entries, expected.links.entries, atol=1e-9)
    # A difference of sums of some hundred nats.
    assert_allclose(found.entropy, expected.entropy, rtol=1e-8, atol=1e-8)
    by_hand = objective_by_hand(likelihood, prior, STICKY, expected)
    assert_allclose(model.bound(found), by_hand, rtol=1e-9)
    whole = likelihood.evidence(prior, found.s.sum(axis=0, keepdims=True))[0]
    assert_allclose(model.gain(found, prior), by_hand - whole, rtol=1e-7, atol=1e-7)


def test_passes_never_lower_the_bound(family):
    likelihood, prior, sample, labels = problem(family, 300, spread=2.0, seed=1)
    model = NestedModel(likelihood, prior, sample, STICKY)
    shuffled = np.where(np.random.default_rng(2).random(len(labels)) < 0.3, labels[::-1], labels)
    chain = model.pass_over(hard_chain(likelihood, sample, shuffled))
    bounds = [model.bound(chain)]
    for _ in range(10):
        chain = model.pass_over(chain)
        bounds.append(model.bound(chain))
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("edges", [(0, 6), (0, 2, 6), (0, 1, 2, 3, 4, 5, 6)], ids=str)
def test_bound_is_below_the_exact_evidence(edges):
    """Against a sum over all labels of six rows in three states."""
    rng = np.random.default_rng(3)
    X = (rng.random((6, 4)) < 0.5).astype(float)
    likelihood = bound_to(BernoulliObservation(), X)
    sample = StateSample(likelihood.prepare(X), np.array(edges, dtype=np.int64))
    settings = NestedSettings(1.5, 2.0)
    model = NestedModel(likelihood, likelihood.prior, sample, settings)
    exact = []
    for labels in itertools.product(range(3), repeat=6):
        chain = hard_chain(likelihood, sample, np.array([*labels, 2])[:6])
        if len(chain.s) < 3:  # the highest labels are not in use
            pad = 3 - len(chain.s)
            links = Links(
                np.pad(chain.links.counts, (0, pad)),
                np.pad(chain.links.entries, ((0, 0), (0, pad))),
                np.empty((3, 0)),
            )
            chain = Chain(np.pad(chain.s, ((0, pad), (0, 0))), links)
        exact.append(objective_by_hand(likelihood, likelihood.prior, settings, chain))
    exact = logsumexp(exact)
    chain = hard_chain(likelihood, sample, np.array([0, 1, 2, 0, 1, 2]))
    for _ in range(5):
        chain = model.pass_over(chain)
        assert model.bound(chain) < exact
    assert model.bound(chain) > exact - 10.0  # of 16: it is no empty bound


def test_others_count_where_the_prior_adapts():
    rng = np.random.default_rng(4)
    likelihood, prior, sample, labels = clouds(rng, 400, 2)
    others = hard_chain(likelihood, sample, labels[::-1].copy()).s
    settings = NestedSettings(1.0, 20.0, others)
    model = NestedModel(likelihood, prior, sample, settings)
    chain = model.iterate(hard_chain(likelihood, sample, labels), 5, 0.0)
    model.adapt(chain.s, 5)
    assert model.prior is not prior
    whole = chain.s.sum(axis=0, keepdims=True)
    after = objective_by_hand(likelihood, model.prior, settings, chain)
    after += likelihood.evidence(model.prior, others).sum()
    before = likelihood.evidence(prior, np.concatenate([whole, others])).sum()
    assert_allclose(model.gain(chain, prior), after - before, rtol=1e-9)


def test_without_others_the_prior_stays():
    likelihood, prior, sample, labels = clouds(np.random.default_rng(4), 400, 2)
    model = NestedModel(likelihood, prior, sample, STICKY)
    chain = model.iterate(hard_chain(likelihood, sample, labels), 5, 0.0)
    model.adapt(chain.s, 5)
    assert model.prior is prior


def test_far_rows_are_clamped():
    """Each state's rows are some hundred standard deviations from the other; the bound still rises."""
    rng = np.random.default_rng(5)
    likelihood, prior, sample, labels = clouds(rng, 200, 2, distance=2e4)
    chain = hard_chain(likelihood, sample, labels)
    prior = likelihood.update_prior(prior, chain.s, 20)
    coef = likelihood.coefficients(prior, chain.s)
    table, _ = likelihood.likelihood_table(coef, sample.z, np.exp(-200.0))
    assert_allclose(table.min(), np.exp(-200.0))
    assert_array_equal(table.max(axis=1), 1.0)
    model = NestedModel(likelihood, prior, sample, STICKY)
    first = model.pass_over(chain)
    second = model.pass_over(first)
    assert model.bound(second) >= model.bound(first) - 1e-9 * abs(model.bound(first))
    assert_array_equal(second.resp.argmax(axis=1), labels)


def test_cut_joins_halves_of_a_state():
    rng = np.random.default_rng(6)
    likelihood, prior, sample, labels = clouds(rng, 900, 3)
    model = NestedModel(likelihood, prior, sample, STICKY)
    torn = np.where((labels == 2) & (rng.random(900) < 0.5), 3, labels)
    chain = model.pass_over(hard_chain(likelihood, sample, torn))
    cut = model.cut(chain)
    assert len(cut.s) == 3
    assert_allclose(np.sort(cut.s[:, -1]), np.sort(np.bincount(labels)), atol=1.0)
    true = model.pass_over(hard_chain(likelihood, sample, labels))
    assert model.cut(true) is true


def test_pruning_gives_scattered_rows_back():
    rng = np.random.default_rng(7)
    likelihood, prior, sample, labels = clouds(rng, 900, 3)
    model = NestedModel(likelihood, prior, sample, STICKY)
    scattered = labels.copy()
    scattered[rng.choice(900, 40, replace=False)] = 3
    chain = model.pass_over(hard_chain(likelihood, sample, scattered))
    pruned = model.pruned(chain, 3)
    assert (len(chain.s), len(pruned.s)) == (4, 3)
    assert model.bound(pruned) > model.bound(chain)
    assert model.pruned(pruned, 3) is pruned


# ---------------------------------------------------------------------- creation


def create(likelihood, prior, sample, *, n_most=20, seed=0, settings=None, n_threads=1):
    if settings is None:
        settings = NestedSettings(1.0, 20.0, np.empty((0, likelihood.n_statistics)))
    nested = NestedModel(likelihood, prior, sample, settings, n_threads, lenient=True)
    return create_states(nested, n_most, np.random.RandomState(seed))


def test_sums_add_up(family):
    likelihood, prior, sample, _ = problem(family, 600)
    found = create(likelihood, prior, sample)
    J = len(found.s)
    counts, entries, exits = found.links
    assert counts.shape == (J, J) and entries.shape == (1, J) and exits.shape == (J, 0)
    assert counts.min() >= 0 and entries.min() >= 0
    assert_allclose(found.s.sum(axis=0), features_of(likelihood, sample.z).sum(axis=0), atol=1e-7)
    assert_allclose(entries.sum(), 4.0)
    # A row is the first of its run or is come to from the one before.
    assert_allclose(counts.sum(axis=0) + entries[0], found.s[:, -1], atol=1e-8)
    assert_allclose(counts.sum() + entries.sum(), sample.total)


def test_gain_is_the_nested_objective_less_that_of_one_state(family):
    """One more pass by hand can only add to it, and adds little: passes had settled."""
    likelihood, prior, sample, _ = problem(family, 600, seed=1)
    found = create(likelihood, prior, sample, settings=STICKY)
    again = pass_by_hand(likelihood, prior, sample, STICKY, Chain(*found[:2]))
    whole = likelihood.evidence(prior, found.s.sum(axis=0, keepdims=True))[0]
    gain = objective_by_hand(likelihood, prior, STICKY, again) - whole
    assert found.gain - 1e-6 <= gain <= found.gain + 0.01 * sample.total


@pytest.mark.parametrize("seed", range(3))
def test_states_are_found(family, seed):
    likelihood, prior, sample, labels = problem(family, 600, seed=seed)
    found = create(likelihood, prior, sample, seed=seed)
    assert found.gain > 1.0
    model = NestedModel(likelihood, prior, sample, STICKY)
    resp = model.pass_over(Chain(*found[:2])).resp
    table = np.eye(3)[labels].T @ np.eye(len(found.s))[resp.argmax(axis=1)]
    assert table.max(axis=0).sum() > 0.95 * sample.total  # purity


@pytest.mark.parametrize("seed", range(3))
def test_one_state_is_left_alone(family, seed):
    """One cloud, under the prior that suits it."""
    likelihood, _, sample, _ = problem(family, 600, only=0, seed=seed)
    of_numbers = likelihood.has_missing and hasattr(likelihood, "ridge")
    if of_numbers or likelihood.quadratic in (Quadratic.DIAG, Quadratic.SPHERICAL):
        # to whom a tilted cloud is not one, nor, with one variance for all columns, an oblong one
        z = np.random.default_rng(seed).permuted(sample.z, axis=0)
        sample = sample._replace(z=(z - np.nanmean(z, axis=0)) / np.nanstd(z, axis=0))
    s = features_of(likelihood, sample.z).sum(axis=0, keepdims=True)
    prior = likelihood.prior_alone(adapted(likelihood, sample.z), s)
    assert create(likelihood, prior, sample, seed=seed) is None


def test_alternating_rows_are_told_apart_by_their_order():
    """Equal marginals of x, but states that follow each other strictly: transitions pay."""
    rng = np.random.default_rng(8)
    n = 1000
    labels = np.arange(n) % 2
    X = np.where(labels, 1.2, -1.2)[:, np.newaxis] + rng.standard_normal((n, 1))
    likelihood = bound_to(GaussianObservation(), X)
    z, plain = likelihood.prepare(X), NestedSettings(1.0, 0.0)
    ordered = create(
        likelihood, adapted(likelihood, z), StateSample(z, np.array([0, n])), settings=plain
    )
    shuffled = StateSample(z[rng.permutation(n)], np.array([0, n]))
    other = create(likelihood, adapted(likelihood, z), shuffled, settings=plain)
    assert len(ordered.s) == 2
    assert np.trace(ordered.links.counts) < 0.05 * n
    assert ordered.gain > (0.0 if other is None else other.gain) + 0.3 * n  # log 2 at the most


def test_runs_of_one_row():
    rng = np.random.default_rng(9)
    likelihood, prior, sample, labels = clouds(rng, 600, 3, length=1, n_runs=600)
    found = create(likelihood, prior, sample)
    assert len(found.s) == 3
    assert_array_equal(found.links.counts, 0.0)
    [start] = found.links.entries
    assert_allclose(np.sort(start), np.sort(np.bincount(labels)), atol=3.0)
    assert_allclose(start, found.s[:, -1])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(n):
    """No warning, no split of what is next to nothing."""
    likelihood, prior, sample, _ = clouds(np.random.default_rng(10), 200, 2)
    few = StateSample(sample.z[:n], np.array([0, n]))
    assert create(likelihood, prior, few) is None


def test_equal_rows_are_not_split():
    likelihood, prior, sample, _ = clouds(np.random.default_rng(10), 200, 2)
    equal = StateSample(np.repeat(sample.z[:1], 50, axis=0), np.array([0, 20, 50]))
    assert create(likelihood, prior, equal) is None


def test_most_states():
    likelihood, prior, sample, _ = clouds(np.random.default_rng(11), 2000, 16)
    assert create(likelihood, prior, sample, n_most=1) is None
    for n_most in (2, 3, 11):
        assert 2 <= len(create(likelihood, prior, sample, n_most=n_most).s) <= n_most
    # More than the ten seeds that are tried first.
    assert len(create(likelihood, prior, sample, n_most=100).s) == 16


def test_same_generator_same_states():
    likelihood, prior, sample, _ = clouds(np.random.default_rng(12), 1500, 5, distance=3.0)
    one, again = (create(likelihood, prior, sample, seed=3) for _ in range(2))
    threaded = create(likelihood, prior, sample, seed=3, n_threads=2)
    for other in (again, threaded):
        for a, b in zip((one.s, *one.links), (other.s, *other.links), strict=True):
            assert_array_equal(a, b)
        assert one.gain == other.gain


def test_single_precision():
    likelihood, prior, sample, _ = clouds(np.random.default_rng(13), 900, 3)
    wide = create(likelihood, prior, sample)
    narrow = create(likelihood, prior, sample._replace(z=sample.z.astype(np.float32)))
    assert len(narrow.s) == len(wide.s) == 3
    assert_allclose(narrow.gain, wide.gain, rtol=1e-3)
