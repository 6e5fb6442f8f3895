"""Topic models of documents, whose topics are distributions of words or of rows.

What is where
-------------
- The rooms that each model has: `estimator`, `predictor`, `setup` between these and the engine, `chunks`,
  `soundness`, `model`, `weights`, `local` and `sampling`.
- Documents: a `corpus` is what a user has passed, a `batch` what is visited, `documents` what the local
  step takes.
- How often documents use topics: `counts`, `histograms` of these, `document_terms` and `union_sums`.
- Proposals: `birth`, `delete`, `resettle`, `restart`, which tries `fewer_topics` and a `common_topic`.
- New topics: `starts` are developed by `creation`. They come from `seeding`, `spectral` directions,
  `document_clusters`, or `hidden_topics`.
- Predictions: `new_documents`, and `completion` of documents.
"""
