"""The last check of a fit: nothing that is not finite is published.

Limits of data and parameters are checked where they come in. This is for what these cannot foresee.
"""

from __future__ import annotations

import numpy as np


def require_finite(estimator, bounds, parameters, *, but=()):
    """Raise unless the objective and all parameters are finite; nothing has been changed yet.

    Parameters
    ----------
    estimator : BaseEstimator
    bounds : dict
        Terms of the objective by name.
    parameters : dict
        What is about to be published; of dicts, tuples and lists, what they hold.
    but : tuple of str
        Parameters that need not be finite, see `Likelihood.may_be_nan`.
    """
    for what, values in {"objective": bounds, "parameters": parameters}.items():
        wrong = [name for name, value in values.items() if not _is_finite(name, value, but)]
        if wrong:
            raise FloatingPointError(
                f"The {what} of {type(estimator).__name__} would not be finite: {', '.join(wrong)}. Look for "
                "values in X or sample_weight that are far from all others, and for parameters of priors "
                "that are very large or small; rescale them. The estimator stays as it was before this call."
            )


def _is_finite(name, value, but):
    if name in but:
        return True
    if isinstance(value, dict):
        return all(_is_finite(f"{name}.{key}", v, but) for key, v in value.items())
    if isinstance(value, (tuple, list)):
        return all(_is_finite(name, v, but) for v in value)
    value = np.asarray(value)
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())
