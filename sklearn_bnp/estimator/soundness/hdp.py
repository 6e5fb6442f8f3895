"""Checks of the fields that models over a hierarchical Dirichlet process share."""

from __future__ import annotations

from ...hdp.sticks import Sticks
from .expectations import expect, expect_numbers, expect_type, expect_uids


def check_sticks(model, below):
    """Raise unless a model's sticks, and its components that retire, are sound."""
    expect_uids("names of sticks", model.uids, below)
    if model.sticks is not None:
        expect_type("sticks", model.sticks, Sticks)
        K = len(model.uids)
        expect_numbers("means of sticks", model.sticks.rho, (K,), least=0.0, most=1.0)
        expect_numbers("counts of sticks", model.sticks.omega, (K,), least=0.0, finite=False)
    expect_type("what is learned", model.learned, tuple)
    known = all(isinstance(getattr(model.allocation, name, None), float) for name in model.learned)
    expect(known, "something is learned that the allocation does not have")
    for gone, heirs in (model.retired or {}).items():
        expect_uids("components that retire", (gone,), below)
        expect_uids("components that take their place", heirs, below)
