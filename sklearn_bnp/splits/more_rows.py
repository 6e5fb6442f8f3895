"""Successors of a component that is alone, sought in more rows and from more seeds.

The first rows and seeds may be too few to show the clusters: sixty clusters in twenty columns were found as
nine blends of all of them, which nothing later takes apart. If the best splits of two ways differ, the first
birth therefore goes on in four times as many rows, from more seeds, for as long as these show much more.
If there are components, but so many that the seeds may have been too few, it first looks at twice as
many rows, from at least three seeds for each component: where clusters are clear, these show hardly more, and
later births find the rest.
"""

from __future__ import annotations

from functools import partial

from .development import Creation, developed
from .restricted_mixture import SLOW, most_collapsed
from .ways import FIRST_ROWS, MOST_SEEDS, Way, most_seeds

# Seeds for each part of a split, from which on seeds are not too few.
SEEDS_A_PART = 3
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
# Most collapsed steps from the seeds.
_COLLAPSED_STEPS = 60


def most_rows_of_first(n_statistics):
    """Rows of a component that is alone, in which it may be worth looking for its clusters."""
    if n_statistics <= _LEAST_STATISTICS:
        return 0
    most = _TIMES_ROWS**2 * FIRST_ROWS
    return int(min(most, _MOST_NUMBERS_OF_MORE / (MOST_SEEDS * n_statistics)))


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
    n_seeds = 0 if best is None else SEEDS_A_PART * len(best.s)
    if n_seeds > MOST_SEEDS:
        n_rows = _TWICE * FIRST_ROWS
        found = look(n_rows, max(n_seeds, n_rows // _ROWS_A_SEED_OF_TWICE), len(best.s))
        much_more = found is not None and (
            found.gain > _MUCH_MORE * before or len(found.s) > _MANY_MORE * len(best.s)
        )
        best = _better(best, found)
        if found is not None and not much_more:
            return best
    n_all, n_rows = restricted().sample.z.shape[0], FIRST_ROWS
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
    if n_rows <= FIRST_ROWS or n_seeds < max(MOST_SEEDS, n_found):
        return None
    collapses = n_seeds * n_rows / z.shape[0] <= most_collapsed(likelihood, z)
    way = Way(n_seeds, False, _COLLAPSED_STEPS if collapses else 0, n_rows, pace=SLOW)
    s, entropy = developed(small, target, way, rng)
    if s is None:
        return None
    return Creation(s, small.coefficients(s), small.gain(s, entropy, small.model.prior))


def _better(one, other):
    """The `Creation` of the greater gain. Either may be None; if the first is, the other has to gain."""
    if other is None or other.gain <= (0.0 if one is None else one.gain):
        return one
    return other
