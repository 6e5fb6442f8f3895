"""Proposals that change the number of components: one file a kind, one line here."""

from .base import Context, Proposal
from .birth import Birth
from .delete import Delete
from .merge import Merge

PROPOSALS = {"birth": Birth, "delete": Delete, "merge": Merge}

__all__ = ["PROPOSALS", "Birth", "Context", "Delete", "Merge", "Proposal"]
