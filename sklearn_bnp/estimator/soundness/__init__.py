"""Checks that the attributes of an estimator fit together, whoever wrote them.

Design note
-----------
(a) A saved state may have been made by hand, or damaged before it was saved, so that its checksum is
    right. Kernels read beyond their arrays if sizes do not fit. Therefore sizes are compared here,
    before anything is computed; the classes themselves trust what they are given.
(b) Each class has its check, found by `singledispatch`: a class of a user's own that derives from one of
    ours is held to the same rules, and nothing is asked of other classes. The checks here know the
    engine and the likelihoods; each slice registers the checks of its own classes in its ``soundness.py``.
(c) All checks together go through the arrays once, which takes less time than reading the file.
"""
