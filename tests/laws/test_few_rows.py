"""Few rows: from whatever start, a fit ends no lower than with one component."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB

from .harness import estimator, quiet_fit

# Nats by which the prior, which adapts a few steps at a time, may be short of the one that suits.
SLACK = 0.1
# The same for concentrations, which one component leaves as several have learned them.
SLACK_OF_CONCENTRATIONS = 1.5


def assert_no_lower(model, X, **kwargs):
    alone = quiet_fit(model(1, proposals=None), X, **kwargs)
    assert alone.n_components_ == 1
    for n_components, init_params in [(2, "k-means++"), (7, "random"), (12, "k-means++")]:
        found = quiet_fit(model(n_components, init_params=init_params), X, **kwargs)
        assert found.lower_bound_ > alone.lower_bound_ - SLACK


@pytest.mark.quarter
@pytest.mark.parametrize("n_rows", [pytest.param(9, marks=pytest.mark.slow), 24])
def test_no_lower_than_one_component(leading_family, n_rows):
    """Three clusters that overlap so much that few rows do not show them."""
    family = leading_family
    if family.lags:
        pytest.skip("of sequences alone")
    X, _ = family.rows(np.random.default_rng(n_rows), n_rows, spread=3.0)

    def model(n_components, **params):
        return estimator(family, n_components=min(n_components, n_rows), random_state=0, **params)

    assert_no_lower(model, X)


@pytest.mark.extended
@pytest.mark.parametrize("shape", [(24, 20), (15, 4)])
def test_noise_is_one_component(shape):
    """The prior can adapt to many components of a few rows, so that each union of two is a loss."""
    rows = np.random.default_rng(0).normal(size=shape)

    def model(n_components, **params):
        return DPMixtureVB(n_components, random_state=0, **params)

    assert_no_lower(model, rows)
    assert quiet_fit(model(10), rows).n_components_ == 1


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:HDPTopicVB ends with one topic")
@pytest.mark.parametrize(("topic_word_prior", "seed"), [("auto", 0), ("auto", 1), (0.2, 2)])
def test_words_of_one_topic_are_one_topic(topic_word_prior, seed):
    """Several topics have more of a prior about the frequencies, unless that of one suits it as well."""
    p = 1.0 / (1.0 + np.arange(300))
    X = np.random.default_rng(seed).multinomial(6, p / p.sum(), size=60)

    def fit(n_components, init_params="random", **params):
        model = HDPTopicVB(
            n_components, init_params=init_params, random_state=seed,
            topic_word_prior=topic_word_prior, **params,
        )  # fmt: skip
        return quiet_fit(model, X)

    least = fit(1, proposals=None).lower_bound_ - SLACK_OF_CONCENTRATIONS
    for n_components, init_params in [(1, "random"), (2, "random"), (15, "anchor")]:
        assert fit(n_components, init_params).lower_bound_ > least


@pytest.mark.quarter
@pytest.mark.parametrize("n_components", [2, 12])
@pytest.mark.parametrize("observation", ["gaussian", "poisson"])
def test_noise_in_time_is_one_state(observation, n_components):
    rows = np.random.default_rng(0).poisson(3.0, size=(30, 4)).astype(float)

    def fit(n_components, **params):
        model = HDPHMMVB(n_components, observation=observation, random_state=0, **params)
        return quiet_fit(model, rows)

    found, alone = fit(n_components), fit(1, proposals=None)
    assert found.lower_bound_ > alone.lower_bound_ - SLACK_OF_CONCENTRATIONS
    assert found.n_components_ == 1


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_a_few_rows_are_topics(seed):
    """Twenty tokens were once the least of a topic, so that clusters of fewer rows were never found."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 14.0], [0.0, -14.0]])
    labels = rng.permutation(np.arange(60) % len(centers))
    X, groups = centers[labels] + rng.normal(size=(len(labels), 2)), np.repeat(range(6), 10)
    model = quiet_fit(HDPTopicVB(observation="gaussian", random_state=seed), X, groups=groups)
    assert model.n_components_ == len(centers)
    assert all(len(set(model.predict(X, groups=groups)[labels == k])) == 1 for k in range(4))
