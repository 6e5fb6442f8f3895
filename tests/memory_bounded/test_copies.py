"""Copies of rows and documents are no evidence of topics; rows on a grid are no copies."""

import numpy as np
import pytest

from sklearn_bnp import GaussianObservation, MemoryBoundedTopicVB
from tests.estimators import grouped_rows

NEAR = np.array([[-2.5, 0.0], [2.5, 0.0], [0.0, 4.0]])
LINE = np.array([[-5.0], [0.0], [5.0]])
ONE = np.zeros((1, 2))
GRIDS = {
    "tenths": lambda X: np.round(X, 1),
    "halves": lambda X: np.round(2 * X) / 2,
    "whole": np.round,
}


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("centers", [NEAR, LINE, ONE], ids=["plane", "line", "one"])
def test_rows_on_a_grid_have_as_many_topics_as_before(centers, grid):
    """Equal rows are different ones that lie in one cell."""
    X, groups, _ = grouped_rows(60, 15, centers=centers)
    X, model = GRIDS[grid](X), MemoryBoundedTopicVB(3000)
    assert model.fit(X, groups=groups).n_components_ == len(centers)
    for part in range(3):  # the first of which has the units
        own = groups % 3 == part
        model.partial_fit(X[own], groups=groups[own])
    assert model.n_components_ == len(centers)


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_rows_on_a_grid_and_shapes_of_covariances(shape):
    X, groups, _ = grouped_rows(40, 20, centers=NEAR)
    model = MemoryBoundedTopicVB(3000, observation=GaussianObservation(shape))
    assert model.fit(np.round(X), groups=groups).n_components_ == 3


def test_a_given_resolution_helps_where_the_first_epoch_shows_none():
    X, groups, _ = grouped_rows(100, 10, centers=LINE)
    X = np.round(X, 1)
    few = groups < 4
    observation = GaussianObservation(resolution=0.1)
    model = MemoryBoundedTopicVB(3000, observation=observation)
    model.partial_fit(X[few], groups=groups[few]).partial_fit(X[~few], groups=groups[~few])
    assert model.n_components_ == 3


def given(how, X, groups, times):
    """Rows, groups and weights of documents that are there several times, or of rows in them."""
    if how == "weights":
        return X, groups, np.full(len(X), float(times))
    if how == "documents":
        each = [groups + (groups.max() + 1) * i for i in range(times)]
        return np.tile(X, (times, 1)), np.concatenate(each), None
    return np.repeat(X, times, axis=0), np.repeat(groups, times), None


@pytest.mark.quarter
@pytest.mark.parametrize("times", [3, 20])
@pytest.mark.parametrize("how", ["weights", "documents", "rows"])
@pytest.mark.parametrize("rounded", [False, True], ids=["continuous", "grid"])
@pytest.mark.parametrize("centers", [LINE, ONE], ids=["line", "one"])
def test_copies_make_no_topics_and_hide_none(centers, rounded, how, times):
    """A document that comes twenty times is one document as well as its rows are one row each."""
    X, groups, _ = grouped_rows(20, 12, seed=1, centers=centers)
    observation = GaussianObservation(resolution="auto" if rounded else None)
    X = np.round(2 * X) / 2 if rounded else X
    X, groups, weight = given(how, X, groups, times)
    model = MemoryBoundedTopicVB(3000, observation=observation, max_components=20)
    model.fit(X, groups=groups, sample_weight=weight)
    assert model.n_components_ == len(centers)
