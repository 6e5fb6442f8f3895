"""BLAS on one thread while kernels thread over rows."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident

from threadpoolctl import ThreadpoolController

# The limit is the whole process's: of calls that overlap, the first sets it and the last lifts it.
# `_callers` holds the thread of each, `_before` the libraries and how many threads they had.
_lock, _callers, _before = Lock(), {}, []


@cache
def _libraries():
    """The BLAS libraries of the process. To find them takes longer than to learn from a small batch."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def blas_on_one_thread():
    """Hold BLAS at one thread: the kernels thread over rows, and nested threads only fight."""
    call = object()
    with _lock:
        if not _callers:
            _before.extend((library, library.get_num_threads()) for library in _libraries())
            _set_threads((library, 1) for library, _ in _before)
        _callers[call] = get_ident()
    try:
        yield
    finally:
        _end([call])


def _end(calls):
    with _lock:
        for call in calls:
            _callers.pop(call, None)
        if _before and not _callers:
            _set_threads(_before)
            _before.clear()


def _set_threads(numbers):
    for library, n_threads in numbers:
        library.set_num_threads(n_threads)


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
