"""Dirichlet priors of distributions over types, such as words: given, or learned about their frequencies.

Design note
-----------
(a) Frequencies of words differ by orders of magnitude. Under equal pseudo-counts each component pays
    anew for learning which words are rare, so that in short texts hardly any component is worth its cost. The
    learned prior has ``lam_v = even + strength * p_v``, with the relative frequencies p of the types in
    all data. Equal pseudo-counts are among its values, and so are those in proportion to frequencies.
(b) The two weights maximise the evidence of all components together (empirical Bayes, Minka 2000), in steps
    of bounded length; doc/formulas_word_priors.rst has the slopes. One component alone would have infinite
    strength, and says nothing of how components differ: the prior then stays as it is, so that births find
    topics that differ. Nor does either weight grow to more than the tokens of a mean component. Components
    would then be as the prior is, and new ones, of which there may be several with more data, could not
    differ from it. All components together thus have priors worth no more than all tokens.
(c) A small part of p is even, too, so that types that were never seen keep some mass, whatever the weights
    are.
(d) The frequencies are those of the statistics at hand. When a stream brings new data, p follows where
    this raises the evidence, so that no step lowers it.
(e) Learning begins with a prior that is worth so much for each type that occurs. Hashed words have a
    vocabulary of a million types, most of which never occur: a prior worth so much for each of these would
    outweigh all tokens, and no birth would ever pay. The first batch of a stream does not tell which types
    will occur, and all of them count.
(f) Before one component is compared with several, it has a prior of the same worth as they may have
    together: that of all tokens (`alone`). Several would otherwise win because they have more of the prior.
(g) All types that do not occur may be replaced by one entry with the sum of their pseudo-counts
    (`with_one_rest`). The evidence of components stays the same, and so do the expectations of all other
    types.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._counts import digamma_rows
from .ascent import ascended
from .counts import log_rise_of_totals, log_rising_factorials, types_that_occur

# Where learning begins: pseudo-counts for each type that occurs, those that are even over all types, and
# those in proportion to frequencies. If all types occur, they are together the default that is not learned.
_FIRST_EVEN = _FIRST_STRENGTH = 0.1
# Part of the frequencies that all types share evenly.
_EVEN_PART = 0.01
# Least even pseudo-count and strength, and how far the logarithm of each may move in a step.
_LEAST, _LONGEST_STEP = np.array([1e-4, 1.0]), 0.2
# Least slope of the evidence that moves a weight, in nats for a factor e, and L-BFGS iterations in a step.
_LEAST_SLOPE, _ITERATIONS = 0.01, 20
# Frequencies follow those of the data once they differ by so much, in total variation: more than rounding.
_MOVED = 1e-6


class AboutFrequencies(NamedTuple):
    """The parts of pseudo-counts ``even + strength * p``; see the module's note.

    Attributes
    ----------
    p : ndarray, shape (V,)
        Relative frequencies of the types, smoothed; they sum to 1.
    even : float
        The part that all types have.
    strength : float
        Sum of the parts that are in proportion to frequencies.
    times : ndarray, shape (V,), or 1.0
        How many types each entry stands for; 1.0 if each stands for one.
    """

    p: np.ndarray
    even: float
    strength: float
    times: np.ndarray | float = 1.0


class DirichletPrior(NamedTuple):
    """Pseudo-counts ``lam`` of the types, (V,), their ``total``, and their parts if these are learned.

    It is made by `dirichlet_prior`, or by `prior_about` if it is learned.
    """

    lam: np.ndarray
    total: float
    about: AboutFrequencies | None = None


def dirichlet_prior(lam):
    """`DirichletPrior` of pseudo-counts (V,) that stay as they are."""
    return DirichletPrior(lam, float(lam.sum()))


def first_prior(counts, *, streaming=False, times=1.0):
    """`DirichletPrior` from which learning begins, of types that occur ``counts`` (V,) times in the data.

    If it is ``streaming``, other types may occur later. ``times`` as in `AboutFrequencies`.
    """
    n_types = _n_types(times, counts)
    n = n_types if streaming else max(1, np.count_nonzero(counts))
    p = frequencies(counts, times)
    return prior_about(p, _FIRST_EVEN * n / n_types, _FIRST_STRENGTH * n, times)


def prior_about(p, even, strength, times=1.0):
    """`DirichletPrior` that is learned, with these parts."""
    lam = even * times + strength * p
    about = AboutFrequencies(p, float(even), float(strength), times)
    return DirichletPrior(lam, float(lam.sum()), about)


def frequencies(counts, times=1.0):
    """Relative frequencies (V,) of types that occur ``counts`` (V,) times, smoothed.

    ``times`` as in `AboutFrequencies`.
    """
    total, even = counts.sum(), times / _n_types(times, counts)
    shares = counts / total if total > 0 else even
    return (1.0 - _EVEN_PART) * shares + _EVEN_PART * even


def _n_types(times, entries):
    """Number of types that some ``entries`` (V,) stand for; ``times`` as in `AboutFrequencies`."""
    return len(entries) if np.ndim(times) == 0 else times.sum()


def with_one_rest(prior, types):
    """The `DirichletPrior` of some ``types`` (U,), and of all others together as one entry, the last."""
    lam = _with_rest(prior.lam, types)
    if prior.about is None:
        return DirichletPrior(lam, prior.total)
    p, even, strength, times = prior.about
    times = _with_rest(np.broadcast_to(np.asarray(times, dtype=float), len(p)), types)
    return DirichletPrior(
        lam, prior.total, AboutFrequencies(_with_rest(p, types), even, strength, times)
    )


def _with_rest(values, types):
    """The values of ``types`` (U,), and the sum of all other ``values`` (V,)."""
    others = np.ones(len(values), dtype=bool)
    others[types] = False
    return np.append(values[types], values[others].sum())


def dirichlet_evidence(prior, rising, total):
    """Evidence (n,) from log rising factorials of counts and from totals of counts, each (n,)."""
    return rising - log_rise_of_totals(prior.total, total)


def learned(prior, counts, n_steps):
    """The prior after steps of empirical Bayes, none of which lowers the evidence.

    Parameters
    ----------
    prior : DirichletPrior
        One whose parts are learned.
    counts : ndarray, shape (K, P), C-contiguous
        Counts of the types in components, in the first V columns.
    n_steps : int

    Returns
    -------
    DirichletPrior
        The same object if nothing is gained.
    """
    V = len(prior.lam)
    everything = counts[:, :V].sum(axis=0)
    if not everything.sum() > 0:
        return prior
    some = types_that_occur(counts, V)
    if some is not None:
        small, times = with_one_rest(prior, some), prior.about.times
        few = np.column_stack([counts[:, some], np.zeros(len(counts))])
        found = learned(small, np.ascontiguousarray(few), n_steps)
        if found is small:
            return prior
        follows = found.about.p is not small.about.p
        p = frequencies(everything, times) if follows else prior.about.p
        return prior_about(p, found.about.even, found.about.strength, times)
    times = prior.about.times
    p = frequencies(everything, times)
    if 0.5 * np.abs(p - prior.about.p).sum() > _MOVED:
        evidence, there = _Evidence(p, counts, times), prior_about(p, *prior.about[1:])
        if evidence.value(there) >= evidence.value(prior):
            prior = there
    used = counts[:, :V].sum(axis=1) > 0
    if np.count_nonzero(used) < 2:
        return prior
    evidence = _Evidence(prior.about.p, np.ascontiguousarray(counts[used]), times)
    for _ in range(n_steps):
        better = _step(evidence, prior)
        if better is prior:
            break
        prior = better
    return prior


def alone(prior, counts):
    """The prior that suits a component that is all there is; see the module's note.

    Parameters
    ----------
    prior : DirichletPrior
        One whose parts are learned.
    counts : ndarray, shape (1, P), C-contiguous
        Counts of the types, in the first V columns.

    Returns
    -------
    DirichletPrior
        The same object if nothing is gained.
    """
    V = len(prior.lam)
    if not counts[:, :V].sum() > 0:
        return prior
    times = prior.about.times
    evidence = _Evidence(frequencies(counts[0, :V], times), counts, times)
    first = first_prior(counts[0, :V], times=times).about
    wanted = np.array([first.even, np.inf])
    weights = np.maximum(np.minimum(wanted, evidence.most), np.minimum(wanted, _LEAST))
    there = prior_about(first.p, *weights, times)
    return there if evidence.value(there) > evidence.value(prior) + _LEAST_SLOPE else prior


def _step(evidence, prior):
    """The prior after one step of its weights; itself if nothing is gained."""
    start = np.log([prior.about.even, prior.about.strength])
    value, slopes = evidence(prior)
    if np.abs(slopes).max() < _LEAST_SLOPE:
        return prior

    def at(logs):
        there = prior_about(prior.about.p, *np.exp(logs), prior.about.times)
        return *evidence(there), there

    low = np.minimum(start, np.maximum(start - _LONGEST_STEP, np.log(_LEAST)))
    high = np.maximum(start, np.minimum(start + _LONGEST_STEP, np.log(evidence.most)))
    best = value, prior
    return ascended(at, start, low, high, best, max_iter=_ITERATIONS, slope=_LEAST_SLOPE)[1]


class _Evidence:
    """Evidence of components with ``counts`` (K, P), and its slopes in the logarithms of the weights.

    ``most`` (2,) are the weights with which the even part, or the other, is worth a mean component's tokens;
    ``times`` as in `AboutFrequencies`.
    """

    def __init__(self, p, counts, times=1.0):
        self._p, self._counts, self._times = p, counts, times
        self._totals = counts[:, : len(p)].sum(axis=1)
        self.most = np.array([1.0 / _n_types(times, p), 1.0]) * self._totals.mean()
        self._with_none = np.concatenate([counts, np.zeros((1, counts.shape[1]))])

    def value(self, prior):
        """The sum of the evidences of the components, in nats."""
        rising = log_rising_factorials(self._counts, prior.lam)
        return float(dirichlet_evidence(prior, rising, self._totals).sum())

    def __call__(self, prior):
        psi = np.empty((len(self._with_none), len(self._p)))
        digamma_rows(self._with_none, prior.lam, psi, 1)  # minus psi of each row's total
        slopes = psi[:-1].sum(axis=0) - len(self._totals) * psi[-1]  # in the pseudo-counts
        even = prior.about.even * (self._times * slopes).sum()
        strength = prior.about.strength * np.dot(self._p, slopes)
        return self.value(prior), np.array([even, strength])
