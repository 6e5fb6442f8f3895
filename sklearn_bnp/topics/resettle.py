"""New starts of all documents from the topics as they are, with more topics within reach of each.

Design note
-----------
(a) The concentration of documents is learned while topics are still blends of each other. A document then
    has few of them, a small concentration suits that, and under it documents stay with few topics. When
    topics have grown apart, no step leads back: a document gains topics only under a greater concentration,
    and that is not learned before documents have more topics.
(b) So all documents start anew, with the topics as they are and a concentration several times as large. It is
    learned on from pass to pass, and goes back slowly to what suits the documents. What they have gained by
    then is theirs. The lap is judged, prolonged and taken back as one with births is.
    So is the prior of topics: documents that mix more topics make these sharper, which suits a prior of less
    weight, and under that they mix more. Passes go on as long as thirty like the last one would suffice.
    Drawn corpora had ended .10 to .17 % below a start from the truth, and end above it or within .05 %.
(c) If a new start raises the objective, there is another one as soon as laps have come to rest. If it is
    refused, a smaller factor may still raise it. When all factors were refused, there is no other before some
    topic is born, or leaves. In a stream, topics change all the time, and new starts would take longer than
    all laps. There they are made when twice as many tokens have come.
(d) A concentration that is given stays as it is, and there are no such starts. Nor are there any if documents
    hold rows: most rows tell by themselves which topic is theirs.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..engine.last_resort import TakesTurns
from ..engine.proposal import Context
from .fewer_topics import PatientTrial, worth_of_all

# A stream has other new starts when so many times as many tokens have come.
_MORE = 2.0
_NAME = "doc_concentration"


class Resettle(TakesTurns):
    """Start all documents anew from the same topics, with more topics within reach of each.

    When nothing else is left to try, all documents start anew with a prior of their shares of topics whose
    sum, ``doc_topic_prior_``, is several times as large. From pass to pass it is learned again. The lap is
    taken back unless the objective of the whole corpus is higher than before. Documents that have settled in
    too few topics find the others in this way. Nothing is done if ``doc_topic_prior`` is given, or with
    ``groups``.

    Parameters
    ----------
    factors : tuple of float, default=(5.0, 2.5)
        By how much the sum is raised, each above 1. One factor is used as long as the objective rises. The
        next one is used when a lap was taken back.

    References
    ----------
    This proposal is this package's own.

    Examples
    --------
    >>> from sklearn_bnp import HDPTopicVB, Resettle
    >>> model = HDPTopicVB(proposals=("birth", "merge", "delete", Resettle(factors=(3.0,))))
    """

    kind = "resettle"
    suits = ("topics",)
    _parameter_constraints = {"factors": [tuple, list]}

    def __init__(self, factors: tuple[float, ...] = (5.0, 2.5)) -> None:
        self.factors = factors

    def reset(self) -> None:
        """Forget all new starts."""
        self._validate_params()
        if not all(isinstance(factor, Real) and 1.0 < factor < np.inf for factor in self.factors):
            raise ValueError(
                f"factors of {type(self).__name__} must be finite numbers above 1; got {self.factors!r}."
            )
        self._take()
        self._topics, self._n_refused, self._bound, self._seen = frozenset(), 0, -np.inf, 0.0

    @property
    def pending(self) -> bool:
        """Whether a new start is to be made."""
        return self._due

    def plan(self, context: Context) -> list[Any]:
        """A trial in which all documents start anew, if that is due and nothing else is under way."""
        if not self._has_turn(context):
            return []
        model, totals = context.model, context.totals
        learns = _NAME in model.learned and model.likelihood.words and model.released() is model
        if len(totals.uids) < 2 or not learns:
            return []
        bound, worth = model.elbo(totals), worth_of_all(totals)
        if not self._may_rise(totals, bound - worth):
            return []
        self._bound = bound
        first, *others = totals.uids.tolist()
        raised = self.factors[self._n_refused] * getattr(model.allocation, _NAME)
        return [
            PatientTrial(
                self.kind, first, context.new_uids(len(totals.s)), totals.s.copy(), retires=True,
                others=tuple(others), concentrations={_NAME: raised}, learns=True,
                adapts=True, least_gain=worth,
            )
        ]  # fmt: skip

    def _may_rise(self, totals, bound):
        """Whether some factor is left for these topics, and the last new start was worth another."""
        topics = frozenset(totals.uids.tolist())
        if self.n_seen is None:
            others = topics != self._topics
        else:
            others = self.n_seen >= _MORE * self._seen
        if others:
            self._topics, self._n_refused, self._bound = topics, 0, -np.inf
            self._seen = self.n_seen or 0.0
        return self._n_refused < len(self.factors) and bound >= self._bound

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Go on with the new topics, or with the next factor."""
        if accepted:
            self._topics = frozenset(trial.created)
            return
        self._n_refused, self._bound = self._n_refused + 1, -np.inf
        if self._n_refused < len(self.factors):
            self._has_another_turn()
