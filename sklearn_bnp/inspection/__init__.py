"""Displays: pictures of fitted models, drawn with matplotlib.

`components`, `convergence`, `states` and `topics` have a Display each. `columns` and `drawing` are what
they share.
"""

from .components import ComponentsDisplay
from .convergence import ConvergenceDisplay
from .states import StatesDisplay
from .topics import TopicsDisplay, pyldavis_data

__all__ = [
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "StatesDisplay",
    "TopicsDisplay",
    "pyldavis_data",
]
