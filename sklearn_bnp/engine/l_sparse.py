"""Places: how many components may share a row if responsibilities are L-sparse.

Design note
-----------
The next local step will have at most L nonzero responsibilities per row, and verdicts must not promise
more. A trial replaces some components in responsibilities that are L-sparse already. It may therefore share
their part of a row among as many successors as they had places in it. Several trials may be accepted in one
lap, and none knows of the others. Hence all L places of a row are divided among the components that share it.
Accepted trials replace different components, so that their successors together have L places at the most.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np


class Places:
    """The L places of each row, divided among the components that share it.

    All have the same number of places. The largest component of a row has the places left over as well.

    Parameters
    ----------
    resp : ndarray, shape (n, K)
        L-sparse responsibilities.
    n_nonzero : int
        L.
    """

    def __init__(self, resp, n_nonzero):
        self._resp, self._n_nonzero = resp, n_nonzero

    @cached_property
    def _dealt(self):
        """Places of each component of a row, places left over, and the largest component, each (n,)."""
        sharing = np.count_nonzero(self._resp, axis=1)
        each, over = np.divmod(self._n_nonzero, np.maximum(sharing, 1))
        return each, over, np.argmax(self._resp, axis=1)

    def of(self, columns, rows):
        """Places (m,) that components have together in each of some rows: one at least.

        Parameters
        ----------
        columns : ndarray of int
            The components, as columns of the responsibilities.
        rows : ndarray of int, shape (m,)
        """
        each, over, largest = (dealt[rows] for dealt in self._dealt)
        own = np.count_nonzero(self._resp[np.ix_(rows, columns)], axis=1)
        return np.maximum(own * each + np.where(np.isin(largest, columns), over, 0), 1)


def largest_shares(resp, n_nonzero):
    """The L-sparse responsibilities (n, K) that are nearest to ``resp``, in terms of KL(new || old).

    The ``n_nonzero`` largest of each row share all of it; of equal ones the first stay. None is no limit.
    """
    if n_nonzero is None or n_nonzero >= resp.shape[1]:
        return resp
    out = resp.copy()
    order = np.argsort(-resp, axis=1, kind="stable")
    np.put_along_axis(out, order[:, n_nonzero:], 0.0, axis=1)
    return out / out.sum(axis=1, keepdims=True)
