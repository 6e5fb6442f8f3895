"""Laws of streams whose topics come in waves, and of clusters that lie evenly: K is that of the batch."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import MemoryBoundedTopicVB


def waves(n_waves, n_epochs, *, seed, n_topics=10, n_docs=25, n_rows=50):
    """Epochs of rows, documents and topics; those of a wave share topics that no other wave has."""
    centers = 6.0 * np.random.default_rng(seed).normal(size=(n_waves * n_topics, 3))
    rng, found = np.random.default_rng(7), []
    groups = np.repeat(np.arange(n_docs), n_rows)
    for wave, _ in itertools.product(range(n_waves), range(n_epochs)):
        shares = rng.dirichlet(np.full(n_topics, 2.0 / n_topics), size=n_docs)
        labels = [wave * n_topics + rng.choice(n_topics, n_rows, p=share) for share in shares]
        labels = np.concatenate(labels)
        found.append((centers[labels] + rng.normal(size=(len(labels), 3)), groups, labels))
    return found


def check_waves(epochs, memory_bound):
    """After a stream there are as many topics as in a batch of all epochs, and the bound is no lower.

    What a bound on memory has joined depends on rounding. It may cost a few topics, but makes no more of
    them.
    """
    X, _, labels = map(np.concatenate, zip(*epochs, strict=True))
    groups = np.concatenate([groups + 1000 * e for e, (_, groups, _) in enumerate(epochs)])
    model, batch = MemoryBoundedTopicVB(memory_bound), MemoryBoundedTopicVB(None)
    for rows, own, _ in epochs:
        model.partial_fit(rows, groups=own)
    batch.fit(X, groups=groups)
    n_topics, least, lost = labels.max() + 1, 0.8, 0.12
    if memory_bound is None:
        least, lost = 0.9, 0.05
        assert model.lower_bound_ > batch.lower_bound_ - 0.01 * abs(batch.lower_bound_)
    assert least * n_topics <= model.n_components_ <= 1.1 * n_topics
    rand = adjusted_rand_score(labels, model.predict(X, groups=groups))
    assert rand > adjusted_rand_score(labels, batch.predict(X, groups=groups)) - lost


@pytest.mark.extended
@pytest.mark.parametrize("memory_bound", [None, pytest.param(10_000, marks=pytest.mark.slow)])
def test_topics_in_waves(memory_bound):
    check_waves(waves(3, 4, seed=1), memory_bound)


@pytest.mark.slow
@pytest.mark.parametrize("memory_bound", [None, 100_000, 10_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_topics_in_long_waves(seed, memory_bound):
    check_waves(waves(3, 12, seed=seed), memory_bound)


EVEN = {
    "square": [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
    "cube": list(itertools.product([0.0, 1.0], repeat=3)),
    "grid": list(itertools.product([0.0, 1.0, 2.0], repeat=2)),
    "triangle": [(1.0, 0.0), (-0.5, 0.866), (-0.5, -0.866)],
    "simplex": np.eye(4).tolist(),
}


def even_clusters(name, distance, n_rows, seed):
    """Rows of equally many documents, all of which mix clusters at even distances alike."""
    centers, rng = np.array(EVEN[name]), np.random.default_rng(seed)
    labels = rng.integers(len(centers), size=n_rows)
    rows = distance * centers[labels] + rng.normal(size=(n_rows, centers.shape[1]))
    return rows, np.arange(n_rows) // (n_rows // 60)


@pytest.mark.extended
@pytest.mark.parametrize("name", EVEN)
def test_clusters_that_lie_evenly(name):
    for seed in range(3):
        X, groups = even_clusters(name, 20.0, 3000, seed)
        assert MemoryBoundedTopicVB().fit(X, groups=groups).n_components_ == len(EVEN[name])


def test_a_square_whose_principal_axis_is_its_diagonal():
    X, groups = even_clusters("square", 20.0, 6000, seed=1)
    model = MemoryBoundedTopicVB().fit(X, groups=groups)
    assert model.n_components_ == 4
    assert model.lower_bound_ > -25_500


@pytest.mark.slow
@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("distance", [8.0, 20.0, 100.0])
def test_many_clusters_that_lie_evenly(name, distance):
    for seed, n_rows in itertools.product(range(10), [1200, 6000]):
        X, groups = even_clusters(name, distance, n_rows, seed)
        found = MemoryBoundedTopicVB().fit(X, groups=groups).n_components_
        assert len(EVEN[name]) <= found <= len(EVEN[name]) + 1


def row_of_clusters(n_clusters, n_features, distance, seed):
    """Clusters in a row, mixed evenly by 60 documents of 20 rows: cuts in two leave several on both sides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1200, n_features))
    X[:, 0] += distance * rng.integers(n_clusters, size=len(X))
    axes = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    return X @ axes, np.arange(len(X)) // 20


@pytest.mark.quarter
@pytest.mark.parametrize("n_clusters, n_features", [(5, 6), (7, 6)])
def test_clusters_in_a_row(n_clusters, n_features):
    """All of these ended as a single topic."""
    for seed, distance in itertools.product(range(2), [8.0, 30.0]):
        X, groups = row_of_clusters(n_clusters, n_features, distance, seed)
        assert MemoryBoundedTopicVB().fit(X, groups=groups).n_components_ == n_clusters


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_many_clusters_on_a_line(seed):
    """Of twenty clusters that overlap, five or six topics had been found, with a Rand index of .14 to .27."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(20, 5.0), size=60)
    labels = np.concatenate([rng.choice(20, size=20, p=share) for share in shares])
    X = rng.uniform(0, 100, size=20)[labels] + rng.normal(size=len(labels))
    X, groups = X[:, np.newaxis], np.arange(len(X)) // 20
    model = MemoryBoundedTopicVB().fit(X, groups=groups)
    assert 8 <= model.n_components_ <= 20
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) > 0.4


@pytest.mark.extended
def test_parts_keep_to_the_most_components():
    X, groups = row_of_clusters(7, 6, 8.0, seed=0)
    for most in range(1, 9):
        model = MemoryBoundedTopicVB(max_components=most).fit(X, groups=groups)
        assert model.n_components_ <= most


@pytest.mark.quarter
@pytest.mark.parametrize("n_features", [1, 3, 8])
def test_one_cluster_stays_one(n_features):
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(2000, n_features))
        assert MemoryBoundedTopicVB().fit(X, groups=np.arange(2000) // 20).n_components_ == 1


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_few_rows_or_small_weights_are_no_error(weight):
    """Parts may then all have less than a row, and still one has to stay."""
    X = np.random.default_rng(0).normal(size=(16, 2))
    for n_rows in 2, 4, 16:
        documents = {"groups": np.arange(n_rows) // 2, "sample_weight": np.full(n_rows, weight)}
        assert MemoryBoundedTopicVB().fit(X[:n_rows], **documents).n_components_ >= 1
