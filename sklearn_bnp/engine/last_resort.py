"""Proposals that wait until a fit would end."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import Interval

from .failures import Attempts
from .proposal import Proposal

# Searches of a stream's later batches may take one in so many of all numbers.
_LATER_BATCHES = 8


class LastResort(Proposal):
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
        self._due, self._rounds = False, 0

    def last_resort(self) -> None:
        """Nothing is left to try but this."""
        self._due = True

    def new_data(self) -> None:
        """Forget all failures: with new rows an attempt may succeed."""
        self.reset()

    def prior_changed(self) -> None:
        """Forget what was tried: under another prior it may succeed."""
        self._attempts.clear()

    def _begins(self, context):
        """Whether a round is due, and there may be one."""
        due, self._due = self._due, False
        return due and not context.partial and self._rounds < self.max_rounds


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
