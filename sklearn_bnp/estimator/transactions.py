"""A call of `fit` or `partial_fit` that fails leaves the estimator as it was."""

from __future__ import annotations

from functools import wraps

import numpy as np

from .callbacks import OF_A_CALL
from .named_arguments import require_names


def leaves_model_on_error(method):
    """Decorator of `fit` and `partial_fit`: if the call fails, all attributes are as they were before.

    A generator given as ``random_state`` is put back too, so that a second attempt draws the same numbers.
    """

    @wraps(method)
    def guarded(self, *args, **kwargs):
        require_names(method, self, args)
        before, rng = vars(self).copy(), getattr(self, "random_state", None)
        state = rng.get_state() if isinstance(rng, np.random.RandomState) else None
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            of_call = {name: vars(self)[name] for name in OF_A_CALL if name in vars(self)}
            vars(self).clear()
            vars(self).update(before, **of_call)
            if state is not None:
                rng.set_state(state)
            raise

    return guarded
