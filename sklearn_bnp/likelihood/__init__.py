"""Likelihoods with conjugate priors: each family has a file, and a line in ``OBSERVATIONS``.

A family of one's own derives from `ObservationModel` and `Likelihood`, and from one of the layouts of rows if
rows are not dense arrays; see "Add a likelihood" in the documentation.

What is where
-------------
- For all families: `base`, steps over rows in `row_kernels`, `seeding`, `leaving_out` of rows, entries that
  are `missing`, `limits` of parameters, and `ascent` of functions of few numbers.
- Gaussians: `gaussian`, with `covariance_shapes`, `scaling`, and `cells` for rounded values;
  `fixed_variance`; with missing entries `gaussian_missing` and `full_gaussian_missing`.
- Rows that depend on rows before, which are `lags`: `autoregressive` with `autoregressive_gaps`; and
  `correlated` with `correlated_rows`, `new_starts` and `step_scaling`.
- Discrete columns: `bernoulli`, `categorical`, `poisson` and `multinomial`, with `counts` and `dirichlet`
  priors; `negative_binomial` with `size_sums` and `entry_sums`.
- Families side by side: `columns`, `column_likelihood` and `column_numbers`.
- `change_of_units` is for models of different data that become one.
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
from .negative_binomial import NegativeBinomialObservation
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
    "negative_binomial": NegativeBinomialObservation,
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
    "NegativeBinomialObservation",
    "ObservationModel",
    "PoissonObservation",
    "Quadratic",
    "SparseRows",
    "TableRows",
]
