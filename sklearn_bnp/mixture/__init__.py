"""Dirichlet process mixtures, and `create`, which finds successors of a component on a sample of its rows.

What is where
-------------
- The rooms that each model has: `estimator`, `predictor`, `setup` between these and the engine, `chunks`,
  `soundness`, `model`, `weights`, `local` and `sampling`.
- Proposals: `birth`, `delete`, `oversplit`, `regroup` and `relocate`; merges are in the engine. Larger
  changes are found by `searches`, judged by `comparison`, made block by block by `exchange`, or found among
  `pooled_rows`.
"""

from ..splits import create

__all__ = ["create"]
