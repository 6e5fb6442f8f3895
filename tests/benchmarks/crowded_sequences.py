"""Random sequences for `one_start_sequences` of many states in many columns that last few rows.

Means are near each other, so that what tells states apart are their covariances. No window of several rows
is of one state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .chains import Sequences, markov_path
from .generators import random_covariances

STATES, COLUMNS, STAY, CONDITION = (15, 61), (7, 21), (0.3, 0.5, 0.7, 0.85), 60.0
ROWS_PER_STATE, SEQUENCES, APART = (80, 221), (5, 31), (0.3, 0.7)
# Parameter of the Dirichlet distribution of where a state goes when it does not stay.
_SPARSITY = 0.5


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    n_states: int
    n_features: int
    n_rows: int
    n_sequences: int
    stay: float
    apart: float  # spread of the means, in mean standard deviations of a column within states

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out."""
        rng = np.random.default_rng([20_261_128, self.number, seed])
        K, D, length = self.n_states, self.n_features, self.n_rows // self.n_sequences
        covariances = random_covariances(rng, K, D, CONDITION)
        factors = np.linalg.cholesky(covariances)
        spread = np.sqrt(np.trace(covariances, axis1=1, axis2=2).mean() / D)
        means = self.apart * spread * rng.standard_normal((K, D))
        trans = (1.0 - self.stay) * rng.dirichlet(np.full(K, _SPARSITY), size=K)
        trans += self.stay * np.eye(K)
        first, made = np.full(K, 1.0 / K), []
        paths = np.random.RandomState([self.number, seed])
        for part in ("train", "held out"):
            states = [markov_path(paths, first, trans, length) for _ in range(self.n_sequences)]
            rows = [
                means[z] + np.einsum("nij,nj->ni", factors[z], rng.standard_normal((length, D)))
                for z in states
            ]
            made.append(Sequences(f"{self}, {part}", rows, states))
        return made[0], made[1]

    def __str__(self):
        return (
            f"{self.number}: K {self.n_states}, D {self.n_features}, T {self.n_rows} in "
            f"{self.n_sequences}, stay {self.stay:g}, {self.apart:.2f} apart"
        )


def problems(n: int, most_rows: int = 50_000, seed: int = 0) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.default_rng(seed), [], 0
    while len(found) < n:
        K = int(rng.integers(*STATES))
        made = Problem(
            number, K, int(rng.integers(*COLUMNS)), K * int(rng.integers(*ROWS_PER_STATE)),
            int(rng.integers(*SEQUENCES)), float(rng.choice(STAY)), float(rng.uniform(*APART)),
        )  # fmt: skip
        if made.n_rows <= most_rows:
            found.append(made)
        number += 1
    return found
