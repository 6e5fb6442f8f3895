"""Samples of rows for proposals: rows of one component, and rows drawn from all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Sample(NamedTuple):
    """A sample of the rows for which a component has some responsibility.

    Parameters
    ----------
    z : ndarray or csr_array, shape (n, D')
        Prepared rows.
    mass : ndarray, shape (n,)
        The component's responsibility for each row.
    weight : ndarray, shape (n,), or None
        Sample weights, corrected for the rates at which rows of different weights were drawn. None if
        rows have no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import Sample
    >>> Sample(z=np.zeros((3, 2)), mass=np.array([1.0, 1.0, 0.5]), weight=None).total
    2.5
    """

    z: np.ndarray
    mass: np.ndarray
    weight: np.ndarray | None

    @property
    def total(self) -> float:
        """Sum of responsibilities, times weights if there are any.

        Returns
        -------
        total : float
            The mass of the component in the sample.
        """
        return float(self.mass.sum() if self.weight is None else self.mass @ self.weight)

    @property
    def one_row(self) -> float:
        """Least mass of a component that owns a row.

        Returns
        -------
        mass : float
            The smallest weight, but 1 at the most.
        """
        return least_weight(self.weight)

    def rows(self, some: Any) -> Sample:
        """Some rows of the sample.

        Parameters
        ----------
        some : ndarray of int
            Numbers of the rows.

        Returns
        -------
        sample : Sample
            These rows, with their responsibilities and weights as they are.
        """
        fields: Any = (None if field is None else field[some] for field in self)
        return Sample(*fields)

    def standing_for(self, n: float) -> Sample:
        """The sample with greater weights, if the weights are small.

        If each row has a small weight, a sample has little mass, though it tells as much about the component
        as a sample of rows of weight 1. Its weights are therefore raised until their sum is the number of
        rows, but not beyond the mass of the component.

        Parameters
        ----------
        n : float
            Mass of the component in the whole data.

        Returns
        -------
        sample : Sample
            This sample if its weights are not small.
        """
        times = times_raised(self.mass.sum(), self.total, n)
        return self if times <= 1.0 else self._replace(weight=times * self.weight)


class UniformSample(NamedTuple):
    """A sample of all rows, with the responsibilities of all components.

    Parameters
    ----------
    z : ndarray or csr_array, shape (m, D')
        Prepared rows. There are none if rows are parts of documents.
    resp : ndarray, shape (m, K)
        Responsibilities.
    weight : ndarray, shape (m,), or None, default=None
        How often each row counts. None if each row counts once.
    """

    z: np.ndarray
    resp: np.ndarray
    weight: np.ndarray | None = None

    @classmethod
    def empty(cls, n_components=0):
        """A sample without rows.

        Parameters
        ----------
        n_components : int, default=0
            Number of columns of ``resp``.

        Returns
        -------
        sample : UniformSample
            No rows.
        """
        return cls(np.empty((0, 0)), np.empty((0, n_components)))

    def listed(self, uids, wanted):
        """The sample with columns for other components.

        Parameters
        ----------
        uids : ndarray of int
            Components of the columns as they are.
        wanted : ndarray of int
            Components of the columns as they shall be. Those that are not in ``uids`` get zeros.

        Returns
        -------
        sample : UniformSample
            The same rows.
        """
        where = {uid: k for k, uid in enumerate(uids.tolist())}
        out = np.zeros((len(self.resp), len(wanted)), dtype=self.resp.dtype)
        for k, uid in enumerate(wanted.tolist()):
            if len(self.resp) and uid in where:
                out[:, k] = self.resp[:, where[uid]]
        return self._replace(resp=out)

    @property
    def total(self):
        """Mass of the sample.

        Returns
        -------
        total : float
            A sum over all rows is about N / total times the sum over the rows of the sample.
        """
        return float(len(self.resp) if self.weight is None else self.weight.sum())


def least_weight(weight):
    """The smallest weight, but 1 at the most; 1 if ``weight`` is None."""
    return 1.0 if weight is None else min(1.0, float(weight.min()))


def times_raised(n_rows, total, n):
    """Factor for small weights of sampled rows of a component of mass ``n``; see `Sample.standing_for`."""
    return min(n, n_rows) / total if total < n_rows else 1.0
