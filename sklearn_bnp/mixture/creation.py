"""New components to replace one component, the target, found on a sample of the target's rows.

Hughes (2016), Sec. 4.2.1, Step 1.

Design note
-----------
(a) A split starts from more seeds than are needed: k-means++ in the geometry of the likelihood, then a few
    Lloyd steps. Variational steps on the target's rows follow, and agglomeration joins what is redundant.
    This finds structure more reliably than the right number of seeds would.
(b) The result depends much on the seeds. Where the sample is small, seeding is tried in several ways and
    the best split is kept. Where it is large, one way is tried in each attempt.
(c) The gain found here is an estimate on the sample. The scheduler judges the split on the whole data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..likelihood.seeding import lloyd, seeding_mass, summaries
from .restricted import RestrictedMixture

# On small samples, a split whose gain lacks less than this, in nats a row, gets more steps.
_STEPS_NEAR, _NEAR = 20, 0.01
# Seeds are sought among at most this many rows.
_SEED_ROWS = 2000
# Every way of seeding is tried if the sample's statistics (rows x P) hold at most this many numbers.
_SMALL = 100_000
# If there are fewer other components than this, each way is tried several times: the first splits of
# a fit decide much, and cost little.
_FEW, _FEW_RESTARTS = 4, 2
# If the sample's statistics hold at most this many numbers, it is tried twice as often.
_TINY = 5_000


class Creation(NamedTuple):
    """Components proposed in place of a target.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Statistics of the new components on the sample.
    coef : ndarray, shape (J, P)
        Coefficients of the local step that shares the target's rows among them.
    gain : float
        Change of the objective on the sample alone, in nats.
    """

    s: np.ndarray
    coef: np.ndarray
    gain: float


def tries_all_ways(sample, n_statistics):
    """Whether the sample is small enough for one attempt to try every way of seeding."""
    return sample.z.shape[0] * n_statistics <= _SMALL


def create(model, sample, target, others, n_seeds, attempt, rng, *, adapt=False):
    """New components to replace a target.

    Parameters
    ----------
    model : Model
        A mixture.
    sample : Sample
        Rows of the target, with their responsibilities and weights.
    target : ndarray, shape (P,)
        Statistics of the target on the whole data.
    others : ndarray, shape (K - 1, P)
        Statistics of the components that stay.
    n_seeds : int
        Number of seeds to start from. Two seeds are tried as well.
    attempt : int
        How often the target has been tried before. On a small sample the first attempt tries every way
        of seeding. Every other attempt tries one way, and the next attempt the next one.
    rng : numpy.random.RandomState
        Source of random numbers.
    adapt : bool, default=False
        Whether the prior adapts to the new components, which is worth its cost if there are few
        components.

    Returns
    -------
    creation : Creation or None
        Statistics, coefficients and an estimated gain. None if no split into two or more components was
        found.
    """
    ways = [(n_seeds, False), (n_seeds, True), (2, False), (2, True)]
    every_way, few = tries_all_ways(sample, len(target)), len(others) < _FEW
    if model.likelihood.n_features == 1:
        ways = ways[::2]
    if not (every_way and (attempt == 0 or few)):
        ways = [ways[attempt % len(ways)]]
    elif few:
        ways *= _FEW_RESTARTS * (2 if sample.z.shape[0] * len(target) <= _TINY else 1)
    best = None
    for n, whiten in ways:
        small = RestrictedMixture(model, sample, others, adapt)
        s = _seeded(model, sample, target, n, whiten, rng)
        if len(s) < 2:
            continue
        s, entropy = small.refine(s)
        if s is None:
            continue
        gain = small.gain(s, entropy, model.prior)
        if -_NEAR * sample.total < gain <= 0 and every_way:  # more steps may be enough
            s, entropy, _ = small.iterate(s, _STEPS_NEAR, 0.0)
            gain = small.gain(s, entropy, model.prior) if len(s) > 1 else gain
        if len(s) > 1 and (best is None or gain > best.gain):
            best = Creation(s, small.coefficients(s), gain)
    return best


def _seeded(model, sample, target, n_seeds, whiten, rng):
    """Statistics (J, P) of the seeds that have at least one row."""
    z, mass, weight = sample
    rows, seeding = slice(None), seeding_mass(mass, weight)
    mass = mass if weight is None else mass * weight
    if z.shape[0] > _SEED_ROWS:
        rows = rng.choice(z.shape[0], _SEED_ROWS, replace=False)
    points = model.likelihood.seeding_points(model.prior, target, z[rows], whiten=whiten)
    resp = lloyd(points, seeding[rows], n_seeds, rng)
    s = summaries(model.likelihood, z[rows], resp * mass[rows, np.newaxis])
    return s[s[:, -1] >= sample.one_row]
