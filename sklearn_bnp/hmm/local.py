"""The local and summary step of a batch of sequences (Hughes 2016, Sec. 6.3.3).

Design note
-----------
(a) The local step is exact: forward-backward over each sequence. With likelihoods ``B_tk = exp(C_tk)`` of
    which each row is divided by a number, weights ``A_jl = exp(E[log pi_jl])``, and the normaliser Z
    of their products over all paths, the entropy of the posterior is ``log Z - sum r C - sum M E[log
    pi]`` with the same scaled rows in C and Z, so that nothing of size T x K x K is ever held. B and A
    are floored at e^-200 of the largest, in the entropy as in the posterior: it is then the exact
    entropy of the posterior that was found, whatever likelihood gave it.
(b) One (T, K) table holds B, then alpha, then r. Whoever wants alpha beside r gets both part by part,
    from the last rows to the first: only a part of alpha is ever copied.
(c) With ``low_memory`` there is no such table. Of a long sequence the forward pass keeps the message into
    each part; then, from the last part to the first, B and alpha of a part are found again, and r
    from these. Sums over parts add up to those of the sequence: all terms belong to one row, or to
    a row and the next.

Symbols are those of ``doc/formulas_chains.rst``.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from .._kernels import _forward_backward as kernel
from ..engine.statistics import StatBag
from ..inputs.rows import part as rows_of
from ..likelihood.lags import lagged
from .batch import PreparedRows, SequencePart, parts
from .transitions import Transitions

# Least logarithm of an emission's likelihood beside the row's largest, and of a transition's weight.
LOG_FLOOR = -200.0
# Rows that are worked on at a time where a batch need not be at once, and with low memory. Of a longer
# sequence these are sqrt(T) rows: then a part and the messages between parts are of one size.
PART_ROWS, LOW_MEMORY_ROWS = 2**15, 2**14


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


class ChainBlock(NamedTuple):
    """A part of the sequences with what the local step found for it.

    Attributes
    ----------
    part : SequencePart
    z : ndarray, shape (n, D')
    indptr : ndarray of int64, shape (n_sequences + 1,)
        Where sequences begin among these rows.
    resp : ndarray, shape (n, K)
    alpha : ndarray, shape (n, K), or None
        Filtered probabilities, ``p(z_t | x_1, ..., x_t)``; None unless they were wanted.
    after : ndarray, shape (1, K), or None
        Responsibilities of the row after the last one, if the sequence goes on.
    counts : ndarray, shape (K + 1, K)
        As in `Transitions`, those to the row after the last one included.
    entropy : float
        Share of these rows, and of the step to the row after, in the entropy of their sequences.
    trans : ndarray, shape (K, K), or None
        Weights of the transitions; None if responsibilities were given.
    uids : ndarray, shape (K,), or None
        States that the columns stand for, for observers.
    weight : ndarray, shape (n_sequences,), or None
        How often each sequence counts: in ``counts`` and ``entropy`` it did, in ``resp`` it did not.
    """

    part: SequencePart
    z: np.ndarray
    indptr: np.ndarray
    resp: np.ndarray
    alpha: np.ndarray | None
    after: np.ndarray | None
    counts: np.ndarray
    entropy: float
    trans: np.ndarray | None = None
    uids: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def row_weight(self):
        """How often each row (n, 1) counts, or None."""
        if self.weight is None:
            return None
        return np.repeat(self.weight, np.diff(self.indptr))[:, np.newaxis]


class _Filtered(NamedTuple):
    """What the forward pass leaves of a part: rows, alpha (n, K), scale (n,) and first weights."""

    z: np.ndarray
    indptr: np.ndarray
    alpha: np.ndarray
    scale: np.ndarray
    first: np.ndarray


def emission_table(likelihood, coef, z, n_threads=1):
    """Likelihoods (T, K), each row over its sum, floored."""
    return likelihood.likelihood_table(coef, z, np.exp(LOG_FLOOR), n_threads)[0]


class _Filter:
    """The forward pass of parts of sequences."""

    def __init__(self, rows, likelihood, params, n_threads):
        self.rows, self.likelihood, self.coef = rows, likelihood, params.coef
        weights = np.exp(params.log_rows)
        self.start, self.trans, self.n_threads = weights[:1], weights[1:], n_threads

    def first(self, part):
        """First weights (n_sequences, K) of a part with which its sequences begin."""
        return np.tile(self.start, (part.last - part.first, 1))

    def over(self, part, first):
        """`_Filtered` of a part."""
        z, indptr = self.rows.of(part)
        table = emission_table(self.likelihood, self.coef, z, self.n_threads)
        scale = np.empty(len(table))
        kernel.forward(table, indptr, first, self.trans, scale, self.n_threads)
        return _Filtered(z, indptr, table, scale, first)

    def at_once(self, cuts):
        """`_Filtered` of each of the parts ``cuts``, the last one first, from one pass over all."""
        whole = everything(self.rows)
        done = self.over(whole, self.first(whole))
        alpha, scale = done.alpha, done.scale
        for part in reversed(cuts):
            first = self.first(part)
            if part.offset > 0:  # what follows has become r by now, and what comes before has not
                first = alpha[part.begin - 1 : part.begin] @ self.trans
            cells = slice(part.begin, part.end)
            yield _Filtered(*self.rows.of(part), alpha[cells], scale[cells], first)

    def again(self, cuts):
        """The same of the parts of one sequence, from the messages that a pass leaves between them."""
        messages = [self.first(cuts[0])]
        for part in cuts[:-1]:
            alpha = self.over(part, messages[-1]).alpha
            messages.append(alpha[-1:] @ self.trans)
        for part, first in zip(reversed(cuts), reversed(messages), strict=True):
            yield self.over(part, first)


def everything(rows):
    """All sequences, as one part."""
    return SequencePart(0, len(rows.indptr) - 1, 0, rows.n_rows)


def chain_blocks(rows, likelihood, params, *, want_alpha=False, low_memory=False, n_threads=1):
    """`ChainBlock` objects of all sequences, of a sequence's parts the last one first.

    Parameters
    ----------
    rows : PreparedRows
    likelihood : Likelihood
    params : ChainParams
    want_alpha : bool
    low_memory : bool
        Hold about `LOW_MEMORY_ROWS` rows of tables at a time, and go forward over long sequences twice.
    n_threads : int
    """
    pass_ = _Filter(rows, likelihood, params, n_threads)
    if low_memory:
        longest = int(np.diff(rows.indptr).max(initial=0))
        for cuts in parts(rows.indptr, max(LOW_MEMORY_ROWS, isqrt(longest))):
            yield from _backward(
                rows, cuts, pass_.again(cuts), params.log_rows, want_alpha, n_threads
            )  # fmt: skip
        return
    cuts = [everything(rows)]
    if want_alpha:
        cuts = [part for some in parts(rows.indptr, PART_ROWS) for part in some]
    filtered = pass_.at_once(cuts)
    yield from _backward(rows, cuts, filtered, params.log_rows, want_alpha, n_threads)


def _backward(rows, cuts, filtered, log_rows, want_alpha, n_threads):
    """`ChainBlock` of each of the parts ``cuts``, from the last to the first; r takes alpha's place."""
    trans, n_states = np.exp(log_rows[1:]), log_rows.shape[1]
    start = before = None  # r of first rows of the part that follows, and its message
    for part, (z, indptr, table, scale, first) in zip(reversed(cuts), filtered, strict=True):
        after, message = (start, before) if part.goes_on else (None, None)
        alpha = table.copy() if want_alpha else None
        start, before = np.empty_like(first), np.empty_like(first)
        log_scale, data = np.empty(len(first)), np.empty(len(first))
        kernel.log_sums(scale, indptr, log_scale)
        counts, weight = np.zeros((n_states + 1, n_states)), rows.weight(part)
        kernel.backward(
            table, indptr, first, trans, scale, message, counts[1:], start, before, data, n_threads,
            weight,
        )  # fmt: skip
        if part.offset == 0:
            counts[0] = start.sum(axis=0) if weight is None else weight @ start
        paths = log_scale - data
        entropy = paths.sum() if weight is None else weight @ paths
        entropy = float(entropy - np.sum(counts * log_rows))
        yield ChainBlock(
            part, z, indptr, table, alpha, after, counts, entropy, trans, weight=weight
        )  # fmt: skip


def given_blocks(rows, n_states):
    """`ChainBlock` objects of a batch whose states are independent given its responsibilities."""
    last = None  # responsibilities of the last row of the part before
    for part in (part for cuts in parts(rows.indptr, PART_ROWS) for part in cuts):
        own = rows.batch.cut(part)
        resp, indptr = lagged(own.resp, own.indptr, own.lags)
        resp = np.asarray(resp[:, :n_states], dtype=np.float64)
        block = ChainBlock(part, rows.of(part)[0], indptr, resp, None, None, None, 0.0)
        block = block._replace(weight=rows.weight(part))
        weighted = resp if block.weight is None else block.row_weight * resp
        counts = np.zeros((n_states + 1, n_states))
        goes_on = np.ones(len(resp), dtype=bool)
        goes_on[indptr[1:] - 1] = False
        now = np.flatnonzero(goes_on)
        counts[1:] = weighted[now].T @ resp[now + 1]
        if part.offset > 0:
            counts[1:] += np.multiply.outer(last, resp[0])
        else:
            counts[0] = weighted[indptr[:-1]].sum(axis=0)
        last = weighted[-1]
        entropy = -np.sum(weighted * np.log(np.where(resp > 0, resp, 1.0)))
        yield block._replace(counts=counts, entropy=float(entropy))


def sequence_pass(batch, likelihood, params, uids, observers, *, low_memory=False, n_threads=1):
    """`StatBag` of a batch of sequences after its local step.

    Parameters
    ----------
    batch : SequenceBatch
    likelihood : Likelihood
    params : ChainParams
    uids : ndarray, shape (K,)
    observers : list of ChainObserver
    low_memory, n_threads
        As in `chain_blocks`.
    """
    rows = PreparedRows(batch, likelihood.prepare, keep=not low_memory)
    if batch.resp is not None:
        return summary(given_blocks(rows, len(uids)), likelihood, uids)
    blocks = chain_blocks(
        rows, likelihood, params, want_alpha=any(o.wants_alpha for o in observers),
        low_memory=low_memory, n_threads=n_threads,
    )  # fmt: skip
    own = uids[params.states]
    bag = summary(_observed(blocks, observers, own), likelihood, own, params.coef)
    for observer in observers:  # when the tables of the pass are gone
        observer.revisit(rows)
    total = StatBag.zeros(uids, likelihood.n_statistics)
    total.s[params.states] = bag.s
    return total._replace(extra=bag.extra)


def _observed(blocks, observers, uids):
    """The blocks, after the observers have seen them."""
    for block in blocks:
        for observer in observers:
            observer.observe(block._replace(uids=uids))
        yield block


def summary(blocks, likelihood, uids, coef=None):
    """`StatBag` of the states ``uids`` that the blocks leave behind; ``coef`` as in `summarise`."""
    bag, entropy = StatBag.zeros(uids, likelihood.n_statistics), 0.0
    counts, s = np.zeros((len(uids) + 1, len(uids))), np.empty_like(bag.s)
    for block in blocks:
        counts += block.counts
        entropy += block.entropy
        n, weight = block.z.shape[0], block.row_weight
        # rows in single precision, or of some weight, want such responsibilities, of which few are held
        at_once = block.z.dtype == np.float64 and weight is None
        step = max(1, n if at_once else PART_ROWS)
        for rows in (slice(lo, lo + step) for lo in range(0, n, step)):
            resp = block.resp[rows] if weight is None else weight[rows] * block.resp[rows]
            likelihood.summarise(rows_of(block.z, rows), resp, s, coef=coef)
            bag.s[...] += s
    # an entropy is never negative, but by rounding: a difference of sums that may be large
    return bag._replace(extra=Transitions(tuple(uids.tolist()), counts, max(0.0, entropy)))
