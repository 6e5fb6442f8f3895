"""How many threads the kernels use."""

from __future__ import annotations

import os

import joblib


class _Team:
    """Whether kernels have run on several threads in this process, and whether a fork has lost them."""

    begun = lost = False

    @classmethod
    def lose(cls):
        cls.lost = cls.begun


if hasattr(os, "register_at_fork"):  # a platform without it has no forks
    os.register_at_fork(after_in_child=_Team.lose)


def threads(n_jobs):
    """Number of threads for the kernels: ``n_jobs`` as joblib reads it, but 1 in a forked process.

    The threads of GCC's OpenMP do not survive a fork, but the child process waits for them: its first
    loop on several threads would never end. No result depends on the number of threads.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None for one thread, or -1 for all cores.")
    if _Team.lost:
        return 1
    n_threads = joblib.effective_n_jobs(n_jobs)
    _Team.begun |= n_threads > 1
    return n_threads
