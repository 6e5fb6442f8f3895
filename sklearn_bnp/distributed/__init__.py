"""Data in chunks that lie elsewhere: in dask collections, on the workers of a cluster, or behind loaders.

Design note
-----------
(a) The data say where work is done. No estimator has a parameter for it: `recognition` tells dask collections
    and lists of references from ordinary data before anything looks at their rows.
(b) A chunk is known to the driver by its position alone. Its rows are checked, and read, where they lie.
    What the driver learns of them is a map over chunks and a sum: their numbers (`ChunkInfo`), the moments
    of columns, a few rows to start from, and in each lap the results of local steps.
(c) All chunks are one composite batch, unless the user wants several. Results are added over a binary tree
    over the positions of chunks. A worker adds up what it has as far as siblings have met, and others go on
    with what is left, so that no bit depends on which chunks lie together: not on the number of workers, and
    not on which of them did what, or did it twice.
(d) `this_process.Here` works on the chunks in this process, one after the other; `cluster.OnClient` on the
    workers of a `distributed.Client`. Nothing else in the package imports dask, and these modules only when
    they are given something of dask's.

What is where
-------------
- `recognition` of such data, `chunks` of them, and their `source` of batches for the engine; `errors`.
- `choice_of_place`: `this_process`, or a `cluster` with `waiting` for its tasks.
- Tasks on workers: `worker_tasks`, the `order_of_tasks`, values on the `wire`, and what is `left_on_workers`.
"""

from .errors import ChunkError, StalledError

__all__ = ["ChunkError", "StalledError"]
