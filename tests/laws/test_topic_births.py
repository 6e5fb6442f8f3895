"""Laws of what topics are born with."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.engine.streaming import stream_batch
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.documents import EVERYTHING
from sklearn_bnp.topics.seeding import blended_with_all, with_total
from tests.variants import variants

from .topic_harness import topic_learner
from .topic_kinds import KINDS, PRIORS


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_broader_topics_are_the_same_corpus(share):
    """Masses and the sum of all stay; a share of each topic has the proportions of that sum."""
    s = with_total(np.random.default_rng(0).gamma(0.2, size=(4, 7)))
    out = blended_with_all(s, share)
    assert_allclose(out.sum(axis=0), s.sum(axis=0), rtol=1e-13)
    assert_allclose(out[:, -1], s[:, -1], rtol=1e-13)
    corpus = s.sum(axis=0) / s[:, -1].sum()
    assert_allclose(out / s[:, -1:], (1 - share) * s / s[:, -1:] + share * corpus, rtol=1e-12)


def stream(seed, monkeypatch, **settings):
    """Words in six batches, in epochs: trials of topics made anew, and the tokens then; ELBO after each."""
    corpus, found = KINDS[0].corpus(np.random.default_rng(seed), 60), []
    make = TopicBirth._anew

    def anew(birth, context):
        trials = make(birth, context)
        found.append((context.totals.n.sum(), trials))
        return trials

    monkeypatch.setattr(TopicBirth, "_anew", anew)
    proposals = [TopicBirth(min_tokens=20), Merge(max_members=2)]
    follow = topic_learner(
        KINDS[0], PRIORS[0], corpus, 1, proposals=proposals, n_batches=6, **settings
    )
    values = []
    for _ in range(6):
        for batch in follow.source.batches():
            stream_batch(follow.learner, batch)
        values.append(follow.learner.lower_bound)
    return found, np.array(values)


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("max_components", "seed"),
    variants(product([np.inf, 3], [3, 4, 5]), quick=((np.inf, 3), (3, 4))),
)
def test_topics_of_a_corpus_that_has_grown_are_made_anew(seed, max_components, monkeypatch):
    """All together, whenever it has doubled; what does not pay is taken back."""
    found, values = stream(seed, monkeypatch, max_components=max_components)
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))
    masses = np.array([mass for mass, _ in found])
    assert len(masses) > 0 and np.all(masses[1:] >= 2.0 * masses[:-1])
    tried = [(mass, trials) for mass, trials in found if trials]
    assert tried
    for mass, (first, *others) in tried:
        assert 2 <= len(first.created) <= max_components
        assert all(t.retires and not t.created for t in others)
        assert_allclose(first.initial.s[:, -1].sum(), mass, rtol=0.05)
        assert not {first.target, *(t.target for t in others)} & set(first.created)


def test_topics_are_not_made_anew_in_fits():
    """Their corpus does not grow."""
    birth, corpus = TopicBirth(min_tokens=20), KINDS[0].corpus(np.random.default_rng(3), 60)
    for n_components in (1, 4):
        follow = topic_learner(
            KINDS[0], PRIORS[0], corpus, n_components, proposals=[birth], n_batches=3
        )
        for _ in range(4):
            follow.learner.run_lap(follow.source)
            [own] = follow.learner.scheduler.proposals
            assert EVERYTHING not in own.wants(follow.learner.totals)
