"""Proposals that wait until a fit would end."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import Interval

from .failures import Attempts
from .proposal import Proposal

# Turns that a last resort may miss before it goes before all others.
_MOST_MISSED = 3
# Little is left to find once so many searches have come back to where they began, and so many more for each
# that ended elsewhere.
_RETURNS, _RETURNS_PER_FAILURE = 4, 0.25
# Searches of a stream's later batches may take one in so many of all numbers.
_LATER_BATCHES = 8


class TakesTurns(Proposal):
    """Base class of proposals that plan only when their turn comes, once nothing else is left to try.

    Others may go on to plan trials that fail, one after the other, while it waits for them. Without an end to
    that, a fit would be over before its turn comes.
    """

    # Whether its turn is to come, and how often that was missed, which saved models of before do not know.
    _due = False
    _n_missed = 0

    @property
    def overdue(self) -> bool:
        """Whether its turn was missed so often that it plans before all others."""
        return self._due and self._n_missed >= _MOST_MISSED

    def last_resort(self) -> None:
        """Nothing is left to try but this."""
        if not self._due:
            self._due, self._n_missed = True, 0

    def _miss(self):
        """It has to let others go first."""
        self._n_missed += 1

    def _has_turn(self, context):
        """Whether its turn has come, and nothing else is under way; afterwards, it is over."""
        if not self._due or context.partial:
            return False
        if not context.idle:
            self._miss()
            return False
        return self._take()

    def _has_another_turn(self):
        """Its next turn comes at once, before all others."""
        self._due, self._n_missed = True, _MOST_MISSED

    def _take(self):
        """Whether its turn has come; afterwards, it is over."""
        due, self._due, self._n_missed = self._due, False, 0
        return due


class LastResort(TakesTurns):
    """Base class of proposals that plan only when nothing else is left to try, and so often at the most.

    Parameters
    ----------
    max_rows : int
        Rows that are looked at, at the most.
    max_rounds : int
        How often a fit tries it, at the most.
    """

    _parameter_constraints = {
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
    }
    # Relative change of a component's mass after which an attempt with it is made again.
    _moved: float

    def __init__(self, max_rows, max_rounds):
        self.max_rows = max_rows
        self.max_rounds = max_rounds

    def reset(self) -> None:
        """Forget all attempts."""
        self._validate_params()
        self._attempts = Attempts(change=self._moved)
        self._take()
        self._rounds = 0

    def new_data(self) -> None:
        """Forget all failures: with new rows an attempt may succeed."""
        self.reset()

    def prior_changed(self) -> None:
        """Forget what was tried: under another prior it may succeed."""
        self._attempts.clear()

    def _begins(self, context):
        """Whether a round is due, and there may be one."""
        return self._take() and not context.partial and self._rounds < self.max_rounds


class SearchResort(LastResort):
    """Base class of last resorts whose searches of a fit may take so many numbers in all, and no more.

    A stream's first searches may take all these numbers, and those of later batches an eighth of them at the
    least.
    """

    # Numbers that all searches of a fit may take. Work is not counted in seconds, so that a fit does not
    # depend on the machine.
    _numbers_of_fit: int

    def reset(self) -> None:
        """Forget all attempts, and what they have cost."""
        super().reset()
        self._numbers_left = self._numbers_of_fit

    def new_data(self) -> None:
        """Forget all attempts. Searches of a stream's later batches may take a part of all numbers."""
        left = max(self._numbers_left, self._numbers_of_fit // _LATER_BATCHES)
        super().new_data()
        self._numbers_left = left


def often_came_back(n_returns, n_failures):
    """Whether so many failed searches have come back to where they began that little is left to find."""
    return n_returns >= _RETURNS + _RETURNS_PER_FAILURE * (n_failures - n_returns)
