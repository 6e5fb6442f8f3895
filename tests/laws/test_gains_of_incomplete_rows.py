"""Gains of states and components that complete missing entries: a search rises, step by step.

What a split gains is measured against one component. That must be the same for all splits of the same rows,
however they complete these.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import ColumnObservation, DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture

from .harness import quiet_fit
from .test_state_exchanges import chain_of
from .test_state_oversplit import model_and_totals, toys

OBSERVATIONS = {
    "full": GaussianObservation(),
    "zero-mean": GaussianObservation(zero_mean=True),
    "diag": GaussianObservation("diag"),
    "columns": ColumnObservation([("a", "gaussian", [0, 1]), ("b", "gaussian", [2])]),
}


def with_gaps(rows, labels):
    """Three columns, of which a third of the entries are missing, and every fifth row as a whole."""
    rng = np.random.default_rng(0)
    out = [np.column_stack([x, x.sum(axis=1) + rng.normal(size=len(x))]) for x in rows]
    for x in out:
        x[rng.random(x.shape) < 1 / 3] = np.nan
        x[::5] = np.nan
    return out, labels


@pytest.fixture(params=OBSERVATIONS, scope="module")
def gapped(request):
    rows, labels, _ = toys(spread=2.0, lengths=(60,) * 3)
    rows, labels = with_gaps(rows, labels)
    return rows, labels, OBSERVATIONS[request.param]


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_raise_the_gain_of_states(gapped, weighted):
    rows, labels, observation = gapped
    weight = np.linspace(0.5, 2.0, len(rows)) if weighted else None
    model, _, sample = model_and_totals(rows, labels, weight, observation)
    nested = NestedModel(model.likelihood, model.prior, sample, NestedSettings(1.0, 20.0))
    chain, gains = chain_of(nested, labels), []
    for _ in range(12):
        gains.append(nested.gain(chain, model.prior))
        chain = nested.pass_over(chain)
    assert np.diff(gains).min() > -1e-8


def test_all_states_are_measured_against_the_same_one(gapped):
    rows, labels, observation = gapped
    model, _, sample = model_and_totals(rows, labels, None, observation)
    nested = NestedModel(model.likelihood, model.prior, sample, NestedSettings(1.0, 20.0))
    shuffled = np.random.default_rng(1).permutation(labels)
    chains = [chain_of(nested, own) for own in (labels, shuffled, labels % 2)]
    one = [nested.bound(chain) - nested.gain(chain, model.prior) for chain in chains]
    assert_allclose(one, one[0], atol=1e-8)


def test_that_one_gains_nothing(gapped):
    """Once it suits the entries that it completes."""
    rows, labels, observation = gapped
    model, _, sample = model_and_totals(rows, labels, None, observation)
    nested = NestedModel(model.likelihood, model.prior, sample, NestedSettings(1.0, 20.0))
    chain = chain_of(nested, np.zeros_like(labels))
    for _ in range(30):
        chain = nested.pass_over(chain)
    assert abs(nested.gain(chain, model.prior)) < 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_raise_the_gain_of_components(gapped, weighted):
    rows, labels, observation = gapped
    X = np.concatenate(rows)
    fitted = DPMixtureVB(observation=observation, proposals=None, max_iter=1, random_state=0)
    model = quiet_fit(fitted, X)._learner_.model
    rng = np.random.default_rng(1)
    z, mass = model.likelihood.prepare(X), rng.uniform(0.5, 1.0, len(X))
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    others = np.empty((0, model.likelihood.n_statistics))
    small = RestrictedMixture(model, Sample(z, mass, weight), others, adapt=False)
    shares = np.eye(labels.max() + 1)[labels] * mass[:, np.newaxis]
    shares = shares if weight is None else shares * weight[:, np.newaxis]
    s = np.empty((shares.shape[1], model.likelihood.n_statistics))
    model.likelihood.summarise(z, shares, s)
    gains, one = [], []
    for _ in range(12):
        s, entropy, _ = small.step(s)
        gains.append(small.gain(s, entropy, model.prior))
        one.append(small.objective(s, entropy) - gains[-1])
    assert np.diff(gains).min() > -1e-8
    assert_allclose(one, one[0], atol=1e-8)
