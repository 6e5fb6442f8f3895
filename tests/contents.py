"""What objects hold, in a form that is equal if and only if all numbers in them are, bit for bit."""

import numpy as np


def contents(value, seen=()):
    """Nested tuples of all that is reachable from ``value``, whichever objects share it.

    An object that holds itself is named by how far above it stands.
    """
    if id(value) in seen:
        return ("above", len(seen) - seen.index(id(value)))
    seen = (*seen, id(value))
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return (kind, value.shape, contents(value.tolist(), seen))
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.random.RandomState):
        return contents(value.get_state(legacy=False), seen)
    if isinstance(value, dict):
        items = [(contents(k, seen), contents(v, seen)) for k, v in value.items()]
        return (kind, tuple(sorted(items, key=repr)))
    if isinstance(value, (set, frozenset)):
        return (kind, tuple(sorted((contents(item, seen) for item in value), key=repr)))
    if isinstance(value, (list, tuple)):
        return (kind, tuple(contents(item, seen) for item in value))
    if isinstance(value, float):
        return (kind, value.hex())
    if hasattr(value, "__getstate__") and not isinstance(value, type) and not callable(value):
        return (kind, contents(value.__getstate__(), seen))
    if hasattr(value, "__self__"):
        return (kind, value.__name__, contents(value.__self__, seen))
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return (kind, contents(vars(value), seen))
    return (kind, repr(value))
