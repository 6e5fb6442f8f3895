"""Methods of fitted estimators on data in chunks: lazy, but for scores."""

from __future__ import annotations

from functools import partial, wraps
from inspect import signature

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..distributed.choice_of_place import place_of
from ..distributed.chunks import chunks_of, with_others
from ..distributed.recognition import are_chunks, is_of_dask
from ..inputs.frames import as_numbers, is_frame
from .chunks import check_groups_are_whole, groups_beside, require_whole_groups
from .named_arguments import require_names
from .publishing import complete

# What predictions do without: the learner, and the mark of a state that is checked when it is loaded.
_OF_LEARNING = ("_learner_", "_published", "history_", "labels_", "_unlabelled")


def lazy_on_chunks(method):
    """Decorator of methods with one result a row: of data in chunks they are lazy.

    The result is a dask array in the chunks of a dask array or frame, and a list of delayed results of a
    list.
    """

    @wraps(method)
    def called(self, X, *args, **given):
        require_names(method, self, (X, *args))
        if not are_chunks(X):
            return method(self, X, *args, **given)
        _require_known(method, self, X, *args, **given)
        check_is_fitted(self)
        return _lazily(self, method.__name__, X, given)

    return called


def summed_over_chunks(method):
    """Decorator of ``score``: the mean over chunks, each weighted by what it has; a number at once.

    The class has ``_score_sums(X, ...)``, which returns a weighted sum and the sum of the weights.
    """

    @wraps(method)
    def called(self, X, y=None, *args, **given):
        require_names(method, self, (X, y, *args))
        if not are_chunks(X):
            return method(self, X, y, *args, **given)
        given = _require_known(method, self, X, y, *args, **given)
        del given["self"], given["X"], given["y"]
        check_is_fitted(self)
        chunks = chunks_of(X, given)
        with place_of(chunks, None) as place:
            check_groups_are_whole(chunks, place)
            sums = place.look(partial(_sums_of, for_predictions(self)), range(place.n_chunks))
        total, n = np.sum(sums, axis=0)
        if not n > 0:
            raise ValueError(
                "X holds nothing to score: all its chunks are empty or have the sample_weight 0, or hold "
                "only what has no score, such as documents without words. Give chunks with rows that can "
                "be scored."
            )
        return float(total / n)

    return called


def for_predictions(estimator):
    """A copy of a fitted estimator that can predict and no more: it is small."""
    complete(estimator)
    copy = type(estimator).__new__(type(estimator))
    vars(copy).update({k: v for k, v in vars(estimator).items() if k not in _OF_LEARNING})
    return copy


def _require_known(method, *args, **given):
    """Arguments of a method by name; TypeError as in memory, if it does not take them."""
    try:
        return signature(method).bind(*args, **given).arguments
    except TypeError as error:
        raise TypeError(f"{method.__qualname__}() {error}") from None


def _sums_of(estimator, arguments):
    """Weighted sum of scores of a chunk, and the sum of their weights."""
    weight = arguments.get("sample_weight")
    vanishes = weight is not None and not np.any(weight)
    if vanishes or not _has_rows(arguments["X"]):
        return 0.0, 0.0
    return estimator._score_sums(**arguments, of_chunk=True)


def _has_rows(x):
    return (x.shape[0] if hasattr(x, "shape") else len(x)) > 0


def _lazily(estimator, method, x, given):
    import dask

    chunks = chunks_of(x, given)
    like = None if isinstance(x, (list, tuple)) else _result_like(estimator, method, x, given)
    whole = dask.delayed(for_predictions(estimator), traverse=False)
    apply = dask.delayed(_applied, pure=False)
    parts = [
        apply(whole, method, like, *_as_argument(chunk), before)
        for chunk, before in zip(chunks, _groups_before(chunks), strict=True)
    ]
    if like is None:
        return parts
    import dask.array as da

    rows = x.chunks[0] if hasattr(x, "chunks") else (np.nan,) * len(parts)
    blocks = [
        da.from_delayed(part, (n, *like.shape[1:]), like.dtype, np.empty_like(like[:0]))
        for part, n in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _groups_before(chunks):
    """For each chunk the groups of the one before it, if dask has them: they are compared later.

    Groups that are at hand are checked at once, and None is returned for each chunk. To compare all that dask
    has, all chunks would have to be computed before the first result.
    """
    groups = groups_beside(chunks)
    if any(is_of_dask(own) for own in groups):
        return [None, *groups[:-1]]
    require_whole_groups(groups)
    return [None] * len(chunks)


def _as_argument(chunk):
    """A chunk as a delayed function takes it: what dask computes by itself, and the other arguments."""
    return (chunk.x, chunk.others) if chunk.is_lazy else (None, chunk)


def _result_like(estimator, method, x, given):
    """Result for two rows of zeros: its type, and its shape but for the number of rows."""
    rows = np.zeros((2, estimator.n_features_in_), dtype=_dtype_of(estimator, x))
    others = {"groups": np.zeros(2)} if given.get("groups") is not None else {}
    nameless = for_predictions(estimator)
    for name in ("feature_names_in_", "_reading"):  # so that zeros are codes of categories
        vars(nameless).pop(name, None)
    return getattr(nameless, method)(rows, **others)


def _dtype_of(estimator, x):
    """Type of the numbers that the estimator reads from a dask array or frame."""
    meta = getattr(x, "_meta", None)
    if is_frame(meta):
        x = as_numbers(getattr(estimator, "_reading", None), meta).to_numpy()
    dtype = np.dtype(getattr(x, "dtype", float))
    return dtype if dtype.kind in "fiub" else np.dtype(float)


def _applied(estimator, method, like, x, others, before):
    """The method's result for one chunk, in the type of ``like`` if that is given.

    ``before`` are groups of the chunk before this one, or None.
    """
    arguments = others.arguments() if x is None else with_others(x, others)
    # a loader may be that of `fit`, and give weights
    arguments = {k: v for k, v in arguments.items() if v is not None and k != "sample_weight"}
    if like is not None and not _has_rows(arguments["X"]):
        return like[:0]
    if before is not None:
        require_whole_groups([before, arguments.get("groups")])
    found = getattr(estimator, method)(**arguments)
    return found if like is None else found.astype(like.dtype, copy=False)
