"""Random sequences of symbols, for `one_start_sequences`: states differ in what follows them.

Each row is one of 2 to 40 symbols. States of a *drawn* chain go anywhere, with probabilities from a
Dirichlet distribution, and emit symbols with probabilities from another. States of a *sticky* one are the
same, but last for several rows. In a chain of *words* each state is a place in one of a few words, has one
symbol, and is followed by the next place; after a word comes any other one. Words share their symbols, so
that only what is around a symbol tells its states apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_bnp import CategoricalObservation

from .chains import Sequences, markov_path

KINDS = ("drawn", "sticky", "words")
LEAST_ROWS, MOST_ROWS = 1000, 10_000
STATES, SYMBOLS = (2, 13), (2, 41)
WORDS, LETTERS = (2, 6), (2, 6)
STAY = (0.5, 0.95)
# Parameters of the Dirichlet distributions, from the first to the last of which logarithms are uniform.
_TRANSITIONS, _EMISSIONS = (0.1, 1.0), (0.05, 0.5)
_ROWS_PER_STATE = 100


class Problem(NamedTuple):
    """What a random problem is drawn from."""

    number: int
    kind: str
    n_states: int  # of words, what their lengths add up to
    n_symbols: int
    n_rows: int
    n_sequences: int
    n_words: int  # 0 if the chain has no words
    seed_of_chain: int

    @property
    def observation(self) -> CategoricalObservation:
        """The likelihood, told how many symbols there are."""
        return CategoricalObservation(n_categories=self.n_symbols)

    def draw(self, seed: int) -> tuple[Sequences, Sequences]:
        """Sequences of the problem, and as many again to be held out; all seeds have the same chain."""
        first, trans, emissions = chain(self)
        rng = np.random.RandomState([self.seed_of_chain, seed, 1])
        length, made = self.n_rows // self.n_sequences, []
        for part in ("train", "held out"):
            states = [markov_path(rng, first, trans, length) for _ in range(self.n_sequences)]
            rows = [_emitted(rng, emissions, z)[:, np.newaxis] for z in states]
            made.append(Sequences(f"{self}, {part}", rows, states))
        return made[0], made[1]

    def __str__(self):
        return (
            f"{self.number}: {self.kind}, K {self.n_states}, {self.n_symbols} symbols, T {self.n_rows} "
            f"in {self.n_sequences}"
        )


def problems(n: int, most_rows: int = MOST_ROWS, seed: int = 0) -> list[Problem]:
    """The first ``n`` random problems of a seed that have no more than ``most_rows`` rows."""
    rng, found, number = np.random.RandomState([seed, 3]), [], 0
    while len(found) < n:
        kind = KINDS[number % len(KINDS)]
        n_states, n_symbols = rng.randint(*STATES), rng.randint(*SYMBOLS)
        n_words = rng.randint(*WORDS) if kind == "words" else 0
        seed_of_chain = rng.randint(2**31 - 1)
        n_rows = int(np.exp(rng.uniform(np.log(LEAST_ROWS), np.log(MOST_ROWS))))
        n_sequences = rng.randint(1, 1 + min(20, n_rows // 50))
        if kind == "words":
            n_states = int(_lengths(seed_of_chain, n_words).sum())
            n_symbols = min(n_symbols, n_states)
        if n_rows >= _ROWS_PER_STATE * n_states:
            if n_rows <= most_rows:
                found.append(
                    Problem(
                        number, kind, n_states, n_symbols, n_rows, n_sequences, n_words, seed_of_chain
                    )
                )  # fmt: skip
            number += 1
    return found


def _lengths(seed, n_words):
    """How many letters each word (n_words,) has."""
    return np.random.RandomState([seed, 2]).randint(*LETTERS, size=n_words)


def chain(problem: Problem) -> tuple[NDArray, NDArray, NDArray]:
    """Probabilities of first states (K,), transitions (K, K) and symbols (K, V)."""
    rng, K = np.random.RandomState([problem.seed_of_chain, 0]), problem.n_states
    if problem.kind == "words":
        return _chain_of_words(rng, problem)
    trans = rng.dirichlet(np.full(K, _log_uniform(rng, _TRANSITIONS)), size=K)
    if problem.kind == "sticky":
        stay = rng.uniform(*STAY)
        trans = (1.0 - stay) * trans + stay * np.eye(K)
    emissions = rng.dirichlet(np.full(problem.n_symbols, _log_uniform(rng, _EMISSIONS)), size=K)
    return rng.dirichlet(np.ones(K)), trans, emissions


def _chain_of_words(rng, problem):
    """Each word is a row of states, one after the other; words follow each other at random."""
    K, lengths = problem.n_states, _lengths(problem.seed_of_chain, problem.n_words)
    ends = np.cumsum(lengths)
    begins, share = ends - lengths, rng.dirichlet(np.full(len(lengths), 3.0))
    first, trans = np.zeros(K), np.zeros((K, K))
    first[begins] = share
    trans[np.arange(K - 1), np.arange(1, K)] = 1.0
    trans[ends - 1] = first
    emissions = np.eye(problem.n_symbols)[rng.randint(problem.n_symbols, size=K)]
    return first, trans, emissions


def _log_uniform(rng, ends):
    return float(np.exp(rng.uniform(*np.log(ends))))


def _emitted(rng, emissions, z):
    """The symbol (n,) of each row, whose state is given."""
    u = rng.random_sample(len(z))
    found = np.sum(np.cumsum(emissions, axis=1)[z] < u[:, np.newaxis], axis=1)
    return np.minimum(found, emissions.shape[1] - 1)
