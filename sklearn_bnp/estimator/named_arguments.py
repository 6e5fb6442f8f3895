"""Arguments that have to be named, such as ``lengths`` and ``groups``, if they are given by position."""

from __future__ import annotations

from functools import cache, wraps
from inspect import Parameter, signature


def by_name(method):
    """Decorator of methods: an argument that has to be named, but is not, gets an error with the remedy."""

    @wraps(method)
    def called(self, *args, **given):
        require_names(method, self, args)
        return method(self, *args, **given)

    return called


def require_names(method, estimator, args):
    """Raise TypeError if ``args`` of a method are more than it takes by position, but could be named."""
    positional, named = _arguments(method)
    if len(args) <= len(positional) or not named:
        return
    call = f"{method.__name__}({positional[0]}, {named[0]}=...)"
    raise TypeError(
        f"{type(estimator).__name__}.{method.__name__} takes {_listed(positional)} by position, but was also "
        f"given {args[len(positional)]!r:.60}. Give {_listed(named)} by name, as in {call}."
    )


@cache
def _arguments(method):
    """Names of the arguments of a method, without ``self``: by position, and by name alone."""
    _, *parameters = signature(method).parameters.values()
    named = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    return [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD], named


def _listed(names):
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
