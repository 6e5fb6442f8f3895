"""Second tries of merges and deletes of states, with laps in which the other states adapt.

Design note
-----------
(a) A merge or delete is judged right after it, when the other states have not adapted to the rows that change
    hands. Where states have few rows for many parameters, as autoregressive ones do, this hides most of the
    gain: after a few laps, changes that had lost a hundred nats have won.
(b) A second try is therefore a lap like one with births: the states that are to go take no part in it, a
    union begins with their statistics, and the lap is prolonged, judged and taken back as a whole.
(c) The others may regain about the price of a state's parameters, which is half the logarithm of the number
    of its rows for each (Schwarz 1978). A change that loses more is not made again.
(d) It costs laps, and is a last resort: one at a time, in the order of what it loses a row, and only a few.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.failures import Failures
from ..engine.proposal import Proposal
from ..engine.trials import AdoptTrial, Policy
from .transitions import Transitions

# Nats for each parameter of a state, as a share of the logarithm of the number of its rows.
_PRICE = 0.5


class SecondTries(Proposal):
    """Base class of proposals that make again what has failed, with laps to follow.

    Parameters
    ----------
    max_second_tries : int
        Second tries each time that nothing else is left to try.
    """

    suits = ("hmm",)
    _parameter_constraints = {"max_second_tries": [Interval(Integral, 0, None, closed="left")]}

    def __init__(self, max_second_tries):
        self.max_second_tries = max_second_tries

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._refuted = Failures(change=0.2)  # second tries that failed, by uids of the targets
        self._n_left = 0  # second tries that may still be made

    @property
    def pending(self) -> bool:
        """Whether there may be second tries left to be made."""
        return self._n_left > 0

    def last_resort(self) -> None:
        """Nothing is left to try for the first time."""
        self._n_left = self.max_second_tries

    def new_data(self) -> None:
        """Forget failures, since a proposal that failed may succeed on more data."""
        self.reset()

    def _second_try(self, context, losses):
        """Trial of the targets (tuples of uids) that lose least a row of the smallest, in a list.

        Parameters
        ----------
        context : Context
        losses : dict of tuple to float
            What each change loses, in nats. Several targets become one state; a single one gives way to
            all others.
        """
        totals, sizes, a_row = context.totals, context.totals.sizes, {}
        for uids, loss in losses.items():
            n = min(sizes[uid] for uid in uids)
            failed = self._refuted.blocked(uids, sum(sizes[uid] for uid in uids))
            if not failed and loss < price_of_state(totals.s.shape[1], n):
                a_row[uids] = loss / n
        best = min(a_row, key=a_row.get, default=None)
        if best is None:
            self._n_left = 0
            return []
        self._n_left -= 1
        created = tuple(context.new_uids(1)) if len(best) > 1 else ()
        s = totals.s[totals.positions(best)].sum(axis=0, keepdims=True)[: len(created)]
        links = totals.extra.listed(list(best))[1:].sum(keepdims=True)[: len(created)]
        own = np.concatenate([np.zeros((1, len(created))), links[:, : len(created)]])
        return [
            AdoptTrial(
                self.kind, best[0], created, s, retires=True, extra=Transitions(created, own),
                others=best[1:], estimate=-losses[best],
            )
        ]  # fmt: skip

    def judged(self, trial, accepted, mass, gain):
        """Remember which second tries failed."""
        if trial.policy is Policy.WITH_LAP:
            self._refuted.judged(trial.targets, accepted, mass)


def price_of_state(n_statistics, n):
    """Nats that the other states may regain when one of ``n`` rows has gone."""
    return _PRICE * n_statistics * np.log1p(n)
