"""What the estimators share: checks of parameters and data, and the way to the engine."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

from .allocation import ALLOCATIONS
from .observation import OBSERVATIONS, ObservationModel
from .proposals import PROPOSALS, Proposal

FLOATS = (np.float64, np.float32)


def resolve_observation(observation):
    """An `ObservationModel` from a name or a model."""
    if isinstance(observation, ObservationModel):
        return observation
    if isinstance(observation, str) and observation in OBSERVATIONS:
        return OBSERVATIONS[observation]()
    raise ValueError(
        f"observation={observation!r} is not known; use one of {sorted(OBSERVATIONS)} or an instance of "
        "one of the observation models."
    )


def resolve_allocation(allocation, concentration):
    """A `MixtureAllocation` from its name."""
    if allocation not in ALLOCATIONS:
        raise ValueError(
            f"allocation={allocation!r} is not known; use one of {sorted(ALLOCATIONS)}."
        )
    if concentration is None:
        return ALLOCATIONS[allocation]()
    if not (np.isscalar(concentration) and np.isfinite(concentration) and concentration > 0):
        raise ValueError(
            f"weight_concentration_prior={concentration!r} must be a positive number; leave it None for "
            "the default."
        )
    return ALLOCATIONS[allocation](float(concentration))


def resolve_proposals(proposals):
    """Fresh `Proposal` objects from names and settings; an empty list for a fixed truncation."""
    if proposals is None:
        return []
    if isinstance(proposals, (str, Proposal)):
        proposals = (proposals,)
    out = []
    for proposal in proposals:
        if isinstance(proposal, Proposal):
            out.append(clone(proposal))
        elif isinstance(proposal, str) and proposal in PROPOSALS:
            out.append(PROPOSALS[proposal]())
        else:
            raise ValueError(
                f"proposals holds {proposal!r}, which is not known; use names among {sorted(PROPOSALS)}, "
                "Proposal objects, or None for a fixed number of components."
            )
    kinds = [proposal.kind for proposal in out]
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"proposals={proposals!r} names a kind twice; give each kind once.")
    return out


def check_rows(estimator, x, *, reset, min_rows=1):
    """Rows as an array that was not copied unless it had to be.

    Numbers of any type stay as they are (a memory map of bytes must not become one of doubles in
    memory); blocks of them are converted when they are used.
    """
    x = validate_data(
        estimator,
        x,
        reset=reset,
        dtype="numeric",
        order=None,
        ensure_min_samples=min_rows,
        copy=False,
    )
    if x.dtype.kind not in "fiub":
        raise ValueError(f"X has dtype {x.dtype}; it must hold real numbers.")
    if x.dtype.kind == "f" and len(x):
        largest = max(abs(float(x.max())), abs(float(x.min())))
        if largest > 1e150:
            raise ValueError(
                f"X holds values up to {largest:.3g}; their squares overflow beyond 1e150. Rescale X."
            )
    return x


def check_weight(sample_weight, x):
    """Sample weights (n,) in float64, or None if not given."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0:
        raise ValueError(
            "sample_weight holds only zeros; at least one row must have a positive weight."
        )
    return np.ascontiguousarray(weight)


def check_responsibilities(resp, n_rows):
    """Responsibilities (n_rows, K) whose rows sum to one."""
    resp = check_array(resp, dtype=np.float64, input_name="init_params")
    if len(resp) != n_rows:
        raise ValueError(
            f"init_params holds responsibilities of {len(resp)} rows but X has {n_rows}; give one row each."
        )
    if resp.min() < 0 or not np.allclose(resp.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError(
            "init_params holds responsibilities that are negative or do not sum to 1 in a row."
        )
    return resp


def batch_length(batch_size, n_batches, n_rows, default_batches, least):
    """Rows a batch, from what the user set."""
    if batch_size is not None and n_batches is not None:
        raise ValueError(
            f"batch_size={batch_size!r} and n_batches={n_batches!r} are both set; set one of them."
        )
    for name, value in (("batch_size", batch_size), ("n_batches", n_batches)):
        if value is not None and not (isinstance(value, Integral) and value >= 1):
            raise ValueError(
                f"{name}={value!r} must be a positive integer, or None for the default."
            )
    if batch_size is not None:
        return int(batch_size)
    if n_batches is not None:
        return max(1, -(-n_rows // int(n_batches)))
    return max(least, -(-n_rows // default_batches))


def threads(n_jobs):
    """Threads for the kernels: ``n_jobs`` as joblib reads it."""
    return effective_n_jobs(n_jobs)
