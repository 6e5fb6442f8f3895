"""Predictive densities of rows whose own shares are taken out of the components.

Design note
-----------
(a) A row is part of the components that it is compared with. Where components have few rows for their
    parameters, each fits its own rows so closely that none of them would ever leave. A row is therefore
    compared with ``s - r s(x)``: the statistics of the component without the share r that it has of the
    row. This is the idea of collapsed inference (CVB0; Asuncion et al., "On smoothing and inference for
    topic models", 2009). Here it serves the search for components, and never verdicts.
(b) Few pairs of a row and a component have a share worth the while. All pairs get `log_predictive`,
    and those with a share get the change that taking it out makes.
(c) Any conjugate family can tell the change from its evidence (`change_of_evidence`). Most families of
    this package have closed forms.
(d) The ridge of Gaussian families stays in: it is not a matter of this row.
"""

from __future__ import annotations

import numpy as np

# Smaller shares are not taken out: they hardly change a component.
LEAST_SHARE = 1e-2
# Numbers of a table for pairs of rows and components, of which a few are in memory; and the least pairs.
_BLOCK_NUMBERS, _LEAST_PAIRS = 100_000, 16


def pairs_with_shares(shares, width):
    """Yield rows i, components k and shares r, each (m,), of the pairs with a share, block by block.

    ``width`` is how many numbers each pair takes.
    """
    rows, components = np.nonzero(shares > LEAST_SHARE)
    for block in blocks(len(rows), width):
        i, k = rows[block], components[block]
        yield i, k, np.asarray(shares[i, k], dtype=float)


def blocks(n, width):
    """Yield slices of n pairs, each of which takes ``width`` numbers."""
    most = max(_LEAST_PAIRS, _BLOCK_NUMBERS // max(width, 1))
    for lo in range(0, n, most):
        yield slice(lo, lo + most)


def change_of_evidence(likelihood, prior, s, z, r):
    """Change (m,) of log predictive densities of rows ``z`` (m, D') under components ``s`` (m, P).

    The density of a row is the evidence with it less the evidence without it, both of the component as
    it is and of the component without the row's share ``r`` (m,).
    """
    own = likelihood.features(z.astype(np.float64, copy=False))
    before = likelihood.evidence(prior, s + own) - likelihood.evidence(prior, s)
    less = s - r[:, np.newaxis] * own
    less[:, -1] = np.maximum(less[:, -1], 0.0)
    return likelihood.evidence(prior, less + own) - likelihood.evidence(prior, less) - before
