"""Corpora of a few short documents: topics that raise the objective are found there, too."""

import numpy as np
import pytest

from sklearn_bnp import HDPTopicVB

TOPICS = np.kron(np.eye(3), np.full(4, 0.25))


def corpus(n, length, seed):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(length, TOPICS[i % 3]) for i in range(n)])


@pytest.mark.quarter
@pytest.mark.parametrize(("n", "length"), [(9, 8), (12, 5), (15, 5), (24, 5)])
def test_as_good_as_from_the_true_topics(n, length):
    for seed in range(3):
        X = corpus(n, length, seed)
        found = HDPTopicVB(random_state=0).fit(X)
        true = HDPTopicVB(3, init_params=TOPICS + 1e-3, proposals=None).fit(X)
        assert found.n_components_ == 3
        assert found.lower_bound_ > true.lower_bound_ - 0.5


@pytest.mark.parametrize(("n_docs", "n_tokens", "n_words"), [(9, 5, 6), (12, 3, 4), (6, 6, 4)])
def test_two_languages_in_fewer_than_fifty_tokens(n_docs, n_tokens, n_words):
    """A single topic had needed 50 tokens to be split. Where there is one topic, it stays one."""
    rng = np.random.default_rng(0)
    phi = np.kron(np.eye(2), np.full(n_words, 1.0 / n_words))
    X = np.array([rng.multinomial(n_tokens, phi[d % 2]) for d in range(n_docs)])
    model = HDPTopicVB(random_state=0).fit(X)
    alone = HDPTopicVB(proposals=None, random_state=0).fit(X)
    assert model.n_components_ == 2
    assert model.lower_bound_ > alone.lower_bound_
    alike = rng.multinomial(n_tokens, phi.mean(axis=0), size=n_docs)
    with pytest.warns(UserWarning, match="ends with one topic"):
        assert HDPTopicVB(random_state=0).fit(alike).n_components_ == 1
