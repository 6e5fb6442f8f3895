"""Ways to spoil the saved state of an estimator.

Run as a script, ``python -m tests.corruptions NAME N SEED FIRST``, it spoils N times a pickle of the model of
this name, byte by byte, loads it but for the first ones, and prints what came of each: a process of its own,
for what cannot be raised.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

from sklearn_bnp.estimator.object_graph import Graph
from sklearn_bnp.estimator.saved_state import SavedState, _checksum

# Opcode of pickles for a bytearray. If it is too long for the memory, `pickle.loads` may crash: CPython
# then frees an object that it has not filled in ("deallocated bytearray object has exported buffers").
_BYTEARRAY = 0x96
# What a process says when a state has come to `SavedState.__setstate__`.
_ENTERED = "entered"


def signed(estimator, state):
    """The state with a checksum that fits: as if it had been spoiled before it was saved."""
    graph = Graph(*(state[name] for name in Graph._fields))
    return {**state, "checksum": _checksum(estimator, state["version"], graph)}


def spoiled_arrays(array):
    """Names of ways to spoil an array, and what comes of it."""
    if array.ndim and len(array):
        yield "without its last row", array[:-1].copy()
        yield "with a row twice", np.concatenate([array, array[-1:]])
        yield "with another axis", array[np.newaxis].copy()
    if array.dtype.kind == "f":
        yield "of whole numbers", array.astype(np.int64, casting="unsafe")
        if array.size:
            yield "with NaN", _with_first(array, np.nan)
    if array.dtype.kind in "iu":
        yield "of numbers with fractions", array + 0.5
        if array.size:
            yield "with a large number", _with_first(array, np.iinfo(array.dtype).max // 2)
            yield "with a negative number", _with_first(array, -7)


def _with_first(array, value):
    out = array.copy()
    out.reshape(-1)[0] = value
    return out


def with_spoiled_arrays(state):
    """Names and states in which one array is spoiled."""
    arrays = state["arrays"]
    for i, array in enumerate(arrays):
        with np.errstate(invalid="ignore"):
            for name, spoiled in spoiled_arrays(array):
                yield (i, name), {**state, "arrays": [*arrays[:i], spoiled, *arrays[i + 1 :]]}


def with_swapped_arrays(state):
    """Names and states in which two arrays of different form have changed places."""
    arrays = state["arrays"]
    for i, (one, other) in enumerate(pairwise(arrays)):
        if one.shape != other.shape or one.dtype != other.dtype:
            yield (
                (i, "changed places"),
                {**state, "arrays": [*arrays[:i], other, one, *arrays[i + 2 :]]},
            )


def with_spoiled_nodes(state):
    """Names and states in which an object lacks an attribute, or refers to what it should not."""
    root, nodes = json.loads(state["text"])
    for i, node in enumerate(nodes):
        for name, spoiled in _spoiled_nodes(node, len(nodes)):
            if spoiled == node:
                continue
            others = [*nodes[:i], spoiled, *nodes[i + 1 :]]
            yield (i, name), {**state, "text": json.dumps([root, others], separators=(",", ":"))}


def _spoiled_nodes(node, n_nodes):
    kind, *content = node
    if kind == "new":
        args, own = content
        for k in range(0, len(own), 2):
            yield f"without {own[k]}", [kind, args, own[:k] + own[k + 2 :]]
            if type(own[k + 1]) is list:
                yield (
                    f"another {own[k]}",
                    [kind, args, [*own[: k + 1], [n_nodes // 2], *own[k + 2 :]]],
                )
        if len(args) > 1:
            yield "with one part less", [kind, args[:-1], own]
            yield "with parts in another order", [kind, [args[0], *args[:0:-1]], own]
    elif kind in ("array", "other", "scalar"):
        yield "beyond the list", [kind, 10_000]
    elif content and kind != "owner":
        yield "without its last entry", node[:-1]
        yield "that is not there", [*node[:-1], [n_nodes + 7]]


def outcomes(name, n, seed):
    """Count what came of spoiled pickles of a model, in processes of their own.

    A process that dies before our own code has been entered was killed by the unpickler, and another one
    goes on with the next pickle. One wrong byte is enough for that, since NumPy believes what it reads:
    ``np.dtype("m8").__setstate__((3, "<", None, None, None, -1, -1, 0))`` ends in a segmentation fault.
    Whoever uses pickle has to live with it. Once our own code is entered nothing may die.
    """
    found = []
    while len(found) < n:
        command = [
            sys.executable,
            "-m",
            "tests.corruptions",
            name,
            str(n),
            str(seed),
            str(len(found)),
        ]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        lines = done.stdout.split("\n")[:-1]
        found += [line for line in lines if line != _ENTERED]
        if done.returncode != 0:
            assert done.returncode < 0 or sys.platform == "win32", done.stderr  # it was not killed
            assert lines[-1:] != [_ENTERED], (
                f"our own code died of pickle {len(found)}: {done.stderr}"
            )
            found.append("died in the unpickler")
    return Counter(found)


def spoiled_bytes(data, n, seed):
    """Some bytes of a pickle changed, and sometimes its end cut off; n times."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        spoiled = np.frombuffer(data, np.uint8).copy()
        where = rng.integers(len(spoiled), size=rng.integers(1, 5))
        spoiled[where] ^= rng.integers(1, 256, size=len(where)).astype(np.uint8)
        if _BYTEARRAY in spoiled[where]:
            yield None
        elif rng.random() < 0.05:
            yield spoiled[: rng.integers(len(spoiled))].tobytes()
        else:
            yield spoiled.tobytes()


def outcome(name, whole, spoiled):
    """Load a spoiled pickle of a model, and say whether it was refused, as good as new, or went on silently.

    Pickles of which the end is cut off, or of which other bytes make another object, may give something
    that is no model, or one without any attributes: such things can do nothing.
    """
    from .saved_models import MODELS, saved_model

    if spoiled is None:
        return "left out"
    try:
        loaded = pickle.loads(spoiled)
    except Exception:
        return "refused"
    model = saved_model(name)
    if type(loaded) is type(model) and loaded.__getstate__()["checksum"] == whole:
        return "as good as new"
    try:
        MODELS[name].results(loaded)
    except Exception:
        return "no model"
    return "silent"


def _say(line):
    """Print a line that is there even if the process dies right afterwards."""
    print(line, flush=True)


def _entered(self, state, *, _real=SavedState.__setstate__):
    _say(_ENTERED)
    return _real(self, state)


def main(name, n, seed, first):
    """Say what came of each spoiled pickle of the model of this name, from number ``first`` on."""
    from .saved_models import saved_model

    model = saved_model(name)
    data, whole = pickle.dumps(model), model.__getstate__()["checksum"]
    SavedState.__setstate__ = _entered
    for i, spoiled in enumerate(spoiled_bytes(data, n, seed)):
        if i >= first:
            _say(outcome(name, whole, spoiled))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try:
        from resource import RLIMIT_AS, setrlimit
    except ImportError:  # there is none on Windows
        pass
    else:
        setrlimit(RLIMIT_AS, (2**33, 2**33))  # lengths are spoiled too
    main(sys.argv[1], *map(int, sys.argv[2:5]))
