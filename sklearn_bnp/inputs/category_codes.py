"""Codes of categories that the columns of data hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .moments import blocks

# Largest code that is found in the data. A column with larger ones hardly holds categories.
LARGEST_CODE = 2**16


class CodesOfColumns(NamedTuple):
    """The codes that each column holds in a part of the data, rows of weight 0 left out.

    Attributes
    ----------
    of_columns : ndarray of object, shape (D,)
        For each column an ndarray of int, the codes in ascending order. Values that are no codes, such as
        missing and negative ones, are left out.
    """

    of_columns: np.ndarray

    @classmethod
    def of(cls, batch):
        """Codes in the rows of a `Batch`."""
        found = cls._from([np.zeros(0, dtype=np.intp)] * batch.x.shape[1])
        for rows, weight in blocks([batch]):
            rows = rows if weight is None else rows[weight > 0]
            found = found.added(cls._from([_codes(column) for column in rows.T]))
        return found

    @classmethod
    def _from(cls, arrays):
        out = np.empty(len(arrays), dtype=object)
        for d, codes in enumerate(arrays):
            out[d] = codes
        return cls(out)

    def added(self, other):
        """Codes in either part."""
        pairs = zip(self.of_columns, other.of_columns, strict=True)
        return self._from([np.union1d(*pair) for pair in pairs])


def _codes(column):
    """Different codes among the values of a column, in ascending order."""
    values = column.astype(float)
    values = values[(values >= 0) & (values <= LARGEST_CODE)]
    codes = values.astype(np.intp)
    return np.flatnonzero(np.bincount(codes[codes == values]))
