"""Proposals plan trials: changes of the components, which are judged on the whole data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from .statistics import StatBag


class Context(NamedTuple):
    """What a proposal may look at when it plans.

    Attributes
    ----------
    model : Model
    totals : StatBag
        Statistics of the whole data.
    samples : dict
        Uid -> `Sample` of its rows; tuple of uids -> that of the rows that are any of theirs.
    uniform : UniformSample or Steps
        Rows drawn from all, with responsibilities (m, K) as ``totals.uids``; steps of sequences.
    rng : numpy.random.RandomState
    new_uids : callable
        ``new_uids(n)`` names n new components.
    max_components : float
        Births may not lead beyond this.
    settling : bool
        The model is still shedding components, or has just been started with several.
    n_threads : int
        For the kernels.
    partial : bool
        Batches are remembered that the last lap did not see.
    """

    model: Any
    totals: StatBag
    samples: dict
    uniform: Any
    rng: np.random.RandomState
    new_uids: Callable
    max_components: float
    settling: bool = False
    n_threads: int = 1
    partial: bool = False


class Proposal(BaseEstimator, ABC):
    """A kind of proposal with its settings.

    A learner works on a clone, which may keep memories of failures in private attributes, `reset`'s.

    Attributes
    ----------
    kind : str
        Name by which users, and ``history_``, know proposals of this kind.
    suits : tuple of str
        The models that it is for: of "mixture", "topics" and "hmm".
    """

    kind: str
    suits = ("mixture", "topics", "hmm")
    weighted = False  # whether rows have weights, so that a mass is no number of rows
    wants_steps = False  # of sequences, from one row to the next

    @property
    def pending(self):
        """Whether there is something left that was meant to be tried: a fit does not end before."""
        return False

    @abstractmethod
    def reset(self):
        """Forget everything: the start of a fit."""

    @abstractmethod
    def plan(self, context):
        """Trials for the next lap.

        Parameters
        ----------
        context : Context
            The model as it stands, and rows collected during the last lap.

        Returns
        -------
        trials : list
            `SplitTrial`, `UnionTrial` or `AdoptTrial` objects, or others that behave like one.
        """

    def wants(self, totals):
        """Components whose rows this proposal would like to see when it next plans.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        uids : list of int
            The most wanted first; there may be no room for all.
        """
        return []

    def wants_unions(self, totals):
        """States of sequences whose rows this proposal would like to see as if they were one.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        unions : list of tuple of int
            Uids of the states of each.
        """
        return []

    def sample_rows(self, n_statistics):
        """How many rows of each wanted component to collect.

        Parameters
        ----------
        n_statistics : int
            Length of s(x).

        Returns
        -------
        n_rows : int
            At the most.
        """
        return 2000

    def judged(self, trial, accepted, mass, gain):
        """Take note of the scheduler's verdict.

        Parameters
        ----------
        trial : Trial
            One that `plan` returned.
        accepted : bool
            Whether it was carried out.
        mass : float
            Mass of the trial's targets.
        gain : float
            Nats, beyond rounding, that it would have added to the objective before any other trial was
            carried out; -inf if nobody knows.
        """

    def last_resort(self):
        """The fit would end here unless this proposal finds something to try again."""

    def new_data(self):
        """A batch has come that was never seen before."""

    def prior_changed(self):
        """Empirical Bayes has moved the prior far: remembered failures mean little."""
        self.reset()
