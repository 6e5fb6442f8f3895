"""Unions of components of which less than a row is left, when a stream forgets."""

from __future__ import annotations

import numpy as np

from ..engine.affinity import union_evidence
from ..engine.edits import UnionEdit, union_row
from ..engine.trials import KnownTrial, Outcome


def small_unions(model, totals, least):
    """`KnownTrial` objects by which components of less than ``least`` join the one that suits them best.

    That one keeps its name. For the entropy of the union a lower bound stands, which is nearly exact,
    since there is little to lose.
    """
    trials, used = [], set()
    if len(totals.uids) < 2:
        return trials
    own = model.likelihood.evidence(model.prior, totals.s)
    for k in np.flatnonzero(totals.n < least).tolist():
        others = np.array([j for j in range(len(totals.uids)) if j != k])
        both = union_evidence(
            model.likelihood, model.prior, totals.s, np.full(len(others), k), others
        )
        best = int(others[np.argmax(both - own[others])])
        if used & {k, best}:
            continue
        used |= {k, best}
        removed = (int(totals.uids[best]), int(totals.uids[k]))
        created = removed[:1]
        outcome = Outcome(union_row(totals, removed, created), UnionEdit(removed, created, {}))
        trials.append(KnownTrial("merge", removed, created, outcome))
    return trials
