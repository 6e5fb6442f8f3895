"""Random noisy cycles of Gaussian states, for `one_start_sequences`: several states have the same emissions.

A state is mostly followed by the next one of the cycle. Some states are *twins* of others: they have the same
mean and covariance, so that only the states around them tell them apart. In half of the problems these are
drawn at random; in the others the second half of the cycle repeats the first one, so that the neighbours of
twins are twins, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .chains import Sequences, markov_path

LEAST_ROWS, MOST_ROWS = 1500, 6000
STATES, COLUMNS = (5, 14), (1, 5)
NEXT, STAY, NOISE = (0.7, 0.95), (0.0, 0.2), (0.3, 0.8)
_ROWS_PER_STATE = 150


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    is_repeated: bool
    n_states: int
    n_features: int
    n_rows: int
    n_sequences: int
    moves: float  # chance of the next state
    stays: float  # chance of the same one, as a share of the rest
    noise: float
    seed_of_chain: int

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out; all seeds have the same chain."""
        rng, K = np.random.RandomState([self.seed_of_chain, 0]), self.n_states
        means = rng.normal(scale=2.0, size=(K, self.n_features))
        n_twins = K // 2 if self.is_repeated else rng.randint(1, K // 2 + 1)
        of = np.arange(n_twins) if self.is_repeated else rng.permutation(K - n_twins)[:n_twins]
        means[K - n_twins :] = means[of]
        order = np.arange(K) if self.is_repeated else rng.permutation(K)
        rest = 1.0 - self.moves
        trans = np.full((K, K), rest * (1.0 - self.stays) / K) + rest * self.stays * np.eye(K)
        trans[order, np.roll(order, -1)] += self.moves
        rng = np.random.RandomState([self.seed_of_chain, seed, 1])
        length, made = self.n_rows // self.n_sequences, []
        for part in ("train", "held out"):
            states = [
                markov_path(rng, np.full(K, 1.0 / K), trans, length)
                for _ in range(self.n_sequences)
            ]
            rows = [
                means[z] + self.noise * rng.normal(size=(length, means.shape[1])) for z in states
            ]
            made.append(Sequences(f"{self}, {part}", rows, states))
        return made[0], made[1]

    def __str__(self):
        kind = "repeated" if self.is_repeated else "some twins"
        return (
            f"{self.number}: {kind}, K {self.n_states}, D {self.n_features}, T {self.n_rows} in "
            f"{self.n_sequences}, next {self.moves:.2f}"
        )


def problems(n: int, most_rows: int = MOST_ROWS, seed: int = 0) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.RandomState([seed, 5]), [], 0
    while len(found) < n:
        K, D = rng.randint(*STATES), rng.randint(*COLUMNS)
        n_rows = int(np.exp(rng.uniform(np.log(LEAST_ROWS), np.log(MOST_ROWS))))
        shape = rng.uniform(*NEXT), rng.uniform(*STAY), rng.uniform(*NOISE)
        n_sequences, seed_of_chain = rng.randint(1, 11), rng.randint(2**31 - 1)
        if n_rows >= _ROWS_PER_STATE * K:
            if n_rows <= most_rows:
                found.append(
                    Problem(
                        number, number % 2 == 1, K, D, n_rows, n_sequences, *shape, seed_of_chain
                    )
                )
            number += 1
    return found
