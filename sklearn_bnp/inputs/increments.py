"""Differences between successive rows of sequences, and the noise within states that they show.

Design note
-----------
(a) Rows of a sequence scatter about the level of their state. How much they do cannot be told from the
    variance of all rows, which counts the distances between states too. Differences between successive rows
    know nothing of the levels, except where the state changes.
(b) Increments are therefore described by a mixture of two Gaussians with mean 0: a narrow one, of rows
    whose state stays, and a wide one. If the noise of successive rows is independent, the narrow variance is
    twice that of the noise.
(c) Noise with a memory, ``e_t = phi e_(t-1) + ...``, has smaller increments. Successive increments tell
    ``phi``, for their correlation is ``(phi - 1) / 2``. The variance of the noise is half of the narrow
    variance, divided by ``1 - phi``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Pairs of increments at most, evenly spaced. They tell variances to 3 %.
_MOST = 4000
# With fewer pairs, nothing is said about the noise.
_FEWEST = 10
# Steps of expectation-maximisation. The two Gaussians are far apart where it matters, so that few do.
_EM_STEPS = 30
# The narrow Gaussian starts at this quantile of increments, which is within it if 3 of 10 states stay.
_QUANTILE, _OF_NORMAL = 0.3, 0.385
# Least variance of an increment, as a share of the column's variance.
_LEAST = 1e-8


class Noise(NamedTuple):
    """Noise of rows about the levels of their states.

    Attributes
    ----------
    variance : ndarray, shape (D,)
        Variances, in the units of the increments.
    memory : float
        Correlation of the noise of successive rows, between 0 and 1.
    """

    variance: np.ndarray
    memory: float


class Increments(NamedTuple):
    """Pairs of successive differences ``x[t + 1] - x[t]`` and ``x[t + 2] - x[t + 1]``.

    Attributes
    ----------
    first, second : ndarray, shape (n, D)
        The differences; NaN where a row has a missing entry.
    weight : ndarray, shape (n,)
        Weights of the sequences that they are from.
    """

    first: np.ndarray
    second: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, x, indptr, weight, magnitude):
        """Increments of ``x / magnitude``, of sequences with rows ``indptr[i]:indptr[i + 1]`` and weights."""
        inner = np.ones(len(x), dtype=bool)
        ends = np.asarray(indptr[1:])
        inner[np.concatenate([ends - 1, np.maximum(ends - 2, 0)])] = False
        inner[-2:] = False
        at = np.flatnonzero(inner)
        if len(at) > _MOST:
            at = at[np.linspace(0, len(at) - 1, _MOST).astype(np.intp)]
        rows = [np.asarray(x[at + i]) / magnitude for i in range(3)]
        own = np.ones(len(at))
        if weight is not None:
            own = weight[np.searchsorted(ends, at, side="right")]
        return cls(rows[1] - rows[0], rows[2] - rows[1], own.astype(float))

    @classmethod
    def joined(cls, parts):
        """Increments of several sets of sequences, evenly spaced if there are too many."""
        whole = cls(*(np.concatenate(field) for field in zip(*parts, strict=True)))
        n = len(whole.weight)
        if n <= _MOST:
            return whole
        some = np.linspace(0, n - 1, _MOST).astype(np.intp)
        return cls(*(field[some] for field in whole))

    def of_columns(self, columns):
        """Increments of some columns."""
        return self._replace(first=self.first[:, columns], second=self.second[:, columns])

    def noise(self, variance):
        """`Noise` of rows whose columns have these variances (D,); None if there are too few increments."""
        usable = (variance > 0) & np.any(np.nan_to_num(self.first) != 0, axis=0)
        if np.count_nonzero(self.weight) < _FEWEST or not usable.any():
            return None
        pairs = self.of_columns(usable)
        seen = np.isfinite(pairs.first), np.isfinite(pairs.second)
        first, second = (np.nan_to_num(d) ** 2 for d in (pairs.first, pairs.second))
        least = _LEAST * variance[usable]
        narrow = [
            _quantile(np.abs(d[s]), self.weight[s], _QUANTILE) / _OF_NORMAL
            for d, s in zip(pairs.first.T, seen[0].T, strict=True)
        ]
        narrow = np.maximum(np.square(narrow), least)
        wide = np.maximum(_mean(first, seen[0], self.weight, least), 2.0 * narrow)
        share = 0.5
        for _ in range(_EM_STEPS):
            resp = _stays(first, seen[0], narrow, wide, share)
            mass = self.weight * resp
            share = np.clip(mass.sum() / self.weight.sum(), 0.01, 0.99)
            narrow = _mean(first, seen[0], mass, least)
            wide = np.maximum(_mean(first, seen[0], self.weight - mass, least), narrow)
        stays = _stays(first, seen[0], narrow, wide, share)
        mass = self.weight * stays * _stays(second, seen[1], narrow, wide, share)
        memory = _memory(pairs, seen[0] & seen[1], mass)
        out = variance.astype(float)
        out[usable] = np.minimum(0.5 * narrow / max(1.0 - memory, 1e-3), variance[usable])
        return Noise(out, memory)


def _stays(square, seen, narrow, wide, share):
    """Probabilities (n,) that increments, given by their squares, are of the narrow Gaussian."""
    odds = seen @ np.log(wide / narrow) + np.where(seen, square, 0.0) @ (1.0 / wide - 1.0 / narrow)
    odds = 0.5 * odds + np.log(share) - np.log1p(-share)
    return 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0)))


def _mean(square, seen, weight, least):
    """Weighted means (D,) of observed squares, not below ``least``."""
    return np.maximum((weight @ square) / np.maximum(weight @ seen, 1e-300), least)


def _memory(pairs, seen, mass):
    """Correlation of successive rows' noise, from pairs of increments with these weights (n,)."""
    first, second = (np.where(seen, d, 0.0) for d in (pairs.first, pairs.second))
    scale = np.sqrt((mass @ first**2) * (mass @ second**2))
    told = scale > 0
    if not told.any():
        return 0.0
    correlation = (mass @ (first * second))[told] / scale[told]
    return float(np.clip(1.0 + 2.0 * np.mean(correlation), 0.0, 1.0))


def _quantile(values, weight, share):
    """The least value that this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order])
    at = np.searchsorted(cumulated, share * cumulated[-1])
    return values[order[min(int(at), len(values) - 1)]]
