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
(e) Long documents of few words settle in too many topics; see `fewer_topics.py`. For these, fewer topics are
    tried first, once for each set of topics. Blends are tried when no fewer topics were found, or
    in the next turn.
(f) Where topics have frequent words in common, the first birth may join them too soon. What is left settles
    with documents that mix blends of topics, and no restart leads away from that. So once in a fit, when
    blends have nothing left to try, a search that learns all priors before it joins topics is made, as in a
    birth where one topic was found better than several. What it finds is tried only if it promises a higher
    objective under the priors that it has learned. 8 drawn topics ended 1,500 nats higher.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.last_resort import TakesTurns
from ..engine.proposal import Context
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial
from .common_topic import with_common_topic
from .documents import EVERYTHING
from .fewer_topics import PatientTrial, SettlingTrial, are_long, fewer_topics, worth_of_all
from .seeding import blended_with_all, sharpened
from .starts import other_topics

# Nats that the objective has risen since the last restart, for which there is another.
_WORTH = 1.0
# Where topics get a common one, the sum of the parameters of the documents' prior is raised to so much, or to
# so many times what it was. The next number is tried where the one before was refused.
_RAISED, _TIMES_RAISED = (10.0, 4.0), 2.5
# Power of the other topics' shares of words then.
_POWER = 2.0
# Other topics are looked for again in a stream when so many times as many tokens have come.
_MORE = 2.0
_NAME = "doc_concentration"


class TopicRestart(TakesTurns):
    """Start again from all topics at once, each blended with the mean of all.

    When nothing else is left to try, each topic is replaced by a blend of itself with all topics together,
    and all documents start anew. The lap is taken back unless the objective of the whole corpus is higher
    than before. This helps where documents are short.

    Afterwards, what all topics have in common becomes a topic of its own, if that is much and documents mix
    topics. Then other topics are looked for once in a fit, by a search that learns all priors before it joins
    topics. It helps where topics have frequent words in common. In a stream, this is done again when twice as
    many tokens have come. The priors of documents and of words have to be learned, as they are by default.

    Where documents have many tokens for each word of the corpus, fewer topics are tried before that. They are
    those that a search finds when each document has fewer tokens.

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

    # The topics for which fewer were last looked for. Whether documents hold rows and no words, and whether
    # the priors of documents and words are learned, which the first plan of a fit finds out. Models that were
    # saved without these take them from here.
    _reduced = frozenset()
    _has_rows = False
    _learns = False
    # Tokens that had come when other topics were last looked for; None if they were not.
    _searched = None
    # Whether blends have nothing left to try, and how often what all topics share was made a topic then.
    _exhausted, _n_parted = False, 0

    def __init__(self, blend: float = 0.5) -> None:
        self.blend = blend

    def reset(self) -> None:
        """Forget that there was a restart."""
        self._validate_params()
        self._take()
        self._bound = -np.inf  # the objective before the last restart from blends
        self._reduced, self._searched = frozenset(), None
        self._exhausted, self._n_parted = False, 0

    @property
    def pending(self) -> bool:
        """Whether a restart is to be made."""
        return self._due

    def wants(self, totals: StatBag) -> list[int]:
        """All documents if fewer or other topics are to be looked for."""
        looks = self._due and (self._may_reduce(totals) or self._may_search(totals))
        return [EVERYTHING] if looks else []

    def _may_reduce(self, totals):
        """Whether documents are long, of words, and fewer than these topics were not looked for yet."""
        untried = self._reduced != frozenset(totals.uids.tolist())
        return untried and not self._has_rows and len(totals.uids) > 2 and are_long(totals)

    def _may_search(self, totals):
        """Whether other topics are to be looked for."""
        return len(totals.uids) > 1 and self._exhausted and self._learns and self._is_old()

    def _is_old(self):
        """Whether other topics were not looked for yet, or half as many tokens had come then."""
        return self._searched is None or (self.n_seen or 0.0) >= _MORE * self._searched

    def plan(self, context: Context) -> list[Any]:
        """A restart if one is due and nothing else is under way."""
        likelihood, learned = context.model.likelihood, context.model.learned
        self._has_rows = not likelihood.words
        self._learns = likelihood.words and likelihood.adapts_late and _NAME in learned
        if not self._has_turn(context):
            return []
        if self._may_search(context.totals):
            trials = self._with_common(context)
            if trials:
                self._has_another_turn()
                return trials
            return self._with_others(context)
        trials = self._with_fewer(context) or self._with_blends(context)
        if not trials and len(context.totals.uids) > 1:
            self._exhaust()
        return trials

    def _exhaust(self):
        """Blends have nothing left to try: other topics have their turn."""
        self._exhausted = True
        if self._learns and self._is_old():
            self._has_another_turn()

    def _with_fewer(self, context):
        """A trial of fewer topics if documents are long and a search finds fewer."""
        totals, model, sample = context.totals, context.model, context.samples.get(EVERYTHING)
        if sample is None or not self._may_reduce(totals):
            return []
        self._reduced = frozenset(totals.uids.tolist())
        s, doc_prior = fewer_topics(model, totals, sample, context.rng, context.n_threads)
        if s is None:
            return []
        given = None if doc_prior is None else {_NAME: doc_prior}
        return [self._trial(SettlingTrial, context, s, given)]

    def _with_common(self, context):
        """A trial in which what all topics have in common is a topic of its own, if it is much."""
        if self._n_parted == len(_RAISED):
            return []
        totals, doc_prior = context.totals, getattr(context.model.allocation, _NAME)
        raised = max(_RAISED[self._n_parted], _TIMES_RAISED * doc_prior)
        self._n_parted += 1
        s = with_common_topic(totals.s, doc_prior)
        if s is None or len(s) > context.max_components:
            return []
        s = np.concatenate([sharpened(s[:-1], _POWER), s[-1:]])
        given = {_NAME: raised}
        how = {"adapts": True, "learns": True, "least_gain": worth_of_all(totals)}
        return [self._trial(PatientTrial, context, s, given, **how)]

    def _with_others(self, context):
        """A trial of other topics, if a search that learns all priors finds better ones."""
        totals, model, sample = context.totals, context.model, context.samples.get(EVERYTHING)
        self._searched = float(totals.n.sum() if self.n_seen is None else self.n_seen)
        if sample is None:
            return []
        worth = worth_of_all(totals)
        s, doc_prior = other_topics(model, totals, sample, worth, context.rng, context.n_threads)
        if s is None or len(s) > context.max_components:
            return []
        how = {"adapts": True, "learns": True, "least_gain": worth}
        return [self._trial(SettlingTrial, context, s, {_NAME: doc_prior}, **how)]

    def _with_blends(self, context):
        """A trial of all topics, blended, if the objective has risen since the last one."""
        totals, bound = context.totals, context.model.elbo(context.totals)
        if len(totals.uids) < 2 or bound < self._bound + _WORTH:
            return []
        self._bound = bound
        return [self._trial(AdoptTrial, context, blended_with_all(totals.s, self.blend))]

    def _trial(self, kind, context, s, given=None, **how):
        """A trial in which topics with statistics ``s`` take the place of all."""
        first, *others = context.totals.uids.tolist()
        return kind(
            self.kind, first, context.new_uids(len(s)), s, retires=True, others=tuple(others),
            concentrations=given, **how,
        )  # fmt: skip

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Other topics have their turn if blends were refused."""
        if not (accepted or isinstance(trial, SettlingTrial)):
            self._exhaust()
        if accepted and isinstance(trial, PatientTrial):
            self._n_parted = len(_RAISED)

    def new_data(self) -> None:
        """Forget the last restart: with more data, another may succeed."""
        searched = self._searched
        self.reset()
        self._searched = searched
