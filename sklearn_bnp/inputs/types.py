"""Names of types for annotations: what users may pass, and what they get."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

# Scipy has no common base of its sparse arrays and matrices that old releases know.
Sparse: TypeAlias = sparse.csr_matrix | sparse.csr_array | sparse.csc_matrix | sparse.csc_array
# Rows: arrays, frames and dask collections, which turn into arrays; lists of chunks, or of sequences.
Data: TypeAlias = ArrayLike | Sparse | Sequence[Any]
RandomState: TypeAlias = int | np.random.RandomState | None
Path: TypeAlias = str | os.PathLike[str]
Floats: TypeAlias = NDArray[np.floating[Any]]
Integers: TypeAlias = NDArray[np.integer[Any]]
# Of several sequences in a list, one array each; else one array for all.
OfSequences: TypeAlias = Floats | list[Floats]
Keywords: TypeAlias = Mapping[str, Any]
