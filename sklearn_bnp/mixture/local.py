"""Local and summary steps of a batch, block by block."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident

import numpy as np
from threadpoolctl import ThreadpoolController

from ..engine.places import Places, largest_shares
from ..engine.statistics import StatBag
from ..inputs.batches import Block
from ..inputs.rows import at_hand, part


@cache
def _controller():
    return ThreadpoolController()


# The limit is the whole process's: of calls that overlap, the first sets it and the last lifts it.
# `_callers` holds the thread of each.
_lock, _callers, _limits = Lock(), {}, []


@contextmanager
def blas_on_one_thread():
    """Hold BLAS at one thread: the kernels thread over rows, and nested threads only fight."""
    controller, call = _controller(), object()
    with _lock:
        if not _callers:
            _limits.append(controller.limit(limits=1, user_api="blas"))
        _callers[call] = get_ident()
    try:
        yield
    finally:
        _end([call])


def _end(calls):
    with _lock:
        for call in calls:
            _callers.pop(call, None)
        if _limits and not _callers:
            _limits.pop().restore_original_limits()


def _after_fork_in_child():
    """Only the thread that forked goes on in the child: the calls of all others will never end."""
    _lock.release()
    _end([call for call, thread in _callers.items() if thread != get_ident()])


if hasattr(os, "register_at_fork"):  # where it is not, there are no forks
    os.register_at_fork(  # a lock that another thread held would stay locked in the child
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_after_fork_in_child,
    )


def local_pass(batch, likelihood, coef, uids, observers=(), *, n_nonzero=None, n_threads=1):
    """`StatBag` of a batch after its local step; ``observers`` see every block on the way.

    Parameters
    ----------
    batch : Batch
        With ``resp`` given, these responsibilities are summarised and no local step is made. Where
        they are not L-sparse, the nearest that are take their place.
    coef : ndarray, shape (K, P)
        From `Model.coefficients`.
    uids : ndarray, shape (K,)
    observers : iterable of objects with ``observe(block)``
    n_nonzero : int or None
        L of L-sparse responsibilities; dense if None.
    """
    total = StatBag.zeros(uids, likelihood.n_statistics)
    s, entropy = np.empty_like(total.s), np.empty_like(total.entropy)
    coef = np.ascontiguousarray(coef)
    for rows in batch.slices():
        z = likelihood.prepare(at_hand(part(batch.x, rows)))
        weight = None if batch.weight is None else batch.weight[rows]
        if batch.resp is None:
            resp = likelihood.local_step(
                coef, z, None, weight, s, entropy, n_nonzero=n_nonzero, n_threads=n_threads
            )
        else:
            resp = largest_shares(batch.resp[rows], n_nonzero)
            resp = np.ascontiguousarray(resp, dtype=z.dtype)
            w = resp if weight is None else resp * weight[:, np.newaxis].astype(z.dtype)
            likelihood.summarise(z, w, s)
            entropy = np.sum(-w * np.log(np.where(resp > 0, resp, 1.0)), axis=0, dtype=float)
        total.s[...] += s
        total.entropy[...] += entropy
        places = None if n_nonzero is None else Places(resp, n_nonzero)
        block = Block(z, weight, resp, uids, places)
        for observer in observers:
            observer.observe(block)
    return total
