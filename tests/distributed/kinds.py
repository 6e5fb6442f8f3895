"""Small data of all kinds, in chunks, for the tests of data that lie elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Saved(NamedTuple):
    """A batch reference: it names a file, and loads it where it is wanted."""

    batch_id: str
    path: str

    def load(self):
        with np.load(self.path) as parts:
            return dict(parts)


def saved(folder, chunks):
    """References to chunks, which are dicts of arguments of ``fit``, in files of a folder."""
    references = []
    for i, chunk in enumerate(chunks):
        reference = Saved(f"part {i}", str(folder / f"part{i}.npz"))
        np.savez(reference.path, **chunk)
        references.append(reference)
    return references
