"""Trials: changes of the components that are judged on the whole data.

Design note
-----------
(a) A proposal plans trials before a lap. The probe of a trial observes every batch of that lap. The
    statistics of all data after the change are then known exactly, and the scheduler compares objectives.
(b) A birth replaces 1 component by J, a merge n by 1, a delete 1 + absorbers by the absorbers. Two classes
    of trials are therefore enough for mixtures. A union has one successor, whose sums are known; its probe
    finds the entropy. A split has several successors; its probe makes a restricted local step. A third
    class of trials adds components to the model for a lap.
(c) A trial is a value. The scheduler keeps what its probe has found, batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..inputs.types import Floats
from .edits import SplitEdit, UnionEdit, union_row
from .extra import NO_EXTRA
from .probe import SplitProbe, UnionProbe
from .statistics import StatBag, added_up
from .unions import UnionFinding

# Components on trial get another pass if so many that gain as much as the last one would suffice. Passes
# beyond the first that they may have in all.
MORE_PASSES, MOST_PASSES = 10, 30


class Policy(Enum):
    """How a trial is judged.

    Attributes
    ----------
    AT_ONCE
        The trial is judged at the end of its lap, and is carried out if the objective rises. Of the trials
        that remove a component, one at the most is carried out.
    ALONE
        As ``AT_ONCE``, but no other trial is carried out with this one.
    WITH_LAP
        The created components are in the model during the lap, and the lap is judged as a whole.
    UNDO
        At the end of a lap with components on trial, the trial takes some of these back if that raises the
        objective.
    """

    AT_ONCE = "at once"
    ALONE = "alone"
    WITH_LAP = "with the lap"
    UNDO = "undo"


# Policies of trials that change the model for a lap, and of those that may undo such a change.
OF_A_LAP = (Policy.WITH_LAP, Policy.UNDO)


class Outcome(NamedTuple):
    """The change that a trial would make.

    Parameters
    ----------
    successors : StatBag
        Statistics, over all batches, of the components that take the place of the removed ones.
    edit : object
        Its method ``replay(bag, batch_id)`` returns the statistics of one batch after the change.
        `SplitEdit` and `UnionEdit` are two such classes.
    """

    successors: StatBag
    edit: Any


class Expectation(NamedTuple):
    """The change that a trial is expected to make, before it has observed all batches.

    Parameters
    ----------
    successors : StatBag
        Expected statistics, over all batches, of the components that take the place of the removed ones.
    allowance : float
        Nats by which the objective may fall less, or rise, in spite of what these statistics say.
    """

    successors: StatBag
    allowance: float


class Trial:
    """A set of components, and the components that would take their place.

    A trial is a value: nothing changes it once it is made. A subclass sets the attributes without a default,
    and defines `outcome`.

    Attributes
    ----------
    kind : str
        Kind of the proposal that has planned the trial.
    removed, created : tuple of int
        Uids of the components that go, and of those that come.
    policy : Policy
        How the trial is judged. ``Policy.AT_ONCE`` by default.
    probe : Probe or None
        What to observe in each batch of the lap. None, the default, if nothing has to be observed.
    unites : bool
        Whether components are joined, so that there are fewer. The trial is dropped if only as many are
        left as it would create. False by default.
    retires : bool
        With ``Policy.WITH_LAP``: whether no row may go to the targets during the lap. False by default.
    leaves_one : bool
        Whether one component is left, which is judged under the prior that suits it alone. False by default.
    adapts : bool
        With ``Policy.WITH_LAP``: whether the prior adapts before the lap and after each of its passes. False
        by default.
    concentrations : dict of str to float or None
        With ``Policy.WITH_LAP``: concentrations of the prior of weights that the lap begins with. None by
        default.
    learns : bool
        With ``Policy.WITH_LAP``: whether concentrations are learned on from the first pass. False by default:
        they wait until components have settled.
    least_gain : float
        With ``Policy.WITH_LAP``: nats by which the lap has to raise the objective. 0 by default.
    foretells : bool
        Whether `expected` says something. False by default.
    estimate : float or None
        Gain in nats that the proposal expects, for the record in ``history_``. None, the default, if it does
        not say.

    See Also
    --------
    SplitTrial : Replaces components by several others.
    UnionTrial : Joins components.
    AdoptTrial : Adds components to the model for one lap.

    Examples
    --------
    >>> from sklearn_bnp import Trial, UnionTrial
    >>> trial = UnionTrial("merge", removed=(3, 5), created=(8,))
    >>> isinstance(trial, Trial), trial.unites, trial.policy.value
    (True, True, 'at once')
    """

    kind: str
    removed: tuple
    created: tuple
    policy = Policy.AT_ONCE
    probe: Any = None
    adapts: bool = False
    concentrations: dict[str, float] | None = None
    least_gain: float = 0.0
    unites = retires = leaves_one = foretells = learns = False
    estimate: float | None = None

    @property
    def targets(self) -> tuple[int, ...]:
        """Components whose total mass is passed on to `Proposal.judged`, for its memory of failures.

        Returns
        -------
        targets : tuple of int
            Uids. The default is the first of the removed; of a union, all of them.
        """
        return self.removed if self.unites else self.removed[:1]

    def goes_on(self, values: Any, least: float) -> bool:
        """Whether a lap with components on trial is worth another pass over the data.

        Parameters
        ----------
        values : list of float
            Objective after each pass of the lap so far; the last one is too low.
        least : float
            Objective that has to be exceeded.

        Returns
        -------
        goes_on : bool
            By default, whether ten passes that each gain as much as the last one would suffice.
        """
        return len(values) < 2 or values[-1] + MORE_PASSES * (values[-1] - values[-2]) > least

    def is_unsettled(self, values: Any) -> bool:
        """Whether components on trial need another pass, although the objective is high enough.

        Parameters
        ----------
        values : list of float
            Objective after each pass of the lap so far; the last one is high enough.

        Returns
        -------
        is_unsettled : bool
            False by default.
        """
        return False

    def share(self, model: Any, z: Any) -> Floats | None:
        """How successors share rows of the removed components.

        After the trial was accepted, the samples of mixtures are updated by it.

        Parameters
        ----------
        model : Model
            The model after the trial.
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.

        Returns
        -------
        share : ndarray, shape (n, J), or None
            Rows sum to 1. None if nobody knows without another pass; the successors then have no sample.
        """
        return None

    def expected(self, totals: StatBag, observed: Any, findings: Any) -> Expectation | None:
        """Foretell the components that the trial would leave, if all batches are like those observed so far.

        A trial that is expected to lose more than its allowance is given up, and observes no further batch.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.
        observed : StatBag
            Statistics of the batches that were observed, as they are without the trial.
        findings : dict
            Batch id -> finding of the probe, for these batches.

        Returns
        -------
        expected : Expectation or None
            None, the default, if nothing can be said yet.
        """
        return None

    def outcome(self, totals: StatBag, findings: Any, rest: Any = None) -> Outcome | None:
        """Statistics of the successors, from the findings of all batches.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.
        findings : dict
            Batch id -> finding of the probe in that batch.
        rest : StatBag or None
            Statistics of the removed components in the batches that were not observed; None if all were.

        Returns
        -------
        outcome : Outcome or None
            None if the trial cannot be carried out.
        """
        raise NotImplementedError


class SplitTrial(Trial):
    """Replace components by several others, for mixtures.

    A restricted local step shares the removed components' part of each row among the created components.
    The responsibilities of all other components stay.

    Parameters
    ----------
    kind : str
        Kind of the proposal.
    removed, created : tuple of int
        Uids. The first of the removed are the targets.
    coef : ndarray, shape (J, P)
        Coefficients of the created components: their log weights in a row, up to a constant, are
        ``coef @ s(x)``.
    estimate : float, default=None
        Gain in nats that the proposal expects.
    n_targets : int, default=1
        How many of the removed are split. The others, if there are any, take up rows of these.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import SplitTrial
    >>> trial = SplitTrial("birth", removed=(3,), created=(8, 9), coef=np.zeros((2, 5)))
    >>> trial.targets
    (3,)
    """

    def __init__(
        self,
        kind: str,
        removed: Sequence[int],
        created: Sequence[int],
        coef: Any,
        estimate: float | None = None,
        n_targets: int = 1,
    ) -> None:
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.n_targets, self.coef, self.estimate = n_targets, coef, estimate
        self.probe = SplitProbe(self.removed, self.created, coef)

    @property
    def targets(self) -> tuple[int, ...]:
        """The components that are split."""
        return self.removed[: self.n_targets]

    def share(self, model: Any, z: Any) -> Floats | None:
        """Shares (n, J) of the successors, by the restricted local step."""
        return model.likelihood.local_step(self.coef, z, None, None, None, None)

    def outcome(self, totals: StatBag, findings: Any, rest: Any = None) -> Outcome | None:
        """Sum of the findings; see `Trial.outcome`.

        Rows of batches that were not observed cannot be shared. If there is one removed component, these
        rows all go to the successor that explains them best, which keeps its uid. If there are several,
        the trial is refused.
        """
        successors, created = added_up(findings.values()), self.created
        if rest is not None and rest.n.sum() > 0:
            if len(self.removed) > 1:
                return None
            heir = int(np.argmax(self.coef @ rest.s[0]))
            created = (*created[:heir], self.removed[0], *created[heir + 1 :])
            uids = np.asarray(created, dtype=np.int64)
            findings = {name: bag._replace(uids=uids) for name, bag in findings.items()}
            s, entropy = successors.s.copy(), successors.entropy.copy()
            s[heir] += rest.s[0]
            entropy[heir] += rest.entropy[0]
            successors = StatBag(uids, s, entropy)
        return Outcome(successors, SplitEdit(self.removed, created, findings))


class UnionTrial(Trial):
    """Join components to one.

    The statistics of the union are sums. Only its entropy has to be observed.

    Parameters
    ----------
    kind : str
        Kind of the proposal.
    removed : tuple of int
        Uids of the components.
    created : tuple of int
        Uid of the union, a tuple of one.
    leaves_one : bool, default=False
        Whether the union is of all components, and is judged under the prior that suits it alone.
    estimate : float, default=None
        Gain in nats that the proposal expects.

    Examples
    --------
    >>> from sklearn_bnp import UnionTrial
    >>> trial = UnionTrial("merge", removed=(3, 5), created=(8,))
    >>> trial.targets
    (3, 5)
    """

    unites = True

    def __init__(
        self,
        kind: str,
        removed: Sequence[int],
        created: Sequence[int],
        leaves_one: bool = False,
        estimate: float | None = None,
    ) -> None:
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.leaves_one, self.estimate = leaves_one, estimate
        self.probe = UnionProbe(self.removed)

    def share(self, model: Any, z: Any) -> Floats | None:
        """The union takes all of each row, (n, 1)."""
        return np.ones((z.shape[0], 1))

    def outcome(self, totals: StatBag, findings: Any, rest: Any = None) -> Outcome | None:
        """Sums of the removed components, with the entropy that was found; see `Trial.outcome`.

        In batches that were not observed, a lower bound of the entropy stands for it.
        """
        found = reduce(UnionFinding.added, map(UnionFinding.of, findings.values()))
        if rest is not None:
            unseen = union_row(rest, self.removed, self.created)
            more = unseen.extra.seen_of_union(self.created)
            found = found.added(UnionFinding(unseen.entropy[0], more))
        successors = union_row(totals, self.removed, self.created, found)
        return Outcome(successors, UnionEdit(self.removed, self.created, findings))


class UndoTrial(UnionTrial):
    """Join components on trial with the component from which they were made, where they did not help.

    It is planned beside an `AdoptTrial`, and lets one of several births of a lap fail by itself.

    Parameters
    ----------
    kind : str
        Kind of the proposal.
    removed : tuple of int
        Uids of the target and of the components on trial.
    created : tuple of int
        Uid of the target, a tuple of one.
    leaves_one : bool, default=False
        As in `UnionTrial`.
    estimate : float, default=None
        As in `UnionTrial`.
    """

    policy = Policy.UNDO


class AdoptTrial(Trial):
    """Add components to the model for one lap, and judge the lap as a whole.

    Any row may go to the created components. If the objective has not risen at the end of the lap, the
    whole lap is taken back.

    Parameters
    ----------
    kind : str
        Kind of the proposal.
    target : int
        Uid of the component from whose rows the created components were made.
    created : tuple of int
        Uids of the components on trial.
    s : ndarray, shape (J, P)
        Initial statistics of the components on trial. They count rows twice, and are subtracted at the end of
        the lap.
    retires : bool, default=False
        Whether no row may go to the targets during the lap.
    extra : Extra or None, default=None
        The model's own part of the initial statistics, such as transitions. None if there is none.
    others : tuple of int, default=()
        Further targets.
    estimate : float, default=None
        Gain in nats that the proposal expects.
    adapts : bool, default=False
        Whether the prior adapts before the lap and after each of its passes, if it is one that does: for
        components that were found under a prior that suits them.
    concentrations : dict of str to float or None, default=None
        Concentrations of the prior of weights that the components on trial were found with, by the names of
        its attributes. The lap begins with those that are learned. These are not learned on before the
        components have settled, unless ``learns``. None leaves all as they are.
    learns : bool, default=False
        Whether concentrations are learned on from the first pass, for components that have settled before.
    least_gain : float, default=0.0
        Nats by which the lap has to raise the objective. A small gain may not be worth new components, which
        all proposals try again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import AdoptTrial
    >>> trial = AdoptTrial("birth", target=3, created=(8, 9), s=np.ones((2, 5)), retires=True)
    >>> trial.policy.value, trial.targets, trial.removed
    ('with the lap', (3,), ())
    """

    policy = Policy.WITH_LAP

    def __init__(
        self,
        kind: str,
        target: Any,
        created: Sequence[int],
        s: Any,
        *,
        retires: bool = False,
        extra: Any = None,
        others: Any = (),
        estimate: float | None = None,
        adapts: bool = False,
        concentrations: dict[str, float] | None = None,
        learns: bool = False,
        least_gain: float = 0.0,
    ) -> None:
        self.estimate, self.adapts, self.concentrations = estimate, adapts, concentrations
        self.learns, self.least_gain = learns, least_gain
        self.kind, self.target, self.retires = kind, target, retires
        self._targets = (target, *others)
        self.removed, self.created = (), tuple(created)
        uids, extra = np.asarray(created, dtype=np.int64), NO_EXTRA if extra is None else extra
        self.initial = StatBag(uids, s, np.zeros(len(s)), extra)

    @property
    def targets(self) -> tuple[int, ...]:
        """The target, and the others."""
        return self._targets


class KnownTrial(Trial):
    """A trial whose outcome is known, so that it can be judged at once, before anything else changes.

    It is for ``Learner.try_at_once``. A proposal must not plan one, since plans are judged after a lap.

    Parameters
    ----------
    kind : str
        Kind of the proposal.
    removed, created : tuple of int
        Uids.
    known : Outcome
        The outcome.
    """

    def __init__(self, kind, removed, created, known):
        self.kind, self.removed, self.created = kind, tuple(removed), tuple(created)
        self.known = known

    def outcome(self, totals, findings, rest=None):
        """The known `Outcome`."""
        return self.known


def with_lap(trials):
    """List of the trials whose components are in the model for a lap, and are judged with it."""
    return [trial for trial in trials if trial.policy is Policy.WITH_LAP]


def compatible(trials):
    """List of the trials that can share a lap: the first kind that needs it, and trials that leave it alone.

    A lap is judged as a whole, so that births and deletes that change the model take turns. Components that
    retire for the lap have no other trials.
    """
    on_trial = with_lap(trials)
    first_kind = on_trial[0].kind if on_trial else None
    trials = [t for t in trials if t.kind == first_kind or t.policy not in OF_A_LAP]
    leaving = {uid for t in on_trial if t.retires for uid in t.targets}
    return [t for t in trials if t.policy is Policy.UNDO or leaving.isdisjoint(t.removed)]
