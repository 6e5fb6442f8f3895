"""New components to replace one component, the target, found on a sample of the target's rows.

Hughes (2016), Sec. 4.2.1, Step 1.

Design note
-----------
(a) A split starts from more seeds than are needed: k-means++ in the geometry of the likelihood, then a few
    Lloyd steps. Variational steps on the target's rows follow, and agglomeration joins what is redundant.
    This finds structure more reliably than the right number of seeds would.
(b) The result depends much on the seeds. Where the sample is small, seeding is tried in several ways and
    the best split is kept. Where it is large, one way is tried in each attempt.
(c) Components that have few rows for their parameters hold their own rows too firmly for ordinary steps.
    Rows are then left out of the component that they are in (`RestrictedMixture.collapse`). A first birth
    starts from many seeds, so that each cluster is likely to have one of its own. It starts from few, too:
    where clusters differ in scale more than in place, as patches of photographs do, many seeds of few rows
    each end in many small components, which no merge brings together. If the best splits of two ways differ,
    these rows and seeds may be too few to show the clusters: sixty clusters in twenty columns were found as
    nine blends of all of them, which nothing later takes apart. Then the first birth goes on in four times
    as many rows, from more seeds, for as long as these show much more. If there are components, but so many
    that the seeds may have been too few, it first looks at twice as many rows, from at least three seeds for
    each component: where clusters are clear, these show hardly more, and later births find the rest.
(d) Most components are whole: of 3,310 searches in components that were not alone, 48 found a split, and 30
    of these in the first way. How far the first ways were from a split tells whether others are worth their
    cost.
(e) Where each row may be in one component alone, other components pay. Each way is then gone twice: with
    rows shared freely, which leads farther, and with the limit from the first step on. What was found freely
    makes further steps under the limit.
(f) The gain found here is an estimate on the sample. The scheduler judges the split on the whole data.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..likelihood.seeding import lloyd, seeding_mass, summaries
from .restricted_mixture import LEAST_ROWS, SLOW, USUAL, Pace, RestrictedMixture, most_collapsed
from .slabs import NARROW_ADAPT, grouped_seeds, narrow_seeds

# On small samples, a split whose gain lacks less than this, in nats a row, gets more steps.
_STEPS_NEAR, _NEAR = 20, 0.01
# Gains that differ by less, in nats, are of the same split, if there are so many seeds for each of its parts.
_SAME, _SEEDS_A_PART = 0.5, 3
# If the best grouping into several components is worse than a single one by more nats, in all ways so far,
# others hardly ever find a better one. (With 15 nats they would have 7 of 3,280 times on random problems, but
# pools of clusters with one mean suffered.) A component that is alone, where a miss would cost most, has to
# be worse by more.
HOPELESS, _HOPELESS_ALONE = 50.0, 100.0
# Seeds are sought among at most this many rows, or so many for each of them if that is more.
_SEED_ROWS, _SEED_ROWS_OF_ONE = 2000, 20
# Every way of seeding is tried if the sample's statistics (rows x P) hold at most this many numbers.
_SMALL = 100_000
# If there are fewer other components than this, each way is tried several times: the first splits of
# a fit decide much, and cost little.
_FEW, _FEW_RESTARTS = 4, 2
# A row fits a component of N rows and P statistics about P / N nats better than if it were not part of it.
# From so many nats on, rows are left out of the components that they are in.
_SELF_FIT, _SELF_FIT_LATER = 0.25, 1.0
# A first birth has a seed for so many rows, so many seeds at the most, and so many rows.
_ROWS_A_SEED, _MOST_SEEDS, _FIRST_ROWS = 8, 60, 3000
# With many columns, fewer seeds are tried, too: so many rows for each of them and each column. Parts of fewer
# rows than columns fit what is particular to them, and no union of two pays.
_ROWS_A_COLUMN = 5
# If ways disagree, a first birth looks at so many times the rows, and again, from so many seeds at most. A
# step takes no more numbers (rows x seeds x P) than this, and tables of shares hold no more (rows x seeds).
# The first rows show clusters of fewer statistics.
_TIMES_ROWS, _MOST_SEEDS_OF_MORE, _MOST_NUMBERS_OF_MORE, _MOST_SHARES = 4, 300, 3e9, 8e6
_LEAST_STATISTICS = 25
# Times the first rows that are looked at if their seeds were too few, and rows for each of the seeds there.
_TWICE, _ROWS_A_SEED_OF_TWICE = 2, 40
# It ends when the gain is no longer this factor of that of a quarter of the rows. Twice the first rows end it
# if they show neither a gain of this factor nor many more components, of which this is the factor.
_MUCH_MORE, _MANY_MORE = 1.1, 1.25
# If a single component is better by so many times P log(rows) than all that came of the most seeds, the first
# rows show that nothing is there.
_NOTHING = 0.25
# Most collapsed steps from the seeds of a first birth, of a later one, and of a first one in more rows.
_COLLAPSED_FIRST, _COLLAPSED_LATER, _COLLAPSED_OF_MORE = 15, 10, 60
# Collapsed steps are not made of more numbers (seeds x P): each takes the inverses of all components.
_MOST_NUMBERS = 1_000_000
# Steps on all rows of the sample after those on some of them.
_STEPS_ON_ALL = 4
# If the sample's statistics hold at most this many numbers, every way costs little, collapsed or not.
_TINY = 5_000


class Creation(NamedTuple):
    """Components proposed in place of a target.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the new components on the sample.
    coef : ndarray, shape (J, P)
        Coefficients of the local step that shares the target's rows among them.
    gain : float
        Change of the objective on the sample alone, in nats.
    """

    s: np.ndarray
    coef: np.ndarray
    gain: float


def tries_all_ways(sample, n_statistics):
    """Whether the sample is small enough for one attempt to try every way of seeding."""
    return sample.z.shape[0] * n_statistics <= _SMALL


def most_seeds(n_statistics):
    """Number of seeds whose statistics are few enough for collapsed steps and for pools."""
    return _MOST_NUMBERS // n_statistics


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
    n_first = _rows_of_first(sample, len(others), n_rows)
    small_sample = n_first * len(target) <= _SMALL
    ways = _ways(
        model.likelihood, sample, len(target), len(others), n_seeds, n_most, attempt, n_rows
    )
    limits = (False,) if restricted().n_nonzero is None else (False, True)
    tries = [(i, one._replace(limited=limited)) for i, one in enumerate(ways) for limited in limits]
    found = _Findings(ways[0].n_seeds, HOPELESS if len(others) else _HOPELESS_ALONE)
    first = []
    if len(others) == 0 and attempt == 0:
        grouped = _GROUPED._replace(n_seeds=min(n_most, _MOST_SEEDS), n_rows=n_first)
        first = [(len(ways) + 1, grouped)]
    for i, way in [*first, *tries, (len(ways), _NARROW)]:
        if not found.call_for(way):
            continue
        small = restricted()
        s, entropy = _developed(small, target, way, rng)
        found.note_margin(way, small.margin)
        creation = None if s is None else _judged(small, s, entropy, model.prior, small_sample)
        if creation is not None and found.note(i, way, creation):
            return found.best
    is_first = len(others) == 0 and attempt == 0 and n_rows is not None
    nothing = found.best is None and found.least < -_NOTHING * len(target) * np.log(n_first)
    if not is_first or nothing or found.agree:
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
        again = same and number != self._source and _SEEDS_A_PART * len(creation.s) <= way.n_seeds
        if best is None or gain > best.gain:
            self.best, self._source = creation, number
        return again

    @property
    def agree(self):
        """Whether the two best ways have led to the same split, be the seeds few for each of its parts."""
        positive = sorted(gain for gain in self._gains.values() if gain > 0)
        return len(positive) > 1 and positive[-1] - positive[-2] <= _SAME


def most_rows_of_first(n_statistics):
    """Rows of a component that is alone, in which it may be worth looking for its clusters."""
    if n_statistics <= _LEAST_STATISTICS:
        return 0
    most = _TIMES_ROWS**2 * _FIRST_ROWS
    return int(min(most, _MOST_NUMBERS_OF_MORE / (_MOST_SEEDS * n_statistics)))


def create_in_more_rows(best, restricted, target, n_most, rng):
    """New components to replace one that is alone, from more rows and seeds for as long as these show more.

    Parameters
    ----------
    best : Creation or None
        What was found in the first rows, with the gain on the whole sample.
    restricted : callable
        Makes a `RestrictedMixture` on the whole sample.
    target : ndarray, shape (P,)
        Statistics of the component.
    n_most : int
        Most new components.
    rng : numpy.random.RandomState

    Returns
    -------
    creation : Creation or None
        ``best`` itself if more rows show no more.
    """
    if len(target) <= _LEAST_STATISTICS:
        return best
    look = partial(_look, restricted, target, n_most, rng)
    before = 0.0 if best is None else best.gain
    n_seeds = 0 if best is None else _SEEDS_A_PART * len(best.s)
    if n_seeds > _MOST_SEEDS:
        n_rows = _TWICE * _FIRST_ROWS
        found = look(n_rows, max(n_seeds, n_rows // _ROWS_A_SEED_OF_TWICE), len(best.s))
        much_more = found is not None and (
            found.gain > _MUCH_MORE * before or len(found.s) > _MANY_MORE * len(best.s)
        )
        best = _better(best, found)
        if found is not None and not much_more:
            return best
    n_all, n_rows = restricted().sample.z.shape[0], _FIRST_ROWS
    while n_rows < n_all:
        n_rows = min(_TIMES_ROWS * n_rows, n_all)
        found = look(n_rows, _MOST_SEEDS_OF_MORE, 0 if best is None else len(best.s))
        best = _better(best, found)
        if found is None or found.gain <= _MUCH_MORE * before:
            break
        before = found.gain
    return best


def _look(restricted, target, n_most, rng, n_rows, n_seeds, n_found):
    """A `Creation` from so many rows and at most so many seeds.

    It is None if nothing was found, if there are no more rows than the first ones, or if these rows have
    fewer seeds than the first search had, or than it found components (``n_found``).
    """
    small, P = restricted(), len(target)
    likelihood, z = small.model.likelihood, small.sample.z
    n_rows = min(n_rows, z.shape[0])
    n_seeds = min(n_seeds, n_rows // likelihood.n_features, most_seeds(P), n_most)
    n_seeds = min(n_seeds, int(min(_MOST_SHARES, _MOST_NUMBERS_OF_MORE / P) / n_rows))
    if n_rows <= _FIRST_ROWS or n_seeds < max(_MOST_SEEDS, n_found):
        return None
    collapses = n_seeds * n_rows / z.shape[0] <= most_collapsed(likelihood, z)
    way = _Way(n_seeds, False, _COLLAPSED_OF_MORE if collapses else 0, n_rows, pace=SLOW)
    s, entropy = _developed(small, target, way, rng)
    if s is None:
        return None
    return Creation(s, small.coefficients(s), small.gain(s, entropy, small.model.prior))


def _better(one, other):
    """The `Creation` of the greater gain. Either may be None; if the first is, the other has to gain."""
    if other is None or other.gain <= (0.0 if one is None else one.gain):
        return one
    return other


class _Way(NamedTuple):
    """How to find components.

    Attributes
    ----------
    n_seeds : int
        Number of seeds.
    whiten : bool
        The geometry that they are found in; see `Likelihood.seeding_points`.
    n_collapsed : int
        Most collapsed steps; 0 for none.
    n_rows : int or None
        Number of rows to find them on; all if None.
    always : bool
        Whether it is tried even if ways before it were far from a split.
    narrow : bool
        Whether its two seeds are rows that are narrow along a column, and the others. It is tried where all
        others have found nothing.
    grouped : bool
        Whether seeds are groups of rows that are narrow along the same columns, of which there may be many. A
        component that is alone is first split in this way.
    pace : Pace
        How long collapsed steps go on, and how fast unions are made.
    limited : bool
        Whether all steps keep to the limit of components that share a row, not only the last ones.
    """

    n_seeds: int
    whiten: bool
    n_collapsed: int = 0
    n_rows: int | None = None
    always: bool = False
    narrow: bool = False
    grouped: bool = False
    pace: Pace = USUAL
    limited: bool = False


_NARROW = _Way(2, False, always=True, narrow=True)
_GROUPED = _Way(_MOST_SEEDS, False, always=True, narrow=True, grouped=True)


def _rows_of_first(sample, n_others, n_rows):
    """Rows of the sample that are looked at first: all, but for a component that is alone."""
    n = sample.z.shape[0]
    return n if n_others or n_rows is None else min(n, n_rows)


def _ways(likelihood, sample, n_statistics, n_others, n_seeds, n_most, attempt, n_rows=None):
    """List of the ways to try, in order."""
    n, n_all = _rows_of_first(sample, n_others, n_rows), sample.z.shape[0]
    size, few = n * n_statistics, n_others < _FEW
    small = size <= _SMALL
    geometries = (False, True) if likelihood.n_features > 1 else (False,)
    affordable = most_collapsed(likelihood, sample.z)

    def way(n_seeds, whiten, least, n_steps, n_rows=None):
        m = n if n_rows is None else min(n, n_rows)
        numbers = n_seeds * n_statistics
        collapses = n_seeds * m / n_all <= affordable and least * m <= numbers <= _MOST_NUMBERS
        return _Way(n_seeds, whiten, n_steps if collapses else 0, m if m < n_all else None)

    usual, pairs = (
        [way(J, whiten, _SELF_FIT_LATER, _COLLAPSED_LATER) for whiten in geometries]
        for J in (n_seeds, 2)
    )
    if n_others == 0 and attempt == 0:
        J = min(_MOST_SEEDS, n // _ROWS_A_SEED, most_seeds(n_statistics))
        J = min(max(n_seeds, J), n_most)
        many = [way(J, whiten, _SELF_FIT, _COLLAPSED_FIRST, _FIRST_ROWS) for whiten in geometries]
        J = min(max(2, n // (_ROWS_A_COLUMN * likelihood.n_features)), n_most)
        gentle = way(J, False, _SELF_FIT, _COLLAPSED_FIRST)._replace(always=True)
        gentle = [] if small or n_seeds <= J else [gentle]
        if many[0].n_collapsed:
            some = [one._replace(n_seeds=min(n_seeds, n_most)) for one in usual]
            return many + some + gentle
        if gentle:
            return [usual[0], *gentle]
    every = usual + pairs
    if not small or (attempt > 0 and not few):
        return [every[attempt % len(every)]]
    # collapsed steps take long: from many seeds in one geometry, and from two in the other
    takes_long = usual[0].n_collapsed and (size > _TINY or not few)
    ways = [usual[0], *pairs[1:]] if takes_long else every
    return ways * _FEW_RESTARTS if few else ways


def _developed(small, target, way, rng):
    """Statistics and entropies of the components found in a way, or None twice."""
    start, sample = small, small.sample
    groups = grouped_seeds(small, sample, target, way.n_seeds) if way.grouped else None
    if groups is not None and len(groups) < 2:
        return None, None
    freely = small.n_nonzero is not None and not way.limited
    if way.n_rows is not None and way.n_rows < sample.z.shape[0]:
        rows = rng.choice(sample.z.shape[0], way.n_rows, replace=False)
        start = small.on(sample.rows(rows), free=not way.limited)
    elif freely:
        start = small.on(sample, free=True)
    entropy = None
    if way.narrow:
        s = narrow_seeds(small, start.sample, target, rng) if groups is None else groups
        start.adapt(s, NARROW_ADAPT)
    else:
        s = seeded(small.model, start.sample, target, way.n_seeds, way.whiten, rng)
    if len(s) > 1:
        s, entropy = start.refine(s, way.n_collapsed, way.pace)
        small.margin = start.margin
    if s is None or len(s) < 2:
        return None, None
    if start is not small:
        small.prior = start.prior
        s, entropy, _ = small.iterate(s, _STEPS_ON_ALL, 1e-4 * sample.total)
    if freely and len(s) > 1:  # where rows may not be shared, fewer components may pay
        s, entropy = small.refine(s)
    return (s, entropy) if s is not None and len(s) > 1 else (None, None)


def seeded(model, sample, target, n_seeds, whiten, rng):
    """Statistics (J, P) of the seeds that have at least one row."""
    seeding = seeding_mass(sample.mass, sample.weight)
    n_rows = max(_SEED_ROWS, _SEED_ROWS_OF_ONE * n_seeds)
    if sample.z.shape[0] > n_rows:
        rows = rng.choice(sample.z.shape[0], n_rows, replace=False)
        sample, seeding = sample.rows(rows), seeding[rows]
    points = model.likelihood.seeding_points(model.prior, target, sample.z, whiten=whiten)
    resp = lloyd(points, seeding, n_seeds, rng)
    del points  # they are as large as the rows
    s = summaries(model.likelihood, sample.z, resp * sample.row_mass[:, np.newaxis])
    return s[sample.rows_owned(s[:, -1], resp) >= LEAST_ROWS]
