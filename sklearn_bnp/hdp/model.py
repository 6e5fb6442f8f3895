"""Models of rows in groups (documents, sequences) whose weights of components share global ones.

The allocation term is a function of the groups' counts and of the sticks, and has no closed-form optimum in
these. The sticks are therefore fields of the model, in the order of the totals' components. The
objective is taken at the sticks as they stand: it is a bound at any time, and no global step lowers it.

`HierarchicalModel` knows nothing of the engine: the model of a slice derives from it and from `BaseModel`
of the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .sticks import Sticks

# L-BFGS iterations of a global step.
_STEPS = 100


@dataclass(frozen=True, eq=False)
class HierarchicalModel(ABC):
    """Sticks of a model, and the methods that depend on them; immutable.

    It is for models whose ``allocation`` is a `SharedWeights`.

    Parameters
    ----------
    sticks : Sticks or None
        Global parameters of the components ``uids``; None before the first global step.
    uids : tuple of int
    retired : dict or None
        During a lap with components on trial: components that no row may go to any more -> components
        that take their place.
    learned : tuple of str
        Attributes of the allocation, concentrations, that are learned at the end of each lap.
    waits : bool
        Whether they are learned only after the first convergence: groups that begin with poor components
        seem to need other concentrations than they will, and then keep to these.
    """

    sticks: Sticks | None = None
    uids: tuple = ()
    retired: dict | None = None
    learned: tuple = ()
    waits: bool = False

    # A candidate is first judged with guessed sticks. The best ones are better, by about as many nats for all
    # candidates. If these and so many more may be a gain, they are searched for with so many L-BFGS steps.
    stick_gain: ClassVar[float]
    candidate_steps: ClassVar[int]

    # ------------------------------------------------------------------ where the models differ

    @abstractmethod
    def counts(self, totals):
        """The groups' counts of the components of ``totals``, as the allocation wants them."""

    @abstractmethod
    def _has_counts(self, totals):
        """Whether any group has been counted; not so before the first lap."""

    @abstractmethod
    def _sticks_of_masses(self, totals, mass):
        """`Sticks` to start from, for components of these masses (K,)."""

    @abstractmethod
    def _sticks_of_weights(self, totals, weights):
        """`Sticks` of which the global weights are about ``weights`` (K,)."""

    @abstractmethod
    def _guessed_weights(self, totals, weights, removed, new):
        """Global weights of ``totals.replaced(removed, new)``, given those of ``totals`` (K,)."""

    @staticmethod
    def _gain_of_extra(before, after):
        """Change of the entropy that is not in ``entropy`` of these totals."""
        return 0.0

    @property
    def given_allocation(self):
        """The prior of the groups' weights, with None for the concentrations that are learned."""
        return replace(self.allocation, **dict.fromkeys(self.learned))

    # ------------------------------------------------------------------ sticks and weights

    def current_sticks(self, totals):
        """`Sticks` in the order of ``totals``; a guess from weights or masses if they are for others."""
        uids = tuple(totals.uids.tolist())
        if self.sticks is not None:
            if self.uids == uids:
                return self.sticks
            known = dict(zip(self.uids, self.allocation.weights(self.sticks), strict=True))
            if known.keys() >= set(uids):
                return self._sticks_of_weights(totals, np.array([known[uid] for uid in uids]))
        return self._sticks_of_masses(totals, totals.n)

    def weights(self, totals):
        """Expected global weights (K,) of the components of ``totals``."""
        return self.allocation.weights(self.current_sticks(totals))

    def allocation_term(self, totals):
        """The allocation term of the objective at the present sticks, in nats."""
        return float(self.allocation.objective(self.current_sticks(totals), self.counts(totals)))

    # ------------------------------------------------------------------ global step

    def updated(self, totals):
        """The model after the global step of the sticks."""
        if len(totals.uids) == 0 or not self._has_counts(totals):
            return self._replace(sticks=None, uids=())
        start = self.current_sticks(totals)
        sticks, _ = self.allocation.optimise(self.counts(totals), start, _STEPS)
        return self._replace(sticks=sticks, uids=tuple(totals.uids.tolist()), retired=None)

    def released(self):
        """The model that no longer waits to learn its concentrations; itself if it does not."""
        return self._replace(waits=False) if self.waits else self

    def _with_learned(self, totals):
        """The model after global steps of the sticks, of the concentrations, and again of the sticks.

        One component has all weight, and says nothing of how groups differ.
        """
        here = self.updated(totals)
        if self.waits or not self.learned or here.sticks is None or len(totals.uids) < 2:
            return here
        allocation = self.allocation.with_learned(self.learned, here.sticks, self.counts(totals))
        if allocation is self.allocation:
            return here
        return here._replace(allocation=allocation).updated(totals)

    def in_order(self, totals):
        """Totals with the components in the order that suits the sticks, and the model for them.

        That is the order of decreasing weight, if it is not worse than the present one. The weight of a
        component is about how many groups use it, and not its mass. The model has learned concentrations.
        """
        here = self._with_learned(totals)
        if len(totals.uids) < 2:
            return totals, here
        order = np.lexsort((-totals.n, -here.allocation.weights(here.sticks)))
        if np.all(np.diff(order) > 0):
            return totals, here
        other = totals.take(order)
        there = here.updated(other)
        value = here.allocation_term(totals)
        if there.allocation_term(other) >= value - 1e-12 * abs(value):
            return other, there
        return totals, here

    def adopting(self, totals, retired, concentrations=None):
        """The model for a lap with components on trial: sticks from masses, none for retired ones.

        If none is new and none retires, sticks go on from where they are. If several components all give way
        to the same new ones, or these come with ``concentrations``, the model waits to learn its
        concentrations until they have settled.
        """
        uids = tuple(totals.uids.tolist())
        if not retired and set(uids) == set(self.uids):
            return self.updated(totals)
        mass = totals.n.copy()
        mass[totals.positions(list(retired))] = 0.0
        sticks = self._sticks_of_masses(totals, mass)
        anew = (
            len(self.uids) > 1
            and retired.keys() >= set(self.uids)
            and len(set(retired.values())) == 1
        )
        given = {name: a for name, a in (concentrations or {}).items() if name in self.learned}
        return self._replace(
            sticks=sticks, uids=uids, retired=retired, allocation=replace(self.allocation, **given),
            waits=self.waits or anew or len(given) > 0,
        )  # fmt: skip

    # ------------------------------------------------------------------ candidates

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements; see `Model.replacement_gains`.

        Each candidate has sticks of its own: first guessed ones, and where these leave the verdict open,
        the best. How much a guess lacks is seen at the candidates that promise most.
        """
        here, weights = self.allocation_term(totals), self.weights(totals)
        gains = np.array(fixed, dtype=float)
        for i, (removed, new) in enumerate(replacements):
            there, start = self._candidate(totals, weights, removed, new)
            rest = self._gain_of_extra(totals, there) - here
            gains[i] += rest + self.allocation.objective(start, self.counts(there))
        lack = np.inf
        for i in np.argsort(-gains, kind="stable").tolist():
            if 0 >= gains[i] > -self.stick_gain - lack:
                there, start = self._candidate(totals, weights, *replacements[i])
                rest = fixed[i] + self._gain_of_extra(totals, there) - here
                _, value = self.allocation.optimise(self.counts(there), start, self.candidate_steps)
                more, gains[i] = rest + value - gains[i], rest + value
                lack = more if lack == np.inf else max(lack, more)
        return gains

    def after_replacement(self, totals, removed, new):
        there, start = self._candidate(totals, self.weights(totals), removed, new)
        uids = tuple(there.uids.tolist())
        return self._replace(sticks=start, uids=uids, retired=None).in_order(there)

    def _candidate(self, totals, weights, removed, new):
        """Totals after a replacement, largest weights first, and the sticks of these weights, a guess."""
        after = self._guessed_weights(totals, weights, removed, new)
        order = np.argsort(-after, kind="stable")
        there = totals.replaced(removed, new).take(order)
        return there, self._sticks_of_weights(there, after[order])
