"""The first states, sought among rows as if these had no order.

Where states are many and last about a row, each window of several rows is a blend of states, and so are the
few seeds that are single rows. The rows are clustered as a mixture clusters them, from many seeds. A hidden
Markov model that starts from these clusters is compared with what windows have led to. If it is better by
far, clusters are sought in more rows, from more seeds.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..engine.samples import Sample
from ..likelihood.seeding import summaries
from ..splits.creation import create
from ..splits.development import Creation
from ..splits.more_rows import create_in_more_rows, most_rows_of_first
from ..splits.restricted_mixture import RestrictedMixture
from ..splits.stick_breaking import RowModel
from .creation import StateCreation, first_passes, refined, statistics_of_labels

# Seeds of clusters, beside many more.
_SEEDS = 10
# More rows and seeds are tried if clusters have led to this many times the gain of windows.
_BETTER = 1.1


def rows_without_time(likelihood):
    """Rows of a state that is alone in which its clusters are sought; 0 if they are not."""
    return 0 if likelihood.lags else most_rows_of_first(likelihood.n_statistics)


def better_without_time(nested, sample, made, n_most, rng):
    """New states from windows, or from clusters of rows if these explain a row better on average.

    Parameters
    ----------
    nested : NestedModel
        In place of the only state, on the rows from which ``made`` comes.
    sample : StateSample
        These rows, or more.
    made : StateCreation or None
        What windows have led to.
    n_most : int
        The most new states.
    rng : numpy.random.RandomState

    Returns
    -------
    StateCreation or None
    """
    rows, few = _Rows(nested, n_most, rng), nested.sample
    found = rows.clusters(few)
    if found is None:
        return made
    one = rows.states(few, found)
    before = 0.0 if made is None else made.gain / few.total
    best = made if one is None or one.gain / few.total <= before else one
    weighted = sample.weight is not None  # then nobody knows how many rows there are
    if best is made or weighted or one.gain / few.total <= _BETTER * before:
        return best
    more = rows.more_clusters(sample, few, found)
    other = None if more is None else rows.states(sample, more)
    if other is not None and other.gain / sample.total > best.gain / few.total:
        return other
    return best


class _Rows:
    """Clusters of rows, and states that start from them."""

    def __init__(self, nested, n_most, rng):
        self.nested, self.n_most, self.rng = nested, n_most, rng
        self.model = RowModel(nested.likelihood, nested.prior)

    def _mixture(self, sample):
        """The sample as one of rows, the statistics (P,) of all of them, and no other components."""
        likelihood = self.model.likelihood
        rows = Sample(sample.z, np.ones(sample.n_rows), sample.row_weight)
        target = summaries(likelihood, sample.z, sample.row_mass[:, np.newaxis])[0]
        return rows, target, np.empty((0, likelihood.n_statistics))

    def clusters(self, sample):
        """`Creation` in place of a single component, or None."""
        rows, target, others = self._mixture(sample)
        return create(
            self.model, rows, target, others, min(_SEEDS, self.n_most), 0, self.rng, adapt=True,
            n_most=self.n_most,
        )  # fmt: skip

    def more_clusters(self, sample, few, found):
        """`Creation` in more rows than the ``few`` in which some were ``found``; None if no more."""
        times = sample.total / few.total
        before = Creation(times * found.s, found.coef, times * found.gain)
        rows, target, others = self._mixture(sample)
        start = partial(RestrictedMixture, self.model, rows, others, adapt=True)
        more = create_in_more_rows(before, start, target, self.n_most, self.rng)
        return None if more is before else more

    def states(self, sample, clusters):
        """`StateCreation` that starts from each row in the cluster where it fits best, or None."""
        likelihood = self.model.likelihood
        resp = likelihood.local_step(clusters.coef, sample.z, None, None, None, None)
        names, labels = np.unique(resp.argmax(axis=1), return_inverse=True)
        s = statistics_of_labels(likelihood, sample, labels, len(names))
        nested = self.nested.on(sample)
        chain = first_passes(nested, nested.labelled(s, labels))
        if len(chain.s) > 1:
            chain = refined(nested, chain)
        if len(chain.s) < 2:
            return None
        creation = StateCreation.of(nested, chain, self.model.prior)
        return creation if creation.gain > 0 else None
