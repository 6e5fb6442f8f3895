"""The parts that all estimators share, from checks of parameters to fitted attributes and saved models.

What is where
-------------
- The flow of a fit: `base` and `fitting`, with `settings`, `parameters`, `callbacks`, `transactions` and
  `threads`.
- Checks of what users pass: `validation`, `observations`, `named_arguments`, `sample_weights` and
  `batch_names`. `far_batches` and `left_out_columns` are warnings of later rows.
- Fitted attributes and methods: `publishing`, `prediction`, `component_features` and `summary`.
- Data in chunks: `chunks`, and `lazy_methods` of fitted estimators.
- Files: `saved_state` of models, an `archive` of an `object_graph`, which `safe_graph` and `soundness`
  check; and `checkpoints` of fits, which are known again by `fingerprints`.
- `combination` of models that were fitted apart.
"""
