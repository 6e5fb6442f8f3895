"""The ways to look for the successors of a component: from how many seeds, in how many rows, by which steps.

Design note
-----------
(a) A split starts from more seeds than are needed: k-means++ in the geometry of the likelihood, then a few
    Lloyd steps. The result depends much on the seeds. Where the sample is small, seeding is tried in several
    ways and the best split is kept. Where it is large, one way is tried in each attempt.
(b) Components that have few rows for their parameters hold their own rows too firmly for ordinary steps.
    Rows are then left out of the component that they are in (`RestrictedMixture.collapse`).
(c) A first birth starts from many seeds, so that each cluster is likely to have one of its own. It starts
    from few, too: where clusters differ in scale more than in place, as patches of photographs do, many seeds
    of few rows each end in many small components, which no merge brings together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .restricted_mixture import USUAL, Pace, most_collapsed

# Every way of seeding is tried if the sample's statistics (rows x P) hold at most this many numbers.
_SMALL = 100_000
# If they hold at most this many, every way costs little, collapsed or not.
_TINY = 5_000
# If there are fewer other components than this, each way is tried several times: the first splits of
# a fit decide much, and cost little.
_FEW, _FEW_RESTARTS = 4, 2
# A row fits a component of N rows and P statistics about P / N nats better than if it were not part of it.
# From so many nats on, rows are left out of the components that they are in: in a first birth, and later.
_SELF_FIT, _SELF_FIT_LATER = 0.25, 1.0
# A first birth has a seed for so many rows, so many seeds at the most, and so many rows.
_ROWS_A_SEED, MOST_SEEDS, FIRST_ROWS = 8, 60, 3000
# With many columns, fewer seeds are tried, too: so many rows for each of them and each column. Parts of fewer
# rows than columns fit what is particular to them, and no union of two pays.
_ROWS_A_COLUMN = 5
# Most collapsed steps from the seeds of a first birth, and of a later one.
_COLLAPSED_FIRST, _COLLAPSED_LATER = 15, 10
# Collapsed steps are not made of more numbers (seeds x P): each takes the inverses of all components.
_MOST_NUMBERS = 1_000_000


def tries_all_ways(sample, n_statistics):
    """Whether the sample is small enough for one attempt to try every way of seeding."""
    return sample.z.shape[0] * n_statistics <= _SMALL


def most_seeds(n_statistics):
    """Number of seeds whose statistics are few enough for collapsed steps and for pools."""
    return _MOST_NUMBERS // n_statistics


class Way(NamedTuple):
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


NARROW = Way(2, False, always=True, narrow=True)
GROUPED = Way(MOST_SEEDS, False, always=True, narrow=True, grouped=True)


class Search(NamedTuple):
    """A search for the successors of a component, and the ways that it tries.

    Attributes
    ----------
    likelihood : Likelihood
    sample : Sample
        Rows of the component.
    n_statistics : int
        P, numbers for each component.
    n_others : int
        Components that stay.
    n_seeds : int
        Number of seeds to start from.
    n_most : int
        Most new components.
    attempt : int
        How often the component has been tried before.
    n_rows : int or None
        Rows of the sample that are looked at first, if there are no other components; all if None.
    """

    likelihood: Any
    sample: Any
    n_statistics: int
    n_others: int
    n_seeds: int
    n_most: int = 10**6
    attempt: int = 0
    n_rows: int | None = None

    @property
    def is_first(self):
        """Whether the component is alone, and was not tried before."""
        return self.n_others == 0 and self.attempt == 0

    @property
    def n_first(self):
        """Rows of the sample that are looked at first: all, but for a component that is alone."""
        n = self.sample.z.shape[0]
        return n if self.n_others or self.n_rows is None else min(n, self.n_rows)

    @property
    def is_small(self):
        """Whether the rows that are looked at first are few enough to try every way of seeding."""
        return self.n_first * self.n_statistics <= _SMALL

    def ways(self):
        """List of the ways to try, in order."""
        usual, pairs = (
            [self._way(n, whiten, _SELF_FIT_LATER, _COLLAPSED_LATER) for whiten in self._geometries]
            for n in (self.n_seeds, 2)
        )
        if self.is_first:
            ways = self._first_ways(usual)
            if ways:
                return ways
        every, few = usual + pairs, self.n_others < _FEW
        if not self.is_small or (self.attempt > 0 and not few):
            return [every[self.attempt % len(every)]]
        # collapsed steps take long: from many seeds in one geometry, and from two in the other
        is_tiny = self.n_first * self.n_statistics <= _TINY
        takes_long = usual[0].n_collapsed and not (few and is_tiny)
        ways = [usual[0], *pairs[1:]] if takes_long else every
        return ways * _FEW_RESTARTS if few else ways

    def _first_ways(self, usual):
        """Ways of a first birth, beside the ``usual`` ones: from many seeds, and from few; maybe none."""
        n, P = self.n_first, self.n_statistics
        n_many = min(MOST_SEEDS, n // _ROWS_A_SEED, most_seeds(P))
        n_many = min(max(self.n_seeds, n_many), self.n_most)
        many = [
            self._way(n_many, whiten, _SELF_FIT, _COLLAPSED_FIRST, FIRST_ROWS)
            for whiten in self._geometries
        ]
        n_few = min(max(2, n // (_ROWS_A_COLUMN * self.likelihood.n_features)), self.n_most)
        gentle = []
        if not self.is_small and self.n_seeds > n_few:
            gentle = [self._way(n_few, False, _SELF_FIT, _COLLAPSED_FIRST)._replace(always=True)]
        if many[0].n_collapsed:
            some = [one._replace(n_seeds=min(self.n_seeds, self.n_most)) for one in usual]
            return many + some + gentle
        return [usual[0], *gentle] if gentle else []

    @property
    def _geometries(self):
        """Whether points are whitened, for each way to find seeds."""
        return (False, True) if self.likelihood.n_features > 1 else (False,)

    def _way(self, n_seeds, whiten, least, n_steps, n_rows=None):
        """`Way` from seeds in a geometry.

        There are up to ``n_steps`` collapsed steps where rows fit their own components better by ``least``
        nats, if these steps are not too slow.
        """
        n, n_all = self.n_first, self.sample.z.shape[0]
        n = n if n_rows is None else min(n, n_rows)
        numbers = n_seeds * self.n_statistics
        affordable = n_seeds * n / n_all <= most_collapsed(self.likelihood, self.sample.z)
        collapses = affordable and least * n <= numbers <= _MOST_NUMBERS
        return Way(n_seeds, whiten, n_steps if collapses else 0, n if n < n_all else None)
