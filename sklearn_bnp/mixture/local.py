"""Local and summary steps of a batch, block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.l_sparse import Places, largest_shares
from ..engine.statistics import StatBag
from ..inputs.rows import at_hand, part


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
        block = RowBlock(z, weight, resp, uids, places)
        for observer in observers:
            observer.observe(block)
    return total


class RowBlock(NamedTuple):
    """Prepared rows with what the local step found for them.

    Attributes
    ----------
    z : ndarray, shape (n, D')
    weight : ndarray, shape (n,) or None
        Sample weights.
    resp : ndarray, shape (n, K)
    uids : ndarray, shape (K,)
        Components that the columns of ``resp`` stand for.
    places : Places or None
        Of the components in each row if responsibilities are L-sparse.
    """

    z: np.ndarray
    weight: np.ndarray | None
    resp: np.ndarray
    uids: np.ndarray
    places: Places | None = None

    def by_places(self, rows, columns, most):
        """The ``rows`` (indices) by how many successors may share what ``columns`` have of them.

        Pairs of rows and that number, which is ``most`` at the most; None stands for any number.
        """
        if self.places is None:
            return [(rows, None)] if len(rows) else []
        places = np.minimum(self.places.of(columns, rows), most)
        return [(rows[places == n], int(n)) for n in np.unique(places)]
