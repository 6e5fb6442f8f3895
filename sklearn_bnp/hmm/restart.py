"""Restarts of hidden Markov models from their own posterior, made softer.

Design note
-----------
(a) Under sparse rows of transitions, a transition that no posterior uses has a weight ``exp(E[log pi])`` of
    next to nothing. Forward-backward then never uses it, and it stays dead, however often the sequences go
    that way. No change of a state mends this.
(b) Let each row forget its state with probability e, independently, and be in any of the K states instead.
    The statistics of this softer posterior are linear in those of the present one: sums over rows mix with
    the sums over all states, and counts of transitions mix with the products of uniform shares and
    marginals. They follow from the totals, and no row has to be looked at.
(c) The parameters that suit these statistics use every transition a little. Local steps from there are
    ordinary ones, so that the lap is judged, prolonged and taken back as one with births is.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.proposal import Context, Proposal
from ..engine.statistics import StatBag
from ..engine.trials import Policy, Trial
from .transitions import Transitions

# Passes gain less and less, each a share of the gain of the one before. The largest share that is taken for
# real, and how much more than the sum of all gains to come is hoped for: shares grow towards the end.
_SLOWEST, _SLACK = 0.9, 2.0
# Nats for which a restart is made again, once laps gain less.
_WORTH = 1.0


class RestartTrial(Trial):
    """All states stay, but the lap starts from parameters that suit other statistics.

    Parameters
    ----------
    initial : StatBag
        Statistics that are added to the totals for the lap.
    """

    kind = "restart"
    policy = Policy.WITH_LAP
    removed = created = ()

    def __init__(self, initial):
        self.initial = initial

    @property
    def targets(self):
        """All states."""
        return tuple(self.initial.uids.tolist())

    def goes_on(self, values, least):
        """Whether passes that gain less and less, as the last ones did, may still lead above ``least``."""
        if len(values) < 3:
            return True
        before, last = np.diff(values)[-2:]
        if last <= 0:
            return False
        ratio = min(last / before, _SLOWEST) if before > 0 else _SLOWEST
        return values[-1] + _SLACK * last * ratio / (1.0 - ratio) > least


class StateRestart(Proposal):
    """Start again from the posterior of the states, made softer.

    When nothing else is left to try, each row forgets its state with a small probability. This makes
    transitions possible again that no sequence uses any more. Laps go on from there, and are
    taken back unless the objective of the whole data is higher than before.

    Parameters
    ----------
    forgetting : float, default=0.02
        Probability with which a row forgets its state, above 0 and below 1.

    References
    ----------
    This proposal is this package's own.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateRestart
    >>> model = HDPHMMVB(proposals=("birth", "merge", "delete", StateRestart(forgetting=0.05)))
    """

    kind = "restart"
    suits = ("hmm",)
    _parameter_constraints = {"forgetting": [Interval(Real, 0, 1, closed="neither")]}

    def __init__(self, forgetting: float = 0.02) -> None:
        self.forgetting = forgetting

    def reset(self) -> None:
        """Forget for which states there was a restart."""
        self._validate_params()
        self._done: frozenset | None = None  # the states for which there was one
        self._before = None  # the objective before the last one, if that was kept
        self._last = -np.inf  # the objective a lap ago

    def plan(self, context: Context) -> list[Any]:
        """A restart if nothing else is under way, once for the states as they are."""
        states, bound = frozenset(context.totals.uids.tolist()), context.model.elbo(context.totals)
        resting, self._last = bound - self._last < _WORTH, bound
        if not context.idle or context.partial or len(states) < 2:
            return []
        gained = self._before is not None and bound - self._before > _WORTH
        if states == self._done and not (gained and resting):
            return []
        self._done, self._before = states, bound
        return [RestartTrial(forgetful(context.totals, self.forgetting))]

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember whether there may be more to gain in the same way."""
        if not accepted:
            self._before = None


def forgetful(totals, forgetting):
    """Statistics to be added to ``totals`` so that they are those of rows that forget their states.

    Parameters
    ----------
    totals : StatBag
    forgetting : float
        Probability e with which a row forgets its state and is in any of the K states instead.

    Returns
    -------
    added : StatBag
        What the totals lack of ``1 / (1 - e)`` times the statistics of such rows, and of ``1 / (1 - e)^2``
        times their transitions. Nothing in it is negative.
    """
    n_states, odds = len(totals.uids), forgetting / (1.0 - forgetting)
    s = np.tile(odds / n_states * totals.s.sum(axis=0), (n_states, 1))
    counts = totals.extra.listed(totals.uids.tolist())
    start, links = counts[0], counts[1:]
    more = np.empty_like(counts)
    more[0] = odds / n_states * start.sum()
    more[1:] = odds / n_states * np.add.outer(links.sum(axis=1), links.sum(axis=0))
    more[1:] += (odds / n_states) ** 2 * links.sum()
    extra = Transitions(tuple(totals.uids.tolist()), more)
    return StatBag(totals.uids, s, np.zeros(n_states), extra)
