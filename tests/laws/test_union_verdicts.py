"""Verdicts on unions do not depend on how well the weights that would suit them can be guessed."""

import itertools

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, HDPTopicVB

N_CLUSTERS, N_GROUPS, N_ROWS = 4, 100, 6


def topics(concentration, resp, X):
    model = HDPTopicVB(
        resp.shape[1], init_params=resp, observation="gaussian", doc_topic_prior=concentration,
        proposals=None, max_iter=2, random_state=0,
    )  # fmt: skip
    return model.fit(X, groups=np.arange(len(X)) // N_ROWS)


def states(concentration, resp, X):
    model = HDPHMMVB(
        resp.shape[1], init_params=resp, observation="gaussian", start_concentration=concentration,
        transition_concentration=concentration, stickiness=0.0, proposals=None, max_iter=2,
        random_state=0,
    )  # fmt: skip
    return model.fit(X, lengths=np.full(N_GROUPS, N_ROWS))


@pytest.mark.parametrize("concentration", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("make", [topics, states])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unions_that_pay_are_found(make, concentration):
    """Groups that are all alike know the weights well, and a guess of these costs up to hundreds of nats."""
    rng = np.random.default_rng(0)
    z = rng.integers(N_CLUSTERS, size=N_GROUPS * N_ROWS)
    X = 5.0 * z[:, np.newaxis] + rng.normal(size=(len(z), 1))
    halves = 2 * z + rng.integers(2, size=len(z))
    state = make(concentration, np.eye(2 * N_CLUSTERS)[halves], X)._learner_
    model, totals = state.model, state.totals
    weights, here = model.weights(totals), model.allocation_term(totals)
    replacements, gains = [], []
    for i, j in itertools.combinations(range(len(totals.uids)), 2):
        pair = tuple(totals.uids[[i, j]].tolist())
        after = model.blind_union([(pair, pair[0])]).replay(totals, None)
        replacements.append((pair, after.take(after.positions(pair[:1]))))
        there, start = model._candidate(totals, weights, *replacements[-1])
        _, value = model.allocation.optimise(model.counts(there), start)
        gains.append(value + model._gain_of_extra(totals, there) - here)
    of_data = 5.0 - np.array(gains)  # the best sticks make each of these a gain of five nats
    assert np.all(model.replacement_gains(totals, replacements, of_data) > 0)
