"""Restarts of topic models from their own topics, blended with what all of them share.

Design note
-----------
(a) Where documents are short, the first births find topics that are about right, and documents settle in them
    for good. Topics that would suit the corpus better differ in many documents at a time, so that no birth,
    merge or delete of a single topic leads there.
(b) A restart lets all topics give way at once to blends: each is a share of an old topic, and for the rest
    what all topics are together. Every document then starts anew, with all topics within reach, and topics
    grow apart again, as they do after a first birth. The lap is judged, prolonged and taken back as one
    with births is.
(c) The concentration of documents and the prior of words stay as they are until the topics have settled; see
    `HierarchicalModel.adopting`. Learned along with unsettled topics, the concentration of short texts may
    run towards zero: then each document has one topic, which the bound prefers to what it can say of
    several, and held-out words are predicted worse.
(d) It is a last resort, made when laps have come to rest. It is made again as long as the objective has risen
    since the last one.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.last_resort import TakesTurns
from ..engine.proposal import Context
from ..engine.trials import AdoptTrial
from .seeding import blended_with_all

# Nats that the objective has risen since the last restart, for which there is another.
_WORTH = 1.0


class TopicRestart(TakesTurns):
    """Start again from all topics at once, each blended with the mean of all.

    When nothing else is left to try, each topic is replaced by a blend of itself with all topics together,
    and all documents start anew. The lap is taken back unless the objective of the whole corpus is higher
    than before. This helps where documents are short.

    Parameters
    ----------
    blend : float, default=0.5
        Part of each new topic that comes from all topics together, above 0 and below 1.

    References
    ----------
    This proposal is this package's own.

    Examples
    --------
    >>> from sklearn_bnp import HDPTopicVB, TopicRestart
    >>> model = HDPTopicVB(proposals=("birth", "merge", "delete", TopicRestart(blend=0.8)))
    """

    kind = "restart"
    suits = ("topics",)
    _parameter_constraints = {"blend": [Interval(Real, 0, 1, closed="neither")]}

    def __init__(self, blend: float = 0.5) -> None:
        self.blend = blend

    def reset(self) -> None:
        """Forget that there was a restart."""
        self._validate_params()
        self._take()
        self._bound = -np.inf  # the objective before the last one

    @property
    def pending(self) -> bool:
        """Whether a restart is to be made."""
        return self._due

    def plan(self, context: Context) -> list[Any]:
        """A restart if one is due and nothing else is under way."""
        totals = context.totals
        if not self._due or context.partial:
            return []
        if not context.idle:
            self._miss()
            return []
        self._take()
        bound = context.model.elbo(totals)
        if len(totals.uids) < 2 or bound < self._bound + _WORTH:
            return []
        self._bound = bound
        first, *others = totals.uids.tolist()
        s = blended_with_all(totals.s, self.blend)
        return [
            AdoptTrial(
                self.kind, first, context.new_uids(len(s)), s, retires=True, others=tuple(others)
            )
        ]

    def new_data(self) -> None:
        """Forget the last restart: with more data, another may succeed."""
        self.reset()
