"""Variants of a test: those that can fail differently are quick ones, and their siblings are slow."""

import pytest


def variants(every, *, quick=None, slow=()):
    """Parameters of a test, of which some are marked as slow.

    Parameters
    ----------
    every : iterable
        All values; tuples are those of several arguments.
    quick : container, optional
        Those that quick tests run with; by default, all but the ``slow`` ones.
    slow : container
        Those that only slow tests run with.
    """
    params = []
    for x in every:
        is_slow = x in slow if quick is None else x not in quick
        values = x if isinstance(x, tuple) else (x,)
        params.append(pytest.param(*values, marks=[pytest.mark.slow] * is_slow))
    return params
