"""Exact marginal likelihoods of small data, by enumeration of every partition of the rows."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import logsumexp


def partitions(n):
    """All partitions of range(n), as lists of tuples; Bell(8) = 4140."""
    if n == 0:
        yield []
        return
    for smaller in partitions(n - 1):
        for i, block in enumerate(smaller):
            yield [*smaller[:i], (*block, n - 1), *smaller[i + 1 :]]
        yield [*smaller, (n - 1,)]


def log_marginal(family, allocation, z):
    """``log p(x) = log sum over partitions of p(partition) prod over blocks of p(x_block)``."""

    @cache
    def evidence(block):
        return family.evidence(z[list(block)], np.ones(len(block)))

    @cache
    def log_prior(sizes):
        return allocation.log_prior_partition(sizes)

    terms = []
    for partition in partitions(len(z)):
        prior = log_prior(tuple(sorted(map(len, partition))))
        terms.append(prior + sum(evidence(block) for block in partition))
    return float(logsumexp(terms))
