"""Births of topics: a topic gives way to several, and whole documents think again."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.failures import Failures
from ..engine.proposal import Context, Proposal
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial, Policy, UndoTrial
from .creation import LEAST_TOKENS
from .documents import EVERYTHING
from .fewer_topics import SettlingTrial
from .seeding import blended_with_all
from .starts import ALL_USE, create_first_topics, create_topics, create_topics_again

# Share of the corpus in each topic of the first birth. Words once assigned are slow to move, and sharp
# topics hold on to those that chance gave them: from broad ones fits reach higher objectives. It costs
# some nats in the lap of the verdict, of which only the first birth has plenty. Rows move at once, and blends
# of their clusters are as wide as all rows.
_FIRST_BREADTH = 0.1
# Rows from which on a topic of rows is split, as in births of mixtures, and least rows of a new one. A word
# says next to nothing of its topic, but in a few columns some rows are a cluster.
_MIN_ROWS, _LEAST_ROWS = 4.0, 2.0
# A new topic of words needs no more than this part of all tokens.
_LEAST_PART = 0.1
# Distance of the prior of topics of rows from an earlier one, after which births that failed may succeed.
_DRIFTED = 0.7
# The prior of a topic that was found better than several is worth so many times the first one, at least.
_MORE = 1.01


class TopicBirth(Proposal):
    """Replace topics by several, created by a topic model nested in each.

    A topic that is to be replaced is called a target. On real text it hardly ever raises the objective to
    share out the target's own tokens among the new topics: a new topic pays only once documents have moved
    tokens to it from other topics, too. So new topics take the place of all targets for one lap of ordinary
    local steps over all topics. At its end the new topics of a target stay, unless the objective of the
    whole data is higher if they are joined to one. If the objective is not higher than before the lap in any
    case, everything is as it was.

    Topics found in the first few documents of a stream may be blends of several true ones. To split one of
    them does not mend that. When the corpus has doubled since topics were last made of all of it, or all that
    is remembered has come since then, all topics are therefore replaced at once by topics created anew.

    Parameters
    ----------
    n_seeds : int, default=10
        How many topics a target is first broken into.
    n_first_seeds : int, default=150
        The same, while there is a single topic. For rows with ``groups`` it is 50 at the most.
    max_targets : int, default=10
        The greatest number of targets in a lap, the largest first.
    min_tokens : float, default=50
        Topics with fewer tokens are not split, unless documents have weights. For a single topic it is 20 at
        the most, and for rows with ``groups`` 4.

    References
    ----------
    Hughes (2016), Sec. 5.5.3.

    Examples
    --------
    >>> from sklearn_bnp import HDPTopicVB, TopicBirth
    >>> model = HDPTopicVB(proposals=(TopicBirth(max_targets=5), "merge", "delete"))
    """

    kind = "birth"
    suits = ("topics",)
    _parameter_constraints = {
        "n_seeds": [Interval(Integral, 2, None, closed="left")],
        "n_first_seeds": [Interval(Integral, 2, None, closed="left")],
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        "min_tokens": [Interval(Real, 0, None, closed="left")],
    }

    # The prior of topics of rows when failures were last forgotten, and whether it has moved far since.
    # Models that were saved without these take them from here.
    _since, _has_drifted = None, False
    # Topics of words that all documents use and that were targets, and those that were tried once more.
    _used_by_all = _again = frozenset()

    def __init__(
        self,
        n_seeds: int = 10,
        n_first_seeds: int = 150,
        max_targets: int = 10,
        min_tokens: float = 50,
    ) -> None:
        self.n_seeds = n_seeds
        self.n_first_seeds = n_first_seeds
        self.max_targets = max_targets
        self.min_tokens = min_tokens

    def reset(self) -> None:
        """Forget all failures: the start of a fit."""
        self._validate_params()
        self._size = None  # tokens that had come when topics were last made of all of them
        self._forget()

    def _forget(self):
        self._failures = Failures(change=0.2)
        self._resting = self._has_drifted = False
        self._since = None
        self._leaving = frozenset()  # topics that all give way together
        self._used_by_all = self._again = frozenset()

    def wants(self, totals: StatBag) -> list[int]:
        """The largest topics that may be split next, and all documents if these have doubled."""
        everything = [EVERYTHING] if self._has_grown(totals) and len(totals.uids) > 1 else []
        if self._resting:
            return everything
        open_ = sorted(
            (-n, uid)
            for uid, n in totals.sizes.items()
            if self._is_enough(n, words=False) and not self._failures.blocked(uid, n)
        )
        return [uid for _, uid in open_[: self.max_targets]] + everything

    def _is_enough(self, n, words, alone=False):
        """Whether a topic of ``n`` words, or rows, may be split; ``alone`` if there is no other."""
        most = (LEAST_TOKENS if alone else np.inf) if words else _MIN_ROWS
        return self.weighted or n >= min(self.min_tokens, most)

    def _come(self, totals):
        """Tokens that have come so far."""
        return float(totals.n.sum() if self.n_seen is None else self.n_seen)

    def _has_grown(self, totals):
        """Whether what was made of all tokens is old: as many have come since, or all that are remembered."""
        if self._size is None:
            return False
        return self._come(totals) - self._size >= min(self._size, totals.n.sum())

    def plan(self, context: Context) -> list[Any]:
        """An adoption for each target, and a trial that may undo it; or new topics for all."""
        self._note_prior(context)
        targets = [uid for uid in self.wants(context.totals) if uid in context.samples]
        self._resting, self._leaving = False, frozenset()
        if context.settling:
            return []
        anew = EVERYTHING in targets or len(context.totals.uids) == 1
        if anew:
            self._size = self._come(context.totals)
        trials = self._anew(context) if EVERYTHING in targets else self._splits(context, targets)
        self._resting = len(trials) > 0
        return trials

    def _sample(self, context, target):
        """The documents of a target in which topics are looked for, and how many tokens a topic needs.

        A few rows with many copies are no cluster, though the objective is higher with a topic for them. Of
        very few words, a topic need not have as many as of others.
        """
        sample, likelihood = context.samples[target], context.model.likelihood
        if likelihood.words:
            n_tokens = context.totals.n.sum() / sample.one_token
            return sample, min(LEAST_TOKENS, _LEAST_PART * n_tokens)
        compared = isinstance(sample.docs.z, np.ndarray) and not likelihood.copies_tell
        distinct = sample.without_copies() if compared else sample
        return distinct, _LEAST_ROWS if distinct is sample else LEAST_TOKENS

    def _create(self, context, target, doc_prior, n_seeds):
        """Statistics of topics in place of one, or None; and no concentrations."""
        sample, least = self._sample(context, target)
        totals, others = context.totals, None
        # if copies of rows were left out of the sample, the other topics, which have them, say little
        if not context.model.likelihood.words and sample is context.samples[target]:
            others = totals.s[totals.uids != target]
        s = create_topics(
            context.model, sample, doc_prior, int(n_seeds), context.rng, context.n_threads, least,
            others, hidden_alone=target in self._again,
        )  # fmt: skip
        if context.model.likelihood.words and doc_prior > ALL_USE:
            self._used_by_all |= {target}
        return s, None

    def _create_first(self, context, target, doc_prior, n_seeds):
        """Statistics of topics in place of all there are, and concentrations for them; or None twice."""
        sample, least = self._sample(context, target)
        s, doc_prior = create_first_topics(
            context.model, sample, doc_prior, int(n_seeds), context.rng, context.n_threads, least
        )
        if s is not None and context.model.likelihood.words:
            s = blended_with_all(s, _FIRST_BREADTH)
        return s, None if doc_prior is None else {"doc_concentration": doc_prior}

    def _create_again(self, context, target, doc_prior, n_seeds):
        """New topics and concentrations, or None twice, where one topic was found better than several."""
        sample, least = self._sample(context, target)
        s, doc_prior = create_topics_again(
            context.model, sample, doc_prior, int(n_seeds), context.rng, context.n_threads, least
        )
        return s, None if doc_prior is None else {"doc_concentration": doc_prior}

    def _splits(self, context, targets):
        """Trials for single topics."""
        totals, trials = context.totals, []
        room = context.max_components - len(totals.uids)
        doc_prior = context.model.doc_prior(totals)
        first, trial, how = len(totals.uids) == 1, AdoptTrial, {}
        create = self._create_first if first else self._create
        if first and not context.model.likelihood.words:
            how = {"adapts": True}  # rows were clustered under a prior of theirs
        if first and _suits_one(context.model):
            create, trial, how = self._create_again, SettlingTrial, {"adapts": True, "learns": True}
        for uid in targets:
            if room < 1:
                break
            k = int(totals.positions([uid])[0])
            if not self._is_enough(totals.n[k], context.model.likelihood.words, first):
                continue
            n_seeds = self.n_first_seeds if first else self.n_seeds
            s, given = create(context, uid, doc_prior[k], min(n_seeds, room + 1))
            if s is None:
                self._failures.note(uid, totals.n[k])
                continue
            created = context.new_uids(len(s))
            room -= len(created) - 1
            trials.append(
                trial(self.kind, uid, created, s, retires=True, concentrations=given, **how)
            )
            # in batches that were not visited the target is still there, and failures go by its name
            trials.append(UndoTrial(self.kind, (uid, *created), (uid,)))
        return trials

    def _anew(self, context):
        """Adoptions by which all topics give way to those of the first of them."""
        totals = context.totals
        n_seeds = min(max(self.n_first_seeds, len(totals.uids)), context.max_components)
        doc_prior = context.model.doc_prior(totals).sum()
        if n_seeds < 2:
            return []
        s, given = self._create_first(context, EVERYTHING, doc_prior, n_seeds)
        if s is None:
            return []
        first, *others = totals.uids.tolist()
        self._leaving = frozenset(totals.uids.tolist())
        created = context.new_uids(len(s))
        trials = [AdoptTrial(self.kind, first, created, s, retires=True, concentrations=given)]
        return trials + [AdoptTrial(self.kind, uid, (), s[:0], retires=True) for uid in others]

    def new_data(self) -> None:
        """Forget failures, since a proposal that failed may succeed on more data."""
        self._forget()

    def last_resort(self) -> None:
        """Try again topics of rows if their prior was another then, and topics in which others may hide.

        Documents had not settled when births of these failed. Each is tried once more.
        """
        if self._has_drifted:
            self._forget()
        for uid in self._used_by_all - self._again:
            self._failures.forgive(uid)
        self._again |= self._used_by_all

    def _note_prior(self, context):
        """Note how far the prior of topics of rows has moved: many laps may each move it a little."""
        likelihood, prior = context.model.likelihood, context.model.prior
        if likelihood.words or len(context.totals.uids) < 2:
            return
        if self._since is None:
            self._since = prior
        self._has_drifted = likelihood.prior_distance(self._since, prior) > _DRIFTED

    def prior_changed(self) -> None:
        """Remembered failures mean little under another prior."""
        self._forget()

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures: births that were undone, or that all were taken back."""
        if trial.policy is Policy.UNDO:
            if accepted:
                self._failures.note(trial.created[0], mass)
        elif not accepted:
            if trial.target not in self._leaving:
                self._failures.note(trial.target, mass)
            self._resting = False  # nothing came of the lap that merges would have to tidy up


def _suits_one(model):
    """Whether the prior of words was learned from one topic, as it is when several were found worse."""
    likelihood = model.likelihood
    return likelihood.adapts_late and model.prior.total > _MORE * likelihood.prior.total
