"""Checks of parameters and data that the estimators share.

A user's mistakes are found here, or in the ``bind`` of an observation model, before the engine is touched:
the engine trusts what it is given. Every message names the parameter, its value and the remedy.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from ..distributed.recognition import is_of_dask
from ..engine.proposal import Proposal
from ..inputs.advice import advice_on
from ..inputs.frames import as_numbers, is_frame, reading_of
from ..inputs.masked_arrays import refuse_masked, with_nan
from ..inputs.rows import canonical, part, with_equal_entries_apart
from ..inputs.tables import (
    in_numpy,
    raise_infinite,
    require_columns,
    require_numbers,
    require_rows,
    require_table,
    says_what_is_no_number,
)
from ..likelihood.limits import largest_of
from .far_batches import warn_if_far
from .left_out_columns import warn_if_left_out_varies
from .observations import allows_missing, require_sparse_family, resolve_observation

# Squares of values beyond these leave the range of doubles.
_LARGEST, _SMALLEST = 1e150, 1e-150
# Sums of squares of rows that are further out than this, in units of the data that a model was begun
# with, have rounding errors that are not small beside 1.
_FARTHEST = {np.float32: 1e3, np.float64: 1e7}
# Squares of distances beyond these overflow. Not even a row of weight 0 may be so far out.
_OVERFLOWS = {np.float32: 1e15, np.float64: 1e140}
# The largest number that counts rows or draws.
_MOST_OF_ALL = np.iinfo(np.int64).max
# Initial means are compared with rows only once, and may be as far out as their distances are finite.
_LARGEST_MEAN = 1e15


# ---------------------------------------------------------------------- parameters


def checked(component):
    """Check the parameters of an observation model or proposal, and return it."""
    if hasattr(component, "_parameter_constraints"):
        component._validate_params()
    return component


def check_positive_integers(**given):
    """Raise unless all parameters that are given by name are whole numbers, from 1 to what an index holds."""
    for name, value in given.items():
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}={value!r} must be an integer, 1 or more.")
        if value > _MOST_OF_ALL:
            raise ValueError(f"{name}={value!r} must be at most {_MOST_OF_ALL}.")


def checked_generator(random_state):
    """A `RandomState` of the argument ``random_state`` of a method; raise if it is no seed."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r} must be an int from 0 to 2**32 - 1, an instance of "
            "numpy.random.RandomState, or None. Give an int, such as random_state=0."
        ) from error


def resolve_proposals(proposals, registry, kind):
    """Fresh `Proposal` objects for the parameter ``proposals``; an empty list if it is None.

    ``registry`` maps names to proposals, all of which must suit models of this ``kind``.
    """
    if proposals is None:
        return []
    if not isinstance(proposals, (list, tuple)):  # the order of a set would change from run to run
        proposals = (proposals,)
    out = []
    for proposal in proposals:
        if isinstance(proposal, Proposal) and kind not in proposal.suits:
            remedy = f"leave it out, or name {kind!r} in its attribute suits={proposal.suits}."
            if proposal.kind in registry:
                remedy = f"use {registry[proposal.kind]()!r} or the name {proposal.kind!r}."
            raise ValueError(
                f"proposals holds {proposal!r}, which is for another kind of model; {remedy}"
            )
        if isinstance(proposal, Proposal):
            out.append(checked(clone(proposal)))
        elif isinstance(proposal, str) and proposal in registry:
            out.append(registry[proposal]())
        else:
            raise ValueError(
                f"proposals holds {proposal!r}, which is not known.{_advice_on_proposal(proposal, registry)} "
                f"Use a tuple of names among {sorted(registry)} or of Proposal objects, or None for a "
                "fixed number of components."
            )
    kinds = [proposal.kind for proposal in out]
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"proposals={proposals!r} names a kind twice; give each kind once.")
    return out


def _advice_on_proposal(proposal, registry):
    """Say what the user may have meant by an unknown proposal: a sentence, or nothing."""
    if isinstance(proposal, str):
        parts = tuple(proposal.replace(",", " ").split())
        if len(parts) > 1 and all(part in registry for part in parts):
            return f" Did you mean the tuple {parts!r}?"
    return advice_on(proposal, registry, Proposal)


# ---------------------------------------------------------------------- data


def read_frames(estimator, parts, *, reset):
    """Parts of the data, with codes for the categories of frames, and the `Reading` of the frames or None.

    What is masked in a masked array is NaN. Equal entries of sparse rows are not added up yet.

    Data of dask are refused: they would be pulled into memory here.

    If ``reset``, how frames are read is found anew, and kept by the estimator for `predict`, together
    with ``categories_``.
    """
    if any(is_of_dask(part) for part in parts):
        raise TypeError(
            f"X is of dask, but this method of {type(estimator).__name__} takes data in memory: give "
            "X.compute(), or use fit, partial_fit, predict, predict_proba, transform, score_samples and "
            "score of DPMixtureVB, HDPTopicVB and HDPHMMVB, which take data of dask."
        )
    for frame in filter(is_frame, parts):
        require_columns(frame)
    if reset:
        for name in ("_reading", "categories_"):
            vars(estimator).pop(name, None)
        if parts and all(is_frame(part) for part in parts):
            keep_reading(estimator, parts)
    reading = getattr(estimator, "_reading", None)
    parts = [as_numbers(reading, with_equal_entries_apart(with_nan(part))) for part in parts]
    return parts, reading


def keep_reading(estimator, frames):
    """Find how frames are read, and let the estimator keep it, together with ``categories_``."""
    reading = reading_of(resolve_observation(estimator.observation), frames)
    if reading is not None:
        estimator._reading = reading
        if reading.categories:
            names, found = reading.names, reading.categories
            estimator.categories_ = {names[d]: values for d, values in found.items()}


def check_rows(estimator, x, *, reset, min_rows=1):
    """Rows as an array that was not copied unless it had to be, and the `Reading` of a frame or None.

    Numbers of any type stay as they are (a memory map of bytes must not become one of doubles in
    memory); blocks of them are converted when they are used. Sparse rows stay sparse.
    """
    if not reset and _is_as_before(estimator, x, min_rows):
        return real_numbers(x, estimator.observation, check_small=False), None
    require_table(x)
    require_rows(x)
    [x], reading = read_frames(estimator, [x], reset=reset)
    require_sparse_family(x, estimator.observation)
    with says_what_is_no_number(x), in_numpy():
        x = validate_data(
            estimator, x, reset=reset, accept_sparse="csr", accept_large_sparse=True, dtype="numeric",
            order=None, ensure_all_finite=False,  # `real_numbers` looks
        )  # fmt: skip
    n = x.shape[0]
    if n < min_rows:
        raise ValueError(
            f"Found array with {n} sample(s) (n_samples={n}) while a minimum of {min_rows} is required to "
            "begin with: give more rows, or join the first row of a stream with those that follow."
        )
    return real_numbers(x, estimator.observation, check_small=reset), reading


def _is_as_before(estimator, x, min_rows):
    """Whether rows are a plain array of as many columns as before, all without names.

    Neither frames nor scikit-learn's checks have anything to say about it then. These take longer than
    to learn from a small batch of a stream.
    """
    return (
        type(x) is np.ndarray
        and x.ndim == 2
        and x.dtype.kind in "fiub"
        and x.shape[0] >= min_rows
        and x.shape[1] == vars(estimator).get("n_features_in_")
        and not any(name in vars(estimator) for name in ("feature_names_in_", "_reading"))
    )


def real_numbers(x, observation, *, check_small):
    """Rows of numbers whose squares are finite, and if ``check_small``, not rounded to 0.

    Entries may be NaN if the observation model takes missing values.
    """
    require_numbers(x)
    if issparse(x):
        x = canonical(x)
    if x.dtype.kind == "f":
        _check_magnitude(x, observation, check_small=check_small)
        if x.dtype.itemsize > 8:  # long doubles, which no kernel takes
            x = x.astype(np.float64)
    return x


def _check_magnitude(x, observation, *, check_small):
    if not check_small and not issparse(x):
        low, high = float(x.min()), float(x.max())  # sooner found than those of each column
        if low >= -_LARGEST and high <= _LARGEST:
            return
    if issparse(x):
        magnitude = np.zeros(x.shape[1])
        with np.errstate(invalid="ignore"):  # of nan
            np.maximum.at(magnitude, x.indices, np.abs(x.data))
    else:
        magnitude = np.maximum(np.abs(x.max(axis=0)), np.abs(x.min(axis=0))).astype(np.float64)
    missing = np.flatnonzero(np.isnan(magnitude))
    if len(missing):
        if issparse(x):
            raise ValueError(
                f"Input X contains NaN in column {missing[0]} and is sparse; rows with missing values "
                "have to be dense: give X.toarray(), or X.sparse.to_dense() of a frame, or fill them in."
            )
        if not allows_missing(observation):
            raise ValueError(
                f"Input X contains NaN in column {missing[0]}, but observation={observation!r} takes no "
                "missing values. Fill them in, leave these rows out, or use an observation that integrates "
                "them out, as 'gaussian', 'bernoulli' and 'poisson' do."
            )
        both = np.fmax.reduce(x, axis=0), np.fmin.reduce(x, axis=0)
        magnitude = np.max(np.abs(both), axis=0).astype(np.float64)
        magnitude[np.isnan(magnitude)] = 0.0
    largest = magnitude.max()
    if largest == np.inf:
        raise_infinite(x)
    if largest > _LARGEST:
        raise ValueError(
            f"X holds values up to {largest:.3g}; squares of values beyond {_LARGEST:g} overflow. "
            "Rescale X."
        )
    if check_small:
        check_not_tiny(magnitude)


def check_not_tiny(magnitude):
    """Raise if the largest values (D,) of a column are so small that squares underflow."""
    tiny = np.flatnonzero((magnitude > 0) & (magnitude < _SMALLEST))
    if len(tiny):
        raise ValueError(
            f"Column {tiny[0]} of X holds no value larger than {magnitude[tiny[0]]:.3g}; squares of "
            f"values below {_SMALLEST:g} underflow. Rescale the column or leave it out."
        )


def check_units(likelihood, batch):
    """The batch, in double precision if its rows are too far out for single precision.

    Warns if rows vary in what the likelihood leaves out, or are mostly far away. Raises ValueError if rows of
    positive weight are too far out for double precision, or if the likelihood takes no such values at all.
    Nothing has been changed by then.
    """
    largest = overall = 0.0
    counts = None if batch.weight is None else batch.entry_weight > 0
    for rows in batch.slices():
        with np.errstate(over="ignore"):
            z = likelihood.prepare(part(batch.x, rows))
        far = _farthest(likelihood, z)
        overall = max(overall, far)
        largest = max(largest, far if counts is None else _farthest(likelihood, z[counts[rows]]))
    if not largest <= _FARTHEST[np.float64]:
        raise ValueError(
            f"X holds values {largest:.1g} standard deviations away from the data of the first fit or batch, "
            "whose units the model keeps (or from those that a variance was set for). Look for errors in X, "
            "or begin anew with fit, and warm_start=False, on more typical rows."
        )
    if not overall <= _OVERFLOWS[z.dtype.type]:
        raise ValueError(
            f"X holds values {overall:.1g} standard deviations away from the data, in a row of weight 0, "
            f"whose squares overflow in {z.dtype}. Leave the row out."
        )
    warn_if_left_out_varies(likelihood, batch)
    warn_if_far(likelihood, batch, largest)
    if largest > _FARTHEST[z.dtype.type]:
        return batch._replace(x=batch.x.astype(np.float64))
    return batch


def _farthest(likelihood, z):
    """How many standard deviations prepared rows are away at most, in columns that are in such units."""
    standardised = np.asarray(likelihood.standardised)
    if standardised.all():
        return largest_of(z)
    return largest_of(z[:, standardised]) if standardised.any() else 0.0


def check_responsibilities(resp, n_rows):
    """Responsibilities (n_rows, K) whose rows sum to one."""
    resp = numbers(resp, "init_params")
    if resp.ndim != 2 or len(resp) != n_rows:
        remedy = " Of labels 0, 1, ..., give np.eye(labels.max() + 1)[labels]." * (resp.ndim == 1)
        raise ValueError(
            f"init_params holds responsibilities of shape {resp.shape}; it must be ({n_rows}, "
            f"n_components), one row for each of X.{remedy}"
        )
    if resp.min() < 0:
        raise ValueError(
            f"init_params holds a negative responsibility, {resp.min():g}; give values in [0, 1]."
        )
    error = np.abs(resp.sum(axis=1) - 1.0)
    if error.max() > 1e-6:
        row = int(error.argmax())
        raise ValueError(
            f"init_params: the responsibilities of row {row} sum to {resp[row].sum():g}; divide "
            "each row by its sum."
        )
    return resp


def check_means(means, n_components, n_features):
    """Initial means (K, D)."""
    means = numbers(means, "means_init")
    if means.shape != (n_components, n_features):
        remedy = ""
        if means.ndim == 2 and means.shape[1] == n_features and len(means):
            remedy = f" Set n_components={len(means)} to start from these means."
        raise ValueError(
            f"means_init has shape {means.shape}; it must be (n_components, n_features) = "
            f"({n_components}, {n_features}).{remedy}"
        )
    return means


def check_reach(likelihood, means):
    """Raise if initial means are so far out that their distances overflow."""
    with np.errstate(over="ignore"):
        largest = largest_of(likelihood.prepare_means(means))
    if not largest <= _LARGEST_MEAN:
        raise ValueError(
            f"means_init holds values {largest:.1g} standard deviations away from the data, or counts of so "
            f"many; they may be no more than {_LARGEST_MEAN:g} away. Give them in the units of X."
        )


def numbers(value, name):
    """An array of finite numbers in float64; errors name the parameter."""
    refuse_masked(value, name)
    try:
        with in_numpy():
            return check_array(
                value, dtype=np.float64, order="C", ensure_2d=False, allow_nd=True, input_name=name
            )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold finite numbers: {error}") from error
