"""Proposals plan trials, which are changes of the components that are judged on the whole data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ..inputs.advice import ExplainedParameters
from .failures import Attempts, Failures
from .statistics import StatBag
from .trials import Policy

_MEMORIES = (Failures, Attempts)


class Context(NamedTuple):
    """The model, its statistics and samples of rows, for a proposal that plans.

    Parameters
    ----------
    model : Model
        The model at the end of the lap.
    totals : StatBag
        Statistics of the whole data. Mixtures list their components by decreasing size.
    samples : dict
        Uid -> sample of the component's rows: a `Sample` for mixtures, a ``DocumentSample`` for topics, a
        ``StateSample`` for states. For states a key may also be a tuple of uids, sampled as if they were one.
    uniform : UniformSample or Steps
        Rows drawn from all rows, with responsibilities (m, K) for ``totals.uids``. For sequences, pairs
        of neighbouring rows.
    rng : numpy.random.RandomState
        Source of all random numbers of the plan.
    new_uids : callable
        ``new_uids(n)`` returns names for n new components.
    max_components : float
        The number of components that may not be exceeded, less those that proposals before this one put on
        trial for the next lap. A trial that would exceed the limit when it is judged is not carried out.
    settling : bool, default=False
        Whether the number of components has just fallen, or the first lap began with several. Births then
        wait for merges and deletes.
    n_threads : int, default=1
        Number of threads for kernels.
    n_nonzero : int or None, default=None
        The most components that a row may be shared among; no limit if None. Searches for clusters keep to it
        if it is 1: components that share many rows may gain nothing where rows may not be shared.
    partial : bool, default=False
        Whether there are batches in memory that the last lap did not visit.
    idle : bool, default=False
        Whether the lap has accepted nothing, and no proposal before this one has planned anything or is
        pending, unless it waits for this one.
    others_pending : bool, default=False
        Whether a proposal after this one is pending.
    on_trial : bool, default=False
        Whether a proposal before this one has planned a lap with components on trial. A lap has those of one
        proposal.

    Examples
    --------
    >>> from sklearn_bnp import Proposal
    >>> class ShowSizes(Proposal):
    ...     kind = "show"
    ...
    ...     def reset(self):
    ...         pass
    ...
    ...     def plan(self, context):
    ...         print(dict(zip(context.totals.uids, context.totals.n)))
    ...         return []
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
    n_nonzero: int | None = None
    partial: bool = False
    idle: bool = False
    others_pending: bool = False
    on_trial: bool = False


class Proposal(ExplainedParameters, BaseEstimator, ABC):
    """A source of trials, with its parameters.

    A subclass sets ``kind`` and defines `reset` and `plan`; the other methods have defaults. A fit works on a
    clone. It may remember failures in private attributes, which `reset` creates.

    Attributes
    ----------
    kind : str
        Name of the proposal in ``history_`` and in lines of progress.
    suits : tuple of str
        The models that the proposal is for, some of "mixture", "topics" and "hmm". By default all.
    weighted : bool
        Whether rows have weights, so that the mass of a component is not its number of rows. The fit sets it.
    n_seen : float or None
        Mass of all rows that a stream has brought so far, those that are forgotten included. The stream sets
        it; None in a fit, where it is that of the totals.
    wants_steps : bool
        Whether ``context.uniform`` holds steps of sequences, from one row to the next. False by default.
    goes_last : bool
        Whether what is pending waits until no other proposal is pending. False by default.
    meets : bool
        Whether it uses what other fits of the same data have found; see `meet`. False by default.

    Examples
    --------
    A proposal that joins the two smallest components; a union that lowers the objective is refused:

    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB, Proposal, UnionTrial
    >>> class JoinSmallest(Proposal):
    ...     kind = "join"
    ...     suits = ("mixture",)
    ...
    ...     def reset(self):
    ...         pass
    ...
    ...     def plan(self, context):
    ...         uids = context.totals.uids
    ...         if len(uids) < 2 or not context.settling:
    ...             return []
    ...         return [UnionTrial(self.kind, uids[-2:].tolist(), context.new_uids(1))]
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> model = DPMixtureVB(n_components=3, proposals=(JoinSmallest(),), random_state=0).fit(X)
    >>> model.n_components_
    1
    """

    kind: str
    suits: tuple[str, ...] = ("mixture", "topics", "hmm")
    weighted = False
    n_seen: float | None = None
    wants_steps = False
    goes_last = False
    meets = False

    @property
    def pending(self) -> bool:
        """Whether the proposal still has something to try.

        Returns
        -------
        pending : bool
            A fit does not end while this is true, unless ten laps in a row have gained next to nothing.
        """
        return False

    @property
    def overdue(self) -> bool:
        """Whether the proposal has waited for its turn so long that it plans before all others.

        Returns
        -------
        overdue : bool
            A fit does not end while this is true, however little the last laps have gained.
        """
        return False

    @abstractmethod
    def reset(self) -> None:
        """Forget everything, at the start of a fit."""

    @abstractmethod
    def plan(self, context: Context) -> list[Any]:
        """Trials for the next lap.

        Parameters
        ----------
        context : Context
            The model at the end of a lap, and rows that were sampled during the lap.

        Returns
        -------
        trials : list of Trial
            They need not be good, since only those that raise the objective are carried out.
        """

    def wants(self, totals: StatBag) -> list[int]:
        """Components of which rows are to be sampled during the next lap.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        uids : list of int
            The most wanted first, since there may be no room for all.
        """
        return []

    def wants_unions(self, totals: StatBag) -> list[tuple[int, ...]]:
        """Groups of states of which rows are to be sampled together, as if they were one state.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        unions : list of tuple of int
            Uids of the states of each group.
        """
        return []

    def sample_rows(self, n_statistics: int) -> int:
        """Largest number of rows to sample from each component that `wants` names.

        Parameters
        ----------
        n_statistics : int
            Length P of s(x).

        Returns
        -------
        n_rows : int
            Number of rows.
        """
        return 2000

    def rows_of_each(self, totals: StatBag) -> int:
        """As `sample_rows`, for proposals where the number depends on the components that there are.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        n_rows : int
            Number of rows; by default that of `sample_rows`.
        """
        return self.sample_rows(totals.s.shape[1])

    def uniform_rows(self, totals: StatBag) -> int:
        """Least number of rows to draw from all rows during the next lap; mixtures only.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        n_rows : int
            Number of rows. Where fewer are wanted, 2000 are drawn; limits of memory may allow fewer.
        """
        return 0

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Hear the verdict on a trial.

        Parameters
        ----------
        trial : Trial
            A trial that `plan` returned.
        accepted : bool
            Whether the trial was carried out.
        mass : float
            Mass of the trial's targets: their number of rows, or the weight of these.
        gain : float
            Gain in nats, less what may be rounding, if no other trial had been carried out; -inf if it is
            not known.
        """

    def n_left_alone(self, totals: Any) -> int:
        """Count what is not tried again, since it failed before and has not changed; for ``history_``.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        n_left_alone : int
            Number of components, or groups of them, that private attributes which are `Failures`
            remember as failed.
        """
        masses = totals.sizes
        memories = (value for value in vars(self).values() if isinstance(value, _MEMORIES))
        return sum(memory.n_left_alone(masses) for memory in memories)

    def last_resort(self) -> None:
        """Hear that the fit ends unless something is tried again."""

    def meet(self, others: list[StatBag]) -> None:
        """Hear what other fits of the same data have found, after the best of ``n_init`` fits has ended.

        It is for proposals with ``meets = True``. The best fit then goes on for up to ``max_iter`` laps.

        Parameters
        ----------
        others : list of StatBag
            Components of the other fits, in the same units; those of the highest objective come first. The
            list is empty when the meeting is over, and they are to be forgotten.
        """

    def new_data(self) -> None:
        """Hear that a batch has come that was never seen before."""

    def prior_changed(self) -> None:
        """Hear that empirical Bayes has changed the prior much, so that failures may be forgotten."""
        self.reset()


def planned(proposal, context):
    """Trials that a proposal plans, checked: they may be a user's own."""
    trials = list(proposal.plan(context))
    for trial in trials:
        if trial.kind != proposal.kind:
            raise ValueError(
                f"{proposal!r} planned a trial of kind={trial.kind!r}; a trial has the kind of its proposal, "
                f"{proposal.kind!r}."
            )
        if trial.probe is None and trial.policy is not Policy.WITH_LAP:
            raise ValueError(
                f"{proposal!r} planned a {type(trial).__name__} without a probe. It would be judged after a "
                "lap, by statistics from before it: give it a probe that finds them during the lap."
            )
    return trials
