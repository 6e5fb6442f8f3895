"""Splits of a component of rows: how its successors are found on a sample of its rows.

Rows have no order here. Mixtures replace components so. Hidden Markov models look at the rows of their first
state in this way, too, beside others that know which rows are neighbours.

`creation` goes through several `ways` to look for successors, and `development` is what becomes of one of
them: seeds, also narrow ones (`slabs`), and steps of a `restricted_mixture`. A component that is alone is
also looked at in `more_rows`. `stick_breaking` has a prior of weights for models that are no mixtures.
"""

from .creation import create

__all__ = ["create"]
