"""New components that one way of looking for them leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..likelihood.seeding import lloyd, seeding_mass, summaries
from .restricted_mixture import LEAST_ROWS
from .slabs import NARROW_ADAPT, grouped_seeds, narrow_seeds

# Seeds are sought among at most this many rows, or so many for each of them if that is more.
_SEED_ROWS, _SEED_ROWS_OF_ONE = 2000, 20
# Steps on all rows of the sample after those on some of them.
_STEPS_ON_ALL = 4


class Creation(NamedTuple):
    """Components proposed in place of a target.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the new components on the sample.
    coef : ndarray, shape (J, P)
        Coefficients of the local step that shares the target's rows among them.
    gain : float
        Change of the objective on the sample alone, in nats.
    """

    s: np.ndarray
    coef: np.ndarray
    gain: float


def developed(small, target, way, rng):
    """Statistics and entropies of the components found in a way, or None twice."""
    start, sample = small, small.sample
    groups = grouped_seeds(small, sample, target, way.n_seeds) if way.grouped else None
    if groups is not None and len(groups) < 2:
        return None, None
    freely = small.n_nonzero is not None and not way.limited
    if way.n_rows is not None and way.n_rows < sample.z.shape[0]:
        rows = rng.choice(sample.z.shape[0], way.n_rows, replace=False)
        start = small.on(sample.rows(rows), free=not way.limited)
    elif freely:
        start = small.on(sample, free=True)
    entropy = None
    if way.narrow:
        s = narrow_seeds(small, start.sample, target, rng) if groups is None else groups
        start.adapt(s, NARROW_ADAPT)
    else:
        s = seeded(small.model, start.sample, target, way.n_seeds, way.whiten, rng)
    if len(s) > 1:
        s, entropy = start.refine(s, way.n_collapsed, way.pace)
        small.margin = start.margin
    if s is None or len(s) < 2:
        return None, None
    if start is not small:
        small.prior = start.prior
        s, entropy, _ = small.iterate(s, _STEPS_ON_ALL, 1e-4 * sample.total)
    if freely and len(s) > 1:  # where rows may not be shared, fewer components may pay
        s, entropy = small.refine(s)
    return (s, entropy) if s is not None and len(s) > 1 else (None, None)


def seeded(model, sample, target, n_seeds, whiten, rng):
    """Statistics (J, P) of the seeds that have at least one row."""
    seeding = seeding_mass(sample.mass, sample.weight)
    n_rows = max(_SEED_ROWS, _SEED_ROWS_OF_ONE * n_seeds)
    if sample.z.shape[0] > n_rows:
        rows = rng.choice(sample.z.shape[0], n_rows, replace=False)
        sample, seeding = sample.rows(rows), seeding[rows]
    points = model.likelihood.seeding_points(model.prior, target, sample.z, whiten=whiten)
    resp = lloyd(points, seeding, n_seeds, rng)
    del points  # they are as large as the rows
    s = summaries(model.likelihood, sample.z, resp * sample.row_mass[:, np.newaxis])
    return s[sample.rows_owned(s[:, -1], resp) >= LEAST_ROWS]
