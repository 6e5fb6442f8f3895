"""Scores and states are those of the hidden Markov model that is published: its starts and transitions."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.hmm.local import emission_table
from tests.estimators import chains

ROWS, _ = chains()
EMISSIONS = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])


def letters(rng, length):
    """A sequence of three categories from two states that last."""
    states = np.cumsum(rng.random(length) < 0.1) % 2
    return np.array([[rng.choice(3, p=EMISSIONS[state])] for state in states])


LETTERS = [letters(np.random.default_rng(i), 30) for i in range(6)]


def fitted(X, n_components, **parameters):
    given = {"proposals": None, "max_iter": 200, "tol": 1e-2, "random_state": 0, **parameters}
    return HDPHMMVB(n_components, **given).fit(X)


def forward(model, x):
    """Log density (T,) of each row given those before it, by the textbook."""
    each = model._densities(model._sequences([x], None, None).batch.x)
    log_first, log_trans = np.log(model.startprob_), np.log(model.transmat_)
    message, out = log_first, []
    for row in each:
        joint = message + row
        out.append(logsumexp(joint))
        message = logsumexp((joint - out[-1])[:, np.newaxis] + log_trans, axis=0)
    return np.array(out)


@pytest.mark.parametrize("n_components", [1, 3, 8])
@pytest.mark.parametrize("allocation", ["hdp", "dirichlet"])
def test_a_forward_pass_with_what_is_published_gives_the_scores(n_components, allocation):
    model = fitted(ROWS[:4], n_components, allocation=allocation)
    new = [x[:40] for x in ROWS[4:]]
    expected = [forward(model, x) for x in new]
    for found, by_hand in zip(model.score_samples(new), expected, strict=True):
        assert_allclose(found, by_hand, rtol=1e-9, atol=1e-9)
    assert_allclose(model.score(new), np.concatenate(expected).mean(), rtol=1e-9)


@pytest.mark.parametrize("n_components", [1, 2, 8])
@pytest.mark.parametrize("n_sequences", [1, 6])
def test_short_sequences_have_all_the_probability(n_components, n_sequences):
    """However little is known of starts and transitions, and however many states have hardly a row."""
    model = fitted(LETTERS[:n_sequences], n_components, observation="categorical")
    rows = np.vstack([model.startprob_, model.transmat_])
    assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    for length in (1, 2, 4):
        every = [np.array(x)[:, np.newaxis] for x in itertools.product(range(3), repeat=length)]
        logs = [scores.sum() for scores in model.score_samples(every)]
        assert logsumexp(logs) == pytest.approx(0.0, abs=1e-9)


def posterior(model, x):
    """Probabilities (T, K) of the states by both passes, and by the forward pass alone."""
    likelihood = model._model.likelihood
    table = emission_table(likelihood, model._coef, likelihood.prepare(x))
    forward, backward = [model.startprob_ * table[0]], [np.ones(table.shape[1])]
    for row in table[1:]:
        forward.append(forward[-1] @ model.transmat_ * row)
    for row in table[:0:-1]:
        backward.insert(0, model.transmat_ @ (row * backward[0]))
    forward, both = np.array(forward), np.array(forward) * backward
    return both / both.sum(axis=1, keepdims=True), forward / forward.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("n_components", [1, 3, 8])
def test_states_are_inferred_with_what_is_published(n_components, low_memory):
    """Of few rows, in which the weights of the fit's own steps say something else."""
    model = fitted(LETTERS[:2], n_components, observation="categorical", low_memory=low_memory)
    for x in LETTERS[2:]:
        both, forward = posterior(model, x)
        assert_allclose(model.predict_proba(x), both, atol=1e-10)
        message = None
        for row, expected in zip(x, forward, strict=True):
            proba, message = model.predict_next(row, message)
            assert_allclose(proba, expected, atol=1e-10)
