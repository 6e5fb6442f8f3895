"""Sequences in batches, and the local and summary step of a batch of them (Hughes 2016, Sec. 6.3.3).

Design note. The local step is exact: forward-backward over each sequence. With likelihoods ``B_tk =
exp(C_tk)`` of which each row is divided by a number, weights ``A_jl = exp(E[log pi_jl])``, and the
normaliser Z of their products over all paths, the entropy of the posterior is ``log Z - sum r C - sum M
E[log pi]`` with the same scaled rows in C and Z, so that nothing of size T x K x K is ever held. B
and A are floored at e^-200 of the largest, in the entropy as in the posterior: it is then the exact
entropy of the posterior that was found, whatever likelihood gave it. Symbols are those of
``doc/formulas_chains.rst``.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from .._kernels import _forward_backward as kernel
from .._kernels._responsibilities import summarise
from ..observation.lags import lagged
from .batches import even_slices
from .stats import StatBag
from .transitions import Transitions

# Least logarithm of an emission's likelihood beside the row's largest, and of a transition's weight.
LOG_FLOOR = -200.0


class ChainParams(NamedTuple):
    """Parameters of the local step.

    Attributes
    ----------
    coef : ndarray, shape (K, P)
        ``E[log p(x | k)] = coef[k] @ s(x)``.
    log_rows : ndarray, shape (K + 1, K)
        ``E[log pi]`` of the start and of the transitions, no less than `LOG_FLOOR`.
    states : ndarray of intp, shape (K,)
        Which components of the totals these are: all but those that nothing may go to any more.
    """

    coef: np.ndarray
    log_rows: np.ndarray
    states: np.ndarray


class ChainStep(NamedTuple):
    """What the local step finds.

    Attributes
    ----------
    resp : ndarray of float64, shape (T, K)
    alpha : ndarray, shape (T, K), or None
        Filtered probabilities, ``p(z_t | x_1, ..., x_t)``.
    counts : ndarray, shape (K + 1, K)
        As in `Transitions`.
    entropy : float
    log_norm : ndarray, shape (n_sequences,)
        log Z of each sequence.
    """

    resp: np.ndarray
    alpha: np.ndarray | None
    counts: np.ndarray
    entropy: float
    log_norm: np.ndarray


class SequenceBlock(NamedTuple):
    """Sequences with what the local step found for them.

    Attributes
    ----------
    z : ndarray, shape (T, D')
    indptr : ndarray of int64, shape (n_sequences + 1,)
    resp, alpha : ndarray, shape (T, K)
    trans : ndarray, shape (K, K)
        Weights of the transitions.
    uids : ndarray, shape (K,)
        States that the columns stand for.
    """

    z: np.ndarray
    indptr: np.ndarray
    resp: np.ndarray
    alpha: np.ndarray
    trans: np.ndarray
    uids: np.ndarray


class SequenceBatch(NamedTuple):
    """Whole sequences under a name.

    Attributes
    ----------
    batch_id : object
    x : ndarray, shape (n, D)
        Rows of all sequences, one after another.
    indptr : ndarray of int64, shape (n_sequences + 1,)
        Sequence d has the rows ``indptr[d]:indptr[d + 1]``.
    lags : int
        Rows at the beginning of each sequence that are given and not modelled.
    resp : ndarray, shape (n, K), or None
        Responsibilities to summarise instead of a local step.
    """

    batch_id: object
    x: np.ndarray
    indptr: np.ndarray
    lags: int = 0
    resp: np.ndarray | None = None

    @property
    def n_entries(self):
        """Rows that are modelled."""
        return int(np.sum(np.maximum(np.diff(self.indptr) - self.lags, 0)))

    @property
    def total_weight(self):
        return float(self.n_entries)

    @property
    def weight(self):
        """Rows all count once."""
        return None

    def content_hash(self):
        """Identity of the batch by its content."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.indptr, self.x):
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array))
        return digest.hexdigest()

    def slices(self):
        """Slices of at most `BLOCK_ROWS` rows."""
        return even_slices(len(self.x))

    def part(self, batch_id, first, last):
        """The sequences from ``first`` to before ``last``, under a name."""
        indptr = self.indptr[first : last + 1]
        rows = slice(int(indptr[0]), int(indptr[-1]))
        resp = None if self.resp is None else self.resp[rows]
        return SequenceBatch(batch_id, self.x[rows], indptr - indptr[0], self.lags, resp)

    def prepared(self, likelihood):
        """Prepared rows (T, D'), and where sequences begin among them."""
        x, indptr = lagged(np.asarray(self.x), self.indptr, self.lags)
        return likelihood.prepare(x), indptr


def emission_table(likelihood, coef, z, n_threads=1):
    """Likelihoods (T, K), each row over its sum, floored; and the logarithms (T,) of the sums."""
    return likelihood.likelihood_table(coef, z, np.exp(LOG_FLOOR), n_threads)


def chain_step(table, log_norm, indptr, log_rows, *, want_alpha=False, n_threads=1):
    """`ChainStep` of sequences; ``table`` (T, K) from `emission_table` becomes the responsibilities."""
    rows, n_states = np.exp(log_rows), table.shape[1]
    first = np.tile(rows[0], (len(indptr) - 1, 1))
    trans, scale = rows[1:], np.empty(len(table))
    log_scale, data = np.empty(len(first)), np.empty(len(first))
    kernel.forward(table, indptr, first, trans, scale, n_threads)
    kernel.log_sums(scale, indptr, log_scale)
    alpha = table.copy() if want_alpha else None
    counts, start = np.zeros((n_states + 1, n_states)), np.empty_like(first)
    kernel.backward(
        table, indptr, first, trans, scale, None, counts[1:], start, None, data, n_threads
    )
    counts[0] = start.sum(axis=0)
    entropy = log_scale.sum() - data.sum() - np.sum(counts * log_rows)
    return ChainStep(
        table, alpha, counts, max(0.0, float(entropy)),
        log_scale + np.add.reduceat(log_norm, indptr[:-1]),
    )  # fmt: skip


def given_step(resp, indptr):
    """`ChainStep` of sequences whose states are independent given the responsibilities (T, K)."""
    n_states = resp.shape[1]
    counts = np.zeros((n_states + 1, n_states))
    counts[0] = resp[indptr[:-1]].sum(axis=0)
    goes_on = np.ones(len(resp), dtype=bool)
    goes_on[indptr[1:] - 1] = False
    before = np.flatnonzero(goes_on)
    counts[1:] = resp[before].T @ resp[before + 1]
    entropy = -np.sum(resp * np.log(np.where(resp > 0, resp, 1.0)))
    return ChainStep(resp, None, counts, float(entropy), np.empty(0))


def sequence_pass(batch, likelihood, params, uids, observers, n_threads=1):
    """`StatBag` of a batch of sequences after its local step.

    Parameters
    ----------
    batch : SequenceBatch
    params : ChainParams
    observers : list of objects with ``observe(block)``
    """
    z, indptr = batch.prepared(likelihood)
    if batch.resp is not None:
        resp, _ = lagged(batch.resp, batch.indptr, batch.lags)
        step = given_step(np.asarray(resp[:, : len(uids)], dtype=np.float64), indptr)
        return summary(likelihood, z, step, uids)
    step = local_step(likelihood, params, z, indptr, len(observers) > 0, n_threads)
    uids_used = uids[params.states]
    block = SequenceBlock(z, indptr, step.resp, step.alpha, np.exp(params.log_rows[1:]), uids_used)
    for observer in observers:
        observer.observe(block)
    bag = summary(likelihood, z, step, uids_used)
    total = StatBag.zeros(uids, likelihood.n_statistics)
    total.s[params.states] = bag.s
    return total._replace(docs=bag.docs)


def local_step(likelihood, params, z, indptr, want_alpha=False, n_threads=1):
    """`ChainStep` of prepared rows."""
    table, log_norm = emission_table(likelihood, params.coef, z, n_threads)
    return chain_step(
        table, log_norm, indptr, params.log_rows, want_alpha=want_alpha, n_threads=n_threads
    )


def summary(likelihood, z, step, uids):
    """`StatBag` of the states ``uids`` that a step leaves behind."""
    bag = StatBag.zeros(uids, likelihood.n_statistics)
    resp = np.ascontiguousarray(step.resp, dtype=z.dtype)
    summarise(z, resp, likelihood.quadratic, likelihood.linear, bag.s, False)
    return bag._replace(docs=Transitions(tuple(uids.tolist()), step.counts, step.entropy))
