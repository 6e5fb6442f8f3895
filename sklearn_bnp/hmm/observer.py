"""What watches a pass over sequences on behalf of proposals."""

from __future__ import annotations


class ChainObserver:
    """Looks at sequences while a pass finds their states, and after it.

    Attributes
    ----------
    wants_alpha : bool
        Whether blocks should come with alpha, which has to be copied.
    """

    wants_alpha = False

    def observe(self, block):
        """Take note of a `ChainBlock`; those of one long sequence come in turn, the last one first."""

    def revisit(self, rows):
        """Take note of a batch as a whole, `PreparedRows`, when all of its blocks have been seen."""
