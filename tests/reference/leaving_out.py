"""Predictive densities of rows given all other rows, found by leaving the row out of the data."""

import numpy as np


def predictive_without(twin, z, shares, least=0.0):
    """Log densities (n, K) of rows given components made of the others.

    ``shares`` (n, K) say how much of each row each component has. A share up to ``least`` stays in.
    """
    out = np.empty(shares.shape)
    for i in range(len(z)):
        for k in range(shares.shape[1]):
            others = shares[:, k].copy()
            if others[i] > least:
                others[i] = 0.0
            out[i, k] = twin.log_predictive(twin.posterior(z, others), z[i : i + 1])[0]
    return out
