"""Most of a vocabulary may not occur, as with hashed words: it costs little, and changes nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.likelihood import counts as counts_of
from sklearn_bnp.likelihood.dirichlet import dirichlet_prior, first_prior, learned, with_one_rest
from sklearn_bnp.likelihood.multinomial import MultinomialLikelihood
from sklearn_bnp.topics import starts
from tests.estimators import documents

V, TYPES = 500, np.arange(3, 500, 17)


@pytest.fixture
def s():
    """Statistics of four components of which few types occur; each has types of its own, too."""
    rng = np.random.default_rng(0)
    s = np.zeros((4, V + 1))
    s[:, TYPES] = rng.gamma(0.3, 40.0, size=(4, len(TYPES))) * (rng.random((4, len(TYPES))) < 0.7)
    s[:, -1] = s[:, :-1].sum(axis=1)
    return s


PRIORS = {
    "even": lambda s: dirichlet_prior(np.full(V, 0.2)),
    "given": lambda s: dirichlet_prior(np.random.default_rng(1).uniform(0.1, 1.0, size=V)),
    "learned": lambda s: first_prior(s[:, :-1].sum(axis=0)),
}


@pytest.fixture(params=PRIORS)
def prior(request, s):
    return PRIORS[request.param](s)


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(counts_of, "_MANY_TYPES", 100)


def test_all_others_may_be_one(s, prior):
    whole = MultinomialLikelihood(prior, 10.0)
    small, there = whole.with_one_rest(prior, TYPES)
    own = np.column_stack([s[:, TYPES], np.zeros(4), s[:, -1]])
    assert there.total == prior.total
    assert there.lam.sum() == pytest.approx(prior.lam.sum())
    assert_allclose(small.evidence(there, own), whole.evidence(prior, s))
    some = np.append(TYPES, -1)
    found, expected = small.coefficients(there, own), whole.coefficients(prior, s)
    assert_allclose(np.delete(found, -2, axis=1), expected[:, some], atol=1e-12)
    found, expected = small.word_table(there, own), whole.word_table(prior, s)
    assert_allclose(found[:-1], expected[TYPES])
    now, then = small.update_prior(there, own, 5), whole.update_prior(prior, s, 5)
    assert (then is prior) == (now is there) == (prior.about is None)
    assert_allclose(now.lam[:-1], then.lam[TYPES], rtol=1e-6)
    assert now.total == pytest.approx(then.total, rel=1e-6)
    assert small.prior_distance(there, now) == pytest.approx(
        whole.prior_distance(prior, then), rel=1e-5, abs=1e-12
    )
    alone, as_whole = small.prior_alone(there, own[:1]), whole.prior_alone(prior, s[:1])
    assert_allclose(alone.lam[:-1], as_whole.lam[TYPES], rtol=1e-6)


def test_sums_are_of_what_occurs(s, prior, few_are_many):
    likelihood = MultinomialLikelihood(prior, 10.0)
    rising = (gammaln(prior.lam + s[:, :-1]) - gammaln(prior.lam)).sum(axis=1)
    assert_allclose(counts_of.log_rising_factorials(s, prior.lam), rising)
    for k in range(4):  # to the last bit, whatever the other rows are
        assert_array_equal(
            counts_of.log_rising_factorials(s[k : k + 1], prior.lam),
            counts_of.log_rising_factorials(s, prior.lam)[k : k + 1],
        )
    first, second = np.array([0, 0, 2]), np.array([1, 3, 3])
    assert_allclose(
        likelihood.union_evidence(prior, s, first, second),
        likelihood.evidence(prior, s[first] + s[second]),
    )


def test_priors_are_learned_from_what_occurs(s, monkeypatch):
    """The frequencies follow as well, and types that do not occur keep their pseudo-counts."""
    prior = first_prior(np.random.default_rng(0).permutation(s[:, :-1].sum(axis=0)))
    expected = learned(prior, s, 5)
    assert expected is not prior
    monkeypatch.setattr(counts_of, "_MANY_TYPES", 100)
    assert counts_of.types_that_occur(s, V) is not None
    found = learned(prior, s, 5)
    assert_allclose(found.lam, expected.lam, rtol=1e-6)
    again = with_one_rest(with_one_rest(prior, TYPES), np.arange(5))
    assert again.lam.sum() == pytest.approx(prior.total)


def test_families_need_not_join_types(monkeypatch):
    """A family of its own that has a table of words and no more, as the guide asks for, had failed."""
    X, _ = documents(40)
    monkeypatch.setattr(MultinomialLikelihood, "joins_types", False, raising=False)
    monkeypatch.delattr(MultinomialLikelihood, "with_one_rest")
    wide = np.hstack([X, np.zeros((len(X), 9 * X.shape[1]))])
    assert HDPTopicVB(random_state=0).fit(wide).n_components_ > 1


@pytest.mark.parametrize("init_params", ["random", "anchor"])
def test_unused_columns_change_no_topics(init_params, few_are_many, monkeypatch):
    X, _ = documents(40)
    place = np.sort(np.random.default_rng(0).choice(2000, X.shape[1], replace=False))
    wide = np.zeros((len(X), 2000))
    wide[:, place] = X
    n, sizes = 1 if init_params == "random" else 3, []
    seen = starts.Nested.__new__

    def noted(cls, model, *args, **kwargs):
        sizes.append(model.likelihood.n_features)
        return seen(cls, model, *args, **kwargs)

    monkeypatch.setattr(starts.Nested, "__new__", noted)
    quick = {"proposals": ("birth", "merge"), "init_params": init_params, "random_state": 0}
    model, alone = HDPTopicVB(n, **quick).fit(wide), HDPTopicVB(n, **quick).fit(X)
    assert model.n_components_ == alone.n_components_
    assert_allclose(model.transform(wide), alone.transform(X), atol=0.1)
    if n == 1:
        assert max(sizes) <= X.shape[1] + 1
