"""Proposals that change the number of components: one file a kind, one line here."""

from functools import partial

from .base import Context, Proposal
from .birth import Birth
from .delete import Delete
from .merge import Merge
from .topic_birth import TopicBirth
from .topic_delete import TopicDelete

PROPOSALS = {"birth": Birth, "delete": Delete, "merge": Merge}
TOPIC_PROPOSALS = {
    "birth": TopicBirth,
    "delete": TopicDelete,
    "merge": partial(Merge, max_members=2),  # of more, the documents are not known together
}

__all__ = [
    "PROPOSALS",
    "TOPIC_PROPOSALS",
    "Birth",
    "Context",
    "Delete",
    "Merge",
    "Proposal",
    "TopicBirth",
    "TopicDelete",
]
