"""Small data have as many threads as large ones, so that laws of threads say something.

``--part I/N`` runs one of N parts of the variants of each test, and ``--share I/N`` one of N shares of the
tests; see `tests.parts`. Tests that take half a second or more are marked ``extended``: the README's command
leaves them to ``.ci/run``. Of tests with many such variants, which are marked ``quarter``, it runs one in
four. Variants that test different things, such as the pages of the documentation, are marked ``distinct``:
each part of a run has all of them.
"""

import os

# Tests run side by side, so threads that wait leave their core to others: spinning took many times what the
# work takes (doc/costs.rst). OpenMP reads this when it is loaded, and processes that tests start inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest

from sklearn_bnp._kernels import threads
from tests.parts import chosen, numbered, shared_out

SHIPPED = threads.LEAST_WORK


# What each option is for, and what chooses its tests by their names. Shares of tests come first: a part has
# one or more variants of every test that is left.
OPTIONS = {
    "--share": ("run the I-th of N shares of the tests, each with all of its variants", shared_out),
    "--part": (
        "run the I-th of N parts of the variants of each test; each part has one or more of every test",
        chosen,
    ),
}


def pytest_addoption(parser):
    for option, (purpose, _) in OPTIONS.items():
        parser.addoption(option, metavar="I/N", help=purpose)


def pytest_configure(config):
    texts = {option: config.getoption(option) for option in OPTIONS}
    config.chosen = {
        option: numbered(option, text) for option, text in texts.items() if text is not None
    }


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark three in four variants of a ``quarter`` as ``extended``; after ``-m`` and ``-k``, take a part."""
    many = [
        item
        for item in items
        if item.get_closest_marker("quarter") and not item.get_closest_marker("slow")
    ]
    kept = chosen([item.nodeid for item in many], 1, 4)
    for item in many:
        if item.nodeid not in kept:
            item.add_marker(pytest.mark.extended)
    yield
    for option, pair in config.chosen.items():
        choose = OPTIONS[option][1]
        kept = choose([item.nodeid for item in items], *pair)
        if option == "--part":
            kept |= {item.nodeid for item in items if item.get_closest_marker("distinct")}
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
