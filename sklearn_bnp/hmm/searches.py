"""Searches for better states: splits of many at once, of which those stay that pay."""

from __future__ import annotations

import numpy as np

from ..engine.last_resort import often_came_back
from .creation import StateCreation, statistics_of_labels, window_lengths, windows
from .exchange import exchanged
from .nested_chain import NestedModel
from .nested_links import NestedSettings
from .nested_unions import joined
from .pair_births import as_they_are
from .row_contexts import REACHES, Contexts
from .sampling import StateSample, runs_of
from .state_ages import AGES, parts_by_age, uneven_states

# Passes of the parts, after bulk unions of parts, and of what is left in the end.
_FIRST_STEPS, _STEPS, _LAST_STEPS = 6, 4, 8
# Passes of parts by contexts or ages: how states follow each other is learned slowly.
_STEPS_OF_LINKS = 60
# Parts by contexts of all states together, at the most, unless each state may have more.
PARTS_BY_CONTEXTS = 20
# Passes end when they gain less than this a row, in nats; what differs by no more may be the same.
_TOL = 1e-4
# Passes of states that are annealed, limits of the power of their likelihoods in the first one, and by how
# much states differ in it: the standard deviation of the logarithm of its exponent.
_ANNEALED_STEPS, _FIRST_POWER, _UNEVEN = 12, (0.02, 0.5), 0.25
# The limits move towards a power after which the best states came back, or fewer than this share of them were
# left. The logarithms of the two are never nearer than this.
_LEAST_LEFT, _NARROWEST = 0.5, 1.0
# Steps of empirical Bayes that let the prior suit the parts, where it adapts.
_ADAPT_STEPS = 5
# Such steps once a search has ended: few states expect another prior than many parts.
_LAST_ADAPT_STEPS = 20
# Rounds of passes of the present states, and of steps of the prior that they are compared under.
_ROUNDS_BEFORE = 3
# Small states that may be tried for removal.
_PRUNINGS = 5
# Least gain, in nats, of a search that counts.
_LEAST_GAIN = 1.0
# Shares of the states that searches split, in turns, and by what. Where all visits are geometric, searches by
# ages are left out.
_WINDOWS, _CONTEXTS, _AGES = "windows", "contexts", "ages"
_WAYS = (
    (1.0, _CONTEXTS), (1.0, _WINDOWS), (1.0, _AGES), (0.5, _WINDOWS), (0.5, _CONTEXTS), (1.0, _WINDOWS),
    (0.5, _AGES), (0.5, _WINDOWS),
)  # fmt: skip
# Steps in which the concentrations and the states that a search ends with suit each other.
_LEARNINGS = 6
# So many searches are made after the last gain in any case: all ways once, but twice with those by ages.
_LEAST_FAILURES, _LEAST_FAILURES_WITH_AGES = 6, 16


class StateSearch:
    """Searches for states that take the place of some, each from the best ones so far.

    A hidden Markov model is nested in the states, as in births from pairs. In turns, all states are split
    into parts, and a random half of them; seeds are windows of rows, or rows together with those next to them
    (`Contexts`), or parts are of rows of the same age, where visits to a state are not geometric
    (``state_ages.py``). Passes follow, in which any row may go to any part. Then parts are
    joined, and small ones are dropped, for as long as that raises the objective. If all states are searched,
    concentrations that are learned suit the states that were found. What comes of this is
    compared with the best states so far, block by block: each block of rows keeps the states that explain it
    better. Where a search ends elsewhere, the best states are annealed, too: powers of their likelihoods,
    which begin small and end at one, let rows change states that are stuck.

    Parameters
    ----------
    model : SequenceModel
    totals : StatBag
    rows : list of int
        Rows of ``totals``: the states that may be replaced.
    sample : StateSample
        Runs of the rows of all of them.
    n_seeds : int
        Parts that a state is split into, at the most.
    n_most : int
        States, at the most.
    rng : numpy.random.RandomState
    n_threads : int

    Attributes
    ----------
    best : StateCreation or None
        The best states; None if they are those that were there before.
    gain : float
        Their gain, in nats on the sample.
    n_failures, n_returns : int
        Searches since the last gain, and those of them that came back to where they began.
    """

    def __init__(self, model, totals, rows, sample, n_seeds, n_most, rng, n_threads=1):
        self._model, self._rng = model, rng
        self._n_seeds, self._n_most = n_seeds, n_most
        self._sample, self._contexts = sample, None
        self._log_powers = np.log(_FIRST_POWER)
        settings = NestedSettings.of(model, totals, rows)
        # as it is before any search; searches work on copies
        self._anew = NestedModel(model.likelihood, model.prior, sample, settings, n_threads)
        self._around = self._anew.around
        nested, self._tol = self._nested(), _TOL * sample.total
        self._now = self._as_it_is(nested, totals, rows)
        self._around = nested.around
        self._before = self._value(nested, self._now)
        self.best, self.gain, self._ages = None, 0.0, None
        self._turn, self._n_made = 0, {_WINDOWS: 0, _CONTEXTS: 0, _AGES: 0}
        self.n_failures = self.n_returns = 0

    @property
    def is_empty(self):
        """Whether the sample shows fewer than two of the states, so that there is nothing to search."""
        return self._now.resp is None

    @property
    def concentrations(self):
        """Values by name of the concentrations that are learned, as they suit the best states."""
        return self._around.concentrations

    @property
    def comes_back(self):
        """Whether so many searches have come back to where they began that little is left to find."""
        least = _LEAST_FAILURES_WITH_AGES if self._have_ages.any() else _LEAST_FAILURES
        return self.n_failures >= least and often_came_back(self.n_returns, self.n_failures)

    def go_on(self):
        """Make one search more."""
        share, way = self._next_way()
        nested = self._nested()
        chain = self._settled(nested, self._parts(share, way), way)
        if not self._compare(nested, chain):
            n_failures, n_returns = self.n_failures, self.n_returns
            self._anneal()
            if self.n_failures:  # it counts with the search that it follows
                self.n_failures, self.n_returns = n_failures, n_returns

    def _next_way(self):
        """The share of the states to be split next, and by what."""
        while True:
            share, way = _WAYS[self._turn % len(_WAYS)]
            self._turn += 1
            if way != _AGES or self._have_ages.any():
                return share, way

    def meet(self, others):
        """Compare the best states so far with those that another fit of the same rows has found.

        Parameters
        ----------
        others : StatBag
            The states of the other fit, all of them.
        """
        nested = self._nested()
        self._compare(nested, self._as_it_is(nested, others, list(range(len(others.uids)))))
        self.n_failures = self.n_returns = 0  # nothing was searched

    def _as_it_is(self, nested, totals, rows):
        """The chain of states ``rows`` of some ``totals``, under a prior that suits them."""
        chain = nested.pass_over(as_they_are(totals, rows, self._sample, nested.around))
        for _ in range(_ROUNDS_BEFORE if nested.adapts else 1):
            nested.adapt(chain.s, _ADAPT_STEPS)
            chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        return self._suited(nested, chain)

    def _suited(self, nested, chain):
        """The chain after passes under concentrations that suit it, where they are learned."""
        value = self._value(nested, chain)
        for _ in range(_LEARNINGS if nested.learns and chain.resp is not None else 0):
            nested.learn(chain.links)
            chain = nested.iterate(chain, _LAST_STEPS, self._tol)
            last, value = value, self._value(nested, chain)
            if value - last <= self._tol:
                break
        return chain

    def _anneal(self):
        """Compare the best states so far with what annealing makes of them, and learn how much helps."""
        nested, first = self._nested(), self._rng.uniform(*self._log_powers)
        n_before = len(self._now.s)
        chain, n_left = self._annealed(nested, first)
        returned = self._compare(nested, chain)
        low, high = self._log_powers
        if n_left < _LEAST_LEFT * n_before:  # too small a power
            low = (low + first) / 2
            high = min(max(high, low + _NARROWEST), 0.0)
        elif returned:  # too large a power
            high = (high + first) / 2
            low = min(low, high - _NARROWEST)
        self._log_powers = np.array([low, high])

    def _annealed(self, nested, first):
        """The best states so far after passes with powers of likelihoods, and how many of them were left.

        A small power lets rows be in all states, from which the best ones emerge anew as it rises to one.
        It differs from state to state and from time to time, so that they seldom emerge as they were.
        The logarithm of the first power is about ``first``.

        References
        ----------
        N. Ueda, R. Nakano (1998). Deterministic annealing EM algorithm. Neural Networks 11, 271-282.
        """
        nested.adapt(self._now.s, _ADAPT_STEPS)
        chain = self._now
        for left in np.linspace(1.0, 0.0, _ANNEALED_STEPS, endpoint=False):
            uneven = np.exp(_UNEVEN * self._rng.standard_normal(len(chain.s)))
            chain = nested.pass_over(chain, np.exp(left * first * uneven))
        chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        n_left = len(chain.s)
        nested.adapt(chain.s, _ADAPT_STEPS)
        chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        if len(chain.s) > 1:
            chain = nested.iterate(joined(nested, chain), _LAST_STEPS, self._tol)
        return chain, n_left

    def _compare(self, nested, chain):
        """Keep a chain if it is better than the best so far, block by block.

        Returns whether it is as good as the best one was, and so probably the same.
        """
        gain = self._value(nested, chain) - self._before
        returned = self._is_as_good(gain)
        if not returned and chain.resp is not None:
            chain = self._suited(nested, chain)
            gain = self._value(nested, chain) - self._before
            returned = self._is_as_good(gain)
        if not returned and chain.resp is not None:
            nested, chain, gain = self._exchanged(nested, chain, gain)
        if gain > self.gain + _LEAST_GAIN and len(chain.s) <= self._n_most:
            self._now, self._around, self._ages = chain, nested.around, None
            self.best = StateCreation.of(nested, chain, self._model.prior)
            self.gain, self.n_failures, self.n_returns = gain, 0, 0
            return False
        self.n_failures += 1
        self.n_returns += returned
        return returned

    def _is_as_good(self, gain):
        """Whether a search with this gain has probably come back to the best states so far."""
        return abs(gain - self.gain) <= max(_LEAST_GAIN, self._tol)

    def _exchanged(self, nested, chain, gain):
        """The nested model, chain and gain of a search after exchanges with the best states so far."""
        better, worse, model = self._now, chain, self._nested()
        if gain > self.gain:
            better, worse = chain, self._now
            model.prior, model.around = nested.prior, nested.around
        else:
            model.adapt(better.s, _ADAPT_STEPS)
        mixed = exchanged(model, better, worse)
        value = -np.inf if mixed is None else self._value(model, mixed) - self._before
        return (model, mixed, value) if value > gain else (nested, chain, gain)

    def _nested(self):
        """A `NestedModel` under the prior of the whole model; it may adapt. Concentrations are the best."""
        return self._anew.within(self._around)

    def _value(self, nested, chain):
        """Objective of a chain, up to a constant; -inf if there are fewer than two states."""
        return -np.inf if chain.resp is None else nested.gain(chain, self._model.prior)

    def _settled(self, nested, labels, way=_WINDOWS):
        """The chain that begins with parts (their ``labels`` of rows), after passes, unions and removals.

        Parts by age are not joined in bulk: estimates of several unions at once are too rough for them, and
        most of what they gain is lost.
        """
        J, by_links = labels.max() + 1, way != _WINDOWS
        s = statistics_of_labels(nested.likelihood, self._sample, labels, J)
        chain = nested.labelled(s, labels)
        if J > 1:
            nested.adapt(s, _ADAPT_STEPS)
            if by_links:
                nested.learn(chain.links)
            chain = nested.iterate(chain, _STEPS_OF_LINKS if by_links else _FIRST_STEPS, self._tol)
        if len(chain.s) > 1 and by_links:
            nested.learn(chain.links)
        if len(chain.s) > 1 and way != _AGES:
            chain = nested.iterate(nested.cut(chain, by_links), _STEPS, self._tol)
        if len(chain.s) > 1:
            chain = nested.iterate(joined(nested, chain), _LAST_STEPS, self._tol)
        if len(chain.s) > 1:
            chain = nested.pruned(chain, _PRUNINGS)
        if nested.adapts and len(chain.s) > 1:
            nested.adapt(chain.s, _LAST_ADAPT_STEPS)
            chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        return chain

    @property
    def _have_ages(self):
        """Whether visits to each of the best states so far (J,) are not geometric."""
        if self._ages is None:
            first, last, state = runs_of(self._now.resp.argmax(axis=1), self._sample.indptr)
            weight = _weights_of(self._sample, first)
            ended = ~np.isin(last, self._sample.indptr)
            self._ages = uneven_states(last - first, state, len(self._now.s), ended, weight)
        return self._ages

    def _parts(self, share, way):
        """The part (n,) of each row, when about this share of the states are split in one of the ways."""
        sample, owner, J = self._sample, self._now.resp.argmax(axis=1), len(self._now.s)
        may = np.flatnonzero(self._have_ages if way == _AGES else np.ones(J, dtype=bool))
        chosen = np.zeros(J, dtype=bool)
        chosen[may] = self._rng.random_sample(len(may)) < share
        chosen[may[self._rng.randint(len(may))]] = True
        first, last, state = runs_of(owner, sample.indptr)
        number, self._n_made[way] = self._n_made[way], self._n_made[way] + 1
        by, may_be_many = AGES[number % len(AGES)]
        n_parts = self._n_parts() if may_be_many else 2
        labels, n = np.empty(sample.n_rows, dtype=np.intp), 0
        for k in np.unique(owner).tolist():
            own = np.flatnonzero(owner == k)
            labels[own] = n
            if chosen[k]:
                mine = state == k
                if way == _WINDOWS:
                    split = self._split(_runs_alone(sample, own, first[mine], last[mine]))
                elif way == _CONTEXTS:
                    split = self._split_by_contexts(own, *REACHES[number % len(REACHES)])
                else:
                    split = parts_by_age((last - first)[mine], n_parts, by)
                labels[own] += split
            n = int(labels[own].max()) + 1
        return labels

    def _n_parts(self):
        """At random, the most parts of a state by contexts or by age."""
        most = max(self._n_seeds, PARTS_BY_CONTEXTS // len(self._now.s))
        return self._rng.randint(max(2, most // 2), most + 1)

    def _split_by_contexts(self, rows, reach, of_states):
        """The part (n,) of each row of a state, by what is before and after it."""
        if self._contexts is None:
            self._contexts = Contexts(self._model.likelihood, self._model.prior, self._sample)
        resp = self._now.resp if of_states and len(self._now.s) > 1 else None
        return self._contexts.parts(rows, reach, self._n_parts(), self._rng, resp)

    def _split(self, sample):
        """The part (n,) of each row of a state's runs, from seeds among windows of some length."""
        lengths, rng = window_lengths(sample), self._rng
        if not lengths:
            return np.zeros(sample.n_rows, dtype=np.intp)
        n_seeds, L = rng.randint(2, self._n_seeds + 1), lengths[rng.randint(len(lengths))]
        of = windows(self._model.likelihood, self._model.prior, sample, L)
        return of.seeded(n_seeds, rng)[1]


def _runs_alone(sample, rows, first, last):
    """`StateSample` of the runs from ``first`` to before ``last`` of a sample, which have these ``rows``."""
    weight = _weights_of(sample, first)
    return StateSample(sample.z[rows], np.concatenate([[0], np.cumsum(last - first)]), weight)


def _weights_of(sample, first):
    """Weights (m,) of the rows ``first`` (m,) of a sample, or None."""
    if sample.weight is None:
        return None
    return sample.weight[np.searchsorted(sample.indptr, first, side="right") - 1]
