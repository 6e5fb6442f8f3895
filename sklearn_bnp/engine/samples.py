"""Samples of rows for proposals: rows of one component, and rows drawn from all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..inputs.rows import equal_rows
from ..likelihood.seeding import summaries

# A row is a cluster by itself if it occurs, or weighs, so many times as much as other rows do. Others are
# those that are left when so many of the most frequent rows, or of the heaviest, are set aside.
_CLUSTER, _MOST_REPEATED, _MOST_HEAVY = 20.0, 9, 2
# The unit of weights is found in other ways if there are fewer different rows than these. Steps of bisection
# in which it is found. How many times as many equal rows there may be as are expected.
_SMALL_TABLE, _TABLE, _HALVINGS, _MORE = 20, 100, 40, 10.0


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


def least_weight(weight):
    """The smallest weight, but 1 at the most; 1 if ``weight`` is None."""
    return 1.0 if weight is None else min(1.0, float(weight.min()))


def rows_owned(n, resp, weight, mass=1.0):
    """Masses ``n`` (J,), as they would be if weights below 1 were 1; see `Sample.rows_owned`."""
    if weight is None or weight.min() >= 1.0:
        return n
    return (mass * np.maximum(weight, 1.0)) @ resp


def copies(z):
    """Which of the rows ``z`` (n, D) are copies, as `equal_rows` returns them.

    A row with gaps that shows half of its entries or more, and agrees in all of these with one of the most
    frequent complete rows, is a copy of that row, too.
    """
    first, number = equal_rows(z)
    missing = np.isnan(z) if isinstance(z, np.ndarray) else None
    if missing is None or not missing.any():
        return first, number
    times = np.bincount(number)
    times[missing[first].any(axis=1)] = 0
    n_missing = missing.sum(axis=1)
    left = np.flatnonzero((n_missing > 0) & (2 * n_missing <= z.shape[1]))
    for group in np.argsort(-times, kind="stable")[: _MOST_REPEATED + 1]:
        if times[group] < 2:
            break
        agree = (missing[left] | (z[left] == z[first[group]])).all(axis=1)
        number[left[agree]] = group
        left = left[~agree]
    kept, number = np.unique(number, return_inverse=True)
    return first[kept], number.reshape(-1)


def without_copies(first, number, weight, n_heavy=_MOST_HEAVY):
    """Weights (n,) with which rows count if equal ones count as one; None if no row counts more than once.

    ``first`` and ``number`` are as `copies` or `equal_rows` return them. The first of several equal rows
    counts as all of them together, but once at the most, and the others count 0. A row that is there very
    often is a cluster. All its copies count, divided by how often other rows are there. So does a row that
    weighs much more than all but ``n_heavy`` others; its weight is divided by what these weigh.
    """
    if len(weight) == 0:
        return None
    times = np.bincount(number, weight)
    if times.max() <= 1.0:
        return None
    counts = np.zeros(len(weight))
    counts[first] = np.minimum(times, 1.0)
    often, is_repeated = _clusters(np.bincount(number), _MOST_REPEATED)
    counts = np.where(is_repeated[number], np.minimum(weight, 1.0) / often, counts)
    typical, is_heavy = _clusters(times, n_heavy)
    return np.where(is_heavy[number], weight / typical, counts)


def frequencies(weight, expected, number, may_be_table=True):
    """Weights (n,) of rows, or of runs, cut to what their frequencies can be.

    ``expected`` (n,) says how many rows equal to each can be expected, in units of the weights, and
    ``number`` (n,) tells which rows are equal. Weights may be in another unit, such as thousands of people.
    It is found first, and they are divided by it. Then a row keeps a weight of up to 1, or of up to ten times
    what is expected if that is more. Rows that weigh much more than others are clusters,
    and are not cut. ``may_be_table`` tells whether few different rows may be the cells of a table, all of
    which occur often.
    """
    _, first, equal = np.unique(number, return_index=True, return_counts=True)
    unit = _unit_of_frequencies(np.bincount(number, weight), expected[first], may_be_table)
    own = weight / unit
    most = np.maximum(_MORE * expected / (unit * equal[number]), 1.0)
    _, is_heavy = _clusters(own, _MOST_REPEATED)
    return np.where(is_heavy, own, np.minimum(own, most))


def _unit_of_frequencies(sums, expected, may_be_table):
    """The unit, 1 or more, in which the weights of m different rows, ``sums`` (m,), are their frequencies.

    Frequencies are taken for Poisson variables with the means ``expected / unit`` (m,). Only rows that occur
    are seen, and the mean of such a variable over what is not zero is ``x / (1 - exp(-x))``, if x is its
    mean. The unit is the one in which all weights together sum to that. In a table of fewer than 100 rows it
    is the median of weights over expectations instead: the sum would mostly show the errors of small
    expectations. In one of fewer than 20 rows, in which all frequencies may be great, it is 1. In a greater
    table the lightest row counts once at the most.
    """
    low = 1.0
    if may_be_table:
        if len(sums) < _SMALL_TABLE:
            return 1.0
        low = max(1.0, sums.min())
        if len(sums) < _TABLE:
            return max(low, float(np.median(sums / np.maximum(expected, 1.0))))
    total, high = sums.sum(), max(low, sums.mean())
    for _ in range(_HALVINGS):
        unit = np.sqrt(low * high)
        x = np.maximum(expected / unit, 1e-12)
        if np.sum(unit * x / -np.expm1(-x)) < total:
            low = unit
        else:
            high = unit
    return high


def _clusters(times, n_most):
    """How much a row counts at the most without the ``n_most`` greatest, and which (m,) count much more."""
    typical = max(1.0, np.sort(times)[-1 - min(n_most, len(times) // 2)])
    return typical, (times >= _CLUSTER * typical) & (n_most > 0)


def times_raised(n_rows, total, n):
    """Factor for small weights of sampled rows of a component of mass ``n``; see `Sample.standing_for`."""
    return min(n, n_rows) / total if total < n_rows else 1.0
