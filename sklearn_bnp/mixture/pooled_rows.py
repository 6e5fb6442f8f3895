"""Pools: the rows of some components, in which others may take their place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine.samples import Sample, to_search
from ..inputs.rows import stacked


class Pool(NamedTuple):
    """Components that may give way to others, and a sample of what they have of the rows.

    Attributes
    ----------
    sample : Sample
        Rows of the pool, with the part of each that the pool has.
    scale : float
        Mass that a row of the sample stands for.
    own, others : ndarray, shapes (J, P) and (K - J, P)
        Statistics of the pool's components, and of all that stay.
    """

    sample: Sample
    scale: float
    own: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, context: Any, positions: Any) -> Pool:
        """The pool of the components at these positions, of each of which there is a sample."""
        totals, model = context.totals, context.model
        coef = model.coefficients(totals)[positions]

        def shares(z):
            return model.likelihood.local_step(coef, z, None, None, None, None)

        uids = totals.uids[positions].tolist()
        samples = [to_search(context.samples[uid], model.likelihood, model.prior) for uid in uids]
        sample, scale = pooled(samples, totals.n[positions], shares)
        return cls(sample, scale, totals.s[positions], np.delete(totals.s, positions, axis=0))


def pooled(samples, n, shares):
    """Sample of several components of masses ``n`` as one, and the mass that one of its rows stands for.

    A row that several components share may be in the sample of each. In either it is a row with all that the
    pool has of it, but counts less, in proportion to the component's share. Rows of components whose
    samples are denser count less, too.

    Parameters
    ----------
    samples : list of Sample
    n : ndarray, shape (J,)
    shares : callable
        ``shares(z)`` returns the parts (n, J) of the components in what the pool has of rows.
    """
    rate = np.array([sample.total for sample in samples]) / n
    parts = []
    for k, (z, mass, weight) in enumerate(samples):
        part = np.maximum(shares(z)[:, k].astype(float), mass)
        own = part * (rate.min() / rate[k])
        parts.append(Sample(z, mass / part, own if weight is None else own * weight))
    # rows of a single component are not copied
    z = parts[0].z if len(parts) == 1 else stacked([part.z for part in parts])
    mass, weight = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    sample = Sample(z, mass, weight).standing_for(n.sum())
    return sample, n.sum() / sample.total
