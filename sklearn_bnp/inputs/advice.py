"""Advice in messages about parameters: "did you mean", a class in place of an instance, names used elsewhere.

Design note. scikit-learn checks most parameters, and says what values they may have and which one it got.
`ExplainedParameters` adds the remedy where the value shows what was meant. Parameters that we check
ourselves use `advice_on` and `likely_name` directly.
"""

from __future__ import annotations

import sys
import warnings
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from .doc_links import DocumentationLinks
from .masked_arrays import refuse_masked
from .missing_parameters import set_missing_parameters

# Frames of these are not the caller's.
_LIBRARIES = ("sklearn_bnp.", "sklearn.", "joblib.", "functools", "contextlib")
# What other packages call it: a value that is a name elsewhere, and what it is here.
_ELSEWHERE = {
    "batch": "'full'",
    "dirichlet_distribution": "'dirichlet'",
    "dirichlet_process": "'dp'",
    "normal": "'gaussian'",
    "online": "'stochastic', or 'memoized' with calls of partial_fit",
    "variational": "'memoized'",
    "vb": "'memoized'",
}
# Parameters by the names that other packages give them, and what they are called here.
_NAMES_ELSEWHERE = {
    "alpha": "doc_topic_prior",
    "eta": "topic_word_prior",
    "iterations": "max_iter",
    "n_clusters": "n_components",
    "n_iter": "max_iter",
    "n_states": "n_components",
    "n_topics": "n_components",
    "num_topics": "n_components",
    "passes": "max_iter",
    "weight_concentration_prior_type": "allocation",
}
_MEANINGS = {
    "n_components": ", which is where a fit starts: the number is learned, and max_components limits it",
}
# What scikit-learn's mixtures take for the shape of covariances.
_COVARIANCES = ("full", "diag", "spherical", "tied")
# So many values of a list are shown in a message, so that the remedy after them is not lost.
_SHOWN = 10
# Remedies by the parameter.
_REMEDIES = {
    "n_components": "Give a whole number to start from, such as 1: their number is learned; "
    "max_components limits it.",
    "random_state": "Give an int, such as random_state=0.",
}


def warn_caller(message, category=UserWarning):
    """Warn at the line that calls the package, however many calls are between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def likely_name(value, names):
    """The one of several names that a misspelt one may stand for, or None."""
    if not isinstance(value, str):
        return None
    plain = {name.lower().replace("_", "-"): name for name in sorted(names)}
    text = value.lower().replace("_", "-")
    # part of a name is closer to it than any other name
    begun = [plain[key] for key in plain if min(len(key), len(text)) > 2 and key.startswith(text)]
    if text in plain or len(begun) == 1:
        return plain.get(text, begun[0] if begun else None)
    found = get_close_matches(text, plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else None


def advice_on(value, names=(), base=object):
    """A sentence with a leading blank about a value that is not known, or an empty string.

    Parameters
    ----------
    value : object
        The value that the user gave.
    names : iterable of str
        Names that are known.
    base : type
        Instances of this class would be right.
    """
    if isinstance(value, type) and issubclass(value, base):
        return f" {value.__name__} is a class: give an instance, {value.__name__}()."
    if not isinstance(value, str):
        return ""
    meant = _ELSEWHERE.get(value.lower(), "")
    if any(f"'{name}'" in meant for name in names):
        return f" What is called {value!r} elsewhere is {meant}."
    name = likely_name(value, names)
    return "" if name is None else f" Did you mean {name!r}?"


def advice_on_observation(value, names, base):
    """`advice_on` a value of ``observation``, which may be the shape of covariances."""
    if isinstance(value, str) and value in _COVARIANCES:
        return (
            f" {value!r} is a shape of covariances: set covariance_type of GaussianObservation, as in "
            "observation=GaussianObservation(covariance_type='full')."
        )
    return advice_on(value, names, base)


def listed(values):
    """The first values of a list as text, and how many there are in all if these are more."""
    values = list(values)
    if len(values) <= _SHOWN:
        return str(values)
    return f"[{', '.join(map(repr, values[:_SHOWN]))}, ...], {len(values)} in all"


class ExplainedParameters(DocumentationLinks):
    """Mixin, left of `BaseEstimator`: what scikit-learn says of a wrong parameter, and the remedy.

    A call of the class with an unknown parameter, or with one by position that has to be named, gets an error
    with the remedy, too. It is a base of all our classes with parameters, and so they have links to their
    pages, too.
    """

    def __init_subclass__(cls, **given):
        super().__init_subclass__(**given)
        if "__init__" in vars(cls):
            cls.__init__ = _explaining(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    def _advice_on_name(cls, name, names, given):
        """Sentence with a leading blank on a name not among the ``names`` of parameters, but ``given``."""
        meant = _NAMES_ELSEWHERE.get(name)
        if meant in names:
            return f" What is called {name!r} elsewhere is {meant!r}{_MEANINGS.get(meant, '')}."
        meant = likely_name(name, names)
        return "" if meant is None else f" Did you mean {meant!r}?"

    def __setstate__(self, state):
        super().__setstate__(state)
        set_missing_parameters(self)

    def _validate_params(self):
        for name, value in self.get_params(deep=False).items():
            refuse_masked(value, name)
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            remedy = _remedy(self)
            if not remedy:
                raise
            raise InvalidParameterError(f"{error}{remedy}") from None


def _explaining(init):
    """The function ``__init__`` of a class with parameters, with errors that name the remedy."""
    _, *parameters = signature(init).parameters.values()
    by_position = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    takes_all = any(p.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL) for p in parameters)

    @wraps(init)
    def explained(self, *args, **given):
        kind = type(self).__name__
        for name in () if takes_all else set(given).difference(by_position, by_name):
            raise TypeError(
                f"{kind}.__init__() got an unexpected keyword argument {name!r}."
                f"{self._advice_on_name(name, [*by_position, *by_name], given)}"
            )
        if not takes_all and by_name and len(args) > len(by_position):
            raise TypeError(
                f"{kind} takes {' and '.join(by_position) or 'nothing'} by position, but was also given "
                f"{args[len(by_position)]!r:.60}. Give parameters by name, as in {kind}({by_name[0]}=...)."
            )
        init(self, *args, **given)

    return explained


def with_part(params, name, part):
    """Parameters ``params`` of ``set_params``, with ``part`` as the value of the parameter ``name``.

    The nested parameters of ``name`` are set in ``part`` at once. If one of them is wrong, the estimator has
    not changed yet.
    """
    prefix = f"{name}__"
    own = {key.removeprefix(prefix): params[key] for key in params if key.startswith(prefix)}
    others = {key: value for key, value in params.items() if not key.startswith(prefix)}
    return {**others, name: part.set_params(**own)}


def has_nested(params, name):
    """Whether some of the parameters are nested in the parameter ``name``."""
    return any(key.startswith(f"{name}__") for key in params)


def require_parts(component, params):
    """Raise if parameters of ``set_params`` are nested in a value that has none, such as a name."""
    present = component.get_params(deep=False)
    for key in params:
        name, nested, _ = key.partition("__")
        if not nested or name not in present:
            continue
        value = params.get(name, present[name])
        if hasattr(value, "get_params") and not isinstance(value, type):
            continue
        kind = type(component).__name__
        constraints = component._parameter_constraints.get(name, "no_validation")
        try:
            validate_parameter_constraints({name: constraints}, {name: value}, kind)
        except InvalidParameterError as error:
            raise InvalidParameterError(f"{error}{_remedy_of(name, value, constraints)}") from None
        raise ValueError(
            f"Invalid parameter {key!r} for estimator {kind}: {name}={value!r:.200} has no parameters of its "
            f"own. Valid parameters are: {sorted(present)!r}."
        )


def _remedy(component):
    """The remedy for the first parameter of a component that is not valid, with a leading blank."""
    parameters = component.get_params(deep=False)
    for name, constraints in component._parameter_constraints.items():
        value = parameters.get(name)
        try:
            validate_parameter_constraints({name: constraints}, {name: value}, "")
        except InvalidParameterError:
            return _remedy_of(name, value, constraints)
    return ""


def _remedy_of(name, value, constraints):
    names = {
        option for each in constraints if isinstance(each, StrOptions) for option in each.options
    }
    found = advice_on(value, names, next((c for c in constraints if isinstance(c, type)), object))
    if found:
        return found
    if name == "covariance_type" and value == "tied":
        return " There are no covariances that all components share; 'full' gives each its own."
    if name in _REMEDIES:
        return f" {_REMEDIES[name]}"
    numbers = [each for each in constraints if isinstance(each, Interval)]
    if any(each.type is Integral for each in numbers):
        whole = isinstance(value, Real) and not isinstance(value, Integral)
        if whole and value == value // 1 and abs(value) < 1e15:
            return f" Give a whole number: {name}={int(value)}."
        if isinstance(value, (str, float)):
            return " Give a whole number."
    return ""
