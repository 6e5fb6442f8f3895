"""In which order tasks are handed out, so that dask gives each worker as many, where their data lie.

Design note
-----------
(a) dask looks at the tasks of a wave one after the other. A task goes to one of the workers that hold any of
    its data: the one that could begin first, if it has ended all that was given to it before and has fetched
    what it lacks. All tasks share the parameters of the wave, so each worker that holds these may get any of
    them. Tasks of one priority come in any order. If several come whose data lie together, fetching seems
    to take less time than waiting for them. Then one of two workers does five of eight tasks, or six.
(b) Here workers take turns: each gets one of the tasks whose data it holds, then each gets another one. None
    has more to do than others when a task is looked at, so that fetching does not pay.
(c) If a worker holds more than its share, the data of some tasks are copied to others beforehand. Otherwise
    dask might not look at any other worker.
(d) No task is bound to a worker: dask may run it elsewhere, if that worker is gone, or late. A task that is
    bound could wait for ever. If there is no worker for a moment, dask calls it unrunnable, and when workers
    come it looks for the old one alone, even with ``allow_other_workers``.
"""

from __future__ import annotations

from collections import Counter


def in_turns(holders):
    """Positions of some tasks in the order in which to hand them out.

    Parameters
    ----------
    holders : list of lists
        For each task, the workers that hold its data; there may be none.

    Returns
    -------
    list of int
    """
    n_before, turns = Counter(), []
    for i, workers in enumerate(holders):
        worker = min(workers, key=n_before.__getitem__, default=None)
        turns.append((n_before[worker], i))
        n_before[worker] += 1
    return [i for _, i in sorted(turns)]


def copies(holders, threads):
    """Copies of the data of tasks after which each worker has its share, a dict of workers by task.

    Parameters
    ----------
    holders : list of lists
        See `in_turns`. Tasks whose data nobody holds are left out.
    threads : dict
        Worker -> number of its threads.
    """
    own = {worker: [] for worker in threads}
    for i, workers in enumerate(holders):
        known = [worker for worker in workers if worker in own]
        if known:
            own[min(known, key=lambda worker: len(own[worker]) / threads[worker])].append(i)
    n, n_threads = sum(map(len, own.values())), sum(threads.values())
    room = {worker: -(-n * threads[worker] // n_threads) - len(own[worker]) for worker in own}
    found = {}
    for tasks, left in zip(own.values(), list(room.values()), strict=True):
        for i in tasks[len(tasks) + left :] if left < 0 else ():
            worker = max(room, key=room.__getitem__)
            if room[worker] > 0:
                found[i] = worker
                room[worker] -= 1
    return found


def holders_of(needed, who_has):
    """For each task, list the workers that hold most of what it needs.

    Parameters
    ----------
    needed : list of lists of str
        Keys of what each task needs.
    who_has : dict
        Key -> addresses of workers.
    """
    found = []
    for keys in needed:
        count = Counter(worker for key in keys for worker in who_has.get(key, ()))
        most = max(count.values(), default=0)
        found.append([worker for worker, n in count.items() if n == most])
    return found
