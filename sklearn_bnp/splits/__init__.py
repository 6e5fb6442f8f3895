"""Splits of a component of rows: how its successors are found on a sample of its rows.

Rows have no order here. Mixtures replace components so. Hidden Markov models look at the rows of their first
state in this way, too, beside others that know which rows are neighbours.
"""

from .creation import create

__all__ = ["create"]
