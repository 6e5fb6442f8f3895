"""Checks of the attributes of a fitted `DPMixtureVB`; see `estimator.soundness`."""

from __future__ import annotations

from ..engine.extra import NoExtra
from ..estimator.soundness import laps
from ..estimator.soundness.engine import Kind
from ..estimator.soundness.estimators import check_fitted
from ..estimator.soundness.expectations import (
    expect,
    expect_numbers,
    expect_positions,
    expect_uids,
)
from .model import Model
from .sampling import Collector

MIXTURE = Kind(Model, (NoExtra,))


def check_mixture(estimator):
    """Raise unless a fitted `DPMixtureVB` is sound."""
    check_fitted(estimator, MIXTURE)
    laps.check_params(estimator._coef, estimator._model.likelihood, estimator.n_components_)
    expect_numbers("weights_", estimator.weights_, (estimator.n_components_,), least=0.0, most=1.0)


@laps.check_watcher.register
def _(collector: Collector, lap):
    n = len(collector.uids)
    expect_uids("components to be collected", collector.uids, lap.names.below)
    expect_positions("columns to be collected", collector._columns, (n,), lap.n_components)
    laps.check_mean_weight(collector)
    for samples, n_samples, of_all in (
        (collector._samples, n, False),
        (collector._uniform, 1, True),
    ):
        expect_positions("budgets of samples", samples._budget, (n_samples,), laps.MOST_ROWS)
        laps.check_keys("keys of samples", samples.threshold, (n_samples,))
        expect(not samples._open, "rows are of a batch that is over")
        for rows in (rows for batch in samples._batches.values() for rows in batch):
            shape = rows.key.shape if not of_all else (len(rows.key), lap.n_components)
            laps.check_prepared_rows(rows.z, lap)
            expect_numbers("shares of rows", rows.share, shape, size=None, least=0.0)
            if rows.weight is not None:
                expect_numbers("weights of rows", rows.weight, rows.key.shape, least=0.0)
            laps.check_keys("keys of rows", rows.key, (rows.z.shape[0],))
            expect_positions("whose rows were collected", rows.column, rows.key.shape, n_samples)
