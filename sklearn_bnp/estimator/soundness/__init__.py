"""What must hold of an estimator's attributes, however they got there.

Design note
-----------
(a) A saved state may have been made by hand, or damaged before it was saved: a checksum does not tell.
    Kernels read beyond their arrays if sizes do not fit, so that these are compared before anything
    is computed: here, and not in the classes, which are made by our own code alone otherwise.
(b) There is a function for each class, found by `singledispatch`, so that a class of a user's own
    that derives from one of ours is held to the same. Of others nothing is asked.
(c) Cost: a pass over what was read, which is less than to read it.
"""

from .estimators import check_bounded, check_chains, check_mixture, check_topics

__all__ = ["check_bounded", "check_chains", "check_mixture", "check_topics"]
