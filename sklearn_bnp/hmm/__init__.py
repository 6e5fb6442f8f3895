"""Hidden Markov models of sequences.

What is where
-------------
- The rooms that each model has: `estimator`, `predictor`, `setup` between these and the engine, `chunks`,
  `soundness`, `model`, `weights`, `local`, `sampling` (with `sampled_steps`) and `seeding`.
- Data: `sequences` are what a user has passed, a `batch` is what is visited.
- `transitions` are counted beside rows, and `unions` of states are made in them.
- Proposals: `birth` and `pair_births`, `merge` and `delete` with a `second_try`, `restart` and `oversplit`.
- New states: `creation` fits a `nested_chain` in the place of some states, with `nested_links` to the
  others, and joins its states by `nested_unions`. Its starts may be told by `visits`, or come from rows
  `without_time`.
- `searches` replace many states at once. They split them by windows, by `row_contexts` or by `state_ages`,
  and each block of rows may `exchange` its states.
"""
