"""The parameters of an estimator that say how its learner goes on, as one value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.streaming import StreamSettings

# By default data are cut into this many batches, of at least this many rows.
_DEFAULT_BATCHES, _LEAST_BATCH = 10, 4096


class FitSettings(NamedTuple):
    """Parameters that the estimators with a learner share, by their public names.

    An estimator without a parameter has the default that is given here.
    """

    n_components: int
    max_components: int | None
    proposals: object
    learning_method: str
    batch_size: int | None
    n_batches: int | None
    max_iter: int
    tol: float
    init_params: object
    memoize: bool
    learning_decay: float
    learning_offset: float
    total_samples: int | None
    n_jobs: int | None
    verbose: int
    n_nonzero_resp: int | None = None
    n_init: int = 1
    means_init: object = None
    warm_start: bool = False
    random_state: object = None
    max_batches: int | None = None
    half_life: float | None = None

    @property
    def stochastic(self):
        """Whether learning is by stochastic steps."""
        return self.learning_method == "stochastic"

    @property
    def number_is_fixed(self):
        """Whether the number of components stays as it is: nothing proposes another."""
        given = self.proposals
        none = given is None or (isinstance(given, (list, tuple)) and not given)
        return self.stochastic or none

    @property
    def starts_by_name(self):
        """Whether ``init_params`` names a method, which finds ``n_components`` components."""
        return isinstance(self.init_params, str)

    @property
    def starts_from_number(self):
        """Whether a first fit starts from ``n_components`` components."""
        return self.starts_by_name or self.means_init is not None

    @property
    def starts_from_given(self):
        """Whether the user gave the first components, and so knows each by its position."""
        return self.means_init is not None or not self.starts_by_name

    @property
    def stream(self):
        """`StreamSettings`; ValueError if they contradict each other."""
        if self.max_batches is not None and not self.memoize:
            raise ValueError(
                f"max_batches={self.max_batches} needs memoize=True: the oldest batch can leave only if its "
                "statistics are remembered. For a stream without memory, set half_life in its place."
            )
        if self.half_life is not None and self.memoize:
            raise ValueError(
                f"half_life={self.half_life} is for streams without a memory of batches: set memoize=False, "
                "or max_batches in its place."
            )
        for name in ("max_batches", "half_life"):
            if self.stochastic and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)} is not for learning_method='stochastic', which forgets by "
                    "its learning rate: set learning_decay and learning_offset."
                )
        return StreamSettings(self.memoize, self.max_batches, self.half_life)

    def check_most(self, n_components, what):
        """Raise if a fit would start from more components than ``max_components``.

        ``what`` is the beginning of the message, in which ``{}`` stands for their number.
        """
        most = self.max_components
        if most is not None and n_components > most:
            raise ValueError(
                f"{what.format(n_components)} is more than max_components={most}; start from fewer, or "
                "raise max_components."
            )

    def check_least(self, n, there, units):
        """Raise if there are fewer than ``n_components`` units to start from.

        Parameters
        ----------
        n : int
            How many there are.
        there : str
            What there is, in the middle of the message.
        units : str
            What there could be more of.
        """
        if self.n_components <= n:
            return
        remedy = "Start from fewer components; births find the others."
        if not self._has_births:
            remedy = (
                f"Give more {units}, in a stream in its first batch, or a lower n_components: without births "
                "this is their number for good."
            )
        raise ValueError(f"n_components={self.n_components} is more than {there}. {remedy}")

    @property
    def _has_births(self):
        given = self.proposals if isinstance(self.proposals, (list, tuple)) else ()
        return not self.stochastic and any(getattr(p, "kind", p) == "birth" for p in given)

    def number_of_batches(self, n_units, rows_per_unit=1.0):
        """Number of batches that rows, documents or sequences are cut into.

        It may be greater than the number of these units.
        """
        size, number = self.batch_size, self.n_batches
        if size is not None and number is not None:
            raise ValueError(
                f"batch_size={size} and n_batches={number} are both set; set one of them."
            )
        if self.learning_method == "full":
            return 1
        if number is not None:
            return int(number)
        if size is None:
            size = max(np.ceil(_LEAST_BATCH / rows_per_unit), -(-n_units // _DEFAULT_BATCHES))
        return -(-n_units // int(size))


def settings_of(estimator):
    """`FitSettings` of an estimator."""
    known = (name for name in FitSettings._fields if hasattr(estimator, name))
    return FitSettings(**{name: getattr(estimator, name) for name in known})
