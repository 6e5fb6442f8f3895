"""Learning from batches that arrive one at a time, by `partial_fit`.

Design note
-----------
(a) A batch that was seen before is part of a lap over all batches in memory, and proposals work as in `fit`.
(b) A new batch may never be seen again. It is visited once. If the rows that it gave to a component are
    unlike those gone by, they become a component of their own (`Model.own_components`). This is *news*: a few
    more rounds follow, with trials that are planned on the batch, observe it and are judged at once. Other
    batches do not change, and for entropies that cannot be known lower bounds stand. Either way a trial
    is accepted only if the objective, or its lower bound, rises.
(c) One batch shows little of each component. The latest batches are therefore kept with their rows: the
    *pool*. Now and then laps go over all of them as those of a fit, with everything that it tries. What
    they change is judged on the pool exactly. A batch of more rows than there is room for is a pool by
    itself until it has been learned from.
(d) There are such laps when the mass has grown by a quarter, as long as everything since the last news is
    in the pool. From then on a pool shows no more than the one before it, and laps wait until the mass is
    four times as large, so that their cost per batch falls to nothing. What counts is the mass that is
    remembered. If a stream forgets, there are laps whenever a quarter of that is new. The batches since the
    last laps are compared with all others, together, whenever their number has doubled, for news that no
    batch shows alone. When a batch comes back while all others are in the pool, laps are due once more.
(e) Proposals remember what failed, until the mass of its components has changed. A search that
    found nothing is not made again at each batch.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from . import stream_news
from .forgetting import decay, forget
from .memo import PAST
from .state import PoolSize, StreamState
from .statistics import added_up

# Laps that a stream remembers.
_KEPT_LAPS = 1000
# Growth of the mass, as a share of what was learned from since the last news, with which laps over the pool
# are due: as long as the pool has all of that, and later.
_GROWTH, _LATER = 0.25, 3.0
# Numbers that a pool may hold, and batches.
_POOL_VALUES, _POOL_BATCHES = 2_000_000, 1000
# A pool of batches that are smaller on average than this part of what it has room for is cut anew, into
# fewer batches, each a tenth of that at the least.
_SMALL, _PART = 1 / 40, 1 / 10
# Half-lives for which a batch stays in the pool: it then counts an eighth.
_LIVES = 3
# Most laps over the pool at a time, and the gain per row, in nats, under which they have come to rest.
_LAPS, _TOL = 100, 1e-3


class StreamSettings(NamedTuple):
    """Settings that say what a stream remembers; they may change from call to call.

    Attributes
    ----------
    memoize : bool
        Keep the statistics of each batch, so that a later visit can replace them.
    max_batches : int or None
        Batches that are remembered, at the most: the oldest leaves when a new one comes.
    half_life : float or None
        Number of batches after which a batch counts half; without a memory of batches only.
    """

    memoize: bool = True
    max_batches: int | None = None
    half_life: float | None = None

    @property
    def forgets(self):
        """Whether what came long ago counts less, or not at all."""
        return self.max_batches is not None or self.half_life is not None


_MEMOIZED = StreamSettings()


def stream_batch(learner, batch, settings=_MEMOIZED, content=None):
    """Learn from one batch.

    Parameters
    ----------
    learner : Learner
    batch : Batch
    settings : StreamSettings
    content : str or None
        Hash of the batch's rows. A batch that comes with other rows than before is forgotten, and is new. If
        None, the rows are taken to be the same.
    """
    memo, name = learner.memo, batch.batch_id
    known = memo.content(name)
    has_other_rows = None not in (known, content) and known != content
    if settings.memoize and has_other_rows and len(memo) > 1:
        forget(learner, [name])
    elif not settings.memoize and (known is None or has_other_rows):
        # it counts as new, and takes no place of one that is still remembered
        learner.n_batches += 1
        batch = batch._replace(batch_id=(*PAST, learner.n_batches))
    if learner.n_steps and len(learner.memo) == 0:
        learner.forget_batches()  # what stochastic steps have seen is the past
    if batch.batch_id not in learner.memo:
        _make_room(learner, settings)
        if hasattr(batch, "as_source"):
            _learn_elsewhere(learner, batch)
        else:
            _come(learner, batch, settings.forgets)
    elif has_other_rows:
        _come_alone(learner, batch)
    else:
        _leave_pool(learner)
        _revisit(learner, batch)
    if not settings.memoize:
        learner.forget_batches(tuple(one.batch_id for one in learner.stream.pool))
    elif content is not None:
        learner.memo.with_content(batch.batch_id, content)
    del learner.history[:-_KEPT_LAPS]


def _make_room(learner, settings):
    """Let the oldest batches leave, or count less, before a new one comes."""
    if settings.half_life is not None and len(learner.memo):
        decay(learner, 0.5 ** (1.0 / settings.half_life), int(np.ceil(_LIVES * settings.half_life)))
    if settings.max_batches is not None:
        n_gone = len(learner.memo) + 1 - settings.max_batches
        if n_gone > 0:
            forget(learner, learner.memo.batch_ids[:n_gone])
    if settings.forgets:
        least = min(1.0, learner.scheduler.mean_weight or 1.0)
        if learner.scheduler.proposals_at_rest and np.any(learner.totals.n < least):
            learner.try_at_once(learner.model.small_unions(learner.totals, least))


class _Pool:
    """The batches of a pool as a source; small ones are cut anew into fewer of about the same size.

    Parameters
    ----------
    batches : tuple of Batch
    most : int
        Rows that a pool of the model may have.
    n_features : int
        Numbers of a row that is not sparse.
    """

    resp = None

    def __init__(self, batches, most, n_features):
        self.rows_in_memory = sum(one.n_entries for one in batches)
        self.values_per_row = None
        if any(one.values_per_row is not None for one in batches):  # others may be dense
            values = sum(one.n_values(n_features) for one in batches)
            self.values_per_row = int(np.ceil(values / max(self.rows_in_memory, 1)))
        self.total_weight = sum(one.total_weight for one in batches)
        # that of the newest rows as they came: weights of older ones may have decayed
        is_weighted = any(one.mean_weight is not None for one in batches)
        self.mean_weight = (batches[-1].mean_weight or 1.0) if is_weighted else None
        n_rows = self.rows_in_memory
        self.is_cut_anew = len(batches) > 1 and n_rows < _SMALL * most * len(batches)
        n_parts = int(n_rows / (_PART * most))
        self._batches = _cut_anew(batches, n_parts) if self.is_cut_anew else batches

    def __len__(self):
        return len(self._batches)

    def batch(self, i):
        """Batch number i."""
        return self._batches[i]

    def batches(self):
        """All batches, a list."""
        return list(self._batches)

    def without_responsibilities(self):
        """A copy of the pool without given responsibilities: local steps will find them."""
        other = copy(self)
        other._batches = [one._replace(resp=None) for one in self._batches]
        return other


def _cut_anew(batches, n):
    """The rows of batches, a list of ``n`` new ones of about the same size, or of a single one."""
    first, *others = batches
    everything = first.joined(others)
    edges = everything.even_cuts(max(n, 1)).tolist()
    return [
        everything.part((*PAST, "pool", i), edges[i], edges[i + 1]) for i in range(len(edges) - 1)
    ]


def _room(model, size):
    """Rows that a pool of such batches may hold."""
    return min(model.pool_rows, int(_POOL_VALUES * size.rows / max(size.values, 1)))


def _pooled(model, stream, batch):
    """The stream with a batch more in its pool, without the oldest ones where they are too many.

    The new batch is in it, however large, until it has been learned from; see `_within_room`.
    """
    older, n_features = stream.pool, model.likelihood.n_features
    size = PoolSize.of(older, n_features) if stream.size is None else stream.size
    size = size.changed(batch, n_features)
    most = _room(model, size)
    first = max(0, len(older) + 1 - _POOL_BATCHES)
    for one in older[:first]:
        size = size.changed(one, n_features, -1)
    while first < len(older) and size.rows > most:
        size = size.changed(older[first], n_features, -1)
        first += 1
    own = batch.kept() if size.rows <= most else batch._replace(resp=None)
    n = stream.n_unlearned + 1
    return stream._replace(pool=(*older[first:], own), size=size, n_unlearned=n)


def _within_room(model, stream):
    """The stream without its pool if that is a single batch of more rows than there is room for."""
    if stream.size.rows <= _room(model, stream.size):
        return stream
    return stream.with_pool(())


def _come(learner, batch, forgets):
    """Learn from a new batch: a visit, and laps over the pool if they are due."""
    first, model, stream = len(learner.memo) == 0, learner.model, learner.stream
    if not first and not stream.came:  # what was fitted before was learned from
        mass = float(learner.totals.n.sum())
        stream = stream._replace(came=mass, learned=mass)
    came = stream.came + batch.total_weight
    _ready_for(learner, batch)
    stream = _pooled(model, stream._replace(came=came), batch)
    if not first:
        has_news = _visit(learner, batch)
        if not has_news and _is_power_of_two(stream.n_unlearned):  # their number has doubled
            has_news = _compare(learner, stream.pool[-stream.n_unlearned :])
        if has_news:
            stream = stream._replace(news=came - batch.total_weight)
    learner.stream = stream
    if first or _is_due(model, stream, float(learner.totals.n.sum()), forgets):
        _learn(learner, batch if first else None)
        stream = stream._replace(learned=came, n_unlearned=0)
    learner.stream = _within_room(model, stream)


def _is_power_of_two(n):
    return n & (n - 1) == 0


def _come_alone(learner, batch):
    """Learn from a batch that takes the place of the only one, which had the same name and other rows."""
    mass = float(batch.total_weight)
    stream = StreamState(came=mass, learned=mass)
    if hasattr(batch, "as_source"):
        _learn_elsewhere(learner, batch)
    else:
        _ready_for(learner, batch)
        _learn(learner, batch)
        pooled = _pooled(learner.model, stream, batch)
        stream = _within_room(learner.model, pooled._replace(n_unlearned=0))
    learner.stream = stream


def _is_due(model, stream, remembered, forgets):
    """Whether there should be laps over the pool, if the stream remembers so much mass."""
    new = min(stream.came - stream.learned, remembered)
    if forgets:
        return new >= _GROWTH * remembered
    pool, since_news = stream.size, min(stream.learned - stream.news, remembered - new)
    fits_in_pool = since_news * pool.rows <= _room(model, pool) * pool.mass
    growth = _GROWTH if fits_in_pool else _LATER
    return new >= max(_GROWTH * min(pool.mass, remembered - new), growth * since_news)


def _learn(learner, first=None):
    """Laps over all batches of the pool, as in a fit; ``first`` is the first batch of all, if it is that."""
    pool = (first,) if first is not None else learner.stream.pool
    if not pool:
        return
    learner.scheduler.new_data(learner.stream.came or None)
    model, converged = learner.model, learner.converged
    source = _Pool(pool, model.pool_rows, model.likelihood.n_features)
    names = [batch.batch_id for batch in pool]
    contents = {name: learner.memo.content(name) for name in names}
    if source.is_cut_anew:
        learner.put_in_place(source.batches(), names)
    learner.fit(source, _LAPS, _TOL)
    if source.is_cut_anew:
        learner.put_in_place(pool, [part.batch_id for part in source.batches()])
        learner.end_lap(propose=False)
        for name, content in contents.items():
            if content is not None:
                learner.memo.with_content(name, content)
    learner.scheduler.drop_trials()
    learner.converged = converged


def _learn_elsewhere(learner, batch):
    """Learn from a new batch of rows that lie elsewhere: they are many, and are not kept."""
    before = learner.totals.n.sum() if len(learner.memo) else 0.0
    came = float((learner.stream.came or before) + batch.total_weight)
    _ready_for(learner, batch)
    learner.scheduler.new_data(came)
    converged = learner.converged
    learner.fit(batch.as_source(), _LAPS, _TOL)
    learner.scheduler.drop_trials()
    learner.converged = converged
    learner.stream = learner.stream.with_pool(())._replace(came=came, learned=came)


def _ready_for(learner, batch):
    """End what is under way, and let samples and proposals know of the batch to come."""
    scheduler = learner.scheduler
    if learner.lap_under_way:
        learner.end_lap(propose=False)
    scheduler.drop_trials()
    values_per_row = batch.values_per_row or learner.model.likelihood.n_features
    scheduler.fit_samples_to(batch.n_entries, values_per_row)
    scheduler.heed_weights(batch)


def _leave_pool(learner):
    """Let laps go over all batches from now on, until a new one comes: what failed on some may succeed.

    If the pool holds all that is remembered, it is learned from before it is left, as far as the latest
    batches were not: there is one lap over all batches in each epoch, which finds less than a fit does.
    """
    stream = learner.stream
    pooled = {one.batch_id for one in stream.pool}
    if stream.n_unlearned and pooled.issuperset(learner.memo.batch_ids):
        _learn(learner)
        learner.stream = stream._replace(learned=stream.came, n_unlearned=0)
    if learner.stream.size != PoolSize():
        learner.scheduler.new_data()
    learner.stream = learner.stream._replace(pool=(), size=PoolSize())


def _revisit(learner, batch):
    """Visit a batch in memory, as a part of a lap over all of these."""
    learner.scheduler.heed_weights(batch)
    if not learner.lap_under_way:
        learner.begin_lap()
    learner.visit(batch)
    if learner.lap_is_complete:
        learner.end_lap()
        learner.scheduler.drop_samples()  # a model at rest holds no rows


def _visit(learner, batch):
    """Visit a new batch, and again in several rounds if it has news; whether it has."""
    learner.begin_lap(draw=False)
    rest, others = learner.totals.s, learner.evidence()
    learner.visit(batch, update=False)
    has_news, own = _take_along(learner, [batch.batch_id], rest, others)
    if has_news:
        _in_rounds(learner, batch._replace(resp=None), own)
    else:
        learner.end_lap(propose=False, adapt=False)
    return has_news


def _in_rounds(learner, batch, own):
    """Visit a new batch in several rounds, each with trials that are planned on it and judged on it.

    ``own`` are the records of births from its own rows in a visit before these.
    """
    scheduler, n_rounds = learner.scheduler, learner.model.stream_rounds
    for i in range(n_rounds):
        learner.begin_lap()
        learner.visit(batch)
        last = i + 1 == n_rounds
        lap = learner.end_lap(propose=not last)
        if i == 0 and own:
            learner.history[-1] = lap.with_trials(own)
        if last or (i > 0 and not lap.accepted and not scheduler.trials):
            break
    learner.model = learner.model.released()
    scheduler.drop_trials()  # there are none, but for the rows drawn for them


def _compare(learner, batches):
    """Compare the latest batches, together, with all others; whether they have news."""
    has_news, own = _take_along(learner, [batch.batch_id for batch in batches])
    if own:
        lap = learner.history[-1]._replace(
            n_components=len(learner.totals.uids), lower_bound=learner.lower_bound
        )
        learner.history[-1] = lap.with_trials(own)
    return has_news


def _take_along(learner, names, rest=None, others=None):
    """Whether batches have news, and records of the births of components of their own for it, a list.

    They are given to them if the objective rises. The statistics (K, P) of all else, the ``rest``, may be
    given together with the evidence (K,) of the components without these batches, the ``others``.
    """
    model, totals, scheduler = learner.model, learner.totals, learner.scheduler
    if all(proposal.kind != "birth" for proposal in scheduler.proposals_at_rest):
        return False, []
    bags = {name: learner.memo.get(name, totals.uids) for name in names}
    bag = added_up(bags.values())
    if rest is None:
        rest = totals.s - bag.s
        others = model.likelihood.evidence(model.prior, rest)
    gains = stream_news.gains(model, bag, rest, learner.evidence(), others, scheduler.mean_weight)
    if not np.any(gains > 0):
        return False, []
    room = learner.settings.max_components - len(totals.uids)
    trials = model.own_components(totals, bags, gains, learner.new_uids, room)
    return True, learner.try_at_once(trials)
