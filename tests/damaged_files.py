"""Ways to damage a file of a saved model, and files that were written to do harm.

Run as a script, ``python -m tests.damaged_files NAME N SEED``, it damages N times the file of the model of
this name, loads what is left, and prints what came of it: a process of its own, with a limit of memory, for
what cannot be raised.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import sklearn_bnp
from sklearn_bnp.estimator.archive import read_archive, write_archive
from sklearn_bnp.estimator.object_graph import Graph, graph_of
from sklearn_bnp.estimator.publishing import complete
from sklearn_bnp.estimator.safe_graph import KnownNames, others_of
from sklearn_bnp.estimator.saved_state import _checksum, _estimator_class

# In the place of any value: of all types, and some that are too large, too many or not there.
WRONG = [
    None, True, -1, 10**30, 0.5, float("nan"), "", "__class__", "a" * 1000, [], [0], [1], [-1],
    [10**9], [1, 2], ["owner"], [[1]], {}, {"a": 1},
]  # fmt: skip
# Bytes that a process may take which loads a small file, and seconds.
MEMORY, SECONDS = 2**33, 20.0


def signed(archive):
    """The archive with a checksum that fits: whoever can change a file can do so, too."""
    known, header = KnownNames(), archive.header
    try:
        cls = _estimator_class(header["estimator"], known)
        graph = Graph(archive.text, archive.arrays, others_of(header["others"], known))
        checksum = _checksum(cls.__new__(cls), header["version"], graph)
    except Exception:  # of a header that is none, there is nothing to sign
        return archive
    return archive._replace(header={**header, "checksum": checksum})


def content(model):
    """Everything that a model holds, and what in it is shared."""
    complete(model, labels=True)
    graph = graph_of(vars(model), model)
    return graph.text, [array.tobytes() for array in graph.arrays]


def flipped(data, rng):
    """Bytes of which a few, side by side or anywhere, are others, or are missing, or are there twice."""
    out = np.frombuffer(data, np.uint8).copy()
    start, n = rng.integers(len(out)), rng.integers(1, 9)
    how = rng.integers(5)
    if how == 0:
        out[start : start + n] ^= rng.integers(1, 256, size=len(out[start : start + n])).astype(
            "u1"
        )
    elif how == 1:
        out[rng.integers(len(out), size=n)] ^= np.uint8(1 << rng.integers(8))
    elif how == 2:
        out = out[:start]
    elif how == 3:
        out = np.delete(out, slice(start, start + n))
    else:
        out = np.insert(out, start, out[:n])
    return out.tobytes()


def rewritten(archive, rng):
    """An archive with one value of its JSON, or one array, in place of which there is another one; signed."""
    root, nodes = json.loads(archive.text)
    how = rng.integers(4)
    if how == 0:
        header = dict(archive.header)
        header[rng.choice(list(header))] = WRONG[rng.integers(len(WRONG))]
        archive = archive._replace(header=header)
    elif how == 1 and archive.arrays:
        arrays = list(archive.arrays)
        i, array = rng.integers(len(arrays)), None
        array = arrays[i]
        ways = [
            lambda: np.zeros((0, *array.shape[1:]), array.dtype), lambda: array.astype(np.float32),
            lambda: np.array(["a"]), lambda: array[np.newaxis], lambda: np.zeros(7),
            lambda: np.full(array.shape, 1e300), lambda: -array if array.dtype.kind != "b" else ~array,
            lambda: np.concatenate([array.ravel()] * 3), lambda: np.array(2**40),
        ]  # fmt: skip
        arrays[i] = np.asarray(ways[rng.integers(len(ways))]())
        archive = archive._replace(arrays=arrays)
    else:
        node = nodes[rng.integers(len(nodes))]
        where = [(node, k) for k in range(len(node))]
        for part in node:
            if isinstance(part, list):
                where += [(part, k) for k in range(len(part))]
        if where:
            part, k = where[rng.integers(len(where))]
            value = WRONG[rng.integers(len(WRONG))] if how == 2 else [int(rng.integers(len(nodes)))]
            part[k] = value
        archive = archive._replace(text=json.dumps([root, nodes], separators=(",", ":")))
    return signed(archive)


def outcomes(name, n, seed, damage):
    """How often files that ``damage(path, rng)`` has damaged were refused, and how often not."""
    from .saved_models import MODELS, saved_model

    model, counts = saved_model(name), Counter()
    whole, rng = content(model), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.bnp")
        for _ in range(n):
            model.save(path)
            damage(path, rng)
            start = time.perf_counter()
            try:
                loaded = sklearn_bnp.load(path)
            except ValueError:
                counts["refused"] += 1
            else:
                same = type(loaded) is type(model) and content(loaded) == whole
                counts["as good as new" if same else "another model"] += 1
                if not same:
                    try:
                        MODELS[name].results(loaded)
                    except Exception:
                        counts["of no use"] += 1
            counts["slow"] += time.perf_counter() - start > SECONDS
    return counts


def flip(path, rng):
    """Damage a file byte by byte."""
    file = Path(path)
    file.write_bytes(flipped(file.read_bytes(), rng))


def rewrite(path, rng):
    """Damage the content of a file, and write it as if nothing had happened."""
    write_archive(path, rewritten(read_archive(path), rng))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try:
        from resource import RLIMIT_AS, setrlimit
    except ImportError:  # there is none on Windows
        pass
    else:
        setrlimit(RLIMIT_AS, (MEMORY, MEMORY))
    found = {
        damage.__name__: outcomes(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), damage)
        for damage in (flip, rewrite)
    }
    print(json.dumps(found))
