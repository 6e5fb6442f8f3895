"""Priors of the weights of a mixture: Dirichlet process, Pitman-Yor process, finite Dirichlet.

Design note
-----------
(a) A prior of weights answers three questions, each from the counts of the components alone. The global
    step is part of the answers: the posterior of the weights is at its optimum given the counts.
(b) The two processes have sticks ``u_k ~ Beta(1 - d, gamma + k d)``; the discount d of a Dirichlet process
    is 0. A stick without rows behind it has its prior as posterior, and costs exactly nothing, so that
    models with K and with K + 1 components can be compared.
(c) A discount that is learned is found anew from the counts in each call. The objective stays a
    function of the counts, and a candidate of a proposal is judged with the discount that suits it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from ..inputs.advice import ExplainedParameters
from ..inputs.types import Floats
from ..likelihood.limits import POSITIVE
from ..splits.stick_breaking import stick_breaking_term

# The search for a discount starts here, and ends after a step that is no longer than this: the error
# that is left is of the order of its square.
_FIRST_GUESS, _LAST_STEP = 0.25, 1e-7
# Steps halve an interval at worst, and ten are enough in practice.
_MOST_STEPS = 60
# A learned discount is no closer to 1 than this.
_MARGIN = 1e-9


class MixtureAllocation(ExplainedParameters, BaseEstimator, ABC):
    """Base class of the priors of mixture weights.

    A prior of one's own derives from it. The three abstract methods are pure functions of the counts
    of the components. They take the variational posterior of the weights to be the best one for
    these counts. Components have no order: a prior that needs one chooses the best, and no result
    depends on the order in which the counts are given.

    See Also
    --------
    DPAllocation : Dirichlet process.
    PitmanYorAllocation : Pitman-Yor process, for many small components.
    DirichletAllocation : Finite symmetric Dirichlet distribution.

    Examples
    --------
    Equal weights, whatever the counts are:

    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB, MixtureAllocation
    >>> class EqualWeights(MixtureAllocation):
    ...     def elbo(self, n):
    ...         return -np.nansum(n, axis=-1) * np.log(np.sum(~np.isnan(n), axis=-1))
    ...
    ...     def expected_log_weights(self, n):
    ...         return np.full(len(n), -np.log(len(n)))
    ...
    ...     def weights(self, n):
    ...         return np.full(len(n), 1.0 / len(n))
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[-9], [0], [9]], 30, axis=0)
    >>> DPMixtureVB(allocation=EqualWeights(), random_state=0).fit(X).n_components_
    3
    """

    _parameter_constraints = {}

    @abstractmethod
    def elbo(self, n: Floats) -> Any:
        """Allocation term of the objective, at its maximum given the counts.

        Parameters
        ----------
        n : ndarray of shape (..., K)
            Counts N_k >= 0 of the components: sums of responsibilities times sample weights. They are
            NaN where there is no component, so that candidates with different numbers of
            components can be compared in one call.

        Returns
        -------
        elbo : ndarray of shape (...)
            ``E_q[log p(z, pi) - log q(pi)]`` in nats, for assignments z and weights pi. The entropy
            of q(z) is a term of its own and not included.
        """

    @abstractmethod
    def expected_log_weights(self, n: Floats) -> Floats:
        """Expected logarithms of the weights, which the local step adds to each component.

        Parameters
        ----------
        n : ndarray of shape (K,)
            Counts of the components.

        Returns
        -------
        expected_log_weights : ndarray of shape (K,)
            ``E_q[log pi_k]``: the derivatives of `elbo` by the counts.
        """

    @abstractmethod
    def weights(self, n: Floats) -> Floats:
        """Expected weights, which become ``weights_`` and serve predictions.

        Parameters
        ----------
        n : ndarray of shape (K,)
            Counts of the components.

        Returns
        -------
        weights : ndarray of shape (K,)
            ``E_q[pi_k]``, scaled so that they sum to 1.
        """

    def attributes(self, n: Floats) -> dict[str, Any]:
        """Fitted attributes of the estimator that are particular to this prior.

        Parameters
        ----------
        n : ndarray of shape (K,)
            Counts of the components.

        Returns
        -------
        attributes : dict
            Values by name; names end in an underscore. There are none by default.
        """
        return {}


class _StickBreaking(MixtureAllocation):
    """Weights ``pi_k = u_k prod_{l < k} (1 - u_l)`` with sticks ``u_k ~ Beta(1 - d, gamma + k d)``.

    With the Beta posteriors at their optimum the allocation term is a sum of logarithms of ratios of
    Beta functions, Hughes (2016), (3.44) with the sign of the errata. It telescopes to

        sum_k [lnG(1 - d + N_k) - lnG(1 - d) - log(1 + T_k / (gamma + (k - 1) d))]
            + lnG(gamma) - lnG(gamma + N),    T_k = N_k + N_k^>.

    Only the T_k depend on the order of the components, and all of them are smallest for decreasing
    counts. Components are therefore always taken in that order, and empty ones come last.

    Derived classes have a ``concentration`` gamma and a ``discount`` d.
    """

    def _discount(self, n):
        """The discount for each row of counts (..., K) in ascending order: a number, or (..., 1)."""
        if self.discount == "auto":
            return best_discount(n, self.concentration)[..., np.newaxis]
        return self.discount

    def elbo(self, n: Floats) -> Any:
        n = np.where(np.isnan(n), 0.0, n)
        n.sort(axis=-1)
        return stick_breaking_term(n, self.concentration, self._discount(n))

    def _betas(self, n):
        """Order of the sticks and parameters a, b (K,) of their Beta posteriors."""
        order = np.argsort(-n, kind="stable")
        sorted_n = n[order]
        tail = np.cumsum(sorted_n[::-1])[::-1]
        d = np.squeeze(self._discount(sorted_n[::-1]))
        sticks = np.arange(1, len(n) + 1)
        return order, 1.0 - d + sorted_n, self.concentration + sticks * d + tail - sorted_n

    def expected_log_weights(self, n: Floats) -> Floats:
        order, a, b = self._betas(n)
        total = digamma(a + b)
        log_left = np.concatenate([[0.0], np.cumsum(digamma(b) - total)[:-1]])
        out = np.empty(len(n))
        out[order] = digamma(a) - total + log_left
        return out

    def weights(self, n: Floats) -> Floats:
        order, a, b = self._betas(n)
        left = np.concatenate([[1.0], np.cumprod(b / (a + b))[:-1]])
        out = np.empty(len(n))
        out[order] = a / (a + b) * left
        return out / out.sum()


class DPAllocation(_StickBreaking):
    """Dirichlet process: the prior of mixture weights that ``allocation="dp"`` names.

    The sticks of its stick-breaking form are ``u_k ~ Beta(1, concentration)``. The number of
    components grows like the logarithm of the number of rows.

    Parameters
    ----------
    concentration : float, default=1.0
        Concentration gamma of the process, above 0. Greater values favour more components.

    See Also
    --------
    PitmanYorAllocation : Has a discount beside the concentration.

    References
    ----------
    D. M. Blei and M. I. Jordan, Variational inference for Dirichlet process mixtures, Bayesian
    Analysis 1, 2006.

    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics,
    and sequences, PhD thesis, Brown University, 2016, Sec. 3.2-3.4.

    Examples
    --------
    >>> from sklearn_bnp import DPAllocation, DPMixtureVB
    >>> model = DPMixtureVB(allocation=DPAllocation(concentration=5.0))
    """

    _parameter_constraints = {"concentration": [POSITIVE]}
    discount = 0.0

    def __init__(self, concentration: float = 1.0) -> None:
        self.concentration = concentration


class PitmanYorAllocation(_StickBreaking):
    """Pitman-Yor process: a prior of mixture weights for few large and many small components.

    The sticks of its stick-breaking form are ``u_k ~ Beta(1 - discount, concentration + k
    discount)``. Sorted weights fall like a power of their rank, and the number of components grows
    like the number of rows to the power of the discount. With discount 0 it is the Dirichlet process.

    Parameters
    ----------
    concentration : float, default=1.0
        Concentration gamma of the process, above 0. Greater values favour more components.
    discount : float or "auto", default="auto"
        Discount d of the process, at least 0 and less than 1. Greater values favour more small
        components. If "auto", it is learned: it is the discount that gives the highest objective.
        There is only one such discount, because the objective is concave in it.

    See Also
    --------
    DPAllocation : The same with discount 0.

    Notes
    -----
    A fitted `DPMixtureVB` with this prior has the attribute ``discount_``.

    References
    ----------
    J. Pitman and M. Yor, The two-parameter Poisson-Dirichlet distribution derived from a stable
    subordinator, Annals of Probability 25, 1997.

    H. Ishwaran and L. F. James, Gibbs sampling methods for stick-breaking priors, Journal of the
    American Statistical Association 96, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB, PitmanYorAllocation
    >>> rng = np.random.default_rng(0)
    >>> sizes = 600 // np.arange(1, 31) ** 2 + 3
    >>> centers = rng.normal(scale=30, size=(30, 2))
    >>> X = rng.normal(np.repeat(centers, sizes, axis=0))
    >>> model = DPMixtureVB(allocation=PitmanYorAllocation(), observation="fixed_variance_gaussian")
    >>> print(f"{model.set_params(random_state=0).fit(X).discount_:.2f}")
    0.17
    """

    _parameter_constraints = {
        "concentration": [POSITIVE],
        "discount": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
    }

    def __init__(self, concentration: float | None = 1.0, discount: float | str = "auto") -> None:
        self.concentration = concentration
        self.discount = discount

    def attributes(self, n: Floats) -> dict[str, Any]:
        return {"discount_": float(np.squeeze(self._discount(np.sort(n))))}


def best_discount(n, concentration):
    """The discount that maximises the allocation term of a Pitman-Yor process.

    The term is concave in d: lnG(1 - d + N) - lnG(1 - d) and log(gamma + k d) - log(gamma + k d + T)
    have negative second derivatives. The secant method on the slope therefore finds the one maximum;
    where a step would leave the interval that can still hold it, the interval is halved instead.

    Parameters
    ----------
    n : ndarray, shape (..., K)
        Counts in ascending order, 0 where there is no component.
    concentration : float

    Returns
    -------
    ndarray, shape (...)
        0 where the term falls from there.
    """
    rows, tail = (a.reshape(-1, n.shape[-1]) for a in (n, np.cumsum(n, axis=-1)))
    discount = np.zeros(len(rows))
    last = _slope(rows, tail, concentration, discount)
    (active,) = np.nonzero(last > 0)
    rows, tail, last, low = rows[active], tail[active], last[active], discount[active]
    high, d, step = low + 1.0 - _MARGIN, low + _FIRST_GUESS, low + _FIRST_GUESS
    for _ in range(_MOST_STEPS):
        if not len(active):
            break
        slope = _slope(rows, tail, concentration, d)
        low, high = np.where(slope > 0, d, low), np.where(slope > 0, high, d)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = d - slope * step / (slope - last)
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        discount[active] = new
        last, d, step = slope, new, new - d
        going = np.abs(step) > _LAST_STEP
        if not going.all():  # a row's result does not depend on the others
            active, rows, tail, last, low, high, d, step = (
                a[going] for a in (active, rows, tail, last, low, high, d, step)
            )
    return discount.reshape(n.shape[:-1])


def _slope(n, tail, gamma, d):
    """Derivative by d (M,) of the allocation term, for ascending counts (M, K) and their sums so far."""
    before, d = np.arange(n.shape[-1])[::-1], d[:, np.newaxis]
    least = gamma + before * d
    each = before * tail / (least * (least + tail)) - digamma(1.0 - d + n)
    return each.sum(axis=-1) + n.shape[-1] * digamma(1.0 - d[:, 0])


class DirichletAllocation(MixtureAllocation):
    """Finite symmetric Dirichlet prior of mixture weights, which ``allocation="dirichlet"`` names.

    An empty component is not free here, as it is under the two processes.

    Parameters
    ----------
    concentration : float, default=None
        Parameter of each component, above 0. None is 1 / K, for the number K of components at the time.

    See Also
    --------
    DPAllocation : Dirichlet process.

    References
    ----------
    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics,
    and sequences, PhD thesis, Brown University, 2016, Sec. 2.5.

    Examples
    --------
    >>> from sklearn_bnp import DirichletAllocation, DPMixtureVB
    >>> model = DPMixtureVB(allocation=DirichletAllocation(concentration=0.1))
    """

    _parameter_constraints = {"concentration": [POSITIVE, None]}

    def __init__(self, concentration: float | None = None) -> None:
        self.concentration = concentration

    def _concentration(self, k):
        return 1.0 / k if self.concentration is None else np.full_like(k, self.concentration)

    def elbo(self, n: Floats) -> Any:
        n = np.asarray(n, dtype=float)
        k = np.sum(~np.isnan(n), axis=-1).astype(float)
        a = np.asarray(self._concentration(k))[..., np.newaxis]
        each = np.where(np.isnan(n), 0.0, gammaln(a + np.nan_to_num(n)) - gammaln(a))
        total = a[..., 0] * k
        return each.sum(axis=-1) + gammaln(total) - gammaln(total + np.nansum(n, axis=-1))

    def expected_log_weights(self, n: Floats) -> Floats:
        a = self._concentration(np.asarray(float(len(n)))) + n
        return digamma(a) - digamma(a.sum())

    def weights(self, n: Floats) -> Floats:
        a = self._concentration(np.asarray(float(len(n)))) + n
        return a / a.sum()


ALLOCATIONS = {
    "dp": DPAllocation,
    "dirichlet": DirichletAllocation,
    "pitman-yor": PitmanYorAllocation,
}


def allocation_from(allocation, concentration):
    """The `MixtureAllocation` for two parameters of an estimator.

    Parameters
    ----------
    allocation : str or MixtureAllocation
        A name of ``ALLOCATIONS``, or a prior, of which a copy is returned.
    concentration : float or None
        ``weight_concentration_prior``: for the prior that a name stands for.

    Returns
    -------
    MixtureAllocation
    """
    if isinstance(allocation, str):
        family = ALLOCATIONS[allocation]
        return family() if concentration is None else family(float(concentration))
    if concentration is not None:
        raise ValueError(
            f"weight_concentration_prior={concentration!r} is for priors given by name, and allocation="
            f"{allocation!r} is an object: set its own parameters instead, such as "
            "allocation__concentration, and weight_concentration_prior=None."
        )
    allocation = clone(allocation)
    allocation._validate_params()
    _check_answers(allocation)
    return allocation


def _check_answers(allocation):
    """Raise ValueError unless a prior of a user's own keeps the form of the three methods."""
    n = np.array([[3.0, 1.5, 0.5], [4.0, 2.0, np.nan]])
    name = type(allocation).__name__
    answers = {
        "elbo": (allocation.elbo(n.copy()), (2,)),
        "expected_log_weights": (allocation.expected_log_weights(n[0].copy()), (3,)),
        "weights": (allocation.weights(n[0].copy()), (3,)),
    }
    for method, (answer, shape) in answers.items():
        if np.shape(answer) != shape or not np.all(np.isfinite(answer)):
            counts = n if method == "elbo" else n[0]
            raise ValueError(
                f"allocation={allocation!r}: {name}.{method} returns {answer!r} for the counts "
                f"{counts.tolist()}; it must return finite numbers of shape {shape}. NaN is where there is "
                "no component."
            )
    alone = allocation.elbo(n[1, :2].copy())
    if not np.allclose(answers["elbo"][0][1], alone):
        raise ValueError(
            f"allocation={allocation!r}: {name}.elbo returns {answers['elbo'][0][1]} for the counts "
            f"{n[1].tolist()} but {alone} for {n[1, :2].tolist()}; a count of NaN must change nothing, "
            "for there is no component."
        )
