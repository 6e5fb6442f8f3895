"""Searches for better states: splits of many at once, of which those stay that pay."""

from __future__ import annotations

import numpy as np

from .contexts import REACHES, Contexts
from .creation import StateCreation, statistics_of_labels, window_lengths, windows
from .exchange import exchanged
from .joins import joined
from .nested_chain import NestedChain, NestedModel
from .pairs import as_they_are
from .sampling import StateSample, runs_of

# Passes of the parts, after bulk unions of parts, and of what is left in the end.
_FIRST_STEPS, _STEPS, _LAST_STEPS = 6, 4, 8
# Passes of parts by contexts: how states follow each other is learned slowly.
_STEPS_OF_CONTEXTS = 60
# Parts by contexts of all states together, at the most, unless each state may have more.
PARTS_BY_CONTEXTS = 20
# Passes end when they gain less than this a row, in nats; what differs by no more may be the same.
_TOL = 1e-4
# Passes of states that are annealed, limits of the power of their likelihoods in the first one, and by how
# much states differ in it: the standard deviation of the logarithm of its exponent.
_ANNEALED_STEPS, _FIRST_POWER, _UNEVEN = 12, (0.02, 0.5), 0.25
# Steps of empirical Bayes that let the prior suit the parts, where it adapts.
_ADAPT_STEPS = 5
# Rounds of passes of the present states, and of steps of the prior that they are compared under.
_ROUNDS_BEFORE = 3
# Small states that may be tried for removal.
_PRUNINGS = 5
# Least gain, in nats, of a search that counts.
_LEAST_GAIN = 1.0
# Shares of the states that searches split, in turns, and whether by contexts of rows.
_WAYS = ((1.0, True), (1.0, False), (0.5, False), (1.0, False), (0.5, False))
# Little is left to find once so many searches have come back to where they began, and so many more for each
# that ended elsewhere.
_RETURNS, _RETURNS_PER_FAILURE = 4, 0.25
# So many searches are made after the last gain in any case, so that two of them split by contexts.
_LEAST_FAILURES = 6


class StateSearch:
    """Searches for states that take the place of some, each from the best ones so far.

    A hidden Markov model is nested in the states, as in births from pairs. In turns, all states are split
    into parts, and a random half of them; seeds are windows of rows, or rows together with those next to them
    (`Contexts`). Passes follow, in which any row may go to any part. Then parts are
    joined, and small ones are dropped, for as long as that raises the objective. What comes of this is
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
        self._model, self._rng, self._n_threads = model, rng, n_threads
        self._n_seeds, self._n_most, self._n_searches = n_seeds, n_most, 0
        self._settings = NestedChain.of(model, totals, rows)
        self._sample, self._contexts = sample, None
        nested = self._nested()
        self._tol = _TOL * sample.total
        self._now = self._as_it_is(nested, totals, rows)
        self._before = self._value(nested, self._now)
        self.best, self.gain = None, 0.0
        self.n_failures = self.n_returns = 0

    @property
    def is_empty(self):
        """Whether the sample shows fewer than two of the states, so that there is nothing to search."""
        return self._now.resp is None

    @property
    def comes_back(self):
        """Whether so many searches have come back to where they began that little is left to find."""
        elsewhere = self.n_failures - self.n_returns
        if self.n_failures < _LEAST_FAILURES:
            return False
        return self.n_returns >= _RETURNS + _RETURNS_PER_FAILURE * elsewhere

    def go_on(self):
        """Make one search more."""
        n_rounds, turn = divmod(self._n_searches, len(_WAYS))
        share, by_context = _WAYS[turn]
        self._n_searches += 1
        nested = self._nested()
        reach, of_states = REACHES[n_rounds % len(REACHES)] if by_context else (None, False)
        n_steps = _STEPS_OF_CONTEXTS if by_context else _FIRST_STEPS
        parts = self._parts(share, reach, of_states)
        chain = self._settled(nested, parts, n_steps, by_links=by_context)
        if not self._compare(nested, chain):
            n_failures, n_returns = self.n_failures, self.n_returns
            nested = self._nested()
            self._compare(nested, self._annealed(nested))
            if self.n_failures:  # it counts with the search that it follows
                self.n_failures, self.n_returns = n_failures, n_returns

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
        return chain

    def _annealed(self, nested):
        """The best states so far, after passes with powers of their likelihoods.

        A small power lets rows be in all states, from which the best ones emerge anew as it rises to one.
        It differs from state to state and from time to time, so that they seldom emerge as they were.

        References
        ----------
        N. Ueda, R. Nakano (1998). Deterministic annealing EM algorithm. Neural Networks 11, 271-282.
        """
        nested.adapt(self._now.s, _ADAPT_STEPS)
        chain, first = self._now, self._rng.uniform(*np.log(_FIRST_POWER))
        for left in np.linspace(1.0, 0.0, _ANNEALED_STEPS, endpoint=False):
            uneven = np.exp(_UNEVEN * self._rng.standard_normal(len(chain.s)))
            chain = nested.pass_over(chain, np.exp(left * first * uneven))
        chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        nested.adapt(chain.s, _ADAPT_STEPS)
        chain = nested.iterate(chain, _LAST_STEPS, self._tol)
        if len(chain.s) < 2:
            return chain
        return nested.iterate(joined(nested, chain), _LAST_STEPS, self._tol)

    def _compare(self, nested, chain):
        """Keep a chain if it is better than the best so far, block by block.

        Returns whether it is as good as the best one was, and so probably the same.
        """
        gain = self._value(nested, chain) - self._before
        returned = abs(gain - self.gain) <= max(_LEAST_GAIN, self._tol)
        if not returned and chain.resp is not None:
            nested, chain, gain = self._exchanged(nested, chain, gain)
        if gain > self.gain + _LEAST_GAIN and len(chain.s) <= self._n_most:
            self._now, self.best = chain, StateCreation.of(nested, chain, self._model.prior)
            self.gain, self.n_failures, self.n_returns = gain, 0, 0
            return False
        self.n_failures += 1
        self.n_returns += returned
        return returned

    def _exchanged(self, nested, chain, gain):
        """The nested model, chain and gain of a search after exchanges with the best states so far."""
        better, worse, model = self._now, chain, self._nested()
        if gain > self.gain:
            better, worse, model.prior = chain, self._now, nested.prior
        else:
            model.adapt(better.s, _ADAPT_STEPS)
        mixed = exchanged(model, better, worse)
        value = -np.inf if mixed is None else self._value(model, mixed) - self._before
        return (model, mixed, value) if value > gain else (nested, chain, gain)

    def _nested(self):
        """A `NestedModel` under the prior of the whole model; it may adapt."""
        model = self._model
        return NestedModel(
            model.likelihood, model.prior, self._sample, self._settings, self._n_threads
        )

    def _value(self, nested, chain):
        """Objective of a chain, up to a constant; -inf if there are fewer than two states."""
        return -np.inf if chain.resp is None else nested.gain(chain, self._model.prior)

    def _settled(self, nested, labels, n_steps=_FIRST_STEPS, by_links=False):
        """The chain that begins with parts (their ``labels`` of rows), after passes, unions and removals.

        At first there are no more than ``n_steps`` passes. See `NestedModel.cut` for ``by_links``.
        """
        J = labels.max() + 1
        s = statistics_of_labels(nested.likelihood, self._sample, labels, J)
        chain = nested.labelled(s, labels)
        if J > 1:
            nested.adapt(s, _ADAPT_STEPS)
            chain = nested.iterate(chain, n_steps, self._tol)
        if len(chain.s) > 1:
            chain = nested.iterate(nested.cut(chain, by_links), _STEPS, self._tol)
        if len(chain.s) > 1:
            chain = nested.iterate(joined(nested, chain), _LAST_STEPS, self._tol)
        return nested.pruned(chain, _PRUNINGS) if len(chain.s) > 1 else chain

    def _parts(self, share, reach=None, of_states=False):
        """The part (n,) of each row, when about this share of the states are split.

        States are split by contexts of this ``reach``, or by windows if it is None.
        """
        sample, owner, J = self._sample, self._now.resp.argmax(axis=1), len(self._now.s)
        chosen = self._rng.random_sample(J) < share
        chosen[self._rng.randint(J)] = True
        first, last, state = runs_of(owner, sample.indptr)
        labels, n = np.empty(sample.n_rows, dtype=np.intp), 0
        for k in np.unique(owner).tolist():
            own = np.flatnonzero(owner == k)
            labels[own] = n
            if chosen[k]:
                mine = state == k
                if reach is None:
                    split = self._split(_runs_alone(sample, own, first[mine], last[mine]))
                else:
                    split = self._split_by_contexts(own, reach, J, of_states and J > 1)
                labels[own] += split
            n = int(labels[own].max()) + 1
        return labels

    def _split_by_contexts(self, rows, reach, J, of_states):
        """The part (n,) of each row of one of J states, by what is before and after it."""
        if self._contexts is None:
            self._contexts = Contexts(self._model.likelihood, self._model.prior, self._sample)
        most = max(self._n_seeds, PARTS_BY_CONTEXTS // J)
        n_seeds = self._rng.randint(max(2, most // 2), most + 1)
        resp = self._now.resp if of_states else None
        return self._contexts.parts(rows, reach, n_seeds, self._rng, resp)

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
    weight = sample.weight
    if weight is not None:
        weight = weight[np.searchsorted(sample.indptr, first, side="right") - 1]
    return StateSample(sample.z[rows], np.concatenate([[0], np.cumsum(last - first)]), weight)
