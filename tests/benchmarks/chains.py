"""Sequences with known states, and the real ones of the data folder."""

from __future__ import annotations

import gzip
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .report import data_file


class Sequences(NamedTuple):
    """Sequences, and the true state of each row where that is known (-1 where it does not count)."""

    name: str
    sequences: list[NDArray]
    states: list[NDArray] | None

    @property
    def n_rows(self) -> int:
        return sum(len(x) for x in self.sequences)


def sticky_path(rng, n_states: int, length: int, stay: float) -> NDArray[np.intp]:
    """A path that stays where it is with probability ``stay``, and else goes anywhere else."""
    moves = rng.random_sample(length) >= stay
    moves[0] = False
    hops = np.where(moves, rng.randint(1, max(2, n_states), size=length), 0)
    return (rng.randint(n_states) + np.cumsum(hops)) % n_states


def markov_path(rng, first, trans, length: int) -> NDArray[np.intp]:
    """A path (length,) of a Markov chain with these probabilities of first states and transitions."""
    cdf, u = np.cumsum(trans, axis=1), rng.random_sample(length)
    z = np.empty(length, dtype=np.intp)
    z[0] = min(np.searchsorted(np.cumsum(first), u[0]), len(first) - 1)
    for t in range(1, length):
        z[t] = min(np.searchsorted(cdf[z[t - 1]], u[t]), len(first) - 1)
    return z


def toy(
    seed: int = 0, *, n_sequences: int = 32, length: int = 1000, stay: float = 0.98,
    n_states: int = 8, n_features: int = 2, spread: float = 6.0,
) -> Sequences:  # fmt: skip
    """Gaussian states at random places, full covariances (thesis Sec. 6.6.1)."""
    rng = np.random.RandomState(seed)
    means = _apart(rng, n_states, n_features, spread)
    factors = rng.normal(size=(n_states, n_features, n_features)) * 0.3 + np.eye(n_features)
    paths = [sticky_path(rng, n_states, length, stay) for _ in range(n_sequences)]
    rows = [
        means[z] + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(length, n_features)))
        for z in paths
    ]
    return Sequences(f"toy, stay {stay:g}, {n_features}-D", rows, paths)


def _apart(rng, n_states, n_features, spread):
    """Means, no two of which are nearer than ``spread`` standard deviations of a state."""
    side = spread * n_states ** (1.0 / n_features) * 1.5
    means = np.empty((0, n_features))
    while len(means) < n_states:
        new = rng.uniform(-side, side, n_features)
        if np.all(np.linalg.norm(means - new, axis=1) >= spread):
            means = np.vstack([means, new])
    return means


def toy_autoregressive(seed: int = 0, *, n_states: int = 6, n_sequences: int = 10) -> Sequences:
    """Rotations with different speeds and noise, in 2-D."""
    rng = np.random.RandomState(seed)
    angles = np.linspace(0.2, 2.6, n_states)
    rotations = [0.98 * np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    noise = rng.uniform(0.1, 0.5, n_states)
    rows, paths = [], []
    for _ in range(n_sequences):
        z = sticky_path(rng, n_states, 500, 0.98)
        x = np.zeros((len(z), 2))
        x[0] = rng.normal(size=2)
        for t in range(1, len(z)):
            x[t] = rotations[z[t]] @ x[t - 1] + noise[z[t]] * rng.normal(size=2)
        rows.append(x)
        paths.append(z)
    return Sequences(f"AR toy, {n_states} states", rows, paths)


def null(seed: int = 0, *, n_features: int = 3, memory: float = 0.0) -> Sequences:
    """One state: independent rows, or an autoregression with coefficient ``memory``."""
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(8, 500, n_features))
    for t in range(1, 500):
        rows[:, t] += memory * rows[:, t - 1]
    return Sequences(f"null, memory {memory:g}", list(rows), [np.zeros(500, dtype=int)] * 8)


# ---------------------------------------------------------------------- real ones


def _cut(rows, edges):
    return [rows[a:b] for a, b in pairwise(edges)]


def mocap6(*, with_frame_before: bool = True) -> Sequences:
    """Six sequences of exercises, 12 joint angles, labelled by hand.

    With the frame before each as a first row, which an autoregression takes as given; its state is
    not known.
    """
    data = np.load(data_file("mocap6.npz"))
    edges = data["doc_range"].tolist()
    rows, states = _cut(data["X"], edges), _cut(data["TrueZ"].astype(int), edges)
    if with_frame_before:
        before = data["Xprev"][edges[:-1]]
        rows = [np.vstack([b, x]) for b, x in zip(before, rows, strict=True)]
        states = [np.append(-1, z) for z in states]
    return Sequences("mocap6", rows, states)


def mocap_amc12() -> Sequences:
    """101 sequences of exercises, without labels."""
    data = np.load(data_file("mocap_amc12.npz"))
    rows = _cut(data["X"].astype(np.float64), data["doc_range"].tolist())
    return Sequences("mocap_amc12", rows, None)


def chromatin(empty: int = 50) -> tuple[Sequences, list[str]]:
    """Marks on chromosome 11, cut in the middle of long empty runs, and their names.

    Pieces are of 10,000 bins at the least.
    """
    with gzip.open(data_file("chromhmm_GM12878_chr11.txt.gz"), "rt") as lines:
        next(lines)
        names = next(lines).split()
        rows = np.loadtxt(lines, dtype=np.uint8).astype(np.float64)
    nothing = np.concatenate([[0], (rows.sum(axis=1) == 0).astype(int), [0]])
    change = np.diff(nothing)
    first, last = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    middles = ((first + last) // 2)[last - first >= empty]
    edges = [0]
    for middle in middles.tolist():
        if middle - edges[-1] >= 10_000 and len(rows) - middle >= 10_000:
            edges.append(middle)
    return Sequences("chromatin, chr11", _cut(rows, [*edges, len(rows)]), None), names


def speakers(n_features: int = 20) -> Sequences:
    """Speaker vectors of a meeting on principal components; one sequence."""
    data = np.load(data_file("ami_es2005a_xvectors.npz"))
    rows = data["X"].astype(np.float64)
    rows -= rows.mean(axis=0)
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    return Sequences("AMI ES2005a", [rows @ axes[:n_features].T], [data["y"].astype(int)])
