"""`HDPTopicVB`: what it learns, from what, and its attributes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import HDPTopicVB, MultinomialObservation
from sklearn_bnp.topics.seeding import spread_documents
from tests.estimators import (
    TOPICS,
    assert_same_state,
    documents,
    grouped_rows,
    matches,
    public_state,
)

X, truth = documents()
HELDOUT, _ = documents(seed=1)
ROWS, GROUPS, LABELS = grouped_rows()
K, V = TOPICS.shape


@pytest.mark.extended
def test_n_init_keeps_the_best():
    """The first of several fits is the one that there is without it."""
    params = {"n_components": 8, "proposals": None, "init_params": "random", "random_state": 0}
    bounds = [HDPTopicVB(n_init=n, **params).fit(X).lower_bound_ for n in range(1, 6)]
    assert np.all(np.diff(bounds) >= 0)
    assert bounds[-1] > bounds[0] + 1.0
    assert HDPTopicVB(**params).fit(X).lower_bound_ == bounds[0]


@pytest.fixture(scope="module")
def model():
    return HDPTopicVB(random_state=0).fit(X)


# ---------------------------------------------------------------------- what is learned


@pytest.mark.quarter
@pytest.mark.parametrize("n_batches", [1, 4])
@pytest.mark.parametrize("n_components", [1, 6])
def test_topics_are_found(n_batches, n_components):
    model = HDPTopicVB(n_components, n_batches=n_batches, random_state=0).fit(X)
    assert model.n_components_ == K
    assert matches(model)
    assert model.converged_


@pytest.mark.parametrize("init_params", ["random", "k-means++", "anchor"])
@pytest.mark.parametrize("allocation", ["hdp", "dirichlet"])
def test_number_of_topics_may_be_fixed(init_params, allocation):
    best = max(
        (
            HDPTopicVB(
                3, proposals=None, allocation=allocation, init_params=init_params, random_state=seed
            ).fit(X)
            for seed in range(3)
        ),
        key=lambda model: model.lower_bound_,
    )
    assert best.n_components_ == 3
    assert matches(best)
    assert all(lap.tried == {} for lap in best.history_)


def test_anchor_words_are_found_at_once():
    corpus, _ = documents(400, 60, seed=3)
    start = HDPTopicVB(3, init_params="anchor", proposals=None, max_iter=0, random_state=0)
    assert matches(start.fit(corpus))


def test_anchor_words_by_random_projection():
    """With more types than the projection has dimensions."""
    topics = np.kron(np.eye(3), np.full(400, 1 / 400))
    corpus, _ = documents(300, 200, seed=0, topics=topics)
    model = HDPTopicVB(3, init_params="anchor", proposals=None, max_iter=0, random_state=0)
    nearest = model.fit(corpus).means_.reshape(3, 3, 400).sum(axis=2)
    assert nearest.max(axis=1).min() > 0.8
    assert sorted(nearest.argmax(axis=1)) == [0, 1, 2]


def test_spread_documents_against_all_divergences():
    """Documents are drawn in proportion to a divergence that is summed over all types here."""
    counts = np.vstack([X[:5], X[2:3], 2 * X[3:4]])

    class Draws:
        """Draws document 2 first, then notes the probabilities, and takes the most probable."""

        seen = []

        def choice(self, n, p):
            self.seen.append(p)
            return 2 if len(self.seen) == 1 else int(np.argmax(p))

    chosen = spread_documents(sparse.csr_matrix(counts, dtype=float), 3, Draws())
    lengths = counts.sum(axis=1)
    mean = counts.sum(axis=0) / lengths.sum()
    smooth = counts + lengths.mean() * mean
    smooth = (smooth / smooth.sum(axis=1, keepdims=True))[:, mean > 0]
    divergence = lengths[:, np.newaxis] * [
        [np.sum(p * np.log(p / q)) for q in smooth[chosen]] for p in smooth
    ]
    assert_allclose(Draws.seen[0], lengths / lengths.sum())
    for p, nearest in zip(
        Draws.seen[1:], (divergence[:, 0], divergence[:, :2].min(axis=1)), strict=True
    ):
        assert_allclose(p, nearest / nearest.sum(), atol=1e-9)
    assert Draws.seen[1][5] == pytest.approx(0.0, abs=1e-12)  # a copy of the seed
    copies = sparse.csr_matrix(np.tile(X[:1], (4, 1)), dtype=float)
    assert len(set(spread_documents(copies, 4, np.random.RandomState(0)))) == 4


def test_finite_allocation_finds_its_topics():
    model = HDPTopicVB(6, allocation="dirichlet", random_state=0).fit(X)
    assert model.n_components_ == K
    assert matches(model)
    assert model.doc_topic_prior_ == pytest.approx(1 / K)
    assert_allclose(model.topic_probs_, 1 / K)


@pytest.mark.extended
def test_objective_never_falls(model):
    for n_batches in (1, 5):
        bounds = HDPTopicVB(n_batches=n_batches, random_state=1).fit(X).lower_bounds_
        assert np.all(np.diff(bounds) >= -1e-6)


def test_stochastic_learning():
    model = HDPTopicVB(
        3, learning_method="stochastic", batch_size=20, max_iter=20, init_params="k-means++",
        random_state=0,
    ).fit(X)  # fmt: skip
    assert model.n_components_ == 3
    assert matches(model)
    assert len(model.history_) == 21


def test_stochastic_streams_forget():
    model = HDPTopicVB(3, learning_method="stochastic", memoize=False, random_state=0)
    sizes = []
    for seed in range(6):
        model.partial_fit(documents(40, seed=seed)[0])
        sizes.append(model._learner_.totals.extra.parts)
        assert model._learner_.totals.n.sum() == pytest.approx(40.0 * 40 * (seed + 1))
    assert sizes == [{}] * 6  # no document is kept
    model.set_params(total_samples=1000).partial_fit(X)
    assert model._learner_.totals.n.sum() == pytest.approx(40.0 * 1000)
    bound, n_steps = model.lower_bound_, model._learner_.n_steps
    model.partial_fit(np.zeros_like(X))  # nothing to learn from
    assert (model.lower_bound_, model._learner_.n_steps) == (bound, n_steps)


def test_rows_on_a_grid_are_one_cluster():
    """No topic is narrower than the step to which rows were recorded, which is found as in mixtures."""
    X, groups, _ = grouped_rows(100, 10, centers=np.zeros((1, 2)))
    for size in (None, 50):
        model = HDPTopicVB(observation="gaussian", random_state=0)
        if size is None:
            model.fit(np.round(X), groups=groups)
        else:
            for part in (groups < size, groups >= size):
                model.partial_fit(np.round(X[part]), groups=groups[part])
        assert model.n_components_ == 1


def test_a_few_rows_that_are_far_out_are_named():
    X = ROWS.copy()
    X[3, 0] = 1e9
    model = HDPTopicVB(observation="gaussian", proposals=None)
    with pytest.warns(UserWarning, match="Nine of ten values in column 0"):
        model.fit(X, groups=GROUPS)


def test_full_is_one_batch():
    full = HDPTopicVB(learning_method="full", batch_size=7, random_state=0).fit(X[:30])
    one = HDPTopicVB(n_batches=1, random_state=0).fit(X[:30])
    assert_same_state(public_state(full), public_state(one))


def test_as_good_as_scikit_learn(model):
    """Under the topics of either, by the same inference: that of scikit-learn."""
    peer = LatentDirichletAllocation(3, max_iter=100, random_state=0).fit(X)
    bound = {}
    for name, topics in (("ours", model.components_), ("theirs", peer.components_)):
        peer.components_ = topics
        peer.exp_dirichlet_component_ = topics / topics.sum(axis=1, keepdims=True)
        bound[name] = np.log(peer.transform(HELDOUT) @ peer.exp_dirichlet_component_)
    score = {name: np.sum(HELDOUT * value) / HELDOUT.sum() for name, value in bound.items()}
    assert score["ours"] > score["theirs"] - 0.01


def test_convergence_warning():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        HDPTopicVB(max_iter=2, random_state=0).fit(X)


# ---------------------------------------------------------------------- what X may be

FEW = X[:30]


@pytest.fixture(scope="module")
def model_of_few():
    return HDPTopicVB(random_state=0).fit(FEW)


@pytest.mark.quarter
@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, np.asfortranarray,
        lambda x: x.astype(np.float32), lambda x: x.astype(np.uint8), lambda x: x.tolist(),
    ],
)  # fmt: skip
def test_form_of_counts_does_not_matter(convert, model_of_few):
    model = model_of_few
    other = HDPTopicVB(random_state=0).fit(convert(FEW))
    assert_same_state(public_state(other), public_state(model))
    assert other.n_components_ > 1
    assert_allclose(other.transform(convert(HELDOUT)), model.transform(HELDOUT), rtol=1e-6)
    assert other.score(convert(HELDOUT)) == model.score(HELDOUT)


def test_input_is_left_alone(model):
    """Entries out of order, in two parts each, and a stored zero, in arrays that cannot be written to."""
    i, j = np.nonzero(X)
    order = np.random.RandomState(0).permutation(2 * len(i))
    halves, i, j = (np.tile(part, 2)[order] for part in (X[i, j] * 0.5, i, j))
    by_row = np.argsort(i, kind="stable")
    sizes = np.bincount(i, minlength=len(X))
    data, indices = np.append(halves[by_row], 0.0), np.append(j[by_row], 11)
    indptr = np.cumsum([0, *sizes])
    indptr[-1] += 1
    x = sparse.csr_matrix((data, indices, indptr), shape=X.shape)
    x.data.flags.writeable = x.indices.flags.writeable = False
    before = x.copy()
    assert_array_equal(model.transform(x), model.transform(X))
    assert_array_equal(x.data, before.data)
    assert_array_equal(x.indices, before.indices)


def test_documents_without_words(model):
    padded = np.insert(X, [0, 17, 80], 0, axis=0)
    other = HDPTopicVB(random_state=0, init_params=TOPICS, max_iter=100).fit(padded)
    plain = HDPTopicVB(random_state=0, init_params=TOPICS, max_iter=100).fit(X)
    assert other.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-9)
    shares = model.transform(np.zeros((2, V)))
    assert_allclose(shares, [model.topic_probs_ / model.topic_probs_.sum()] * 2)
    assert_array_equal(model.score_samples(np.zeros((2, V))), 0.0)
    assert model.score(padded) == pytest.approx(model.score(X))


@pytest.mark.parametrize("corpus", [X[:1], X[:, :1], [[1]], [[3, 0], [0, 2]], [[0, 0], [0, 1]]])
def test_tiny_corpora(corpus):
    model = HDPTopicVB(random_state=0).fit(corpus)
    assert model.n_components_ == 1
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.score(corpus))
    assert_allclose(model.transform(corpus), 1.0)


def test_counts_may_be_fractions():
    """A count is the weight of its token."""
    scaled = HDPTopicVB(init_params=TOPICS, proposals=None, random_state=0).fit(X * 0.5)
    prior = K * scaled.topic_word_prior_.sum()
    assert scaled.components_.sum() == pytest.approx(0.5 * X.sum() + prior)
    assert matches(scaled)


# ---------------------------------------------------------------------- attributes


def test_attributes(model):
    assert model.components_.shape == model.exp_dirichlet_component_.shape == (K, V)
    assert model.topic_word_prior_.shape == (V,)  # learned
    prior = K * model.topic_word_prior_.sum()
    assert model.components_.sum() == pytest.approx(X.sum() + prior)
    assert np.all(np.diff(model.topic_probs_) <= 0)
    assert 0.9 < model.topic_probs_.sum() < 1.0
    assert np.all(model.exp_dirichlet_component_.sum(axis=1) < 1.0)
    assert model.lower_bound_ == pytest.approx(sum(model.elbo_terms_.values()))
    assert model.lower_bound_ == model.lower_bounds_[-1] == model.history_[-1].lower_bound
    assert model.bound_ == pytest.approx(np.exp(-model.lower_bound_ / X.sum()))
    assert 0.01 < model.doc_topic_prior_ < 10.0  # learned
    assert model.n_features_in_ == V
    assert model.n_iter_ == len(model.history_)


def test_priors():
    lam, three = np.linspace(0.1, 0.5, V), {"n_components": 3, "proposals": None, "random_state": 0}
    model = HDPTopicVB(
        topic_word_prior=lam, doc_topic_prior=2.0, weight_concentration_prior=3.0, **three
    ).fit(X)
    assert_allclose(model.topic_word_prior_, lam)
    assert model.doc_topic_prior_ == 2.0
    allocation = model._model.allocation
    assert (allocation.concentration, allocation.doc_concentration) == (3.0, 2.0)
    nested = HDPTopicVB(observation=MultinomialObservation(0.05), **three).fit(X)
    assert nested.topic_word_prior_ == 0.05
    both = HDPTopicVB(observation=MultinomialObservation(0.05), topic_word_prior=0.3, **three)
    assert both.fit(X).topic_word_prior_ == 0.3
    lda = HDPTopicVB(allocation="dirichlet", doc_topic_prior=0.4, **three).fit(X)
    assert lda.doc_topic_prior_ == 0.4


def test_one_global_step_on_responsibilities(model):
    """Entry by entry, against sums by hand."""
    i, j = np.nonzero(X)
    resp = np.random.default_rng(0).dirichlet(np.ones(2), size=len(i))
    step = HDPTopicVB(init_params=resp, max_iter=0, proposals=None).fit(sparse.coo_matrix(X))
    expected = np.zeros((V, 2))
    np.add.at(expected, j, resp * X[i, j][:, np.newaxis])
    expected = expected[:, np.argsort(-expected.sum(axis=0))]
    assert_allclose(step.components_, expected.T + step.topic_word_prior_)
    entropy = -np.sum(X[i, j][:, np.newaxis] * resp * np.log(resp))
    assert step.elbo_terms_["entropy"] == pytest.approx(entropy)
    assert step.n_iter_ == 1


def test_initial_topics():
    """Proportions count, and not how large the numbers are."""
    states = [
        public_state(HDPTopicVB(init_params=topics, proposals=None, random_state=0).fit(X))
        for topics in (TOPICS, (TOPICS * 64).tolist(), lambda x, n_components, rng: TOPICS)
    ]
    assert_same_state(states[1], states[0])
    assert_same_state(states[2], states[0])
