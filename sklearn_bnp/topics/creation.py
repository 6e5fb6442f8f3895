"""New topics for a target, from what documents have of it (Hughes 2016, Sec. 5.5.3).

A topic model nested in the target: seeds from random documents, a few passes, then merges of pairs for
as long as they raise the nested objective. Too many seeds and an exact way back find structure more
reliably than the right number of seeds.
"""

from __future__ import annotations

import numpy as np

from ..engine.unions import entropies_of_unions
from ..likelihood.seeding import seeding_mass
from .documents import Settings
from .local import document_parameters, document_step, document_summary

# Passes over the target's documents before topics merge: share of the documents, and iterations.
_PASSES = ((0.25, 10), (0.5, 10))
# Rounds of a pass and merges; iterations of a pass.
_ROUNDS, _ITERATIONS = 12, 15
# More passes when topics have merged, until they gain no more than this a token.
_SETTLING_PASSES, _SETTLED = 10, 1e-3
# Passes that pruning may cost: the smallest topics are tried until their documents are so many.
_PRUNING_PASSES = 1
# Documents for the rounds, at the most but for the last.
_ROUND_DOCUMENTS = 1000
# Least tokens of a new topic, and least share of the target's.
_LEAST_TOKENS, _LEAST_SHARE = 20.0, 0.01
_LEAST_DOCUMENTS = 200


class _Nested:
    """A small topic model of what documents have of one target."""

    def __init__(self, model, sample, doc_prior, n_threads):
        self.model, self.sample, self.doc_prior = model, sample, doc_prior
        self.n_threads = n_threads

    def prior(self, s):
        return self.doc_prior * s[:, -1] / s[:, -1].sum()

    def step(self, sample, s, max_iter, start=None):
        """A pass over documents; with ``start`` they go on from these counts."""
        likelihood, prior = self.model.likelihood, self.model.prior
        settings = Settings(cold=start is None, max_iter=max_iter, n_threads=self.n_threads)
        theta = document_parameters(likelihood, prior, s)
        given = {"mass": sample.mass, "start": start, "want_resp": True}
        return document_step(likelihood, theta, sample.docs, self.prior(s), settings, **given)

    def settle(self, sample, s):
        """Passes until they gain little."""
        last = -np.inf
        for _ in range(_SETTLING_PASSES):
            step = self.step(sample, s, _ITERATIONS)
            s = step.s * (self.sample.total / sample.total)
            value = self._objective(step.s, step.entropy, step.counts, slice(None), sample)
            if value - last < _SETTLED * sample.total:
                break
            last = value
        return step

    def evidence(self, s):
        return self.model.likelihood.evidence(self.model.prior, s)

    def groups(self, sample, step):
        """Disjoint pairs whose union raises the nested objective, best first; others alone."""
        J = len(step.s)
        i, j = np.triu_indices(J, 1)
        pairs, scale = np.column_stack([i, j]), self.sample.total / sample.total
        gain = scale * self.model.nested_union_gains(
            pairs,
            step.counts,
            self.prior(step.s),
            self.sample.docs.total / scale,
            sample.docs.weight,
        )
        s = step.s * scale
        own = self.evidence(s)
        gain += self.model.likelihood.union_evidence(self.model.prior, s, i, j) - own[i] - own[j]
        open_ = np.flatnonzero(gain > 0)
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

        ``start`` are the statistics whose parameters the step was made with.
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

    def _objective(self, s, entropy, counts, keep, sample, scale=1.0):
        """Nested objective of the topics ``keep``, up to a constant; ``scale`` is of all documents."""
        docs = self.model.nested_terms(counts[:, keep], self.prior(s[keep]), sample.docs.weight)
        return self.evidence(scale * s[keep]).sum() + scale * (entropy[keep].sum() + docs)


def create_topics(model, sample, doc_prior, n_seeds, rng, n_threads=1):
    """Statistics (J, P) of successors of a topic by a topic model nested in it; None if J < 2.

    Parameters
    ----------
    model : TopicModel
    sample : DocumentSample
        Pseudo-documents of the target, from all documents that use it.
    doc_prior : float
        The target's parameter ``alpha pi_k`` in the prior of the documents; successors share it.
    n_seeds : int
    rng : numpy.random.RandomState
    """
    nested = _Nested(model, sample, doc_prior, n_threads)
    least = max(_LEAST_TOKENS * sample.one_token, _LEAST_SHARE * sample.least_total)
    s = _seeds(model.likelihood, sample, n_seeds, rng)
    for part, max_iter in _PASSES:
        some = _subset(sample, int(part * len(sample.docs)), rng)
        step = nested.step(some, s, max_iter)
        s = step.s[step.s[:, -1] >= sample.one_token] * (sample.total / some.total)
    some, start, settled = _subset(sample, _ROUND_DOCUMENTS, rng), None, False
    for i in range(_ROUNDS):
        if len(s) < 2:
            return None
        n, step = len(s), nested.step(some, s, _ITERATIONS, start)
        if settled:
            step = nested.pruned(some, step, s)
        groups = nested.groups(some, step)
        kept = [g for g in groups if step.s[g, -1].sum() * sample.total / some.total >= least]
        s = np.array([step.s[g].sum(axis=0) for g in kept]) * (sample.total / some.total)
        start = np.column_stack([step.counts[:, g].sum(axis=1) for g in kept]) if kept else None
        if settled and len(kept) == n:
            break
        settled = i > 1 and len(kept) == n
    if len(s) < 2:
        return None
    step = nested.settle(some, s)
    return nested.step(sample, step.s * (sample.total / some.total), _ITERATIONS).s


def _seeds(likelihood, sample, n_seeds, rng):
    """Statistics of half a random document and half the target each, with its mass shared out."""
    docs, mass = sample
    everything = _summary(likelihood, docs, mass)
    sizes = np.add.reduceat(mass * docs.counts, docs.indptr[:-1])
    sizes = seeding_mass(sizes, docs.weight)
    n_seeds = min(n_seeds, len(docs))
    chosen = rng.choice(len(docs), n_seeds, replace=False, p=sizes / sizes.sum())
    s = np.array([_summary(likelihood, *_one(docs, mass, d)) for d in chosen])
    mean = everything / everything[-1]
    return (s / s[:, -1:] + mean) * (0.5 * everything[-1] / n_seeds)


def _subset(sample, n_docs, rng):
    """Some of the documents, at least a few hundred."""
    n, n_docs = len(sample.docs), max(_LEAST_DOCUMENTS, n_docs)
    if n_docs >= n:
        return sample
    kept = np.zeros(n, dtype=bool)
    kept[rng.choice(n, n_docs, replace=False)] = True
    docs, entries = sample.docs.chosen(kept)
    return sample._replace(docs=docs, mass=sample.mass[entries])


def _one(docs, mass, d):
    entries = slice(docs.indptr[d], docs.indptr[d + 1])
    return docs.taken(entries, [entries.stop - entries.start], [d]), mass[entries]


def _summary(likelihood, docs, mass):
    return document_summary(likelihood, docs, mass[:, np.newaxis]).s[0]
