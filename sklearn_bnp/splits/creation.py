"""New components to replace one component, the target, found on a sample of the target's rows.

Hughes (2016), Sec. 4.2.1, Step 1.

Design note
-----------
(a) Each of several ways (``ways.py``) starts from more seeds than are needed. Variational steps on the
    target's rows follow, and agglomeration joins what is redundant (``restricted_mixture.py``). This finds
    structure more reliably than the right number of seeds would.
(b) Most components are whole: of 3,310 searches in components that were not alone, 48 found a split, and 30
    of these in the first way. How far the first ways were from a split tells whether others are worth their
    cost.
(c) Where each row may be in one component alone, other components pay. Each way is then gone twice: with
    rows shared freely, which leads farther, and with the limit from the first step on. What was found freely
    makes further steps under the limit.
(d) If a component is alone and its ways lead to different splits, more rows are looked at (``more_rows.py``).
(e) The gain found here is an estimate on the sample. The scheduler judges the split on the whole data.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .development import Creation, developed
from .more_rows import SEEDS_A_PART, create_in_more_rows
from .restricted_mixture import RestrictedMixture
from .ways import GROUPED, NARROW, Search

# On small samples, a split whose gain lacks less than this, in nats a row, gets more steps.
_STEPS_NEAR, _NEAR = 20, 0.01
# Gains that differ by less, in nats, are of the same split, if there are so many seeds for each of its parts.
_SAME = 0.5
# If the best grouping into several components is worse than a single one by more nats, in all ways so far,
# others hardly ever find a better one. (With 15 nats they would have 7 of 3,280 times on random problems, but
# pools of clusters with one mean suffered.) A component that is alone, where a miss would cost most, has to
# be worse by more.
HOPELESS, _HOPELESS_ALONE = 50.0, 100.0
# If a single component is better by so many times P log(rows) than all that came of the most seeds, the first
# rows show that nothing is there.
_NOTHING = 0.25


def create(
    model: Any,
    sample: Any,
    target: Any,
    others: Any,
    n_seeds: int,
    attempt: int,
    rng: np.random.RandomState,
    *,
    adapt: bool = False,
    n_most: int = 10**6,
    n_rows: int | None = None,
    n_nonzero: int | None = None,
) -> Any:
    """New components to replace a target.

    Parameters
    ----------
    model : Model
        A mixture.
    sample : Sample
        Rows of the target, with their responsibilities and weights.
    target : ndarray, shape (P,)
        Statistics of the target on the whole data.
    others : ndarray, shape (K - 1, P)
        Statistics of the components that stay.
    n_seeds : int
        Number of seeds to start from. Two seeds are tried as well. If there are no other components, and few
        rows for so many parameters, many more seeds are tried, too.
    attempt : int
        How often the target has been tried before. On a small sample the first attempt tries every way of
        seeding, until two of them agree, or the first ones are too far from a split for others to be worth
        their cost. Every other attempt tries one way, and the next attempt the next one.
    rng : numpy.random.RandomState
        Source of random numbers.
    adapt : bool, default=False
        Whether the prior adapts to the new components, which is worth its cost if there are few
        components.
    n_most : int, default=1000000
        Most new components.
    n_rows : int or None, default=None
        Rows of the sample that are looked at if there are no other components. What they do not show is
        sought in more of them, with tables of shares for these. All are looked at if None, and that is all.
    n_nonzero : int or None, default=None
        The most components that a row may be shared among; no limit if None. Where it is 1, components and
        gain keep to it.

    Returns
    -------
    creation : Creation or None
        Statistics, coefficients and an estimated gain. None if no split into two or more components was
        found.
    """
    restricted = partial(RestrictedMixture, model, sample, others, adapt, n_nonzero)
    search = Search(
        model.likelihood, sample, len(target), len(others), n_seeds, n_most, attempt, n_rows
    )
    ways = search.ways()
    limits = (False,) if restricted().n_nonzero is None else (False, True)
    tries = [(i, one._replace(limited=limited)) for i, one in enumerate(ways) for limited in limits]
    first = []
    if search.is_first:
        n_groups = min(n_most, GROUPED.n_seeds)
        first = [(len(ways) + 1, GROUPED._replace(n_seeds=n_groups, n_rows=search.n_first))]
    found = _Findings(ways[0].n_seeds, HOPELESS if len(others) else _HOPELESS_ALONE)
    for i, way in [*first, *tries, (len(ways), NARROW)]:
        if not found.call_for(way):
            continue
        small = restricted()
        s, entropy = developed(small, target, way, rng)
        found.note_margin(way, small.margin)
        creation = None if s is None else _judged(small, s, entropy, model.prior, search.is_small)
        if creation is not None and found.note(i, way, creation):
            return found.best
    nothing = found.best is None and found.least < -_NOTHING * len(target) * np.log(search.n_first)
    if not search.is_first or n_rows is None or nothing or found.agree:
        return found.best
    return create_in_more_rows(found.best, restricted, target, n_most, rng)


def _judged(small, s, entropy, before, small_sample):
    """`Creation` of components in place of one, which has the prior ``before``.

    On a ``small_sample`` there are more steps if these may be enough for a gain. None if they leave a
    single component.
    """
    gain = small.gain(s, entropy, before)
    if small_sample and -_NEAR * small.sample.total < gain <= 0:
        s, entropy, _ = small.iterate(s, _STEPS_NEAR, 0.0)
        if len(s) < 2:
            return None
        gain = small.gain(s, entropy, before)
    return Creation(s, small.coefficients(s), gain)


class _Findings:
    """The best split that was found, and what tells which ways are worth trying after it.

    Parameters
    ----------
    most_seeds : int
        Number of seeds of the first ways.
    hopeless : float
        Other ways are not tried if a single component is better by more nats than this.

    Attributes
    ----------
    best : Creation or None
        The one of the greatest gain, which may be negative.
    least : float
        Least `RestrictedMixture.margin` of the first ways; 0 at the most.
    """

    def __init__(self, most_seeds, hopeless):
        self._most_seeds, self._hopeless = most_seeds, hopeless
        self.best, self.least = None, 0.0
        self._margin = -np.inf
        # the number of the best way, and the highest gain of each
        self._source, self._gains = -1, {}

    def call_for(self, way):
        """Whether to try a way."""
        if way.narrow and not way.grouped:
            return self.best is None or self.best.gain <= 0
        hopeless = self.best is None and -np.inf < self._margin < -self._hopeless
        return way.always or not hopeless

    def note_margin(self, way, margin):
        """Remember how far a way was from a split."""
        if way.n_seeds > 2 and not way.narrow:  # two alone tell too little
            self._margin = max(self._margin, margin)
        if way.n_seeds == self._most_seeds and not way.narrow:
            self.least = min(self.least, margin)

    def note(self, number, way, creation):
        """Remember what a way has led to; whether another way has led to the same best split before."""
        best, gain = self.best, creation.gain
        self._gains[number] = max(gain, self._gains.get(number, gain))
        same = best is not None and best.gain > 0 and abs(gain - best.gain) <= _SAME
        again = same and number != self._source and SEEDS_A_PART * len(creation.s) <= way.n_seeds
        if best is None or gain > best.gain:
            self.best, self._source = creation, number
        return again

    @property
    def agree(self):
        """Whether the two best ways have led to the same split, be the seeds few for each of its parts."""
        positive = sorted(gain for gain in self._gains.values() if gain > 0)
        return len(positive) > 1 and positive[-1] - positive[-2] <= _SAME
