"""Corpora of a few short documents: topics that raise the objective are found there, too."""

import numpy as np
import pytest

from sklearn_bnp import HDPTopicVB

TOPICS = np.kron(np.eye(3), np.full(4, 0.25))


def corpus(n, length, seed):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(length, TOPICS[i % 3]) for i in range(n)])


@pytest.mark.parametrize(("n", "length"), [(9, 8), (12, 5), (15, 5), (24, 5)])
def test_as_good_as_from_the_true_topics(n, length):
    for seed in range(3):
        X = corpus(n, length, seed)
        found = HDPTopicVB(random_state=0).fit(X)
        true = HDPTopicVB(3, init_params=TOPICS + 1e-3, proposals=None).fit(X)
        assert found.n_components_ == 3
        assert found.lower_bound_ > true.lower_bound_ - 0.5
