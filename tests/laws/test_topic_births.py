"""Laws of what topics are born with."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.core.topic_initialize import with_total
from sklearn_bnp.proposals.topic_birth import _broader


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_broader_topics_are_the_same_corpus(share):
    """Masses and the sum of all stay; a share of each topic has the proportions of that sum."""
    s = with_total(np.random.default_rng(0).gamma(0.2, size=(4, 7)))
    out = _broader(s, share)
    assert_allclose(out.sum(axis=0), s.sum(axis=0), rtol=1e-13)
    assert_allclose(out[:, -1], s[:, -1], rtol=1e-13)
    corpus = s.sum(axis=0) / s[:, -1].sum()
    assert_allclose(out / s[:, -1:], (1 - share) * s / s[:, -1:] + share * corpus, rtol=1e-12)
