"""Laws of priors of words that are learned: pseudo-counts about the frequencies in all data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklearn_bnp import DPMixtureVB, HDPTopicVB, MultinomialObservation
from sklearn_bnp.likelihood import dirichlet
from sklearn_bnp.likelihood.dirichlet import first_prior, learned, prior_about
from tests.estimators import names
from tests.reference import word_priors as twin
from tests.reference.families import DirichletMultinomial
from tests.variants import variants

# The most that a weight moves in a step, as a logarithm.
STEP = 0.2
SEEDS = range(4)


def counts_of(seed, K=5, V=30, even=0.2, strength=20.0, n=200):
    """Fractional counts (K, V) of components about power-law frequencies, and a column of totals."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.arange(V))
    phi = rng.dirichlet(even + strength * p / p.sum(), size=K)
    counts = rng.multinomial(n, phi) * rng.uniform(0.5, 1.0, size=(K, V))
    return np.column_stack([counts, counts.sum(axis=1)])


def corpus(seed, n_docs=200, n_tokens=15, V=60, K=3):
    """Documents of a few topics whose words follow a power law; the last five words never occur."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (2.0 + np.arange(V))
    phi = rng.dirichlet(20.0 * p / p.sum() + 1e-3, size=K)
    phi[:, -5:] = 0.0
    shares = rng.dirichlet(np.full(K, 0.1), size=n_docs) @ (phi / phi.sum(axis=1, keepdims=True))
    return np.array([rng.multinomial(n_tokens, q) for q in shares])


def topics(**parameters):
    return HDPTopicVB(topic_word_prior="auto", random_state=0, **parameters)


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize("seed", SEEDS)
def test_evidence_and_slopes(seed):
    """Those of the definition, and quotients of differences."""
    s = counts_of(seed)
    prior, find = first_prior(s[:, :-1].sum(axis=0)), dirichlet._Evidence
    evidence, (p, *weights) = find(prior.about.p, s), prior.about[:3]
    value, slopes = evidence(prior)
    assert_allclose(prior.lam, twin.pseudo_counts(s[:, :-1], *weights), rtol=1e-12)
    assert value == pytest.approx(twin.evidence(s[:, :-1], prior.lam), rel=1e-10)
    for i, slope in enumerate(slopes):
        step = 1e-5 * (np.arange(2) == i)
        above, below = (
            evidence.value(prior_about(p, *(weights * np.exp(sign * step)))) for sign in (1, -1)
        )
        assert slope == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("even", "strength"), [(0.2, 20.0), (0.02, 60.0), (0.7, 2.0)])
def test_learning_ends_at_the_best_weights(seed, even, strength):
    """In bounded steps, from any start, and where a search without slopes ends."""
    s = counts_of(seed, even=even, strength=strength)
    best = twin.evidence(s[:, :-1], twin.pseudo_counts(s[:, :-1], *twin.best_weights(s[:, :-1])))
    for start in ((0.1, 3.0), (5.0, 500.0)):
        prior = prior_about(first_prior(s[:, :-1].sum(axis=0)).about.p, *start)
        for _ in range(100):
            before, prior = prior, learned(prior, s, 1)
            if prior is before:
                break
            moved = np.abs(np.log(np.array(prior.about[1:3]) / before.about[1:3]))
            assert moved.max() <= STEP + 1e-9
            assert twin.evidence(s[:, :-1], prior.lam) > twin.evidence(s[:, :-1], before.lam)
        assert prior is before
        assert twin.evidence(s[:, :-1], prior.lam) == pytest.approx(best, abs=0.02)


def test_one_component_says_nothing():
    """Its own frequencies would suit it best, at any strength; nor do components without tokens count."""
    s = counts_of(0, K=2)
    prior = first_prior(s[:, :-1].sum(axis=0))
    assert learned(prior, s, 5) is not prior
    one = s[:1]
    prior = first_prior(one[0, :-1])
    assert learned(prior, one, 5) is prior
    assert learned(prior, np.concatenate([one, 0.0 * one]), 5) is prior
    assert learned(prior, 0.0 * s, 5) is prior


def test_one_component_is_compared_under_the_prior_that_suits_it():
    """Its prior is worth all its tokens, as those of several may be together; twice changes nothing."""
    one = counts_of(0).sum(axis=0, keepdims=True)
    first = first_prior(one[0, :-1])
    prior = dirichlet.alone(first, one)
    assert prior.about.strength == pytest.approx(one[0, -1])
    assert prior.about.even == first.about.even
    assert twin.evidence(one[:, :-1], prior.lam) > twin.evidence(one[:, :-1], first.lam)
    assert dirichlet.alone(prior, one) is prior
    assert dirichlet.alone(first, 0.0 * one) is first
    better = prior_about(prior.about.p, prior.about.even, 10.0 * prior.about.strength)
    assert dirichlet.alone(better, one) is better


def test_topics_that_differ_as_chance_has_it_become_one():
    """Together they have more of a prior about the frequencies than one has, until that of one suits it."""
    p = 1.0 / (1.0 + np.arange(300))
    X = np.random.default_rng(0).multinomial(6, p / p.sum(), size=100)
    start = {"n_components": 7, "init_params": "random"}
    apart = topics(proposals=None, **start).fit(X)
    found = topics(proposals=("merge",), **start).fit(X)
    alone = topics(proposals=None).fit(X)
    assert apart.n_components_ == 7 and apart.lower_bound_ < alone.lower_bound_
    assert found.n_components_ == 1
    assert found.lower_bound_ == pytest.approx(alone.lower_bound_, abs=1.5)


def test_no_weight_is_worth_more_than_the_tokens_of_a_component():
    """Components that are alike would want a prior from which no other could ever differ."""
    s = np.repeat(counts_of(3, K=1, n=400), 4, axis=0)
    prior, mean = first_prior(s[:, :-1].sum(axis=0)), s[0, -1]
    prior = learned(prior, s, 200)
    assert prior.about.strength == pytest.approx(mean)
    assert prior.about.even <= mean / 30 + 1e-9
    above = prior_about(prior.about.p, prior.about.even, 5.0 * mean)
    assert learned(above, s, 3).about.strength <= 5.0 * mean
    many = learned(prior, 10.0 * s, 200)
    assert many.about.strength == pytest.approx(10.0 * mean)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("seed", "V", "n_tokens", "K"),
    [(0, 400, 12, 8), pytest.param(1, 800, 20, 10, marks=pytest.mark.slow)],
)
def test_a_stream_that_begins_with_few_documents_finds_its_topics(seed, V, n_tokens, K):
    """The first of them tell no topics apart, which must not keep later ones from doing so."""
    batches = np.split(corpus(seed, n_docs=600, n_tokens=n_tokens, V=V, K=K), (60, 120, 240))
    stream = topics()
    for i, batch in [*enumerate(batches), *enumerate(batches)]:
        stream.partial_fit(batch, batch_id=i)
    assert stream.n_components_ > 1


def test_frequencies_follow_those_of_the_data():
    """But not where this would lower the evidence."""
    s = counts_of(1)
    other = first_prior(np.arange(30.0))
    followed = learned(other, s, 0)
    assert_array_equal(followed.about.p, first_prior(s[:, :-1].sum(axis=0)).about.p)
    assert followed.about[1:3] == other.about[1:3]
    few = np.vstack([s[0], 0.0 * s[0]])
    few[0, 1:-1] = 0.0  # a single type, of which the prior knew more than these tokens do
    few[:, -1] = few[:, :-1].sum(axis=1)
    many = prior_about(np.append(0.9999, np.full(29, 1e-4 / 29)), 1e-4, 1e6)
    assert learned(many, few, 1) is many


# ---------------------------------------------------------------------- models


@pytest.mark.quarter
@pytest.mark.parametrize("seed", variants(SEEDS, quick=(0, 1)))
@pytest.mark.parametrize("parameters", [{}, {"n_batches": 3}, {"allocation": "dirichlet"}])
def test_objective_is_that_of_the_prior_that_is_published(seed, parameters):
    """It never falls, and its data term is the evidence of the topics under ``topic_word_prior_``."""
    X = corpus(seed)
    model = topics(**parameters).fit(X)
    rises = np.diff(model.lower_bounds_)
    assert rises.min(initial=0.0) >= -1e-7 * abs(model.lower_bound_)
    family = DirichletMultinomial(model.topic_word_prior_)
    counts = model.components_ - model.topic_word_prior_
    data = sum(family.evidence(np.eye(len(n)), n) for n in counts)
    assert model.elbo_terms_["data"] == pytest.approx(data, rel=1e-9)
    even, strength = model._model.prior.about[1:3]
    assert_allclose(model.topic_word_prior_, twin.pseudo_counts(X, even, strength), rtol=1e-9)
    assert (model.n_components_ > 1) == ((even, strength) != (0.1, 0.1 * X.shape[1]))


@pytest.mark.extended
def test_a_better_prior_than_equal_pseudo_counts():
    """Topics whose words follow a power law are cheaper, at a higher bound."""
    X = corpus(0, n_docs=400)
    auto, even = topics().fit(X), HDPTopicVB(topic_word_prior=0.2, random_state=0).fit(X)
    assert auto.lower_bound_ > even.lower_bound_ + 10.0
    held_out = corpus(0, n_docs=500)[400:]
    assert auto.score(held_out) > even.score(held_out) - 0.01


def test_words_that_never_occurred_have_probability():
    X = corpus(2)
    model = topics().fit(X)
    rare = np.zeros((1, X.shape[1]))
    rare[0, [0, -1]] = 1
    assert np.isfinite(model.score(rare)) and model.means_.min() > 0
    assert np.all(model.means_[:, -1] < model.means_[:, 0])


def test_weights_are_repetition():
    X = corpus(3, n_docs=60)
    weight = np.where(np.arange(len(X)) % 3 == 0, 2, 1)
    one = topics(n_components=3, proposals=None, init_params="k-means++")
    start = one.fit(X).components_ - one.topic_word_prior_
    again = topics(proposals=None, init_params=start, n_components=3)
    weighted = clone(again).fit(X, sample_weight=weight)
    repeated = clone(again).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.topic_word_prior_, repeated.topic_word_prior_, rtol=1e-4)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-6)


@pytest.mark.extended
def test_streams_learn_the_prior_of_fit():
    """Frequencies are those of all documents so far, those of the fit included."""
    X = corpus(4, n_docs=300)
    stream = topics()
    for _ in range(6):
        for i, batch in enumerate(np.array_split(X, 3)):
            stream.partial_fit(batch, batch_id=i)
    weights = stream._model.prior.about[1:3]
    assert_allclose(stream.topic_word_prior_, twin.pseudo_counts(X, *weights), rtol=1e-6)
    batch = topics(proposals=("birth", "merge", "delete")).fit(X)  # a stream makes no restarts
    assert stream.n_components_ == batch.n_components_
    assert stream.lower_bound_ > batch.lower_bound_ - 1e-3 * abs(batch.lower_bound_)
    batch.partial_fit(10 * X[:, ::-1])
    weights = batch._model.prior.about[1:3]
    both = np.vstack([X, 10 * X[:, ::-1]])
    assert_allclose(batch.topic_word_prior_, twin.pseudo_counts(both, *weights), rtol=1e-6)


def test_topics_that_are_given_settle_first():
    X = corpus(5)
    first = first_prior(X.sum(axis=0)).lam
    start = {"n_components": 3, "proposals": None}
    for laps in range(1, 4):
        with pytest.warns(ConvergenceWarning):
            model = topics(max_iter=laps, tol=0.0, **start).fit(X)
        assert_allclose(model.topic_word_prior_, first, rtol=1e-12)
    assert not np.allclose(topics(**start).fit(X).topic_word_prior_, first, rtol=0.1)


@pytest.mark.extended
def test_types_that_never_occur_do_not_hide_topics():
    """As of hashed words: a prior worth so much for each of them would outweigh all tokens."""
    X, V = corpus(5), 20_000
    wide = np.zeros((len(X), V))
    wide[:, :: V // X.shape[1]][:, : X.shape[1]] = X
    narrow, hashed = topics().fit(X), topics().fit(wide)
    assert hashed.n_components_ == narrow.n_components_ > 1
    assert hashed.lower_bound_ == pytest.approx(narrow.lower_bound_, rel=0.02)
    first = first_prior(wide.sum(axis=0))
    assert first.total == pytest.approx(first_prior(X.sum(axis=0)).total)
    assert first_prior(wide.sum(axis=0), streaming=True).total == pytest.approx(0.2 * V)


def test_stochastic_steps_learn_no_prior():
    X = corpus(6)
    model = topics(n_components=3, learning_method="stochastic", n_batches=2, max_iter=3).fit(X)
    assert_allclose(model.topic_word_prior_, first_prior(X.sum(axis=0)).lam, rtol=1e-12)
    model.partial_fit(X[:50]).partial_fit(X[50:100])
    assert_allclose(model.topic_word_prior_, first_prior(X.sum(axis=0)).lam, rtol=1e-12)


def test_another_prior_in_mid_course_is_refused():
    X = corpus(7)
    fixed = {"n_components": 3, "proposals": None}
    learned_, given = topics(**fixed), HDPTopicVB(topic_word_prior=0.3, random_state=0, **fixed)
    learned_.fit(X), given.fit(X)
    with pytest.raises(ValueError, match=names("topic_word_prior=0.3", "'auto'", "begin anew")):
        learned_.set_params(topic_word_prior=0.3).partial_fit(X[:10])
    with pytest.raises(ValueError, match=names("topic_word_prior='auto'", "0.3", "begin anew")):
        given.set_params(topic_word_prior="auto").partial_fit(X[:10])
    assert learned_.set_params(topic_word_prior="auto").partial_fit(X[:10]).n_iter_ > 0


def test_grid_search_may_compare_auto_with_numbers():
    model = HDPTopicVB(3, proposals=None, random_state=0)
    search = GridSearchCV(model, {"topic_word_prior": ["auto", 0.2]}, cv=2)
    search.fit(corpus(8, n_docs=80))
    assert search.best_params_["topic_word_prior"] in ("auto", 0.2)


def test_it_is_the_default_where_words_have_no_other_prior():
    X = corpus(8, n_docs=80)
    fixed = {"n_components": 3, "proposals": None}
    default = HDPTopicVB(random_state=0, **fixed).fit(X)
    assert_array_equal(default.topic_word_prior_, topics(**fixed).fit(X).topic_word_prior_)
    assert len(set(default.topic_word_prior_)) > 1
    own = HDPTopicVB(observation=MultinomialObservation(prior=0.3), random_state=0, **fixed)
    assert own.fit(X).topic_word_prior_ == 0.3


@pytest.mark.extended
def test_mixtures_of_counts_learn_it_too():
    X = corpus(9, n_tokens=40)
    model = DPMixtureVB(observation=MultinomialObservation(prior="auto"), random_state=0).fit(X)
    rises = np.diff(model.lower_bounds_)
    assert rises.min(initial=0.0) >= -1e-9 * abs(model.lower_bound_)
    prior = model._learner_.model.prior
    assert model.n_components_ > 1
    assert_allclose(prior.lam, twin.pseudo_counts(X, *prior.about[1:3]), rtol=1e-9)
