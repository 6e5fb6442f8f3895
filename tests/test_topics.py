"""`HDPTopicVB`: what it learns, what its methods return, and how it goes with scikit-learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from sklearn_bnp import DPMixtureVB, HDPTopicVB, Merge, MultinomialObservation, TopicBirth
from sklearn_bnp.core.topic_initialize import spread_documents

from .estimators import (
    TOPICS,
    assert_same_state,
    documents,
    grouped_rows,
    public_state,
    same_partition,
)

X, truth = documents()
HELDOUT, _ = documents(seed=1)
ROWS, GROUPS, LABELS = grouped_rows()
K, V = TOPICS.shape


@pytest.fixture(scope="module")
def model():
    return HDPTopicVB(random_state=0).fit(X)


@pytest.fixture(scope="module")
def admixture():
    return HDPTopicVB(observation="gaussian", random_state=0).fit(ROWS, groups=GROUPS)


def matches(model, topics=TOPICS):
    """Whether each topic is one of the true ones."""
    distance = 0.5 * np.abs(model.means_[:, np.newaxis] - topics).sum(axis=2)
    nearest = distance.argmin(axis=1)
    return len(set(nearest)) == len(topics) == len(distance) and distance.min(axis=1).max() < 0.1


# ---------------------------------------------------------------------- what is learned


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
        sizes.append(sum(len(p.lengths) for p in model._learner_.totals.docs.parts.values()))
        assert model._learner_.totals.n.sum() == pytest.approx(40.0 * 40 * (seed + 1))
    assert sizes == [40] * 6
    model.set_params(total_samples=1000).partial_fit(X)
    assert model._learner_.totals.n.sum() == pytest.approx(40.0 * 1000)
    bound, n_steps = model.lower_bound_, model._learner_.n_steps
    model.partial_fit(np.zeros_like(X))  # nothing to learn from
    assert (model.lower_bound_, model._learner_.n_steps) == (bound, n_steps)


def test_full_is_one_batch():
    full = HDPTopicVB(learning_method="full", batch_size=7, random_state=0).fit(X)
    one = HDPTopicVB(n_batches=1, random_state=0).fit(X)
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


@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, np.asfortranarray,
        lambda x: x.astype(np.float32), lambda x: x.astype(np.uint8), lambda x: x.tolist(),
    ],
)  # fmt: skip
def test_form_of_counts_does_not_matter(convert, model):
    other = HDPTopicVB(random_state=0).fit(convert(X))
    assert_same_state(public_state(other), public_state(model))
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
    assert scaled.components_.sum() == pytest.approx(0.5 * X.sum() + 0.2 * K * V)
    assert matches(scaled)


# ---------------------------------------------------------------------- attributes


def test_attributes(model):
    assert model.components_.shape == model.exp_dirichlet_component_.shape == (K, V)
    assert model.components_.sum() == pytest.approx(X.sum() + 0.2 * K * V)
    assert np.all(np.diff(model.topic_probs_) <= 0)
    assert 0.9 < model.topic_probs_.sum() < 1.0
    assert np.all(model.exp_dirichlet_component_.sum(axis=1) < 1.0)
    assert model.lower_bound_ == pytest.approx(sum(model.elbo_terms_.values()))
    assert model.lower_bound_ == model.lower_bounds_[-1] == model.history_[-1].lower_bound
    assert model.bound_ == pytest.approx(np.exp(-model.lower_bound_ / X.sum()))
    assert (model.doc_topic_prior_, model.topic_word_prior_) == (1.0, 0.2)
    assert model.n_features_in_ == V
    assert model.n_iter_ == len(model.history_)


def test_priors():
    lam = np.linspace(0.1, 0.5, V)
    model = HDPTopicVB(
        topic_word_prior=lam, doc_topic_prior=2.0, weight_concentration_prior=3.0, random_state=0
    ).fit(X)
    assert_allclose(model.topic_word_prior_, lam)
    assert model.doc_topic_prior_ == 2.0
    allocation = model._model.allocation
    assert (allocation.concentration, allocation.doc_concentration) == (3.0, 2.0)
    nested = HDPTopicVB(observation=MultinomialObservation(0.05), random_state=0).fit(X)
    assert nested.topic_word_prior_ == 0.05
    both = HDPTopicVB(observation=MultinomialObservation(0.05), topic_word_prior=0.3)
    assert both.fit(X).topic_word_prior_ == 0.3
    lda = HDPTopicVB(3, allocation="dirichlet", doc_topic_prior=0.4, random_state=0).fit(X)
    assert lda.doc_topic_prior_ == 0.4


def test_one_global_step_on_responsibilities(model):
    """Entry by entry, against sums by hand."""
    i, j = np.nonzero(X)
    resp = np.random.default_rng(0).dirichlet(np.ones(2), size=len(i))
    step = HDPTopicVB(init_params=resp, max_iter=0, proposals=None).fit(sparse.coo_matrix(X))
    expected = np.zeros((V, 2))
    np.add.at(expected, j, resp * X[i, j][:, np.newaxis])
    expected = expected[:, np.argsort(-expected.sum(axis=0))] + 0.2
    assert_allclose(step.components_, expected.T)
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


# ---------------------------------------------------------------------- methods


def test_transform(model):
    shares = model.transform(HELDOUT)
    assert shares.shape == (80, K)
    assert_allclose(shares.sum(axis=1), 1.0)
    _, expected = documents(seed=1)
    order = model.means_.reshape(K, 3, 4).sum(axis=2).argmax(axis=1)
    assert np.abs(shares - expected[:, order]).mean() < 0.05
    assert_allclose(model.fit_transform(X), model.transform(X))
    assert model.transform(HELDOUT.astype(np.float32)).dtype == np.float32


def test_inverse_transform(model):
    shares = model.transform(HELDOUT)
    proportions = model.inverse_transform(shares)
    assert_allclose(proportions, shares @ model.means_)
    assert_allclose(proportions.sum(axis=1), 1.0)
    counts = model.inverse_transform(shares, n_tokens=HELDOUT.sum(axis=1))
    assert_allclose(counts.sum(axis=1), HELDOUT.sum(axis=1))
    assert np.abs(counts - HELDOUT).mean() < 2.0


def test_completion_by_hand(model):
    """One type of a document of two is hidden; its probability is that under the other's topics."""
    document = np.zeros((1, V))
    document[0, [0, 5]] = 4, 3
    scores = {
        3 * np.log(model.transform(document * (np.arange(V) == 0)) @ model.means_)[0, 5] / 3,
        4 * np.log(model.transform(document * (np.arange(V) == 5)) @ model.means_)[0, 0] / 4,
    }
    found = {model.score_completion(document, random_state=seed) for seed in range(20)}
    assert_allclose(sorted(found), sorted(scores))
    assert min(abs(model.score(document) - score) for score in scores) < 1e-12


def test_scores(model):
    score = model.score(HELDOUT)
    assert model.perplexity(HELDOUT) == pytest.approx(np.exp(-score))
    assert score == model.score(HELDOUT)
    assert model.score(HELDOUT[::-1]) == pytest.approx(score)  # of each document alone
    assert_allclose(model.score_samples(HELDOUT[5:6]), model.score_samples(HELDOUT)[5:6])
    for by in ("types", "tokens"):
        other = model.score_completion(HELDOUT, by=by, heldout=0.3)
        assert other == model.score_completion(HELDOUT, by=by, heldout=0.3)
        assert abs(other - score) < 0.3
        assert other != model.score_completion(HELDOUT, random_state=1, by=by, heldout=0.3)


def test_score_tells_numbers_of_topics_apart(model):
    few = HDPTopicVB(2, proposals=None, random_state=0).fit(X)
    many = HDPTopicVB(30, proposals=None, random_state=0).fit(X)
    assert model.score(HELDOUT) > few.score(HELDOUT) + 0.1
    assert model.score(HELDOUT) > many.score(HELDOUT)


def test_top_words(model):
    names = np.array([f"word{v}" for v in range(V)])
    words = model.top_words(names, 4)
    blocks = {frozenset(names[4 * k : 4 * k + 4]) for k in range(3)}
    assert {frozenset(topic) for topic in words} == blocks
    assert all(isinstance(word, str) for topic in words for word in topic)
    assert model.top_words(n=1)[0] == [f"x{model.components_[0].argmax()}"]


def test_sample(model):
    corpus, shares = model.sample(300, n_tokens=50, random_state=0)
    assert sparse.issparse(corpus)
    assert_array_equal(corpus.sum(axis=1), 50)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert_allclose(
        corpus.toarray().mean(axis=0) / 50, (shares @ model.means_).mean(axis=0), atol=0.01
    )
    assert model.sample()[0].sum() == 40  # as long as the documents were
    again, _ = model.sample(300, n_tokens=50, random_state=0)
    assert (again != corpus).nnz == 0


# ---------------------------------------------------------------------- admixtures


def test_admixture_of_rows(admixture):
    assert admixture.n_components_ == 3
    assert admixture.means_.shape == (3, 3)
    assert admixture.covariances_.shape == (3, 3, 3)
    labels = admixture.predict(ROWS, groups=GROUPS)
    assert same_partition(labels, LABELS)
    resp = admixture.predict_proba(ROWS, groups=GROUPS)
    assert_allclose(resp.sum(axis=1), 1.0)
    assert_array_equal(resp.argmax(axis=1), labels)
    assert admixture.score(ROWS, groups=GROUPS) > DPMixtureVB(random_state=0).fit(ROWS).score(ROWS)


def test_rows_are_answered_in_their_order(admixture):
    names = np.array([f"d{g:02d}" for g in GROUPS])
    order = np.argsort(names, kind="stable")
    rows, groups = ROWS[order], names[order]
    sorted_rows = HDPTopicVB(observation="gaussian", random_state=0).fit(rows, groups=groups)
    assert_same_state(public_state(sorted_rows), public_state(admixture))
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        expected = getattr(sorted_rows, method)(rows, groups=groups)
        assert_array_equal(getattr(admixture, method)(ROWS, groups=GROUPS)[order], expected)
    shares = admixture.transform(ROWS, groups=GROUPS)
    counts = np.array([np.bincount(LABELS[g == GROUPS], minlength=3) for g in GROUPS]) / 20
    assert_allclose(np.sort(shares), np.sort(counts), atol=0.06)
    for g in range(30):
        assert np.ptp(shares[g == GROUPS], axis=0).max() == 0.0


def test_rows_with_given_responsibilities():
    resp = np.eye(3)[LABELS]
    model = HDPTopicVB(observation="gaussian", init_params=resp, max_iter=0)
    model.fit(ROWS, groups=GROUPS)
    expected = [ROWS[k == LABELS].mean(axis=0) for k in range(3)]
    order = np.argsort(-np.bincount(LABELS))
    assert_allclose(model.means_, np.array(expected)[order], atol=0.05)


@pytest.mark.parametrize("init_params", ["random", "k-means++"])
def test_rows_with_a_fixed_number(init_params):
    model = HDPTopicVB(
        3, observation="gaussian", proposals=None, init_params=init_params, random_state=0
    )
    labels = model.fit(ROWS, groups=GROUPS).predict(ROWS, groups=GROUPS)
    assert adjusted_rand_score(LABELS, labels) > 0.5


def test_rows_of_counts():
    """With groups, a row of counts is one token."""
    rng = np.random.default_rng(0)
    rows = rng.multinomial(30, TOPICS[LABELS])
    model = HDPTopicVB(6, init_params="k-means++", random_state=0).fit(rows, groups=GROUPS)
    best = model.transform(rows, groups=GROUPS)
    assert best.shape == (600, model.n_components_)
    assert matches(model)
    binary = HDPTopicVB(4, observation="bernoulli", init_params="k-means++", random_state=0)
    assert binary.fit(rows > 0, groups=GROUPS).predict(rows > 0, groups=GROUPS).shape == (600,)


def test_samples_of_rows(admixture):
    rows, shares = admixture.sample(40, n_tokens=15, random_state=0)
    assert rows.shape == (600, 3)
    groups = np.repeat(np.arange(40), 15)
    assert_allclose(
        np.sort(admixture.transform(rows, groups=groups)[::15]), np.sort(shares), atol=0.3
    )
    assert admixture.inverse_transform(shares).shape == (40, 3)


# ---------------------------------------------------------------------- streams

BATCHES = np.array_split(X, 4)


def consistent(model):
    """Whether totals are the sum of what batches left behind, with the documents' counts."""
    learner = model._learner_
    totals, adoptions = learner.totals, learner.scheduler.adoptions
    s = totals.s.copy()
    for trial in adoptions if learner._before is not None else ():
        s[totals.positions(trial.created)] -= trial.seeds.s
    kept = learner.memo.copy().total(totals.uids, s.shape[1])
    assert_allclose(kept.s, s, atol=1e-7)
    assert_allclose(kept.entropy, totals.entropy, atol=1e-6)
    for bag in (kept, totals):
        used = {uid for part in bag.docs.parts.values() for uid in part.columns}
        assert used <= set(totals.uids.tolist())
        for uid, n in zip(totals.uids.tolist(), s[:, -1], strict=True):
            columns = (part.columns.get(uid) for part in bag.docs.parts.values())
            assert sum(c.values.sum() for c in columns if c is not None) == pytest.approx(
                n, abs=1e-6
            )
    return True


@pytest.mark.parametrize("seed", range(3))
def test_epochs_end_where_fit_ends(seed, model):
    stream = HDPTopicVB(random_state=seed)
    for epoch in range(12):
        for i, batch in enumerate(BATCHES):
            stream.partial_fit(batch)
            assert consistent(stream)
            n_tokens = 40 * (80 if epoch else 20 * (i + 1))
            assert stream.components_.sum() - 0.2 * V * stream.n_components_ == pytest.approx(
                n_tokens
            )
            assert np.all(np.diff(stream.topic_probs_) <= 0)
    assert stream.n_components_ == K
    assert matches(stream)
    assert stream.lower_bound_ == pytest.approx(model.lower_bound_, rel=2e-3)


def test_fixed_topics_in_a_stream_are_those_of_fit():
    """With given topics and no proposals there is no chance in it."""
    params = {"init_params": TOPICS, "proposals": None, "random_state": 0}
    fit = HDPTopicVB(n_batches=4, tol=0, **params).fit(X)
    stream = HDPTopicVB(**params)
    for _ in range(fit.n_iter_):
        for batch in BATCHES:
            stream.partial_fit(batch)
    assert_allclose(stream.means_, fit.means_, atol=1e-3)
    assert stream.lower_bound_ == pytest.approx(fit.lower_bound_, rel=1e-5)


def test_batches_are_known_by_content_or_name():
    model = HDPTopicVB(random_state=0).partial_fit(BATCHES[0])
    for same in (sparse.csr_matrix(BATCHES[0]), BATCHES[0].astype(float)):
        assert model.partial_fit(same)._learner_.totals.n.sum() == pytest.approx(800)
    model.partial_fit(BATCHES[1], batch_id="b")
    assert model.partial_fit(BATCHES[2], batch_id="b")._learner_.totals.n.sum() == pytest.approx(
        1600
    )
    assert consistent(model)


def test_batches_add_to_a_fit(model):
    grown = HDPTopicVB(n_batches=3, random_state=0).fit(X)
    for batch_id in (0, 1, 0):  # no names of the batches of fit
        grown.partial_fit(HELDOUT[40 * batch_id : 40 * batch_id + 40], batch_id=batch_id)
        assert consistent(grown)
    assert grown._learner_.totals.n.sum() == pytest.approx(40 * 160)
    assert grown.n_components_ == K


def test_new_topics_in_a_stream():
    old, _ = documents(60, topics=np.pad(TOPICS, ((0, 0), (0, 4))))
    new = np.random.default_rng(0).multinomial(40, np.r_[np.zeros(V), np.full(4, 0.25)], size=30)
    model = HDPTopicVB(random_state=0).partial_fit(old)
    assert model.n_components_ == K
    mixed = np.vstack([old[:10], new])
    assert model.partial_fit(mixed).n_components_ > K
    for _ in range(3):
        model.partial_fit(old).partial_fit(mixed)
        assert consistent(model)
    assert model.n_components_ == K + 1
    assert model.top_words([str(v) for v in range(V + 4)], 4)


def test_streams_of_rows():
    model = HDPTopicVB(observation="gaussian", random_state=0)
    for _ in range(4):
        for part in range(3):
            chosen = part == GROUPS % 3
            model.partial_fit(ROWS[chosen], groups=GROUPS[chosen])
            assert consistent(model)
    assert model.n_components_ == 3
    assert same_partition(model.predict(ROWS, groups=GROUPS), LABELS)


# ---------------------------------------------------------------------- with scikit-learn

WORDS = {
    "pets": ["cat", "dog", "kitten", "puppy", "leash", "bone", "purr", "bark", "fur", "paw"],
    "money": ["stock", "bond", "market", "bank", "trade", "price", "loan", "fund", "share", "rate"],
}
_rng = np.random.RandomState(0)
ABOUT = np.repeat(list(WORDS), 20)
TEXTS = [" ".join(_rng.choice(WORDS[about], 25)) for about in ABOUT]


def test_pipeline_of_text():
    pipe = make_pipeline(CountVectorizer(), HDPTopicVB(random_state=0), LogisticRegression())
    assert pipe.fit(TEXTS, ABOUT).score(TEXTS, ABOUT) == 1.0
    names = pipe[:-1].get_feature_names_out()
    assert names.tolist() == [f"hdptopicvb{k}" for k in range(pipe[1].n_components_)]
    words = pipe[1].top_words(pipe[0].get_feature_names_out(), 3)
    assert {about for about in WORDS for topic in words if set(topic) <= set(WORDS[about])} == {
        *WORDS
    }


def test_grid_search():
    search = GridSearchCV(
        HDPTopicVB(proposals=None, init_params="k-means++", random_state=0),
        {"n_components": [1, 3], "allocation": ["dirichlet"]},
        cv=2,
        error_score="raise",
    ).fit(X)
    assert search.best_params_["n_components"] == 3
    pipe = make_pipeline(CountVectorizer(), HDPTopicVB(random_state=0), LogisticRegression())
    over = GridSearchCV(
        pipe, {"hdptopicvb__topic_word_prior": [0.1, 1.0]}, cv=2, error_score="raise"
    )
    assert over.fit(TEXTS, ABOUT).best_score_ == 1.0


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = HDPTopicVB(observation="gaussian", random_state=0)
        model.set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(
            model, ROWS, cv=GroupKFold(2), params={"groups": GROUPS}, error_score="raise"
        )
        train, test = GROUPS % 2 == 0, GROUPS % 2 == 1
        alone = clone(model).fit(ROWS[train], groups=GROUPS[train])
        score = alone.score(ROWS[test], groups=GROUPS[test])
    assert_allclose(found["test_score"], score, atol=0.5)


def test_set_output():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"w{v}" for v in range(V)], index=np.arange(80) + 7)
    model = HDPTopicVB(random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert out.columns.tolist() == [f"hdptopicvb{k}" for k in range(K)]
    assert out.index.tolist() == list(range(7, 87))
    assert set(model.top_words(n=4)[0]) <= set(frame.columns)


def test_clone_and_pickle(model):
    settings = HDPTopicVB(
        proposals=(TopicBirth(max_targets=3), Merge(), "delete"), observation=MultinomialObservation(0.1),
        random_state=0,
    ).fit(X)  # fmt: skip
    assert_same_state(public_state(clone(settings).fit(X)), public_state(settings))
    copy = pickle.loads(pickle.dumps(model))
    assert_same_state(public_state(copy), public_state(model))
    assert_array_equal(copy.transform(HELDOUT), model.transform(HELDOUT))
    assert repr(HDPTopicVB()) == "HDPTopicVB()"
    assert HDPTopicVB().set_params(observation__prior=0.5).observation.prior == 0.5


@pytest.mark.parametrize("params", [{}, {"n_batches": 3}, {"n_nonzero_resp": 2}], ids=str)
def test_threads_do_not_matter(params, model):
    one = HDPTopicVB(random_state=0, n_jobs=1, **params).fit(X)
    two = HDPTopicVB(random_state=0, n_jobs=2, **params).fit(X)
    assert_same_state(public_state(two), public_state(one))
    assert_array_equal(two.transform(HELDOUT), one.transform(HELDOUT))
    rows = [
        HDPTopicVB(observation="gaussian", random_state=0, n_jobs=n).fit(ROWS, groups=GROUPS)
        for n in (1, 2)
    ]
    assert_same_state(public_state(rows[1]), public_state(rows[0]))


def test_at_most_so_many_topics_a_word():
    model = HDPTopicVB(3, n_nonzero_resp=1, init_params=TOPICS, proposals=None).fit(X)
    assert matches(model)
    assert model.elbo_terms_["entropy"] == pytest.approx(0.0, abs=1e-9)


def test_document_settings_matter():
    topics = 0.5 * TOPICS + 0.5 / V  # after one lap
    params = {"init_params": topics, "proposals": None}
    bounds = [
        HDPTopicVB(max_iter=0, **params, **more).fit(X).lower_bound_
        for more in (
            {"max_doc_update_iter": 1, "doc_restarts": 0},
            {"doc_tol": 5.0, "doc_restarts": 0},
            {"doc_tol": 1e-6, "doc_restarts": 0},
            {"doc_tol": 1e-6, "doc_restarts": 1},
        )
    ]
    assert len({round(bound, 2) for bound in bounds}) == 4
    warm, cold = (HDPTopicVB(warm_start_docs=warm, **params).fit(X) for warm in (True, False))
    assert cold.lower_bound_ == pytest.approx(warm.lower_bound_, rel=1e-3)


def test_progress(capsys):
    model = HDPTopicVB(verbose=1, random_state=0).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("HDPTopicVB: lap") == model.n_iter_
