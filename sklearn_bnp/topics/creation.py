"""New topics for a target, from the tokens that documents assign to it (Hughes 2016, Sec. 5.5.3).

A topic model is nested in the target. From some topics (see `starts.py`), it makes a few passes, and then
merges pairs for as long as this raises the nested objective. Too many seeds and exact merges find structure
more reliably than the right number of seeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..engine.affinity import union_evidence
from ..engine.trials import MORE_PASSES
from ..engine.unions import entropies_of_unions
from ..likelihood.seeding import seeding_mass
from .document_terms import log_probability_of_counts, nested_union_gains
from .documents import DocumentSettings
from .local import document_parameters, document_step, document_summary

# Passes before topics merge: share of the target's documents, and iterations of each document.
_PASSES = ((0.25, 10), (0.5, 10))
# Rounds, of a pass and merges each; iterations of each document in a pass.
_ROUNDS, _ITERATIONS = 12, 15
# Most passes after the rounds, and the gain per token, in nats, at which they stop.
_SETTLING_PASSES, _SETTLED = 10, 1e-3
# Cost of pruning, in passes: the smallest topics are tried until their documents add up to this.
_PRUNING_PASSES = 1
# Pairs of which the entropy of the union is computed, for each topic: the best without it.
_PAIRS_A_TOPIC = 5
# Most documents in the rounds; the last pass is over all.
ROUND_DOCUMENTS = 1000
# Least tokens of a new topic, and least share of the target's tokens.
LEAST_TOKENS, LEAST_SHARE = 20.0, 0.01
# Logarithms between which the sum of the parameters of the documents' prior is learned, and how well.
_LOG_SUMS, _LOG_TOLERANCE = (-3.0, 6.0), 0.05
# Steps of empirical Bayes on the prior of topics before starts are compared.
_ADAPT_STEPS = 20
# Where priors are learned before topics are joined: passes before they are learned, passes before topics are
# joined, and passes at the most; steps of empirical Bayes in a pass; topics that documents try to do without.
_UNLEARNED, _APART, _LATE_ROUNDS, _STEPS_A_PASS, _RESTARTS = 3, 6, 26, 5, 5
# Where topics are not joined: passes at the most and at the least, and nats a token that are no gain.
_APART_PASSES, _LEAST_PASSES, _SAME = 30, 5, 1e-6
# Least documents of a subset, if there are so many.
_LEAST_DOCUMENTS = 200


class Found(NamedTuple):
    """Topics in a topic, of which passes have found something.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Their statistics.
    value : float
        The nested objective of the sample, estimated. After all rounds, it is the one under the priors that a
        fit would learn.
    nested : Nested
        The model with the documents' prior under which they were found.
    """

    s: np.ndarray
    value: float
    nested: Nested


class Nested(NamedTuple):
    """A small topic model of the tokens that documents assign to one target.

    Attributes
    ----------
    model : TopicModel
    sample : DocumentSample
        The target's tokens.
    doc_prior : float
        Sum of the parameters of the documents' prior.
    n_threads : int
    learns : bool
        Whether this sum is learned between passes.
    others : ndarray, shape (K, P), or None
        Statistics of the topics beside the target, which share the prior of topics. None if that prior does
        not adapt to successors.
    """

    model: Any
    sample: Any
    doc_prior: float
    n_threads: int = 1
    learns: bool = False
    others: Any = None

    def adapted(self, s, n_steps):
        """The model with the prior that suits topics with statistics ``s`` (J, P), and the others."""
        every = s if self.others is None else np.concatenate([self.others, s])
        prior = self.model.likelihood.update_prior(self.model.prior, every, n_steps)
        return self._replace(model=self.model._replace(prior=prior))

    def learned(self, step, docs):
        """The model after it has learned from the documents' counts; itself if it learns nothing."""
        return self._suiting(step, docs) if self.learns else self

    def as_in_a_fit(self, step, sample, n_steps=_ADAPT_STEPS):
        """The model with all that the laps of a fit learn: the documents' prior and that of topics."""
        there = self.adapted(step.s * (self.sample.total / sample.total), n_steps)
        learns = "doc_concentration" in self.model.learned
        return there._suiting(step, sample.docs) if learns else there

    def _suiting(self, step, docs):
        """The model with the documents' prior that suits their counts best."""
        shares = step.s[:, -1] / step.s[:, -1].sum()

        def negated(log_sum):
            a = np.exp(log_sum) * shares
            return -log_probability_of_counts(step.counts, a, docs.weight)

        best = minimize_scalar(
            negated, bounds=_LOG_SUMS, method="bounded", options={"xatol": _LOG_TOLERANCE}
        )
        return self._replace(doc_prior=float(np.exp(best.x)))

    def prior(self, s):
        """Parameters (J,) of the documents' prior: the target's is shared in proportion to masses."""
        return self.doc_prior * s[:, -1] / s[:, -1].sum()

    def step(self, sample, s, max_iter, start=None, n_restarts=0):
        """A pass over documents with parameters from ``s``; with ``start`` they go on from these counts.

        With ``n_restarts``, they also start anew, try to do without so many topics, and keep what is better.
        """
        likelihood, prior = self.model.likelihood, self.model.prior
        settings = DocumentSettings(
            cold=start is None or n_restarts > 0, max_iter=max_iter, n_restarts=n_restarts,
            n_threads=self.n_threads,
        )  # fmt: skip
        theta = document_parameters(likelihood, prior, s)
        given = {"mass": sample.mass, "start": start, "want_resp": True}
        return document_step(likelihood, theta, sample.docs, self.prior(s), settings, **given)

    def settle(self, sample, s):
        """The model and the last of several passes, which end when they gain little."""
        nested, last = self, -np.inf
        for _ in range(_SETTLING_PASSES):
            step = nested.step(sample, s, _ITERATIONS)
            nested = nested.learned(step, sample.docs)
            s = step.s * (self.sample.total / sample.total)
            value = nested._objective(step.s, step.entropy, step.counts, slice(None), sample)
            if value - last < _SETTLED * sample.total:
                break
            last = value
        return nested, step

    def evidence(self, s):
        """Data terms (J,) of topics with statistics ``s``."""
        return self.model.likelihood.evidence(self.model.prior, s)

    def groups(self, sample, step):
        """Groups of topics: disjoint pairs whose union raises the nested objective, and single ones."""
        J = len(step.s)
        i, j = np.triu_indices(J, 1)
        pairs, scale = np.column_stack([i, j]), self.sample.total / sample.total
        gain = scale * nested_union_gains(
            pairs, step.counts, self.prior(step.s), sample.docs.weight
        )
        s = step.s * scale
        own = self.evidence(s)
        gain += union_evidence(self.model.likelihood, self.model.prior, s, i, j) - own[i] - own[j]
        open_ = np.flatnonzero(gain > 0)
        if len(open_) > _PAIRS_A_TOPIC * J:
            best = np.argsort(-gain[open_], kind="stable")[: _PAIRS_A_TOPIC * J]
            open_ = np.sort(open_[best])
        if len(open_):
            entropy = entropies_of_unions(
                step.resp, sample.docs.entry_weight, pairs[open_], self.n_threads
            )
            gain[open_] += scale * (entropy - step.entropy[i[open_]] - step.entropy[j[open_]])
        used, groups = np.zeros(J, dtype=bool), []
        for pair in open_[np.argsort(-gain[open_], kind="stable")]:
            if J - len(groups) == 2:
                break
            if gain[pair] > 0 and not (used[i[pair]] or used[j[pair]]):
                used[[i[pair], j[pair]]] = True
                groups.append([i[pair], j[pair]])
        return groups + [[k] for k in np.flatnonzero(~used)]

    def pruned(self, sample, step, start):
        """The step without small topics whose documents do better with the others.

        ``start`` (J, P) are the statistics that gave the step its parameters.
        """
        theta = document_parameters(self.model.likelihood, self.model.prior, start)
        keep, scale = list(range(len(step.s))), self.sample.total / sample.total
        s, counts, resp = step.s, step.counts, step.resp
        entropy = step.entropy
        room = _PRUNING_PASSES * len(sample.docs)
        for j in np.argsort(s[:, -1], kind="stable").tolist():
            others, using = [k for k in keep if k != j], counts[:, j] > 0
            room -= np.count_nonzero(using)
            if len(keep) == 2 or room < 0:
                break
            docs, entries = sample.docs.chosen(using)
            some = sample._replace(docs=docs, mass=sample.mass[entries])
            before = document_summary(self.model.likelihood, docs, resp[entries], theta)
            after = self.step(some, s[others], _ITERATIONS)
            new_s, new_counts, new_entropy = s.copy(), counts.copy(), entropy.copy()
            new_s[others] += after.s - before.s[others]
            new_entropy[others] += after.entropy - before.entropy[others]
            new_counts[using] = 0.0
            new_counts[np.ix_(using, others)] = after.counts
            gain = self._objective(new_s, new_entropy, new_counts, others, sample, scale)
            if gain > self._objective(s, entropy, counts, keep, sample, scale):
                if resp is step.resp:
                    resp = resp.copy()
                resp[np.ix_(entries, others)] = after.resp
                resp[entries, j] = 0.0
                s, counts, entropy, keep = new_s, new_counts, new_entropy, others
        return step._replace(
            s=s[keep], entropy=entropy[keep], counts=counts[:, keep],
            resp=np.ascontiguousarray(resp[:, keep]),
        )  # fmt: skip

    def rounds(self, some, s, least, n_rounds=_ROUNDS):
        """Passes over ``some`` documents, in turns with unions and pruning; None if one topic is left.

        Parameters
        ----------
        some : DocumentSample
            Documents of the sample.
        s : ndarray, shape (J, P)
            Statistics to start from, of as many tokens as the sample has.
        least : float
            Topics of fewer tokens are left out.
        n_rounds : int
            With all rounds, topics settle in some more passes.

        Returns
        -------
        Found or None
        """
        nested, scale, start, settled = self, self.sample.total / some.total, None, False
        for i in range(n_rounds):
            if len(s) < 2:
                return None
            n, step = len(s), nested.step(some, s, _ITERATIONS, start)
            nested = nested.learned(step, some.docs)
            if settled:
                step = nested.pruned(some, step, s)
            groups = nested.groups(some, step)
            s, start = _joined(step, groups, scale, least)
            if settled and len(s) == n:
                break
            settled = i > 1 and len(s) == n
        if len(s) < 2:
            return None
        if n_rounds == _ROUNDS:
            nested, step = nested.settle(some, s)
            judge = nested.as_in_a_fit(step, some)
        else:
            judge, step = nested, nested.step(some, s, _ITERATIONS)
        value = judge._objective(step.s, step.entropy, step.counts, slice(None), some, scale)
        return Found(step.s * scale, value, nested)

    def late_rounds(self, some, s, least):
        """As `rounds`, but all priors are learned before any topics are joined.

        In every other pass documents also start anew, and try to do without some of their topics.

        Parameters
        ----------
        some : DocumentSample
            Documents of the sample.
        s : ndarray, shape (J, P)
            Statistics to start from, of as many tokens as the sample has.
        least : float
            Topics of fewer tokens are left out.

        Returns
        -------
        Found or None
            Its model has the priors that were learned.
        """
        nested, scale, start, last = self, self.sample.total / some.total, None, -np.inf
        for i in range(_LATE_ROUNDS):
            step = nested.step(some, s, _ITERATIONS, start, 0 if i % 2 else _RESTARTS)
            if i >= _UNLEARNED:
                nested = nested.as_in_a_fit(step, some, _STEPS_A_PASS)
            n, joins = len(step.s), i >= _APART
            groups = nested.groups(some, step) if joins else [[k] for k in range(n)]
            s, start = _joined(step, groups, scale, least)
            if len(s) < 2:
                return None
            value = nested._objective(step.s, step.entropy, step.counts, slice(None), some, scale)
            if joins and len(s) == n and value - last < _SETTLED * self.sample.total:
                break
            last = value
        return Found(step.s * scale, value, nested)

    def apart(self, some, s, value=np.inf):
        """Passes over ``some`` documents in which no topics are joined.

        Parameters
        ----------
        some : DocumentSample
            Documents of the sample.
        s : ndarray, shape (J, P)
            Statistics to start from, of as many tokens as the sample has.
        value : float
            Objective to exceed. Passes end once it is out of reach, or when they gain little.

        Returns
        -------
        Found
        """
        nested, scale, start, values = self, self.sample.total / some.total, None, []
        while len(values) < _APART_PASSES:
            step = nested.step(some, s, _ITERATIONS, start)
            nested = nested.learned(step, some.docs)
            s, start = step.s * scale, step.counts
            values.append(nested._objective(step.s, step.entropy, start, slice(None), some, scale))
            if len(values) >= _LEAST_PASSES:
                gain = values[-1] - values[-2]
                if gain < _SAME * self.sample.total or values[-1] + MORE_PASSES * gain < value:
                    break
        return Found(s, values[-1], nested)

    def tidied(self, some, found, least):
        """`Found` after unions of topics that are alike, without topics of fewer than ``least`` tokens."""
        step = self.step(some, found.s, _ITERATIONS)
        s, _ = _joined(step, self.groups(some, step), self.sample.total / some.total, least)
        return found if len(s) == len(found.s) else self.apart(some, s)

    def value_of(self, s):
        """The nested objective of the whole sample with topics of statistics ``s``, after two passes."""
        step = self.step(self.sample, s, _ITERATIONS, None, _RESTARTS)
        step = self.step(self.sample, step.s, _ITERATIONS, step.counts)
        return self._objective(step.s, step.entropy, step.counts, slice(None), self.sample)

    def _objective(self, s, entropy, counts, keep, sample, scale=1.0):
        """Nested objective of the topics ``keep``, up to a constant, times ``scale``."""
        docs = log_probability_of_counts(counts[:, keep], self.prior(s[keep]), sample.docs.weight)
        others = 0.0 if self.others is None else self.evidence(self.others).sum()
        return others + self.evidence(scale * s[keep]).sum() + scale * (entropy[keep].sum() + docs)


def _joined(step, groups, scale, least):
    """Where the next pass starts: unions of topics that have enough tokens.

    Parameters
    ----------
    step : DocumentStep
        What a pass over documents has found.
    groups : list of list of int
        The topics of each union.
    scale : float
        Tokens of the sample for each one of these documents.
    least : float
        Unions of fewer tokens of the sample are left out.

    Returns
    -------
    s : ndarray, shape (J, P)
        Statistics for the whole sample.
    counts : ndarray, shape (D, J), or None
        The documents' counts; None if no union is left.
    """
    kept = [g for g in groups if step.s[g, -1].sum() * scale >= least]
    s = np.array([step.s[g].sum(axis=0) for g in kept]) * scale
    return s, np.column_stack([step.counts[:, g].sum(axis=1) for g in kept]) if kept else None


def developed(found):
    """Statistics (J, P) of topics after a pass over the whole sample, given those of some documents."""
    return found.nested.step(found.nested.sample, found.s, _ITERATIONS).s


def document_seeds(nested, n_seeds, rng):
    """Statistics (J, P) of topics after two short passes from random documents."""
    sample = nested.sample
    s = _seeds(nested.model.likelihood, sample, n_seeds, rng)
    for part, max_iter in _PASSES:
        some = subset(sample, int(part * len(sample.docs)), rng)
        step = nested.step(some, s, max_iter)
        s = step.s[step.s[:, -1] >= sample.one_token] * (sample.total / some.total)
    return s


def _seeds(likelihood, sample, n_seeds, rng):
    """Statistics (J, P) of seeds: each is half a random document and half the target, of equal mass."""
    docs, mass = sample
    everything = _summary(likelihood, docs, mass)
    sizes = np.add.reduceat(mass * docs.counts, docs.indptr[:-1])
    sizes = seeding_mass(sizes, docs.weight)
    n_seeds = min(n_seeds, len(docs))
    chosen = rng.choice(len(docs), n_seeds, replace=False, p=sizes / sizes.sum())
    s = np.array([_summary(likelihood, *_one(docs, mass, d)) for d in chosen])
    mean = everything / everything[-1]
    return (s / s[:, -1:] + mean) * (0.5 * everything[-1] / n_seeds)


def subset(sample, n_docs, rng):
    """A random subset of the documents, of a few hundred at least."""
    n, n_docs = len(sample.docs), max(_LEAST_DOCUMENTS, n_docs)
    if n_docs >= n:
        return sample
    kept = np.zeros(n, dtype=bool)
    kept[rng.choice(n, n_docs, replace=False)] = True
    docs, entries = sample.docs.chosen(kept)
    return sample._replace(docs=docs, mass=sample.mass[entries])


def _one(docs, mass, d):
    """Document d alone, and the mass of its entries."""
    entries = slice(docs.indptr[d], docs.indptr[d + 1])
    return docs.taken(entries, [entries.stop - entries.start], [d]), mass[entries]


def _summary(likelihood, docs, mass):
    """Statistics (P,) of all entries."""
    return document_summary(likelihood, docs, mass[:, np.newaxis]).s[0]
