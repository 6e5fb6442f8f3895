"""Small data have as many threads as large ones, so that laws of threads say something.

``--part I/N`` runs one of N parts of the variants of each test, see `tests.parts`.
"""

import pytest

from sklearn_bnp._kernels import threads
from tests.parts import chosen, part

SHIPPED = threads.LEAST_WORK


def pytest_addoption(parser):
    parser.addoption(
        "--part",
        metavar="I/N",
        help="run the I-th of N parts of the variants of each test; each part has one or more of every test",
    )


def pytest_configure(config):
    text = config.getoption("part")
    config.part = None if text is None else part(text)


@pytest.hookimpl(trylast=True)  # of what is left once -m and -k have chosen
def pytest_collection_modifyitems(config, items):
    if config.part is not None:
        kept = chosen([item.nodeid for item in items], *config.part)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]


@pytest.fixture(scope="session", autouse=True)
def threads_for_little_work():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LEAST_WORK", 1.0)
        yield


@pytest.fixture
def threads_as_shipped(monkeypatch):
    """Short calls of kernels have one thread, as they have for users."""
    monkeypatch.setattr(threads, "LEAST_WORK", SHIPPED)
