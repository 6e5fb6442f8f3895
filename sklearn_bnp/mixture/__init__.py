"""Dirichlet process mixtures, and `create`, which finds successors of a component on a sample of its rows."""

from ..splits import create

__all__ = ["create"]
