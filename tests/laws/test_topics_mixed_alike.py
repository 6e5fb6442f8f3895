"""Documents of rows that mix all topics alike say nothing of them; the rows do."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, HDPTopicVB

from .harness import quiet_fit

CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])


def clusters(separation, seed, n_rows=1200):
    rng = np.random.default_rng(seed)
    of = rng.integers(4, size=n_rows)
    return separation * CORNERS[of] + rng.standard_normal((n_rows, 2)), of


@pytest.mark.quarter
@pytest.mark.parametrize("n_docs", [1, 12, 60])
@pytest.mark.parametrize(("separation", "seed"), [(6, 0), (20, 1), (50, 2)])
def test_topics_are_found(separation, seed, n_docs):
    X, of = clusters(separation, seed)
    groups = np.arange(len(X)) % n_docs
    model = quiet_fit(HDPTopicVB(observation="gaussian", random_state=seed), X, groups=groups)
    assert model.n_components_ == 4
    assert adjusted_rand_score(of, model.predict(X, groups=groups)) > 0.95
    truth = HDPTopicVB(observation="gaussian", init_params=np.eye(4)[of], proposals=None)
    bound = quiet_fit(truth, X, groups=groups).lower_bound_
    assert model.lower_bound_ > bound - 1.0


def test_weights_and_gaps():
    X, _ = clusters(20, 0)
    groups, rng = np.arange(len(X)) // 40, np.random.default_rng(0)
    holes = rng.random(X.shape) < 0.1
    holes[holes.all(axis=1)] = False
    weight = rng.choice([0.5, 1.0, 2.0], size=30)[groups]
    X = np.where(holes, np.nan, X)
    model = HDPTopicVB(observation="gaussian", random_state=0)
    assert quiet_fit(model, X, groups=groups, sample_weight=weight).n_components_ == 4


@pytest.mark.quarter
@pytest.mark.parametrize("observation", ["bernoulli", "poisson", "categorical"])
def test_other_families(observation):
    rng = np.random.default_rng(0)
    of, shape = rng.integers(3, size=900), (3, 12)
    if observation == "bernoulli":
        X = (rng.random((900, 12)) < rng.choice([0.05, 0.95], size=shape)[of]).astype(float)
    elif observation == "poisson":
        X = rng.poisson(rng.choice([1.0, 20.0], size=shape)[of])
    else:
        likely = rng.integers(4, size=shape)[of]
        X = np.where(rng.random((900, 12)) < 0.9, likely, rng.integers(4, size=(900, 12)))
    model = HDPTopicVB(observation=observation, random_state=0)
    quiet_fit(model, X, groups=np.arange(900) // 30)
    mixture = quiet_fit(DPMixtureVB(observation=observation, random_state=0), X)
    assert model.n_components_ == mixture.n_components_ == 3


@pytest.mark.extended
def test_documents_in_a_stream():
    X, _ = clusters(20, 0)
    model = HDPTopicVB(observation="gaussian", random_state=0)
    for part in np.split(np.arange(len(X)), 6):
        model.partial_fit(X[part], groups=part // 50)
    assert model.n_components_ == 4
