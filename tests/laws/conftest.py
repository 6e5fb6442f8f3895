"""Fixtures that run a law on every likelihood and every allocation."""

import pytest

from .families import ALLOCATIONS, FAMILIES


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request):
    return request.param


@pytest.fixture(params=ALLOCATIONS, ids=lambda allocation: allocation.name)
def allocation(request):
    return request.param
