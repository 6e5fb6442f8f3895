"""What proposals see of the data: rows of a component, of all, of documents, runs of sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """Rows on which a component has some responsibility.

    Attributes
    ----------
    z : ndarray, shape (n, D')
    mass : ndarray, shape (n,)
        The component's responsibility for each row.
    weight : ndarray, shape (n,), or None
        Sample weights, divided by how often rows of that weight were drawn beside the rarest.
    """

    z: np.ndarray
    mass: np.ndarray
    weight: np.ndarray | None

    @property
    def total(self):
        """Effective number of rows."""
        return float(self.mass.sum() if self.weight is None else self.mass @ self.weight)

    @property
    def one_row(self):
        """The least mass of a component that owns a row: the smallest weight, at most 1."""
        return least_weight(self.weight)

    def standing_for(self, n):
        """The sample with weights raised where they are small, so that it counts as many as its rows.

        Some of many rows of small weights tell as much of a component of mass ``n`` as ever so many
        rows do, but never more than all of them together.
        """
        times = times_raised(self.mass.sum(), self.total, n)
        return self if times <= 1.0 else self._replace(weight=times * self.weight)


class UniformSample(NamedTuple):
    """Rows drawn from all, with what every component has of them.

    Attributes
    ----------
    z : ndarray, shape (m, D')
        Prepared rows; none if rows are parts of documents or sequences.
    resp : ndarray, shape (m, K)
    weight : ndarray, shape (m,), or None
        How often each row counts; once if None.
    """

    z: np.ndarray
    resp: np.ndarray
    weight: np.ndarray | None = None

    @classmethod
    def empty(cls, n_components=0):
        """No rows."""
        return cls(np.empty((0, 0)), np.empty((0, n_components)))

    def listed(self, uids, wanted):
        """The sample with responsibilities of the components ``wanted``, zero for those not in ``uids``.

        ``uids`` are those that columns stand for now.
        """
        where = {uid: k for k, uid in enumerate(uids.tolist())}
        out = np.zeros((len(self.resp), len(wanted)), dtype=self.resp.dtype)
        for k, uid in enumerate(wanted.tolist()):
            if len(self.resp) and uid in where:
                out[:, k] = self.resp[:, where[uid]]
        return self._replace(resp=out)

    @property
    def total(self):
        """Mass: what sums over these rows are multiplied with N over this for all rows."""
        return float(len(self.resp) if self.weight is None else self.weight.sum())


def least_weight(weight):
    return 1.0 if weight is None else min(1.0, float(weight.min()))


def times_raised(n_rows, total, n):
    """By how much to raise weights, of some rows of a component of mass ``n``, for these to count as rows."""
    return min(n, n_rows) / total if total < n_rows else 1.0
