"""Rows together with the rows before and after them, among which seeds of states are chosen.

Two states may have the same emissions and differ in what follows, or in what went before. The rows
themselves cannot tell such states apart. A row and its neighbours can, or the states that the rows around it
are in. Where states last for few rows, seeds among single rows are also a poor start: of letters, they are
groups of letters that have nothing to do with what follows.
"""

from __future__ import annotations

import numpy as np

from ..likelihood.seeding import lloyd, seeding_mass, summaries

_FAR = tuple(range(-8, 9))
# In turns, distances of the rows that are looked at together, and whether it is their states that are looked
# at, if there are several.
REACHES = (
    ((-2, -1, 0, 1, 2), False), (_FAR, True), ((-1, 0, 1), False), ((-1, 0, 1), True),
    ((0, 1), False), (_FAR, True), ((-1, 0), False),
)  # fmt: skip
# Columns of points; if there are more, random projections to so many take their place.
_COLUMNS = 60
_LLOYD_STEPS = 3


class Contexts:
    """Points of all rows of a sample, and parts of rows by the points of these rows and those next to them.

    Parameters
    ----------
    likelihood : Likelihood
    prior : object
        The likelihood's prior as it stands.
    sample : StateSample
    """

    def __init__(self, likelihood, prior, sample):
        whole = summaries(likelihood, sample.z, sample.row_mass[:, np.newaxis])[0]
        self._points = likelihood.seeding_points(prior, whole, sample.z)
        self._odds = seeding_mass(np.ones(sample.n_rows), sample.row_weight)
        self._run = np.repeat(np.arange(len(sample.indptr) - 1), np.diff(sample.indptr))

    def parts(self, rows, reach, n_seeds, rng, resp=None):
        """The part (n,) of each of the ``rows`` (n,): that of the nearest of some seeds.

        Parameters
        ----------
        rows : ndarray of int, shape (n,)
        reach : tuple of int
            Distances of the rows that are looked at together. A row beyond the end of a run counts as
            the mean of all.
        n_seeds : int
            The most parts.
        rng : numpy.random.RandomState
        resp : ndarray, shape (m, J), or None
            Probabilities of states, of all rows of the sample, that take the place of the rows' points.
        """
        points = self._points if resp is None else np.ascontiguousarray(resp, self._points.dtype)
        columns = len(reach) * points.shape[1]
        projection = None
        if columns > _COLUMNS:
            projection = rng.normal(size=(len(reach), points.shape[1], _COLUMNS))
            projection = (projection / np.sqrt(_COLUMNS)).astype(points.dtype)
        beside = [self._beside(points, rows, distance) for distance in reach]
        if projection is None:
            points = np.ascontiguousarray(np.hstack(beside))
        else:
            points = sum(x @ part for x, part in zip(beside, projection, strict=True))
        shares = lloyd(points, self._odds[rows], n_seeds, rng, n_steps=_LLOYD_STEPS)
        return np.unique(shares.argmax(axis=1), return_inverse=True)[1].ravel()

    def _beside(self, points, rows, distance):
        """Points (n, m) of the rows at some distance."""
        there = np.clip(rows + distance, 0, len(self._run) - 1)
        inside = (there == rows + distance) & (self._run[there] == self._run[rows])
        return np.where(inside[:, np.newaxis], points[there], points.mean(axis=0))
