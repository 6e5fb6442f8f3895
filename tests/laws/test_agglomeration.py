"""Greedy agglomeration: gains and margins against objectives of the groupings written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine.agglomeration import agglomerate
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.engine.unions import (
    GrowingUnions,
    GrowingUnionsOfRows,
    UnionsOfRows,
    entropies_of_unions,
)
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture


def mixture_of(n_clusters, n_components):
    """`RestrictedMixture`, statistics, entropies and shares of rows, in clusters far apart, shared softly."""
    rng = np.random.default_rng(n_clusters)
    labels = np.arange(300) % n_clusters
    X = rng.standard_normal((300, 2)) + 8.0 * labels[:, np.newaxis]
    model = DPMixtureVB(proposals=None).fit(X)._learner_.model
    z = model.likelihood.prepare(X)
    owner = labels + n_clusters * rng.integers(n_components // n_clusters, size=300)
    resp = 0.8 * np.eye(n_components)[owner] + 0.2 / n_components
    s = np.empty((n_components, model.likelihood.n_statistics))
    model.likelihood.summarise(z, resp, s)
    entropy = entropies_of_unions(resp, None, [(k,) for k in range(n_components)])
    return RestrictedMixture(model, Sample(z, np.ones(300), None), s[:0], False), s, entropy, resp


@pytest.mark.parametrize(("n_clusters", "n_components"), [(1, 2), (1, 6), (3, 6)])
def test_margin_of_the_best_grouping_over_a_single_group(n_clusters, n_components):
    small, s, entropy, resp = mixture_of(n_clusters, n_components)
    tree = agglomerate(
        s, entropy, small.union_entropy(resp).growing(), small.evidence, small.allocation
    )

    def objective(groups):
        sums = np.array([s[list(group)].sum(axis=0) for group in groups])
        total = small.evidence(sums).sum() + entropies_of_unions(resp, None, groups).sum()
        return total + small.allocation(sums[:, -1])

    levels, groups = [], [(k,) for k in range(n_components)]
    for node in tree.nodes:
        levels.append(objective(groups))
        groups = [g for g in groups if not set(g) <= set(node.members)] + [node.members]
    one = objective(groups)
    assert len(groups) == 1
    assert_allclose(tree.margin, max(levels) - one, rtol=1e-9)
    assert_allclose(tree.gain, max([*levels, one]) - levels[0], rtol=1e-9, atol=1e-9)
    assert (tree.margin > 0) == (len(tree.cut) > 1)
    assert objective(tree.cut) == pytest.approx(max([*levels, one]))


def test_one_component_has_no_margin():
    small, s, entropy, resp = mixture_of(1, 2)
    tree = agglomerate(
        s[:1], entropy[:1], small.union_entropy(resp).growing(), small.evidence, small.allocation
    )
    assert tree.margin == np.inf and tree.cut == [(0,)]


def shares_of(K, sharpness):
    """Shares of 400 rows, of each of which few components, or all, have something."""
    rng = np.random.default_rng(K)
    centers = rng.standard_normal((K, 3))
    x = centers[rng.integers(K, size=400)] + 0.3 * rng.standard_normal((400, 3))
    log = -sharpness * ((x[:, np.newaxis] - centers) ** 2).sum(axis=2)
    resp = np.exp(log - log.max(axis=1, keepdims=True))
    return x, resp / resp.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("with_weight", [False, True], ids=["", "weight"])
@pytest.mark.parametrize(
    ("K", "sharpness"), [(3, 1.0), (14, 1.0), (14, 30.0), (80, 1.0), (80, 30.0)]
)
def test_trees_are_the_same_row_by_row_and_column_by_column(K, sharpness, with_weight):
    x, resp = shares_of(K, sharpness)
    weight = np.random.default_rng(0).gamma(2.0, size=400) if with_weight else None
    own = resp if weight is None else resp * weight[:, np.newaxis]
    s = own.T @ np.column_stack([x**2, x, np.ones(400)])
    entropies = UnionsOfRows(resp, weight)

    def evidence(s):
        n = s[:, -1:] + 1e-3
        variance = s[:, :3] / n - (s[:, 3:6] / n) ** 2 + 1e-3
        return -0.5 * s[:, -1] * np.log(variance).sum(axis=1) - 3.0 * np.log1p(s[:, -1])

    entropy = entropies([(k,) for k in range(K)])
    trees = [
        agglomerate(s, entropy, unions, evidence, lambda n: -2.0 * len(n))
        for unions in (
            GrowingUnions(entropies, K), GrowingUnionsOfRows(resp, weight), entropies.growing()
        )
    ]  # fmt: skip
    for tree in trees[1:]:
        assert [node.members for node in tree.nodes] == [node.members for node in trees[0].nodes]
        assert tree.cut == trees[0].cut
        gains, expected = ([node.gain for node in one.nodes] for one in (tree, trees[0]))
        assert_allclose(gains, expected, rtol=1e-9, atol=1e-7)
