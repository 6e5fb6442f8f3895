"""BLAS on one thread, as the package has it when it calls the kernels."""

import pytest
from threadpoolctl import threadpool_limits

from .problems import LAYOUTS, layout_name


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread():
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture(params=LAYOUTS, ids=layout_name)
def layout(request):
    return request.param


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param
