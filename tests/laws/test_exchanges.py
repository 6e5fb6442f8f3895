"""Exchanges: of two sets of components, each block of rows takes the better one."""

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.mixture import searches
from sklearn_bnp.mixture.exchange import exchanged
from sklearn_bnp.mixture.searches import Search
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture

from .harness import learner_for, random_resp

# Two clusters near each other, and two others far away.
MIDDLES = np.array([[0.0, 0.0], [9.0, 0.0], [90.0, 90.0], [97.0, 90.0]])
CLUSTER = np.arange(200) % 4
# Components of the four clusters: the true ones, and those that take two clusters for one.
TRUE, JOINED_NEAR, JOINED_FAR, JOINED = (0, 1, 2, 3), (0, 0, 1, 2), (0, 1, 2, 2), (0, 0, 1, 1)


@pytest.fixture(scope="module")
def small():
    """A mixture of nothing yet, on rows of four clusters."""
    X = MIDDLES[CLUSTER] + np.random.default_rng(0).standard_normal((200, 2))
    fitted = DPMixtureVB(init_params=np.eye(4)[CLUSTER], proposals=None).fit(X)
    model = fitted._learner_.model
    sample = Sample(model.likelihood.prepare(X), np.ones(200), None)
    return RestrictedMixture(model, sample, np.empty((0, model.likelihood.n_statistics)), False)


def components(small, of_clusters):
    """Statistics (K, P) of components, each of which has the rows of some clusters."""
    resp = np.eye(max(of_clusters) + 1)[np.array(of_clusters)[CLUSTER]]
    out = np.empty((resp.shape[1], small.model.likelihood.n_statistics))
    small.model.likelihood.summarise(small.sample.z, resp, out)
    return out


@pytest.mark.parametrize(
    ("present", "found", "best"),
    [
        (JOINED_NEAR, JOINED_FAR, TRUE),  # each is right where the other is wrong
        (JOINED_FAR, JOINED_NEAR, TRUE),
        (JOINED, TRUE, TRUE),
        (TRUE, JOINED, None),  # no block gains
        (JOINED_NEAR, TRUE, None),  # one block differs, which is all that was found
        (TRUE, TRUE, None),
    ],
)
def test_each_block_takes_the_better_components(small, present, found, best):
    mixed = exchanged(small, components(small, present), components(small, found))
    if best is None:
        assert mixed is None
        return
    counts = sorted(mixed[:, -1])
    np.testing.assert_allclose(counts, sorted(components(small, best)[:, -1]), atol=0.5)


def test_in_all_families_components_are_those_of_either_set(leading_family):
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, 120, spread=1.5)
    weight = rng.choice([0.5, 1.0, 3.0], size=120)
    of = []
    for K in (4, 5):
        resp = random_resp(rng, 120, K, 0.05)
        learner, source = learner_for(leading_family, X, resp=resp, weight=weight)
        learner.run_lap(source)
        of.append(learner.totals.s)
    z = learner.model.likelihood.prepare(X)
    sample = Sample(z, np.ones(120), weight)
    small = RestrictedMixture(learner.model, sample, of[0][:0], adapt=False)
    assert exchanged(small, of[0], of[0]) is None
    stepped = np.concatenate([small.step(s)[0] for s in of])
    for present, found in (of, of[::-1]):
        mixed = exchanged(small, present, found)
        if mixed is not None:
            assert (mixed[:, np.newaxis] == stepped).all(axis=2).any(axis=1).all()


def test_a_search_that_fails_is_exchanged(small, monkeypatch):
    """It ends with more than was there before, though all that it has found is worse."""

    class Compared:
        s = components(small, JOINED_FAR)

        def __init__(self):
            self.small = small

        def restricted(self, adapt, limited):
            return small

        def settled(self, s):
            s, entropy, _ = small.iterate(s, 3, 0.0)
            before = small.objective(*small.step(self.s)[:2])
            return s, small.coefficients(s), small.objective(s, entropy) - before

    found = components(small, JOINED_NEAR)
    monkeypatch.setattr(searches, "oversplit", lambda *args: found)
    compared = Compared()
    assert compared.settled(found)[2] < -1.0
    search = Search(compared, 3, 9, np.random.RandomState(0))
    search.go_on()
    assert search.gain > 1.0
    assert len(search.coef) == 4
