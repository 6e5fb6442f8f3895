"""Samples of rows for proposals: rows of one component, and rows drawn from all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..inputs.rows import equal_rows
from ..likelihood.seeding import summaries
from .row_frequencies import copies, frequencies, rows_owned, times_raised, without_copies


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

    def rows_owned(self, n: np.ndarray, resp: np.ndarray) -> np.ndarray:
        """How many rows each of several new components owns.

        A row of weight 3 is three rows, but a row of a small weight is still one row. Otherwise a component
        would seem to own such a row when it has a hundredth of another one.

        Parameters
        ----------
        n : ndarray, shape (J,)
            Masses of the components in the sample.
        resp : ndarray, shape (n, J)
            How they share out each row of the sample.

        Returns
        -------
        rows : ndarray, shape (J,)
            What the masses would be if weights below 1 were 1.
        """
        return rows_owned(n, resp, self.weight, self.mass)

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

    def without_copies(self) -> Sample:
        """The sample in which equal rows count as one, for rows of continuous columns.

        Five equal rows, or one of weight 5, have the same noise five times. A component of these rows alone
        has a high density, but is no cluster. A row that occurs, or weighs, twenty times as much as all but
        a few others is one, such as the value of a device that stood still.

        Returns
        -------
        sample : Sample
            This sample if no row counts more than once.
        """
        weight = np.ones(len(self.mass)) if self.weight is None else self.weight
        first, number = copies(self.z)
        counts = without_copies(first, number, weight)
        if counts is None:
            return self
        some = np.flatnonzero(counts)
        return self._replace(weight=counts).rows(some)

    @property
    def row_mass(self) -> np.ndarray:
        """Responsibilities (n,), times weights if there are any.

        Returns
        -------
        mass : ndarray, shape (n,)
            Their sum is `total`.
        """
        return self.mass if self.weight is None else self.weight * self.mass

    def with_frequencies(self, log_probability: np.ndarray) -> Sample:
        """The sample in which weights are cut to what frequencies of rows can be, for rows that have weights.

        A weight of 12 may say that twelve equal rows were seen. If the row is so improbable that two equal
        ones can hardly be expected, the weight says something else, such as how much the row matters. The
        row then counts once. A row that weighs much more than others is a cluster, and is not cut.

        Parameters
        ----------
        log_probability : ndarray, shape (n,)
            Log probabilities of the rows under the component.

        Returns
        -------
        sample : Sample
            The same rows, with weights that are no greater.
        """
        expected = self.total * np.exp(np.minimum(log_probability, 0.0))
        _, number = equal_rows(self.z)
        return self._replace(weight=frequencies(self.weight, expected, number))

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


def to_search(sample, likelihood, prior):
    """The sample of a component, or of a state, as proposals search it for new ones.

    Copies of continuous rows count once. Weights of other rows count as far as they can be frequencies.
    """
    if isinstance(sample.z, np.ndarray) and not likelihood.copies_tell:
        return sample.without_copies()
    if sample.weight is None or sample.weight.max() <= 1.0:
        return sample
    s = summaries(likelihood, sample.z, sample.row_mass[:, np.newaxis])[0]
    return sample.with_frequencies(likelihood.log_probability(prior, s, sample.z))
