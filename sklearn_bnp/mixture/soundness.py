"""Checks of the attributes of a fitted `DPMixtureVB`; see `estimator.soundness`."""

from __future__ import annotations

from ..engine.extra import NoExtra
from ..estimator.soundness import laps
from ..estimator.soundness.engine import Kind, check_own_model, check_pooled
from ..estimator.soundness.estimators import check_fitted
from ..estimator.soundness.expectations import (
    expect,
    expect_numbers,
    expect_positions,
    expect_type,
    expect_uids,
)
from ..estimator.soundness.laps import (
    MOST_ROWS,
    check_keys,
    check_mean_weight,
    check_pooled_rows,
    check_prepared_rows,
    check_sampling,
)
from ..inputs.batches import Batch
from .birth import Birth
from .delete import Delete
from .model import MixtureModel
from .oversplit import Oversplit
from .regroup import Regroup
from .relocate import Relocate
from .sampling import RowSampling

MIXTURE = Kind(MixtureModel, (NoExtra,))
laps.check_memories_of(Birth, Delete, Oversplit, Regroup, Relocate)


def check_mixture(estimator):
    """Raise unless a fitted `DPMixtureVB` is sound."""
    check_fitted(estimator, MIXTURE)
    _check_retired(estimator._learner_)
    laps.check_params(estimator._coef, estimator._model.likelihood, estimator.n_components_)
    if "labels_" in estimator._published:
        expect_positions("labels_", estimator.labels_, (None,), estimator.n_components_)
    expect_numbers("weights_", estimator.weights_, (estimator.n_components_,), least=0.0, most=1.0)


def _check_retired(state):
    """Components that no row may go to are there, as long as others are on trial."""
    if state is not None:
        there = set(state.totals.uids.tolist())
        expect(set(state.model.retired) <= there, "components retire that are not there")


@check_own_model.register
def _(model: MixtureModel, below):
    expect_type("what retires", model.retired, tuple)
    expect_uids("components that retire", model.retired, below)


@check_pooled.register
def _(batch: Batch, likelihood, n_columns):
    check_pooled_rows(batch.x, likelihood, n_columns)
    expect(batch.resp is None, "a pool holds responsibilities")
    if batch.weight is not None:
        expect_numbers("weights of a pool", batch.weight, (batch.x.shape[0],), least=0.0)


@check_sampling.register
def _(sampling: RowSampling, lap, uids):
    n = len(sampling.uids)
    expect_uids("components to be sampled", sampling.uids, lap.names.below)
    expect(set(sampling.uids) <= set(uids.tolist()), "components are sampled that are not there")
    check_mean_weight(sampling._mean_weight)
    for held, n_samples, of_all in ((sampling._samples, n, False), (sampling._uniform, 1, True)):
        expect_positions("budgets of samples", held.budget, (n_samples,), MOST_ROWS)
        check_keys("keys of samples", held.threshold, (n_samples,))
        for draw in held._batches.values():
            check_keys("keys of samples", draw.threshold, (n_samples,))
            for rows in draw.rows:
                _check_rows(rows, n_samples, of_all, lap)


def _check_rows(rows, n_samples, of_all, lap):
    """Raise unless `RowsOfBlock` are sound."""
    shape = rows.key.shape if not of_all else (len(rows.key), lap.n_components)
    check_prepared_rows(rows.z, lap)
    expect_numbers("shares of rows", rows.share, shape, size=None, least=0.0)
    if rows.weight is not None:
        expect_numbers("weights of rows", rows.weight, rows.key.shape, least=0.0)
    check_keys("keys of rows", rows.key, (rows.z.shape[0],))
    expect_positions("whose rows were drawn", rows.column, rows.key.shape, n_samples)
