"""Random sequences for `one_start_sequences` in which visits are not geometric, but have their own lengths.

A *stage* is a set of rows with the same emissions. Visits to a stage last a fixed number of rows, or any
number between two limits, or go through several phases, each of which ends with the same probability at any
time, or are of two kinds, short and long ones. A hidden Markov model needs several states for a stage, which
have the same emissions. The true path is that of these states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .chains import Sequences

LEAST_ROWS, MOST_ROWS = 2000, 10_000
STAGES, COLUMNS, LASTS = (2, 5), (1, 4), (3, 15)
KINDS = ("fixed", "between", "phases", "two kinds")
_ROWS_PER_STATE, _APART = 100, (2.5, 6.0)


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    kind: str
    n_stages: int
    n_features: int
    n_rows: int
    n_sequences: int
    apart: float
    seed_of_chain: int

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out; all seeds have the same chain."""
        rng, K = np.random.RandomState([self.seed_of_chain, 0]), self.n_stages
        means = rng.normal(size=(K, self.n_features))
        far = np.linalg.norm(means[:, np.newaxis] - means, axis=2) + np.diag(np.full(K, np.inf))
        means *= self.apart / far.min()
        lasts = rng.randint(*LASTS, size=K)
        follows = rng.dirichlet(np.full(K - 1, 0.7), size=K) if K > 2 else np.ones((2, 1))
        rng = np.random.RandomState([self.seed_of_chain, seed, 1])
        length, made = self.n_rows // self.n_sequences, []
        for part in ("train", "held out"):
            paths = [self._path(rng, lasts, follows, length) for _ in range(self.n_sequences)]
            rows = [means[stage] + rng.normal(size=(length, means.shape[1])) for stage, _ in paths]
            states = [_names(stage, phase) for stage, phase in paths]
            made.append(Sequences(f"{self}, {part}", rows, states))
        return made[0], made[1]

    def _path(self, rng, lasts, follows, length):
        """Stages and phases (length,) of the rows of a sequence."""
        stage, stages, phases, n = rng.randint(self.n_stages), [], [], 0
        while n < length:
            visit = self._visit(rng, int(lasts[stage]))
            stages.append(np.full(len(visit), stage))
            phases.append(visit)
            n += len(visit)
            step = rng.choice(self.n_stages - 1, p=follows[stage])
            stage = step + (step >= stage)
        return np.concatenate(stages)[:length], np.concatenate(phases)[:length]

    def _visit(self, rng, lasts):
        """Phases of the rows of one visit."""
        if self.kind == "fixed":
            return np.arange(lasts)
        if self.kind == "between":
            return np.arange(rng.randint(lasts, 2 * lasts))
        if self.kind == "phases":
            n_phases = 2 + lasts % 3
            return np.repeat(np.arange(n_phases), rng.geometric(2.0 / (1 + lasts), size=n_phases))
        is_long = int(rng.random_sample() < 0.5)
        return np.full(rng.geometric(1.0 / (8 * lasts if is_long else lasts / 2)), is_long)

    def __str__(self):
        return (
            f"{self.number}: {self.kind}, {self.n_stages} stages, D {self.n_features}, T {self.n_rows} in "
            f"{self.n_sequences}, {self.apart:.1f} sd"
        )


def _names(stage, phase):
    """States (length,) of the rows, one for each stage and phase."""
    return stage * 2 * LASTS[1] + phase


def problems(n: int, most_rows: int = MOST_ROWS, seed: int = 0) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.RandomState([seed, 6]), [], 0
    while len(found) < n:
        K, D = rng.randint(*STAGES), rng.randint(*COLUMNS)
        n_rows = int(np.exp(rng.uniform(np.log(LEAST_ROWS), np.log(MOST_ROWS))))
        kind, n_sequences = KINDS[rng.randint(len(KINDS))], rng.randint(1, 11)
        apart, seed_of_chain = rng.uniform(*_APART), rng.randint(2**31 - 1)
        if n_rows < _ROWS_PER_STATE * K * 4:
            continue
        if n_rows <= most_rows:
            found.append(Problem(number, kind, K, D, n_rows, n_sequences, apart, seed_of_chain))
        number += 1
    return found
