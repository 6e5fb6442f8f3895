"""The local and summary step of a batch of sequences (Hughes 2016, Sec. 6.3.3).

Design note
-----------
(a) The local step is exact: it is forward-backward over each sequence. The likelihoods are ``B_tk =
    exp(C_tk)``, each row of which may be divided by a number; the weights of transitions are ``A_jl =
    exp(E[log pi_jl])``; Z sums the products of both over all paths. Then the entropy of the posterior is
    ``log Z - sum r C - sum M E[log pi]``, with the same scaled rows in C and Z, and nothing of size
    T x K x K is ever held. B and A are floored at e^-200 of the largest. As the entropy has the same
    floors as the posterior, it is the exact entropy of the posterior that was found.
(b) One (T, K) table holds B, then alpha, then r. A caller that wants alpha beside r gets both part by part,
    from the last rows to the first: only a part of alpha is ever copied.
(c) With ``low_memory`` there is no such table. For a long sequence the forward pass stores the message into
    each part. Then, from the last part to the first, B and alpha of a part are computed again, and r
    from these. Sums over parts add up to the sum over the sequence, because each term belongs to one
    row, or to a row and the next.
(d) `filtered` and `smoothed` are the two passes over rows that are at hand. `chain_blocks` drives them over
    all sequences of a batch, the nested models of births over the runs of a sample.

Symbols are those of ``doc/formulas_chains.rst``.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from .._kernels import _forward_backward as kernel
from .._kernels.threads import threads_for_backward, threads_for_forward
from ..engine.statistics import StatBag
from ..inputs.rows import part as rows_of
from ..likelihood.lags import lagged
from .batch import PreparedRows, SequencePart, parts
from .transitions import Transitions

# Least logarithm of an emission's likelihood beside the row's largest, and of a transition's weight.
LOG_FLOOR = -200.0
# Rows of a part: where only some arrays are made part by part, and with low memory. With low memory a
# sequence longer than the square of this is cut into parts of sqrt(T) rows: then a part and the messages
# between parts are of one size.
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
        Positions of these states in the totals, which also list retired states.
    """

    coef: np.ndarray
    log_rows: np.ndarray
    states: np.ndarray


class ChainBlock(NamedTuple):
    """A part of the sequences and its posterior under the local step.

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
        Starts and transitions, as in `Transitions`; the step to the row after the last one is included.
    entropy : float
        Share of these rows, and of the step to the row after, in the entropy of their sequences.
    trans : ndarray, shape (K, K), or None
        Weights A of the transitions; None if responsibilities were given.
    uids : ndarray, shape (K,), or None
        Names of the states (columns), for observers.
    weight : ndarray, shape (n_sequences,), or None
        How often each sequence counts. It is part of ``counts`` and ``entropy``, but not of ``resp``.
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


class Filtered(NamedTuple):
    """Sequences, or parts of them, after the forward pass.

    Attributes
    ----------
    z : ndarray, shape (n, D')
    indptr : ndarray of int64, shape (n_sequences + 1,)
        Where sequences begin among these rows.
    alpha : ndarray, shape (n, K)
        Filtered probabilities; `smoothed` replaces them by responsibilities.
    scale : ndarray, shape (n,)
        Normalisers of the rows of ``alpha``.
    first : ndarray, shape (n_sequences, K)
        Weights of the states of first rows.
    """

    z: np.ndarray
    indptr: np.ndarray
    alpha: np.ndarray
    scale: np.ndarray
    first: np.ndarray


class Smoothed(NamedTuple):
    """Sums that the backward pass gives beside responsibilities.

    Attributes
    ----------
    counts : ndarray, shape (K + 1, K)
        Row 0: first states. Row j: transitions from state j - 1.
    start : ndarray, shape (n_sequences, K)
        Responsibilities of first rows.
    message : ndarray, shape (n_sequences, K)
        The backward message that the part before would start from.
    log_z : ndarray, shape (n_sequences,)
        Logarithms of the normalisers Z.
    data : ndarray, shape (n_sequences,)
        ``sum r C`` over the rows of each sequence.
    """

    counts: np.ndarray
    start: np.ndarray
    message: np.ndarray
    log_z: np.ndarray
    data: np.ndarray


def emission_table(likelihood, coef, z, n_threads=1):
    """Likelihoods (T, K) with floors; each row is divided by its sum."""
    return likelihood.likelihood_table(coef, z, np.exp(LOG_FLOOR), n_threads)[0]


def filtered(z, indptr, likelihood, coef, first, trans, n_threads=1, *, last=None):
    """Forward pass over sequences; ``first`` (n_sequences, K) and ``trans`` (K, K) are weights.

    Likelihoods of the last rows of sequences are multiplied by ``last`` (n_sequences, K), unless it is None.

    Returns
    -------
    Filtered
    """
    alpha = emission_table(likelihood, coef, z, n_threads)
    if last is not None:
        ends = alpha[indptr[1:] - 1] * last
        ends /= ends.max(axis=1, keepdims=True)
        alpha[indptr[1:] - 1] = np.maximum(ends, np.exp(LOG_FLOOR))
    scale = np.empty(len(alpha))
    n_threads = threads_for_forward(*alpha.shape, n_threads)
    kernel.forward(alpha, indptr, first, trans, scale, n_threads)
    return Filtered(z, indptr, alpha, scale, first)


def smoothed(part, trans, message, weight, n_threads=1):
    """Backward pass over sequences; it puts responsibilities in place of ``part.alpha``.

    Parameters
    ----------
    part : Filtered
    trans : ndarray, shape (K, K)
        Weights of transitions.
    message : ndarray, shape (1, K), or None
        The backward message from the rows that follow; None if the sequences end here.
    weight : ndarray, shape (n_sequences,), or None
        How often each sequence counts in ``counts``.
    n_threads : int

    Returns
    -------
    Smoothed
    """
    n_sequences, n_states = part.first.shape
    counts = np.zeros((n_states + 1, n_states))
    start, before = np.empty_like(part.first), np.empty_like(part.first)
    log_z, data = np.empty(n_sequences), np.empty(n_sequences)
    kernel.log_sums(part.scale, part.indptr, log_z)
    n_threads = threads_for_backward(*part.alpha.shape, n_threads)
    kernel.backward(
        part.alpha, part.indptr, part.first, trans, part.scale, message, counts[1:], start, before,
        data, n_threads, weight,
    )  # fmt: skip
    counts[0] = over_sequences(start, weight)
    return Smoothed(counts, start, before, log_z, data)


def over_sequences(values, weight):
    """Sum of ``values`` (n_sequences, ...) over sequences, times their weights if there are any."""
    return values.sum(axis=0) if weight is None else weight @ values


class _Filter:
    """The forward pass of parts of sequences."""

    def __init__(self, rows, likelihood, params, n_threads):
        self.rows, self.likelihood, self.coef = rows, likelihood, params.coef
        weights = np.exp(params.log_rows)
        self.start, self.trans, self.n_threads = weights[:1], weights[1:], n_threads

    def first(self, part):
        """First weights (n_sequences, K) of a part whose rows begin with the first ones of sequences."""
        return np.tile(self.start, (part.last - part.first, 1))

    def over(self, part, first):
        """`Filtered` of a part."""
        z, indptr = self.rows.of(part)
        return filtered(z, indptr, self.likelihood, self.coef, first, self.trans, self.n_threads)

    def at_once(self, cuts):
        """`Filtered` of each of the parts ``cuts``, the last one first, from one pass over all rows."""
        whole = everything(self.rows)
        done = self.over(whole, self.first(whole))
        alpha, scale = done.alpha, done.scale
        for part in reversed(cuts):
            first = self.first(part)
            if part.offset > 0:  # rows after this part hold r by now; those before it hold alpha
                first = alpha[part.begin - 1 : part.begin] @ self.trans
            cells = slice(part.begin, part.end)
            yield Filtered(*self.rows.of(part), alpha[cells], scale[cells], first)

    def again(self, cuts):
        """`Filtered` of each of the parts ``cuts`` of one sequence, the last one first, part by part.

        A first pass stores only the message into each part, from which alpha is found again.
        """
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
    """Forward-backward over all sequences; the parts of a sequence come in reverse order.

    Parameters
    ----------
    rows : PreparedRows
    likelihood : Likelihood
    params : ChainParams
    want_alpha : bool
        Whether blocks have ``alpha``. There is one block for all sequences if not, and without
        ``low_memory``.
    low_memory : bool
        Hold about `LOW_MEMORY_ROWS` rows of tables at a time, and go forward over long sequences twice.
    n_threads : int

    Yields
    ------
    ChainBlock
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
    forward = pass_.at_once(cuts)
    yield from _backward(rows, cuts, forward, params.log_rows, want_alpha, n_threads)


def _backward(rows, cuts, forward, log_rows, want_alpha, n_threads):
    """`ChainBlock` of each of the parts ``cuts``, from the last to the first; r replaces alpha.

    ``forward`` yields `Filtered` of these parts in the same order.
    """
    trans, later = np.exp(log_rows[1:]), None  # later: `Smoothed` of the part that follows
    for part, passed in zip(reversed(cuts), forward, strict=True):
        alpha, weight = passed.alpha.copy() if want_alpha else None, rows.weight(part)
        after, message = (later.start, later.message) if part.goes_on else (None, None)
        later = smoothed(passed, trans, message, weight, n_threads)
        counts = later.counts
        if part.offset > 0:
            counts[0] = 0.0
        entropy = over_sequences(later.log_z - later.data, weight) - np.sum(counts * log_rows)
        yield ChainBlock(
            part, passed.z, passed.indptr, passed.alpha, alpha, after, counts, float(entropy),
            trans, weight=weight,
        )  # fmt: skip


def given_blocks(rows, n_states):
    """`ChainBlock` objects of a batch with given responsibilities, under which rows are independent."""
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
    observers : list of Observer
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
    """`StatBag` of the states ``uids``, summed over blocks; ``coef`` as in `Likelihood.summarise`."""
    bag, entropy = StatBag.zeros(uids, likelihood.n_statistics), 0.0
    counts, s = np.zeros((len(uids) + 1, len(uids))), np.empty_like(bag.s)
    for block in blocks:
        counts += block.counts
        entropy += block.entropy
        n, weight = block.z.shape[0], block.row_weight
        # responsibilities have to be copied if rows are in single precision or have weights: a few at a time
        at_once = block.z.dtype == np.float64 and weight is None
        step = max(1, n if at_once else PART_ROWS)
        for rows in (slice(lo, lo + step) for lo in range(0, n, step)):
            resp = block.resp[rows] if weight is None else weight[rows] * block.resp[rows]
            likelihood.summarise(rows_of(block.z, rows), resp, s, coef=coef)
            bag.s[...] += s
    # a difference of sums that may be large: only rounding makes it negative
    return bag._replace(extra=Transitions(tuple(uids.tolist()), counts, max(0.0, entropy)))
