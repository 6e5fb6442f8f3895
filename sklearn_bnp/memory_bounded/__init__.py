"""Topic models in bounded memory: clumps of rows, groups of documents, and epochs.

An epoch (`epochs`) joins new documents to the items that were kept (`items`), builds the model (`building`:
updates in `local`, the objective in `model`, candidates in `birth` and `merge`) and compresses the items
again (`compression`). All epochs iterate over all items together, outside the engine's learner.

R. Gomes, M. Welling and P. Perona, Memory bounded inference in topic models, ICML 2008.

Topics are split in `halves`, and in several `parts`. `estimator`, `predictor` and `soundness` are as in other
models.
"""
