"""Priors of the weights of groups (documents, rows of transitions) around global weights.

`SharedWeights` lists the methods of all such priors. Under a hierarchical Dirichlet process the global
weights are made by breaking a stick and are learned. Under a finite symmetric Dirichlet prior they are
equal and known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from ..likelihood.ascent import ascended
from .sticks import Sticks, logit, maximise_over_sticks

# A concentration is learned within these limits. In one step its logarithm moves by no more than this. There
# are two steps a lap: assignments have to follow before it is known how far it should go.
LEAST_LEARNED, MOST_LEARNED, _LONGEST_STEP = 1e-3, 1e5, 0.75
# Least slope of the objective, in nats for a factor e, that moves a concentration: the data do not tell those
# with smaller slopes, such as the start's of a single sequence.
_LEAST_SLOPE = 0.1
# L-BFGS iterations in a step.
_ITERATIONS = 20


class SharedWeights(ABC):
    """Prior of the weights of groups, which share global weights, with its variational posterior.

    The groups' own weights are always at their optimum given the groups' counts: the objective is a function
    of the counts and of the global parameters, which are held in `Sticks`. All methods are pure
    functions. Components are in the order in which the caller holds them; for the hierarchical Dirichlet
    process that should be by decreasing weight.
    """

    @abstractmethod
    def objective(self, sticks, counts):
        """Allocation term of the objective, without the entropy of the assignments.

        Parameters
        ----------
        sticks : Sticks
            Global parameters.
        counts : CountColumns or ndarray, shape (K + 1, K)
            Counts of documents, or of starts and transitions.

        Returns
        -------
        float
            A lower bound of ``E_q[log p(z, pi, u) - log q(pi, u)]``, in nats.
        """

    @abstractmethod
    def optimise(self, counts, start=None, max_iter=100):
        """Global parameters that maximise the objective, and its value there.

        Parameters
        ----------
        counts : CountColumns or ndarray, shape (K + 1, K)
            Counts of documents, or of starts and transitions.
        start : Sticks or None, default=None
            Where to start, ``start_of(counts)`` if None. The value is never lower than the one there.
        max_iter : int, default=100
            Largest number of iterations.

        Returns
        -------
        sticks : Sticks
        value : float
        """

    @abstractmethod
    def start_of(self, counts):
        """`Sticks` to start from, given counts alone."""

    @abstractmethod
    def weights(self, sticks):
        """``E[pi_k]`` (K,); they leave ``rest(sticks)`` for components that are not there yet."""

    @abstractmethod
    def rest(self, sticks):
        """``E[pi_>]``, the mass of all components that are not there yet."""


class StickBreakingWeights(SharedWeights):
    """Global weights ``pi_k = u_k prod_{l<k} (1 - u_l)`` with ``u_k ~ Beta(1, gamma)``."""

    @abstractmethod
    def _problem(self, counts):
        """The objective for fixed counts, a function from logit rho (K,) and log omega (K,) to `StickTerms`.

        Its attributes ``ones`` and ``zeros`` are the coefficients of `beta_counts`, or about these.
        """

    def objective(self, sticks, counts):
        terms = self._problem(counts)(logit(sticks.rho), np.log(sticks.omega))
        return float(terms.value)

    def optimise(self, counts, start=None, max_iter=100):
        start = self.start_of(counts) if start is None else start
        problem = self._problem(counts)
        return maximise_over_sticks(problem, start, problem.ones, problem.zeros, max_iter)

    def with_learned(self, names, sticks, counts):
        """The prior with better concentrations, at sticks as they are; the objective never falls.

        Parameters
        ----------
        names : sequence of str
            The attributes that may change.
        sticks : Sticks
        counts : CountColumns or ndarray, shape (K + 1, K)

        Returns
        -------
        StickBreakingWeights
            Itself if nothing is gained.
        """
        where = logit(sticks.rho), np.log(sticks.omega)
        here = self._problem(counts)(*where)
        names = [name for name in names if abs(here.log_concentrations[name]) > _LEAST_SLOPE]
        if not names:
            return self

        def at(logs):
            there = replace(self, **dict(zip(names, np.exp(logs).tolist(), strict=True)))
            terms = there._problem(counts)(*where)
            slopes = np.array([terms.log_concentrations[name] for name in names])
            return terms.value, slopes, there

        start = np.log([getattr(self, name) for name in names])
        low = np.minimum(start, np.maximum(start - _LONGEST_STEP, np.log(LEAST_LEARNED)))
        high = np.maximum(start, np.minimum(start + _LONGEST_STEP, np.log(MOST_LEARNED)))
        best = here.value, self
        return ascended(at, start, low, high, best, max_iter=_ITERATIONS, slope=_LEAST_SLOPE)[1]

    def weights(self, sticks):
        left = np.concatenate([[1.0], np.cumprod(1.0 - sticks.rho)[:-1]])
        return sticks.rho * left

    def rest(self, sticks):
        return np.prod(1.0 - sticks.rho)


class EqualWeights(SharedWeights):
    """Equal global weights of a fixed number of components: there is nothing global to learn.

    The sticks are known (omega is infinite). Of sticks that are given only the number is used.
    """

    def optimise(self, counts, start=None, max_iter=100):
        sticks = self.start_of(counts)
        return sticks, self.objective(sticks, counts)

    @staticmethod
    def _equal(n_components):
        """`Sticks` of equal weights."""
        rho = 1.0 / np.arange(n_components, 0, -1.0)
        return Sticks(rho, np.full(n_components, np.inf))

    def weights(self, sticks):
        return np.full(len(sticks.rho), 1.0 / len(sticks.rho))

    def rest(self, sticks):
        return 0.0
