"""How observations are shared out among components."""

from ..mixture.weights import DirichletMixture, DPMixture

ALLOCATIONS = {"dp": DPMixture, "dirichlet": DirichletMixture}

__all__ = ["ALLOCATIONS", "DPMixture", "DirichletMixture"]
