"""Random sequences of a second kind, for `one_start_sequences`: everything is uneven.

Chains are of three kinds. Rows of transitions of a *sparse* one are drawn from Dirichlet(0.3). A *cycle* goes
from each state to the next, and sometimes skips one. In an *unequal* one all states go where global weights
say, and the weights differ by factors of ten and more. How long states last differs as well. Means may be
so near that states overlap, and spreads differ by a factor of three or so; now and then a narrow state lies
in the middle of a wide one. The longest sequence may have a hundred times the rows of the shortest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .chains import Sequences, markov_path

KINDS = ("sparse", "cycle", "unequal")
LEAST_ROWS, MOST_ROWS = 500, 20_000
# Median distance of a mean from the nearest other one, in standard deviations of a state.
APART = (2.0, 6.0)
# Rows that a state should have on average, and the fewest of a sequence.
_ROWS_PER_STATE, _SHORTEST = 40, 5
_SPARSITY, _INEQUALITY, _SKIPS = 0.3, 0.4, 0.1
# Standard deviations of logarithms: of lengths of sequences, of lengths of visits, of spreads.
_LENGTHS, _VISITS, _SPREADS = 1.2, 0.5, 0.4
# Share of states that lie in the middle of another, and how much narrower these are.
_INSIDE, _NARROWER = 0.1, 0.3


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    kind: str
    n_states: int
    n_features: int
    n_rows: int
    n_sequences: int
    stay: float
    apart: float

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out."""
        return draw(self, seed)

    def __str__(self):
        return (
            f"{self.number}: {self.kind}, K {self.n_states}, D {self.n_features}, T {self.n_rows} in "
            f"{self.n_sequences}, stay {self.stay:.2f}, {self.apart:.1f} sd"
        )


def problems(n: int, most_rows: int = MOST_ROWS, seed: int = 0) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.RandomState([seed, 2]), [], 0
    while len(found) < n:
        n_states, n_features = rng.randint(3, 21), rng.randint(1, 11)
        n_rows = int(np.exp(rng.uniform(np.log(LEAST_ROWS), np.log(MOST_ROWS))))
        n_sequences = rng.randint(1, 1 + min(40, n_rows // 50))
        stay = 1.0 - np.exp(rng.uniform(np.log(0.01), np.log(0.5)))
        kind, apart = KINDS[rng.randint(len(KINDS))], rng.uniform(*APART)
        if n_rows < _ROWS_PER_STATE * n_states:
            continue
        if n_rows <= most_rows:
            found.append(
                Problem(number, kind, n_states, n_features, n_rows, n_sequences, stay, apart)
            )
        number += 1
    return found


def transition_matrix(rng, problem: Problem) -> NDArray[np.floating]:
    """Rows (K, K) of a chain of the problem's kind."""
    K = problem.n_states
    if problem.kind == "sparse":
        out = rng.dirichlet(np.full(K, _SPARSITY), size=K)
    elif problem.kind == "cycle":
        skips = rng.uniform(0.0, _SKIPS, size=(K, 1))
        out = (1.0 - skips) * np.roll(np.eye(K), 1, axis=1) + skips * np.roll(np.eye(K), 2, axis=1)
    else:
        out = np.tile(np.sort(rng.dirichlet(np.full(K, _INEQUALITY)))[::-1] + 0.002, (K, 1))
    out[np.diag_indices(K)] = 0.0
    out = np.maximum(out, 1e-12 * (1.0 - np.eye(K)))
    leaving = (1.0 - problem.stay) * np.exp(_VISITS * rng.normal(size=(K, 1)))
    leaving = np.minimum(leaving, 0.7)
    return leaving * out / out.sum(axis=1, keepdims=True) + (1.0 - leaving) * np.eye(K)


def emissions(rng, problem: Problem) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Means (K, D), and factors (K, D, D) by which normal rows are multiplied."""
    K, D = problem.n_states, problem.n_features
    means = rng.normal(size=(K, D))
    far = np.linalg.norm(means[:, np.newaxis] - means, axis=2) + np.diag(np.full(K, np.inf))
    means *= problem.apart / np.median(far.min(axis=1))
    factors = 0.4 * rng.normal(size=(K, D, D)) + np.eye(D)
    factors /= np.abs(np.linalg.det(factors))[:, np.newaxis, np.newaxis] ** (1.0 / D)
    factors *= np.exp(_SPREADS * rng.normal(size=(K, 1, 1)))
    for k in np.flatnonzero(rng.random_sample(K) < _INSIDE):
        wide = rng.randint(K)
        if wide != k:
            means[k], factors[k] = means[wide], _NARROWER * factors[wide]
    return means, factors


def draw(problem: Problem, seed: int) -> tuple[Sequences, Sequences]:
    """Sequences of a problem, and as many again to be held out."""
    rng = np.random.RandomState([problem.number, seed, 2])
    means, factors = emissions(rng, problem)
    trans = transition_matrix(rng, problem)
    first = rng.dirichlet(np.ones(problem.n_states))
    made = []
    for part in ("train", "held out"):
        share = np.exp(_LENGTHS * rng.normal(size=problem.n_sequences))
        lengths = np.maximum(_SHORTEST, problem.n_rows * share / share.sum()).astype(int)
        states = [markov_path(rng, first, trans, length) for length in lengths.tolist()]
        rows = [
            means[z]
            + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(len(z), problem.n_features)))
            for z in states
        ]
        made.append(Sequences(f"{problem}, {part}", rows, states))
    return made[0], made[1]
