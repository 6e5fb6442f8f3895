"""Rows of documents that say nothing of topics change nothing: rows of zero counts, and all missing ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from sklearn_bnp import (
    ColumnObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    MultinomialObservation,
)
from tests.estimators import TOPICS, assert_same_state, grouped_rows, public_state

ROWS, GROUPS, LABELS = grouped_rows(20, 12)
COUNTS = np.array(
    [np.random.default_rng(i).multinomial(6, TOPICS[k]) for i, k in enumerate(LABELS)], dtype=float
)
PARTS = ColumnObservation(
    [("one", "multinomial", np.arange(4)), ("other", "multinomial", np.arange(4, COUNTS.shape[1]))]
)
# Name -> (estimator, rows, value of rows that say nothing).
KINDS = {
    "words": (HDPTopicVB(observation="multinomial"), COUNTS, 0.0),
    "words-sparse": (HDPTopicVB(observation=MultinomialObservation("auto")), csr_array(COUNTS), 0.0),
    "words-in-parts": (HDPTopicVB(observation=PARTS), COUNTS, 0.0),
    "words-stochastic": (
        HDPTopicVB(3, observation="multinomial", learning_method="stochastic", n_batches=1, max_iter=3),
        COUNTS, 0.0,
    ),
    "words-bounded": (MemoryBoundedTopicVB(500, observation="multinomial"), COUNTS, 0.0),
    "full": (HDPTopicVB(observation="gaussian"), ROWS, np.nan),
    "diag": (HDPTopicVB(observation=GaussianObservation("diag")), ROWS, np.nan),
    "bernoulli": (HDPTopicVB(observation="bernoulli", max_iter=15), 1.0 * (COUNTS > 1), np.nan),
}  # fmt: skip
SILENT = np.random.default_rng(0).permutation(np.arange(len(GROUPS) + 60))[:60]


@pytest.fixture(params=KINDS)
def kind(request):
    """An estimator, rows with their groups, and which of them say nothing."""
    model, x, value = KINDS[request.param]
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    silent = np.isin(np.arange(len(GROUPS) + 60), SILENT)
    dense = x.toarray() if isinstance(x, csr_array) else x
    X, groups = np.full((len(silent), dense.shape[1]), value), np.empty(len(silent), dtype=int)
    X[~silent], groups[~silent] = dense, GROUPS
    groups[silent] = np.random.default_rng(1).integers(GROUPS.max() + 1, size=60)
    return model, type(x)(X) if isinstance(x, csr_array) else X, groups, silent


def state(model):
    """Fitted attributes, without seconds."""
    if isinstance(model, HDPTopicVB):
        return public_state(model)
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found["history_"] = [record._replace(seconds=0.0) for record in found["history_"]]
    return found


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_say_nothing_change_nothing(kind):
    model, X, groups, silent = kind
    weight = 0.5 + groups % 3 * (groups > 0)
    for given in ({}, {"sample_weight": weight}):
        own = {name: value[~silent] for name, value in given.items()}
        expected = state(model.fit(X[~silent], groups=groups[~silent], **own))
        shares = model.transform(X[~silent], groups=groups[~silent])
        score = model.score(X[~silent], groups=groups[~silent])
        resp = model.predict_proba(X[~silent], groups=groups[~silent])
        assert_same_state(state(model.fit(X, groups=groups, **given)), expected)
        found = model.transform(X, groups=groups)
        assert_array_equal(found[~silent], shares)
        assert model.score(X, groups=groups) == score
        each = model.predict_proba(X, groups=groups)
        assert_array_equal(each[~silent], resp)
        assert_allclose(each[silent], found[silent], rtol=1e-6)
        assert_array_equal(model.predict(X, groups=groups), each.argmax(axis=1))


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_streams_and_documents_of_such_rows_alone(kind):
    model, X, groups, silent = kind
    first = groups < 10
    if model.get_params().get("learning_method") == "stochastic":
        model = model.set_params(total_samples=20)
    states = []
    for rows in (~silent, np.ones(len(silent), dtype=bool)):
        model = clone(model)
        for part in (first & rows, ~first & rows):
            model.partial_fit(X[part], groups=groups[part])
        states.append(state(model))
    assert_same_state(*states)
    alone = X[silent], groups[silent]
    shares = model.transform(alone[0], groups=alone[1])
    assert_allclose(shares, shares[:1].repeat(60, axis=0))
    assert_allclose(model.predict_proba(alone[0], groups=alone[1]), shares)
    assert_array_equal(model.score_samples(alone[0], groups=alone[1]), 0.0)
    model.partial_fit(alone[0], groups=alone[1])
    assert model.n_components_ == states[0]["n_components_"]
    with pytest.raises(ValueError, match="No row of X says anything of topics"):
        model.fit(alone[0], groups=alone[1])


def test_responsibilities_of_given_rows():
    """They are given for all rows, and those of documents of weight 0 and of silent rows are not used."""
    X = np.concatenate([COUNTS, np.zeros((30, COUNTS.shape[1]))])
    groups = np.concatenate([GROUPS, np.arange(30) % 20])
    weight = 1.0 * (groups != 3)
    resp = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))
    told = np.arange(len(X)) < len(COUNTS)
    fits = [
        HDPTopicVB(observation="multinomial", init_params=resp[rows], max_iter=0).fit(
            X[rows], groups=groups[rows], sample_weight=weight[rows]
        )
        for rows in (told, told | True)
    ]
    assert_same_state(*({**public_state(model), "init_params": None} for model in fits))


def test_zeros_of_bernoulli_and_poisson_rows_say_something():
    X = np.concatenate([COUNTS, np.zeros((30, COUNTS.shape[1]))])
    groups = np.concatenate([GROUPS, np.arange(30) % 20])
    for observation in ("poisson", "bernoulli"):
        model = HDPTopicVB(observation=observation, max_iter=0)
        model.fit(np.minimum(X, 1.0), groups=groups)
        assert model._statistics[:, -1].sum() == pytest.approx(len(X))
