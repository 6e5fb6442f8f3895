"""Small data have as many threads as large ones, so that laws of threads say something."""

import pytest

from sklearn_bnp._kernels import threads

SHIPPED = threads.LEAST_WORK


@pytest.fixture(scope="session", autouse=True)
def threads_for_little_work():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LEAST_WORK", 1.0)
        yield


@pytest.fixture
def threads_as_shipped(monkeypatch):
    """Short calls of kernels have one thread, as they have for users."""
    monkeypatch.setattr(threads, "LEAST_WORK", SHIPPED)
