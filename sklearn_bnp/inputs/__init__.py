"""From what users pass to batches of rows, and what is found in data before a fit.

What is where
-------------
- Forms of data: `tables` and `rows` of numbers, `frames`, `masked_arrays` and `files`; `types` names them.
- Batches: `source` is their protocol. `batches` are of rows, `groups` are whole documents or sequences,
  known by `group_ids`. `content_hashes` tell whether a batch comes again.
- Found in data: `moments` from `moment_sums`, `resolution`, `increments`, `category_codes` and `outliers`.
- Beside the data: `advice` in messages, `doc_links`, `missing_parameters` of saved objects, and `blas`
  threads.
"""
