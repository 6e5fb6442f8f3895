"""Fixtures that run a law on every likelihood and every allocation, of mixtures and of topics."""

import pytest

from .families import ALLOCATIONS, FAMILIES, LEADING_FAMILIES
from .topic_kinds import KINDS, PRIORS


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
