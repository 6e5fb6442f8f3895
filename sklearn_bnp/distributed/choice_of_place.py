"""Where chunks are worked on: this process, or the workers of the client that is current."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from .this_process import Here, evenly


@contextmanager
def place_of(chunks, n_batches, leaves=False):
    """The place where chunks are worked on; what it holds for them is gone afterwards.

    Parameters
    ----------
    chunks : list of Chunk
    n_batches : int or None
        Batches that the chunks make, of nearly equal numbers of chunks; one if None.
    leaves : bool
        Whether what only the next visit to a chunk needs stays beside it.
    """
    edges = evenly(len(chunks), n_batches or 1)
    if "distributed" not in sys.modules:
        yield Here(chunks, edges, leaves)
        return
    from .cluster import OnClient
    from .waiting import current_client

    with current_client() as client:
        if client is None:
            yield Here(chunks, edges, leaves)
            return
        place = OnClient(client, chunks, edges, leaves)
        try:
            yield place
        finally:
            place.close()
