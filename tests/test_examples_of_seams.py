"""The examples of classes of one's own are short, import public names only, and keep the laws."""

import ast
import importlib
import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import sklearn_bnp
from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.likelihood import Moments
from tests.example_scripts import EXAMPLES, loaded

PUBLIC = {"sklearn_bnp", "sklearn_bnp.engine", "sklearn_bnp.likelihood", "sklearn_bnp.mixture"}
MOST_LINES = 80


EXAMPLE = loaded("waiting_times")
SHAPE = 2.0


@pytest.fixture
def times():
    """Times of three kinds of rows, and the kinds."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=600, p=[0.5, 0.3, 0.2])
    means = np.array([[1.0, 8.0, 2.0, 0.5], [6.0, 1.0, 0.3, 4.0], [30.0, 0.2, 9.0, 1.0]])
    return rng.gamma(SHAPE, means[labels] / SHAPE), labels


@pytest.fixture
def likelihood():
    moments = Moments(600, np.ones(4), np.ones(4), np.ones(4), np.finfo(float).eps)
    prior = [0.7, 1.0, 1.5, 2.0], [0.2, 3.0, 1.0, 0.5]
    return EXAMPLE.WaitingTimeObservation(SHAPE, prior).bind(moments)


def model(**parameters):
    return DPMixtureVB(
        observation=EXAMPLE.WaitingTimeObservation(SHAPE), random_state=0, **parameters
    )


@pytest.mark.parametrize(
    ("name", "public"),
    [("split_proposal", PUBLIC), ("waiting_times", PUBLIC), ("own_prior", {"sklearn_bnp"})],
)
def test_it_is_short_and_imports_public_names(name, public):
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) < MOST_LINES
    nodes = list(ast.walk(ast.parse(source)))
    whole = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    assert not any(alias.name.startswith("sklearn_bnp") for alias in whole)
    some = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    ours = [node for node in some if node.module.split(".")[0] == "sklearn_bnp"]
    assert ours
    for node in ours:
        assert node.module in public
        module = importlib.import_module(node.module)
        assert {alias.name for alias in node.names} <= set(module.__all__)


def test_evidence_is_the_product_of_predictive_densities(likelihood, times):
    """The chain rule, in the data's units."""
    z = likelihood.prepare(times[0][:40])
    features = likelihood.features(z)
    before = np.cumsum(features, axis=0) - features
    steps = [
        likelihood.log_predictive(likelihood.prior, s[np.newaxis], row[np.newaxis]).item()
        for s, row in zip(before, z, strict=True)
    ]
    evidence = likelihood.evidence(likelihood.prior, features.sum(axis=0))
    assert_allclose(evidence, np.sum(steps), rtol=1e-12)
    assert likelihood.evidence(likelihood.prior, np.zeros(features.shape[1])) == 0.0


def test_predictive_density_integrates_to_one():
    """In one column: the rate integrated out, then the time."""
    moments = Moments(1, np.ones(1), np.ones(1), np.ones(1), np.finfo(float).eps)
    one = EXAMPLE.WaitingTimeObservation(SHAPE, (3.0, 2.0)).bind(moments)
    s = one.features(one.prepare(np.array([[1.5], [4.0]]))).sum(axis=0, keepdims=True)

    def density(x):
        return np.exp(one.log_predictive(one.prior, s, one.prepare(np.array([[x]]))).item())

    assert_allclose(integrate.quad(density, 0, np.inf)[0], 1.0, rtol=1e-7)
    a, b = 3.0 + 2 * SHAPE, 2.0 + 5.5
    assert_allclose(density(2.0), stats.betaprime(SHAPE, a, scale=b).pdf(2.0), rtol=1e-12)


def test_coefficients_are_the_gradient_of_the_evidence(likelihood, times):
    """And the evidence is convex: it lies above its tangents."""
    features = likelihood.features(likelihood.prepare(times[0]))
    rng, prior = np.random.default_rng(1), likelihood.prior
    for _ in range(20):
        s, t = (rng.dirichlet(np.full(len(features), 0.1)) * 50.0 @ features for _ in range(2))
        coef = likelihood.coefficients(prior, s[np.newaxis])[0]
        rise = likelihood.evidence(prior, t) - likelihood.evidence(prior, s)
        assert rise >= coef @ (t - s) - 1e-9
        step = 1e-4 * (t - s)
        slope = likelihood.evidence(prior, s + step) - likelihood.evidence(prior, s - step)
        assert_allclose(slope / 2, coef @ step, rtol=1e-5, atol=1e-9)


def test_attributes_are_of_what_is_drawn(likelihood, times):
    s = 1e4 * likelihood.features(likelihood.prepare(times[0])).mean(axis=0, keepdims=True)
    attributes = likelihood.attributes(likelihood.prior, s)
    drawn = likelihood.sample(attributes, np.zeros(20_000, int), np.random.RandomState(0))
    assert_allclose(drawn.mean(axis=0), attributes["means_"][0], rtol=0.03)
    assert_allclose(attributes["means_"][0], times[0].mean(axis=0), rtol=0.01)


@pytest.mark.parametrize("n_batches", [1, 4])
def test_the_objective_rises_to_what_was_made(times, n_batches):
    X, labels = times
    fitted = model(n_batches=n_batches).fit(X)
    assert np.all(np.diff(fitted.lower_bounds_) > -1e-9 * np.abs(fitted.lower_bound_))
    assert fitted.n_components_ == 3
    assert np.mean(fitted.predict(X) == labels) > 0.95  # both by decreasing size
    assert fitted.lower_bound_ < fitted.score_samples(X).sum()


def test_other_models_take_it(times):
    X, labels = times
    observation = EXAMPLE.WaitingTimeObservation(SHAPE)
    groups = np.repeat(np.arange(20), 30)
    topics = HDPTopicVB(observation=observation, random_state=0).fit(X, groups=groups)
    assert np.isfinite(topics.lower_bound_)
    order = np.argsort(labels, kind="stable")
    states = HDPHMMVB(observation=observation, random_state=0).fit(X[order])
    assert states.n_components_ == 3


def test_streams_copies_and_pickles(times, monkeypatch):
    X, _ = times
    monkeypatch.setitem(sys.modules, "waiting_times", EXAMPLE)
    stream = model()
    for rows in np.array_split(X, 3):
        stream.partial_fit(rows)
    again = pickle.loads(pickle.dumps(stream))
    assert_array_equal(again.predict_proba(X), stream.predict_proba(X))
    changed = clone(stream).set_params(observation__shape=3.0)
    assert changed.observation.shape == 3.0
    assert stream.observation.shape == SHAPE


@pytest.mark.parametrize(
    ("parameters", "rows", "message"),
    [
        ({"shape": -1.0}, None, "shape=-1.0"),
        ({"prior": (0.0, 1.0)}, None, "must be positive"),
        ({}, [[1.0], [-2.0]], "X holds -2"),
        ({}, [[1.0], [np.nan]], "NaN"),
    ],
)
def test_errors_name_what_is_wrong(parameters, rows, message):
    X = [[1.0], [2.0], [3.0]] if rows is None else rows
    observation = EXAMPLE.WaitingTimeObservation(**parameters)
    with pytest.raises(ValueError, match=message):
        DPMixtureVB(observation=observation).fit(X)


def two_bars(n_rows=1000):
    """Two long parallel bars, their labels, and a start from their left and right halves."""
    rng, labels = np.random.default_rng(0), np.arange(n_rows) % 2
    X = rng.standard_normal((n_rows, 2)) * [4.0, 0.2] + np.outer(labels, [0.0, 2.0])
    return X, labels, np.eye(2)[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize("weight", [None, 0.5, 3.0])
def test_a_proposal_leads_out_of_a_dead_end(weight):
    X, labels, halves = two_bars()
    sample_weight = None if weight is None else np.full(len(X), weight)
    start = {"init_params": halves, "n_batches": 4, "random_state": 0}
    stuck = DPMixtureVB(proposals=None, **start).fit(X, sample_weight=sample_weight)
    assert adjusted_rand_score(labels, stuck.predict(X)) < 0.1
    proposal = loaded("split_proposal").SplitAtColumn(1)
    model = DPMixtureVB(proposals=(proposal, "merge"), **start).fit(X, sample_weight=sample_weight)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.99
    assert sum(lap.accepted.get("split", 0) for lap in model.history_) in (1, 2)
    assert model.n_iter_ < 10  # components that were not split are left alone
    assert np.all(np.diff(model.lower_bounds_) > -1e-9 * np.abs(model.lower_bound_))
    assert not vars(proposal).keys() - {"column", "min_rows"}  # a fit works on a clone


def test_a_proposal_is_refused_by_models_it_does_not_suit():
    proposal = loaded("split_proposal").SplitAtColumn()
    with pytest.raises(ValueError, match=r"SplitAtColumn\(\).*suits=\('mixture',\)"):
        HDPHMMVB(proposals=(proposal,)).fit(two_bars()[0])


def test_what_is_needed_is_exported():
    assert {"Likelihood", "ObservationModel", "Moments"} <= set(sklearn_bnp.likelihood.__all__)
