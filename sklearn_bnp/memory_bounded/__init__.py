"""Topic models in bounded memory: clumps of rows, groups of documents, and epochs.

Gomes, Welling and Perona, Memory bounded inference in topic models, ICML 2008.
"""
