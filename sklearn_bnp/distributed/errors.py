"""Errors of data in chunks."""

from __future__ import annotations


class ChunkError(RuntimeError):
    """A chunk of the data could not be loaded, or was lost; the message has its name and the remedy."""


class StalledError(RuntimeError):
    """The cluster does not get on with the work: a worker is silent, or there are none, or no task ends."""
