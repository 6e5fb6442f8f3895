"""Trials: changes of the components that are judged on the whole data.

Design note
-----------
A proposal plans trials before a lap. A trial's probe observes every batch in that lap, so that what
the data would leave behind after the change is known exactly. The scheduler then compares objectives.
A birth replaces 1 component by J, a merge n by 1, a delete 1 + absorbers by the absorbers. Thus there are
two sorts of trial: with one successor, whose sums are known and only the entropy has to be found, and with
several, for which a restricted local step is made. A third sort adds components to the model for a lap.

A trial is a value: what its probe found is kept by the scheduler, batch by batch.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .edits import SplitEdit, UnionEdit, union_row
from .extra import NO_EXTRA
from .probe import SplitProbe, UnionProbe
from .statistics import StatBag, added_up


class Policy(Enum):
    """How a trial is judged.

    AT_ONCE: at the end of its lap, and carried out if the objective rises; each component changes once.
    ALONE: the same, but no other trial is carried out with it.
    WITH_LAP: its components are in the model during the lap, and the whole lap is judged.
    UNDO: at the end of a lap with components on trial, it takes those back that did not help.
    """

    AT_ONCE = "at once"
    ALONE = "alone"
    WITH_LAP = "with the lap"
    UNDO = "undo"


class Outcome(NamedTuple):
    """The change that a trial would make.

    Attributes
    ----------
    successors : StatBag
        Statistics, over all batches, of the components that take the place of the removed ones.
    edit : object
        Its ``replay(bag, batch_id)`` makes the change on what a batch left behind.
    """

    successors: StatBag
    edit: Any


class Trial:
    """A set of components and what would take their place.

    Attributes
    ----------
    kind : str
        That of the proposal.
    removed, created : tuple of int
        Uids of the components that go, and of those that come.
    policy : Policy
    probe : Probe or None
        What to observe in the lap; None if nothing.
    unites : bool
        Whether it joins components to fewer. If but one of them is left, it is dropped.
    retires : bool
        With `Policy.WITH_LAP`: whether no row may go to its targets during the lap.
    """

    kind: str
    removed: tuple
    created: tuple
    policy = Policy.AT_ONCE
    probe = None
    unites = retires = False

    @property
    def targets(self):
        """Components that a verdict is remembered for: their mass goes with it."""
        return self.removed if self.unites else self.removed[:1]

    def share(self, model, z):
        """Shares (n, J) of the successors in what prepared rows had of the removed; None if unknown."""
        return None

    def outcome(self, totals, findings, rest=None):
        """`Outcome` of the trial, or None if it cannot be carried out.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.
        findings : dict
            Batch id -> what the probe found there.
        rest : StatBag or None
            What batches hold of the removed components that were not observed.
        """
        raise NotImplementedError


class SplitTrial(Trial):
    """Replace components by several, among which a restricted local step shares out their rows.

    Parameters
    ----------
    kind : str
        That of the proposal.
    removed, created : tuple of int
        Uids. The first of the removed is the target.
    coef : ndarray, shape (J, P)
        Log weights of the successors in a row are ``coef @ s(x)``.
    """

    def __init__(self, kind, removed, created, coef):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.target, self.coef = self.removed[0], coef
        self.probe = SplitProbe(self.removed, self.created, coef)

    def share(self, model, z):
        """Shares (n, J) of the successors, by the restricted local step."""
        return model.likelihood.local_step(self.coef, z, None, None, None, None)

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; see `Trial.outcome`.

        Rows of batches that were not observed cannot be shared out. A single removed component lives on in
        the successor that explains these best; of several, nobody knows, and the trial is refused.
        """
        successors, created = added_up(findings.values()), self.created
        if rest is not None and rest.n.sum() > 0:
            if len(self.removed) > 1:
                return None
            heir = int(np.argmax(self.coef @ rest.s[0]))
            created = (*created[:heir], self.target, *created[heir + 1 :])
            uids = np.asarray(created, dtype=np.int64)
            findings = {name: bag._replace(uids=uids) for name, bag in findings.items()}
            s, entropy = successors.s.copy(), successors.entropy.copy()
            s[heir] += rest.s[0]
            entropy[heir] += rest.entropy[0]
            successors = StatBag(uids, s, entropy)
        return Outcome(successors, SplitEdit(self.removed, created, findings))


class UnionTrial(Trial):
    """Replace components by their union.

    Parameters
    ----------
    kind : str
        That of the proposal.
    removed : tuple of int
        Uids.
    created : tuple of int
        Uid of the union.
    """

    unites = True

    def __init__(self, kind, removed, created):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.probe = UnionProbe(self.removed)

    def share(self, model, z):
        """All of each row, (n, 1)."""
        return np.ones((z.shape[0], 1))

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; of batches that were not observed, with the bound of the entropy."""
        entropy = sum(findings.values())
        if rest is not None:
            entropy += union_row(rest, self.removed, self.created).entropy[0]
        successors = union_row(totals, self.removed, self.created, entropy)
        return Outcome(successors, UnionEdit(self.removed, self.created, findings))


class UndoTrial(UnionTrial):
    """Join the components on trial that were put in a component's place, for they did not help."""

    policy = Policy.UNDO


class AdoptTrial(Trial):
    """Components that are in the model for a lap, which is judged as a whole.

    Parameters
    ----------
    kind : str
        That of the proposal.
    target : int
        Uid of the component from whose rows they were made.
    created : tuple of int
        Uids of the components on trial.
    s : ndarray, shape (J, P)
        Their initial statistics, which count rows twice.
    retires : bool, default=False
        Whether no row may go to the target and the ``others`` during the lap.
    extra : Extra, optional
        What the components' initial rows leave behind beside sums.
    others : tuple of int, optional
        More targets.
    """

    policy = Policy.WITH_LAP

    def __init__(self, kind, target, created, s, *, retires=False, extra=NO_EXTRA, others=()):
        self.kind, self.target, self.retires = kind, target, retires
        self._targets = (target, *others)
        self.removed, self.created = (), tuple(created)
        self.initial = StatBag(np.asarray(created, dtype=np.int64), s, np.zeros(len(s)), extra)

    @property
    def targets(self):
        """The target and the others."""
        return self._targets


class KnownTrial(Trial):
    """A change whose outcome is known already: nothing has to be observed.

    Parameters
    ----------
    kind : str
    removed, created : tuple of int
        Uids.
    known : Outcome
    """

    def __init__(self, kind, removed, created, known):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.known = known

    def outcome(self, totals, findings, rest=None):
        """The known `Outcome`."""
        return self.known
