"""The promises of the documentation, on data that somebody measured or published."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import AutoregressiveObservation, Birth, DPMixtureVB, GaussianObservation
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood.lags import lagged
from tests.laws.harness import features_of, one_hot


@pytest.fixture(scope="module")
def asterisk(data_file):
    table = np.genfromtxt(data_file("asterisk_k8.csv"), delimiter=",", names=True)
    columns = [table[name] for name in table.dtype.names if name != "z_true"]
    return np.column_stack(columns), table["z_true"]


@pytest.mark.quarter
@pytest.mark.parametrize("n_components", [1, 25])
@pytest.mark.parametrize("n_batches", [1, 10])
def test_asterisk(asterisk, n_components, n_batches):
    X, truth = asterisk
    model = DPMixtureVB(n_components, n_batches=n_batches, random_state=0).fit(X)
    assert model.n_components_ == 8
    assert adjusted_rand_score(truth, model.predict(X)) == 1.0


def test_asterisk_by_adoption(asterisk):
    """The births of 2013 get there as well."""
    X, truth = asterisk
    proposals = (Birth("adopt"), "merge", "delete")
    model = DPMixtureVB(proposals=proposals, n_batches=5, random_state=0).fit(X)
    assert model.n_components_ == 8
    assert adjusted_rand_score(truth, model.predict(X)) == 1.0


def test_iris():
    """Three species; the prior is found from 150 rows."""
    X, truth = load_iris(return_X_y=True)
    model = DPMixtureVB(random_state=0).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(truth, model.predict(X)) > 0.85


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_patches_have_a_null_direction(data_file):
    """Patches without their mean: one direction of 64 is empty, and does no harm."""
    with np.load(data_file("bsds_patches8x8_100k.npz")) as file:
        X = file["X"][:3000] / 255.0
    X -= X.mean(axis=1, keepdims=True)
    zero_mean = GaussianObservation(zero_mean=True)
    whole = DPMixtureVB(observation=zero_mean, max_iter=5, random_state=0).fit(X)
    assert whole.n_components_ > 3
    assert whole._learner_.model.likelihood.n_features == 63
    outside = whole.score_samples(X[:10] + 0.1)  # not a patch without its mean
    assert np.all(outside < whole.score_samples(X[:10]) - 100.0)
    assert np.isfinite(whole.score(X))


@pytest.mark.parametrize("order", [1, 2])
def test_actions_are_regressions(data_file, order):
    """Motion capture: the twelve actions that people saw have more evidence than one, by far.

    Each row has 12 numbers; half a nat for each at order 1, and not so much less beyond.
    """
    with np.load(data_file("mocap6.npz")) as file:
        y, labels, indptr = file["X"], file["TrueZ"], file["doc_range"]
    rows, _ = lagged(y, indptr, order)
    labels = lagged(labels[:, np.newaxis], indptr, order)[0][:, 0]
    moments = column_moments([Batch(0, rows)], covariance=True)
    likelihood = AutoregressiveObservation(order).bind(moments)
    features = features_of(likelihood, likelihood.prepare(rows))
    actions = np.unique(labels, return_inverse=True)[1]
    one, twelve = (
        likelihood.evidence(likelihood.prior, one_hot(z).T @ features).sum() / (12 * len(rows))
        for z in (0 * actions, actions)
    )
    assert -3.0 < one < twelve - 0.4
    assert twelve > -2.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_mnist_grows_past_a_good_fixed_number(data_file):
    """From one component, above a K = 60 start, on a third of MNIST."""
    with np.load(data_file("mnist_pca50.npz")) as file:
        X = file["X_train"][:20_000].astype(np.float32)
    grown = DPMixtureVB(max_iter=30, tol=0.0, random_state=0).fit(X)
    fixed = DPMixtureVB(60, max_iter=30, tol=0.0, proposals=None, random_state=0).fit(X)
    assert grown.n_components_ > 40
    assert grown.lower_bound_ > fixed.lower_bound_
