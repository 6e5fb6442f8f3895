"""Likelihoods with conjugate priors: each family has a file, and a line in ``OBSERVATIONS``.

A family of one's own derives from `ObservationModel` and `Likelihood`, and from one of the layouts of rows if
rows are not dense arrays; see "Add a likelihood" in the documentation.
"""

from .._kernels._responsibilities import Quadratic
from ..inputs.moments import Moments
from .autoregressive import AutoregressiveObservation
from .base import Likelihood, ObservationModel
from .bernoulli import BernoulliObservation
from .categorical import CategoricalObservation
from .columns import ColumnObservation
from .correlated import CorrelatedGaussianObservation
from .fixed_variance import FixedVarianceGaussianObservation
from .gaussian import GaussianObservation
from .multinomial import MultinomialObservation
from .poisson import PoissonObservation
from .row_kernels import DenseRows, SparseRows, TableRows

OBSERVATIONS = {
    "autoregressive": AutoregressiveObservation,
    "bernoulli": BernoulliObservation,
    "categorical": CategoricalObservation,
    "correlated_gaussian": CorrelatedGaussianObservation,
    "fixed_variance_gaussian": FixedVarianceGaussianObservation,
    "gaussian": GaussianObservation,
    "multinomial": MultinomialObservation,
    "poisson": PoissonObservation,
}

__all__ = [
    "OBSERVATIONS",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "CategoricalObservation",
    "ColumnObservation",
    "CorrelatedGaussianObservation",
    "DenseRows",
    "FixedVarianceGaussianObservation",
    "GaussianObservation",
    "Likelihood",
    "Moments",
    "MultinomialObservation",
    "ObservationModel",
    "PoissonObservation",
    "Quadratic",
    "SparseRows",
    "TableRows",
]
