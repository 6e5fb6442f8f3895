"""Small data and comparisons that the tests of the estimators share."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

from sklearn_bnp.estimator.publishing import complete

CENTERS = 6.0 * np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.3], [0.0, 1.5, -0.3]])
SHARES = (0.5, 0.3, 0.2)
# For tests of what surrounds a search. These find components and remove some, in any estimator. The other
# proposals that are on by default go over all rows once more, and take most of the time of small fits.
FEW_PROPOSALS = ("birth", "merge", "delete")
# Bad values of the parameters that all estimators with a learner share, but for ranges of their own.
BAD_VALUES = {
    "n_components": [0, -1, 2.5, "three", None, [1]],
    "max_components": [0, 1.5, "many"],
    "learning_method": ["online", 1, None],
    "batch_size": [0, -3, 2.5, "all"],
    "n_batches": [0, -3, 2.5, "all"],
    "max_iter": [-1, 1.5, None],
    "tol": [-1e-3, np.nan, "small", None],
    "n_init": [0, 1.5, None],
    "warm_start": ["yes", 2, None],
    "memoize": ["yes", 2, None],
    "max_batches": [1, 0, 2.5, "three"],
    "learning_offset": [-1.0, "late"],
    "total_samples": [0, 1.5, "all"],
    "random_state": ["seed", -1, 1.5],
    "n_jobs": [0, 1.5, "all"],
    "verbose": ["loud", -1],
}


def blobs(n_rows=300, seed=0, centers=CENTERS):
    """Rows of well separated clusters of unequal sizes, shuffled, and their labels."""
    rng = np.random.default_rng(seed)
    sizes = np.diff(np.round(np.cumsum([0.0, *SHARES]) * n_rows).astype(int))
    labels = rng.permutation(np.repeat(np.arange(len(SHARES)), sizes))
    return centers[labels] + rng.normal(size=(n_rows, centers.shape[1])), labels


def one_hot(labels):
    """Responsibilities (n, K) that leave no doubt."""
    return np.eye(labels.max() + 1)[labels]


def public_state(model):
    """Fitted attributes, without seconds, which are never the same twice."""
    complete(model)
    state = {name: value for name, value in vars(model).items() if name.endswith("_")}
    del state["_learner_"]
    state.pop("labels_", None)  # of the last batch alone, where all else is of the whole data
    state["history_"] = [
        lap._replace(seconds=0.0, proposal_seconds=0.0) for lap in state["history_"]
    ]
    return state


def assert_same_state(actual, expected):
    """Equal to the last bit: two results of `public_state`."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_equal(actual[name], value, err_msg=name)


def assert_same_array(actual, expected):
    """Raise unless two arrays have the same type, shape and values; NaN is equal to itself."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def same_partition(first, second):
    """Whether two labellings are one partition under other names."""
    pairs = set(zip(np.asarray(first).tolist(), np.asarray(second).tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


TOPICS = np.kron(np.eye(3), np.full(4, 0.25))  # (3, 12): each topic has words of its own


def matches(model, topics=TOPICS):
    """Whether each topic is one of the true ones."""
    distance = 0.5 * np.abs(model.means_[:, np.newaxis] - topics).sum(axis=2)
    nearest = distance.argmin(axis=1)
    return len(set(nearest)) == len(topics) == len(distance) and distance.min(axis=1).max() < 0.1


def documents(n_docs=80, n_tokens=40, seed=0, topics=TOPICS):
    """Counts of words (n_docs, V) of documents that mix topics, and their shares of these."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(topics), 0.3), size=n_docs)
    return rng.multinomial(n_tokens, shares @ topics), shares


def grouped_rows(n_docs=30, n_rows=20, seed=0, centers=CENTERS):
    """Rows of documents that mix clusters, shuffled; the document and the cluster of each."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_docs), n_rows))
    shares = rng.dirichlet(np.full(len(centers), 0.4), size=n_docs)
    labels = np.array([rng.choice(len(centers), p=shares[d]) for d in groups])
    return centers[labels] + rng.normal(size=(len(labels), centers.shape[1])), groups, labels


def chains(n_sequences=6, n_rows=60, seed=0, centers=CENTERS, stay=0.9):
    """Sequences (a list) of rows of a sticky chain of clusters, of unequal lengths, and their states."""
    rng = np.random.default_rng(seed)
    K = len(centers)
    trans = np.full((K, K), (1.0 - stay) / (K - 1))
    np.fill_diagonal(trans, stay)
    sequences, states = [], []
    for length in rng.integers(n_rows // 2, 3 * n_rows // 2, size=n_sequences):
        path = [rng.integers(K)]
        while len(path) < length:
            path.append(rng.choice(K, p=trans[path[-1]]))
        states.append(np.array(path))
        sequences.append(centers[path] + rng.normal(size=(length, centers.shape[1])))
    return sequences, states


def shuffled_groups(groups, seed=0):
    """An order of rows in which groups are mixed, and the rows of each are in the order they were in."""
    order = np.random.default_rng(seed).permutation(groups)
    rows = np.empty(len(groups), dtype=int)
    for group in np.unique(groups):
        rows[order == group] = np.flatnonzero(group == groups)
    return rows


def names(*words):
    """Pattern of a message that holds all the words, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(str(word))})" for word in words)


def cases(parameters):
    """Name and value of every test of a dict from parameters to values that they must not have."""
    return [
        pytest.param(name, value, id=f"{name}={value!r:.30}")
        for name, values in parameters.items()
        for value in values
    ]


def peak_memory(call):
    """Most bytes that arrays took during a call, beyond those there were."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
