"""Models at rest and in mid-lap, of all estimators and several likelihoods, for tests of saving them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    Birth,
    CategoricalObservation,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    PitmanYorAllocation,
)

from .estimators import CENTERS, FEW_PROPOSALS, blobs, chains, documents, grouped_rows

X, _ = blobs(90)
GAPPY = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
CODES = np.digitize(X, [-3.0, 3.0])
COUNTS, _ = documents(45, 25)
ROWS, GROUPS, _ = grouped_rows(12, 12)
SEQUENCES, _ = chains(6, 30)
# Names of batches that a format which makes text of them, or of tuples something else, would mix up.
IDS = [1, "1", ("day", 1), ("day", "1")]


class SavedModel(NamedTuple):
    """A model to be saved.

    Attributes
    ----------
    made : callable
        Makes the model; the same one each time.
    go_on : callable
        ``go_on(model)`` learns from more data; None if the model cannot.
    results : callable
        ``results(model)`` -> arrays that it predicts.
    """

    made: Callable
    go_on: Callable | None
    results: Callable


def fitted(estimator, *data, **named):
    return lambda: estimator().fit(*data, **named)


def streamed(estimator, batches, n_visits):
    """Batches in turn, so many visits; a lap is under way if their number is no multiple."""

    def made():
        model = estimator()
        for i in range(n_visits):
            visit(model, batches, i)
        return model

    return made


def visit(model, batches, i):
    batch = batches[i % len(batches)]
    named = {"groups": batch[1]} if isinstance(batch, tuple) else {}
    model.partial_fit(batch[0] if named else batch, batch_id=IDS[i % len(batches)], **named)


def visits(batches, n_before, n_more=6):
    def go_on(model):
        for i in range(n_before, n_before + n_more):
            visit(model, batches, i)

    return go_on


def of_rows(x):
    return lambda model: [model.predict_proba(x), model.score_samples(x)]


def of_documents(x, **named):
    return lambda model: [model.transform(x, **named), model.score_samples(x, **named)]


def of_rows_in_documents(x, groups):
    return lambda model: [model.transform(x, groups=groups), model.predict_proba(x, groups=groups)]


def of_sequences(x):
    return lambda model: [*model.predict_proba(x), *model.score_samples(x)]


def mid_lap(estimator, batches, results, n_visits):
    return SavedModel(streamed(estimator, batches, n_visits), visits(batches, n_visits), results)


def _mixture(**named):
    return lambda: DPMixtureVB(random_state=0, **named)


def _topics(**named):
    return lambda: HDPTopicVB(random_state=0, **named)


def _states(**named):
    return lambda: HDPHMMVB(random_state=0, **named)


def _columns():
    blocks = [("place", "gaussian", [0, 1]), ("code", CategoricalObservation(n_categories=3), [2])]
    return DPMixtureVB(observation=ColumnObservation(blocks), random_state=0)


def _bounded():
    return MemoryBoundedTopicVB(300, max_iter=20)


MIXED = np.column_stack([X[:, :2], CODES[:, 2]])
EPOCHS = [(ROWS[GROUPS < 6], GROUPS[GROUPS < 6]), (ROWS[GROUPS >= 6], GROUPS[GROUPS >= 6])]
BLURRED, _ = chains(n_rows=90, centers=0.3 * CENTERS)
HALVES = [SEQUENCES[:3], SEQUENCES[3:]]
NEAR = np.random.default_rng(0).standard_t(3, size=(240, 3)) + 0.25 * CENTERS[np.arange(240) % 3]


def _next_epochs(model):
    for x, groups in EPOCHS:
        model.partial_fit(x, groups=groups)


MODELS = {
    "mixture": SavedModel(
        fitted(_mixture(), X), lambda model: model.partial_fit(X[:30]), of_rows(X)
    ),
    "birth under way": mid_lap(
        _mixture(n_components=4, proposals=(Birth(patience=6), "merge", "delete")),
        np.array_split(NEAR, 3), of_rows(NEAR), 7,
    ),
    "merges under way": mid_lap(
        _mixture(n_components=5, observation=CategoricalObservation(n_categories=3)),
        np.array_split(CODES, 3), of_rows(CODES), 7,
    ),
    "learned discount": mid_lap(
        _mixture(n_components=4, allocation=PitmanYorAllocation(0.5)), np.array_split(NEAR, 3),
        of_rows(NEAR), 5,
    ),
    "spherical": mid_lap(
        _mixture(observation=GaussianObservation("spherical"), proposals=(Birth("adopt"), "merge")),
        np.array_split(X, 3), of_rows(X), 4,
    ),
    "columns": mid_lap(_columns, np.array_split(MIXED, 3), of_rows(MIXED), 4),
    "rows with missing values": mid_lap(
        _mixture(observation=GaussianObservation("diag")), np.array_split(GAPPY, 3), of_rows(GAPPY), 5
    ),
    "stochastic": mid_lap(
        _mixture(n_components=3, learning_method="stochastic"), np.array_split(X, 3), of_rows(X), 4
    ),
    "topics": SavedModel(
        fitted(_topics(), COUNTS), lambda model: model.partial_fit(COUNTS[:20]), of_documents(COUNTS)
    ),
    "topics on trial": mid_lap(
        _topics(n_components=6), np.array_split(COUNTS, 3), of_documents(COUNTS), 7
    ),
    "topics of rows": mid_lap(
        _topics(n_components=6, observation="gaussian"),
        EPOCHS, of_documents(ROWS, groups=GROUPS), 5,
    ),
    "states": SavedModel(
        fitted(_states(), SEQUENCES),
        lambda model: model.partial_fit(SEQUENCES[:3]),
        of_sequences(SEQUENCES),
    ),
    "deletes under way": mid_lap(_states(), HALVES, of_sequences(SEQUENCES), 5),
    "unions of states": mid_lap(
        _states(n_components=12, proposals=("merge",)),
        [BLURRED[:3], BLURRED[3:]], of_sequences(BLURRED), 5,
    ),
    "regressions": mid_lap(
        _states(observation=AutoregressiveObservation(1), proposals=FEW_PROPOSALS),
        HALVES, of_sequences(SEQUENCES), 5,
    ),
    "correlated rows": SavedModel(
        fitted(
            _states(observation="correlated_gaussian", proposals=FEW_PROPOSALS), SEQUENCES
        ),
        lambda model: model.partial_fit(SEQUENCES[:3]),
        of_sequences(SEQUENCES),
    ),
    "bounded": SavedModel(
        fitted(_bounded, ROWS, groups=GROUPS), _next_epochs, of_rows_in_documents(ROWS, GROUPS)
    ),
}  # fmt: skip


@cache
def saved_model(name):
    """The model of this name; not to be changed."""
    return MODELS[name].made()
