"""Parameters that a saved object lacks, since it was saved before they existed."""

from __future__ import annotations

from inspect import Parameter, signature


def set_missing_parameters(component):
    """Give an object with parameters the default of each that it lacks."""
    there = {*vars(component), *dir(type(component))}
    for name, parameter in signature(type(component).__init__).parameters.items():
        if name != "self" and name not in there and parameter.default is not Parameter.empty:
            setattr(component, name, parameter.default)
