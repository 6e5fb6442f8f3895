"""Exchanges: each block of rows takes the better one of two sets of components.

Design note
-----------
(a) A search may find better components for some rows and worse ones for others, so that all of them together
    lose. Blocks of rows (``engine/matching_components.py``) are therefore judged one by one.
(b) What a block gains is not estimated: others hold a part of its rows, and terms of single components would
    forget that. The found components of one block at a time take the place of the present ones, a few
    steps follow, and the objective of all rows decides.
"""

from __future__ import annotations

import numpy as np

from ..engine.matching_components import blocks_that_differ, members, similarities
from .comparison import WORTH_A_TRIAL

# Similarities from which components are linked.
_LEVELS = (0.1,)
# Steps after an exchange of one block.
_STEPS = 2


def exchanged(small, present, found):
    """Statistics (J, P) of the present components, but those that were found in each block where these gain.

    They are None if no block gains, or if the two sets differ in one block only.

    Parameters
    ----------
    small : RestrictedMixture
        The components that may be replaced, on a sample of their rows.
    present, found : ndarray, shapes (K, P) and (K', P)
        Statistics of both sets of components on the sample.
    """
    present, entropy, resp = small.step(present)
    found, _, resp_found = small.step(found)
    blocks = blocks_that_differ(similarities(resp, resp_found, small.sample.row_mass), _LEVELS)
    if not blocks:
        return None
    objective = small.objective(present, entropy)

    def mixed(blocks):
        given, taken = members(blocks)
        return np.concatenate([np.delete(present, given, axis=0), found[taken]])

    def gain(block):
        s, entropy, _ = small.iterate(mixed([block]), _STEPS, 0.0)
        return small.objective(s, entropy) - objective

    better = [block for block in blocks if gain(block) > WORTH_A_TRIAL]
    return mixed(better) if better else None
