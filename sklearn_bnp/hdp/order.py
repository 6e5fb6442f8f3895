"""The order of components in which global sticks fit best."""

from __future__ import annotations

import numpy as np


def in_order_of_weights(model, totals):
    """Totals with the components in the order that suits the sticks, and the model for them.

    That is by decreasing weight, if it is not worse than the order that they are in. The weight of a
    component is how many groups of rows use it, and not its mass.
    """
    here = model.updated(totals)
    if len(totals.uids) < 2:
        return totals, here
    order = np.lexsort((-totals.n, -here.allocation.weights(here.sticks)))
    if np.all(np.diff(order) > 0):
        return totals, here
    other = totals.take(order)
    there = here.updated(other)
    value = here.allocation_term(totals)
    if there.allocation_term(other) >= value - 1e-12 * abs(value):
        return other, there
    return totals, here
