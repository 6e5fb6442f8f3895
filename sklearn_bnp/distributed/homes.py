"""Which worker works on which chunks: on neighbours, and on as many for each thread.

Left to itself, the scheduler shares chunks out by what it guesses of their time, and moves them if a worker
has nothing to do for a moment. One of two workers may then have five of eight groups. Neighbours are
siblings in the tree of sums: a worker that has several sends one sum.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter


def homes_of(lies, threads):
    """Address of a worker for each of some groups of neighbouring chunks, in a list.

    Parameters
    ----------
    lies : list of dict
        For each group, address -> number of chunks that are there already.
    threads : dict
        Address of a worker -> number of its threads.
    """
    n, total, left = len(lies), sum(threads.values()), dict(threads)
    homes, n_before = [], 0

    def own(home):
        """The groups of a worker, if it is the next one."""
        edges = (n_before, n_before + left[home])
        return slice(*((2 * n * edge + total) // (2 * total) for edge in edges))

    def n_there(home):
        return sum(group.get(home, 0) for group in lies[own(home)])

    while left:
        home = max(left, key=n_there)
        groups = own(home)
        homes += [home] * (groups.stop - groups.start)
        n_before += left.pop(home)
    return homes


def neighbours(items, most, at_home):
    """Cut a list of pairs (future, home) into lists of up to ``most`` neighbours.

    Returns
    -------
    list of pairs (list of futures, home)
        If ``at_home``, all of a list are of one home. Otherwise the home is None, which leaves it to dask.
    """
    runs = groupby(items, key=itemgetter(1)) if at_home else [(None, items)]
    return [
        ([future for future, _ in some[i : i + most]], home)
        for home, run in runs
        for some in [list(run)]
        for i in range(0, len(some), most)
    ]
