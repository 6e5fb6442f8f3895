"""Fixtures that run a law on every likelihood and every allocation, of mixtures and of topics."""

import pytest

from .families import ALLOCATIONS, FAMILIES, LEADING, LEADING_FAMILIES
from .topic_kinds import KINDS, PRIORS

# Of the leading families, those whose searches quick tests run with every prior of the weights.
_WITH_EVERY_ALLOCATION = {"full", "bernoulli"}
# Mixtures of rows refuse correlated rows, and laws of sequences have them too. Here they are for the engine's
# sake, which adapts a prior with dynamics: whole streams and fits of them are long, and are slow tests.
_FOR_SEQUENCES = {"correlated", "correlated-ridge"}
_LONG = ("test_streaming.py", "test_invariance.py")
# Each of these laws is several fits: quick tests have one of each kind of rows, and missing values.
_IN_LONG = {"full", "bernoulli", "spherical-missing"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow what a likelihood and an allocation can only do together.

    They meet in a sum of the objective alone. So each allocation runs with the leading families, each
    family with the first allocation of a law, and long searches with few of both.
    """
    seen = set()
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        allocation = params.pop("allocation", None)
        family = params.pop("family", None) or params.get("leading_family")
        name = getattr(family, "name", None)
        of_leading = "leading_family" in item.fixturenames and name not in _IN_LONG
        if name is not None and item.path.name in _LONG and (of_leading or name in _FOR_SEQUENCES):
            item.add_marker(pytest.mark.slow)
        if getattr(allocation, "name", None) is None or getattr(family, "name", None) is None:
            continue
        if "leading_family" in params:
            # from one component and from many, whatever the family
            slow = family.name not in _WITH_EVERY_ALLOCATION and "dp" not in allocation.name[:2]
        else:
            key = (item.nodeid.partition("[")[0], family.name, repr(sorted(params.items())))
            slow = family.name not in LEADING and key in seen
            seen.add(key)
        if slow:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request):
    return request.param


@pytest.fixture(params=LEADING_FAMILIES)
def leading_family(request):
    return request.param


@pytest.fixture(params=ALLOCATIONS, ids=lambda allocation: allocation.name)
def allocation(request):
    return request.param


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture(params=PRIORS, ids=lambda prior: prior.name)
def prior(request):
    return request.param
