"""Rows in three clusters, of the kind that each family is for."""

from __future__ import annotations

import numpy as np

_SHARES = (0.5, 0.33, 0.17)


def labels_of(rng, n):
    """Labels with fixed shares, in random order; each label appears."""
    edges = np.round(np.cumsum((0.0, *_SHARES)) * n).astype(int)
    return rng.permutation(np.repeat(np.arange(3), np.diff(edges)))


def clouds(rng, n, spread=1.0):
    """Three tilted clouds; columns of different scales, far from the origin."""
    labels = labels_of(rng, n)
    centers = np.array([[3.0, 0.0, 0.0], [-2.0, 3.0, 0.0], [-2.0, -3.0, 1.0]])
    tilt = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, -0.3], [0.0, 0.0, 0.9]])
    x = centers[labels] + 0.7 * spread * rng.standard_normal((n, 3)) @ tilt
    return x * [1.0, 20.0, 0.05] + [7.0, -300.0, 0.2], labels


def balls(rng, n, spread=1.0):
    """Three round clouds of different sizes."""
    labels = labels_of(rng, n)
    centers = np.array([[3.0, 0.0, 0.0], [-2.0, 3.0, 0.0], [-2.0, -3.0, 1.0]])
    size = np.array([0.8, 0.5, 1.0])[labels, np.newaxis]
    return centers[labels] + spread * size * rng.standard_normal((n, 3)) + 5.0, labels


def rounded_clouds(rng, n, spread=1.0):
    """Clouds recorded to a step; the second column is recorded as it is."""
    x, labels = clouds(rng, n, spread)
    step = np.array([0.5, 1e-9, 0.025])
    return np.round(x / step) * step, labels


def rounded_balls(rng, n, spread=1.0):
    """Balls recorded to a step in one column."""
    x, labels = balls(rng, n, spread)
    return np.column_stack([x[:, :2], np.round(2.0 * x[:, 2]) / 2.0]), labels


def transformed_tallies(rng, n, spread=1.0):
    """Logarithms and square roots of small counts, whose distances are uneven, beside a continuous column."""
    labels = labels_of(rng, n)
    rates = np.array([[1.0, 5.0], [3.0, 1.0], [9.0, 3.0]])
    rates = 3.0 + (rates - 3.0) / spread
    counts = rng.poisson(rates[labels])
    middle = 4.0 / spread * labels + rng.normal(size=n)
    return np.column_stack([np.log1p(counts[:, 0]), middle, np.sqrt(counts[:, 1])]), labels


def flat_clouds(rng, n, spread=1.0):
    """Three clouds about the origin, each wide in a direction of its own."""
    labels = labels_of(rng, n)
    sizes = np.array([[3.0, 0.3, 0.3], [0.3, 3.0, 0.3], [0.3, 0.3, 3.0]]) ** (1.0 / spread)
    return sizes[labels] * rng.standard_normal((n, 3)), labels


def shells(rng, n, spread=1.0):
    """Three round clouds about the origin, in many columns, that differ in size alone."""
    labels = labels_of(rng, n)
    sizes = np.array([1.0, 6.0, 30.0]) ** (1.0 / spread)
    return sizes[labels, np.newaxis] * rng.standard_normal((n, 8)), labels


def switches(rng, n, spread=1.0):
    """Three patterns of twelve binary columns."""
    labels = labels_of(rng, n)
    on = np.kron(np.eye(3), np.ones(4)).astype(bool)[labels]
    p = np.where(on, 1.0 - 0.1 * spread, 0.1 * spread)
    return (rng.random((n, 12)) < p).astype(float), labels


def bags(rng, n, spread=1.0):
    """20 to 60 tokens of twelve types, a third of which each cluster prefers; one type is rare."""
    labels = labels_of(rng, n)
    usual = np.append(np.full(11, 1.0), 0.01)
    phi = 0.15 * spread * usual / usual.sum() + (1.0 - 0.15 * spread) * np.kron(
        np.eye(3), np.array([0.4, 0.3, 0.2, 0.1])
    )
    return rng.multinomial(rng.integers(20, 61, size=n), phi[labels]).astype(float), labels


def tallies(rng, n, spread=1.0):
    """Three patterns of six columns of counts, of which some are seldom counted."""
    labels = labels_of(rng, n)
    rates = np.array([0.5, 4.0] * 3) * (1.0 + 5.0 / spread * np.kron(np.eye(3), np.ones(2)))
    return rng.poisson(rates[labels]).astype(float), labels


def clumps(rng, n, spread=1.0):
    """Three patterns of six columns of counts, which vary more than Poisson counts."""
    labels = labels_of(rng, n)
    means = np.array([0.5, 4.0] * 3) * (1.0 + 9.0 / spread * np.kron(np.eye(3), np.ones(2)))
    return rng.poisson(means[labels] * rng.gamma(3.0, 1.0 / 3.0, (n, 6))).astype(float), labels


# Categories of the columns of `answers`.
N_ANSWERS = np.array([2, 3, 4, 2, 3, 4, 3, 2])


def answers(rng, n, spread=1.0):
    """Three patterns of eight columns of categories; each category occurs."""
    labels = labels_of(rng, n)
    x = np.empty((n, len(N_ANSWERS)))
    for d, size in enumerate(N_ANSWERS):
        usual = (labels * (1 + d % 2) + d) % size
        x[:, d] = np.where(rng.random(n) < 0.15 * spread, rng.integers(size, size=n), usual)
        x[rng.permutation(n)[:size], d] = np.arange(size)
    return x, labels


def mixed(rng, n, spread=1.0):
    """Clouds, answers and tallies of the same three clusters, one column beside another."""
    labels = labels_of(rng, n)
    x = np.empty((n, 6))
    for rows, to, of in (
        (clouds, [0, 4], [0, 1]),
        (answers, [1, 2], [2, 1]),
        (tallies, [3, 5], [0, 3]),
    ):
        found, own = rows(rng, 8 * n, spread)
        for k in range(3):  # shares are fixed: there are more than enough of each
            x[np.ix_(labels == k, to)] = found[own == k][: np.sum(labels == k)][:, of]
    for d, size in ((1, 4), (2, 3)):
        x[rng.permutation(n)[:size], d] = np.arange(size)
    return x, labels


def swings(order):
    """Lagged rows of three regressions: a turn, a pull to a point, and a drift with little noise."""
    turn = np.array([[0.6, 0.7], [-0.7, 0.6]])
    pull, drift = np.diag([0.2, -0.5]), np.eye(2)
    intercepts = np.array([[0.0, 1.0], [4.0, -2.0], [-2.0, -1.5]])

    def rows(rng, n, spread=1.0):
        labels = labels_of(rng, n)
        past = rng.normal(1.0, 2.0, size=(n, order, 2))
        now = np.einsum("nij,nj->ni", np.stack([turn, pull, drift])[labels], past[:, 0])
        now += 0.3 * (past[:, -1] - past[:, 0]) + intercepts[labels]
        noise = np.array([0.4, 0.3, 0.2])[labels, np.newaxis] * rng.standard_normal((n, 2))
        now += spread * noise @ np.array([[1.0, 0.5], [0.0, 0.8]])
        sequence = np.concatenate([now[:, np.newaxis], past], axis=1) * [1.0, 20.0] + [7.0, -300.0]
        return sequence.reshape(n, -1), labels

    return rows


def with_missing(rows):
    """The same rows, of which 15 % of the entries are missing, and one row altogether.

    Three rows show each column at the least.
    """

    def some(rng, n, spread=1.0):
        x, labels = rows(rng, n, spread)
        missing = rng.random(x.shape) < 0.15
        missing[:, np.sum(~missing, axis=0) < 3] = False
        x[missing] = np.nan
        if n > 20:
            x[17] = np.nan
        return x, labels

    return some
