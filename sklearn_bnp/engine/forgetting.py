"""Batches of a stream that are forgotten: taken out of the totals, or counted less and less.

Design note
-----------
(a) The totals are sums over batches. Without what one batch left behind they are those of a model that
    never saw it, at the responsibilities that the other batches have now.
(b) Every sum over rows may be multiplied by a factor, entropies included: it is then the sum over rows with
    so much less weight. The objective remains a bound of the evidence of weighted rows.
"""

from __future__ import annotations

from .memo import is_nameless

# With no more batches in memory, totals are added up anew when one leaves. Otherwise it is subtracted.
_FEW = 50


def names_of_batches(memo):
    """Names that the user gave, or the hashes that stand for them, oldest first."""
    return tuple(name for name in memo.batch_ids if not is_nameless(name))


def forget(learner, names):
    """Take batches out of a learner's memory and totals; others have to be left.

    The prior adapts to the rows that are left, and empty components go.
    """
    learner.end_trials()
    gone = set(names)
    pool = tuple(batch for batch in learner.stream.pool if batch.batch_id not in gone)
    learner.stream = learner.stream.with_pool(pool)
    totals = learner.totals
    for name in names:
        totals = totals.add(learner.memo.get(name, totals.uids), -1.0)
    memo = learner.memo.without(names)
    if len(memo) <= _FEW:
        totals = memo.total(totals.uids, totals.s.shape[1])
    learner.go_on_from(memo, totals)


def decay(learner, factor, n_pooled):
    """Let all that was seen count ``factor`` times what it did, a number of (0, 1).

    The latest ``n_pooled`` batches stay in the pool.
    """
    learner.end_trials()
    stream = learner.stream
    pool = tuple(batch.weighing(factor) for batch in stream.pool[-n_pooled:])
    learner.stream = stream.with_pool(pool)
    learner.go_on_from(
        learner.memo.mapped(lambda bag: bag.scaled(factor)), learner.totals.scaled(factor)
    )
