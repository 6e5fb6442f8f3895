"""Proposals that change the number of components: one file a kind, one line here."""

from functools import partial

from ..engine.merge import Merge
from ..engine.proposal import Context, Proposal
from ..hmm.birth import StateBirth
from ..hmm.delete import StateDelete
from ..hmm.merge import StateMerge
from ..mixture.birth import Birth
from ..mixture.delete import Delete
from ..topics.birth import TopicBirth
from ..topics.delete import TopicDelete

PROPOSALS = {"birth": Birth, "delete": Delete, "merge": Merge}
TOPIC_PROPOSALS = {
    "birth": TopicBirth,
    "delete": TopicDelete,
    "merge": partial(Merge, max_members=2),  # of more, the documents are not known together
}
STATE_PROPOSALS = {"birth": StateBirth, "delete": StateDelete, "merge": StateMerge}
REGISTRIES = (PROPOSALS, TOPIC_PROPOSALS, STATE_PROPOSALS)


def classes(registry):
    """The classes that a registry names, whatever settings it has for them."""
    return tuple(getattr(maker, "func", maker) for maker in registry.values())


__all__ = [
    "PROPOSALS",
    "REGISTRIES",
    "STATE_PROPOSALS",
    "TOPIC_PROPOSALS",
    "Birth",
    "Context",
    "Delete",
    "Merge",
    "Proposal",
    "StateBirth",
    "StateDelete",
    "StateMerge",
    "TopicBirth",
    "TopicDelete",
    "classes",
]
