"""Where the data are; without them these tests skip, saying so."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_file():
    """Function from a file's name to its path."""

    def find(name):
        folder = os.environ.get("SKLEARN_BNP_DATA")
        path = None if folder is None else Path(folder, name)
        if path is None or not path.exists():
            pytest.skip(f"{name} is not there: set SKLEARN_BNP_DATA to a folder that holds it")
        return path

    return find
